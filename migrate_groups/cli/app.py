"""The command line's entry: the list of commands, and errors turned into one line and an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

import typer

from migrate_groups import __version__
from migrate_groups.cli import audit, cutover, look, play, prove, replay, rewind, shape, ways_back, write
from migrate_groups.errors import Interrupted, MigrateGroupsError
from migrate_groups.text import one_line

# Garbage is looked for less often: of a cut-over of 10,000 partitions that took a fifth (measured).
_COLLECTED = (1_000_000, 20, 100)

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


def command_line(names: Iterable[str] = _COMMANDS) -> typer.Typer:
    """Return the command line with these commands."""
    app = typer.Typer(
        name="migrate-groups",
        help="Migrate Kafka consumer groups: no record skipped, none processed twice.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode=None,  # Rich's help costs as much again as everything else that --help does
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_main)
    for name in names:
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


def main() -> None:
    """Run a command. An error is one line on stderr and its own exit code; only a bug shows a traceback (exit 1)."""
    gc.set_threshold(*_COLLECTED)
    called = [name for name in sys.argv[1:2] if name in _COMMANDS]  # Typer takes 2 ms to look at each (measured)
    try:
        command_line(called or _COMMANDS)()
    except MigrateGroupsError as error:
        sys.stderr.write(f"error: {one_line(str(error))}\n")
        sys.exit(error.exit_code)
    except SystemExit as end:
        if end.code == Interrupted.exit_code:  # what Typer makes of Ctrl-C, without a word
            sys.stderr.write("interrupted; nothing was written to the cluster\n")
        raise
    except BrokenPipeError:
        # The reader of a pipe has left; Python would complain once more while it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
