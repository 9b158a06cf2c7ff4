"""Share groups (KIP-932) as targets of `migrate` and `apply`, with share consumers on a real broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager

import pytest

from migrate_groups.migration.reading.requests import describe_groups, read_committed
from migrate_groups.model.answers import Answer
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from tests.support.broker_world import until
from tests.support.planning import connected
from tests.support.share_member import ShareMember
from tests.support.specs import split_spec
from tests.support.versions import NEEDS_SHARE_OFFSETS

pytestmark = NEEDS_SHARE_OFFSETS

PARTITIONS, RECORDS = 3, 200
COMMITTED, PROCESSED = 240, 300

# Says which records it has processed. It commits for the last time after COMMITTED records, unless it is stopped.
APPLICATION = f"""
import signal, sys, time, confluent_kafka
servers, group, topic = sys.argv[1:]
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
consumer = confluent_kafka.Consumer({{
    "bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False,
    "session.timeout.ms": 2000, "heartbeat.interval.ms": 500, "log_level": 0,
}})
consumer.subscribe([topic])
processed = 0
while not stopped:
    message = consumer.poll(0.1) if processed < {PROCESSED} else time.sleep(0.05)
    if message is not None and not message.error():
        print(message.partition(), message.offset(), flush=True)
        processed += 1
        if processed == {COMMITTED}:
            consumer.commit(asynchronous=False)
consumer.commit(asynchronous=False)
consumer.close()
"""


class Share:
    """A source group whose application has processed PROCESSED records of a topic, and a spec for a share group."""

    def __init__(self, cli, world) -> None:
        self.cli, self.world = cli, world
        self.topic, self.old, self.new = world.create_topic(PARTITIONS), world.name("old"), world.name("share")
        for number in range(PARTITIONS):
            world.produce(self.topic, number, RECORDS)
        self.write_spec(self.new)

    def write_spec(self, group: str) -> None:
        spec = split_spec(self.old, {group: self.topic})
        typed = spec.replace(f'group = "{group}"', f'group = "{group}"\ntype = "share"')
        (self.cli.folder / "split.toml").write_text(typed)

    def process(self, how: signal.Signals) -> Counter[tuple[int, int]]:
        """Run the old application, end it with a signal, and return what it has processed."""
        for number in range(PARTITIONS):  # otherwise it might commit nothing for a partition that it does not reach
            self.world.commit(self.old, TopicPartition(self.topic, number), 0)
        arguments = [self.world.bootstrap_servers, self.old, self.topic]
        with subprocess.Popen(
            [sys.executable, "-c", APPLICATION, *arguments], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout
            lines = [process.stdout.readline() for _ in range(PROCESSED)]
            process.send_signal(how)
        return Counter((int(partition), int(offset)) for partition, offset in map(str.split, lines))

    def commit(self) -> dict[TopicPartition, int]:
        """Commit an offset of the source group for each partition, and return them."""
        offsets = {TopicPartition(self.topic, number): 50 * (number + 1) for number in range(PARTITIONS)}
        for partition, offset in offsets.items():
            self.world.commit(self.old, partition, offset)
        return offsets

    def start_offsets(self) -> dict[TopicPartition, int]:
        """Return the start offsets of the share group, as Kafka's own tool shows them."""
        command = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
        shown = self.cli.sandbox.run_tool(command, "--describe", "--offsets", "--group", self.new).stdout
        rows = [line.split() for line in shown.splitlines() if line.startswith(self.new)]
        return {TopicPartition(topic, int(number)): int(start) for _, topic, number, start, *_ in rows if start != "-"}

    @contextmanager
    def members(self, number: int):
        """Yield share consumers of the new group."""
        members = [ShareMember(self.world.bootstrap_servers, self.new, self.topic) for _ in range(number)]
        try:
            yield members
        finally:
            for member in members:
                member.close()


@pytest.fixture
def share(cli, world, sandbox) -> Share:
    cli.sandbox = sandbox
    return Share(cli, world)


def outcomes(cli) -> Counter[str]:
    entries = json.loads((cli.folder / "split.toml.run" / "receipt.json").read_text())["entries"]
    return Counter(entry["outcome"] for entry in entries)


