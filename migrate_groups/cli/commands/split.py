"""The command that splits a snapshot by topic: split."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli import options
from migrate_groups.cli.console import check_output, load_table, save_table, show_written, talk
from migrate_groups.cli.json_output import check_stdout_is_free
from migrate_groups.errors import UsageError
from migrate_groups.text import shell_command

if TYPE_CHECKING:
    from migrate_groups.planning.options import WriteOptions
    from migrate_groups.snapshots.selection import TopicPattern
    from migrate_groups.snapshots.split import SplitSpec


def split(
    file: options.InputFile,
    *,
    output: options.Output,
    spec: Annotated[
        Path | None,
        typer.Option("--spec", metavar="SPEC", help="A TOML file that says which topics go to which group."),
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            metavar="GROUP=TOPICS",
            help="Without --spec: a new group and its topics or globs, such as billing='invoices,payments.*'; may be "
            "repeated.",
        ),
    ] = None,
    stay: Annotated[
        list[str] | None,
        typer.Option(
            "--stay", metavar="TOPICS", help="With --to: topics or globs that stay with the old group; may be repeated."
        ),
    ] = None,
    force: options.Force = False,
    output_format: options.Format = "table",
) -> None:
    """Split a group's snapshot by topic into new groups.

    Every topic must go to exactly one new group, or stay.

    \b
    SPEC, for example:
      source = "orders"
      [[target]]
      group = "billing"
      topics = ["invoices", "payments.*"]
      [stay]
      topics = ["legacy.*"]

    Example: migrate-groups split before.parquet --spec split.toml -o split.csv
    """  # noqa: D301  (\b keeps the lines of the sample apart)
    check_stdout_is_free(output, output_format)
    check_output(output, force=force)
    table = load_table(file)
    from migrate_groups.planning.options import WriteOptions
    from migrate_groups.show import offset_files
    from migrate_groups.snapshots.split import split as split_table

    wanted, reviewed = _spec(spec, to, stay, table.groups())
    result, coverage = split_table(table, wanted)
    save_table(result, output, force=force)
    show_written(output_format, offset_files.split(output, wanted.source, coverage, table, result))
    if reviewed != WriteOptions():
        talk(f"the options of {spec} are not in the table: {_as_flags(reviewed)}")
    if str(output) != "-":
        talk(f"next: migrate-groups {shell_command('apply', [str(output)], '--dry-run')}")


def _as_flags(reviewed: WriteOptions) -> str:
    """Return a text for the user: which options to pass to ``apply`` so that it uses these write options.

    Options with their default values are left out.
    """
    default = asdict(type(reviewed)())
    changed = {name: value for name, value in asdict(reviewed).items() if value != default[name]}
    advice, flags = [], []
    if changed.get("on_uncommitted") == "latest":
        del changed["on_uncommitted"]
        advice.append('on_uncommitted = "latest" is for migrate alone')
    for name, value in changed.items():
        text = f" {value:.3f}".rstrip("0").rstrip(".") + "s" if isinstance(value, float) else f" {value}"
        flags.append(f"--{name.replace('_', '-')}" + ("" if value is True else text))
    if flags:
        advice.insert(0, f"pass {' '.join(flags)} to apply")
    return "; ".join(advice)


def _spec(
    path: Path | None, to: list[str] | None, stay: list[str] | None, groups: list[str | None]
) -> tuple[SplitSpec, WriteOptions]:
    """Return the split and the write options, from the file of ``--spec`` or from ``--to`` and ``--stay``.

    groups: the groups in the snapshot; None stands for rows without a group. Raises `UsageError` if options are
    missing, contradict each other or can't be parsed, or if ``--to`` is given for several groups; `InvalidInput` if the
    file, a topic pattern or the split is invalid.
    """
    from migrate_groups.planning.options import WriteOptions
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
        group, equals, topics = (part.strip() for part in each.rpartition("="))
        if not equals or not group or not topics:
            raise UsageError(f"--to {each!r}; expected GROUP=TOPICS, such as billing='invoices,payments.*'")
        targets.append(SplitTarget(group=group, topics=_patterns([topics])))
    source = groups[0] or "no group"  # the rows of a rewind have no group yet
    stays = _patterns(stay or [])
    return SplitSpec(source=source, targets=tuple(targets), stay=stays), WriteOptions()


def _patterns(texts: list[str]) -> tuple[TopicPattern, ...]:
    """Return the topic patterns in these texts. Each text contains one or more patterns, separated by commas.

    Raises `InvalidInput` if a pattern is invalid.
    """
    from migrate_groups.snapshots.selection import TopicPattern

    return tuple(TopicPattern(each.strip()) for text in texts for each in text.split(","))
