"""The result of ``status``: what a run has done, and what each command may do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.run_status import Next, RunStatus, TopicLag
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.run_states import Verb
from migrate_groups.show.documents import Document, of_row, row_of
from migrate_groups.show.groups import GROUP, LAG, MEMBERS
from migrate_groups.show.outage import outage_in_words
from migrate_groups.show.result import COUNT, NAME, OFFSET, SECOND, TEXT, WORD, Column, Line, Result, Table, within
from migrate_groups.text import counted, some

_WRITES: list[Column[Execution]] = [
    Column("WRITE", OFFSET, lambda write: write.number, "number"),
    Column("KIND", WORD, lambda write: write.verb, "verb"),
    Column("STARTED", SECOND, lambda write: write.started_at, "started_at", datetime),
    Column("PARTITIONS", COUNT, lambda write: len(write.changes), "partitions"),
    Column("OUTCOMES", TEXT, lambda write: _outcomes(write), "outcomes"),
    Column("BY", NAME, lambda write: write.by.operator or None, "operator", str | None),
    Column("", NAME, lambda write: write.by.version or None, "version", str | None),
    Column("REFERENCE", TEXT, lambda write: write.by.reference or None, "reference", str | None),
]
_LAGS: list[Column[TopicLag]] = [
    Column("GROUP", NAME, lambda lag: lag.group, "group"),
    Column("TOPIC", NAME, lambda lag: lag.topic, "topic"),
    Column("LAG-AT-STOP", OFFSET, lambda lag: lag.before, "lag_at_stop", int | None),
    Column("LAG", OFFSET, lambda lag: lag.now, "lag", int | None),
]


class _Command(NamedTuple):
    """A command line, and what it may do now."""

    line: str
    next: Next


_COMMANDS: list[Column[_Command]] = [
    Column("COMMAND", TEXT, lambda row: row.line, "command"),
    Column("NOW", WORD, lambda row: row.next.answer, "answer"),
    Column("REASON", TEXT, lambda row: row.next.reason, "reason"),
]
_GROUPS = [*GROUP, MEMBERS, LAG]
_NOTHING = "nothing handed over"


@row_of(_WRITES)
class StatusWrite:
    """A write of the run.

    outcomes: how many partitions have which outcome. operator: the user and host that wrote. version: of the tool.
    reference: what the user passed as ``--reference``. Each of these is null if there is none.
    """


@row_of(_GROUPS)
class StatusGroup:
    """A source or target group that exists. members, lag: null if not known."""


@row_of(_LAGS)
class StatusLag:
    """The lag of a target group's topic: at the stop of the source group, and now; null if not known."""


@row_of(_COMMANDS)
class StatusCommand:
    """A command on the run.

    answer: ``allowed``, ``refused``, ``done`` or ``not known``. reason: why, or what the command would do.
    """


class StatusDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/status"):
    """What a run has done, what the brokers say now, and what each command may do next.

    missing: groups of the run that do not exist. outage: the measured outage of the last hand-over, as a sentence; or
    empty. next: what to do, as a sentence or a command.
    """

    writes: Sequence[StatusWrite]
    groups: Sequence[StatusGroup]
    missing: Sequence[str]
    lags: Sequence[StatusLag]
    commands: Sequence[StatusCommand]
    outage: str
    next: str


def status(found: RunStatus, path: Path, lines: Mapping[Verb, str]) -> Result:
    """Return the status of a run.

    path: the receipt or run directory. lines: by verb, the command line to type.
    """
    commands = [_Command(lines[each.verb], each) for each in found.commands]
    writes, last = found.receipt.executions, found.receipt.last_hand_over
    outage = outage_in_words(last) if last else ""
    document = StatusDocument(
        writes=[of_row(StatusWrite, _WRITES, each) for each in writes],
        groups=[of_row(StatusGroup, _GROUPS, each) for each in found.groups],
        missing=found.missing,
        lags=[of_row(StatusLag, _LAGS, each) for each in found.lags],
        commands=[of_row(StatusCommand, _COMMANDS, each) for each in commands],
        outage=outage,
        next=found.next,
    )
    commands_table = Table(columns=_COMMANDS, rows=commands, thing="command")
    missing = [Line(f"does not exist: {some(found.missing)}")] if found.missing else []
    return Result(
        document=document,
        kind="status",
        title=f"Run {path}",
        whole=commands_table,
        parts=[
            Table(columns=_WRITES, rows=writes, thing="write"),
            Table(columns=_GROUPS, rows=found.groups, thing="group"),
            *missing,
            Table(columns=_LAGS, rows=found.lags, thing="topic"),
            commands_table,
            *([Line(outage)] if outage else []),
            Line(f"next: {found.next}"),
        ],
    )


class _Run(NamedTuple):
    """A run of a fleet, and its status, or why it is not known."""

    name: str
    found: RunStatus | MigrateGroupsError


def _known(row: _Run) -> RunStatus | None:
    return row.found if isinstance(row.found, RunStatus) else None


_RUNS: list[Column[_Run]] = [
    Column("RUN", NAME, lambda row: row.name, "run"),
    *within(
        _known,
        [
            Column("FROM", TEXT, lambda found: some(found.receipt.source_groups), "source_groups", str | None),
            Column(
                "TO",
                TEXT,
                lambda found: some({group for group, *_ in found.receipt.partition_states}),
                "target_groups",
                str | None,
            ),
            Column("STATE", TEXT, lambda found: _states(found), "state", str | None),
            Column("NEXT", TEXT, lambda found: found.next, "next", str | None),
        ],
    ),
    Column("ERROR", TEXT, lambda row: None if _known(row) else str(row.found), "error", str | None),
]


@row_of(_RUNS)
class FleetRun:
    """A run of a fleet.

    state: how many partitions are in which state. next: what to do, as a sentence or a command. error: why the status
    is not known; null if it is.
    """


class FleetStatusDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/fleet-status"):
    """The status of each run in the folder of a fleet."""

    runs: Sequence[FleetRun]


def fleet_status(folder: Path, runs: Mapping[str, RunStatus | MigrateGroupsError | None]) -> Result:
    """Return a table with the status of each run of a fleet, by the name of its run directory."""
    rows = [_Run(name, found) for name, found in runs.items() if found is not None]
    table = Table(columns=_RUNS, rows=rows, thing="run")
    kinds = Counter(_kind(row.found) for row in rows)
    totals = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return Result(
        document=FleetStatusDocument(runs=[of_row(FleetRun, _RUNS, row) for row in rows]),
        kind="status",
        title=f"Fleet {folder}",
        parts=[table, Line(f"{counted(len(rows), 'run')}: {totals}")],
    )


def _kind(found: RunStatus | MigrateGroupsError) -> str:
    """Return the states of a run's partitions, such as ``handed over``."""
    if isinstance(found, MigrateGroupsError):
        return "not known"
    return " and ".join(sorted({str(each.state) for each in found.receipt.partition_states.values()})) or _NOTHING


def _states(found: RunStatus) -> str:
    states = Counter(partition.state for partition in found.receipt.partition_states.values())
    return ", ".join(f"{count:,} {state}" for state, count in states.items()) or _NOTHING


def _outcomes(write: Execution) -> str:
    return ", ".join(f"{number:,} {outcome}" for outcome, number in write.count().items() if number)