# Records that one member has acquired may stay locked for 30 s when another one joins.
@pytest.mark.parametrize("members", [1, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_share_consumers_get_each_record_from_the_committed_offset(cli, world, share, how, members):
    """Share consumers get each record from the source group's committed offset on once, and none before it.

    So no record is skipped. If the old application was killed, the records are processed twice that it had processed
    and not committed; otherwise none is.
    """
    processed = share.process(how)
    cli("migrate", "split.toml", "--yes", "--wait", "60s")
    assert outcomes(cli) == {"confirmed by one client": PARTITIONS}
    committed = world.committed(share.old)
    assert sum(committed.values()) == (PROCESSED if how is signal.SIGTERM else COMMITTED)
    for number in range(PARTITIONS):
        world.produce(share.topic, number, 20)
    left = {(each.partition, at) for each, start in committed.items() for at in range(start, RECORDS + 20)}
    with share.members(members) as joined:

        def read_all() -> bool:
            for member in joined:
                member.read()
            return left <= {record for member in joined for record in member.ledger}

        until(read_all, seconds=120)
        read_all()  # what would be delivered again
    ledger = sum((member.ledger for member in joined), Counter[tuple[int, int]]())
    assert ledger == Counter(left)
    every = {(number, at) for number in range(PARTITIONS) for at in range(RECORDS + 20)}
    assert {*processed} | {*ledger} == every
    twice = {*processed} & {*ledger}
    assert len(twice) == (0 if how is signal.SIGTERM else PROCESSED - COMMITTED)


def test_rollback_before_a_member_joins_deletes_the_start_offsets(cli, world, share):
    """A rollback before the start deletes the start offsets, and leaves the source group's; then `migrate` works again.

    Kafka's own tool shows the start offsets that `migrate` has set. The plan says that there is no exact way back
    after the start, and that only one client reads back.
    """
    offsets = share.commit()
    dry = cli("migrate", "split.toml", "--dry-run").stdout
    assert f"no exact way back once a member joins {share.new}" in dry
    assert "kafka-python alone reads back" in dry
    assert share.new not in world.groups()
    cli("migrate", "split.toml", "--yes")
    assert share.start_offsets() == offsets
    cli("rollback", "split.toml.run", "--yes")
    assert share.start_offsets() == {}
    assert world.committed(share.old) == offsets
    cli("migrate", "split.toml", "--yes")
    assert share.start_offsets() == offsets


@pytest.mark.parametrize("steps", [range(8, 9), pytest.param(range(1, 41), marks=pytest.mark.long)], ids=["8", "all"])
def test_rerun_after_a_kill_at_any_step(cli, world, share, steps):
    """If `migrate` or `rollback` is killed at any step, a re-run leaves the start offsets of an uninterrupted run."""
    offsets, journal = share.commit(), journal_group(share.old)
    with connected(world.bootstrap_servers) as writer:
        for step in steps:
            group, run = world.name("share"), f"{step}.run"
            share.write_spec(group)
            command = ("migrate", "split.toml", "--yes", "--wait", "5s", "--run-dir", run)
            # The earlier run that was killed keeps others out until its session timeout.
            until(lambda: not describe_groups(writer, [journal])[journal].members)
            was_killed = cli.killed_at(step, *command)
            cli(*command)
            found = read_committed(writer, {group: [*offsets]})[group]
            assert found == {partition: CommittedOffset(offset=offset) for partition, offset in offsets.items()}
            cli.killed_at(step, "rollback", run, "--yes")
            cli("rollback", run, "--yes")
            assert read_committed(writer, {group: [*offsets]})[group] == dict.fromkeys(offsets)
            if not was_killed:
                break
    assert step == 8 or 8 < step < steps[-1]
    assert world.committed(share.old) == offsets


def test_after_a_member_has_joined_no_command_claims_to_know(cli, world, share):
    """After a share consumer has read, `rollback` and `hand-back` refuse with one line and write nothing, although the
    start offsets may still be the ones that were set. `migrate` says that the group has started, and `status`, too.
    `reconcile` has no verdict.
    """
    offsets = share.commit()
    cli("migrate", "split.toml", "--yes")
    assert not (cli.folder / "split.toml.run" / "after.parquet").exists()
    with share.members(1) as (member,):
        until(lambda: member.read() or member.ledger)
        assert "has had members" in cli.fails("rollback", "split.toml.run", "--yes", code=3)
    before = share.start_offsets()
    assert "has had members" in cli.fails("rollback", "split.toml.run", "--yes", code=3)
    assert "can't hand back" in cli.fails("hand-back", "split.toml.run", "--yes", code=3)
    assert "handed over already, and started since" in cli("migrate", "split.toml", "--yes").stderr
    assert "audit shows whether it has" in cli("status", "split.toml.run").stdout
    assert "no verdict" in cli.fails("reconcile", "split.toml.run", code=7)
    assert (share.start_offsets(), world.committed(share.old)) == (before, offsets)


def test_a_share_group_that_has_started_is_no_target(cli, world, share):
    """A share group that has had members is refused as a target, because setting its start offsets again would forget
    what it has acknowledged.
    """
    share.commit()
    with share.members(1) as (member,):
        until(lambda: member.read() or share.new in world.groups())
    for options in ((), ("--on-existing", "overwrite")):
        assert "has had members" in cli.fails("migrate", "split.toml", "--yes", *options, code=3)


def test_a_name_of_a_group_of_another_type_is_refused(cli, world, share):
    """A spec can't make a share group of an existing consumer group, nor hand over to a share group as to a consumer
    group.
    """
    offsets = share.commit()
    taken = world.name("taken")
    world.commit(taken, TopicPartition(share.topic, 0), 5)
    share.write_spec(taken)
    assert f"{taken} exists, and is no share group" in cli.fails("migrate", "split.toml", "--yes", code=3)
    share.write_spec(share.new)
    cli("migrate", "split.toml", "--yes")
    other = world.name("other")
    world.commit(other, TopicPartition(share.topic, 0), 5)
    (cli.folder / "other.toml").write_text(split_spec(other, {share.new: share.topic}, on_uncommitted="leave"))
    assert f"{share.new} exists, and is a share group" in cli.fails("migrate", "other.toml", "--yes", code=3)
    assert share.start_offsets() == offsets


def test_apply_hands_over_to_a_share_group(cli, share):
    """`split` keeps the type of the new group in the snapshot, and `apply` sets its start offsets."""
    offsets = share.commit()
    cli("snapshot", share.old, "-o", "before.csv")
    cli("split", "before.csv", "--spec", "split.toml", "-o", "split.csv")
    cli("apply", "split.csv", "--yes", "--settle", "0s", "--guard", "0s")
    assert share.start_offsets() == offsets


def test_a_partition_without_an_offset_starts_at_the_log_end(cli, world, share):
    """With ``on_uncommitted = "leave"``, share consumers get no old record of a partition without an offset.

    The plan says so.
    """
    world.commit(share.old, TopicPartition(share.topic, 0), RECORDS - 5)
    dry = cli("migrate", "split.toml", "--dry-run", "--on-uncommitted", "leave").stdout
    assert f"share group {share.new} starts at the log end" in dry
    cli("migrate", "split.toml", "--yes", "--on-uncommitted", "leave")
    with share.members(1) as (member,):

        def read_everywhere() -> bool:
            for number in range(1, PARTITIONS):
                world.produce(share.topic, number, 1)  # such a partition starts at the log end of its first fetch
            member.read()
            return {partition for partition, _ in member.ledger} == {*range(PARTITIONS)}

        until(read_everywhere)
    old = {(partition, offset) for partition, offset in member.ledger if offset < RECORDS}
    assert old == {(0, RECORDS - each) for each in range(1, 6)}


def test_brokers_accept_any_start_offset_and_the_plan_refuses_it(cli, world, share):
    """A coordinator accepts a start offset beyond the log end, so the check ``in range`` refuses it."""
    partition, beyond = TopicPartition(share.topic, 0), CommittedOffset(offset=999_999)
    with connected(world.bootstrap_servers) as writer:
        (answer,) = writer.alter_share_offsets({share.new: {partition: beyond}})[share.new].values()
        assert answer.answer is Answer.WRITTEN
        assert read_committed(writer, {share.new: [partition]})[share.new] == {partition: beyond}
    share.write_spec(world.name("other"))
    world.commit(share.old, partition, 999_999)
    options = ("--yes", "--on-uncommitted", "leave")
    assert "999999: the log end offset is 200" in cli.fails("migrate", "split.toml", *options, code=3)
