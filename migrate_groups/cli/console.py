"""Print on stdout and stderr, ask the user, and load and save snapshots. Data goes to stdout, messages to stderr."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from migrate_groups.cli import event_log
from migrate_groups.cli.json_output import print_bytes, print_document
from migrate_groups.text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.show.result import Result
    from migrate_groups.snapshots.snapshot import SnapshotTable


speaker: ContextVar[str] = ContextVar("speaker", default="")
"""What each message on stderr begins with: in a fleet, the group that it is about."""


def talk(*lines: RenderableType | Result) -> None:
    """Print messages and results on stderr, each argument on a new line."""
    by = speaker.get()
    _print(sys.stderr, tuple(f"{by}{line}" if by and isinstance(line, str) else line for line in lines))


def show(*lines: RenderableType | Result) -> None:
    """Print data on stdout, each argument on a new line; on stderr if stdout is for ``--events``."""
    _print(sys.stderr if event_log.take_stdout() else sys.stdout, lines)


def show_as(output_format: str, result: Result) -> None:
    """Print the result of a command on stdout in the format of ``--format``.

    CSV is only a table, so the rest of the result goes to stderr.
    """
    if output_format == "json":
        print_document(result.document)
    elif output_format == "markdown":
        from migrate_groups.show import markdown

        print_bytes(markdown.draw(result).encode())
    elif output_format == "csv":
        from migrate_groups.show import csv
        from migrate_groups.show.result import Result

        print_bytes(csv.draw(result).encode())
        if result.beside_main:
            talk(Result(parts=result.beside_main))
    else:
        show(result)


def show_written(output_format: str, result: Result) -> None:
    """Print the result of a command that writes a file on stderr, because stdout may be the file.

    With the output format ``json``, print its document on stdout.
    """
    if output_format == "json":
        print_document(result.document)
    talk(result)


def confirm(question: str) -> bool:
    """Ask a yes-or-no question on stderr, and return True for yes. Ctrl-C and Ctrl-D raise `KeyboardInterrupt`."""
    try:
        return typer.confirm(one_line(question), err=True)
    except typer.Abort:
        sys.stderr.write("\n")  # ends the line of the question
        raise KeyboardInterrupt from None


def load_table(path: Path) -> SnapshotTable:
    """Return the snapshot in a file, or on stdin if ``path`` is ``-``.

    Raises `InvalidInput` if the snapshot can't be read or is not valid.
    """
    from migrate_groups.files.snapshots import any_format as tables

    return tables.load(path, stream=sys.stdin.buffer if str(path) == "-" else None)


def check_output(path: Path, *, force: bool, also: str = "") -> None:
    """Check that a snapshot can be written to ``path``. ``-`` means stdout, and is always allowed.

    force: the file may exist. also: another extension that is allowed. Raises `UsageError` if the extension is not .csv
    or .parquet, and `InvalidInput` if the file can't be written.
    """
    if str(path) == "-":
        return
    from migrate_groups.files.safe_write import check_writable
    from migrate_groups.files.snapshots import any_format as tables

    if path.suffix.lower() != also:
        tables.check_extension(path)
    check_writable(path, replace=force)


def save_table(snapshot: SnapshotTable, path: Path, *, force: bool) -> None:
    """Write the snapshot to a CSV or Parquet file, or as CSV to stdout if ``path`` is ``-``.

    force: replace an existing file. Raises `UsageError` for another file extension; `InvalidInput` if the file can't be
    written, or exists and ``force`` is false.
    """
    from migrate_groups.files.snapshots import any_format as tables

    if str(path) == "-":
        print_bytes(tables.to_csv(snapshot))
    else:
        tables.save(snapshot, path, replace=force)


def write_pages(folder: Path, complete: str, pages: Mapping[str, str]) -> None:
    """Write a command's pages, by file name, to a folder that has complete results already.

    complete: names these results. If a page can't be written, stderr says that they stay.
    """
    from migrate_groups.files.safe_write import write_whole

    try:
        for name, page in pages.items():
            content = page.encode()
            write_whole(folder / name, lambda file, content=content: file.write(content))  # type: ignore[misc]
    except BaseException:
        talk(f"{complete} written to {folder}: they are complete, and stay")
        raise


def _print(stream: TextIO, shown: tuple[RenderableType | Result, ...]) -> None:
    from rich.console import Console

    from migrate_groups.show import terminal_text
    from migrate_groups.show.result import Result

    # Rich must not take text for markup, and a line must stay one line, because a group may be named app[prod], or have
    # a newline in its name.
    lines: list[RenderableType] = []
    for each in shown:
        if isinstance(each, Result):
            lines += terminal_text.draw(each)
        else:
            lines.append(terminal_text.cell(each) if isinstance(each, str) else each)
    # A long line is left for the terminal to wrap (soft_wrap), because Rich would put a line break into an id.
    if stream.isatty():
        Console(file=stream, highlight=False, soft_wrap=True).print(*lines, sep="\n")
        return
    plain = Console(file=io.StringIO(), highlight=False, color_system=None, soft_wrap=True)
    plain.print(*lines, sep="\n")
    # Trailing spaces are removed, because a pull request would show them as changes.
    stream.write("".join(f"{line.rstrip()}\n" for line in plain.file.getvalue().splitlines()))  # type: ignore[attr-defined]
    stream.flush()


def warn_of_hidden_groups(reader: GroupReader) -> None:
    """Warn on stderr if the client's principal may lack Describe on some groups.

    Kafka leaves such groups out of its answers without an error: docs/kafka-behaviour.md#what-a-principal-may-not-see.
    """
    from migrate_groups.planning.checks.permission import ANY_GROUP, hidden

    # No application uses the group name ANY_GROUP, so only a permission on all groups includes it.
    if hidden(reader.permissions([ANY_GROUP])):
        talk(f"warning: {reader.principal} may not describe every group: one that is hidden from it is left out here")


def warn_of_hidden_topics(reader: GroupReader) -> bool:
    """Warn on stderr if the client's principal may lack Describe on some topics, and return whether it may.

    Kafka leaves such topics out of its answers without an error: docs/kafka-behaviour.md#what-a-principal-may-not-see.
    """
    from migrate_groups.migration.reading.hints import may_hide_topics

    if is_hidden := may_hide_topics(reader):
        talk(f"warning: {reader.principal} may not describe every topic: one that is hidden from it is left out here")
    return is_hidden
