"""The command that writes offsets in the format of another tool: export."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from migrate_groups.cli import options
from migrate_groups.cli.console import load_table, show_written
from migrate_groups.cli.json_output import check_stdout_is_free, print_bytes
from migrate_groups.errors import UsageError

_For = Annotated[
    Literal["kafka-consumer-groups", "spark", "connect"],
    typer.Option(
        "--for",
        help="The tool: kafka-consumer-groups --reset-offsets --from-file (CSV), startingOffsets of Spark (JSON), or "
        "PATCH /connectors/NAME/offsets of Kafka Connect (JSON).",
    ),
]
_OnUncommitted = Annotated[
    Literal["refuse", "earliest", "latest"] | None,
    typer.Option(
        help="With --for spark, if the group has no committed offset for a partition: refuse, or start at the log "
        "start offset (earliest) or log end offset (latest) of when the query starts.",
        show_default="refuse",
    ),
]


def export(
    file: options.InputFile,
    *,
    output: options.ExportOutput,
    tool: _For = "kafka-consumer-groups",
    on_uncommitted: _OnUncommitted = None,
    force: options.Force = False,
    output_format: options.Format = "table",
) -> None:
    """Write offsets for kafka-consumer-groups, Spark or Kafka Connect.

    The CSV of kafka-consumer-groups has three columns if the file has one group, and four with several groups. Pass
    each group to Kafka's tool with --group.

    Example: migrate-groups export split.csv -o offsets.csv
    """
    from migrate_groups.files.safe_write import check_writable, write_whole
    from migrate_groups.files.snapshots import reset_csv, start_offsets

    check_stdout_is_free(output, output_format)
    if on_uncommitted and tool != "spark":
        raise UsageError(f"--on-uncommitted belongs to --for spark, not to {tool}")
    to_stdout = str(output) == "-"
    if not to_stdout:
        kind = "csv" if tool == "kafka-consumer-groups" else "json"
        if output.suffix.lower() != f".{kind}":
            raise UsageError(f"{output}: {tool} takes {kind.upper()}; name a .{kind}")
        check_writable(output, replace=force)
    table = load_table(file)
    if tool == "spark":
        content, left_out = start_offsets.spark(table, on_uncommitted or "refuse")
    else:
        content, left_out = (start_offsets.connect if tool == "connect" else reset_csv.to_bytes)(table)
    if to_stdout:
        print_bytes(content)
    else:
        write_whole(output, lambda stream: stream.write(content), replace=force)
    from migrate_groups.show import offset_files

    remarks = [_REMARKS[tool]] if tool in _REMARKS else []
    if set(table.states()) - {None, "Empty"}:
        remarks.append(
            "the snapshot does not show that the group had stopped: what it has read since may be read again"
        )
    show_written(output_format, offset_files.export(output, len(table) - left_out, left_out, remarks))


_REMARKS = {
    "spark": "only for a new checkpointLocation: a query that has a checkpoint ignores startingOffsets silently",
    "connect": "send it with PATCH /connectors/NAME/offsets while the connector is STOPPED",
}
"""What the user must know about the file, by the tool that it is for."""
