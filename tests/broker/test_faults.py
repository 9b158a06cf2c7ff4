"""Faults during migrations on three brokers: the errors are clear, and each record is processed once."""

from __future__ import annotations

import json
import signal
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from tests.support.broker_world import until
from tests.support.campaign.faults import FAULTS
from tests.support.campaign.run import Result, drawn, run
from tests.support.campaign.scenarios import Kip848
from tests.support.cli import Cli, CliHere, running, waiting
from tests.support.old_application import OldApplication
from tests.support.processes import gone
from tests.support.specs import split_spec
from tests.support.three_brokers import LISTENERS, SETTINGS, ThreeBrokers
from tests.support.versions import NEEDS_KIP_848, NEEDS_THREE_BROKERS

pytestmark = NEEDS_THREE_BROKERS

SEEDS = {
    128: ("`rollback`", "tool killed at a hung coordinator"),
    34: ("a topic out of a group that lives on", "coordinator moved"),
    165: ("a whole group", "run directory read-only"),
    10: ("a fleet", "coordinator killed"),
}
MORE_SEEDS = [
    pytest.param(seed, marks=NEEDS_KIP_848 if drawn(seed)[0] is Kip848 else [])
    for seed in (51, *(11 * fault + 7 * fault % 11 for fault in range(len(FAULTS)) if fault != 11))
]


@pytest.fixture(scope="module")
def cluster(java: Java, kafka_jars: KafkaJars):
    """A cluster of three brokers, shared by all tests of this module."""
    with start_sandbox(
        kafka_jars, java=java, brokers=3, timeout=120, listeners=LISTENERS, settings=SETTINGS
    ) as sandbox:
        yield ThreeBrokers(sandbox)


@pytest.fixture
def brokers(cluster: ThreeBrokers):
    """The cluster, with all brokers running before and after the test."""
    cluster.heal()
    yield cluster
    cluster.heal()


@pytest.fixture
def cli(brokers: ThreeBrokers, tmp_path: Path) -> Cli:
    """The command line in an empty folder, with the addresses of all three brokers."""
    return Cli(tmp_path, brokers.bootstrap_servers)


class Old:
    """A source group with two topics of ten records a partition, and a spec with a target group for each topic."""

    def __init__(self, brokers: ThreeBrokers, folder: Path, *, find_only_on: int | None = None) -> None:
        self.brokers = brokers
        self.group, self.pay_group, self.find_group = (brokers.name(each) for each in ("old", "pay-new", "find-new"))
        self.pay = brokers.create_topic("pay")
        self.find = brokers.create_topic("find", 1 if find_only_on else 2, only_on=find_only_on)
        self.partitions = brokers.partitions([self.pay, self.find])
        brokers.produce({each: [f"{each}-{number}" for number in range(10)] for each in self.partitions})
        brokers.flush()
        self.positions = {each: 4 + each.partition for each in self.partitions}
        brokers.commit(self.group, self.positions)
        targets = {self.pay_group: self.pay, self.find_group: self.find}
        (folder / "split.toml").write_text(split_spec(self.group, targets))

    def committed(self) -> dict[TopicPartition, int]:
        """Return the committed offsets of the target groups."""
        return {
            partition: offset
            for group, topic in ((self.pay_group, self.pay), (self.find_group, self.find))
            for partition, offset in self.brokers.committed(group, self.brokers.partitions([topic])).items()
        }

    def processed(self) -> Counter[str]:
        """Return how often the source group and the target groups have processed each record."""
        counts = Counter(f"{each}-{number}" for each in self.partitions for number in range(self.positions[each]))
        for group, topic in ((self.pay_group, self.pay), (self.find_group, self.find)):
            counts += self.brokers.drain(group, [topic], reset="latest")
        return counts

    def each_once(self) -> Counter[str]:
        return Counter(f"{each}-{number}" for each in self.partitions for number in range(10))


def test_committed_offsets_survive_a_broker_failure(brokers):
    """Committed offsets survive if one broker is killed. A broker that restarts keeps its address and its data."""
    partition = TopicPartition(brokers.create_topic("kept"), 0)
    brokers.commit("supervisor", {partition: 7})
    first = brokers.coordinator("supervisor")
    pid, address = first.pid, first.bootstrap_servers
    first.kill()
    assert gone(pid)
    assert brokers.committed("supervisor", [partition]) == {partition: 7}
    brokers.heal()
    assert (first.pid, first.bootstrap_servers) != (pid, address)
    assert first.bootstrap_servers == address
    first.hang()
    first.go_on()
    first.stop()
    brokers.heal()
    assert brokers.committed("supervisor", [partition]) == {partition: 7}


