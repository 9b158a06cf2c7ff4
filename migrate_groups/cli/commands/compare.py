"""The command that compares the offsets of groups on two clusters: compare."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection, TargetConnection
from migrate_groups.cli.console import check_output, save_table, show, talk, warn_of_hidden_topics
from migrate_groups.cli.documents import check_stdout_is_free, print_document
from migrate_groups.cli.landing import new_folder
from migrate_groups.errors import HandOverBroken, Undetermined, UsageError
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.migration.across.compare import Comparison


def compare(
    groups: options.Groups = None,
    group: options.GroupOption = None,
    *,
    to_bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--to-bootstrap-server",
            metavar="HOST:PORT",
            envvar="MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER",
            help="Brokers of the target cluster, separated by commas.",
            show_default="bootstrap.servers of --to-command-config",
        ),
    ] = None,
    to_command_config: Annotated[
        Path | None,
        typer.Option(
            "--to-command-config",
            metavar="FILE",
            envvar="MIGRATE_GROUPS_TO_COMMAND_CONFIG",
            help="A client.properties file for the target cluster.",
        ),
    ] = None,
    rename_topic: Annotated[
        list[str] | None,
        typer.Option(
            "--rename-topic",
            metavar="SOURCE=TARGET",
            help="The name of a topic on the target, such as orders=eu.orders or '*=eu.*'; may be repeated. Without "
            "it: the same name, or the name after a prefix and a dot.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Write the places to a .csv or .parquet file, which apply takes."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="OUT",
            help="A new folder for report.html and places.parquet, which have the status and the evidence of each "
            "partition.",
        ),
    ] = None,
    accept_reread: Annotated[
        int,
        typer.Option(
            "--accept-reread",
            metavar="N",
            min=0,
            help="Write a place that is not exact, too, if the group reads at most N records again from there.",
        ),
    ] = 0,
    max_records: Annotated[
        int,
        typer.Option(
            "--max-records", metavar="N", min=1, help="How many offsets of a partition to read at most on each cluster."
        ),
    ] = 200_000,
    force: options.Force = False,
    output_format: options.Format = "table",
    connection: Connection,
) -> None:
    """Compare the committed offsets of groups on two clusters, where a mirror copies the topics.

    For each partition it finds, by the content of the records, where the group must continue on the target cluster. It
    says how many records would be read again or skipped from the group's committed offset there. It writes nothing to
    either cluster. The mirror must keep the order of each partition, and must neither drop nor alter records.

    Example: migrate-groups compare orders --to-command-config other.properties --bootstrap-server localhost:9092
    """
    wanted = options.all_groups(groups, group)
    if to_bootstrap_server is None and to_command_config is None:
        raise UsageError("no target cluster: pass --to-bootstrap-server host:port or --to-command-config")
    if output is not None:
        check_stdout_is_free(output, output_format)
        check_output(output, force=force)
    elif accept_reread:
        raise UsageError("--accept-reread says what -o writes: pass -o, too")
    # The first connection shows the requests of both.
    target = TargetConnection(to_bootstrap_server, to_command_config, timeout=connection.timeout)
    from migrate_groups.mirrors.names import Rename, TopicNames

    names = TopicNames(tuple(Rename(each) for each in rename_topic or []))
    with new_folder(report) if report else nullcontext():
        with connection.open_side() as here, target.open_side() as there:
            from migrate_groups.migration.across.compare import compare as compared
            from migrate_groups.show import comparison

            found = compared(here, there, wanted, names, SystemClock(), max_records)
            warn_of_hidden_topics(here.groups)
        if report is not None:
            _report(found, report)
    if output_format == "json":
        print_document(comparison.document(found))
    else:
        (talk if str(output) == "-" else show)(comparison.terminal(found))
    if report is not None:
        talk(f"report.html and places.parquet written to {report}")
    if output is not None:
        _save(found, output, accept_reread, force=force)
    if found.off:
        raise HandOverBroken(comparison.conclusion(found))
    if found.untold:
        raise Undetermined(f"{comparison.conclusion(found)}: see the reasons")


def _report(found: Comparison, folder: Path) -> None:
    from migrate_groups.files import places_parquet
    from migrate_groups.files.safe_write import write_whole
    from migrate_groups.show import comparison, comparison_page

    places_parquet.save(comparison.rows(found), folder / "places.parquet")
    write_whole(folder / "report.html", lambda file: file.write(comparison_page.page(found).encode()))


def _save(found: Comparison, output: Path, accept_reread: int, *, force: bool) -> None:
    rows = found.rows(accept_reread)
    save_table(rows, output, force=force)
    left_out = len(found.partitions) - len(rows)
    talk(f"{counted(len(rows), 'place')} written to {output}" + (f", {left_out:,} left out" if left_out else ""))
