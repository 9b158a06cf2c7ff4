"""Watch the old groups after the write: an owner or a commit that reappears would be processed twice."""

from __future__ import annotations

from collections import defaultdict

from msgspec.structs import replace

from migrate_groups.clock import Clock
from migrate_groups.cluster.ports import CommittedOffset, GroupReader
from migrate_groups.errors import ClusterUnavailable, Refused
from migrate_groups.plan.checks.source import running
from migrate_groups.plan.plan import Change
from migrate_groups.plan.receipt import Entry, Outcome, Receipt
from migrate_groups.text import counted, some

_POLL_SECONDS = 1.0
# So long a rebalance waits for a member that does not poll: max.poll.interval.ms, by default.
_LONGEST_REBALANCE_SECONDS = 300.0


def look_at_sources(reader: GroupReader, receipt: Receipt) -> Receipt:
    """Return the receipt, with what the source groups did since their offsets were read, where they did anything."""
    return _look(reader, receipt)[0]


def guard(reader: GroupReader, receipt: Receipt, seconds: float, clock: Clock) -> Receipt:
    """Watch the source groups for this long, or until one does something, and return the receipt that says so.

    One that rebalances then is watched on, for 5 minutes at most: who gets the moved topics is seen after it alone.
    What can't be seen by the end is said as if the group had moved.
    """
    deadline = clock.monotonic() + seconds
    unclear: list[str] = []
    while (
        not receipt.source_moved
        and (left := deadline + (_LONGEST_REBALANCE_SECONDS if unclear else 0) - clock.monotonic()) > 0
    ):
        clock.sleep(min(_POLL_SECONDS, left))
        receipt, unclear = _look(reader, receipt)
    receipt = receipt.with_source_moved(
        f"source group {group!r} still rebalances: nobody can tell who has the moved topics" for group in unclear
    )
    return _look_at_targets(reader, receipt)


def _look(reader: GroupReader, receipt: Receipt) -> tuple[Receipt, list[str]]:
    """Return the receipt of `look_at_sources`, and the groups of which this look does not tell who has what."""
    sources: dict[str, list[Change]] = defaultdict(list)
    for change in receipt.handed_over():
        sources[change.source_group or ""].append(change)
    unclear = []
    for group, changes in sources.items():
        try:
            reasons, is_clear = _what_it_did(reader, group, changes)
        except (ClusterUnavailable, Refused) as error:
            receipt = receipt.with_source_moved(
                [f"source group {group!r} could not be watched after the write: {error}"]
            )
        else:
            receipt = receipt.with_source_moved(f"source group {group!r} {reason}" for reason in reasons)
            if not is_clear:
                unclear.append(group)
    return receipt, unclear


def _look_at_targets(reader: GroupReader, receipt: Receipt) -> Receipt:
    """Return the receipt, with what became of targets that nobody is in, and that stand elsewhere than they were put.

    Behind, it is another writer's doing: a failure. Ahead, a remark: it may be a new application that came and went.
    """
    for group in sorted({entry.change.group for entry in receipt.entries}):
        put = [entry for entry in receipt.entries if entry.change.group == group]
        try:
            if reader.describe_group(group).members:
                continue
            now = reader.committed(group, [entry.change.topic_partition for entry in put])
        except (ClusterUnavailable, Refused) as error:
            receipt = receipt.remarked(f"group {group!r} could not be looked at again: {error}")
            continue
        behind = [entry for entry in put if _is_behind(now[entry.change.topic_partition], entry.change.after)]
        receipt = receipt.updated(map(_overwritten, behind))
        elsewhere = [
            str(entry.change.topic_partition)
            for entry in put
            if entry not in behind and now[entry.change.topic_partition] != entry.change.after
        ]
        if elsewhere:
            receipt = receipt.remarked(
                f"group {group!r} has no member, and stands elsewhere than it was put in "
                f"{counted(len(elsewhere), 'partition')}: {some(elsewhere)}; a new application that has stopped "
                "again, or another run that wrote at the same moment"
            )
    return receipt


def _is_behind(now: CommittedOffset | None, put: CommittedOffset | None) -> bool:
    return put is not None and (now is None or now.offset < put.offset)


def _overwritten(entry: Entry) -> Entry:
    error = "moved back by somebody else after it was confirmed"
    return replace(entry, outcome=Outcome.REFUSED, error=error)


def _what_it_did(reader: GroupReader, group: str, changes: list[Change]) -> tuple[list[str], bool]:
    """Return what the group did, and whether it can be seen who has the moved topics."""
    description = reader.describe_group(group)
    topics = {change.topic for change in changes}
    reasons = running(description, topics) if description.exists else []
    rebalances = description.state not in ("Stable", "Empty", "Dead")
    # It lives on with other topics, and rebalances for them, or for the moved ones: a later look tells.
    is_clear = not (rebalances and {partition.topic for partition in reader.all_committed(group)} - topics)
    if not is_clear:
        reasons = []
    found = reader.committed(group, [change.topic_partition for change in changes])
    moved = [
        f"{change.topic_partition} {'by' if now.offset > at else 'back by'} {abs(now.offset - at):,}"
        for change in changes
        if (now := found[change.topic_partition]) and (at := change.handed_over_at) is not None and now.offset != at
    ]
    if moved:
        reasons.append(f"committed {counted(len(moved), 'partition')} after the snapshot: {some(moved)} records")
    return reasons, is_clear
