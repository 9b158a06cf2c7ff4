"""``apply --from-group`` on the in-memory cluster: a stopped group hands over all its committed offsets, without a
file.
"""

from __future__ import annotations

import json
import os
import shlex

import pytest

from migrate_groups.cli.commands import apply
from migrate_groups.migration import carry_out
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from tests.support.clock import FakeClock
from tests.support.connected import PARTITION, Connected
from tests.support.pages import PAGES, commands

NOW = ("--settle", "0s", "--guard", "1ms")
APPLY = ("apply", "--from-group", "old", "--to-group", "new", *NOW, "--yes")
DRY = ("apply", "--from-group", "old", "--to-group", "new", "--dry-run")
MEMBER = Member(member_id="m", client_id="app", host="/h", assignment=frozenset({PARTITION}))


def verbs(cli: Connected, receipt: str = "old.new.receipt.json") -> list[str]:
    return [each["verb"] for each in json.loads((cli.folder / receipt).read_text())["executions"]]


def test_a_stopped_group_hands_over_all_its_committed_offsets(cli):
    """``apply --from-group`` copies a stopped group's committed offsets to the new group.

    A rollback deletes them again.
    """
    done = cli(*APPLY)
    assert cli.offset("new") == 5
    assert "handed over by old" in done.stdout
    assert "receipt: old.new.receipt.json" in done.stderr
    assert done.stderr.splitlines()[-2:] == [
        "next: migrate-groups snapshot new -o after.parquet",
        "back: migrate-groups rollback old.new.receipt.json (before the new groups commit), hand-back (after)",
    ]
    cli("rollback", "old.new.receipt.json", "--yes")
    assert cli.offset("new") is None


def test_a_second_apply_says_that_it_wrote_nothing(cli):
    """If ``apply`` has handed over and the new group has not started, the same command says that it wrote nothing."""
    assert "written and read back: START THE NEW GROUPS NOW\n" in cli(*APPLY).stderr
    again = cli(*APPLY).stderr
    assert "handed over already, nothing was written: START THE NEW GROUPS NOW\n" in again
    assert "written and read back" not in again
    cli("rollback", "old.new.receipt.json", "--yes")
    cli.cluster.commit("new", PARTITION, 5)
    assert "handed over already, nothing was written: START" in cli(*APPLY, "--receipt", "other.json").stderr


def test_a_dry_run_writes_nothing_and_its_saved_plan_can_be_applied(cli):
    """A dry run of ``apply --from-group`` changes neither cluster nor folder; ``apply`` accepts the plan that it
    saves.
    """
    before = set(cli.folder.iterdir())
    assert "create" in cli(*DRY).stdout
    assert (cli.offset("new"), set(cli.folder.iterdir())) == (None, before)
    cli(*DRY, "--settle", "0s", "--guard", "0s", "--plan-out", "plan.json", "--detailed-exitcode", code=10)
    cli("apply", "plan.json", "--yes")
    assert cli.offset("new") == 5


def test_some_partitions_are_handed_over_as_the_docs_show(cli):
    """The commands in docs/split-a-group.md hand over one of two partitions of a topic.

    Without ``--on-uncommitted leave``, ``apply`` refuses the file that lacks the second partition.
    """
    other, handed_over = TopicPartition("invoices", 1), TopicPartition("invoices", 0)
    cli.cluster.create_topic("invoices", 2)
    for partition in (handed_over, other):
        cli.cluster.produce("invoices", partition.partition, 10)
        cli.cluster.commit("big-group", partition, 5)
    cli("snapshot", "big-group", "-o", "before.parquet")
    shown = [
        shlex.split(line)[1:] for line in commands(PAGES["docs/split-a-group.md"].read_text()) if "part.csv" in line
    ]
    select, write = shown
    cli(*select)
    error = cli.fails(*write[:-2], *NOW, "--yes", code=3)
    assert "the file lacks 1 partition with a committed offset: invoices-1" in error
    cli(*write, *NOW, "--yes")
    found = cli.cluster.offsets("new")
    assert {partition: each.offset for partition, each in found.items()} == {handed_over: 5}


