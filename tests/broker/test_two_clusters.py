"""`migrate` to another cluster, to which a mirror copies the topics: no record is skipped or processed twice."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as KafkaPartition

import migrate_groups
from migrate_groups.files.runs import stop_checkpoint_parquet
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.jars import fetch_mirror_jars, user_cache
from migrate_groups.sandbox.mirror_maker import mirror_maker
from tests.support.broker_world import until
from tests.support.cli import Cli
from tests.support.cluster_move import mirror_killed, mirrored, moving
from tests.support.mirror import records, write
from tests.support.specs import split_spec

ROOT = Path(__file__).parents[2]
PARTITIONS = 3
# In milliseconds since 1970: old records would be deleted by the retention.
STOP = "stop its applications now"
NOW = int(time.time() * 1000) - 60_000


class Move:
    """A group with offsets on a topic of three partitions, a simple mirror, and a spec with the same group name on the
    target.
    """

    def __init__(self, source: Any, target: Any, cli: Cli) -> None:
        self.source, self.target, self.cli = source, target, cli
        self.topic, self.group = source.name("orders"), source.name("group")
        self.source.create_topic(PARTITIONS, topic=self.topic)
        self.target.create_topic(PARTITIONS, topic=self.topic)
        for partition in range(PARTITIONS):
            self.source.produce_in_order(
                self.topic, partition, [(f"{partition}:{number % 20}", NOW + number // 5) for number in range(30)]
            )
        self.spec(self.group)

    def spec(self, *groups: str, guard: str = "1s") -> None:
        """Write a spec in which each of these groups is a target group for the topic."""
        spec = split_spec(self.group, dict.fromkeys(groups, self.topic), guard=guard)
        (self.cli.folder / "move.toml").write_text(f"fan_out = true\n{spec}")

    def mirror(self, first: int = 0, last: int | None = None) -> None:
        """Copy the records of each partition from index ``first`` up to ``last`` (exclusive)."""
        for partition in range(PARTITIONS):
            found = records(self.source.bootstrap_servers, self.topic, partition)
            write(self.target.bootstrap_servers, self.topic, found[first:last])

    def commit(self, *offsets: int) -> None:
        """Commit one offset for each partition on the source cluster, in the order of the partitions."""
        for partition, offset in enumerate(offsets):
            self.source.commit(self.group, TopicPartition(self.topic, partition), offset)

    def migrate(self, *options: str, code: int = 0) -> Any:
        """Run ``migrate --yes`` with the spec and these options."""
        return self.cli("migrate", "move.toml", "--yes", *options, code=code)

    def there(self, group: str | None = None) -> dict[int, int]:
        """Return a group's committed offsets on the target cluster, by partition."""
        return {each.partition: offset for each, offset in self.target.committed(group or self.group).items()}

    def rest(self, *, of_source: bool, offsets: dict[int, int]) -> dict[int, list[tuple[Any, bytes]]]:
        """Return, by partition, the (timestamp, value) of each record from these offsets on.

        of_source: read them on the source cluster, otherwise on the target cluster.
        """
        servers = (self.source if of_source else self.target).bootstrap_servers
        return {
            partition: [
                (each.timestamp()[1], each.value())
                for each in records(servers, self.topic, partition)
                if each.offset() >= offset
            ]
            for partition, offset in offsets.items()
        }


def _read_until(running: Any, text: str) -> str:
    """Return the lines of stderr of a running command, up to the first line with a text."""
    said = ""
    while text not in said:
        line = running.stderr.readline()
        assert line, f"migrate ended: {said}"
        said += line
    return said


@pytest.fixture
def move(world, elsewhere, cli) -> Move:
    """A group on the shared cluster (the source), and a second cluster (the target) to which the group moves."""
    return Move(world, elsewhere, cli)


