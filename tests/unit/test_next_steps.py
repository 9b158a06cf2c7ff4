"""The last line of a command: what to run next, and what a failure means for cluster and applications."""

from __future__ import annotations

import os
import shlex

import pytest

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.migration import carry_out
from migrate_groups.migration.hand_over import cut_over
from migrate_groups.model.groups import Member
from tests.support.connected import APPLY, MIGRATE, PARTITION, Connected

MEMBER = Member(member_id="m", client_id="app", host="/h", subscription=frozenset("t"))


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    return Connected(tmp_path, monkeypatch)


def last(cli: Connected, *command: str, code: int = 0) -> str:
    """Run a command, and return the last line of its stderr."""
    return cli(*command, code=code).stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("migrate", "split.toml", "--dry-run"), "the same command without --dry-run"),
        (
            ("migrate", "split.toml", "--dry-run", "--plan-out", "my plan.json"),
            "the same command with --approved 'my plan.json', and without --dry-run",
        ),
        (("apply", "split.csv", "--dry-run"), "the same command without --dry-run"),
        (("apply", "split.csv", "--dry-run", "--plan-out", "plan.json"), "migrate-groups apply plan.json"),
        (("verify", "old", "--settle", "0s"), "migrate-groups snapshot old -o before.parquet"),
    ],
)
def test_a_command_that_writes_nothing_says_the_next_one(cli, command, said):
    """The last line of a command that writes nothing is the next command."""
    assert last(cli, *command) == f"next: {said}"


@pytest.mark.parametrize("command", ["rollback", "hand-back", "delete-offsets"])
def test_the_dry_run_of_a_way_back_says_the_next_command(cli, command):
    """The last line of a way back's dry run is the command that carries it out."""
    cli(*APPLY)
    assert last(cli, command, "receipt.json", "--dry-run") == "next: the same command without --dry-run"


@pytest.mark.parametrize(
    ("command", "pending"),
    [
        (("migrate", "split.toml"), ", 1 check pending: stopped"),
        (("apply", "split.csv"), ", 1 check pending: stopped"),
        (("delete-offsets", "--group", "old", "--topic", "*"), ""),
    ],
)
def test_a_dry_run_says_that_it_passed(cli, command, pending):
    """The line before the last of a dry run says that it passed, and names the checks that are pending."""
    if pending:
        cli.cluster.join("old", MEMBER)
    assert cli(*command, "--dry-run").stderr.splitlines()[-2] == f"dry run passed{pending}"


def test_split_says_the_next_command_unless_it_prints_the_table(cli):
    """With an output file, the last line is a dry run of `apply`. If the table is printed, there is no such line."""
    cli("snapshot", "old", "-o", "old.csv")
    assert last(cli, "split", "old.csv", "--to", "new=t", "-o", "a b.csv") == (
        "next: migrate-groups apply 'a b.csv' --dry-run"
    )
    assert "next" not in cli("split", "old.csv", "--to", "new=t", "-o", "-").stderr


def test_the_printed_commands_work_for_any_name(cli):
    """A group or file with a space or with a dash at its start is quoted, so that the printed command can be pasted."""
    cli.cluster.commit("-o", PARTITION, 5)
    step = "next: migrate-groups "
    snapshot = last(cli, "verify", "--settle", "0s", "--", "-o").removeprefix(step)
    assert snapshot == "snapshot -o before.parquet -- -o"
    cli(*shlex.split(snapshot))
    said = last(cli, "delete-group", "--dry-run", "--", "-o")
    cli(*shlex.split(said.removeprefix("to keep them: migrate-groups ")))
    assert (cli.folder / "kept.csv").exists()
    said = last(cli, "rewind", "--group", "-o", "--to-current", "-o", "my replay.csv")
    apply = said.partition(step)[2]
    assert apply == "apply 'my replay.csv' --to-group NAME"
    said = last(cli, *shlex.split(apply)[:-1], "--dd", "--yes", "--settle", "0s", "--guard", "1ms")
    cli.cluster.commit("--dd", PARTITION, 10)
    cli(*shlex.split(said.removeprefix("next: start the applications, then migrate-groups ")))


def test_a_dry_run_of_apply_while_the_old_group_runs(cli):
    """While the group runs, its offsets can't be applied: the next step is to stop it, and to take a new snapshot."""
    cli.cluster.join("old", MEMBER)
    assert last(cli, "apply", "split.csv", "--dry-run") == (
        "next: stop the old applications, then migrate-groups verify old --wait 5m, and apply a new snapshot"
    )


