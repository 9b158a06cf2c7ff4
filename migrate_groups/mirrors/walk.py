"""Find out which record of a source partition each record of a mirror's copy repeats: its source record.

A mirror copies the records in order. After a restart it may begin again at an earlier record. If records are identical,
several results are possible. `walk` finds one with the fewest restarts.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

OLDER = -1
"""Used in place of an index in the log: the record is older than the first record of the log that was read."""

MOST_STEPS = 20_000_000
"""The largest number of pairs of records that `walk` compares, which takes some seconds and at most 40 MB. Only long
runs of identical records need more."""

_NOT_POSSIBLE = -2


class TooLong(Exception):
    """Raised by `walk` if so many records are identical that it would compare more than `MOST_STEPS` pairs."""


class Walk(NamedTuple):
    """Which source record each record of a mirror's copy repeats, and where a group must continue in the copy.

    - indices: for each record of the copy, the index of its source record; `OLDER` if that record was not read. If
      several such lists are possible, this is one with the fewest restarts of the mirror.
    - restarts: how often the mirror went back to an earlier source record.
    - lowest, highest: the first and the last possible index in the copy at which the group must continue.
    - ends: the possible last values of ``indices``.
    """

    indices: Sequence[int]
    restarts: int
    lowest: int
    highest: int
    ends: Collection[int]


class _State(NamedTuple):
    """How a mirror can have written its copy up to some record, summed up over all possible ways.

    - restarts: the smallest possible number of restarts of the mirror.
    - lowest, highest: the first and the last possible index in the copy at which the group must continue. Only ways
      with the fewest restarts count.
    - first, last: the same, but all ways count.
    - previous: the index of the source record of the copy's previous record, in a way with the fewest restarts.
    """

    restarts: int
    lowest: int
    highest: int
    first: int
    last: int
    previous: int


def walk(log: Sequence[bytes], cut: int, copy: Sequence[bytes], *, older: bool) -> Walk | None:
    """Return which record of a log each record of a mirror's copy repeats; None if no mirror can have made the copy.

    - log, copy: the fingerprints (hashes) of the records, in order.
    - cut: the index in ``log`` of the first record at or after the committed offset.
    - older: whether there were records before those in ``log``.

    Raises `TooLong` if too many records are identical.
    """
    indices: Mapping[bytes, Sequence[int]] = _indices_by_record(log)
    unknown = (OLDER,) if older else ()
    steps: list[_Step] = []
    states: dict[int, _State] = {}
    work = 0
    for number, record in enumerate(copy):
        candidates = indices.get(record, unknown)
        work += len(candidates) + len(states)
        if work > MOST_STEPS:
            raise TooLong
        states = _step(states, candidates, number, cut) if number else _first(candidates, cut)
        if not states:
            return None
        steps.append(_Step.of(candidates, states))
    if not steps:
        return Walk((), 0, 0, 0, ())
    end = _merged(_continued(state, index, 0) for index, state in states.items())
    # Ways without a restart rule out all others. Otherwise all ways count, because many restarts are as likely as few.
    lowest, highest = (end.first, end.last) if end.restarts else (end.lowest, end.highest)
    return Walk(_indices(steps, end.previous), end.restarts, lowest, highest, [*states])


class _Step(NamedTuple):
    """The way back from a record of the copy: from each possible source record to that of the copy's previous record.

    Four bytes for each pair of records, because `_State` would take some 160.

    candidates: the possible source records, ascending. previous: the item of the step before for each of them.
    """

    candidates: Sequence[int]
    previous: Sequence[int]

    @classmethod
    def of(cls, candidates: Sequence[int], states: Mapping[int, _State]) -> _Step:
        found = (states[each].previous if each in states else _NOT_POSSIBLE for each in candidates)
        return cls(candidates, array("i", found))

    def before(self, index: int) -> int:
        return self.previous[bisect_left(self.candidates, index)]


def _indices_by_record(log: Sequence[bytes]) -> Mapping[bytes, Sequence[int]]:
    indices: defaultdict[bytes, list[int]] = defaultdict(list)
    for index, record in enumerate(log):
        indices[record].append(index)
    return indices


def _first(candidates: Iterable[int], cut: int) -> dict[int, _State]:
    return {index: _at(int(index < cut), 0, OLDER) for index in candidates}


def _at(here: int, restarts: int, previous: int) -> _State:
    return _State(restarts, here, here, here, here, previous)


def _step(states: Mapping[int, _State], candidates: Sequence[int], number: int, cut: int) -> dict[int, _State]:
    """Return how a mirror can have written its copy up to the record with the index ``number``.

    The keys are the possible indices of that record's source record.

    - states: the result for the copy's previous record.
    - candidates: the indices of source records with the hash of record ``number``; `OLDER` if no such record was read.
    - cut: the index of the first source record at or after the committed offset.
    """
    again = _restarted(states, candidates)
    after = {}
    for index in candidates:
        found = [again[index]] if index in again else []
        # After a copy of an `OLDER` record comes a copy of another such record, or of the first record in the log.
        if (before := max(index - 1, OLDER)) in states:
            found.append(_continued(states[before], before, 0))
        if found:
            state = _merged(found)
            after[index] = state if index >= cut else _at(number + 1, state.restarts, state.previous)
    return after


def _continued(state: _State, previous: int, more_restarts: int) -> _State:
    return state._replace(restarts=state.restarts + more_restarts, previous=previous)


def _merged(states: Iterable[_State]) -> _State:
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


def _restarted(states: Mapping[int, _State], candidates: Sequence[int]) -> Mapping[int, _State]:
    """Return how a mirror can have restarted and then copied a source record, by that record's index.

    - states: how the mirror can have written the copy so far, by the index of the source record that it copied last.
    - candidates: the indices of the source records that it can copy next. The result leaves out those above all keys
      of ``states``, because a restart never skips records.
    """
    found: dict[int, _State] = {}
    so_far: list[_State] = []
    later = sorted(states, reverse=True)
    at = 0
    for index in sorted(candidates, reverse=True):
        while at < len(later) and later[at] >= index:
            so_far = [_merged([*so_far, _continued(states[later[at]], later[at], 1)])]
            at += 1
        if so_far:
            found[index] = so_far[0]
    return found


def _indices(steps: Sequence[_Step], last: int) -> list[int]:
    indices = [last]
    for step in reversed(steps[1:]):
        indices.append(step.before(indices[-1]))
    return indices[::-1]
