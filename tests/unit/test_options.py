"""Which values of command-line options and keys of a spec file are accepted, and which errors the others cause."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from migrate_groups.api import clients
from migrate_groups.api.snapshot import load_split
from migrate_groups.errors import ClusterUnavailable, InvalidInput, UsageError
from migrate_groups.files import split_toml
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.snapshots.times import parse_duration
from tests.support.cli import CliHere


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("10s", 10), ("500ms", 0.5), ("1m30s", 90), ("2h", 7200), ("1d", 86400), ("1.5s", 1.5)],
)
def test_durations_with_a_unit_are_accepted(text, seconds):
    """A duration such as ``500ms``, ``10s``, ``1m30s`` or ``2h`` is accepted and converted to seconds."""
    assert parse_duration(text, "--settle") == seconds


@pytest.mark.parametrize("text", ["", "10", "10min", "-5s", "s", "10 s", "10S", "1e3s", "10s5"])
def test_durations_without_a_unit_are_refused(text):
    """A duration without a valid unit is refused, because Kafka's tools take a bare number as milliseconds."""
    with pytest.raises(UsageError, match=r"--settle is .*expected a duration with a unit \(ms, s, m, h, d or w\)"):
        parse_duration(text, "--settle")


@pytest.mark.parametrize("text", ["25d", "999999999999999999999999999999d", "9" * 400 + "s", "24d" * 2])
def test_durations_beyond_what_kafka_takes_are_refused(text):
    """A duration over 24 days is refused, because Kafka's protocol sends timeouts in milliseconds as 32-bit numbers."""
    with pytest.raises(UsageError, match=r"--timeout is .*; expected a duration of at most 24d") as raised:
        parse_duration(text, "--timeout")
    assert len(str(raised.value)) < 200
    assert parse_duration("24d", "--timeout") == 24 * 86400


def test_bootstrap_servers_are_host_and_port():
    """Bootstrap servers are written as ``host:port``, separated by commas, with IPv6 addresses in brackets.

    Every other text is a usage error that shows the expected form.
    """
    config = ClientConfig(bootstrap_servers="a:9092, [::1]:9093")
    assert config.addresses() == [("a", 9092), ("::1", 9093)]
    config = ClientConfig(bootstrap_servers="kafka_1.example.com.:9092,bücher.example:9092,[fe80::1%eth0]:9092")
    assert [host for host, _ in config.addresses()] == ["kafka_1.example.com.", "bücher.example", "fe80::1%eth0"]
    for wrong in (
        *("", "localhost", "localhost:", ":9092", "a:b", "a:0", "a:70000", f"a:{'9' * 5000}", "a:٣"),
        *("..:9092", "a..b:9092", f"{'x' * 64}:9092", "a\udcff:9092", "a b:9092", "a\0:9092"),
        *("[::1:9092", "::1]:9092", "[]:9092", "[[::1]]:9092"),
    ):
        with pytest.raises(UsageError, match=r"^not? (a )?bootstrap server: .*host:port"):
            ClientConfig(bootstrap_servers=wrong)
    for wrong, advice in (("a:1;b:2", "separate brokers with commas"), ("http://a:1", "leave out the protocol")):
        with pytest.raises(UsageError, match=advice):
            ClientConfig(bootstrap_servers=wrong)


def test_a_time_out_of_zero_is_refused(tmp_path):
    """``--timeout 0s`` is refused with exit code 2 before a connection is opened, because no broker could answer."""
    assert "--timeout is 0 s, in which no broker can answer" in CliHere(tmp_path).fails(
        "list", "--bootstrap-server", "h:1", "--timeout", "0s", code=2
    )


def test_without_a_bootstrap_server_the_three_ways_to_give_one_are_named(tmp_path):
    """Without a bootstrap server, the error names the option, the environment variable and the property that give one.

    A misspelled property is named in a warning before the error.
    """
    (tmp_path / "client.properties").write_text("bootstrap.server=h:1\nsecurity.protocol=PLAINTEXT\n")
    done = CliHere(tmp_path)("describe", "g", "--command-config", "client.properties", code=2)
    warning, error = done.stderr.splitlines()
    assert warning.endswith("PLAINTEXT: bootstrap.server (did you mean bootstrap.servers?)")
    assert error == (
        "error: no bootstrap server: pass --bootstrap-server host:port, or set MIGRATE_GROUPS_BOOTSTRAP_SERVER, or "
        "bootstrap.servers in --command-config"
    )


