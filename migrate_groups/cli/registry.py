"""The list of commands, by section of ``--help``, each with its exit codes."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, NoReturn, cast, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from migrate_groups import __version__
from migrate_groups.cli import environment, event_log, json_output, typed_command, usage_errors
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.options import APPLICATIONS, REVIEW, SAFETY
from migrate_groups.cli.target_cluster import Copies, TargetCluster
from migrate_groups.cli.write_options import AppliedOptions, GivenOptions

_EXIT_CODES = {
    0: "done",
    1: "an unexpected failure: please report it",
    2: "an option, a file or the spec is wrong; nothing was written",
    3: "refused by a check, a group does not exist, the wait ran out, or the answer was no; nothing was written",
    4: "the write is not complete or not confirmed, or a group that must have stopped still consumes: see the error "
    "and the receipt",
    5: "the cluster did not answer, or refused the login or a permission",
    6: "records were skipped or processed twice, or may have been",
    7: "undetermined: the evidence is not enough for a verdict",
    10: "with --dry-run --detailed-exitcode: there are offsets to write",
    130: "interrupted by Ctrl-C, SIGTERM or SIGHUP",
}
_OF_COMMAND = {
    ("migrate", 4): "the write is not complete or not confirmed, a group that must have stopped still consumes, or "
    "--start-command failed: see the error and the receipt",
    ("doctor", 4): "a step of the trial failed, or something that it made could not be deleted: see the error",
    ("delete-group", 4): "a group was not deleted, or it is not known whether it was: see the error",
}
"""Exit codes that mean something else, or something more, at one command."""
_ANY = (1, 130)
"""The exit codes with which every command can end."""
_BUNDLES: Mapping[Any, str] = {
    GivenOptions: "Write",
    AppliedOptions: "Write",
    Connection: "Cluster",
    TargetCluster: "Another cluster",
    Copies: "Another cluster",
}
"""The classes whose fields are options of several commands, each with the title of these options in the help."""
_TITLES = ("Arguments", "Options", REVIEW, APPLICATIONS, "Write", SAFETY, "Another cluster", "Cluster")
"""The titles of arguments and options in the help of a command, in their order."""
_READS, _WRITES = (0, 2, 3, 5), (0, 2, 3, 4, 5)


class Command(NamedTuple):
    """A command and its exit codes. function: ``module.function`` in ``cli/commands``, which runs the command.

    own_exit_codes: without those with which every command can end.
    """

    function: str
    own_exit_codes: tuple[int, ...]

    @property
    def exit_codes(self) -> tuple[int, ...]:
        """The exit codes with which the command can end, sorted."""
        return tuple(sorted((*self.own_exit_codes, *_ANY)))

    def load(self) -> Callable[..., None]:
        """Import the command's module, and return its function."""
        module, _, name = self.function.partition(".")
        return cast("Callable[..., None]", getattr(import_module(f"migrate_groups.cli.commands.{module}"), name))


GROUPS: Mapping[str, Mapping[str, Command]] = {
    "Look": {
        "list": Command("list_groups.list_groups", (0, 2, 5)),
        "describe": Command("describe.describe", _READS),
        "snapshot": Command("snapshot.snapshot", (*_READS, 7)),
        "history": Command("history.history", (0, 2, 3, 5, 7)),
        "advise": Command("advise.advise", (0, 2, 3, 5, 7)),
        "doctor": Command("doctor.doctor", (*_WRITES, 6)),
    },
    "Prepare": {
        "filter": Command("filter.filter_rows", (0, 2)),
        "split": Command("split.split", (0, 2)),
        "rewind": Command("rewind.rewind", _READS),
        "export": Command("export.export", (0, 2)),
    },
    "Cut over": {
        "verify": Command("verify.verify", _READS),
        "apply": Command("apply.apply", (*_WRITES, 10)),
        "migrate": Command("migrate.migrate", (*_WRITES, 10)),
        "watch": Command("watch.watch", _READS),
    },
    "Undo and clean up": {
        "status": Command("status.status", _READS),
        "rollback": Command("ways_back.rollback", _WRITES),
        "hand-back": Command("ways_back.hand_back", _WRITES),
        "delete-offsets": Command("ways_back.delete_offsets", _WRITES),
        "delete-group": Command("delete_group.delete_groups", _WRITES),
    },
    "Prove": {
        "compare": Command("compare.compare", (0, 2, 3, 5, 6, 7)),
        "reconcile": Command("reconcile.reconcile", (0, 2, 3, 6, 7)),
        "audit": Command("audit.audit", (0, 2, 3, 5, 6, 7)),
    },
    "Try": {
        "sandbox": Command("sandbox.sandbox", (0, 2, 5)),
        "demo": Command("demo.demo", (0, 2, 5, 6)),
    },
}
COMMANDS: Mapping[str, Command] = {name: command for group in GROUPS.values() for name, command in group.items()}


