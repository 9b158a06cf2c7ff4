"""Bad input on the command line ends with one line that says what to do, and the right exit code.

Nothing is written.
"""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from migrate_groups.model.partitions import TopicPartition
from tests.support.cli import Cli

HEADER = (
    "cluster_id,taken_at,group,source_group,group_state,group_type,topic,topic_id,partition,offset,leader_epoch,"
    "metadata,log_start_offset,log_end_offset"
)
ROW = "c,2026-11-20T01:02:03.000000Z,g,,Empty,classic,t,id,0,5,0,,0,9"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command line without a cluster, in a folder with a valid snapshot of group ``g``."""
    (tmp_path / "good.csv").write_text(f"{HEADER}\n{ROW}\n")
    return Cli(tmp_path)


@pytest.fixture
def closed_port():
    """A port at which no process listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["filter", "missing.csv", "-o", "out.csv"], "missing.csv does not exist"),
        (["filter", ".", "-o", "out.csv"], ". is a folder: name a file in it"),
        (["filter", "good.csv", "-o", "good.csv"], "good.csv exists already"),
        (["filter", "good.csv", "-o", "out.txt"], "expected .csv or .parquet"),
        (["filter", "good.csv", "-o", "no/where.csv"], "folder no does not exist"),
        (["filter", "good.csv", "--topic", "nope", "-o", "out.csv"], "no topic matches nope"),
        (["filter", "good.csv", "--partition", "x", "-o", "out.csv"], "is not a partition"),
        (["split", "good.csv", "-o", "out.csv"], "--spec split.toml or with --to"),
        (["split", "good.csv", "--to", "a", "-o", "out.csv"], "expected GROUP=TOPICS"),
        (["split", "good.csv", "--to", "g=t", "-o", "out.csv"], "is the source group"),
        (["split", "good.csv", "--spec", "missing.toml", "-o", "out.csv"], "missing.toml does not exist"),
        (["export", "missing.csv", "-o", "out.csv"], "does not exist: check the path"),
        (["export", "good.csv", "-o", "good.csv"], "exists already"),
        (["export", "good.csv", "-o", "out.parquet"], "kafka-consumer-groups takes CSV; name a .csv"),
        (["export", "good.csv", "-o", "out"], "name a .csv"),
        (["apply", "good.csv", "--yes", "--bootstrap-server", "h:1"], "a snapshot of group g"),
        (["apply", "good.csv", "--to-group", "", "--yes", "--bootstrap-server", "h:1"], "--to-group is empty"),
        (
            ["apply", "good.csv", "--to-group", "n", "--bootstrap-server", "h:1"],
            "not a terminal: pass --yes",
        ),
        (["apply", "good.csv", "--to-group", "n", "--settle", "10", "--yes", "--bootstrap-server", "h:1"], "unit"),
        (["apply", "-", "--to-group", "n", "--yes", "--bootstrap-server", "h:1"], "--receipt"),
        (["snapshot", "-o", "out.csv", "--bootstrap-server", "h:1"], "no group given"),
        (["snapshot", "", "-o", "out.csv", "--bootstrap-server", "h:1"], "group name is empty"),
        (["snapshot", "g", "-o", "out.csv", "--bootstrap-server", "nowhere"], "expected host:port"),
        (["verify", "g", "--wait", "5", "--bootstrap-server", "h:1"], "--wait is '5'; expected a duration with a unit"),
        (
            ["verify", "g", "--wait", "10min", "--bootstrap-server", "h:1"],
            "(ms, s, m, h, d or w), such as 10s or 1m30s",
        ),
        (["filter", "good.csv", "--topic", "t:0", "-o", "out.csv"], "pass --topic t --partition 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments_and_files_are_exit_2(cli, arguments, complaint):
    """Each command refuses unusable arguments and files with one line and exit code 2, before any connection.

    No file is created.
    """
    before = {path.name: path.read_bytes() for path in cli.folder.iterdir()}
    assert complaint in cli.fails(*arguments, code=2, stdin=f"{HEADER}\n{ROW}\n" if "-" in arguments else "")
    assert {path.name: path.read_bytes() for path in cli.folder.iterdir()} == before


@pytest.mark.parametrize(
    "command", ["snapshot g -o out.csv", "describe g", "verify g", "apply good.csv --to-group n --yes"]
)
def test_unreachable_broker_is_exit_5(cli, closed_port, command):
    """If no broker listens at the address, snapshot, describe, verify and apply end with exit code 5.

    The error contains the address.
    """
    error = cli.fails(*command.split(), "--bootstrap-server", f"127.0.0.1:{closed_port}", code=5)
    assert f"127.0.0.1:{closed_port}: Connection refused" in error
    assert [path.name for path in cli.folder.iterdir()] == ["good.csv"]


def test_server_that_never_answers_is_exit_5_at_the_timeout(cli):
    """If a server accepts connections and never answers, ``describe`` ends with exit code 5 after ``--timeout``."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert "no answer within 2 s" in cli.fails(
            "describe", "g", "--timeout", "2s", "--bootstrap-server", address, code=5
        )


def test_unknown_host_is_exit_5(cli):
    """If a host name does not resolve, ``describe`` ends with exit code 5, and the error names the host."""
    assert "no-such-host.invalid:9092" in cli.fails(
        "describe", "g", "--bootstrap-server", "no-such-host.invalid:9092", code=5
    )


def test_unreadable_file_is_exit_2(cli):
    """``filter`` refuses a file that is binary or truncated with exit code 2. The error says which of the two it is."""
    (cli.folder / "noise.csv").write_bytes(bytes(range(256)))
    (cli.folder / "cut.csv").write_text(f"{HEADER}\n{ROW[:-3]}")
    (cli.folder / "cut.parquet").write_bytes(b"PAR1 and no more")
    assert "NUL bytes" in cli.fails("filter", "noise.csv", "-o", "out.csv", code=2)
    assert "cut short" in cli.fails("filter", "cut.csv", "-o", "out.csv", code=2)
    assert "not a complete Parquet file" in cli.fails("filter", "cut.parquet", "-o", "out.csv", code=2)


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("list g", "list takes no GROUP: run migrate-groups describe g"),
        ("describe", "no group given: name at least one, or pass --all-groups"),
        ("filter bad.csv -o out.csv", "bad.csv does not exist: check the path"),
        ("filter good.cvs -o out.csv", "good.cvs does not exist: did you mean good.csv?; if it is a group"),
        ("verify g --topic t:0", "t:0 names a partition: pass --topic t --partition 0 to filter or rewind"),
        ("apply good.csv --to-group g --yes", "the file is a snapshot of group g: to write it back, pass --restore"),
        ("apply good.csv --to-group n --restore --yes", "--restore writes a snapshot back to its own group: drop"),
        ("snapshoot g", "unknown command snapshoot: did you mean snapshot?"),
        ("frobnicate", "unknown command frobnicate: see migrate-groups --help"),
        ("apply good.csv --to-grp n", "unknown option --to-grp: did you mean --to-group?"),
        ("apply good.csv --xyzzy", "unknown option --xyzzy: see"),
        ("sandbox --port 9092", "unknown option --port: see"),
        ("rewind good.csv --to-earliest --to-group n", "unknown option --to-group: pass it to apply"),
        ("watch --group g", "unknown option --group: GROUP is an argument here: name it without an option"),
        ("--timeout 5s describe g", "unknown option --timeout: options come after the command"),
        (
            "filter good.csv --topic t more.csv much.csv -o out.csv",
            "unexpected arguments more.csv, much.csv: quote a glob",
        ),
        ("filter", "missing argument 'FILE': see"),
        ("describe g --timeout", "option '--timeout' requires an argument"),
        ("apply good.csv --execute", "unknown option --execute: leave it out, because apply and migrate write"),
        ("--describe --group g", "unknown option --describe: run migrate-groups describe"),
        ("--reset-offsets --group g", "unknown option --reset-offsets: run migrate-groups rewind"),
        ("--list", "unknown option --list: run migrate-groups list"),
        ("describe g --members", "unknown option --members: leave it out"),
        ("describe g --offsets", "unknown option --offsets: leave it out"),
        ("describe g --state", "unknown option --state: leave it out"),
        ("snapshot --all-groups -o out.csv", "unknown option --all-groups: name each group"),
        ("snapshot g --all-topics -o out.csv", "unknown option --all-topics: leave it out"),
        ("filter good.csv --topics t,u -o out.csv", "unknown option --topics: it is --topic here"),
        ("split good.csv --to-topic t -o out.csv", "unknown option --to-topic: it is --topic here"),
        ("describe -b h:1 g", "unknown option -b: it is --bootstrap-server here"),
    ],
)
def test_a_command_line_with_a_mistake_is_one_line_that_says_what_to_type(cli, command, complaint):
    """A mistake in a command line ends with exit code 2 and a one-line error that says what is wrong.

    The mistakes are unknown commands and options, options of Kafka's tools, and missing or extra arguments.
    """
    done = cli(*command.split(), code=2)
    assert done.stderr.startswith(f"error: {complaint}")
    assert (done.stderr.count("\n"), done.stdout) == (1, "")


@pytest.fixture
def files(cli) -> Cli:
    """The command line in a folder with one file of each kind."""
    semicolons = f"{HEADER}\n{ROW}\n".replace(",", ";")
    described = "\nGROUP  TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG\ng      t      0          5    9   4\n"
    texts = {
        "split.csv": f"{HEADER}\n{ROW}\n",
        "semicolons.csv": semicolons,
        "tabs.csv": semicolons.replace(";", "\t"),
        "described.txt": described,
        "sheet.csv": "PK\x03\x04\x14\0\x06\0",
        "split.toml": 'source = "g"\n[[target]]\ngroup = "new"\ntopics = ["t"]\n',
        "client.properties": "security.protocol=SSL\nbootstrap.servers=h:1\n",
        "split.toml.run/plan.json": '{\n "schema": "migrate-groups/plan",\n "schema_version": 6\n}\n',
        "split.toml.run/receipt.json": '{\n "schema": "migrate-groups/receipt",\n "schema_version": 6\n}\n',
    }
    (cli.folder / "split.toml.run").mkdir()
    for name, text in texts.items():
        (cli.folder / name).write_text(text)
    return cli


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (
            "filter semicolons.csv -o out.csv",
            "is a CSV file with semicolons or tabs, not a snapshot: save it with commas",
        ),
        ("filter tabs.csv -o out.csv", "is a CSV file with semicolons or tabs, not a snapshot: save it with commas"),
        ("filter sheet.csv -o out.csv", "is a spreadsheet, not a snapshot: save it as CSV with commas"),
        (
            "filter described.txt -o out.csv",
            "is the output of kafka-consumer-groups --describe, not a snapshot: take a snapshot",
        ),
        ("filter client.properties -o out.csv", "is a file of client properties, not a snapshot: pass it as"),
        ("apply split.toml --to-group n --yes", "is a split spec, not a snapshot: pass it to migrate, or to split"),
        (
            "apply split.toml.run --yes",
            "is a run directory: pass it to status, rollback",
        ),
        ("apply split.toml.run/receipt.json --yes", "is a receipt, not a plan: pass it to status, rollback, hand-back"),
        ("filter split.toml.run/plan.json -o out.csv", "is a plan, not a snapshot: pass it to apply as a .json file"),
        ("watch g --until split.toml", "is a split spec, not a snapshot: pass it to migrate"),
        ("migrate split.csv", "is a snapshot, not a split spec: pass it to apply, split"),
        ("migrate split.toml.run", "is a run directory: pass it to status"),
        ("split split.csv --spec split.csv -o out.csv", "is a snapshot, not a split spec: pass it to apply, split"),
        ("migrate big-group", "does not exist: name a split spec, a .toml file"),
        (
            "rewind big-group --to-earliest -o out.csv",
            "does not exist: name a .csv or .parquet file; if it is a group, run migrate-groups snapshot big-group -o "
            "before.csv first, or pass in place of the file --from-group big-group --to-group NEW to apply, or "
            "--group big-group to rewind",
        ),
        (
            "rollback split.csv --yes",
            "is a snapshot, not a receipt: pass the receipt of its write (there is none beside it), or the run dir",
        ),
        ("rollback split.toml --yes", "is a split spec, not a receipt: pass its run directory, split.toml.run"),
        ("rollback split.toml.run/plan.json --yes", "is a plan, not a receipt: pass the receipt of its write"),
        ("hand-back client.properties --yes", "is a file of client properties, not a receipt: pass it as"),
    ],
)
def test_a_file_of_another_kind_is_recognised(files, command, complaint):
    """If a command gets a file of a kind that it does not accept, the error names the kind. The exit code is 2.

    The error also says what to do with the file.
    """
    assert complaint in files.fails(*command.split(), code=2)


def test_a_plan_is_approved_by_a_plan_only(files):
    """If ``migrate --approved`` gets a receipt, the exit code is 2, and the error says that the file is not a plan."""
    refused = files.fails("migrate", "split.toml", "--approved", "split.toml.run/receipt.json", "--yes", code=2)
    assert "split.toml.run/receipt.json is a receipt, not a plan" in refused


def test_a_snapshot_with_a_mistake_is_still_a_snapshot(cli):
    """A snapshot with an invalid cell is not taken for another kind of file.

    The error names the line and the column of the cell.
    """
    row = ROW.replace(",g,", ",[[target]] CURRENT-OFFSET,").replace(",5,", ",five,")
    (cli.folder / "wrong.csv").write_text(f"{HEADER}\n{row}\n")
    assert "wrong.csv, line 2: offset is 'five'" in cli.fails("filter", "wrong.csv", "-o", "out.csv", code=2)


def test_no_argument_at_all_shows_the_help(cli):
    """Without any argument, ``migrate-groups`` prints its help to stderr, and ends with exit code 2."""
    done = cli(code=2)
    assert done.stderr == cli("--help").stdout
    assert done.stdout == ""


def test_existing_file_is_replaced_only_with_force(cli):
    """An output file that exists is replaced only with ``--force``. Without this option, the exit code is 2."""
    (cli.folder / "out.csv").write_text("precious\n")
    assert "--force" in cli.fails("filter", "good.csv", "-o", "out.csv", code=2)
    assert (cli.folder / "out.csv").read_text() == "precious\n"
    cli("filter", "good.csv", "-o", "out.csv", "--force")
    assert (cli.folder / "out.csv").read_text() == (cli.folder / "good.csv").read_text()


def test_version_and_help(cli):
    """``migrate-groups --version`` and ``--help`` print to stdout, with exit code 0."""
    assert cli.cold("--version").stdout.startswith("migrate-groups ")
    assert "Usage:" in cli.cold("apply", "--help").stdout


def test_a_mistyped_group_is_answered_with_the_similar_name(cli, world):
    """If the named group does not exist, each command asks whether the group with a similar name is meant.

    The exit code is 3.
    """
    topic, group = world.create_topic(), world.name("payments-and-refunds")
    world.commit(group, TopicPartition(topic, 0), 0)
    typed = group.replace("payments", "paymints")
    (cli.folder / "typed.toml").write_text(f'source = "{typed}"\n[[target]]\ngroup = "n"\ntopics = ["{topic}"]\n')
    for command in (
        *(f"describe {typed}", f"snapshot {typed} -o out.csv", f"verify {typed}", f"watch {typed}"),
        *(f"delete-group {typed} --yes", f"rewind --group {typed} --to-earliest -o out.csv"),
        *("migrate typed.toml --dry-run", "migrate typed.toml --yes"),
    ):
        error = cli.fails(*command.split(), "--bootstrap-server", world.bootstrap_servers, code=3)
        assert error == f"error: group {typed!r} does not exist on this cluster: did you mean {group}?"


def test_group_name_too_long_for_a_request_is_refused(bootstrap_servers, tmp_path):
    """Commands such as ``describe`` refuse a group name of 40,000 bytes with exit code 2 and a short error."""
    cli = Cli(tmp_path, bootstrap_servers)
    for arguments in (["describe"], ["snapshot", "-o", "x.csv"], ["delete-group", "--yes"], ["verify"]):
        refused = cli.fails(arguments[0], "x" * 40_000, *arguments[1:], code=2)
        assert "a name of 40,000 bytes: pass a name of at most 32,767 bytes" in refused
        assert len(refused) < 200
    missing = cli.fails("describe", "x" * 32_767, code=3)
    assert "does not exist" in missing
    assert len(missing) < 320
