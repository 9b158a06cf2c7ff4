"""Find partitions to which a mirror has delivered records a second time. Groups would read these records twice."""

from __future__ import annotations

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.across.mirror import Mirror
from migrate_groups.planning.translation import Translation
from migrate_groups.text import counted, some


def delivered_again(mirror: Mirror, translation: Translation) -> str:
    """Return a remark that names the copies to which the mirror has delivered records a second time; empty if none.

    translation: offsets found earlier in the copies. The remark also names copies for which this is not known: they
    can't be read, or have grown by more than ``mirror.most_records`` offsets since.
    """
    target = mirror.target
    seen = {
        each.copy: (each.position.as_of, each.position.before)
        for each in translation.partitions
        if each.copy and each.position.as_of is not None and each.position.before is not None
    }
    try:
        ends = target.groups.last_stable_offsets(seen)
        spans = {copy: range(seen[copy][0], end) for copy, end in ends.items()}
        read = target.records.read(
            {copy: span for copy, span in spans.items() if len(span) <= mirror.most_records}, committed_only=True
        )
    except MigrateGroupsError as error:
        return f"whether the mirror has delivered records again is not known: {error}"
    # The mirror delivers records again after it was restarted, or after a broker to which it writes has failed.
    again = [copy for copy, records in read.items() if seen[copy][1] in records.prints]
    remarks = []
    if again:
        remarks.append(
            "the mirror has begun again since the offsets were translated: "
            f"{counted(len(again), 'partition')} with records from before the translated offset after it "
            f"({some(again)})"
        )
    if unread := sorted(seen.keys() - read.keys()):
        remarks.append(
            "whether the mirror has delivered records again is not known for "
            f"{counted(len(unread), 'partition')} without a leader, or with more than {mirror.most_records:,} new "
            f"offsets: {some(unread)}"
        )
    return "; ".join(remarks)
