"""Commands that make one table from another, without a cluster: filter, split, export."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli import options
from migrate_groups.cli.console import check_output, load_table, save_table, talk
from migrate_groups.errors import UsageError
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.planning.options import WriteOptions
    from migrate_groups.snapshots.split import SplitSpec


def filter_(
    file: options.InputFile,
    *,
    output: options.Output,
    topic: options.TopicGlobs = None,
    exclude_topic: Annotated[list[str] | None, typer.Option("--exclude-topic", help="A topic or glob to drop.")] = None,
    group: Annotated[list[str] | None, typer.Option("--group", help="Keep this group; may be repeated.")] = None,
    partition: Annotated[list[str] | None, typer.Option("--partition", help="7 or 3-5; may be repeated.")] = None,
    force: options.Force = False,
) -> None:
    """Keep the rows of a snapshot that these options select.

    Example: migrate-groups filter before.parquet --topic 'payments.*' -o payments.csv
    """
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
    talk(f"{counted(len(selected), 'partition')} of {len(table):,} kept")


def split(
    file: options.InputFile,
    *,
    output: options.Output,
    spec: Annotated[Path | None, typer.Option("--spec", help="The split: a TOML file.")] = None,
    to: Annotated[
        list[str] | None, typer.Option("--to", metavar="GROUP=TOPICS", help="billing='invoices,payments.*'")
    ] = None,
    stay: Annotated[list[str] | None, typer.Option("--stay", help="A topic or glob left with the old group.")] = None,
    force: options.Force = False,
) -> None:
    """Split a group's snapshot by topic into new groups.

    Every topic must go somewhere, once.

    Example: migrate-groups split before.parquet --spec split.toml -o split.csv
    """
    check_output(output, force=force)
    table = load_table(file)
    from migrate_groups.planning.options import WriteOptions
    from migrate_groups.show import terminal
    from migrate_groups.snapshots.split import split as split_table

    wanted, reviewed = _spec(spec, to, stay, table.groups())
    result, coverage = split_table(table, wanted)
    talk(terminal.coverage(coverage))
    save_table(result, output, force=force)
    others = [group for group in table.groups() if group not in (wanted.source, None)]
    left_out = f"; left out: rows of {some(others)}" if others else ""
    targets = ", ".join(f"{len(topics)} to {group}" for group, topics in coverage.targets.items())
    talk(f"topics: {targets}, {len(coverage.stay)} stay with {wanted.source}{left_out}")
    if reviewed != WriteOptions():
        talk(f"the options of {spec} are not in the table: {_as_flags(reviewed)}")


def export(file: options.InputFile, *, output: options.CsvOutput, force: options.Force = False) -> None:
    """Write the CSV that kafka-consumer-groups takes.

    It is for --reset-offsets --from-file.

    Three columns for one group, four for several; name each to Kafka's tool with --group.

    Example: migrate-groups export split.csv -o offsets.csv
    """
    from migrate_groups.files.safe_write import check_writable, write_whole
    from migrate_groups.files.snapshots import reset_csv

    to_stdout = str(output) == "-"
    if not to_stdout:
        if output.suffix.lower() != ".csv":
            raise UsageError(f"{output}: what kafka-consumer-groups takes is CSV; name a .csv")
        check_writable(output, replace=force)
    table = load_table(file)
    content, left_out = reset_csv.to_bytes(table)
    if to_stdout:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_whole(output, lambda stream: stream.write(content), replace=force)
    talk(f"{counted(len(table) - left_out, 'partition')} exported, {left_out:,} without a commit left out")


def _as_flags(reviewed: WriteOptions) -> str:
    """Return advice on how to pass a split spec's write options to `apply`, where they are not the defaults."""
    default = asdict(type(reviewed)())
    changed = {name: value for name, value in asdict(reviewed).items() if value != default[name]}
    advice, flags = [], []
    if changed.get("uncommitted") == "latest":
        del changed["uncommitted"]
        advice.append('uncommitted = "latest" is for migrate alone')
    for name, value in changed.items():
        text = f" {value:.3f}".rstrip("0").rstrip(".") + "s" if isinstance(value, float) else f" {value}"
        flags.append(f"--{name.replace('_', '-')}" + ("" if value is True else text))
    if flags:
        advice.insert(0, f"pass {' '.join(flags)} to apply")
    return "; ".join(advice)


def _spec(
    path: Path | None, to: list[str] | None, stay: list[str] | None, groups: list[str | None]
) -> tuple[SplitSpec, WriteOptions]:
    """Return the split from ``--spec`` or ``--to``, and the write options of the spec; with ``--to`` the defaults."""
    from migrate_groups.planning.options import WriteOptions
    from migrate_groups.snapshots.selection import TopicPattern
    from migrate_groups.snapshots.split import SplitSpec, SplitTarget

    if (path is None) == (not to):
        raise UsageError("say the split either with --spec split.toml or with --to GROUP=TOPICS")
    if path is not None:
        if stay:
            raise UsageError("--stay goes with --to; in a spec it is [stay]")
        from migrate_groups.files import split_toml

        found = split_toml.load(path)
        return found.spec, found.options
    if len(groups) != 1:
        raise UsageError("--to needs a file with one group in it; use --spec, or filter the file by --group first")
    targets = []
    for each in to or []:
        group, equals, topics = each.rpartition("=")
        if not equals or not group or not topics:
            raise UsageError(f"--to {each!r}; expected GROUP=TOPICS, such as billing='invoices,payments.*'")
        targets.append(SplitTarget(group=group, topics=tuple(TopicPattern(topic) for topic in topics.split(","))))
    source = groups[0] or "no group"  # the rows of a rewind have no group yet
    stays = tuple(TopicPattern(topic) for topic in stay or [])
    return SplitSpec(source=source, targets=tuple(targets), stay=stays), WriteOptions()
