"""The options of a write on the command line, which ``apply`` and ``migrate`` share."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import typer

from migrate_groups.cli.options import SAFETY
from migrate_groups.planning.options import OnExisting, OnOutOfRange, OnRemoved, OnUncommitted, SecondClientMode
from migrate_groups.snapshots.times import parse_duration

_OnExisting = Annotated[
    OnExisting | None,
    typer.Option(
        help="If the group to write to already has another committed offset: refuse; replace it by a higher offset "
        "only (forward); or replace it always (overwrite).",
        show_default="refuse",
    ),
]
_IF_UNCOMMITTED = "If the old group has no committed offset for a partition: refuse; start at the log start offset"
_OnUncommitted = Annotated[
    OnUncommitted | None,
    typer.Option(
        help=f"{_IF_UNCOMMITTED} (earliest); start at the log end offset from when a member last consumed the topic "
        "(latest); or hand over nothing (leave).",
        show_default="refuse",
    ),
]
_OnUncommittedOfFile = Annotated[
    OnUncommitted | None,
    typer.Option(
        metavar="<refuse|earliest|leave>",
        help=f"{_IF_UNCOMMITTED} (earliest); or hand over nothing (leave).",
        show_default="refuse",
    ),
]
_OnOutOfRange = Annotated[
    OnOutOfRange | None,
    typer.Option(
        help="If a committed offset is below the log start offset: refuse, or start at the log start offset "
        "(earliest).",
        show_default="refuse",
    ),
]
_OnRemoved = Annotated[
    OnRemoved | None,
    typer.Option(
        help="If a committed offset expired or was deleted after the snapshot: refuse, or hand over the offset of "
        "the snapshot (restore).",
        show_default="refuse",
    ),
]
_AnyKind = Annotated[
    bool, typer.Option("--any-kind", help="Accept groups that look like those of Kafka Streams or of Connect workers.")
]
_Copy = Annotated[
    bool,
    typer.Option(
        "--copy",
        help="Make a copy: the old group keeps its topics, so that both groups process the same records. What other "
        "runs have handed over is then not looked at.",
    ),
]
_SecondClient = Annotated[
    SecondClientMode | None,
    typer.Option(
        rich_help_panel=SAFETY,
        help="Whether confluent-kafka must read the offsets back too (required), should (auto), or is not used (none).",
        show_default="auto",
    ),
]
_Settle = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        rich_help_panel=SAFETY,
        help="How long the old group must neither commit nor change its members before the write.",
        show_default="10s",
    ),
]
_Guard = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        rich_help_panel=SAFETY,
        help="How long the old group is watched after the write.",
        show_default="30s",
    ),
]


class GivenOptions(NamedTuple):
    """The options of a write as given to ``migrate``. A field is None if its option was not given.

    A command that takes this type has one option for each field.
    """

    on_existing: _OnExisting = None
    on_uncommitted: _OnUncommitted = None
    on_out_of_range: _OnOutOfRange = None
    on_removed: _OnRemoved = None
    any_kind: _AnyKind = False
    copy: _Copy = False
    second_client: _SecondClient = None
    settle: _Settle = None
    guard: _Guard = None

    def given(self) -> dict[str, Any]:
        """Return the options that were given on the command line, by the name of their field in `WriteOptions`.

        Durations are in seconds. Raises `UsageError` if a duration is not valid.
        """
        given = {name: value for name, value in self._asdict().items() if value not in (None, False)}
        durations = {name: parse_duration(given[name], f"--{name}") for name in ("settle", "guard") if name in given}
        return given | durations


class AppliedOptions(GivenOptions):
    """The options of a write as given to ``apply``: ``on_uncommitted`` can't be a log end offset."""

    on_uncommitted: _OnUncommittedOfFile
