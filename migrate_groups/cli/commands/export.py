"""The command that writes the CSV of kafka-consumer-groups: export."""

from __future__ import annotations

from migrate_groups.cli import options
from migrate_groups.cli.console import load_table, show_written
from migrate_groups.cli.json_output import check_stdout_is_free, print_bytes
from migrate_groups.errors import UsageError


def export(
    file: options.InputFile,
    *,
    output: options.CsvOutput,
    force: options.Force = False,
    output_format: options.Format = "table",
) -> None:
    """Write the CSV that kafka-consumer-groups --reset-offsets --from-file takes.

    It has three columns if the file has one group, and four with several groups. Pass each group to Kafka's tool with
    --group.

    Example: migrate-groups export split.csv -o offsets.csv
    """
    from migrate_groups.files.safe_write import check_writable, write_whole
    from migrate_groups.files.snapshots import reset_csv

    check_stdout_is_free(output, output_format)
    to_stdout = str(output) == "-"
    if not to_stdout:
        if output.suffix.lower() != ".csv":
            raise UsageError(f"{output}: what kafka-consumer-groups takes is CSV; name a .csv")
        check_writable(output, replace=force)
    table = load_table(file)
    content, left_out = reset_csv.to_bytes(table)
    if to_stdout:
        print_bytes(content)
    else:
        write_whole(output, lambda stream: stream.write(content), replace=force)
    from migrate_groups.show import offset_files

    show_written(output_format, offset_files.export(output, len(table) - left_out, left_out))
