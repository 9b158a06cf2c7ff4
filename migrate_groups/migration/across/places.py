"""Find the offsets in a mirror's copies of partitions that correspond to committed offsets. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from migrate_groups.errors import NotAuthorized
from migrate_groups.migration.across.logs import Logs
from migrate_groups.migration.across.mirror import Mirror
from migrate_groups.migration.reading.survey import refuse_unreadable
from migrate_groups.mirrors.find_place import find_place
from migrate_groups.mirrors.names import TopicNames
from migrate_groups.mirrors.place import Counts, Place, Status
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.topics import TopicDescription
from migrate_groups.text import counted

_MOST_AT_ONCE = 200_000
_WINDOW = 100
_GROWTH = 16
# Statuses that may change if more records of the source are read.
_NOT_FINAL = (Status.AMBIGUOUS, Status.DIFFERENT, Status.GONE)


class MirroredPartition(NamedTuple):
    """A partition with a committed offset on the source cluster, and its copy on the target cluster.

    committed: the offset to find in the copy; None if a transactional commit is pending. copy: None if there is no
    copy. there: the group's committed offset in the copy; None if there is none, or if it was not read.
    """

    source: TopicPartition
    committed: int | None
    copy: TopicPartition | None
    there: int | None = None


class Found(NamedTuple):
    """The offset at which a group must continue in a mirror's copy (``place``), and how far the mirror had copied.

    mirrored_to: the last stable offset of the copy when the place was searched; None: the copy was not read.
    """

    place: Place
    mirrored_to: int | None = None


def copies(
    partitions: Collection[TopicPartition], topics: Mapping[str, TopicDescription], names: TopicNames
) -> Mapping[TopicPartition, TopicPartition]:
    """Return the mirror's copy of each partition that has a copy on the target cluster.

    topics: the topics on the target. Raises `InvalidInput` if a topic has several possible copies, or if two topics
    have the same copy.
    """
    on_target = names.of({each.topic for each in partitions}, topics)
    return {
        each: TopicPartition(name, each.partition)
        for each in partitions
        if (name := on_target.get(each.topic)) is not None and each.partition in topics[name].partitions
    }


def find_places(
    mirror: Mirror, wanted: Collection[MirroredPartition], trusted: Collection[str] = ()
) -> Mapping[MirroredPartition, Found]:
    """Return, for each partition, the offset at which a group must continue in the mirror's copy, and its status.

    The status is `Status.UNDETERMINED` if more than ``mirror.most_records`` offsets of a partition would have to be
    read. trusted: source topics whose copies the user trusts where no record is left to compare. Raises `NotAuthorized`
    and `ClusterUnavailable`.
    """
    try:
        return _Finder(mirror, wanted, trusted).found()
    except NotAuthorized:
        refuse_unreadable(mirror.source.groups, {each.source.topic for each in wanted})
        refuse_unreadable(mirror.target.groups, {each.copy.topic for each in wanted if each.copy})
        raise


class _Wanted(NamedTuple):
    """A partition whose records must be read to find the offset in its copy that matches the committed offset."""

    of: MirroredPartition
    source: TopicPartition
    committed: int
    copy: TopicPartition


class _Finder:
    """Finds the offset at which a group must continue in the mirror's copy of each partition.

    It reads more and more records of the source partition, until the offset is certain.
    """

    def __init__(self, mirror: Mirror, wanted: Collection[MirroredPartition], trusted: Collection[str]) -> None:
        self._asked = wanted
        self._trusted = trusted
        self._most = mirror.most_records
        copied = {each.copy for each in wanted if each.copy}
        self._logs = Logs(mirror.source, mirror.target, {each.source for each in wanted}, copied)

    def found(self) -> Mapping[MirroredPartition, Found]:
        found: dict[MirroredPartition, Found] = {}
        left: list[_Wanted] = []
        for each in self._asked:
            wanted = self._wanted(each)
            if isinstance(wanted, Place):
                found[each] = Found(wanted)
            else:
                left.append(wanted)
        window = _WINDOW
        while left:
            unfinished: list[_Wanted] = []
            for part in self._parts(left, window):
                for looked, (place, is_enough) in self._round(part, window).items():
                    found[looked.of] = Found(place, self._logs.copy_ends[looked.copy])
                    if not is_enough and looked.committed - self._logs.ranges[looked.source].start > window:
                        unfinished.append(looked)
            left, window = unfinished, window * _GROWTH
        return found

    def _wanted(self, each: MirroredPartition) -> _Wanted | Place:
        """Return the offset in the copy, or why it is not known; a `_Wanted` if records must be read to find it."""
        reason = ""
        if each.committed is None:
            reason = "a transactional commit is pending"
        elif each.copy is None:
            # MirrorMaker 2 looks for new topics every refresh.topics.interval.seconds, by default 10 min.
            reason = (
                "no such partition on the target, or no Describe on its topic (a mirror may take 10 min to create it)"
            )
        elif (source := self._logs.ranges.get(each.source)) is None:
            reason = "the partition has no leader on the source"
        elif each.copy not in self._logs.copy_ranges or each.copy not in self._logs.copy_ends:
            reason = "the partition has no leader on the target"
        elif each.committed > source.end:
            reason = "the committed offset is beyond the source's log end"
        elif each.committed < source.start:
            lost = counted(source.start - each.committed, "offset")
            return Place(status=Status.GONE, reason=f"the source's log starts {lost} later")
        else:
            return _Wanted(each, each.source, each.committed, each.copy)
        return Place(status=Status.UNDETERMINED, reason=reason)

    def _without_evidence(self, wanted: _Wanted) -> Place:
        """Return the end of the copy if the user trusts it. Otherwise no offset is known.

        Only for a source partition without a record that could be compared.
        """
        if wanted.source.topic not in self._trusted:
            reason = (
                "the source has no record left to compare: pass --trust-copy "
                f"{wanted.source.topic} to start at the end of the copy, if it is one"
            )
            return Place(status=Status.UNDETERMINED, reason=reason)
        # If it is a copy, the group has read every record of it, because it has committed the source's log end offset,
        # which was read after the end of the copy.
        end, there = self._logs.copy_ends[wanted.copy], wanted.of.there
        counts = Counts() if there is None else Counts(again=max(0, end - there), skipped=0)
        reason = "no record was compared (--trust-copy)"
        return Place(status=Status.TRUSTED, offset=end, counts=counts, reason=reason)

    def _parts(self, left: Sequence[_Wanted], window: int) -> Iterator[Sequence[_Wanted]]:
        """Yield the partitions in portions, so that the records of one portion fit into memory.

        window: how many offsets below each committed offset are read.
        """
        part: list[_Wanted] = []
        offsets = 0
        for each in left:
            offsets += window + self._logs.ranges[each.source].end - each.committed
            part.append(each)
            if offsets >= _MOST_AT_ONCE:
                yield part
                part, offsets = [], 0
        if part:
            yield part

    def _round(self, left: Sequence[_Wanted], window: int) -> dict[_Wanted, tuple[Place, bool]]:
        """Return, for each partition, the offset at which a group must continue in the copy, and whether it is final.

        An offset is not final if more source records must be read. window: how many offsets before the committed offset
        to read.
        """
        lowest: dict[TopicPartition, int] = {}
        for each in left:
            lowest[each.source] = min(each.committed, lowest.get(each.source, each.committed))
        windows = self._logs.windows(lowest, window, self._most)
        read = [each for each in left if each.source in windows]
        copied = self._logs.copies(
            ((each.copy, windows[each.source].part) for each in read),
            ((each.copy, each.of.there) for each in read if each.of.there is not None),
            self._most,
        )
        found = {}
        for each in left:
            of_source, copy = windows.get(each.source), copied.get(each.copy)
            if each.copy in self._logs.unanswered:
                found[each] = _undetermined("the partition has no leader on the target")
            elif of_source is None or copy is None:
                where = "source" if of_source is None else "target"
                found[each] = _undetermined(
                    f"more than {self._most:,} offsets to read on the {where}: pass a higher --max-records"
                )
            elif copy.log_append_time:
                found[each] = _undetermined(
                    "the target's topic has message.timestamp.type=LogAppendTime: set CreateTime, and mirror it anew"
                )
            else:
                place = find_place(of_source.part, each.committed, copy, each.of.there)
                is_told = place is not None and place.status not in _NOT_FINAL
                found[each] = place or self._without_evidence(each), is_told and of_source.is_anchored
        return found


def _undetermined(reason: str) -> tuple[Place, bool]:
    return Place(status=Status.UNDETERMINED, reason=reason), True
