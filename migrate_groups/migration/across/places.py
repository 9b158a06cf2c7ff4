"""Find the offsets in a mirror's copies of partitions that correspond to committed offsets. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from migrate_groups.errors import NotAuthorized
from migrate_groups.migration.across.logs import Logs
from migrate_groups.migration.ports import Side
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
    source: Side, target: Side, wanted: Collection[MirroredPartition], most_records: int
) -> Mapping[MirroredPartition, Found]:
    """Return, for each partition, the offset at which a group must continue in the mirror's copy, and its status.

    The status is `Status.UNDETERMINED` if more than ``most_records`` offsets of a partition would have to be read.
    Raises `NotAuthorized` and `ClusterUnavailable`.
    """
    try:
        return _Finder(source, target, wanted, most_records).found()
    except NotAuthorized:
        refuse_unreadable(source.groups, {each.source.topic for each in wanted})
        refuse_unreadable(target.groups, {each.copy.topic for each in wanted if each.copy})
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

    def __init__(self, source: Side, target: Side, wanted: Collection[MirroredPartition], most_records: int) -> None:
        self._asked = wanted
        self._most = most_records
        self._logs = Logs(source, target, {each.source for each in wanted}, {each.copy for each in wanted if each.copy})

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
        elif each.committed == source.start == source.end > 0:
            return self._end_of_copy(each.copy, each.there)
        else:
            return _Wanted(each, each.source, each.committed, each.copy)
        return Place(status=Status.UNDETERMINED, reason=reason)

    def _end_of_copy(self, copy: TopicPartition, there: int | None) -> Place:
        """Return the end of the copy as the offset at which a group must continue.

        Only for a source partition whose records are all deleted. there: the group's committed offset in the copy, to
        count the records from there to the end; None if there is none, or if it was not read.
        """
        # The group has read every record of the copy, because it committed the source's log end offset, which was read
        # after the end of the copy.
        end = self._logs.copy_ends[copy]
        counts = Counts() if there is None else Counts(again=max(0, end - there), skipped=0)
        return Place(status=Status.EXACT, offset=end, counts=counts)

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
                compacted = self._logs.is_compacted(each.source, each.copy)
                place = find_place(of_source.part, each.committed, copy, each.of.there, compacted=compacted)
                is_told = place.status not in (Status.AMBIGUOUS, Status.DIFFERENT, Status.GONE)
                found[each] = place, is_told and of_source.is_anchored
        return found


def _undetermined(reason: str) -> tuple[Place, bool]:
    return Place(status=Status.UNDETERMINED, reason=reason), True
