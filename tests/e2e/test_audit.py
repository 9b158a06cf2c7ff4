"""``audit`` of a hand-over on the command line, from a real broker's offsets topic."""

from __future__ import annotations

import itertools
from contextlib import closing

import confluent_kafka
import pytest
from kafka import KafkaAdminClient

from migrate_groups.files.runs import stop_checkpoint_parquet
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.offsets_topic import KafkaOffsetsTopic
from migrate_groups.model.offsets_topic import log_partition
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.spark.offsets_topic.audit import (
    COMMITTED_BEFORE_MEMBERS,
    COMMITTED_WITHOUT_MEMBERS,
    IS_RECREATED,
)
from tests.support.broker_world import broker_world, until, wait_for_coordinators
from tests.support.cli import Cli, CliHere
from tests.support.documents import parsed
from tests.support.specs import split_spec
from tests.support.versions import CONSUMER, NEEDS_TOPIC_IDS, NEEDS_TRANSACTIONS


class HandedOver:
    """A group with three topics of two partitions, which `migrate` has split into a group for each topic."""

    def __init__(self, cli: Cli, world) -> None:
        self.world, self.old = world, world.name("big")
        self.topics = [world.create_topic(2, topic=world.name(name)) for name in ("alpha", "beta", "gamma")]
        self.groups = [f"{self.old}-{name}" for name in ("alpha", "beta", "gamma")]
        for topic in self.topics:
            for partition in (0, 1):
                world.produce(topic, partition, 10)
                world.commit(self.old, TopicPartition(topic, partition), 4)
        world.leave(world.join(self.old, self.topics[0]))  # or Kafka before 4.0 deletes the group without a record
        targets = dict(zip(self.groups, self.topics, strict=True))
        (cli.folder / "split.toml").write_text(split_spec(self.old, targets))
        cli("migrate", "split.toml", "--yes")

    def commit_without_membership(self, number: int, offset: int) -> None:
        """Commit an offset for topic ``number`` by a consumer that uses ``assign()`` and is no member of the group."""
        partitions = [confluent_kafka.TopicPartition(self.topics[number], each, offset) for each in (0, 1)]
        simple = self.world.consumer(self.groups[number])
        simple.assign(partitions)
        simple.commit(offsets=partitions, asynchronous=False)
        self.world.leave(simple)

    def commit_in_transaction(
        self, number: int, offset: int, consumer: confluent_kafka.Consumer, *, commit: bool
    ) -> None:
        """Commit an offset for topic ``number`` in a transaction. commit: whether the transaction is committed."""
        servers, name = self.world.bootstrap_servers, self.world.name("transaction")
        producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": name})
        producer.init_transactions()
        producer.begin_transaction()
        partitions = [confluent_kafka.TopicPartition(self.topics[number], each, offset) for each in (0, 1)]
        producer.send_offsets_to_transaction(partitions, consumer.consumer_group_metadata())
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()

    def consume(self, number: int, records: int, **config: str) -> None:
        """Consume records of topic ``number`` as a member of its target group, and commit."""
        application = self.world.join(self.groups[number], self.topics[number], **config)
        self.world.consume(application, records)
        application.commit(asynchronous=False)
        self.world.leave(application)


def test_clean_hand_over_is_exit_0(tmp_path, bootstrap_servers, world, cli, here):
    """A clean audit ends with exit code 0, even if a target group has not started yet.

    After the source group is deleted, another audit extends the copied log (``--log``), and ends with exit code 7.
    """
    handed = HandedOver(cli, world)
    handed.consume(0, 12)
    handed.consume(1, 12)
    proof = parsed(cli("audit", "split.toml.run", "--log", "log", "--format", "json").stdout)
    assert proof["old"] == {"late-commit": 0, "undetermined": 0, "stopped": 6}
    assert (proof["problems"], proof["undetermined"], proof["doubtful"]) == (0, 0, [])
    assert {name: number for name, number in proof["new"].items() if number} == {
        "starts-at-snapshot": 4,
        "no-commit-yet": 2,
    }
    copied = {path.name for path in (tmp_path / "log").iterdir()}

    handed.consume(2, 12)
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap_servers)) as admin:
        admin.delete_groups([handed.old])
    shown = here("audit", "split.toml.run", "--log", "log", code=7)
    assert "6 undetermined" in shown.stdout
    assert "6 starts-at-snapshot" in shown.stdout
    assert f"group {handed.old} was deleted" in shown.stdout
    assert "the log does not tell of 6 partitions" in shown.stderr
    assert copied < {path.name for path in (tmp_path / "log").iterdir()}