def test_fan_out_hands_over_to_several_groups(cli):
    """With ``--fan-out``, ``apply`` gives each of several groups the offsets, and the receipt's name contains them all.

    Without ``--fan-out``, several target groups end with exit code 2.
    """
    several = ("apply", "--from-group", "old", "--to-group", "a", "--to-group", "b", *NOW, "--yes")
    assert "pass --fan-out" in cli.fails(*several, code=2)
    cli(*several, "--fan-out")
    assert (cli.offset("a"), cli.offset("b")) == (5, 5)
    assert (cli.folder / "old.a+b.receipt.json").exists()


def test_a_live_group_is_refused_and_the_error_shows_how_to_fork_it(cli):
    """If the source group has members, ``apply`` is refused, and the error names commands that copy a live group."""
    cli.cluster.join("old", MEMBER)
    error = cli.fails(*APPLY, code=3)
    assert "old has 1 member assigned or subscribed to t" in error
    _, rewind, copy = error.split("migrate-groups ")
    assert rewind.startswith("rewind --group old --to-current -o copy.csv, then ")
    assert copy.startswith("apply copy.csv --to-group new; nothing was written")
    assert cli.offset("new") is None
    cli(*shlex.split(rewind.removesuffix(", then ")))
    cli(*shlex.split(copy.split(";")[0]), *NOW, "--yes")
    assert cli.offset("new") == 5


def test_a_dry_run_for_a_live_group_is_pending(cli):
    """If the source group has members, a dry run succeeds with the check ``stopped`` pending.

    The output shows commands that copy a live group's offsets.
    """
    cli.cluster.join("old", MEMBER)
    done = cli(*DRY)
    assert "pending  stopped" in done.stdout
    assert "rewind --group old --to-current -o copy.csv" in done.stdout
    assert done.stderr.endswith("verify old --wait 5m, and migrate-groups apply --from-group old --to-group new\n")


def test_a_commit_during_the_settle_time_is_refused(cli, monkeypatch):
    """If a consumer without membership commits during the ``--settle`` time, the write is refused: exit code 3."""
    clock = FakeClock(lambda: cli.cluster.commit("old", PARTITION, 6))
    monkeypatch.setattr(apply, "SystemClock", lambda: clock)
    error = cli(*APPLY[:5], "--settle", "7s", "--yes", code=3).stderr
    assert error.startswith("waiting 7 s to see that no consumer commits\n")
    assert "t-0 5 → 6 (+1); run the same command again; nothing was written" in error
    assert (clock.slept, cli.offset("new")) == (7.0, None)


def test_apply_of_a_file_waits_until_its_offsets_are_as_old_as_settle(cli, monkeypatch):
    """A snapshot was read 3 s ago: with ``--settle 7s``, `apply` waits for 4 s, and then sees a commit of this time."""
    clock = FakeClock(lambda: cli.cluster.commit("old", PARTITION, 6))
    clock.slept = 3.0
    monkeypatch.setattr(apply, "SystemClock", lambda: clock)
    error = cli("apply", "split.csv", "--settle", "7s", "--guard", "0s", "--yes", code=3).stderr
    assert error.startswith("waiting 4 s to see that no consumer commits\n")
    assert "t-0 5 → 6 (+1)" in error
    assert (clock.slept, cli.offset("new")) == (7.0, None)


def test_an_interrupted_write_is_resumed_by_the_same_command(cli, monkeypatch):
    """After an interrupted write, the same command resumes the run and hands over the source group's latest offset."""

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(carry_out, "write", lambda _, execution, record: (record(execution), interrupt()))
        assert "old.new.receipt.json lists what was written" in cli(*APPLY, code=130).stderr
    cli.cluster.commit("old", PARTITION, 8)
    cli(*APPLY)
    assert cli.offset("new") == 8
    assert verbs(cli) == ["hand-over"]


