"""The command that the user typed, to name the one to type next."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from contextvars import ContextVar
from typing import NamedTuple

from migrate_groups.text import one_line

_OF_A_DRY_RUN = frozenset({"dry_run", "plan_out", "output_format", "detailed_exitcode", "force", "verbose", "yes"})
# Their arguments may be secrets, and messages reach logs.
_COMMANDS = {name: f"--{name.replace('_', '-')}" for name in ("stop_command", "start_command", "restart_command")}
CONNECTION = frozenset({"bootstrap_server", "command_config", "properties", "timeout"})
"""The parameters that say which cluster."""
CLUSTERS = CONNECTION | {"to_bootstrap_server", "to_command_config"}
"""The parameters that say which clusters."""


class Typed(NamedTuple):
    """A command as it was typed: its name, its arguments, and the words of its options by the name of the parameter."""

    name: str
    arguments: Sequence[str]
    options: Mapping[str, Sequence[str]]


typed: ContextVar[Typed | None] = ContextVar("typed", default=None)
"""The command that is running; None in a test that calls a function of a command."""


def without_dry_run(*more: str, name: str = "", only: Collection[str] | None = None, to: Collection[str] = ()) -> str:
    """Return the command that writes what this dry run has shown, to type into a shell.

    more: further words; the option with which they begin replaces the typed one. name: another command. only: the
    parameters whose options it has; None: all that do not belong to a dry run. to: other arguments.
    """
    now = typed.get() or Typed("", (), {})
    kept = [
        option
        for option, words in now.options.items()
        if option not in _OF_A_DRY_RUN and (only is None or option in only) and words[0] not in more
    ]
    words = [word for option in kept if option not in _COMMANDS for word in now.options[option]]
    arguments = [*to] or [*now.arguments]
    if any(each.startswith("-") and each != "-" for each in arguments):
        # Without the --, the command would take such an argument for an option.
        line = [*words, *more, "--", *arguments]
    else:
        line = [*arguments, *words, *more]
    commands = [_COMMANDS[option] for option in kept if option in _COMMANDS]
    also = f", with {' and '.join(commands)} as now" if commands else ""
    return " ".join(["migrate-groups", name or now.name, *map(_quoted, line)]) + also


def _quoted(word: str) -> str:
    """Return a word for a shell, on one line: a name may have line breaks, which would begin another line of a log."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = one_line(word.replace("\\", "\\\\")).replace("'", "\\'")
    return f"$'{escaped}'"
