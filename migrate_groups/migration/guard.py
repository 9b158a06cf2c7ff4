"""Watch the old groups after the write: an owner or a commit that reappears would be processed twice."""

from __future__ import annotations

from collections import defaultdict

from migrate_groups.clock import Clock
from migrate_groups.cluster.ports import GroupReader
from migrate_groups.errors import ClusterUnavailable, Refused
from migrate_groups.plan.checks.source import running
from migrate_groups.plan.plan import Change
from migrate_groups.plan.receipt import Receipt
from migrate_groups.text import counted, some

_POLL_SECONDS = 1.0


def look_at_sources(reader: GroupReader, receipt: Receipt) -> Receipt:
    """Return the receipt, with what the source groups did since their offsets were read, where they did anything."""
    sources: dict[str, list[Change]] = defaultdict(list)
    for entry in receipt.entries:
        if entry.change.source_group is not None:
            sources[entry.change.source_group].append(entry.change)
    for group, changes in sources.items():
        try:
            reasons = _what_it_did(reader, group, changes)
        except (ClusterUnavailable, Refused) as error:
            receipt = receipt.with_source_moved(
                [f"source group {group!r} could not be watched after the write: {error}"]
            )
        else:
            receipt = receipt.with_source_moved(f"source group {group!r} {reason}" for reason in reasons)
    return receipt


def guard(reader: GroupReader, receipt: Receipt, seconds: float, clock: Clock) -> Receipt:
    """Watch the source groups for this long, or until one does something, and return the receipt that says so."""
    deadline = clock.monotonic() + seconds
    while not receipt.source_moved and (left := deadline - clock.monotonic()) > 0:
        clock.sleep(min(_POLL_SECONDS, left))
        receipt = look_at_sources(reader, receipt)
    return _look_at_targets(reader, receipt)


def _look_at_targets(reader: GroupReader, receipt: Receipt) -> Receipt:
    """Return the receipt, with a remark where a target that nobody is in stands elsewhere than it was put.

    That is a new application that came and went, or another writer at the same moment: nobody but a person can tell.
    """
    for group in sorted({entry.change.group for entry in receipt.entries}):
        put = [entry.change for entry in receipt.entries if entry.change.group == group]
        try:
            if reader.describe_group(group).members:
                continue
            now = reader.committed(group, [change.topic_partition for change in put])
        except (ClusterUnavailable, Refused) as error:
            receipt = receipt.remarked(f"group {group!r} could not be looked at again: {error}")
            continue
        elsewhere = [str(change.topic_partition) for change in put if now[change.topic_partition] != change.after]
        if elsewhere:
            receipt = receipt.remarked(
                f"group {group!r} has no member, and stands elsewhere than it was put in "
                f"{counted(len(elsewhere), 'partition')}: {some(elsewhere)}; a new application that has stopped "
                "again, or another run that wrote at the same moment"
            )
    return receipt


def _what_it_did(reader: GroupReader, group: str, changes: list[Change]) -> list[str]:
    description = reader.describe_group(group)
    topics = {change.topic for change in changes}
    reasons = running(description, topics) if description.exists else []
    if description.state not in ("Stable", "Empty") and reader.committed_topics(group) - topics:
        reasons = []  # it lives on with other topics, and rebalances for them: the next look tells who has what
    found = reader.committed(group, [change.topic_partition for change in changes])
    moved = [
        f"{change.topic_partition} by {now.offset - at:,}"
        for change in changes
        if (now := found[change.topic_partition]) and (at := change.handed_over_at) is not None and now.offset > at
    ]
    if moved:
        reasons.append(f"committed {counted(len(moved), 'partition')} after the snapshot: {some(moved)} records")
    return reasons