def test_ways_back_are_refused_on_a_cluster_with_groups_of_the_same_names(move):
    """`rollback`, `hand-back` and `delete-offsets` are refused on another cluster than that of the migration.

    Nothing is written there, even if groups have the same names. On the right cluster `hand-back` then still works.
    """
    old, new, first = f"{move.group}-old", f"{move.group}-new", TopicPartition(move.topic, 0)
    for world in (move.source, move.target):
        world.produce(move.topic, 0, 30)
        world.commit(old, first, 5)
    del move.cli.environment["MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER"]
    (move.cli.folder / "split.toml").write_text(split_spec(old, {new: move.topic}, on_uncommitted="leave"))
    move.cli("migrate", "split.toml", "--yes")
    move.source.commit(new, first, 8)
    move.target.commit(new, first, 20)
    for command in ("rollback", "hand-back", "delete-offsets"):
        elsewhere = (command, "split.toml.run", "--yes", "--bootstrap-server", move.target.bootstrap_servers)
        assert "cluster: the receipt is from cluster" in move.cli.fails(*elsewhere, code=3)
    assert (move.target.committed(old), move.target.committed(new)) == ({first: 5}, {first: 20})
    move.cli("hand-back", "split.toml.run", "--yes")
    assert move.source.committed(old) == {first: 8}


def test_a_group_keeps_its_name_on_the_other_cluster(move):
    """A group that moves to another cluster under its name reads exactly the remaining records there.

    The mirror has copied some records twice. On the source cluster, the group keeps its offsets.
    """
    move.commit(5, 18, 30)
    move.mirror(0, 20)
    move.mirror(10)
    done = move.migrate()
    assert done.stderr.count("START THE NEW GROUPS NOW") == 1
    assert move.there() == {0: 5, 1: 28, 2: 40}
    left = move.rest(of_source=True, offsets={0: 5, 1: 18, 2: 30})
    assert move.rest(of_source=False, offsets={1: 28, 2: 40}) == {each: left[each] for each in (1, 2)}
    assert sorted(move.source.committed(move.group).values()) == [5, 18, 30]
    receipt = json.loads((move.cli.folder / "move.toml.run" / "receipt.json").read_text())
    (execution,) = receipt["executions"]
    assert execution["source"]["group"] == move.group
    assert execution["source"]["cluster_id"] != execution["cluster_id"]
    assert [(each["source_offset"], each["translated_offset"], each["status"]) for each in receipt["translations"]] == [
        (5, 5, "exact"),
        (18, 28, "exact"),
        (30, 40, "exact"),
    ]
    assert all(len(each["fingerprint_before"]) == 32 for each in receipt["translations"])


def test_a_dry_run_names_both_clusters_and_writes_nothing(move):
    """``migrate --dry-run`` to another cluster shows the offsets on the source cluster, and writes nothing.

    Without a target cluster, a spec in which the target group has the source group's name is refused.
    """
    move.commit(10, 20, 30)
    move.mirror()
    shown = move.cli("migrate", "move.toml", "--dry-run").stdout
    assert f"{move.topic}-1 at 20" in shown
    assert "3 exact" in shown
    assert move.there() == {}
    del move.cli.environment["MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER"]
    line = move.cli.fails("migrate", "move.toml", "--dry-run", code=2)
    assert "is the source group" in line


def test_the_write_waits_for_the_mirror(move):
    """While the mirror has not copied all records before a committed offset, `migrate` waits and writes nothing.

    Once they have been copied, it writes the offsets.
    """
    move.commit(10, 20, 30)
    move.mirror(0, 25)
    shown = move.cli("migrate", "move.toml", "--dry-run").stdout
    assert "1 not mirrored yet" in shown
    running = move.cli.start("migrate", "move.toml", "--yes")
    assert f"{move.topic}-2" in _read_until(running, "for the mirror")
    assert move.there() == {}
    move.mirror(25)
    running.communicate(timeout=60)
    assert running.returncode == 0
    assert move.there() == {0: 10, 1: 20, 2: 30}


