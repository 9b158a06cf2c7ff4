"""Measure the commands that need no cluster: filter, split and export of a million rows, and their start-up time.

Usage: ``.venv/bin/python scripts/bench_tables.py``, after ``scripts/test``, which makes .venv, and
``.venv/bin/pip install -c scripts/constraints.txt '.[bench]'``. Whole processes take turns, each measured from its
start to its exit: our command, and a Python process that reads, changes and writes the same file with polars.

- ``filter``: a tenth of the topics; ``split``: each topic to one of two groups; ``export``: Kafka's ``--from-file``
- ``help``: ``--help``; ``small``: ``export`` of one row; ``bare``: a Python process that does nothing

The script prints median, minimum, maximum and ratios; ``--json`` saves every run. Exit code 1: the results differ.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from _bench import OURS, Measured, in_turns, medians, options_of, report, run

_A_TOPIC = 1000
_SPEC = """source = "old"
[[target]]
group = "even"
topics = ["topic-*[02468]"]
[[target]]
group = "odd"
topics = ["topic-*[13579]"]
"""
_POLARS = {
    "filter": 'table.filter(polars.col("topic").str.ends_with("7")).write_csv(out)',
    "split": """table.with_columns(
        source_group=polars.col("group"),
        group=polars.when(polars.col("topic").str.contains("[02468]$")).then(polars.lit("even")).otherwise(
            polars.lit("odd")),
    ).sort("group", "topic", "partition").write_csv(out)""",
    "export": 'table.select("topic", "partition", "offset").write_csv(out, include_header=False)',
}


def generate(path: Path, rows: int) -> None:
    """Write a snapshot with ``rows`` rows to ``path``."""
    head = "cluster_id,taken_at,group,source_group,group_state,group_type,topic,topic_id,partition,offset,leader_epoch,"
    with path.open("w") as file:
        file.write(f"{head}metadata,log_start_offset,log_end_offset\n")
        for row in range(rows):
            topic, partition = divmod(row, _A_TOPIC)
            file.write(
                f"bench,2026-11-20T10:00:00.000000Z,old,,Empty,classic,topic-{topic:04d},id-{topic},{partition},"
                f"{row * 7},3,,0,{row * 7 + 11}\n"
            )


def commands(folder: Path, verb: str) -> dict[str, list[str]]:
    """Return the command lines of our process and of polars' process, which write ``ours.csv`` and ``polars.csv``.

    verb: ``filter``, ``split`` or ``export``.
    """
    source, spec = folder / "snapshot.csv", folder / "split.toml"
    more = {"filter": ["--topic", "topic-*7"], "split": ["--spec", str(spec)], "export": []}[verb]
    out = ["-o", str(folder / "ours.csv"), "--force"]
    read = f"import polars; out = {str(folder / 'polars.csv')!r}; table = polars.read_csv({str(source)!r})"
    return {
        "ours": [*OURS, verb, str(source), *more, *out],
        "polars": [sys.executable, "-c", f"{read}\n{_POLARS[verb]}"],
    }


def check_same(folder: Path, verb: str, rows: int) -> None:
    """Exit 1 unless both files have the same groups, topics, partitions and offsets in the same order."""
    import polars

    wanted = {"filter": rows // 10}.get(verb, rows)
    names = ["topic", "partition", "offset"]
    if verb == "export":
        ours, theirs = (
            polars.read_csv(folder / f"{who}.csv", has_header=False, new_columns=names) for who in ("ours", "polars")
        )
    else:
        ours, theirs = (
            polars.read_csv(folder / f"{who}.csv").select("group", "source_group", *names) for who in ("ours", "polars")
        )
    if not ours.equals(theirs) or len(ours) != wanted:
        raise SystemExit(f"{verb}: the results differ")


def main() -> None:
    """Measure, and print the results."""
    parser = options_of("Measure filter, split and export against polars.", runs=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    if options.rows < 1 or options.rows % (10 * _A_TOPIC):
        parser.error(f"--rows {options.rows}: pass a multiple of {10 * _A_TOPIC:,}, because every tenth topic is kept")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder / "snapshot.csv", options.rows)
        (folder / "split.toml").write_text(_SPEC)
        (folder / "one.csv").write_text("topic-0000,0,7\n")
        contenders: dict[str, Callable[[], Measured]] = {
            "help": partial(run, [*OURS, "--help"]),
            "small": partial(run, [*OURS, "export", str(folder / "one.csv"), "-o", "-"]),
            "bare": partial(run, [sys.executable, "-c", "pass"]),
        }

        def checked(verb: str, command: list[str]) -> Measured:
            measured = run(command)
            check_same(folder, verb, options.rows)
            return measured

        for verb in _POLARS:
            each = commands(folder, verb)
            contenders |= {f"{verb} ours": partial(run, each["ours"])}
            contenders |= {f"{verb} polars": partial(checked, verb, each["polars"])}
        found = in_turns(contenders, options.runs, warm_up=True)
    report(options, {f"{options.rows:,} rows": found}, [(f"{verb} ours", f"{verb} polars") for verb in _POLARS])
    middle = medians(found)
    for what in ("help", "small"):
        print(f"{what} above bare: {middle[what] - middle['bare']:.3f} s")


if __name__ == "__main__":
    main()
