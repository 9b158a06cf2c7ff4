"""`migrate` on a real broker, and the commands that follow it: `rollback`, `hand-back` and `delete-offsets`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import confluent_kafka
import pytest

from migrate_groups.files.runs import plan_json
from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.cli import running, waiting
from tests.support.documents import parsed
from tests.support.old_group import Old
from tests.support.processes import children_of, gone
from tests.support.versions import CONSUMER, NEEDS_KIP_848, NEEDS_NEW_PARTITIONS, NEEDS_TRANSACTIONS

NOW = ("--settle", "0s", "--guard", "0s", "--yes")


def outcomes(cli) -> set[str]:
    entries = json.loads((cli.folder / "split.toml.run" / "receipt.json").read_text())["entries"]
    return {entry["outcome"] for entry in entries}


def test_migrate_hands_over_a_stopped_group(cli, world):
    """`migrate` hands over every partition of a stopped group, and saves its files in the run directory.

    A second `migrate` succeeds, and keeps the offsets in the receipt.
    """
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
    tables = {f"{name}.parquet" for name in ("baseline", "before", "split", "stop_checkpoints", "after")}
    assert files == {"spec.toml", "plan.json", "offsets.csv", "receipt.json"} | tables
    receipt = (cli.folder / "split.toml.run" / "receipt.json").read_bytes()
    cli("migrate", "split.toml", "--yes")
    again = json.loads((cli.folder / "split.toml.run" / "receipt.json").read_text())
    assert [entry["before"] for entry in again["entries"]] == [None] * 4
    assert [e["after"] for e in again["entries"]] == [e["after"] for e in json.loads(receipt)["entries"]]
    assert outcomes(cli) == {"confirmed"}


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_migrate_waits_until_the_source_group_stops(cli, world, protocol):
    """If the source group is live, `migrate` names its members, waits until they have left, and hands over their last
    commits.
    """
    old = Old(cli, world)
    consumer = world.join(old.group, old.pay, old.find, **{"group.protocol": protocol})
    assert "pending" in cli("migrate", "split.toml", "--dry-run").stdout
    with waiting(cli) as command:
        spec = (cli.folder / "split.toml").rename(cli.folder / "away").read_bytes()  # the command keeps what it loaded
        world.consume(consumer, 6)
        consumer.commit(asynchronous=False)
        world.leave(consumer)
    assert "4 confirmed" in command.out
    assert world.committed(old.pay_group) | world.committed(old.find_group) == world.committed(old.group)
    assert (cli.folder / "split.toml.run" / "spec.toml").read_bytes() == spec


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_migrate_measures_the_outage(cli, world, protocol):
    """The receipt has the last reading with a member of the source group, START, and the first member of a target.

    A target group in which no consumer starts during the guard has no time, and the result names it.
    """
    old = Old(cli, world)
    consumer = world.join(old.group, old.pay, old.find, **{"group.protocol": protocol})
    briefly, began = ("--settle", "1s", "--guard", "5s"), datetime.now(UTC)
    with waiting(cli, "migrate", "split.toml", "--yes", "--wait", "60s", *briefly) as command:
        world.leave(consumer)
        until(lambda: world.committed(old.pay_group))
        world.join(old.pay_group, old.pay, **{"group.protocol": protocol})
    receipt = json.loads((cli.folder / "split.toml.run" / "receipt.json").read_text())
    outage = receipt["executions"][-1]["outage"]
    ran_until, start = (datetime.fromisoformat(outage[name]) for name in ("ran_until", "start_at"))
    signs = {each["group"]: each for each in outage["first_signs"]}
    assert began < ran_until < start - timedelta(seconds=1)
    assert signs[old.pay_group]["sign"] == "member"
    assert start < datetime.fromisoformat(signs[old.pay_group]["at"])
    assert signs[old.find_group] == {"group": old.find_group, "at": None, "sign": None}
    assert f"no member or commit during the watch: {old.find_group}" in command.out


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_source_group_consumes_its_other_topics_during_migrate(cli, world, protocol):
    """If the spec keeps some topics in the source group (``[stay]``), the group consumes these topics while `migrate`
    runs.
    """
    old = Old(cli, world, stay=True)
    consumer = world.join(old.group, old.pay, old.find, **{"group.protocol": protocol})
    with running(cli, "migrate", "split.toml", "--yes", "--wait", "60s") as process:
        assert "assigned or subscribed" in "".join(process.stderr.readline() for _ in range(2))
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


def test_migrate_writes_nothing_if_the_wait_times_out(cli, world):
    """If the source group does not stop within ``--wait``, `migrate` ends with exit code 3, and writes no offset and no
    receipt.
    """
    old = Old(cli, world)
    world.join(old.group, old.pay)
    assert "not stopped after 1 s" in cli.fails("migrate", "split.toml", "--yes", "--wait", "1s", code=3)
    assert world.committed(old.pay_group) == {}
    assert not (cli.folder / "split.toml.run" / "receipt.json").exists()


@pytest.mark.parametrize(
    ("option", "protocol"),
    [
        pytest.param([], "classic", id="observed"),
        pytest.param(["--hold"], "classic", id="held"),
        pytest.param([], "consumer", id="KIP-848", marks=NEEDS_KIP_848),
    ],
)
def test_source_application_that_restarts_during_the_guard_is_exit_4(cli, world, option, protocol):
    """If the old application joins again while `migrate` watches after the write (``--guard``), the exit code is 4.

    With ``--hold`` the application can join once the tool has left the group.
    """
    old = Old(cli, world)
    with running(cli, "migrate", "split.toml", "--yes", *option, "--guard", "6s") as process:
        until(lambda: world.committed(old.find_group))
        world.consumer(old.group, old.pay, old.find, **{"group.protocol": protocol})
        out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert "4 confirmed" in out
    assert "test-app" in err
    assert ("is no longer held" in err) == bool(option)


@NEEDS_KIP_848
@pytest.mark.parametrize("way", ["by name", "by regex", "a commit"])
def test_kip_848_member_that_takes_a_moved_topic_during_the_guard_is_exit_4(cli, world, way):
    """If a live KIP-848 group uses a moved topic after the write (``--guard``), `migrate` ends with exit code 4.

    It reports a commit for this topic, or a member that subscribes to it, but not the member that subscribes to other
    topics only.
    """
    old = Old(cli, world, stay=True)
    protocol = {"group.protocol": "consumer"}
    stays = world.join(old.group, old.find, **protocol)
    with running(cli, "migrate", "split.toml", "--yes", "--guard", "60s") as process:
        until(lambda: world.committed(old.pay_group))
        if way == "a commit":
            stays.commit(offsets=[confluent_kafka.TopicPartition(old.pay, 0, 9)], asynchronous=False)
            said = f"has committed on 1 partition since its offsets were read: {old.pay}-0 4 → 9 (5 records)"
        else:
            regex = f"^{old.pay[:-1]}.*"
            world.consumer(old.group, regex if way == "by regex" else old.pay, **protocol, **{"client.id": "back"})
            said = f"regex ({regex})" if way == "by regex" else f"(back at 127.0.0.1 on {old.pay}; "

        def ended() -> bool:
            stays.poll(0.05)
            return process.poll() is not None

        until(ended, seconds=60)
        _, err = process.communicate()
    assert process.returncode == 4, err
    assert said in err
    assert "test-app" not in err
    assert world.committed(old.pay_group) == {TopicPartition(old.pay, 0): 4, TopicPartition(old.pay, 1): 5}


@NEEDS_TRANSACTIONS
def test_a_transaction_that_ends_during_the_guard_with_a_first_commit_is_exit_4(cli, world):
    """If a transaction that was open at the stop commits the old group's first offset on a topic, the topic is named.

    After a rollback, the same command hands it over.
    """
    old = Old(cli, world)
    late = TopicPartition(world.create_topic(1, topic=world.name("pay-late")), 0)
    world.produce(late.topic, 0, 10)
    producer = world.transactional_producer()
    producer.begin_transaction()
    metadata = world.consumer(old.group).consumer_group_metadata()
    producer.send_offsets_to_transaction([confluent_kafka.TopicPartition(*late, 6)], metadata)
    with running(cli, "migrate", "split.toml", "--yes", "--guard", "5s") as process:
        until(lambda: world.committed(old.find_group))
        producer.commit_transaction()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert f"has committed since its offsets were read on {late}, not handed over" in err
    cli("rollback", "split.toml.run", "--yes")
    cli("migrate", "split.toml", *NOW)
    assert world.committed(old.pay_group)[late] == 6


@pytest.mark.parametrize(("uncommitted", "received"), [("latest", 5), ("leave", 0)])
def test_uncommitted_latest_keeps_records_produced_during_the_cut_over(cli, world, uncommitted, received):
    """With ``on_uncommitted = "latest"``, records produced during the cut-over are processed; with ``leave``, they are
    skipped.

    The partition has no committed offset, and the target's consumers use auto.offset.reset=latest. With ``latest`` the
    tool writes the log end offset that it read before the stop.
    """
    old = Old(cli, world, options=f'on_uncommitted = "{uncommitted}"')
    fresh = world.create_topic(1, topic=world.name("pay-new"))
    world.produce(fresh, 0, 3)
    consumer = world.join(old.group, old.pay, old.find, fresh, **{"auto.offset.reset": "latest"})
    with waiting(cli):
        world.leave(consumer)
        world.produce(fresh, 0, 5, prefix="meanwhile-")
    new = world.join(old.pay_group, old.pay, fresh, **{"auto.offset.reset": "latest"})
    values: list[str] = []

    def has_come_to_the_end() -> bool:
        world.produce(fresh, 0, 1, prefix="later-")
        values.extend(world.consume(new, 1))
        return any(value.startswith("later-") for value in values)

    until(has_come_to_the_end)
    assert sum(value.startswith("meanwhile-") for value in values) == received


@NEEDS_NEW_PARTITIONS
def test_partition_added_during_the_wait_starts_at_its_first_record(cli, world):
    """If a partition is added while `migrate` waits for the stop, the target group gets offset 0 for this partition."""
    old = Old(cli, world)
    consumer = world.join(old.group, old.pay, old.find)
    with waiting(cli):
        world.add_partitions(old.pay, 3)
        world.produce(old.pay, 2, 4)
        world.leave(consumer)
    assert world.committed(old.pay_group)[TopicPartition(old.pay, 2)] == 0


def test_approved_plan_fixes_topics_and_options_but_not_offsets(cli, world):
    """``migrate --approved`` accepts a plan if only offsets have changed, and refuses it if topics or options have
    changed. Another settle is no other plan, but a shorter one is mentioned.
    """
    old = Old(cli, world)
    cli("snapshot", old.group, "-o", "early.csv")
    cli("split", "early.csv", "--spec", "split.toml", "-o", "review.csv")
    options = ("--settle", "6s", "--guard", "0s")
    cli("apply", "review.csv", "--dry-run", *options, "--plan-out", "plan.json")
    world.commit(old.group, TopicPartition(old.pay, 0), 9)
    done = cli("migrate", "split.toml", "--approved", "plan.json", "--dry-run", "--settle", "5s", "--guard", "1s")
    assert "settle is 5s, and plan.json was reviewed with 6s" in done.stderr
    caught = world.create_topic(1, topic=world.name("pay-more"))
    world.commit(old.group, TopicPartition(caught, 0), 0)
    refusal = cli.fails("migrate", "split.toml", "--approved", "plan.json", "--yes", code=3)
    assert f"topic {caught} from {old.group} to {old.pay_group} is new" in refusal
    refusal = cli.fails(
        "migrate", "split.toml", "--approved", "plan.json", "--on-uncommitted", "earliest", "--yes", code=2
    )
    assert "option on_uncommitted was refuse, is earliest" in refusal
    assert world.committed(old.pay_group) == {}


def test_hold_is_refused_if_some_topics_stay(cli, world):
    """If the spec keeps some topics in the source group (``[stay]``), ``--hold`` is refused with exit code 2.

    A hold keeps all consumers out of the group.
    """
    Old(cli, world, stay=True)
    assert "drop --hold" in cli.fails("migrate", "split.toml", "--hold", "--yes", code=2)


def test_rename_hands_over_to_other_target_groups(cli, world):
    """With ``--rename``, for a rehearsal, `migrate` writes to other target groups than the spec names.

    A name that is not in the spec is refused.
    """
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
    assert "group nope not found" in cli.fails("migrate", "split.toml", "--rename", "nope=x", "--yes", code=2)


def test_run_directory_of_another_migration_is_refused(cli, world):
    """If the run directory contains the receipt of a migration with other options, `migrate` is refused."""
    old = Old(cli, world)
    cli("migrate", "split.toml", "--yes")
    refusal = cli.fails("migrate", "split.toml", "--on-uncommitted", "earliest", "--yes", code=2)
    assert "receipt of another migration" in refusal
    assert world.committed(old.pay_group) == old.offsets(old.pay)


@NEEDS_NEW_PARTITIONS
def test_rerun_after_a_kill_hands_over_later_commits(cli, world):
    """If the source group commits after `migrate` was killed, and partitions are added, a re-run hands over the current
    offsets.

    `rollback` then deletes the offsets of both runs.
    """
    old = Old(cli, world)
    # 1 and 2: the first record; 3 and 4: the claim; 5 and 6: the same record; 7 and 8: the write.
    assert cli.killed_at(9, "migrate", "split.toml", "--yes")
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


def test_plan_warns_that_offsets_may_expire_after_a_hold(cli, world):
    """If the source group never had a member, the plan with ``--hold`` warns of this; without ``--hold`` it does not.

    Its offsets could expire after the hold.
    """
    Old(cli, world)
    assert "never had a member" in cli("migrate", "split.toml", "--hold", "--dry-run").stdout
    assert "never had a member" not in cli("migrate", "split.toml", "--dry-run").stdout


def test_dry_run_passes_after_an_interrupted_run(cli, world):
    """After `migrate` was killed, its dry run passes, and a re-run replaces the offsets of the killed run."""
    old = Old(cli, world)
    # 1 and 2: the first record; 3 and 4: the claim; 5 and 6: the same record; 7 and 8: the write.
    assert cli.killed_at(9, "migrate", "split.toml", "--yes")
    for partition, offset in world.committed(old.group).items():
        world.commit(old.group, partition, offset + 2)
    dry = cli("migrate", "split.toml", "--dry-run", "--format", "json")
    assert parsed(dry.stdout)["verdict"] == "pass"
    done = cli("migrate", "split.toml", "--yes", "--format", "json", "--plan-out", "p.json")
    assert done.stdout == (cli.folder / "split.toml.run" / "receipt.json").read_text()
    assert plan_json.load(cli.folder / "p.json").plan.verdict == "pass"
    assert "4 partitions: 4 confirmed" in done.stderr


def test_a_printed_plan_is_piped_to_apply(cli, world):
    """``migrate --dry-run --format json | apply -`` writes the offsets of the printed plan.

    Plan and receipt match their JSON schemas.
    """
    old = Old(cli, world)
    plan = cli("migrate", "split.toml", "--dry-run", "--format", "json").stdout
    piped = ("apply", "-", "--yes", "--receipt", "receipt.json", "--format", "json")
    receipt = parsed(cli(*piped, stdin=plan).stdout)
    assert receipt["executions"][0]["content"] == parsed(plan)["content"]
    assert {entry["outcome"] for entry in receipt["entries"]} == {"confirmed"}
    assert world.committed(old.pay_group) == old.offsets(old.pay)


@NEEDS_NEW_PARTITIONS
def test_approved_run_is_resumed_with_an_added_partition(cli, world):
    """If an approved `migrate` is killed after a partition was added, the re-run needs no new approval for this
    partition.
    """
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
def test_offset_below_the_log_start_is_refused_or_replaced(cli, world, source):
    """An offset below the log start is refused; with ``on_out_of_range = "earliest"`` it is replaced by the log start
    offset.
    """
    old = Old(cli, world, options='on_out_of_range = "earliest"' if source == "spec" else "")
    world.delete_records(old.pay, 0, 7)
    if source == "command line":
        refusal = cli.fails("migrate", "split.toml", "--yes", code=3)
        assert f"{old.pay}-0 at 4: 3 records deleted already" in refusal
        assert "--on-out-of-range earliest" in refusal
    cli("migrate", "split.toml", "--yes", *(() if source == "spec" else ("--on-out-of-range", "earliest")))
    assert world.committed(old.pay_group) == {TopicPartition(old.pay, 0): 7, TopicPartition(old.pay, 1): 5}


def test_second_run_in_the_same_run_directory_is_refused(cli, world):
    """While one `migrate` waits, a second one with the same run directory is refused, and changes none of its files."""
    old = Old(cli, world)
    world.join(old.group, old.pay)
    with running(cli, "migrate", "split.toml", "--yes", "--wait", "60s") as process:
        assert "test-app" in "".join(process.stderr.readline() for _ in range(2))
        files = set((cli.folder / "split.toml.run").iterdir())
        assert "another run uses" in cli.fails("migrate", "split.toml", "--yes", code=3)
        assert set((cli.folder / "split.toml.run").iterdir()) == files


def test_concurrent_runs_with_the_same_target_groups(cli, world):
    """If two runs with ``--copy`` have the same target groups, the target groups get the right offsets.

    One run ends with exit code 0, the other with 0, 3 or 4.
    """
    old = Old(cli, world)
    (cli.folder / "other").mkdir()
    shutil.copy(cli.folder / "split.toml", cli.folder / "other")
    consumer = world.join(old.group, old.pay)
    with (
        running(cli, "migrate", "split.toml", "--copy", "--yes", "--wait", "60s") as one,
        running(cli, "migrate", "other/split.toml", "--copy", "--yes", "--wait", "60s") as other,
    ):
        for process in (one, other):
            assert "test-app" in "".join(process.stderr.readline() for _ in range(2))
        world.leave(consumer)
        ends = sorted(process.communicate(timeout=60)[1] and process.returncode for process in (one, other))
    # Both write the same offsets: the later run finds them in place, or sees them change after its plan.
    assert ends in ([0, 0], [0, 3], [0, 4]), ends
    assert world.committed(old.pay_group) == old.offsets(old.pay)


def test_ctrl_c_during_the_wait_writes_nothing(cli, world):
    """If Ctrl-C interrupts `migrate` while it waits for the stop, the exit code is 130, and nothing is written."""
    old = Old(cli, world)
    world.join(old.group, old.pay)
    with running(cli.cold, "migrate", "split.toml", "--yes", "--wait", "60s") as process:
        assert "test-app" in "".join(process.stderr.readline() for _ in range(2))
        process.send_signal(2)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "interrupted; nothing was written" in err
    assert world.committed(old.pay_group) == {}


def test_migrate_completes_with_stdout_and_stderr_closed(cli, world):
    """If stdout and stderr are closed, as by ``2>&1 | head -3``, `migrate` writes and confirms all offsets, with exit
    code 0.
    """
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


def test_sigterm_during_the_guard_releases_the_source_group(cli, world):
    """If SIGTERM ends ``migrate --hold`` while it watches after the write, consumers can join the source group again.

    No child process is left, and stderr names the receipt.
    """
    old = Old(cli, world)
    with running(cli, "migrate", "split.toml", "--yes", "--hold", "--guard", "60s") as process:
        assert any("watching " in line for line in process.stderr)
        children = children_of(process.pid)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err == (
        "interrupted; all offsets are written and read back; "
        "split.toml.run/receipt.json lists what was written: run the same command again to resume\n"
    )
    assert children or sys.platform != "linux"
    until(lambda: all(map(gone, children)))
    assert outcomes(cli) == {"confirmed"}
    world.leave(world.join(old.group, old.pay))
