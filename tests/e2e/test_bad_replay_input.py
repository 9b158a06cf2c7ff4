"""Bad input to rewind, watch and delete-group ends with one line that says what to do, and the right exit code.

Nothing is written.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import CliHere

SNAPSHOT = (
    "cluster_id,taken_at,group,source_group,group_state,group_type,topic,topic_id,partition,offset,leader_epoch,"
    "metadata,log_start_offset,log_end_offset\n"
    "c,2026-11-20T01:02:03.000000Z,g,,Empty,classic,t,id,0,5,0,,0,9\n"
)
SOURCE = ["--topic", "t"]


@pytest.fixture
def cli(tmp_path: Path) -> CliHere:
    """The command line without a broker at its address, in a folder with a snapshot and a file for Kafka's tool."""
    (tmp_path / "good.csv").write_text(SNAPSHOT)
    (tmp_path / "reset.csv").write_text("t,0,5\n")
    return CliHere(tmp_path, "127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([*SOURCE, "--to-datetime", "yesterday"], "milliseconds since 1970; --by-duration 1d: a day ago"),
        ([*SOURCE, "--to-datetime", "2022-11-09"], "expected a time such as"),
        ([*SOURCE, "--to-datetime", "2022-11-09T21:24:55"], "--timezone Australia/Sydney"),
        ([*SOURCE, "--to-datetime", "2099-01-01T00:00:00Z"], "in the future"),
        ([*SOURCE, "--to-datetime", "1969-07-20T20:17:40Z"], "before 1970"),
        (
            [*SOURCE, "--to-datetime", "2022-04-03T02:30:00", "--timezone", "Australia/Sydney"],
            "pass 2022-04-03T02:30:00+11:00 or 2022-04-03T02:30:00+10:00",
        ),
        (
            [*SOURCE, "--to-datetime", "2022-10-02T02:30:00", "--timezone", "Australia/Sydney"],
            "pass 2022-10-02T03:30:00+11:00 or 2022-10-02T01:30:00+10:00",
        ),
        ([*SOURCE, "--to-datetime", "2022-11-09T21:24:55", "--timezone", "Sydney"], "unknown time zone 'Sydney'"),
        ([*SOURCE, "--by-duration", "90"], "expected a time span such as 90m"),
        ([*SOURCE, "--by-duration", "P1Y"], "years and months have no fixed length"),
        ([*SOURCE, "--by-duration", "-P1D"], "expected a positive time span"),
        ([*SOURCE, "--by-duration", "PT0S"], "expected a positive time span"),
        ([*SOURCE, "--by-duration", "0m"], "expected a positive time span"),
        ([*SOURCE], "nothing says where to"),
        ([*SOURCE, "--to-earliest", "--to-latest"], "--to-earliest and --to-latest contradict each other"),
        ([*SOURCE, "--to-datetime", "0", "--by-duration", "1h"], "--to-datetime and --by-duration contradict"),
        ([*SOURCE, "--shift-by", "-1", "--to-offset", "3"], "--shift-by and --to-offset contradict"),
        ([*SOURCE, "--to-earliest", "--timezone", "UTC"], "--timezone goes with"),
        ([*SOURCE, "--to-offset", "3", "--past-end", "fail"], "--past-end goes with"),
        ([*SOURCE, "--shift-by", "-1"], "give FILE or --group"),
        ([*SOURCE, "--to-current"], "give FILE or --group"),
        ([*SOURCE, "--partition", "x", "--to-earliest"], "is not a partition"),
        (["--to-earliest"], "nothing says which partitions"),
        (["--partition", "0", "--to-earliest"], "nothing says which partitions"),
        (["--group", "", "--to-earliest"], "group name is empty"),
        (["--topic", "", "--to-earliest"], "topic pattern is empty"),
        (["good.csv", "--group", "g", "--to-earliest"], "FILE and --group"),
        (["missing.csv", "--to-earliest"], "missing.csv does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_or_ambiguous_rewind_options_are_exit_2(cli, arguments, complaint):
    """If options are malformed, missing or contradictory, ``rewind`` ends with exit code 2 before any connection.

    No file is created.
    """
    assert complaint in cli.fails("rewind", *arguments, "-o", "out.csv", code=2)
    assert sorted(path.name for path in cli.folder.iterdir()) == ["good.csv", "reset.csv"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["rewind", *SOURCE, "--to-earliest", "-o", "good.csv"], "exists already"),
        (["rewind", *SOURCE, "--to-earliest", "-o", "out.txt"], "expected .csv or .parquet"),
        (["watch", "g", "--until", "missing.csv"], "does not exist: check the path"),
        (["watch", "g", "--until", "reset.csv"], "no log end offset for t-0"),
        (["watch", "h", "--until", "good.csv"], "no offsets for group 'h'; it has g"),
        (["watch", "g", "--wait", "5"], "--wait is '5'"),
        (["watch", ""], "group name is empty"),
        (["delete-group", "g"], "stdin is not a terminal: pass --yes to write, or --dry-run"),
        (["delete-group", "", "--yes"], "group name is empty"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments_of_replay_commands_are_exit_2(cli, arguments, complaint):
    """If arguments are unusable, rewind, watch and delete-group end with one line and exit code 2."""
    assert complaint in cli.fails(*arguments, code=2)
    assert (cli.folder / "good.csv").read_text() == SNAPSHOT


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--shift-by", "1h", "-o", "out.csv"], "invalid value for '--shift-by': '1h' is not a valid int: see"),
        (["--to-offset", "-1", "-o", "out.csv"], "invalid value for '--to-offset': -1 is not in the range x>=0: see"),
        (["--past-end", "latest", "-o", "out.csv"], "invalid value for '--past-end': 'latest' is not one of"),
        ([], "missing option '--output' / '-o': see"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_of_the_option_parser_are_exit_2(cli, arguments, complaint):
    """If an option has an invalid value or is missing, ``rewind`` ends with exit code 2.

    The error is one line that names the option.
    """
    assert complaint in cli.fails("rewind", *SOURCE, *arguments, code=2)
    assert sorted(path.name for path in cli.folder.iterdir()) == ["good.csv", "reset.csv"]


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