def test_audit_judges_all_runs_of_a_fleet(world, cli, here):
    """``audit`` of the folder of a fleet judges all runs at once, and names the group with a late commit."""
    base, topic = world.name("fleet"), world.create_topic(2)
    groups = [f"{base}-{name}" for name in ("a", "b", "c")]
    for partition in (0, 1):
        world.produce(topic, partition, 10)
        for group in groups:
            world.commit(group, TopicPartition(topic, partition), 4)
    (cli.folder / "fleet.toml").write_text(
        f'groups = ["{base}-*"]\nrename = ["*=new.*"]\n[options]\nsettle = "0s"\nguard = "0s"\n'
    )
    cli("migrate", "fleet.toml", "--yes")
    for group in groups:
        application = world.join(f"new.{group}", topic)
        world.consume(application, 12)
        application.commit(asynchronous=False)
        world.leave(application)
    proven = here("audit", "fleet.toml.run")
    assert "6 stopped" in proven.stdout
    assert "6 starts-at-snapshot" in proven.stdout
    assert "next: a day later, migrate-groups delete-offsets fleet.toml.run" in proven.stderr
    world.commit(groups[1], TopicPartition(topic, 0), 7)
    found = parsed(here("audit", "fleet.toml.run", "--format", "json", code=6).stdout)
    assert [(each["group"], each["offset"]) for each in found["late_commits"]] == [(groups[1], 7)]


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_a_reset_by_hand_is_not_the_start_of_a_group(world, cli, here, kafka_tool, protocol):
    """If offsets of a target group are reset while it has no members, the audit is undetermined, with exit code 7.

    The reset skips records. It is found before the group's first member joins, and after its last member has left.
    """
    handed = HandedOver(cli, world)
    config = {"group.protocol": protocol}
    handed.consume(1, 4, **config)  # of 6 records in each partition
    handed.consume(2, 12, **config)
    for number in (0, 1):
        target = ("--group", handed.groups[number], "--topic", handed.topics[number], "--to-latest")
        kafka_tool("--reset-offsets", *target, "--execute")
        assert set(world.committed(handed.groups[number]).values()) == {10}
    shown = here("audit", "split.toml.run", "--format", "json", code=7)
    found = parsed(shown.stdout)
    assert (found["problems"], found["new"]["undetermined"], found["new"]["starts-at-snapshot"]) == (0, 4, 2)
    assert {(each["topic"], each["reason"]) for each in found["doubtful"]} == {
        (handed.topics[0], COMMITTED_BEFORE_MEMBERS),
        (handed.topics[1], COMMITTED_WITHOUT_MEMBERS),
    }
    assert f"commits without membership in groups {handed.groups[0]}, {handed.groups[1]}: pass" in shown.stderr
    assert "delete-offsets" not in shown.stderr

    # A member begins after the records that the reset skipped.
    world.leave(world.join(handed.groups[0], handed.topics[0], **config))
    found = parsed(here("audit", "split.toml.run", "--format", "json", code=7).stdout)
    assert (found["new"]["undetermined"], found["new"]["starts-at-snapshot"]) == (4, 2)


def test_consumers_without_membership_are_named_by_an_option(world, cli, here):
    """The commits of a consumer that uses ``assign()`` prove a start only if ``--without-membership`` names its group.

    A group that is not in the run is refused with exit code 2. A named group that has members is undetermined.
    """
    handed = HandedOver(cli, world)
    handed.commit_without_membership(0, 7)
    handed.consume(1, 12)
    handed.consume(2, 12)
    shown = here("audit", "split.toml.run", code=7)
    assert f"commits without membership in group {handed.groups[0]}: pass --without-membership" in shown.stderr
    assert "delete-offsets" not in shown.stderr
    shown = here("audit", "split.toml.run", "--without-membership", handed.groups[0])
    assert "6 starts-at-snapshot" in shown.stdout
    assert "delete-offsets" in shown.stderr
    refused = here("audit", "split.toml.run", "--without-membership", handed.old, code=2)
    assert f"{handed.old!r} is not one of the new groups of this run" in refused.stderr
    shown = here("audit", "split.toml.run", "--without-membership", handed.groups[1], code=7)
    assert f"group {handed.groups[1]} has members, although --without-membership names it" in shown.stdout


