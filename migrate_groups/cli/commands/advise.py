"""The command that says which groups several applications share, and proposes a split: advise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show_as, talk, warn_of_hidden_groups, warn_of_hidden_topics, write_pages
from migrate_groups.cli.json_output import check_stdout_is_free
from migrate_groups.cli.progress import Reporter
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.errors import UsageError
from migrate_groups.snapshots.times import parse_span
from migrate_groups.text import shell_command

if TYPE_CHECKING:
    from migrate_groups.migration.offsets_topic.costs import CostsRequest


def advise(
    groups: options.Groups = None,
    group: options.GroupOption = None,
    *,
    spec_for: Annotated[
        str | None,
        typer.Option(
            "--spec-for",
            metavar="GROUP",
            help="Write a spec for migrate that gives each application of this group a group of its own.",
        ),
    ] = None,
    application: Annotated[
        list[str] | None,
        typer.Option(
            "--application",
            metavar="NAME",
            help="With --spec-for: only this application gets a group, the others stay; may be repeated.",
            show_default="all",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="With --spec-for: the .toml file to write, or - for stdout.",
            show_default="-",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="With --log: a new folder for tables, advice.md and advice.html."),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="DIR",
            help="Also say what sharing costs, from the log of __consumer_offsets, with Spark. The folder for the "
            "copied log; a later run with the same folder adds what is new to it.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="DURATION",
            help="With --log: only records of this last time.",
            show_default="all",
        ),
    ] = None,
    after: Annotated[
        Path | None,
        typer.Option(
            "--after",
            metavar="RUN",
            help="With --log: compare what was predicted with what the log shows since this split, of migrate.",
        ),
    ] = None,
    output_format: options.TableFormat = "table",
    connection: Connection,
) -> None:
    """Say which groups several applications share, and what that costs.

    An application is a set of members that subscribe to the same topics. Without GROUP it looks at all groups. Without
    --log it measures no cost, and needs no Java. With --log it also says how long applications stood still for others,
    and needs Java 17 or later.

    Example: migrate-groups advise --spec-for big-group -o split.toml
    """
    if spec_for is not None:
        if groups or group or log or after or report:
            raise UsageError("--spec-for names the one group to look at: name no other, no --log, --after or --report")
        _write_spec(connection, spec_for, application or [], output or Path("-"), output_format)
        return
    if application or output is not None:
        raise UsageError("--application and -o go with --spec-for; with --log, --report names the folder to write")
    named = options.all_groups(groups, group) if groups or group else None
    if after is not None and (named is not None or log is None):
        raise UsageError("--after has the names of the groups: name none, and pass --log DIR")
    if log is not None:
        if report is None:
            raise UsageError("--log needs --report DIR: a new folder for tables and pages")
        from migrate_groups.migration.offsets_topic.costs import CostsRequest

        asked = CostsRequest(named, log, report, None if since is None else parse_span(since, "--since"))
        require_spark()
        if after is None:
            _measure(connection, asked, output_format)
        else:
            _compare_after(connection, asked, after, output_format)
        return
    if report is not None or since is not None:
        raise UsageError("--report and --since go with --log: pass both")
    with connection.open_reader() as reader:
        from migrate_groups.migration.advise import shared_groups
        from migrate_groups.show import advice as views

        found = shared_groups.advise(reader, SystemClock(), named or ())
        if named is None:
            warn_of_hidden_groups(reader)
        warn_of_hidden_topics(reader)
    show_as(output_format, views.result(found, whole=named is not None))


def _measure(connection: Connection, asked: CostsRequest, output_format: str) -> None:
    from migrate_groups.migration.offsets_topic.costs import measure
    from migrate_groups.show import markdown
    from migrate_groups.show.costs import page, result

    found = measure(asked, connection.open_offsets_topic, spark_here, SystemClock(), Reporter())
    shown = result(found.costs, found.groups)
    drawn = page(found.costs, found.groups, found.lag, found.suggestions)
    write_pages(asked.out, "tables", {"advice.md": markdown.draw(shown), "advice.html": drawn})
    show_as(output_format, shown)
    talk(f"tables, advice.md and advice.html written to {asked.out}")


def _compare_after(connection: Connection, asked: CostsRequest, run_dir: Path, output_format: str) -> None:
    from migrate_groups.migration.offsets_topic.costs import compare_after
    from migrate_groups.show.after_split import page, result

    open_log = connection.open_offsets_topic
    shown = result(compare_after(asked, run_dir, open_log, spark_here, SystemClock(), Reporter()))
    write_pages(asked.out, "tables", {"after.html": page(shown)})
    show_as(output_format, shown)
    talk(f"tables and after.html written to {asked.out}")


def _write_spec(connection: Connection, group: str, applications: list[str], output: Path, output_format: str) -> None:
    """Write a split spec with a new group for applications of ``group``. output: a file, or ``-`` for stdout."""
    check_stdout_is_free(output, output_format)
    from migrate_groups.files.safe_write import check_writable, write_whole

    if str(output) != "-":
        check_writable(output, replace=False)
    with connection.open_reader() as reader:
        from migrate_groups.migration.advise import shared_groups
        from migrate_groups.migration.advise.propose import propose
        from migrate_groups.show import advice as views

        found = shared_groups.advise(reader, SystemClock(), options.all_groups([group], None))
        proposal = propose(reader, found[0], applications)
        warn_of_hidden_topics(reader)
    text = proposal.to_toml()
    if str(output) == "-":
        sys.stdout.write(text)
        return
    write_whole(output, lambda file: file.write(text.encode()))
    if output_format != "table":
        show_as(output_format, views.result(found))
    talk(f"{output} written; next: migrate-groups {shell_command('migrate', [str(output)], '--dry-run')}")
