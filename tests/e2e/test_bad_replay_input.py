"""Bad input to rewind, watch and delete-group ends with one line that says what to do, and the right exit code.

Nothing is written.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.cli import CliHere

SNAPSHOT = (
    "cluster_id,taken_at,group,source_group,group_state,group_type,topic,topic_id,partition,offset,leader_epoch,"
    "metadata,log_start_offset,log_end_offset\n"
    "c,2026-11-20T01:02:03.000000Z,g,,Empty,classic,t,id,0,5,0,,0,9\n"
)


@pytest.fixture
def cli(tmp_path: Path) -> CliHere:
    """The command line without a broker at its address, in a folder with a snapshot and a file for Kafka's tool."""
    (tmp_path / "good.csv").write_text(SNAPSHOT)
    (tmp_path / "reset.csv").write_text("t,0,5\n")
    return CliHere(tmp_path, "127.0.0.1:1")


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("rewind --topic t --to-datetime yesterday -o out.csv", "milliseconds since 1970; --by-duration 1d: a day ago"),
        ("rewind --topic t --to-datetime 2022-11-09 -o out.csv", "expected a time such as"),
        ("rewind --topic t --to-datetime 2022-11-09T21:24:55 -o out.csv", "--timezone Australia/Sydney"),
        ("rewind --topic t --to-datetime 2099-01-01T00:00:00Z -o out.csv", "in the future"),
        ("rewind --topic t --to-datetime 1969-07-20T20:17:40Z -o out.csv", "before 1970"),
        (
            "rewind --topic t --to-datetime 2022-04-03T02:30:00 --timezone Australia/Sydney -o out.csv",
            "pass 2022-04-03T02:30:00+11:00 or 2022-04-03T02:30:00+10:00",
        ),
        (
            "rewind --topic t --to-datetime 2022-10-02T02:30:00 --timezone Australia/Sydney -o out.csv",
            "pass 2022-10-02T03:30:00+11:00 or 2022-10-02T01:30:00+10:00",
        ),
        (
            "rewind --topic t --to-datetime 2022-11-09T21:24:55 --timezone Sydney -o out.csv",
            "unknown time zone 'Sydney'",
        ),
        ("rewind --topic t --by-duration 90 -o out.csv", "expected a time span such as 90m"),
        ("rewind --topic t --by-duration P1Y -o out.csv", "years and months have no fixed length"),
        ("rewind --topic t --by-duration -P1D -o out.csv", "expected a positive time span"),
        ("rewind --topic t --by-duration PT0S -o out.csv", "expected a positive time span"),
        ("rewind --topic t --by-duration 0m -o out.csv", "expected a positive time span"),
        ("rewind --topic t -o out.csv", "nothing says where to"),
        (
            "rewind --topic t --to-earliest --to-latest -o out.csv",
            "--to-earliest and --to-latest contradict each other",
        ),
        ("rewind --topic t --to-datetime 0 --by-duration 1h -o out.csv", "--to-datetime and --by-duration contradict"),
        ("rewind --topic t --shift-by -1 --to-offset 3 -o out.csv", "--shift-by and --to-offset contradict"),
        ("rewind --topic t --to-earliest --timezone UTC -o out.csv", "--timezone goes with"),
        ("rewind --topic t --to-offset 3 --past-end fail -o out.csv", "--past-end goes with"),
        ("rewind --topic t --shift-by -1 -o out.csv", "give FILE or --group"),
        ("rewind --topic t --to-current -o out.csv", "give FILE or --group"),
        ("rewind --topic t --partition x --to-earliest -o out.csv", "is not a partition"),
        ("rewind --to-earliest -o out.csv", "nothing says which partitions"),
        ("rewind --partition 0 --to-earliest -o out.csv", "nothing says which partitions"),
        ('rewind --group "" --to-earliest -o out.csv', "group name is empty"),
        ('rewind --topic "" --to-earliest -o out.csv', "topic pattern is empty"),
        ("rewind good.csv --group g --to-earliest -o out.csv", "FILE and --group"),
        ("rewind missing.csv --to-earliest -o out.csv", "missing.csv does not exist"),
        ("rewind --topic t --shift-by 1h -o out.csv", "invalid value for '--shift-by': '1h' is not a valid int: see"),
        (
            "rewind --topic t --to-offset -1 -o out.csv",
            "invalid value for '--to-offset': -1 is not in the range x>=0: see",
        ),
        ("rewind --topic t --past-end latest -o out.csv", "invalid value for '--past-end': 'latest' is not one of"),
        ("rewind --topic t", "missing option '--output' / '-o': see"),
        ("rewind --topic t --to-earliest -o good.csv", "exists already"),
        ("rewind --topic t --to-earliest -o out.txt", "expected .csv or .parquet"),
        ("watch g --until missing.csv", "does not exist: check the path"),
        ("watch g --until reset.csv", "no log end offset for t-0"),
        ("watch h --until good.csv", "no offsets for group 'h'; it has g"),
        ("watch g --wait 5", "--wait is '5'"),
        ('watch ""', "group name is empty"),
        ("delete-group g", "stdin is not a terminal: pass --yes to write, or --dry-run"),
        ('delete-group "" --yes', "group name is empty"),
    ],
)
def test_bad_or_ambiguous_arguments_are_exit_2(cli, command, complaint):
    """If arguments are malformed, missing or contradictory, rewind, watch and delete-group end with exit code 2.

    The error is one line. No file is created or changed.
    """
    assert complaint in cli.fails(*shlex.split(command), code=2)
    assert sorted(path.name for path in cli.folder.iterdir()) == ["good.csv", "reset.csv"]
    assert (cli.folder / "good.csv").read_text() == SNAPSHOT


@pytest.mark.parametrize(
    "command",
    ["rewind good.csv --to-earliest -o out.csv", "watch g --until good.csv", "watch g", "delete-group g --yes"],
)
def test_unreachable_broker_is_exit_5(cli, command):
    """If no broker listens at the address, rewind, watch and delete-group end with exit code 5.

    No file is created.
    """
    assert "Connection refused" in cli.fails(*command.split(), code=5)
    assert sorted(path.name for path in cli.folder.iterdir()) == ["good.csv", "reset.csv"]