@pytest.mark.parametrize("to", ["", "to-"])
def test_a_variable_and_properties_that_name_different_clusters_are_refused(tmp_path, monkeypatch, to):
    """If environment variable and properties file name different bootstrap servers, the command ends with exit code 2.

    It connects if the option ``--bootstrap-server`` says which cluster is meant, or if both name the same servers in
    another order.
    """
    connects_to = "target" if to else ""

    def opened(config: ClientConfig, **_: bool) -> mock.MagicMock:
        if config.side == connects_to:
            raise ClusterUnavailable(f"connected to {config.bootstrap_servers}")
        return mock.MagicMock()

    monkeypatch.setattr(clients, "open_reader", opened)
    monkeypatch.setattr(clients, "open_side", opened)
    (tmp_path / "client.properties").write_text("bootstrap.servers=b:1,c:2\n")
    cli, variable = CliHere(tmp_path), f"MIGRATE_GROUPS_{to.replace('-', '_').upper()}BOOTSTRAP_SERVER"
    cli.environment |= {"MIGRATE_GROUPS_BOOTSTRAP_SERVER": "a:1", variable: "a:1"}
    command = [*(("compare", "g") if to else ("list",)), f"--{to}command-config", "client.properties"]
    assert cli.fails(*command, code=2) == (
        f"error: {variable} is a:1, but bootstrap.servers of the client properties is b:1,c:2: "
        f"pass --{to}bootstrap-server to say which cluster"
    )
    assert cli.fails(*command, f"--{to}bootstrap-server", "a:1", code=5) == "error: connected to a:1"
    cli.environment[variable] = "c:2, b:1"
    assert cli.fails(*command, code=5) == "error: connected to c:2, b:1"


@pytest.mark.parametrize("text", ['source = "g"\n[[target]]\ngroup = "g"\ntopics = ["t"]\n', 'groups = ["g"]\n'])
@pytest.mark.parametrize(("option", "writes"), [("--dry-run", False), ("--yes", True)])
def test_only_a_real_move_opens_a_writer_on_the_old_groups_cluster(tmp_path, monkeypatch, text, option, writes):
    """`migrate` to another cluster opens a client that can write on the old group's cluster, but not in a dry run."""

    def opened(config: ClientConfig, *, writes: bool = False) -> None:
        raise ClusterUnavailable(f"{config.side} opened, writes: {writes}")

    monkeypatch.setattr(clients, "open_side", opened)
    (tmp_path / "spec.toml").write_text(text)
    servers = ("--bootstrap-server", "a:1", "--to-bootstrap-server", "b:1")
    said = CliHere(tmp_path).fails("migrate", "spec.toml", option, *servers, code=5)
    assert said == f"error: source opened, writes: {writes}"


def spec(tmp_path, text):
    path = tmp_path / "split.toml"
    path.write_text(text)
    return split_toml.load(path)


GOOD = 'source = "g"\n[[target]]\ngroup = "a"\ntopics = ["x"]\n'


def test_options_of_a_spec_are_read(tmp_path):
    """The options of the write are read from ``[options]`` of the spec, and ``fan_out`` from its top level."""
    read = spec(
        tmp_path, "fan_out = true\n" + GOOD + '[options]\non_uncommitted = "earliest"\nsettle = "1m"\nguard = "0s"\n'
    )
    assert (read.options.on_uncommitted, read.options.settle, read.options.guard) == ("earliest", 60, 0)
    assert read.spec.fan_out


def test_a_spec_is_named_by_a_path_or_a_text(tmp_path):
    """In Python the path of a spec file may be a `Path` or a `str`."""
    file = tmp_path / "split.toml"
    file.write_text(GOOD)
    named: Any = str(file)
    assert load_split(named) == load_split(file)


def test_a_spec_from_a_pipe_is_read_once(tmp_path):
    """A spec that comes from a pipe, such as ``<(cat split.toml)``, is read only once.

    The loader returns its bytes together with the spec.
    """
    reading, writing = os.pipe()
    with open(writing, "w") as file:  # noqa: PTH123 (a file descriptor)
        file.write(GOOD)
    read = split_toml.load(Path(f"/dev/fd/{reading}"))
    os.close(reading)
    assert (read.spec.source, read.content) == ("g", GOOD.encode())


def test_a_spec_with_a_byte_order_mark_is_read(tmp_path):
    """A byte order mark at the start of a spec, which editors on Windows add, is ignored."""
    assert spec(tmp_path, f"\ufeff{GOOD}").spec == spec(tmp_path, GOOD).spec


@pytest.mark.parametrize("mode", ["--dry-run", "--yes"])
def test_a_run_directory_that_cannot_be_made_is_refused(tmp_path, mode):
    """If ``--run-dir`` is a file, or its parent folder does not exist, `migrate` ends with exit code 2.

    It does so before it contacts the cluster.
    """
    spec(tmp_path, GOOD)
    cli = CliHere(tmp_path)
    assert cli.fails("migrate", "split.toml", "--run-dir", "split.toml", mode, code=2) == (
        "error: split.toml is a file, not a folder: name another folder with --run-dir"
    )
    assert cli.fails("migrate", "split.toml", "--run-dir", "nodir/run", mode, code=2) == (
        "error: nodir/run can't be made: folder nodir does not exist; make it first, or name another folder with "
        "--run-dir"
    )