def command_line(called: Iterable[str] = ()) -> typer.Typer:
    """Return the Typer app with the commands that ``called`` names; with all commands if it names none."""
    app = typer.Typer(
        name="migrate-groups",
        cls=_Groups,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # because Rich's help doubles the time of --help
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback()(_main)
    for name in [name for name in called if name in COMMANDS] or COMMANDS:  # each command takes Typer 2 ms
        app.command(name, cls=_Command)(_with_options(COMMANDS[name].load()))
    return app


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with one parameter for each command-line option, as Typer needs it.

    A parameter whose type is a bundle of options (`_BUNDLES`) is replaced by one parameter for each field of this type.
    """
    signature = inspect.signature(command, eval_str=True)
    bundles = {each.name: each.annotation for each in signature.parameters.values() if each.annotation in _BUNDLES}
    if not bundles:
        return command
    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=bundle._field_defaults[name], annotation=annotation
        )
        for bundle in bundles.values()
        for name, annotation in get_type_hints(bundle, include_extras=True).items()
    ]

    @wraps(command)
    def with_options(**given: object) -> None:
        made = {name: bundle(**{each: given.pop(each) for each in bundle._fields}) for name, bundle in bundles.items()}
        command(**given, **made)

    own = [each for each in signature.parameters.values() if each.name not in bundles]
    with_options.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in (*own, *options)}
    return with_options


class _Command(TyperCommand):
    """A Typer command. Its help has sections for options that several commands have, and ends with the exit codes."""

    allow_extra_args = True  # so that `parse_args` says what is wrong with them

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse the command line. Store which options come from environment variables, and whether to print JSON.

        Raises `UsageError` if there are more arguments than the command takes.
        """
        json_output.awaited.set("--format=json" in args or ("--format", "json") in pairwise(args))
        super().parse_args(ctx, args)
        json_output.awaited.set(ctx.params.get("output_format") == "json")
        sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
        environment.from_variables.set(
            frozenset(name for name, source in sources.items() if source and source.name == "ENVIRONMENT")
        )
        given = {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}
        typed_command.typed.set(_typed(str(self.name), [each for each in self.params if each.name in given], ctx))
        if ctx.args and not ctx.resilient_parsing:
            raise usage_errors.unexpected(str(self.name), ctx.args)
        event_log.begin(str(self.name), ctx.params.get("events"), ctx.params.get("output_format"))
        return ctx.args

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the arguments, options and exit codes into the help of the command."""
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in _TITLES}
        titles = {field: title for bundle, title in _BUNDLES.items() for field in bundle._fields}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                argument = each.param_type_name == "argument"
                panel = getattr(each, "rich_help_panel", None) or titles.get(str(each.name), "Options")
                title = "Arguments" if argument else panel
                name, text = record
                # Typer puts a default that is given as a text (show_default) in parentheses.
                text = re.sub(r"default: \((.*)\)\]", r"default: \1]", text)
                sections[title].append((name, text))
        name = str(self.name)
        meanings = {code: _OF_COMMAND.get((name, code), _EXIT_CODES[code]) for code in COMMANDS[name].exit_codes}
        sections["Exit codes"] = [(str(code), meaning) for code, meaning in meanings.items()]
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _typed(name: str, given: Iterable[Any], ctx: typer.Context) -> typed_command.Typed:
    """Return the command as it was typed. given: its arguments and options that were on the command line."""
    arguments: list[str] = []
    options: dict[str, list[str]] = {}
    for each in given:
        value = ctx.params[each.name]
        values = [str(one) for one in (value if isinstance(value, list | tuple) else [value])]
        if each.param_type_name == "argument":
            arguments += values
        else:
            option = next(one for one in each.opts if one.startswith("--"))
            options[each.name] = [option] if each.is_flag else [word for one in values for word in (option, one)]
    return typed_command.Typed(name, arguments, options)


class _Groups(TyperGroup):
    """The top-level command. Its help lists the commands by section, and ends with all exit codes."""

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run a command and exit. Raises `UsageError` in place of Typer's own errors."""
        try:
            sys.exit(super().main(*args, **options | {"standalone_mode": False}) or 0)
        except usage_errors.TyperError as error:
            raise usage_errors.in_our_words(error) from None

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse the options before the command. Without any argument, print the help and exit with 2."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        """Return the command that was called. Raises `UsageError` if it does not exist."""
        if args[0] not in self.commands and not ctx.resilient_parsing:
            raise usage_errors.unknown_command(args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the commands, by section, and then the exit codes into the help."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(100)) for name in commands])
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in _EXIT_CODES.items()])


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"migrate-groups {__version__}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Migrate Kafka consumer groups: no record skipped, none processed twice.

    A duration is a number with ms, s, m, h, d or w, such as 30s or 10m.
    """
