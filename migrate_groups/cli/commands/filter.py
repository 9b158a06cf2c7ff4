"""The command that keeps selected rows of a snapshot: filter."""

from __future__ import annotations

from typing import Annotated

import typer

from migrate_groups.cli import options
from migrate_groups.cli.console import check_output, load_table, save_table, show_written
from migrate_groups.cli.json_output import check_stdout_is_free


def filter_rows(
    file: options.InputFile,
    *,
    output: options.Output,
    topic: options.TopicGlobs = None,
    exclude_topic: Annotated[
        list[str] | None,
        typer.Option("--exclude-topic", metavar="TOPIC", help="Drop this topic or glob; may be repeated."),
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="GROUP", help="Keep this group; may be repeated.")
    ] = None,
    partition: options.Partitions = None,
    force: options.Force = False,
    output_format: options.Format = "table",
) -> None:
    """Keep the rows of a snapshot that all of these options select.

    Example: migrate-groups filter before.parquet --topic 'payments.*' -o payments.csv
    """
    check_stdout_is_free(output, output_format)
    check_output(output, force=force)
    from migrate_groups.snapshots.selection import Selection, TopicPattern, parse_partitions, select

    selection = Selection(
        topics=tuple(TopicPattern(each) for each in topic or []),
        excluded_topics=tuple(TopicPattern(each) for each in exclude_topic or []),
        groups=tuple(group or []),
        partitions=tuple(parse_partitions(each) for each in partition or []),
    )
    table = load_table(file)
    selected = select(table, selection)
    save_table(selected, output, force=force)
    from migrate_groups.show import offset_files

    show_written(output_format, offset_files.selection(output, table, selected))
