"""Measure the commands that need no cluster: filter, split and export of a million rows, and their start-up time.

Usage: ``.venv/bin/python scripts/bench_tables.py``, after ``scripts/test``, which makes .venv, and
``.venv/bin/pip install -c scripts/constraints.txt '.[bench]'``. Whole processes take turns, each measured from its
start to its exit: our command, and a Python process that reads, changes and writes the same file with polars.

- ``filter``: a tenth of the topics; ``split``: each topic to one of two groups; ``export``: Kafka's ``--from-file``
- ``help``: ``--help``; ``small``: ``export`` of one row; ``bare``: a Python process that does nothing

The script prints median, minimum, maximum and ratios; ``--json`` saves every run. Exit code 1: the results differ.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from bench_cutover import Measured, run

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
        "ours": [sys.executable, "-m", "migrate_groups", verb, str(source), *more, *out],
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
    parser = argparse.ArgumentParser(description="Measure filter, split and export against polars.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write every run to this file")
    options = parser.parse_args()
    found: dict[str, list[Measured]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder / "snapshot.csv", options.rows)
        (folder / "split.toml").write_text(_SPEC)
        (folder / "one.csv").write_text("topic-0000,0,7\n")
        ours = [sys.executable, "-m", "migrate_groups"]
        single = {
            "help": [*ours, "--help"],
            "small": [*ours, "export", str(folder / "one.csv"), "-o", "-"],
            "bare": [sys.executable, "-c", "pass"],
        }
        for turn in range(options.runs + 1):  # the first turn warms files up and does not count
            each = {name: run(command) for name, command in single.items()}
            for verb in _POLARS:
                for who, command in commands(folder, verb).items():
                    each[f"{verb} {who}"] = run(command)
                check_same(folder, verb, options.rows)
            for what, measured in each.items() if turn else ():
                found.setdefault(what, []).append(measured)
    middle = {what: statistics.median(one.seconds for one in runs) for what, runs in found.items()}
    print(f"{options.rows:,} rows, {options.runs} runs each; seconds")
    print(f"{'':15}{'median':>9}{'least':>9}{'most':>9}")
    for what, runs in found.items():
        seconds = [one.seconds for one in runs]
        print(f"{what:15}{middle[what]:9.3f}{min(seconds):9.3f}{max(seconds):9.3f}")
    ratios = {f"{verb} ours / polars": middle[f"{verb} ours"] / middle[f"{verb} polars"] for verb in _POLARS}
    ratios |= {f"{what} above bare, s": middle[what] - middle["bare"] for what in ("help", "small")}
    for what, ratio in ratios.items():
        print(f"{what:24}{ratio:8.3f}")
    if options.json:
        seconds_of = {what: [one.seconds for one in runs] for what, runs in found.items()}
        document = {"rows": options.rows, "runs": seconds_of, "medians": middle, "ratios": ratios}
        options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
