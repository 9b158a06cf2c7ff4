"""The JSON document of one event of a running command, a line of ``--events``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal

from migrate_groups.show.documents import Document

EventName = Literal["planned", "waiting", "stopped", "written", "START", "moved", "done"]


class EventDocument(Document, tag="migrate-groups/event", frozen=True, kw_only=True):
    """An event of a running command.

    - event: what happened; docs/reference/json.md#event says when each event is written.
    - at: when.
    - command: the name of the command.
    - run: the run directory or the receipt; null for a command that has none.
    - source_groups: the groups that hand over, or that must stop.
    - target_groups: the groups that are written to.
    - verdict: of a plan: pass, pending or refuse.
    - reasons: why the plan is refused or pending, or why groups that must stop still run.
    - offsets: the offsets to write, or those that are in place.
    - not_confirmed: the partitions whose offset is not known to be in place.
    - seconds: of a plan, the expected time from the stop to START; of moved, that time as measured; of stopped, how
      long the command has waited.
    - exit_code: of done, the exit code of the command, or of one group's move.
    - error: of done, why it failed.
    """

    event: EventName
    at: datetime
    command: str
    run: Path | None = None
    source_groups: tuple[str, ...] = ()
    target_groups: tuple[str, ...] = ()
    verdict: str | None = None
    reasons: tuple[str, ...] = ()
    offsets: int | None = None
    not_confirmed: int | None = None
    seconds: float | None = None
    exit_code: int | None = None
    error: str | None = None
