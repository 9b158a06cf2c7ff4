"""Reduce a story that breaks the promise to its shortest form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.support.any_order.runs import AtOnce, Command, Step


def reduced(steps: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """Leave out steps and events one by one, as long as the story still fails."""
    shorter: list[Step] | None = steps
    while shorter is not None:
        steps, shorter = shorter, next((each for each in _shorter(shorter) if fails(each)), None)
    return steps


def _shorter(steps: list[Step]) -> Iterator[list[Step]]:
    for at in reversed(range(len(steps))):
        yield steps[:at] + steps[at + 1 :]
    for at, step in enumerate(steps):
        for simpler in _simpler(step):
            yield [*steps[:at], simpler, *steps[at + 1 :]]


def _simpler(step: Step) -> Iterator[Step]:
    if isinstance(step, AtOnce):
        yield from (step.first, step.second)
        yield from (replace(step, turns=step.turns[:at]) for at in range(1, len(step.turns)))
        yield from (replace(step, first=each) for each in _simpler(step.first) if isinstance(each, Command))
        yield from (replace(step, second=each) for each in _simpler(step.second) if isinstance(each, Command))
    elif isinstance(step, Command):
        yield from (replace(step, events=step.events[:at] + step.events[at + 1 :]) for at in range(len(step.events)))
        simplest = Command(step.verb, step.of, step.events)
        for name in ("stops", "starts", "member", "hold", "again"):
            if getattr(step, name) != getattr(simplest, name):
                changed: Any = {name: getattr(simplest, name)}
                yield replace(step, **changed)