def test_apply_says_the_proof_and_the_way_back(cli):
    """After a hand-over, `apply` names the commands that prove and undo it; after a replay, the command to watch it."""
    said = cli(*APPLY).stderr
    proof = "migrate-groups snapshot new -o after.parquet; migrate-groups reconcile split.csv after.parquet"
    assert f"next: {proof}\n" in said
    assert said.endswith("rollback receipt.json (before the new groups commit), hand-back (after)\n")
    cli("rewind", "--group", "old", "--to-earliest", "-o", "replay.csv")
    said = cli("apply", "replay.csv", "--to-group", "replay", "--yes", "--guard", "0s", "--settle", "0s").stderr
    assert said.endswith("next: start the applications, then migrate-groups watch replay\n")


def test_apply_to_a_group_that_the_file_does_not_name_says_no_reconcile(cli):
    """With --to-group, `apply` does not name `reconcile`, because the file has no target groups to compare."""
    cli("snapshot", "old", "-o", "old.csv")
    said = cli("apply", "old.csv", "--to-group", "x", *APPLY[2:]).stderr
    assert "next: migrate-groups snapshot x -o after.parquet\n" in said


def test_exit_10_is_said(cli):
    """If a dry run found something to write, the last line explains exit code 10, which is not an error."""
    assert last(cli, "migrate", "split.toml", "--dry-run", "--detailed-exitcode", code=10) == (
        "exit 10: there are offsets to write"
    )


def test_a_wait_that_runs_out_lets_the_old_applications_go_on(cli):
    """If people were told to stop applications and nothing was written, the last line says that these may go on."""
    cli.cluster.join("old", MEMBER)
    assert last(cli, *MIGRATE, "--wait", "0s", code=3) == (
        "exit 3: nothing was written to the cluster; the old applications may go on, or start again"
    )


def test_what_the_error_says_is_not_said_again(cli, monkeypatch):
    """If the error says that nothing was written, the last line does not repeat it."""
    monkeypatch.setattr(cut_over.CutOver, "wait_for_stop", lambda _: cli.cluster.commit("new", PARTITION, 9))
    *_, error, meaning = cli(*MIGRATE, code=3).stderr.splitlines()
    assert error.endswith("nothing was written")
    assert meaning == "exit 3: the old applications may go on, or start again"


def test_a_refusal_before_the_question_is_one_line(cli):
    """A refusal before anybody was told to stop an application prints only the error."""
    cli.cluster.commit("new", PARTITION, 9)
    assert last(cli, *MIGRATE, code=3).startswith("error: existing offsets")
    assert last(cli, "migrate", "split.toml", "--dry-run", code=3).startswith("error: existing offsets")


def test_after_an_earlier_run_the_old_applications_are_not_sent_on(cli):
    """A resumed run does not say that old applications may go on, because target groups may have started."""
    cli(*MIGRATE)
    cli.cluster.join("old", MEMBER)
    assert last(cli, *MIGRATE, "--wait", "0s", code=3) == "exit 3: nothing was written to the cluster"


def test_a_cluster_that_fails_after_the_write_began(cli, monkeypatch):
    """If the cluster fails after the write has begun, the last line names the receipt."""

    def unavailable(*_):
        raise ClusterUnavailable("the broker did not answer")

    monkeypatch.setattr(carry_out, "guard", unavailable)
    assert last(cli, *APPLY, code=5) == (
        "exit 5: all offsets are written and confirmed; "
        "receipt.json lists what was written: run the same command again to resume"
    )


def test_exit_4_says_what_to_do_in_its_error(cli, monkeypatch):
    """The last line of a command that ends with exit 4 is its error, which says what to do."""
    monkeypatch.setattr(carry_out, "guard", lambda _, execution, *__: execution.with_moved(["group 'old' is back"]))
    assert last(cli, *MIGRATE, code=4).startswith("error: group 'old' is back; stop it")


def test_a_group_that_has_stopped_takes_no_line(cli):
    """If all members have left when the wait begins, the wait prints no empty line."""
    assert "\n\n" not in cli(*MIGRATE).stderr


def test_a_table_on_stdout_is_said_to_be_there(cli):
    """With ``-o -``, the message says that the table is on stdout."""
    assert cli("snapshot", "old", "-o", "-").stderr == "1 partition of old written to stdout\n"