def test_rerun_after_the_new_group_started(cli):
    """A re-run after the new group has started writes nothing.

    If the old group has members again, the exit code is 4.
    """
    cli(*APPLY)
    cli.cluster.commit("new", PARTITION, 7)
    assert "handed over already, and started since: group new; nothing was written" in cli(*APPLY).stderr
    cli.cluster.join("old", MEMBER)
    assert "started since: group new; group 'old' has 1 member" in cli.fails(*APPLY, code=4)
    assert cli.offset("new") == 7


def test_the_same_offsets_of_another_group_are_not_handed_over_already(cli):
    """If ``apply`` gets the receipt of a hand-over from another source group, it is refused with exit code 2.

    This holds even if the offsets are equal and the new group has started.
    """
    receipt = ("--receipt", "old.new.receipt.json")
    cli(*APPLY)
    cli.cluster.commit("new", PARTITION, 7)
    cli.cluster.commit("other", PARTITION, 5)
    again = [each.replace("old", "other") for each in APPLY]
    assert "is the receipt of another migration" in cli.fails(*again, *receipt, code=2)


def test_an_offset_that_is_raised_to_the_log_start_keeps_its_metadata(cli):
    """With ``--on-out-of-range earliest``, the new group gets the log start offset with the old group's metadata."""
    cli.cluster.commit("old", PARTITION, 5, metadata="mine")
    cli.cluster.delete_records("t", 0, 7)
    cli(*APPLY, "--on-out-of-range", "earliest")
    found = cli.cluster.offsets("new")[PARTITION]
    assert (found.offset, found.metadata) == (7, "mine")


def test_a_new_partition_without_a_commit_is_refused_until_an_option_decides(cli):
    """If a partition has no committed offset, ``apply`` is refused, unless ``--on-uncommitted earliest`` is passed."""
    cli.cluster.add_partitions("t", 2)
    assert "complete" in cli.fails(*APPLY, code=3)
    cli(*APPLY, "--on-uncommitted", "earliest")
    assert cli.cluster.offsets("new")[TopicPartition("t", 1)].offset == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("split.csv", "--from-group", "old", "--to-group", "new"), "FILE (split.csv) and --from-group old contradict"),
        (("--from-group", "old"), "name the new one with --to-group"),
        (
            ("--from-group", "old", "--from-group", "other", "--to-group", "new"),
            "--from-group takes one group, not several: old, other",
        ),
        (("--from-group", "old", "--to-group", "old"), "group old is --from-group and --to-group"),
        (("--from-group", "old", "--to-group", ""), "--to-group is empty"),
        (("--from-group", "", "--to-group", "new"), "a group name is empty"),
        (("--from-group", "old", "--to-group", "new", "--restore"), "--restore"),
        (("--from-group", "old", "--to-group", "new", "--on-uncommitted", "latest"), "for migrate only"),
        (("--from-group", os.fsdecode(b"g\xff"), "--to-group", "new"), "not UTF-8 text"),
        (("--from-group", "old", "--to-group", os.fsdecode(b"g\xff")), "not UTF-8 text"),
        (("--to-group", "new"), "name a FILE, or the old group with --from-group"),
    ],
)
def test_options_that_contradict_each_other(cli, arguments, said):
    """If options of ``apply`` contradict each other, or a group is missing or invalid, the exit code is 2.

    Nothing is written.
    """
    assert said in cli.fails("apply", *arguments, "--yes", code=2)
    assert cli.offset("new") is None


def test_a_group_without_committed_offsets_is_refused(cli):
    """If the source group does not exist, or has no visible committed offset, ``apply`` ends with exit code 3."""
    assert "'none' does not exist" in cli.fails("apply", "--from-group", "none", "--to-group", "new", "--yes", code=3)
    cli.cluster.join("idle", MEMBER)
    cli.cluster.leave("idle", "m")
    error = cli.fails("apply", "--from-group", "idle", "--to-group", "new", "--yes", code=3)
    assert "group 'idle' has no committed offset on a topic that User:ANONYMOUS may describe" in error


