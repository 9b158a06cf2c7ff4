"""Bad input on the command line is one line that says what to do, with the right exit code; nothing is written."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.cli import Cli

HEADER = (
    "cluster_id,taken_at,group,source_group,group_state,group_type,topic,topic_id,partition,offset,leader_epoch,"
    "metadata,log_start_offset,log_end_offset"
)
ROW = "c,2026-11-20T01:02:03.000000Z,g,,Empty,classic,t,id,0,5,0,,0,9"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command line without a cluster, beside a good snapshot of group ``g``."""
    (tmp_path / "good.csv").write_text(f"{HEADER}\n{ROW}\n")
    return Cli(tmp_path)


@pytest.fixture
def closed_port():
    """A port on which no process listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["filter", "missing.csv", "-o", "out.csv"], "there is no file missing.csv"),
        (["filter", ".", "-o", "out.csv"], "can't be read"),
        (["filter", "good.csv", "-o", "good.csv"], "good.csv exists already"),
        (["filter", "good.csv", "-o", "out.txt"], "expected .csv or .parquet"),
        (["filter", "good.csv", "-o", "no/where.csv"], "no folder no"),
        (["filter", "good.csv", "--topic", "nope", "-o", "out.csv"], "no topic matches nope"),
        (["filter", "good.csv", "--partition", "x", "-o", "out.csv"], "not a partition"),
        (["split", "good.csv", "-o", "out.csv"], "--spec split.toml or with --to"),
        (["split", "good.csv", "--to", "a", "-o", "out.csv"], "expected GROUP=TOPICS"),
        (["split", "good.csv", "--to", "g=t", "-o", "out.csv"], "is the source group"),
        (["split", "good.csv", "--spec", "missing.toml", "-o", "out.csv"], "there is no file missing.toml"),
        (["export", "missing.csv", "-o", "out.csv"], "there is no file"),
        (["export", "good.csv", "-o", "good.csv"], "exists already"),
        (["export", "good.csv", "-o", "out.parquet"], "what kafka-consumer-groups takes is CSV; name a .csv"),
        (["export", "good.csv", "-o", "out"], "name a .csv"),
        (["apply", "good.csv", "--yes", "--bootstrap-server", "h:1"], "the snapshot of group g itself"),
        (["apply", "good.csv", "--to-group", "", "--yes", "--bootstrap-server", "h:1"], "--to-group is empty"),
        (["apply", "good.csv", "--to-group", "n", "--bootstrap-server", "h:1"], "pass --yes"),
        (["apply", "good.csv", "--to-group", "n", "--settle", "10", "--yes", "--bootstrap-server", "h:1"], "unit"),
        (["apply", "-", "--to-group", "n", "--yes", "--bootstrap-server", "h:1"], "--receipt"),
        (["snapshot", "-o", "out.csv", "--bootstrap-server", "h:1"], "no group given"),
        (["snapshot", "", "-o", "out.csv", "--bootstrap-server", "h:1"], "group name is empty"),
        (["snapshot", "g", "-o", "out.csv", "--bootstrap-server", "nowhere"], "expected host:port"),
        (["verify", "g", "--wait", "5", "--bootstrap-server", "h:1"], "--wait is '5'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_usage_and_files_are_exit_2(cli, arguments, complaint):
    """Unusable arguments and files are exit 2 with one line, before any connection, and no file is created."""
    before = {path.name: path.read_bytes() for path in cli.folder.iterdir()}
    assert complaint in cli.fails(*arguments, code=2, stdin=f"{HEADER}\n{ROW}\n" if "-" in arguments else "")
    assert {path.name: path.read_bytes() for path in cli.folder.iterdir()} == before


@pytest.mark.parametrize(
    "command", ["snapshot g -o out.csv", "describe g", "verify g", "apply good.csv --to-group n --yes"]
)
def test_nobody_listens_is_exit_5(cli, closed_port, command):
    """A missing broker or a wrong port is exit 5 at once, with the address."""
    error = cli.fails(*command.split(), "--bootstrap-server", f"127.0.0.1:{closed_port}", code=5)
    assert f"127.0.0.1:{closed_port}: Connection refused" in error
    assert [path.name for path in cli.folder.iterdir()] == ["good.csv"]


def test_a_port_that_is_no_broker_is_exit_5_within_the_timeout(cli):
    """A server that accepts connections and never answers is exit 5 at ``--timeout``."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert "nothing within 2 s" in cli.fails(
            "describe", "g", "--timeout", "2s", "--bootstrap-server", address, code=5
        )


def test_a_host_that_does_not_exist_is_exit_5(cli):
    """A host name that does not resolve is exit 5 and named."""
    assert "no-such-host.invalid:9092" in cli.fails(
        "describe", "g", "--bootstrap-server", "no-such-host.invalid:9092", code=5
    )


def test_unreadable_file_is_exit_2(cli):
    """A file that is not text or is truncated is refused by name."""
    (cli.folder / "noise.csv").write_bytes(bytes(range(256)))
    (cli.folder / "cut.csv").write_text(f"{HEADER}\n{ROW[:-3]}")
    (cli.folder / "cut.parquet").write_bytes(b"PAR1 and no more")
    assert "NUL bytes" in cli.fails("filter", "noise.csv", "-o", "out.csv", code=2)
    assert "cut short" in cli.fails("filter", "cut.csv", "-o", "out.csv", code=2)
    assert "not a whole Parquet file" in cli.fails("filter", "cut.parquet", "-o", "out.csv", code=2)


def test_unknown_options_and_missing_ones_are_exit_2(cli):
    """Errors of the option parser are exit 2."""
    assert "No such option" in cli("filter", "good.csv", "--topics", "t", "-o", "out.csv", code=2).stderr
    assert "--bootstrap-server" in cli("describe", "g", code=2).stderr
    assert "No such command" in cli("snapshoot", code=2).stderr


def test_an_existing_file_is_replaced_with_force_alone(cli):
    """Only ``--force`` replaces an output file."""
    (cli.folder / "out.csv").write_text("precious\n")
    assert "--force" in cli.fails("filter", "good.csv", "-o", "out.csv", code=2)
    assert (cli.folder / "out.csv").read_text() == "precious\n"
    cli("filter", "good.csv", "-o", "out.csv", "--force")
    assert (cli.folder / "out.csv").read_text() == (cli.folder / "good.csv").read_text()


def test_version_and_help(cli):
    """--version and --help answer on stdout with exit 0."""
    assert cli.cold("--version").stdout.startswith("migrate-groups ")
    assert "Usage:" in cli.cold("apply", "--help").stdout


def test_a_group_name_that_no_request_holds(bootstrap_servers, tmp_path):
    """Every command refuses a group name of 40,000 bytes with a short error."""
    cli = Cli(tmp_path, bootstrap_servers)
    for arguments in (["describe"], ["snapshot", "-o", "x.csv"], ["delete", "--yes"], ["verify"]):
        refused = cli.fails(arguments[0], "x" * 40_000, *arguments[1:], code=2)
        assert "a name of 40,000 bytes; Kafka's requests hold 32,767" in refused
        assert len(refused) < 200
    missing = cli.fails("describe", "x" * 32_767, code=3)
    assert "does not exist" in missing
    assert len(missing) < 320