def test_sandbox_prints_the_process_id_of_each_broker(tmp_path, kafka_jars, monkeypatch):
    """``sandbox --brokers 2`` prints the address and the process id of each broker; if it is killed, both
    brokers end.
    """
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with running(Cli(tmp_path), "sandbox", "--brokers", "2") as process:
        addresses = process.stdout.readline().strip().split(",")
        process.send_signal(signal.SIGKILL)
        told = [line.split() for line in process.stderr if line.startswith("broker ")]
    assert [words[3].rstrip(",") for words in told] == addresses
    assert [words[1] for words in told] == ["1", "2"]
    until(lambda: all(gone(int(words[-1])) for words in told) and not list(temporary.iterdir()))


def is_claim(offsets) -> bool:
    return all(group.startswith(journal_group("")) for group in offsets)


def test_new_coordinator_gets_the_offsets_after_the_first_is_killed(brokers, cli, monkeypatch):
    """If a target group's coordinator is killed just before the write, the offsets are written to the group's next
    coordinator.
    """
    old = Old(brokers, cli.folder)
    alter, groups = KafkaPythonWriter.alter_offsets, []

    def killing(self, offsets):
        if not is_claim(offsets):
            groups.append([*offsets])
        if is_claim(offsets) or len(groups) > 1:
            return alter(self, offsets)
        answers = alter(self, {old.find_group: offsets[old.find_group]})
        brokers.coordinator(old.pay_group).kill()
        return {**answers, **alter(self, {old.pay_group: offsets[old.pay_group]})}

    monkeypatch.setattr(KafkaPythonWriter, "alter_offsets", killing)
    CliHere(cli.folder, brokers.bootstrap_servers)("migrate", "split.toml", "--yes")
    assert groups[0] == [old.find_group, old.pay_group]
    assert old.committed() == old.positions
    receipt = json.loads((cli.folder / "split.toml.run" / "receipt.json").read_text())
    assert {entry["outcome"] for entry in receipt["entries"]} == {"confirmed"}


@pytest.mark.parametrize("command", ["migrate split.toml --yes", "describe {group}"])
def test_hung_coordinator_is_exit_5_within_the_timeout(brokers, cli, command):
    """If two of three brokers hang, `migrate` and `describe` end at the timeout with exit code 5 and a one-line error.

    Nothing is written.
    """
    old = Old(brokers, cli.folder)
    coordinator = brokers.coordinator(old.group)
    other = next(node for node in brokers.sandbox.nodes if node is not coordinator)
    brokers.hang(coordinator, other)
    arguments = command.format(group=old.group).split()
    done = cli(*arguments, "--timeout", "3s", code=5, seconds=30)
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")] == done.stderr.splitlines()[-1:]
    assert "Traceback" not in done.stderr
    brokers.heal()
    assert old.committed() == {}


def test_partition_without_a_leader_is_refused(brokers, cli):
    """If a partition has no leader, `migrate` is refused and writes nothing; after the broker has restarted, `migrate`
    works.
    """
    old = Old(brokers, cli.folder, find_only_on=3)
    brokers.sandbox.nodes[2].kill()
    refusal = cli.fails("migrate", "split.toml", "--yes", code=3)
    assert f"{old.find}-0" in refusal
    assert "leader" in refusal
    brokers.heal()
    assert old.committed() == {}
    cli("migrate", "split.toml", "--yes")
    assert old.committed() == old.positions