def test_two_new_names_for_one_group_are_refused(tmp_path):
    """If ``--rename`` is given twice for one group, the command ends with exit code 2, and neither name is used."""
    spec(tmp_path, GOOD)
    error = CliHere(tmp_path).fails("migrate", "split.toml", "--rename", "a=b", "--rename", "a=c", "--dry-run", code=2)
    assert error == "error: --rename is given more than once for group a: give one name"


SPLIT = 'source = "g"\n[[target]]\ngroup = "a"\n'


@pytest.mark.parametrize(
    "key",
    ["a" + ".a" * 20_000, "[a" + ".a" * 20_000 + "]", '"a"' + ' . "a"' * 20_000, "x = { a" + ".a" * 20_000 + " = 1 }"],
    ids=["key", "table", "quoted", "inline"],
)
def test_a_key_with_thousands_of_parts_is_refused_before_it_is_parsed(tmp_path, monkeypatch, key):
    """A spec file with a key of very many parts, for which the TOML parser would take gigabytes, is refused."""
    monkeypatch.setattr(tomllib, "loads", None)
    (tmp_path / "split.toml").write_text(f'{SPLIT}topics = ["t"]\n{key} = 1\n')
    with pytest.raises(InvalidInput, match="has more parts than any key of a spec"):
        split_toml.load(tmp_path / "split.toml")


DOTS = "a." * 120


@pytest.mark.parametrize(
    "topics",
    [
        f'["{DOTS}", "\\"{DOTS}"] # {DOTS}',
        f"['{DOTS}'] # it's {DOTS}",
        f'["""\n{DOTS}""", """{DOTS}"""""]',
        f"['''\n{DOTS}''', '''{DOTS}''''']",
    ],
)
def test_strings_and_comments_may_have_any_number_of_dots(tmp_path, topics):
    """In a spec file, topic names and comments with many dots are accepted."""
    (tmp_path / "split.toml").write_text(f"{SPLIT}topics_regex = {topics}\n")
    (target,) = split_toml.load(tmp_path / "split.toml").spec.targets
    assert all(DOTS in pattern.pattern for pattern in target.topics)


def test_a_spec_of_many_megabytes_is_refused(tmp_path):
    """A spec file of more than 16 MB is refused before it is read."""
    with (tmp_path / "split.toml").open("wb") as file:
        file.truncate(16_000_001)
    with pytest.raises(InvalidInput, match=r"larger than 16,000,000 bytes: name a split spec, or write it with globs"):
        split_toml.load(tmp_path / "split.toml")


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_folder_in_place_of_a_spec_is_refused(tmp_path, path):
    """If the spec's path is a folder, or empty as from an unset shell variable, `migrate` ends with exit code 2.

    With ``--format json`` the error is printed as JSON too.
    """
    status, out, err = CliHere(tmp_path).outcome("migrate", path, "--dry-run", "--format", "json")
    message = f"{path or '.'} is a folder: name a file in it"
    assert (status, err) == (2, f"error: {message}\n")
    assert json.loads(out)["error"]["message"] == message


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("source = ", "is not TOML"),
        (f"source = {'1' * 5000}", "is not TOML"),
        (f"source = {'[' * 5000}", "is not TOML"),
        (GOOD + "topics_regex = ['a{2000}']", "is not a regular expression"),
        ("[[target]]\ngroup='a'\ntopics=['x']", "expected source"),
        ("source='g'\n[target]\ngroup='a'", r"write \[\[target\]\]"),
        ("source='g'\n[[target]]\ntopics=['x']", "has no group"),
        ("source='g'\n[[target]]\ngroup='a'\ntopics='x'", "not a list of names"),
        (
            "source='g'\n[[target]]\ngroup='a'\ntopic=['x']",
            "unknown key topic in .*: did you mean topics",
        ),
        ("source='g'\n[[target]]\ngroup='a'\ntopics_regex=['(']", "not a regular expression"),
        (GOOD + "topics_regex = ['a)|(b']", "not a regular expression"),
        (GOOD + "topics_regex = ['(?!test).*']", "no look-around and no back-references: invalid perl operator: ..!"),
        (GOOD + r"topics_regex = ['(a)\1']", r"invalid escape sequence: .1"),
        (
            GOOD + "[options]\non_uncommited = 'start'",
            "unknown key on_uncommited in .options.: did you mean on_uncommitted",
        ),
        (GOOD + "[options]\non_uncommitted = 'end'", "on_uncommitted is 'end'; expected one of"),
        (GOOD + "[options]\nsettle = 10", "option settle must be text"),
        (GOOD + "[options]\nsettle = '10'", "settle is '10'; expected a duration"),
        (GOOD + "[stay]\ngroups = ['x']", "unknown key groups in .stay.: expected topics, topics_regex"),
    ],
)
def test_an_invalid_spec_is_refused_with_the_key(tmp_path, text, complaint):
    """A spec that is not TOML, or has an unknown key or a wrong value, is refused; the error says what is wrong."""
    with pytest.raises(InvalidInput, match=complaint):
        spec(tmp_path, text)
