"""Print the JSON document of a command with ``--format json``, also if the command fails."""

from __future__ import annotations

import json
import sys
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_groups.errors import MigrateGroupsError, UsageError

if TYPE_CHECKING:
    import msgspec

awaited: ContextVar[bool] = ContextVar("awaited", default=False)
"""Whether the running command was called with ``--format json`` and has not printed its document yet."""


def print_document(document: msgspec.Struct | bytes) -> None:
    """Print the JSON document of a command on stdout. Bytes are printed unchanged."""
    awaited.set(False)
    print_bytes(document if isinstance(document, bytes) else encoded(document))


def print_bytes(content: bytes) -> None:
    """Print bytes on stdout unchanged."""
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def print_error(kind: str, exit_code: int, message: str) -> None:
    """Print the JSON document of a failed command on stdout. kind: the name of the error's class.

    Does nothing without ``--format json``, or if the command has printed its document already.
    """
    if awaited.get():
        from migrate_groups.show.documents import Error, ErrorDocument

        print_document(ErrorDocument(error=Error(kind=kind, exit_code=exit_code, message=message)))


def kind_of(error: MigrateGroupsError) -> str:
    """Return the name of an error's class for a JSON document.

    For a class outside the module ``errors``, return the name of its base class there.
    """
    return next(each.__name__ for each in type(error).__mro__ if each.__module__ == MigrateGroupsError.__module__)


def check_stdout_is_free(output: Path, output_format: str) -> None:
    """Raise `UsageError` if both the output file and the JSON document or CSV are to go to stdout."""
    if str(output) == "-" and output_format != "table":
        raise UsageError(f"-o - and --format {output_format} both write to stdout: name a file with -o")


def encoded(document: msgspec.Struct, *, indent: int | None = 1) -> bytes:
    """Return a document as JSON with a line break at its end. indent: None: on one line."""
    import msgspec

    # Only ASCII, so that no name in it can control a terminal, whatever the encoding of stdout.
    return json.dumps(msgspec.to_builtins(document, enc_hook=_text), indent=indent).encode() + b"\n"


def _text(value: object) -> str:
    """Return a path as text for a JSON document, with bytes that are not UTF-8 escaped.

    Raises `TypeError` if the value is not a path.
    """
    # msgspec calls this function for each value that it can't encode.
    if not isinstance(value, Path):
        raise TypeError(f"{type(value).__name__} is no part of a document")
    return str(value).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
