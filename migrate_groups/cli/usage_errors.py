"""Make the errors for unknown arguments, options and commands. The errors say what to type instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from migrate_groups.errors import UsageError
from migrate_groups.text import did_you_mean, named, shell_command

TyperError: type[Exception] = typer.BadParameter.__bases__[0]
"""The base class of Typer's errors about a command line. Typer does not export it, and its module may change."""

_ELSEWHERE: Mapping[str, str] = {
    "-b": "it is --bootstrap-server here",
    "-F": "it is --command-config here",
    "-X": "it is --property here",
    "--all-groups": "name each group; migrate-groups list shows their names",
    "--command-property": "it is --property here",
    "--consumer-property": "it is --property here",
    "--consumer.config": "it is --command-config here",
    "--all-topics": "leave it out, because a command without --topic takes all topics",
    "--delete": "run migrate-groups delete-group",
    "--delete-offsets": "run migrate-groups delete-offsets --group GROUP --topic TOPIC",
    "--describe": "run migrate-groups describe",
    "--execute": "leave it out, because apply and migrate write without it; --dry-run only shows the plan",
    "--export": "run migrate-groups export",
    "--from-file": "name the file without an option: migrate-groups apply FILE",
    "--list": "run migrate-groups list",
    "--members": "leave it out, because describe shows the members",
    "--offsets": "leave it out, because describe shows the committed offsets",
    "--regex": "name each group; --topic takes globs such as 'payments.*'",
    "--reset-offsets": "run migrate-groups rewind, then pass its file to migrate-groups apply",
    "--state": "leave it out, because describe shows the state",
    "--to-topic": "it is --topic here, or --to GROUP=TOPICS of split",
    "--topic": "name topics in the split spec, or select rows of a file with migrate-groups filter --topic",
    "--to-group": "pass it to apply, which writes the file to the group",
    "--topics": "it is --topic here, once for each topic",
}
"""Options of Kafka's tools and of kcat, with what to type instead in a command that does not have the option."""


def unexpected(command: str, arguments: Sequence[str]) -> UsageError:
    """Return the error for arguments that a command does not take. command: the name of the command."""
    if command == "list":
        return UsageError(f"list takes no GROUP: run migrate-groups {shell_command('describe', arguments)}")
    return UsageError(
        f"{named('unexpected argument', arguments)}: quote a glob, such as 'payments.*', because the shell replaces it "
        "by file names; repeat an option for each of its values"
    )


def in_our_words(error: Any) -> UsageError:
    """Return the `UsageError` for an error of Typer about the command line. Its message is one line."""
    see = f"see {error.ctx.command_path} --help" if error.ctx else "see --help"
    if hasattr(error, "possibilities"):
        return UsageError(f"unknown option {error.option_name}: {_instead(error) or see}")
    message = " ".join(error.format_message().split()).rstrip(".")
    return UsageError(f"{message[:1].lower()}{message[1:]}: {see}")


def unknown_command(name: str, commands: Mapping[str, object]) -> UsageError:
    """Return the error for a command that does not exist. commands: the existing commands by name."""
    return UsageError(f"unknown command {name}: {did_you_mean([name], commands) or 'see migrate-groups --help'}")


def _instead(error: Any) -> str:
    """Return what to type instead of an option that does not exist; empty if there is no advice.

    error: the error of Typer.
    """
    if error.option_name in _ELSEWHERE:
        return _ELSEWHERE[error.option_name]
    if error.ctx.parent is None:
        return "options come after the command, as in migrate-groups describe GROUP --timeout 10s"
    typed, parameters = error.option_name.lstrip("-"), error.ctx.command.params
    for each in parameters:
        if each.param_type_name == "argument" and (each.metavar or "").rstrip(".").lower() == typed.removesuffix("s"):
            return f"{each.metavar} is an argument here: name it without an option"
    options = [name for each in parameters if each.param_type_name == "option" for name in each.opts]
    # The dashes are compared too, so with the usual likeness an option with another name would look similar.
    return did_you_mean([error.option_name], options, 0.75)
