"""Walk along the copy of a log, and tell which record of the log each of its records is.

A mirror that keeps the order of a partition writes its records one after the other. After a restart it may begin again
at an earlier record (at-least-once). So each record of the copy is the one that follows in the log, or an earlier one
again. `walk` finds the explanation with the fewest restarts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

OLDER = -1
"""In place of an index: a record before the first one of the log that was read."""

MOST_STEPS = 20_000_000
"""`walk` compares at most so many pairs of records, which takes some seconds. Only runs of identical records need so
many."""


class TooLong(Exception):
    """Too many identical records to walk along them."""


class Walk(NamedTuple):
    """The explanation of a copy with the fewest restarts.

    indices: for each record of the copy, the index of its record in the log; `OLDER` for an earlier one. restarts: how
    often the mirror began again at an earlier record. lowest, highest: the cut in the copy, which is the number of its
    records up to the last one from before the cut. They are the lowest and the highest of all explanations without a
    restart; if there is none, of all explanations, because more restarts are then no less likely. ends: the possible
    indices of the last record, in all explanations.
    """

    indices: Sequence[int]
    restarts: int
    lowest: int
    highest: int
    ends: Collection[int]


class _State(NamedTuple):
    """The explanations of the records so far that end with one record of the log.

    restarts, lowest, highest: as in `Walk`, of the explanations with the fewest restarts. first, last: the lowest and
    the highest of all explanations. previous: the index of the record before, in an explanation that has ``lowest``.
    """

    restarts: int
    lowest: int
    highest: int
    first: int
    last: int
    previous: int


def walk(log: Sequence[bytes], cut: int, copy: Sequence[bytes], *, older: bool) -> Walk | None:
    """Return the explanation of a copy with the fewest restarts; None if there is none.

    log, copy: the fingerprints of the records. cut: the index in the log of the first record at or after the committed
    offset. older: the log has records before the first one given here.

    Raises `TooLong` if runs of identical records are too long.
    """
    places: Mapping[bytes, Sequence[int]] = _places(log)
    unknown = (OLDER,) if older else ()
    steps: list[dict[int, _State]] = []
    states: dict[int, _State] = {}
    work = 0
    for number, record in enumerate(copy):
        candidates = places.get(record, unknown)
        work += len(candidates) + len(states)
        if work > MOST_STEPS:
            raise TooLong
        states = _step(states, candidates, number, cut) if number else _first(candidates, cut)
        if not states:
            return None
        steps.append(states)
    if not steps:
        return Walk((), 0, 0, 0, ())
    end = _merged(_through(state, index, 0) for index, state in states.items())
    lowest, highest = (end.first, end.last) if end.restarts else (end.lowest, end.highest)
    return Walk(_indices(steps, end.previous), end.restarts, lowest, highest, [*states])


def _places(log: Sequence[bytes]) -> Mapping[bytes, Sequence[int]]:
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for index, record in enumerate(log):
        places[record].append(index)
    return places


def _first(candidates: Iterable[int], cut: int) -> dict[int, _State]:
    return {index: _at(int(index < cut), 0, OLDER) for index in candidates}


def _at(here: int, restarts: int, previous: int) -> _State:
    return _State(restarts, here, here, here, here, previous)


def _step(states: Mapping[int, _State], candidates: Sequence[int], number: int, cut: int) -> dict[int, _State]:
    """Return the states after the record ``number`` of the copy, which is one of the ``candidates`` of the log."""
    again = _again(states, candidates)
    after = {}
    for index in candidates:
        found = [again[index]] if index in again else []
        # After an older record comes another older one, or the first one of the log.
        if (before := max(index - 1, OLDER)) in states:
            found.append(_through(states[before], before, 0))
        if found:
            state = _merged(found)
            after[index] = state if index >= cut else _at(number + 1, state.restarts, state.previous)
    return after


def _through(state: _State, index: int, restarts: int) -> _State:
    """Return the explanations that go on from the record ``index``, which ``state`` belongs to."""
    return state._replace(restarts=state.restarts + restarts, previous=index)


def _merged(states: Iterable[_State]) -> _State:
    """Return the explanations of several states as one."""
    states = list(states)
    if len(states) == 1:
        return states[0]
    fewest = min(each.restarts for each in states)
    best = [each for each in states if each.restarts == fewest]
    lowest = min(best, key=lambda each: each.lowest)
    return _State(
        restarts=fewest,
        lowest=lowest.lowest,
        highest=max(each.highest for each in best),
        first=min(each.first for each in states),
        last=max(each.last for each in states),
        previous=lowest.previous,
    )


def _again(states: Mapping[int, _State], candidates: Sequence[int]) -> Mapping[int, _State]:
    """Return, for each candidate, the explanations that reach it by a restart: from its own index or a later one."""
    found: dict[int, _State] = {}
    so_far: list[_State] = []
    later = sorted(states, reverse=True)
    at = 0
    for index in sorted(candidates, reverse=True):
        while at < len(later) and later[at] >= index:
            so_far = [_merged([*so_far, _through(states[later[at]], later[at], 1)])]
            at += 1
        if so_far:
            found[index] = so_far[0]
    return found


def _indices(steps: Sequence[Mapping[int, _State]], last: int) -> list[int]:
    indices = [last]
    for states in reversed(steps[1:]):
        indices.append(states[indices[-1]].previous)
    return indices[::-1]
