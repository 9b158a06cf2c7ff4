"""The list of commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

import typer

from migrate_groups import __version__
from migrate_groups.cli.commands import apply as write
from migrate_groups.cli.commands import audit, look, play, rewind, shape, ways_back
from migrate_groups.cli.commands import migrate as cutover
from migrate_groups.cli.commands import reconcile as prove
from migrate_groups.cli.commands import watch as replay

_COMMANDS: Mapping[str, Callable[..., None]] = {
    "snapshot": look.snapshot,
    "describe": look.describe,
    "filter": shape.filter_,
    "split": shape.split,
    "rewind": rewind.rewind,
    "export": shape.export,
    "verify": look.verify,
    "apply": write.apply,
    "migrate": cutover.migrate,
    "rollback": ways_back.rollback,
    "hand-back": ways_back.hand_back,
    "delete-offsets": ways_back.delete_offsets,
    "watch": replay.watch,
    "delete": replay.delete,
    "reconcile": prove.reconcile,
    "audit": audit.audit,
    "sandbox": play.sandbox,
    "demo": play.demo,
}


def command_line(called: Iterable[str] = ()) -> typer.Typer:
    """Return the command line with the commands named in ``called``, or with all commands if it names none."""
    app = typer.Typer(
        name="migrate-groups",
        help="Migrate Kafka consumer groups: no record skipped, none processed twice.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode=None,  # because Rich's help doubles the time of --help
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_main)
    for name in [name for name in called if name in _COMMANDS] or _COMMANDS:  # each command takes Typer 2 ms
        app.command(name)(_COMMANDS[name])
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"migrate-groups {__version__}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Migrate Kafka consumer groups: no record skipped, none processed twice."""