def test_the_group_runs_while_migrate_waits_for_the_mirror(move):
    """While the mirror is behind, `migrate` does not ask to stop the group, which may commit.

    Once the mirror has delivered the records, `migrate` asks to stop it, and writes its last offsets.
    """
    move.commit(10, 20, 30)
    move.mirror(0, 25)
    member = move.source.join(move.group, move.topic)
    running = move.cli.start("migrate", "move.toml", "--yes", "--wait", "100s")
    said = _read_until(running, "for the mirror")
    assert STOP not in said
    assert "3 partitions behind" in said
    assert f"{move.topic}-0 (5 records)" in said
    member.commit(offsets=[KafkaPartition(move.topic, 1, 22)], asynchronous=False)
    assert move.there() == {}
    move.mirror(25)
    assert "for the mirror" not in _read_until(running, STOP)
    member.commit(offsets=[KafkaPartition(move.topic, 1, 30)], asynchronous=False)
    move.source.leave(member)
    running.communicate(timeout=60)
    assert running.returncode == 0
    assert move.there() == {0: 10, 1: 30, 2: 30}


def test_a_group_need_not_stop_for_a_mirror_that_never_comes(move):
    """If the mirror is behind until the end of ``--wait``, `migrate` ends with exit code 3 and writes nothing.

    The group runs and commits all the time. The error says which partitions are behind, and by how many records.
    """
    move.commit(10, 20, 20)
    move.mirror(0, 25)
    member = move.source.join(move.group, move.topic)
    running = move.cli.start("migrate", "move.toml", "--yes", "--wait", "5s")
    said = _read_until(running, "for the mirror")
    member.commit(offsets=[KafkaPartition(move.topic, 1, 22)], asynchronous=False)
    said += running.communicate(timeout=60)[1]
    assert running.returncode == 3
    assert STOP not in said
    assert f"the mirror is still behind after 5 s: 3 partitions behind: {move.topic}-0 (5 records)" in said
    assert f"{move.group} was not asked to stop, and nothing was written" in said
    assert move.there() == {}
    assert move.source.committed(move.group)[TopicPartition(move.topic, 1)] == 22
    move.mirror(25)
    move.source.leave(member)
    move.migrate()
    assert move.there() == {0: 10, 1: 22, 2: 20}


@pytest.mark.long  # the same in memory: tests/unit/test_two_clusters.py
def test_a_mirror_that_stays_behind_is_a_refusal(move):
    """If the mirror is still behind at the end of ``--wait``, `migrate` ends with exit code 3, and writes nothing."""
    move.commit(10, 20, 30)
    move.mirror(0, 25)
    done = move.migrate("--wait", "1s", code=3)
    assert f"the mirror is still behind after 1 s: 1 partition behind: {move.topic}-2 (5 records" in done.stderr
    assert "nothing was written" in done.stderr
    assert move.there() == {}


@pytest.mark.long  # the same in memory: tests/unit/test_two_clusters.py
def test_several_possible_offsets_are_refused_or_accepted_by_option(move):
    """If the mirror copied identical records twice, several target offsets are possible, and `migrate` is refused.

    With ``--accept-reread 1`` it accepts that one record is read again, and writes one of these offsets.
    """
    twice = TopicPartition(move.topic, 0)
    move.source.produce_in_order(move.topic, 0, [("x", NOW + 1000)] * 4 + [("y", NOW + 1001)])
    move.commit(32, 20, 30)
    move.mirror(0, 32)
    move.mirror(31)
    line = move.migrate(code=3).stderr
    assert f"{twice} at 32 is ambiguous" in line
    assert "pass --accept-reread 1" in line
    assert move.there() == {}
    move.migrate("--accept-reread", "1")
    assert move.there()[0] in (31, 32)


