"""A check in the registry: its name, what it applies to, and the function that judges the facts of a write."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.text import some

NOTHING_TO_COMPARE = "there is nothing to compare"


class Scope(StrEnum):
    """What a check applies to: a kind of write, or a part of it.

    - hand-over: from a source group to target groups on one cluster.
    - source, mirror, target: the three parts of a hand-over to another cluster.
    - fail-over: in place of source and mirror, if the source group's cluster is lost.
    - live source: the source group while it may still run. The plan that is written has no such check.
    - application: the applications of the target groups, as the plan is shown. The plan that is written has no such
      check.
    - barrier: the last reading of committed offsets, on each cluster.
    - journal: what other runs have claimed of the partitions of the write.
    - rollback, hand-back: these commands.
    - delete-offsets of a run, delete-offsets of a group: `delete-offsets` with a receipt, or with ``--group``.
    """

    HAND_OVER = "hand-over"
    SOURCE = "source"
    MIRROR = "mirror"
    TARGET = "target"
    FAIL_OVER = "fail-over"
    LIVE_SOURCE = "live source"
    APPLICATION = "application"
    BARRIER = "barrier"
    JOURNAL = "journal"
    ROLLBACK = "rollback"
    HAND_BACK = "hand-back"
    DELETE_OF_RUN = "delete-offsets of a run"
    DELETE_OF_GROUP = "delete-offsets of a group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A check in the registry.

    - scopes: what it applies to.
    - judge: returns the verdict and its reason from the facts of the write, whose type belongs to the scope
      (`planning.checks.facts`). It returns None if the plan is to be shown without this check.
    - depends_on: checks of the same scope that come before. If one of them refuses, this one is ``not applicable``,
      because its result says nothing if what it compares is already known to be wrong.
    - is_first: whether nothing else is read or judged if this check refuses.
    """

    name: str
    scopes: tuple[Scope, ...]
    judge: Callable[[Any], Judgement | None]
    depends_on: tuple[str, ...] = ()
    is_first: bool = False


def refused_if_any(found: Collection[str], complaint: str, fine: str, *, compared: Collection[object]) -> Judgement:
    """Return a refusal if ``found`` has any items; otherwise the verdict ``pass`` with the reason ``fine``.

    The reason of a refusal is the first three items and ``complaint``. compared: what was searched for ``found``.
    If it is empty, the verdict is ``not applicable``.
    """
    if found:
        return Verdict.REFUSE, f"{some(found, 3)}: {complaint}"
    return (Verdict.PASS, fine) if compared else (Verdict.NOT_APPLICABLE, NOTHING_TO_COMPARE)
