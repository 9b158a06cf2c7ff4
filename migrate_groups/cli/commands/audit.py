"""The command that proves a hand-over from the log of ``__consumer_offsets``: audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from migrate_groups.cli import options, written
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show_as, talk
from migrate_groups.cli.progress import Reporter
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.cli.target_cluster import TargetCluster
from migrate_groups.text import shell_command


def audit(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run directory of migrate, or the folder of a fleet.")],
    *,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="DIR",
            help="Keep the copied log in this folder. A later audit with the same folder copies only what is new.",
            show_default="a temporary folder",
        ),
    ] = None,
    without_membership: Annotated[
        list[str] | None,
        typer.Option(
            "--without-membership",
            metavar="GROUP",
            help="A new group whose consumers use assign(), so that they are not members of it: its commits count "
            "although no member made them. May be repeated.",
        ),
    ] = None,
    output_format: options.TableFormat = "table",
    target: TargetCluster,
    connection: Connection,
) -> None:
    """Prove a hand-over from Kafka's own log of commits, with Spark.

    It copies the log of __consumer_offsets, and judges every commit of the old group and the new ones. Run it once
    members of the new groups have committed: before that it proves nothing (exit code 7). It needs Java 17 or later. If
    the new groups are on another cluster, pass it with --to-bootstrap-server or --to-command-config: both logs are
    copied.

    Each partition has a verdict on the old group and one on the new group. No problem: stopped (the old group), and
    starts-at-snapshot (the new group continued at the offset that was handed over), no-commit-yet or not-in-snapshot
    (not handed over). A problem, with exit code 6: late-commit (the old group has committed since), earlier or later
    (the new group's first commit is below or above the offset handed over), missing (that offset is not in place), or a
    rewind (a commit below the previous one).

    Example: migrate-groups audit split.toml.run
    """
    require_spark()
    target.check()
    written.run.set(run)
    from migrate_groups.migration.offsets_topic.audit import AuditRequest
    from migrate_groups.migration.offsets_topic.audit import audit as judged
    from migrate_groups.show.audit import conclusion, result

    open_target = target.connection(connection).open_offsets_topic if target.is_named else None
    asked = AuditRequest(run, log, without_membership or [])
    found = judged(asked, connection.open_offsets_topic, open_target, spark_here, Reporter())
    show_as(output_format, result(found))
    found.check()
    talk(conclusion(found))
    if not (found.new.get("no-commit-yet") or found.is_copy):
        talk(f"next: a day later, migrate-groups {shell_command('delete-offsets', [str(run)])}")