@NEEDS_TRANSACTIONS
def test_commits_in_transactions_prove_a_start_if_the_group_has_members(world, cli, here):
    """A commit in a transaction counts if the group has members at that time, as any other commit.

    It has no topic id. So it is undetermined once the topic was deleted and created again.
    """
    handed = HandedOver(cli, world)
    for number in (0, 1):
        group = handed.groups[number]
        consumer = world.join(group, handed.topics[number]) if number == 0 else world.consumer(group)
        handed.commit_in_transaction(number, 6, consumer, commit=True)
        handed.commit_in_transaction(number, 4, consumer, commit=False)
        world.leave(consumer)
    handed.consume(2, 12)
    found = parsed(here("audit", "split.toml.run", "--format", "json", code=7).stdout)
    assert (found["new"]["starts-at-snapshot"], found["new"]["undetermined"], found["rewinds"]) == (4, 2, 0)
    assert {(each["topic"], each["reason"]) for each in found["doubtful"]} == {
        (handed.topics[1], COMMITTED_BEFORE_MEMBERS)
    }
    world.delete_topic(handed.topics[0])
    world.create_topic(2, topic=handed.topics[0])
    found = parsed(here("audit", "split.toml.run", "--format", "json", code=7).stdout)
    assert (found["problems"], found["new"]["undetermined"]) == (0, 4)
    reasons = [each["reason"] for each in found["doubtful"] if each["topic"] == handed.topics[0]]
    assert [IS_RECREATED in reason for reason in reasons] == [True, True]


def test_audit_finds_a_late_commit_a_wrong_start_and_a_rewind(bootstrap_servers, world, cli, here):
    """After a late commit, a target group's start at a wrong offset, and a rewind, the audit finds exactly these three.

    It ends with exit code 6.
    """
    handed = HandedOver(cli, world)
    alpha, beta, gamma = handed.topics
    world.commit(handed.old, TopicPartition(alpha, 1), 7)
    handed.consume(0, 12)
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap_servers)) as admin:
        admin.delete_group_offsets(handed.groups[1], [TopicPartition(beta, 0)])
    late = world.join(handed.groups[1], beta, **{"auto.offset.reset": "latest"})
    world.consume(late, 6)
    until(lambda: world.produce(beta, 0, 1) or late.poll(0.5))  # until it has its partition, "latest" moves on
    late.commit(asynchronous=False)
    world.leave(late)
    handed.consume(2, 12)
    world.commit(handed.groups[2], TopicPartition(gamma, 1), 6)

    found = parsed(here("audit", "split.toml.run", "--format", "json", code=6).stdout)
    assert [
        (each["group"], each["topic"], each["partition"], each["offset"], each["beyond"])
        for each in found["late_commits"]
    ] == [(handed.old, alpha, 1, 7, 3)]
    doubtful = {(each["topic"], each["partition"]): each for each in found["doubtful"]}
    assert set(doubtful) == {(alpha, 1), (beta, 0), (gamma, 1)}
    assert (doubtful[alpha, 1]["old"], doubtful[alpha, 1]["new"]) == ("late-commit", "starts-at-snapshot")
    assert (doubtful[beta, 0]["new"], doubtful[beta, 0]["written"]) == ("later", 4)
    assert doubtful[beta, 0]["first_own"] > 10
    # The rewind was made while the group had no members.
    assert (doubtful[gamma, 1]["new"], doubtful[gamma, 1]["rewinds"]) == ("undetermined", 1)
    assert found["new"]["starts-at-snapshot"] == 4
    assert [(each["topic"], each["partition"]) for each in found["deletions"]] == [(beta, 0)]
    assert [each["missing"] for each in found["evidence"]] == [0] * len(found["evidence"])


