"""Translate offsets of a group to offsets in a mirror's copies of the partitions on another cluster. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from migrate_groups.errors import NotAuthorized
from migrate_groups.migration.across.logs import Logs, in_growing_windows
from migrate_groups.migration.clusters import Mirror
from migrate_groups.migration.reading.survey import refuse_unreadable
from migrate_groups.mirrors.find_original import find_original
from migrate_groups.mirrors.find_position import find_position, same_offset
from migrate_groups.mirrors.position import Counts, Position, Status, undetermined
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.renames import Rename, names_of_copies
from migrate_groups.model.topics import TopicDescription
from migrate_groups.planning.translation import PENDING, TranslatedOffset, Translation
from migrate_groups.text import counted

# An offset to translate, and its copy.
_WithCopy = tuple[TranslatedOffset, TopicPartition]
# Statuses that may change if more records of the source are read.
_NOT_FINAL = (Status.AMBIGUOUS, Status.DIFFERENT, Status.GONE)


def copies(
    partitions: Collection[TopicPartition], topics: Mapping[str, TopicDescription], renames: Sequence[Rename]
) -> Mapping[TopicPartition, TopicPartition]:
    """Return the mirror's copy of each partition that has a copy on the target cluster.

    topics: the topics on the target. Raises `InvalidInput` if a topic has several possible copies, or if two topics
    have the same copy.
    """
    on_target = names_of_copies({each.topic for each in partitions}, topics, renames)
    return {
        each: TopicPartition(name, each.partition)
        for each in partitions
        if (name := on_target.get(each.topic)) is not None and each.partition in topics[name].partitions
    }


def translate(
    mirror: Mirror,
    group: str,
    starts: Mapping[TopicPartition, tuple[int, int | None]],
    trusted: Collection[str] = (),
) -> Translation:
    """Return, for each offset, the offset at which a group must continue in the mirror's copy, and how exact it is.

    group: the source group. starts: by source partition, the offset to translate, and the group's committed offset.
    trusted: source topics whose copies the user trusts where no record is left to compare.

    Raises `InvalidInput` if the copy of a topic is not clear.
    """
    copy_of = copies(starts.keys(), mirror.target.groups.describe_topics(None), mirror.renames)
    offsets = [
        TranslatedOffset(source=partition, offset=start, committed=committed, copy=copy_of.get(partition))
        for partition, (start, committed) in sorted(starts.items())
    ]
    found = find_positions(mirror, offsets, trusted)
    return Translation(
        cluster_id=mirror.source.groups.cluster_id(), group=group, partitions=tuple(found[each] for each in offsets)
    )


def find_positions(
    mirror: Mirror, offsets: Collection[TranslatedOffset], trusted: Collection[str] = ()
) -> Mapping[TranslatedOffset, TranslatedOffset]:
    """Return, by offset to translate, the same offset with its position in the mirror's copy.

    The status is `Status.UNDETERMINED` if more than ``mirror.most_records`` offsets of a partition would have to be
    read. trusted: source topics whose copies the user trusts where no record is left to compare.
    """
    try:
        found = _Search(mirror, offsets, trusted).positions()
    except NotAuthorized:
        refuse_unreadable(mirror.source.groups, {each.source.topic for each in offsets})
        refuse_unreadable(mirror.target.groups, {each.copy.topic for each in offsets if each.copy})
        raise
    return {each: replace(each, position=position) for each, position in found.items()}


class _Search:
    """Searches for the offset at which a group must continue in the mirror's copy of each partition.

    It reads more and more records of the source partition, until the offset is certain.
    """

    def __init__(self, mirror: Mirror, offsets: Collection[TranslatedOffset], trusted: Collection[str]) -> None:
        self._offsets = offsets
        self._trusted = trusted
        self._mirror = mirror
        self._most = mirror.most_records
        copied = {each.copy for each in offsets if each.copy}
        self._logs = Logs(mirror, {each.source for each in offsets}, copied)

    def positions(self) -> Mapping[TranslatedOffset, Position]:
        found: dict[TranslatedOffset, Position] = {}
        to_read: list[_WithCopy] = []
        for each in self._offsets:
            known = self._known_without_records(each)
            if known is not None:
                found[each] = known
            elif each.copy is not None:
                to_read.append((each, each.copy))

        def span(of: _WithCopy, window: int) -> range:
            log = self._logs.ranges[of[0].source]
            return range(max(log.start, of[0].offset - window), log.end)

        def read(spans: Mapping[_WithCopy, range]) -> Iterator[_WithCopy]:
            for (each, copy), (position, is_final) in self._round(spans).items():
                if each in found and found[each].status is Status.NOT_MIRRORED and not position.method:
                    continue  # there are too many records to read, or none more to compare
                found[each] = replace(position, as_of=self._logs.copy_ends[copy])
                if not is_final and spans[each, copy].start > self._logs.ranges[each.source].start:
                    yield each, copy

        in_growing_windows(to_read, span, read)
        return found

    def _known_without_records(self, each: TranslatedOffset) -> Position | None:
        """Return why there is no offset in the copy; None if records must be read to find it."""
        if each.offset == PENDING:
            return undetermined("a transactional commit is pending")
        if each.copy is None:
            # MirrorMaker 2 looks for new topics every refresh.topics.interval.seconds, by default 10 min.
            return undetermined(
                "no such partition on the target, or no Describe on its topic (a mirror may take 10 min to create it)"
            )
        source = self._logs.ranges.get(each.source)
        if source is None:
            return undetermined("the partition has no leader on the source")
        if each.copy not in self._logs.copy_ranges or each.copy not in self._logs.copy_ends:
            return undetermined("the partition has no leader on the target")
        if each.offset > source.end:
            return undetermined("the committed offset is beyond the source's log end")
        if each.offset < source.start:
            lost = counted(source.start - each.offset, "offset")
            return Position(status=Status.GONE, reason=f"the source's log starts {lost} later")
        return None

    def _without_evidence(self, each: TranslatedOffset, copy: TopicPartition) -> Position:
        """Return the end of the copy if the user trusts it. Otherwise no offset is known.

        Only for a source partition without a record that could be compared.
        """
        if each.source.topic not in self._trusted:
            return undetermined(
                "the source has no record left to compare: pass --trust-copy "
                f"{each.source.topic} to start at the end of the copy, if it is one"
            )
        # If it is a copy, the group has read every record of it, because it has committed the source's log end offset,
        # which was read after the end of the copy.
        end, there = self._logs.copy_ends[copy], each.there
        counts = Counts() if there is None else Counts(again=max(0, end - there), skipped=0)
        reason = "no record was compared (--trust-copy)"
        return Position(status=Status.TRUSTED, offset=end, counts=counts, reason=reason)

    def _round(self, spans: Mapping[_WithCopy, range]) -> Mapping[_WithCopy, tuple[Position, bool]]:
        """Return the position of each offset in its copy, and whether it is final.

        A position is not final if more source records must be read. spans: the offsets of the source to read.
        """
        longest: dict[TopicPartition, range] = {}
        lowest: dict[TopicPartition, int] = {}
        for (each, _), span in spans.items():
            longest[each.source] = max(span, longest.get(each.source, span), key=len)
            lowest[each.source] = min(each.offset, lowest.get(each.source, each.offset))
        parts = self._logs.parts(longest, lowest)
        read = [(each, copy) for each, copy in spans if each.source in parts]
        copied = self._logs.copies(
            ((copy, parts[each.source]) for each, copy in read),
            ((copy, each.there) for each, copy in read if each.there is not None),
        )
        found = {}
        following: dict[_WithCopy, int] = {}
        for each, on_target in spans:
            position, is_final = None, True
            source, copy = parts.get(each.source), copied.get(on_target)
            if on_target in self._logs.unanswered:
                position = undetermined("the partition has no leader on the target")
            elif source is None or copy is None:
                where = "source" if source is None else "target"
                position = undetermined(
                    f"more than {self._most:,} offsets to read on the {where}: pass a higher --max-records"
                )
            elif self._mirror.is_return:
                position, is_final, timestamp = find_original(source, each.offset, copy, each.there)
                if timestamp is not None:
                    following[each, on_target] = timestamp
            elif copy.log_append_time:
                position = undetermined(
                    "the target's topic has message.timestamp.type=LogAppendTime: set CreateTime, and mirror it anew"
                )
            else:
                position = find_position(source, each.offset, copy, each.there)
                end = self._logs.copy_ends[on_target]
                position = position and same_offset(source, each.offset, copy, position, end)
                is_final = source.is_anchored and _is_final(position)
            found[each, on_target] = position or self._without_evidence(each, on_target), is_final
        for again in self._copied_before(following, spans):
            found[again] = found[again][0], False
        return found

    def _copied_before(
        self, following: Mapping[_WithCopy, int], spans: Mapping[_WithCopy, range]
    ) -> Iterator[_WithCopy]:
        """Yield the copies that may have the first unread record of the original before the offsets that were read.

        Then the mirror has begun again since. following: the timestamp of that record.
        """
        timestamps = {each.source: timestamp for (each, _), timestamp in following.items()}
        first = self._mirror.source.groups.offsets_at(timestamps)
        for with_copy in following:
            record = first.get(with_copy[0].source)
            if record is not None and record.offset < spans[with_copy].start:
                yield with_copy


def _is_final(position: Position | None) -> bool:
    """Return whether more records of the source can't change a position."""
    if position is None or position.status in _NOT_FINAL:
        return False
    # If nothing was compared, an earlier record may show that it is a copy.
    return position.status is not Status.NOT_MIRRORED or position.compared > 0