def test_a_topic_without_a_record_left_is_handed_over_only_if_its_copy_is_trusted(move):
    """If all records of the source were deleted, an independent topic of the same name is not taken for its copy.

    `compare` says ``undetermined``, and `migrate` is refused. With ``--trust-copy`` the group starts at the end of the
    target's topic, and a warning names the topic.
    """
    move.commit(30, 30, 30)
    for partition in range(PARTITIONS):
        move.source.delete_records(move.topic, partition, 30)
        move.target.produce(move.topic, partition, 77, prefix="foreign ")
    done = move.cli("compare", move.group, "--format", "json", code=7)
    found = json.loads(done.stdout)["partitions"]
    assert {(each["status"], each["translated_offset"], each["compared"]) for each in found} == {
        ("undetermined", None, 0)
    }
    line = move.migrate(code=3).stderr
    assert f"translated offsets: 3 undetermined: {move.topic}-0 at 30 is undetermined" in line
    assert f"pass --trust-copy {move.topic}" in line
    assert move.there() == {}
    move.cli("compare", move.group, "--trust-copy", move.topic, code=6)  # the group has no offset there yet
    done = move.migrate("--trust-copy", move.topic)
    assert f"no record was compared in 3 partitions of topic {move.topic} (--trust-copy)" in " ".join(
        done.stdout.split()
    )
    assert move.there() == {0: 77, 1: 77, 2: 77}
    move.cli("compare", move.group, "--trust-copy", move.topic, code=0)


@pytest.mark.long  # the same in memory: tests/unit/test_two_clusters.py
def test_guard_reports_a_commit_on_the_source_cluster(move):
    """If the source group commits while `migrate` watches after the write (``--guard``), the exit code is 4.

    A second run then hands over the new offset.
    """
    move.commit(10, 20, 30)
    move.mirror()
    move.spec(move.group, guard="6s")
    running = move.cli.start("migrate", "move.toml", "--yes")
    until(lambda: move.there() == {0: 10, 1: 20, 2: 30}, seconds=60)
    move.commit(10, 22, 30)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 4
    assert f"{move.topic}-1 20 → 22 (2 records)" in errors
    move.migrate()
    assert move.there() == {0: 10, 1: 22, 2: 30}


@pytest.mark.long  # the same in memory: tests/unit/test_two_clusters.py
def test_an_earlier_offset_on_the_target_is_replaced_by_option_only(move):
    """If the target group has a lower committed offset, `migrate` is refused; ``--on-existing overwrite`` replaces the
    offset.
    """
    move.commit(10, 20, 30)
    move.mirror()
    move.target.commit(move.group, TopicPartition(move.topic, 1), 5)
    assert "is at 5, not 20" in move.migrate(code=3).stderr
    move.migrate("--on-existing", "overwrite")
    assert move.there() == {0: 10, 1: 20, 2: 30}


@pytest.mark.parametrize("names_source", [True, False])
def test_rollback_takes_the_offsets_on_the_target_back(move, names_source):
    """Before the target groups start, `rollback` deletes their offsets on the target. The source group keeps its
    offsets.

    If both clusters are named, the claims on the source are released, so that another run may move the group.
    """
    move.commit(10, 20, 30)
    move.mirror()
    move.spec(f"{move.group}-a", f"{move.group}-b")
    move.migrate()
    assert move.there(f"{move.group}-a") == move.there(f"{move.group}-b") == {0: 10, 1: 20, 2: 30}
    servers, target = move.source.bootstrap_servers, move.target.bootstrap_servers
    if names_source:
        move.cli("rollback", "move.toml.run", "--yes")
    else:
        move.cli.environment.pop("MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER")
        move.cli("rollback", "move.toml.run", "--yes", "--bootstrap-server", target)
        move.cli.environment["MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER"] = target
    assert move.there(f"{move.group}-a") == move.there(f"{move.group}-b") == {}
    assert sorted(move.source.committed(move.group).values()) == [10, 20, 30]
    move.spec(f"{move.group}-a")
    again = ("--run-dir", "other.run", "--bootstrap-server", servers)
    assert ("journal: " in move.migrate(*again, code=0 if names_source else 3).stderr) is not names_source