@pytest.mark.parametrize("group", ["../up", "-x", "a b/ü\n", "x" * 300, "."])
def test_any_group_name_makes_a_receipt_in_the_current_directory(cli, group):
    """Whatever the group's name is, ``apply`` saves the receipt in the current folder, and rollback accepts it."""
    cli.cluster.commit(group, PARTITION, 3)
    before = set(cli.folder.iterdir())
    cli("apply", f"--from-group={group}", f"--to-group={group}2", *NOW, "--yes")
    (receipt,) = {path for path in cli.folder.iterdir() if not path.name.endswith(".lock")} - before
    cli("rollback", receipt.name, "--yes")
    assert cli.offset(f"{group}2") is None


def test_a_reset_csv_needs_no_source_group(cli):
    """``apply`` refuses a CSV of kafka-consumer-groups, even in a dry run while a live group consumes its topic.

    The file names no old group, so no check sees the group. With ``--no-source-group`` it is written.
    """
    cli.cluster.join("old", MEMBER)
    (cli.folder / "reset.csv").write_text(f"{PARTITION.topic},{PARTITION.partition},3\n")
    command = ("apply", "reset.csv", "--to-group", "new")
    assert cli.fails(*command, "--dry-run", code=2) == (
        "error: reset.csv does not say which group hands over its offsets, so nothing shows whether consumers have "
        "stopped: pass --no-source-group if no group hands them over; otherwise use apply --from-group OLD --to-group "
        "NEW"
    )
    assert cli.fails(*command, *NOW, "--yes", code=2)
    assert cli.offset("new") is None
    cli(*command, "--no-source-group", "--dry-run", "--plan-out", "plan.json")
    cli(*command, "--no-source-group", *NOW, "--yes")
    assert cli.offset("new") == 3
    cli("apply", "plan.json", "--dry-run")


def test_no_source_group_contradicts_a_source_group(cli):
    """``--no-source-group`` is refused if the file or ``--from-group`` names a source group."""
    (cli.folder / "four.csv").write_text(f"old,{PARTITION.topic},{PARTITION.partition},3\n")
    error = cli.fails("apply", "four.csv", "--to-group", "new", "--no-source-group", "--dry-run", code=2)
    assert "four.csv: group old hands over these offsets: drop --no-source-group" in error
    assert "--no-source-group contradicts --from-group old" in cli.fails(*DRY, "--no-source-group", code=2)


def test_a_group_that_has_consumed_a_replay_has_started(cli):
    """If a group has committed since it got the offsets of a replay, `apply` and `status` say that it has started.

    They do not say that its offsets are lost, because it would read the records of the replay once more.
    """
    (cli.folder / "reset.csv").write_text(f"{PARTITION.topic},{PARTITION.partition},3\n")
    command = ("apply", "reset.csv", "--to-group", "new", "--no-source-group", *NOW, "--yes")
    cli(*command)
    cli.cluster.commit("new", PARTITION, 8)
    error = cli.fails(*command, code=3)
    assert f"new {PARTITION}: the group has committed higher offsets since reset.csv.new.receipt.json was" in error
    assert "so it has started" in cli("status", "reset.csv.new.receipt.json").stdout.partition("next:")[2]
    cli.cluster.commit("new", PARTITION, 2)
    assert f"new {PARTITION}: the committed offset is no longer the one that" in cli.fails(*command, code=3)


def test_an_old_group_that_goes_on_after_the_start_is_exit_4(cli):
    """If the old group has committed since the new one started, the same ``apply --from-group`` ends with exit code 4.

    It does not take the old group's new offset for another migration.
    """
    cli(*APPLY)
    cli.cluster.commit("new", PARTITION, 8)
    cli.cluster.commit("old", PARTITION, 7)
    error = cli.fails(*APPLY, code=4)
    assert "handed over already, and started since: group new; group 'old' has committed" in error
    assert cli.offset("new") == 8
