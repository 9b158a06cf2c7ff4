"""The cut-over with one command on a real broker, and its ways back."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.cli import running
from tests.support.old_group import Old
from tests.support.processes import children_of, gone
from tests.support.versions import CONSUMER, NEEDS_NEW_PARTITIONS

NOW = ("--settle", "0s", "--guard", "0s", "--yes")


def outcomes(cli, execution: int = 1) -> set[str]:
    entries = json.loads((cli.folder / "split.toml.run" / "receipt.json").read_text())["entries"]
    return {entry["outcome"] for entry in entries if entry["execution"] == execution}


def test_migrate_a_stopped_group(cli, world):
    """One command moves every partition, keeps its files in the run directory, and is safe to run again."""
    old = Old(cli, world)
    dry = cli("migrate", "split.toml", "--dry-run")
    assert "create" in dry.stdout
    assert not (cli.folder / "split.toml.run").exists()
    done = cli.cold("migrate", "split.toml", "--yes")
    assert "4 partitions: 4 confirmed" in done.stdout
    assert "START THE NEW GROUPS NOW" in done.stderr
    assert world.committed(old.pay_group) == old.offsets(old.pay)
    assert world.committed(old.find_group) == old.offsets(old.find)
    files = {path.name for path in (cli.folder / "split.toml.run").iterdir()} - {".receipt.json.lock"}
    tables = {f"{name}.parquet" for name in ("baseline", "before", "split", "fence", "after")}
    assert files == {"spec.toml", "plan.json", "offsets.csv", "receipt.json"} | tables
    receipt = (cli.folder / "split.toml.run" / "receipt.json").read_bytes()
    cli("migrate", "split.toml", "--yes")
    again = json.loads((cli.folder / "split.toml.run" / "receipt.json").read_text())
    assert [entry["before"] for entry in again["entries"]] == [None] * 4
    assert [e["after"] for e in again["entries"]] == [e["after"] for e in json.loads(receipt)["entries"]]
    assert outcomes(cli) == {"confirmed"}


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_migrate_waits_for_the_stop(cli, world, protocol):
    """With a live group it waits, names the members, and hands over the last commits before the stop."""
    old = Old(cli, world)
    consumer = world.join(old.group, old.pay, old.find, **{"group.protocol": protocol})
    assert "pending" in cli("migrate", "split.toml", "--dry-run").stdout
    with running(cli, "migrate", "split.toml", "--yes", "--wait", "60s") as process:
        assert "test-app" in "".join(process.stderr.readline() for _ in range(2))
        spec = (cli.folder / "split.toml").rename(cli.folder / "away").read_bytes()  # the command keeps what it loaded
        world.consume(consumer, 6)
        consumer.commit(asynchronous=False)
        world.leave(consumer)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "4 confirmed" in out
    assert world.committed(old.pay_group) | world.committed(old.find_group) == world.committed(old.group)
    assert (cli.folder / "split.toml.run" / "spec.toml").read_bytes() == spec


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_by_topic_the_old_group_consumes_on(cli, world, protocol):
    """With [stay] the source group consumes its other topics during the whole migration."""
    old = Old(cli, world, stay=True)
    consumer = world.join(old.group, old.pay, old.find, **{"group.protocol": protocol})
    with running(cli, "migrate", "split.toml", "--yes", "--wait", "60s") as process:
        assert "still assigned or subscribed" in "".join(process.stderr.readline() for _ in range(2))
        consumer.subscribe([old.find])
        seen = []

        def finished() -> bool:
            message = consumer.poll(0.05)
            seen.extend([message.topic()] if message and message.error() is None else [])
            return process.poll() is not None and old.find in seen

        until(finished)
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert "2 confirmed" in out
    assert world.committed(old.pay_group) == old.offsets(old.pay)
    assert {partition.topic for partition in consumer.assignment()} == {old.find}


def test_a_wait_that_runs_out_writes_nothing(cli, world):
    """If the group does not stop in time, the exit code is 3, and neither offsets nor a receipt are written."""
    old = Old(cli, world)
    world.join(old.group, old.pay)
    assert "not stopped after 1 s" in cli.fails("migrate", "split.toml", "--yes", "--wait", "1s", code=3)
    assert world.committed(old.pay_group) == {}
    assert not (cli.folder / "split.toml.run" / "receipt.json").exists()


@pytest.mark.parametrize("option", [[], ["--hold"]], ids=["observed", "held"])
def test_an_old_application_that_comes_back_during_the_guard(cli, world, option):
    """The return of an old application is exit 4. With --hold it joins only after the release, and is seen then."""
    old = Old(cli, world)
    with running(cli, "migrate", "split.toml", "--yes", *option, "--guard", "6s") as process:
        until(lambda: world.committed(old.find_group))
        world.consumer(old.group, old.pay, old.find)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert "4 confirmed" in out
    assert "test-app" in err
    assert ("is released" in err) == bool(option)


@pytest.mark.parametrize(("uncommitted", "received"), [("latest", 5), ("leave", 0)])
def test_what_is_produced_during_the_cut_over_is_not_lost(cli, world, uncommitted, received):
    """Records produced during the cut-over are not lost with ``uncommitted = "latest"``, and are lost with ``leave``.

    The partition has no committed offset, and the target's consumers use auto.offset.reset=latest. The tool writes the
    log end offset from before the stop.
    """
    old = Old(cli, world, options=f'uncommitted = "{uncommitted}"')
    fresh = world.create_topic(1, topic=world.name("pay-new"))
    world.produce(fresh, 0, 3)
    consumer = world.join(old.group, old.pay, old.find, fresh, **{"auto.offset.reset": "latest"})
    with running(cli, "migrate", "split.toml", "--yes", "--wait", "60s") as process:
        assert "test-app" in "".join(process.stderr.readline() for _ in range(2))
        world.leave(consumer)
        world.produce(fresh, 0, 5, prefix="meanwhile-")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    new = world.join(old.pay_group, old.pay, fresh, **{"auto.offset.reset": "latest"})
    values: list[str] = []

    def has_come_to_the_end() -> bool:
        world.produce(fresh, 0, 1, prefix="later-")
        values.extend(world.consume(new, 1))
        return any(value.startswith("later-") for value in values)

    until(has_come_to_the_end)
    assert sum(value.startswith("meanwhile-") for value in values) == received


@NEEDS_NEW_PARTITIONS
def test_partitions_added_during_the_wait_start_at_their_beginning(cli, world):
    """A partition that is added during the wait starts at its first record."""
    old = Old(cli, world)
    consumer = world.join(old.group, old.pay, old.find)
    with running(cli, "migrate", "split.toml", "--yes", "--wait", "60s") as process:
        assert "test-app" in "".join(process.stderr.readline() for _ in range(2))
        world.add_partitions(old.pay, 3)
        world.produce(old.pay, 2, 4)
        world.leave(consumer)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert world.committed(old.pay_group)[TopicPartition(old.pay, 2)] == 0


def test_approved_plan_binds_the_intent_and_not_the_offsets(cli, world):
    """An approved plan is executed although offsets have moved, and refused if topics or options have changed."""
    old = Old(cli, world)
    cli("snapshot", old.group, "-o", "early.csv")
    cli("split", "early.csv", "--spec", "split.toml", "-o", "review.csv")
    options = ("--settle", "0s", "--guard", "0s")
    cli("apply", "review.csv", "--dry-run", *options, "--plan-out", "plan.json")
    world.commit(old.group, TopicPartition(old.pay, 0), 9)
    cli("migrate", "split.toml", "--approved", "plan.json", "--dry-run")
    caught = world.create_topic(1, topic=world.name("pay-more"))
    world.commit(old.group, TopicPartition(caught, 0), 0)
    refusal = cli.fails("migrate", "split.toml", "--approved", "plan.json", "--yes", code=3)
    assert f"topic {caught} from {old.group} to {old.pay_group} is new" in refusal
    refusal = cli.fails(
        "migrate", "split.toml", "--approved", "plan.json", "--uncommitted", "earliest", "--yes", code=3
    )
    assert "option uncommitted was refuse, is earliest" in refusal
    assert world.committed(old.pay_group) == {}


def test_hold_needs_a_full_stop(cli, world):
    """If a part of the topics stays, --hold is refused first, because the group lives on."""
    Old(cli, world, stay=True)
    assert "drop --hold" in cli.fails("migrate", "split.toml", "--hold", "--yes", code=2)


def test_rehearsal_under_other_names(cli, world):
    """``--rename`` does the same split with other target groups, for a rehearsal."""
    old = Old(cli, world)
    cli(
        "migrate",
        "split.toml",
        "--rename",
        f"{old.pay_group}=staging-{old.pay_group}",
        "--run-dir",
        "rehearsal",
        "--yes",
    )
    assert world.committed(f"staging-{old.pay_group}") == old.offsets(old.pay)
    assert world.committed(old.pay_group) == {}
    assert "no group nope" in cli.fails("migrate", "split.toml", "--rename", "nope=x", "--yes", code=2)


def test_another_intent_is_refused_in_the_same_run_directory(cli, world):
    """A run directory belongs to one intent: a migration with another intent does not overwrite its receipt."""
    old = Old(cli, world)
    cli("migrate", "split.toml", "--yes")
    refusal = cli.fails("migrate", "split.toml", "--uncommitted", "earliest", "--yes", code=2)
    assert "receipt of another migration" in refusal
    assert world.committed(old.pay_group) == old.offsets(old.pay)


@NEEDS_NEW_PARTITIONS
def test_a_killed_run_after_which_the_old_applications_ran_on(cli, world):
    """After a kill, the source group commits and partitions are added: the same command hands over the new state."""
    old = Old(cli, world)
    assert cli.killed_at(5, "migrate", "split.toml", "--yes")
    assert world.committed(old.find_group) | world.committed(old.pay_group)
    for partition, offset in world.committed(old.group).items():
        world.commit(old.group, partition, offset + 2)
    world.add_partitions(old.pay, 3)
    world.produce(old.pay, 2, 3)
    done = cli("migrate", "split.toml", "--yes")
    assert "5 partitions: 5 confirmed" in done.stdout
    assert world.committed(old.pay_group) == {**old.offsets(old.pay), TopicPartition(old.pay, 2): 0}
    assert world.committed(old.find_group) == old.offsets(old.find)
    cli("rollback", "split.toml.run", "--yes")
    assert world.committed(old.pay_group) == world.committed(old.find_group) == {}


def test_a_hold_that_costs_offsets_is_told_before(cli, world):
    """The plan of a held migration warns if the source group never had a member."""
    Old(cli, world)
    assert "never had a member" in cli("migrate", "split.toml", "--hold", "--dry-run").stdout
    assert "never had a member" not in cli("migrate", "split.toml", "--dry-run").stdout


def test_a_dry_run_knows_the_run_that_it_would_resume(cli, world):
    """After a kill, the dry run passes like the write, which replaces the offsets of the killed run."""
    old = Old(cli, world)
    assert cli.killed_at(5, "migrate", "split.toml", "--yes")
    for partition, offset in world.committed(old.group).items():
        world.commit(old.group, partition, offset + 2)
    dry = cli("migrate", "split.toml", "--dry-run", "--format", "json")
    assert json.loads(dry.stdout)["verdict"] == "pass"
    done = cli("migrate", "split.toml", "--yes", "--format", "json", "--plan-out", "p.json")
    assert json.loads(done.stdout) == json.loads((cli.folder / "p.json").read_text())
    assert "4 partitions: 4 confirmed" in done.stderr


@NEEDS_NEW_PARTITIONS
def test_an_approved_run_is_resumed_with_the_partitions_that_were_added(cli, world):
    """An added partition that the killed run set to its start needs no new review."""
    old = Old(cli, world)
    cli("migrate", "split.toml", "--dry-run", "--plan-out", "plan.json")
    consumer = world.join(old.group, old.find)
    with cli.start_killed_at(2, "migrate", "split.toml", "--yes", "--approved", "plan.json") as process:
        assert "test-app" in "".join(process.stderr.readline() for _ in range(2))
        world.add_partitions(old.pay, 3)
        world.leave(consumer)
        assert process.wait(60) == -signal.SIGKILL
    cli("migrate", "split.toml", "--yes", "--approved", "plan.json")
    assert world.committed(old.pay_group) == {**old.offsets(old.pay), TopicPartition(old.pay, 2): 0}


@pytest.mark.parametrize("source", ["spec", "command line"])
def test_offsets_below_the_logs_start(cli, world, source):
    """An offset below the log start is refused; ``out_of_range = "earliest"`` takes the log start offset."""
    old = Old(cli, world, options='out_of_range = "earliest"' if source == "spec" else "")
    world.delete_records(old.pay, 0, 7)
    if source == "command line":
        refusal = cli.fails("migrate", "split.toml", "--yes", code=3)
        assert f"{old.pay}-0 at 4: 3 records gone already" in refusal
        assert "--out-of-range earliest" in refusal
    cli("migrate", "split.toml", "--yes", *(() if source == "spec" else ("--out-of-range", "earliest")))
    assert world.committed(old.pay_group) == {TopicPartition(old.pay, 0): 7, TopicPartition(old.pay, 1): 5}


def test_two_runs_at_once(cli, world):
    """While one run waits in a run directory, a second run is refused."""
    old = Old(cli, world)
    world.join(old.group, old.pay)
    with running(cli, "migrate", "split.toml", "--yes", "--wait", "60s") as process:
        assert "test-app" in "".join(process.stderr.readline() for _ in range(2))
        files = set((cli.folder / "split.toml.run").iterdir())
        assert "another run is at work" in cli.fails("migrate", "split.toml", "--yes", code=3)
        assert set((cli.folder / "split.toml.run").iterdir()) == files


def test_two_run_directories_with_one_target(cli, world):
    """Two runs in different run directories write to the same target groups: one is refused or reports it."""
    old = Old(cli, world)
    (cli.folder / "other").mkdir()
    shutil.copy(cli.folder / "split.toml", cli.folder / "other")
    consumer = world.join(old.group, old.pay)
    with (
        running(cli, "migrate", "split.toml", "--yes", "--wait", "60s") as one,
        running(cli, "migrate", "other/split.toml", "--yes", "--wait", "60s") as other,
    ):
        for process in (one, other):
            assert "test-app" in "".join(process.stderr.readline() for _ in range(2))
        world.leave(consumer)
        ends = sorted(process.communicate(timeout=60)[1] and process.returncode for process in (one, other))
    # Both write the same offsets: the later run finds them in place, or sees them change after its plan.
    assert ends in ([0, 0], [0, 3], [0, 4]), ends
    assert world.committed(old.pay_group) == old.offsets(old.pay)


def test_ctrl_c_while_waiting_leaves_nothing_changed(cli, world):
    """Ctrl-C during the wait is exit 130, and nothing is written."""
    old = Old(cli, world)
    world.join(old.group, old.pay)
    with running(cli.cold, "migrate", "split.toml", "--yes", "--wait", "60s") as process:
        assert "test-app" in "".join(process.stderr.readline() for _ in range(2))
        process.send_signal(2)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "interrupted; nothing was written" in err
    assert world.committed(old.pay_group) == {}


def test_a_reader_that_leaves_changes_nothing_but_what_is_heard(cli, world):
    """With stdout and stderr closed, as after ``2>&1 | head -3``, everything is written and read back; exit 0."""
    old = Old(cli, world)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "migrate_groups", "migrate", "split.toml", "--yes", "--guard", "1ms"],
        cwd=cli.folder,
        env=cli.environment,
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=writer,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 0
    assert world.committed(old.pay_group) == old.offsets(old.pay)
    assert outcomes(cli) == {"confirmed"}
    assert (cli.folder / "split.toml.run" / "after.parquet").exists()


def test_sigterm_during_the_guard_lets_go_of_the_old_group(cli, world):
    """SIGTERM during the guard leaves no hold and no child process, and stderr names the receipt."""
    old = Old(cli, world)
    with running(cli, "migrate", "split.toml", "--yes", "--hold", "--guard", "60s") as process:
        assert any("watching " in line for line in process.stderr)
        children = children_of(process.pid)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err == "interrupted; split.toml.run/receipt.json says what was written; the same command goes on\n"
    assert children or sys.platform != "linux"
    until(lambda: all(map(gone, children)))
    assert outcomes(cli) == {"confirmed"}
    world.leave(world.join(old.group, old.pay))


def test_rollback_restores_the_pre_image(cli, world):
    """Rollback deletes created offsets and restores changed ones; it has a dry run and an execution of its own."""
    old = Old(cli, world, options='on_existing = "overwrite"')
    first = TopicPartition(old.pay, 0)
    world.commit(old.pay_group, first, 1)
    cli("migrate", "split.toml", "--yes")
    assert "delete" in cli("rollback", "split.toml.run", "--dry-run").stdout
    assert world.committed(old.pay_group) == old.offsets(old.pay)
    done = cli("rollback", "split.toml.run", "--yes")
    assert "4 partitions: 4 confirmed" in done.stdout
    assert world.committed(old.pay_group) == {first: 1}
    assert world.committed(old.find_group) == {}
    assert outcomes(cli, execution=2) == {"confirmed"}
    assert "is rolled back already" in cli("rollback", "split.toml.run", "--yes").stderr


def test_rollback_is_refused_once_somebody_committed(cli, world):
    """Rollback is refused if a target group has a member or has committed: its records would be processed twice."""
    old = Old(cli, world)
    cli("migrate", "split.toml", "--yes")
    consumer = world.join(old.pay_group, old.pay)
    assert "targets: " in cli.fails("rollback", "split.toml.run", "--yes", code=3)
    world.consume(consumer, 3)
    consumer.commit(asynchronous=False)
    world.leave(consumer)
    refusal = cli.fails("rollback", "split.toml.run", "--yes", code=3)
    assert "committed since; hand-back" in refusal


def test_hand_back_loses_and_repeats_nothing(cli, world):
    """After a hand-back the source group continues exactly where the target groups stopped: each record comes once."""
    old = Old(cli, world)
    partitions = [TopicPartition(topic, number) for topic in (old.pay, old.find) for number in (0, 1)]
    cli("migrate", "split.toml", "--yes")
    pay = world.join(old.pay_group, old.pay)
    values = world.consume(pay, 7)
    pay.commit(asynchronous=False)
    with running(cli, "hand-back", "split.toml.run", "--yes", "--wait", "60s") as process:
        assert old.pay_group in process.stderr.readline()
        world.leave(pay)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    again = world.join(old.group, old.pay, old.find)
    left = sum(10 - world.committed(old.group)[partition] for partition in partitions)
    values += world.consume(again, left)
    expected = [f"{tp.topic}-{tp.partition}-{number}" for tp in partitions for number in range(4 + tp.partition, 10)]
    assert sorted(values) == sorted(expected)


def test_delete_offsets_the_day_after(cli, world):
    """The source group's offsets of moved topics are deleted once they are not consumed; those of other topics stay."""
    old = Old(cli, world, stay=True)
    cli("migrate", "split.toml", "--yes")
    consumer = world.join(old.group, old.pay)
    assert "still consumed" in cli.fails("delete-offsets", "split.toml.run", "--yes", code=3)
    world.leave(consumer)
    cli("delete-offsets", "split.toml.run", "--yes")
    assert world.committed(old.group) == old.offsets(old.find) != {}


def test_delete_offsets_is_refused_while_a_new_group_stands_behind(cli, world):
    """The source group keeps its offsets if a target group has committed a lower offset."""
    old = Old(cli, world)
    cli("migrate", "split.toml", "--yes")
    world.commit(old.pay_group, TopicPartition(old.pay, 0), 1)
    assert "not taken over yet" in cli.fails("delete-offsets", "split.toml.run", "--yes", code=3)
    assert len(world.committed(old.group)) == 4
