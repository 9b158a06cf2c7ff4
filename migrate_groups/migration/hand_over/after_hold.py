"""After a hold, watch the source group for the consumers that this tool had kept out."""

from __future__ import annotations

from dataclasses import replace

from migrate_groups.clock import Clock
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.added_partitions import with_added_partitions
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import guard, watched
from migrate_groups.migration.ports import GroupReader, HeldGroup
from migrate_groups.planning.execution import Execution
from migrate_groups.text import some


def watch_after_hold(
    reader: GroupReader, held: HeldGroup, execution: Execution, file: ReceiptFile, clock: Clock, events: Events
) -> Execution:
    """Watch the source group for consumers after this tool has left the group; return the record of the write.

    Messages about consumers that joined or committed are added to the record (``moved``), and about partitions that
    were added to the topics (``added``). If this tool may not have been a member all the time, it does not watch, and
    adds a message about that.
    """
    # While this tool was a member, other consumers could not join or commit. They try again now, and process records
    # that were handed over (docs/evidence/reliability.md#settle-and-hold).
    execution = execution.with_moved([held.lost] if held.lost else [])
    seconds = execution.options.guard
    # Added partitions are looked for again at the end, and are no reason not to watch.
    execution = replace(execution, added=())
    if seconds and execution.is_whole:
        events.doing(f"{some(sorted(watched(execution)))} is no longer held: watching it for {seconds:g} s")
        execution = guard(reader, execution, seconds, clock)
    execution = with_added_partitions(reader, execution, file.receipt)
    file.record(execution)
    return execution