@pytest.mark.long
@NEEDS_TOPIC_IDS
def test_commits_of_a_recreated_topic_are_undetermined(world, cli, here):
    """If topics are recreated after the hand-over, the audit reports commits for them as undetermined.

    They are reported neither as late commits, nor as wrong starts, nor as rewinds. After the topics were recreated, the
    first two target groups commit, and the source group commits for the third topic. The second target group had also
    committed before.
    """
    handed = HandedOver(cli, world)
    handed.consume(1, 12)
    for topic in handed.topics:
        world.delete_topic(topic)
        world.create_topic(2, topic=topic)
        for partition in (0, 1):
            world.produce(topic, partition, 3)
    handed.consume(0, 6)
    handed.consume(1, 6)
    for partition in (0, 1):
        world.commit(handed.old, TopicPartition(handed.topics[2], partition), 3)

    found = parsed(here("audit", "split.toml.run", "--format", "json", code=6).stdout)
    assert found["old"] == {"late-commit": 0, "undetermined": 2, "stopped": 4}
    assert {name: number for name, number in found["new"].items() if number} == {"undetermined": 4, "missing": 2}
    assert (found["rewinds"], found["late_commits"]) == (0, [])
    again = "the topic was deleted and created again: commits for the new topic are of other records"
    reasons = {(each["topic"], each["partition"]): each["reason"] for each in found["doubtful"]}
    assert reasons == {(topic, partition): again for topic in handed.topics for partition in (0, 1)}


def test_compacted_log_is_undetermined(tmp_path, java, kafka_jars, spark):
    """If Kafka has compacted the offsets topic, the audit's verdict is undetermined, and its exit code is 7."""
    settings = {"log.roll.ms": "100", "log.cleaner.min.cleanable.ratio": "0.01", "log.cleaner.backoff.ms": "100"}
    with (
        start_sandbox(kafka_jars, java=java, settings=settings) as sandbox,
        broker_world(sandbox.bootstrap_servers) as world,
        closing(KafkaOffsetsTopic(ClientConfig(bootstrap_servers=sandbox.bootstrap_servers))) as topic,
    ):
        wait_for_coordinators(sandbox.bootstrap_servers)
        cli = Cli(tmp_path, sandbox.bootstrap_servers)
        handed = HandedOver(cli, world)
        ((checkpoint,),) = stop_checkpoint_parquet.load(
            tmp_path / "split.toml.run" / "stop_checkpoints.parquet"
        ).values()
        number = log_partition(handed.groups[0], len(checkpoint.ends))
        start, commits = checkpoint.ends[number], itertools.count(5)
        assert start is not None

        def is_compacted() -> bool:
            world.commit(handed.groups[0], TopicPartition(handed.topics[0], 0), next(commits))
            records, end = [], start
            for piece in topic.read({number: start}, {number: start + 1}):
                records += piece.records
                end = piece.positions[number]
            return len(records) < end - start

        until(is_compacted)
        audited = CliHere(tmp_path, sandbox.bootstrap_servers)("audit", "split.toml.run", "--format", "json", code=7)
    found = parsed(audited.stdout)
    assert (found["problems"], found["late_commits"]) == (0, [])
    assert found["undetermined"] >= 2
    [compacted] = [each for each in found["evidence"] if each["log_partition"] == number]
    assert compacted["missing"] > 0
    assert not compacted["whole"]
    reasons = {each["reason"] for each in found["doubtful"] if each["group"] == handed.groups[0]}
    assert reasons
    assert all(f"partition {number} of the log lacks" in reason for reason in reasons)


def test_run_without_a_stop_checkpoint_is_undetermined(tmp_path, world, cli):
    """Without ``stop_checkpoints.parquet`` in the run directory, the audit ends with exit code 7.

    If this file or the copied log is damaged, the exit code is 2; after a rollback it is 3.
    """
    HandedOver(cli, world)
    run = tmp_path / "split.toml.run"
    kept = (run / "stop_checkpoints.parquet").read_bytes()
    (run / "stop_checkpoints.parquet").unlink()
    assert "has no stop checkpoint" in cli.fails("audit", run, code=7)
    (run / "stop_checkpoints.parquet").write_bytes(kept[:-9])
    assert "not a complete Parquet file" in cli.fails("audit", run, code=2)
    (run / "stop_checkpoints.parquet").write_bytes(kept)
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "000000.parquet").write_bytes(kept)
    assert "or not a copied log" in cli.fails("audit", run, "--log", "log", code=2)
    cli("rollback", run, "--yes")
    assert "rolled back already" in cli.fails("audit", run, code=3)