def test_an_unclean_election_is_noticed_even_after_the_log_has_grown_again(brokers, cli):
    """If an unclean election lost records below a committed offset, `migrate` is refused, even if the log has grown
    beyond it.

    The check compares the leader epoch that the old application committed with the offset. After the election, the log
    end offset that was already read is read again.
    """
    _, first, second = brokers.sandbox.nodes
    unclean = {"unclean.leader.election.enable": "true"}
    partition = TopicPartition(brokers.create_topic("cut", 1, only_on=(first.node_id, second.node_id), **unclean), 0)
    brokers.produce({partition: [f"kept-{number}" for number in range(10)]})
    brokers.flush()
    second.stop()
    brokers.produce({partition: [f"lost-{number}" for number in range(10)]})
    brokers.flush()
    old, new = brokers.name("old"), brokers.name("new")
    with closing(brokers.consumer(old, **{"auto.offset.reset": "earliest"})) as application:
        application.subscribe([partition.topic])
        until(lambda: 19 in {message.offset() for message in application.consume(20, 0.5)}, seconds=60)
        application.commit(asynchronous=False)
    (cli.folder / "split.toml").write_text(split_spec(old, {new: partition.topic}))
    cli("migrate", "split.toml", "--dry-run")
    with closing(KafkaPythonWriter(ClientConfig(bootstrap_servers=brokers.bootstrap_servers, timeout=60))) as reader:
        assert reader.log_ranges([partition]) == {partition: LogRange(start=0, end=20)}
        first.kill()
        second.start()
        until(lambda: brokers.leader(partition) == second.node_id, seconds=60)
        assert reader.log_ranges([partition], {partition: 20}) == {partition: LogRange(start=0, end=10)}
    # Of another producer, because the sequence numbers of the first one are ahead of this log.
    with brokers.new_producer() as producer:
        for number in range(30):
            producer.produce(partition.topic, value=f"other-{number}", partition=partition.partition)
        assert producer.flush(60) == 0
    refused = cli.fails("migrate", "split.toml", "--dry-run", code=3)
    assert f"{partition} at 20: from 10 on there are other records than the group has read" in refused
    brokers.commit(old, {partition: 10})
    cli("migrate", "split.toml", "--yes")
    assert brokers.committed(new, [partition]) == {partition: 10}


@pytest.mark.parametrize(
    "fault",
    [
        "coordinator restarted",
        pytest.param("rolling restart", marks=pytest.mark.long),
        pytest.param("whole cluster killed and restarted", marks=pytest.mark.long),
    ],
)
def test_migrate_keeps_waiting_while_the_cluster_fails(brokers, cli, fault):
    """If brokers restart while `migrate` waits for the source group to stop, the wait continues.

    The target groups start where the source group has stopped: each record is processed once.
    """
    old = Old(brokers, cli.folder)
    # Not 0 s, because a coordinator that has just restarted may show an old state of its groups, for example Empty.
    settle = ("--settle", "3s")
    application = OldApplication(brokers, old.group, [old.pay, old.find], old.positions)
    until(application.joined)
    with waiting(cli, "migrate", "split.toml", "--yes", "--wait", "120s", *settle):
        if fault == "coordinator restarted":
            brokers.coordinator(old.group).stop()
            brokers.heal()
        elif fault == "rolling restart":
            brokers.roll()
        else:
            for node in brokers.sandbox.nodes:
                node.kill()
            brokers.heal()
        application.stop()
    old.positions = application.positions
    assert old.committed() == old.positions
    assert old.processed() == old.each_once()


def judged(seed: int, brokers: ThreeBrokers, folder: Path) -> Result:
    """Run the random fault of this seed during a migration, and return the result.

    If a run gives no verdict, because brokers came back late, run the seed once more.
    """
    first, second = folder / "first", folder / "second"
    for each in (first, second):
        each.mkdir()
    done = run(seed, brokers, first)
    return run(seed, brokers, second) if done.no_verdict else done


@pytest.mark.parametrize("seed", SEEDS)
def test_rerun_after_a_random_fault(brokers, tmp_path, seed):
    """If a random fault interrupts a command, the receipt is correct, and a re-run completes the command.

    Each record is processed once.
    """
    done = judged(seed, brokers, tmp_path)
    assert (done.scenario, done.fault) == SEEDS[seed]
    assert done.halted, done.errors
    assert (done.problems, done.no_verdict) == ([], "")
    assert done.records > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_rerun_after_more_random_faults(brokers, tmp_path, seed):
    """If one of further random faults interrupts a command, a re-run completes it, and each record is processed once.

    With seed 51, the brokers apply a deletion although they answered it with an error.
    """
    done = judged(seed, brokers, tmp_path)
    if done.left_out:
        pytest.skip(done.left_out)
    assert (done.problems, done.no_verdict) == ([], "")