def test_repeated_move_after_the_target_group_has_started(move):
    """If the target group has committed after the hand-over, a second `migrate` says that it has started, and writes
    nothing.
    """
    move.commit(10, 20, 30)
    move.mirror()
    move.migrate()
    move.target.commit(move.group, TopicPartition(move.topic, 1), 25)
    assert "handed over already, and started since" in move.migrate().stderr
    assert move.there()[1] == 25


def test_an_approved_plan_holds_for_both_clusters(move):
    """``migrate --approved`` to another cluster accepts a plan, even if the source group has committed in the meantime.

    `apply` refuses such a plan, and names ``--approved``.
    """
    move.commit(10, 20, 30)
    move.mirror()
    move.cli("migrate", "move.toml", "--dry-run", "--plan-out", "plan.json")
    move.commit(12, 20, 30)
    move.migrate("--approved", "plan.json")
    assert move.there() == {0: 12, 1: 20, 2: 30}
    line = move.cli.fails("apply", "plan.json", "--yes", "--receipt", "r.json", code=2)
    assert "--approved" in line


def test_whole_groups_move_side_by_side(move):
    """If one of several groups does not stop, it is refused, and the others move. Once it has stopped, a re-run moves
    it.
    """
    running = f"{move.group}-running"
    move.commit(10, 20, 30)
    move.source.commit(running, TopicPartition(move.topic, 0), 5)
    member = move.source.join(running, move.topic)
    move.mirror(0, 20)
    move.mirror(10)
    options = '[options]\nsettle = "0s"\nguard = "0s"\non_uncommitted = "earliest"\n'
    (move.cli.folder / "move.toml").write_text(f'groups = ["{running}", "{move.group}*"]\n{options}')
    done = move.migrate("--wait", "1s", code=3)
    assert f"1 of 2 groups not done: {running} (refused)" in done.stderr
    assert move.there() == {0: 10, 1: 30, 2: 40}
    assert move.there(running) == {}
    move.source.leave(member)
    assert [line.split()[:3] for line in move.migrate().stdout.splitlines()[-3:-1]] == [
        [running, running, "moved"],
        [move.group, move.group, "moved"],
    ]
    assert move.there(running) == {0: 5, 1: 0, 2: 0}


def test_the_example_of_the_python_api(move, tmp_path, monkeypatch, capsys):
    """The example in docs/python.md compares a group, moves it to another cluster under its name, and rolls the move
    back.
    """
    move.commit(10, 20, 30)
    move.mirror(0, 25)
    move.mirror(5)
    example, _of_whole_groups = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)
    for name, real in (("a:9092", move.source), ("b:9092", move.target)):
        example = example.replace(name, real.bootstrap_servers)
    example = example.replace('"orders"', f'"{move.group}"')
    example = example.replace("    source.rollback", "    seen()\n    source.rollback")
    monkeypatch.chdir(tmp_path)
    there = []
    options = migrate_groups.WriteOptions(settle=0, guard=0)
    names = {"mg": migrate_groups, "Path": Path, "options": options, "seen": lambda: there.append(move.there())}
    exec(compile(example, "docs/python.md", "exec"), names)  # noqa: S102
    assert there == [{0: 30, 1: 40, 2: 50}]
    assert move.there() == {}
    assert f"{move.topic}-1 20 {move.topic}-1 40 exact\n" in capsys.readouterr().out


def test_names_of_copies_in_the_python_api(move, tmp_path):
    """If `Copies` names the topic's copy on the target, the plan of a dry run uses this name. Nothing is written."""
    move.commit(10, 20, 30)
    other = move.source.name("copy")
    move.target.create_topic(PARTITIONS, topic=other)
    split = migrate_groups.Split(source=move.group, targets={move.group: ["*"]})
    with (
        migrate_groups.connect(move.source.bootstrap_servers) as source,
        migrate_groups.connect(move.target.bootstrap_servers) as target,
    ):
        copies = migrate_groups.Copies(cluster=target, rename_topics={move.topic: other})
        planned = source.plan_migrate(split, to=copies, run_dir=tmp_path / "run")
    assert planned is not None
    assert {change.topic for change in planned.plan.changes} == {other}
    assert move.there() == {}