def test_a_file_in_place_of_its_receipts_names_those_that_exist(cli):
    """If the applied file is given instead of a receipt, the error lists the receipts beside it, one for each group."""
    assert "pass the receipt of its write (there is none beside it)" in cli.fails("rollback", "split.csv", code=2)
    for group in ("a", "b"):
        cli("apply", "split.csv", "--to-group", group, *APPLY[2:7])
    assert "its write, split.csv.a.receipt.json or split.csv.b.receipt.json, or the run directory" in (
        cli.fails("rollback", "split.csv", "--yes", code=2)
    )


def test_a_replay_that_has_been_consumed_is_not_sent_to_hand_back(cli):
    """A replay has no source group: rollback advises delete-group instead of hand-back, and hand-back is refused."""
    cli("rewind", "--group", "old", "--to-earliest", "-o", "replay.csv")
    now = ("--yes", "--guard", "1ms", "--settle", "0s")
    cli("apply", "replay.csv", "--to-group", "replay", *now)
    receipt = "replay.csv.replay.receipt.json"
    cli.cluster.commit("replay", PARTITION, 3)
    error = cli.fails("rollback", receipt, "--yes", code=3)
    assert "migrate-groups delete-group replay, or set other offsets with rewind and apply" in error
    assert "hand-back" not in error
    assert "no old group handed over to replay" in cli.fails("hand-back", receipt, "--yes", code=3)


def test_a_replay_names_no_old_applications(cli):
    """Without a source group, messages name no old or new group, and nothing is watched after a rollback."""
    cli("rewind", "--group", "old", "--to-earliest", "-o", "replay.csv")
    done = cli("apply", "replay.csv", "--to-group", "replay", "--yes", "--guard", "1ms", "--settle", "0s")
    assert "written and read back: START THE APPLICATIONS NOW\n" in done.stderr
    done = cli("rollback", "replay.csv.replay.receipt.json", "--yes")
    assert "processed twice" not in done.stderr
    assert "written and read back\n" in done.stderr
    assert "no source group: nothing to check" in done.stdout
    assert cli.offset("replay") is None


def test_offsets_from_stdin_need_a_receipt_and_a_yes_which_one_error_names(cli):
    """One error demands both --receipt and --yes, because stdin is neither a named file nor a terminal."""
    text = (cli.folder / "split.csv").read_text()
    error = cli.fails("apply", "-", "--to-group", "x", code=2, stdin=text)
    assert "say with --receipt where the receipt goes, and pass --yes, because stdin" in error


def test_the_advice_for_a_group_that_is_source_and_target_works(cli):
    """A split file is not written back to its source group: the error advises the snapshot with --restore."""
    cli("snapshot", "old", "-o", "old.csv")
    assert "name another target; to write a group's own offsets back, apply its snapshot with --restore" in (
        cli.fails("apply", "split.csv", "--to-group", "old", "--dry-run", code=3)
    )
    cli("apply", "old.csv", "--restore", "--dry-run")


def test_groups_with_the_same_partitions_are_not_written_to_one_group(cli):
    """A partition gets one offset: the rows of two groups with this partition are refused, and the groups are named."""
    cli.cluster.commit("other", PARTITION, 3)
    cli("snapshot", "old", "other", "-o", "both.csv")
    assert cli.fails("apply", "both.csv", "--to-group", "new", "--dry-run", code=2) == (
        "error: several groups have the same partitions: old, other; select one group with filter --group first"
    )


def test_offsets_from_a_pipe_need_a_receipt(cli):
    """A pipe of the shell, such as ``<(…)``, has no folder for a receipt: the error asks for --receipt."""
    reading, writing = os.pipe()
    with open(writing, "wb") as file:  # noqa: PTH123 (a file descriptor)
        file.write((cli.folder / "split.csv").read_bytes())
    error = cli.fails("apply", f"/dev/fd/{reading}", "--yes", "--settle", "0s", code=2)
    os.close(reading)
    assert error == f"error: the offsets come from /dev/fd/{reading}: say with --receipt where the receipt goes"


@pytest.mark.parametrize("command", ["rollback", "hand-back", "delete-offsets"])
def test_a_way_back_before_any_run_names_the_migration(cli, command):
    """If the run directory of a spec does not exist, the error names the command that makes it."""
    said = last(cli, command, "split.toml.run", "--dry-run", code=2)
    assert said == "error: split.toml.run does not exist: migrate split.toml makes it"
