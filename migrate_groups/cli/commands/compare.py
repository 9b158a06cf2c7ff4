"""The command that compares the offsets of groups on two clusters: compare."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import check_output, save_table, show_as, talk, warn_of_hidden_topics
from migrate_groups.cli.json_output import check_stdout_is_free
from migrate_groups.cli.target_cluster import Copies, TargetCluster
from migrate_groups.errors import HandOverBroken, Undetermined, UsageError
from migrate_groups.files.safe_write import new_folder
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.migration.across.compare import Comparison


def compare(
    groups: options.Groups = None,
    group: options.GroupOption = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Write the translated offsets to a .csv or .parquet file, which apply takes, or to a .json file, "
            "which migrate --from takes if the source cluster is lost. With .json, the exit code is 0 if the file has "
            "an offset for each partition.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="DIR",
            help="A new folder for report.html and translated_offsets.parquet, which have the status and the evidence "
            "of each partition.",
        ),
    ] = None,
    force: options.Force = False,
    output_format: options.TableFormat = "table",
    target: TargetCluster,
    copies: Copies,
    connection: Connection,
) -> None:
    """Compare the committed offsets of groups on two clusters, where a mirror copies the topics.

    For each partition it finds, by the content of the records, where the group must continue on the target cluster. It
    says how many records would be read again or skipped from the group's committed offset there. It writes nothing to
    either cluster. The mirror must keep the order of each partition, and must neither drop nor alter records.

    Example: migrate-groups compare orders --to-command-config other.properties --bootstrap-server localhost:9092
    """
    wanted = options.all_groups(groups, group)
    if not target.is_named:
        raise UsageError("no target cluster: pass --to-bootstrap-server host:port or --to-command-config")
    if output is not None:
        check_stdout_is_free(output, output_format)
        check_output(output, force=force, also=".json")
    elif copies.accept_reread:
        raise UsageError("--accept-reread says what -o writes: pass -o, too")
    with new_folder(report, talk) if report else nullcontext():
        with copies.open_mirror(connection, target) as mirror:
            from migrate_groups.migration.across.compare import compare as compared
            from migrate_groups.show import comparison

            found = compared(mirror, wanted, SystemClock(), copies.trust_copy or ())
            warn_of_hidden_topics(mirror.source.groups)
        if report is not None:
            _report(found, report)
    if str(output) == "-":
        talk(comparison.result(found))
    else:
        show_as(output_format, comparison.result(found))
    if report is not None:
        talk(f"report.html and translated_offsets.parquet written to {report}")
    if output is not None:
        _save(found, output, copies.accept_reread, force=force)
    if not _is_kept(output):
        _conclude(found)


def _conclude(found: Comparison) -> None:
    from migrate_groups.show import comparison

    if found.off:
        raise HandOverBroken(comparison.conclusion(found))
    if found.unknown:
        raise Undetermined(f"{comparison.conclusion(found)}: see the reasons")


def _report(found: Comparison, folder: Path) -> None:
    from migrate_groups.files import translated_offsets_parquet
    from migrate_groups.files.safe_write import write_whole
    from migrate_groups.show import comparison

    translated_offsets_parquet.save(comparison.rows(found), folder / "translated_offsets.parquet")
    write_whole(folder / "report.html", lambda file: file.write(comparison.page(found).encode()))


def _is_kept(output: Path | None) -> bool:
    return output is not None and output.suffix.lower() == ".json"


def _keep(found: Comparison, output: Path, accept_reread: int) -> None:
    """Write the translated offsets, unless a partition would lose the one that the file has."""
    from migrate_groups.files import kept_offsets_json
    from migrate_groups.files.read import status

    kept = found.kept
    starts, wanted = kept.starts(accept_reread), {(group, each.source) for group, each in found.partitions}
    earlier = kept_offsets_json.load(output).starts(accept_reread) if status(output) else frozenset()
    if lost := earlier - starts:
        raise Undetermined(
            f"{output} is left as it was: no offset is known any more for "
            f"{some([f'{group} {partition}' for group, partition in lost], 3)}: see the reasons"
        )
    kept_offsets_json.save(kept, output)
    talk(f"{counted(len(starts), 'translated offset')} kept in {output}")
    if missing := wanted - starts:
        raise Undetermined(
            f"{output} has no offset for {some([f'{group} {partition}' for group, partition in missing], 3)}: see the "
            "reasons"
        )


def _save(found: Comparison, output: Path, accept_reread: int, *, force: bool) -> None:
    if _is_kept(output):
        _keep(found, output, accept_reread)
        return
    rows = found.rows(accept_reread)
    save_table(rows, output, force=force)
    left_out = len(found.partitions) - len(rows)
    talk(
        f"{counted(len(rows), 'translated offset')} written to {output}"
        + (f", {left_out:,} left out" if left_out else "")
    )