def test_the_source_is_cleaned_after_the_new_group_has_started(move):
    """Once the target group has committed on the other cluster, `delete-offsets` deletes the source group's offsets.

    If it is killed, a re-run completes the deletion.
    """
    move.commit(10, 20, 30)
    move.mirror()
    move.migrate()
    swapped = ("--bootstrap-server", move.target.bootstrap_servers, "--to-bootstrap-server")
    error = move.cli.fails("delete-offsets", "move.toml.run", "--yes", *swapped, move.source.bootstrap_servers, code=3)
    assert "the old group is on cluster" in error
    move.target.commit(move.group, TopicPartition(move.topic, 1), 25)
    # 1 and 2: the first record; 3: before the request; 4: after it.
    assert move.cli.killed_at(4, "delete-offsets", "move.toml.run", "--yes")
    assert "delete-offsets has not finished" in move.migrate(code=3).stderr
    done = move.cli("delete-offsets", "move.toml.run", "--yes")
    assert "3 partitions: 3 confirmed" in done.stdout
    assert (move.source.committed(move.group), move.there()) == ({}, {0: 10, 1: 25, 2: 30})
    assert "no offsets left to delete" in move.cli("delete-offsets", "move.toml.run", "--yes").stderr


def test_a_group_goes_back_to_the_original_topics(move):
    """`hand-back` moves a group back, to the first record that it has not read on the other cluster, without a mirror.

    While there are unread records in a copy that others produced to it, it is refused. It writes to neither topic. If
    it is killed, a re-run completes it. Afterwards the claims refuse the other ways back of the move.
    """
    move.commit(10, 20, 30)
    move.mirror()
    move.migrate()
    copy = TopicPartition(move.topic, 1)
    move.target.produce(move.topic, 1, records=2)
    move.target.commit(move.group, copy, 29)
    refused = move.cli("hand-back", "move.toml.run", "--yes", code=3)
    assert refused.stderr.endswith("see: migrate-groups status move.toml.run\n")
    assert "next:" in move.cli("status", "move.toml.run").stdout
    error = refused.stderr
    assert f"{copy} at 29 is different (2 records from the committed offset on not on the target" in error
    move.target.commit(move.group, copy, 32)
    assert "dry run passed" in move.cli("hand-back", "move.toml.run", "--dry-run").stderr
    assert move.cli.killed_at(2, "hand-back", "move.toml.run", "--yes")
    done = move.cli("hand-back", "move.toml.run", "--yes")
    assert "START THE OLD APPLICATIONS NOW" in done.stderr
    expected = {TopicPartition(move.topic, 0): 10, copy: 30, TopicPartition(move.topic, 2): 30}
    assert move.source.committed(move.group) == expected
    for command in ("rollback", "delete-offsets"):
        assert "handed over from" in move.cli.fails(command, "move.toml.run", "--yes", code=3)


def test_audit_needs_both_clusters(move):
    """After a move to another cluster, `audit` needs both: if one is missing, or they are swapped, it ends with exit
    code 2.

    The run directory contains the log end offsets of both offsets topics.
    """
    move.commit(10, 20, 30)
    move.mirror()
    move.migrate()
    (checkpoints,) = stop_checkpoint_parquet.load(
        move.cli.folder / "move.toml.run" / "stop_checkpoints.parquet"
    ).values()
    ids = [checkpoint.cluster_id for checkpoint in checkpoints]
    source, target = move.source.bootstrap_servers, move.target.bootstrap_servers
    swapped = ("--bootstrap-server", target, "--to-bootstrap-server", source)
    error = move.cli.fails("audit", "move.toml.run", *swapped, code=2)
    assert f"--to-bootstrap-server is cluster {ids[0]}; the new groups are on cluster {ids[1]}" in error
    error = move.cli.fails("audit", "move.toml.run", "--to-bootstrap-server", source, code=2)
    assert "the new groups are on cluster" in error
    del move.cli.environment["MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER"]
    assert "pass --to-bootstrap-server" in move.cli.fails("audit", "move.toml.run", code=2)
    assert "pass --to-bootstrap-server" in move.cli.fails("delete-offsets", "move.toml.run", "--yes", code=2)


def test_audit_of_a_move_from_python(move, spark):
    """`Cluster.audit` of a move judges the logs of both clusters, and reports a late commit of the source group."""
    move.commit(10, 20, 30)
    move.mirror()
    move.migrate()
    started = move.target.join(move.group, move.topic)
    began = [KafkaPartition(move.topic, *each) for each in move.there().items()]
    started.commit(offsets=began, asynchronous=False)
    move.target.leave(started)
    run = move.cli.folder / "move.toml.run"
    move.source.commit(move.group, TopicPartition(move.topic, 1), 7)
    with (
        migrate_groups.connect(move.source.bootstrap_servers) as source,
        migrate_groups.connect(move.target.bootstrap_servers) as target,
    ):
        with pytest.raises(migrate_groups.UsageError, match="pass --to-bootstrap-server"):
            source.audit(run)
        found = source.audit(run, to=target, log=move.cli.folder / "log")
    assert (found.old["late-commit"], found.old["stopped"], found.new["starts-at-snapshot"]) == (1, 2, 3)
    with pytest.raises(migrate_groups.HandOverBroken, match="1 partition committed late"):
        found.check()
    assert {path.name for path in (move.cli.folder / "log").iterdir()} >= {"source", "target"}


@pytest.mark.parametrize("steps", [(3, 4), pytest.param(range(1, 40), marks=pytest.mark.long)], ids=["write", "all"])
def test_a_move_that_is_killed_is_completed_by_the_same_command(move, steps):
    """If `migrate` to another cluster is killed at any write or save of the receipt, a re-run writes the
    right offsets.
    """
    move.commit(5, 18, 30)
    move.mirror(0, 20)
    move.mirror(10)
    was_killed = []
    for step in steps:
        group = f"{move.group}-{step}"
        move.spec(group)
        run = ("--run-dir", f"run-{step}")
        was_killed.append(move.cli.killed_at(step, "migrate", "move.toml", "--yes", *run))
        move.migrate(*run)
        assert move.there(group) == {0: 5, 1: 28, 2: 40}
        move.cli("delete-group", journal_group(move.group), "--yes")  # each step is a move by another run
        if not was_killed[-1]:
            break
    assert sum(was_killed) >= min(len(steps), 8)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_running_application_moves_behind_mirrormaker(move, java, kafka_jars):
    """If an application stops on one cluster and starts on the other, each record is processed once, behind
    MirrorMaker.

    `audit` proves from the logs of both clusters that the source group stayed stopped. After its offsets were deleted,
    it reports a commit of the source group as a late commit.
    """
    jars = fetch_mirror_jars(java=java, cache=user_cache(), version=kafka_jars.version)
    servers = move.source.bootstrap_servers, move.target.bootstrap_servers
    topic = move.source.name("topic")
    with (
        mirror_maker(jars, *servers, java=java, settings={"source->target.topics": topic}) as maker,
        mirrored(*servers, maker, topic) as pair,
        moving(pair, move.cli, random.Random(1)) as running,
    ):
        moved = mirror_killed(running, 1)
    assert (moved.skipped, moved.again) == (0, 0)
    audit = ("audit", "move.toml.run", "--log", "log")
    assert "proven: the old group stayed stopped" in move.cli(*audit).stderr
    move.cli("delete-offsets", "move.toml.run", "--yes")
    receipt = json.loads((move.cli.folder / "move.toml.run" / "receipt.json").read_text())
    move.source.commit(receipt["executions"][0]["source"]["group"], TopicPartition(topic, 1), 7)
    found = move.cli(*audit, code=6).stdout
    assert "1 late-commit, 3 stopped" in found
    assert f"{topic}-1" in found
