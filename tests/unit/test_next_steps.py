"""The last line of a command: what to run next, and what a failure means for the cluster and the applications."""

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


STATUS = "see: migrate-groups status split.toml.run"


def last(cli: Connected, *command: str, code: int = 0) -> str:
    """Run a command, and return the last line of its stderr."""
    return cli(*command, code=code).stderr.splitlines()[-1]


def last_two(cli: Connected, *command: str, code: int) -> list[str]:
    """Run a command, and return the last two lines of its stderr."""
    return cli(*command, code=code).stderr.splitlines()[-2:]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("migrate", "split.toml", "--dry-run"), "migrate-groups migrate split.toml"),
        (
            ("migrate", "split.toml", "--dry-run", "--plan-out", "my plan.json"),
            "migrate-groups migrate split.toml --approved 'my plan.json'",
        ),
        (
            ("migrate", "--dry-run", "-y", "--format=csv", "--rename", "new=x", "--settle=0s", "--hold", "split.toml"),
            "migrate-groups migrate split.toml --rename new=x --hold --settle 0s",
        ),
        (
            ("migrate", "split.toml", "--dry-run", "--start-command", "true secret", "--bootstrap-server", "h:1"),
            "migrate-groups migrate split.toml --bootstrap-server h:1, with --start-command as now",
        ),
        (
            ("migrate", "split.toml", "--dry-run", "--run-dir", "it's\n::error::\\x"),
            "migrate-groups migrate split.toml --run-dir $'it\\'s\\n::error::\\\\x'",
        ),
        (("apply", "split.csv", "--dry-run", "--copy"), "migrate-groups apply split.csv --copy"),
        (
            ("apply", "split.csv", "--dry-run", "--plan-out", "plan.json", "--to-group", "x", "--bootstrap-server=h:1"),
            "migrate-groups apply plan.json --bootstrap-server h:1",
        ),
        (
            ("delete-offsets", "--group", "old", "--topic", "t", "--dry-run", "--settle=0s"),
            "migrate-groups delete-offsets --group old --topic t --settle 0s",
        ),
        (("verify", "old", "--settle", "0s"), "migrate-groups snapshot old -o before.parquet"),
    ],
)
def test_a_command_that_writes_nothing_says_the_next_one(cli, command, said):
    """The last line of ``verify``, and of a dry run of ``migrate`` or ``apply``, is the next command to run."""
    assert last(cli, *command) == f"next: {said}"


def test_the_comment_says_the_next_command(cli):
    """The Markdown of a dry run has the command that writes the plan, beside which the plan lies.

    It has none if a check refuses.
    """
    folder = cli.folder / "saved"
    folder.mkdir()
    comment = cli("migrate", "split.toml", "--dry-run", "--format", "markdown", "--plan-out", folder / "plan.json")
    assert "\nNext: `migrate-groups migrate split.toml --approved plan.json`\n" in comment.stdout
    command = ("apply", "split.csv", "--dry-run", "--format", "markdown")
    assert "\nNext: `migrate-groups apply split.csv`\n" in cli(*command).stdout
    cli.cluster.commit("new", PARTITION, 7)
    assert "Next:" not in cli(*command, code=3).stdout


def test_the_next_command_of_a_dry_run_writes(cli):
    """The command that a dry run says can be typed as it is, and writes what was shown."""
    said = last(cli, "migrate", "split.toml", "--dry-run", "--plan-out", "my plan.json", "--guard", "2ms")
    cli(*shlex.split(said.removeprefix("next: migrate-groups ")), "--yes")
    assert cli.offset("new") == 5


@pytest.mark.parametrize(
    ("command", "pending"),
    [
        (("migrate", "split.toml"), ", 1 check pending: stopped"),
        (("apply", "split.csv"), ", 1 check pending: stopped"),
        (("delete-offsets", "--group", "old", "--topic", "*"), ""),
    ],
)
def test_a_dry_run_says_that_it_passed(cli, command, pending):
    """If a dry run passes, its last line but one says so, and names the checks that are pending."""
    if pending:
        cli.cluster.join("old", MEMBER)
    assert cli(*command, "--dry-run").stderr.splitlines()[-2] == f"dry run passed{pending}"


def test_split_says_the_next_command_unless_it_prints_the_table(cli):
    """If ``split`` writes a file, its last line advises a dry run of `apply`.

    If ``split`` prints the table on stdout, it advises no command.
    """
    cli("snapshot", "old", "-o", "old.csv")
    assert last(cli, "split", "old.csv", "--to", "new=t", "-o", "a b.csv") == (
        "next: migrate-groups apply 'a b.csv' --dry-run"
    )
    assert "next" not in cli("split", "old.csv", "--to", "new=t", "-o", "-").stderr


def test_the_printed_commands_work_for_any_name(cli):
    """If a group or file name has a space or begins with a dash, the advised command still works when it is pasted."""
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
    """If the source group has members, ``apply --dry-run`` advises to stop them and to apply a new snapshot."""
    cli.cluster.join("old", MEMBER)
    assert last(cli, "apply", "split.csv", "--dry-run") == (
        "next: stop the old applications, then migrate-groups verify old --wait 5m, and apply a new snapshot"
    )


def test_apply_says_the_proof_and_the_way_back(cli):
    """After a hand-over, `apply` names the commands that verify it and those that undo it.

    After it has applied a file of ``rewind``, it names ``watch``.
    """
    said = cli(*APPLY).stderr
    proof = "migrate-groups snapshot new -o after.parquet; migrate-groups reconcile split.csv after.parquet"
    assert f"next: {proof}\n" in said
    assert said.endswith("rollback receipt.json (before the new groups commit), hand-back (after)\n")
    cli("rewind", "--group", "old", "--to-earliest", "-o", "replay.csv")
    said = cli("apply", "replay.csv", "--to-group", "replay", "--yes", "--guard", "0s", "--settle", "0s").stderr
    assert said.endswith("next: start the applications, then migrate-groups watch replay\n")


def test_apply_to_a_group_that_the_file_does_not_name_says_no_reconcile(cli):
    """With ``--to-group``, `apply` does not advise `reconcile`, because the file has no target groups to compare."""
    cli("snapshot", "old", "-o", "old.csv")
    said = cli("apply", "old.csv", "--to-group", "x", *APPLY[2:]).stderr
    assert "next: migrate-groups snapshot x -o after.parquet\n" in said


def test_what_the_error_says_is_not_said_again(cli, monkeypatch):
    """If the error ends with "nothing was written", the last line does not repeat this.

    Here a new application has run, so that the old ones would process its records again.
    """
    monkeypatch.setattr(cut_over.CutOver, "wait_for_stop", lambda _: cli.cluster.commit("new", PARTITION, 9))
    *_, error, meaning = cli(*MIGRATE, code=3).stderr.splitlines()
    assert error.endswith("nothing was written")
    assert meaning == "exit 3: the old applications may go on, or start again, unless a new one has run"


def test_a_refusal_before_the_question_is_one_line(cli):
    """If a check refuses before the user was told to stop an application, the last line is the error."""
    cli.cluster.commit("new", PARTITION, 9)
    assert last(cli, *MIGRATE, code=3).startswith("error: existing offsets")
    assert last(cli, "migrate", "split.toml", "--dry-run", code=3).startswith("error: existing offsets")


def test_after_an_earlier_run_the_old_applications_are_not_sent_on(cli):
    """If an earlier run has handed over, a failed re-run does not say that the old applications may go on.

    The target groups may have started.
    """
    cli(*MIGRATE)
    cli.cluster.join("old", MEMBER)
    said = last_two(cli, *MIGRATE, "--wait", "0s", code=3)
    assert said == ["exit 3: nothing was written to the cluster", STATUS]


def test_a_cluster_that_fails_after_the_write_began(cli, monkeypatch):
    """If the cluster fails after the write has begun, the exit code is 5, and the last lines name the receipt."""

    def unavailable(*_):
        raise ClusterUnavailable("the broker did not answer")

    monkeypatch.setattr(carry_out, "guard", unavailable)
    assert last_two(cli, *APPLY, code=5) == [
        "exit 5: all offsets are written and read back; "
        "receipt.json lists what was written: run the same command again to resume",
        "see: migrate-groups status receipt.json",
    ]


def test_exit_4_says_what_to_do_in_its_error(cli, monkeypatch):
    """If a command ends with exit code 4, its error says what to do, and the last line is the command ``status``."""
    monkeypatch.setattr(carry_out, "guard", lambda _, execution, *__: execution.with_moved(["group 'old' is back"]))
    error, status = last_two(cli, *MIGRATE, code=4)
    assert error.startswith("error: group 'old' is back; stop it")
    assert status == STATUS


@pytest.mark.parametrize("command", ["migrate split.toml", "rollback split.toml.run", "hand-back split.toml.run"])
@pytest.mark.parametrize("more", [["--yes"], ["--dry-run"]])
def test_an_error_of_a_run_names_status_with_its_cluster(cli, command, more):
    """The last line of a failed command is ``status`` for its run, with the typed options of the clusters."""
    cli(*MIGRATE)
    cli.cluster.delete_topic("t")
    cluster = ("--bootstrap-server", "h:1")
    assert last(cli, *command.split(), *more, *cluster, code=3) == f"{STATUS} {shlex.join(cluster)}"


def test_only_an_error_of_a_run_with_a_receipt_names_status(cli):
    """A wrong option, and an error before the first write of a run, do not name ``status``."""
    assert last(cli, "rollback", "split.csv", "--yes", code=2).startswith("error: ")
    cli.cluster.join("old", MEMBER)
    assert last(cli, *MIGRATE, "--wait", "0s", code=3).startswith("exit 3: ")
    cli.cluster.leave("old", MEMBER.member_id)
    cli(*MIGRATE)
    assert last(cli, *MIGRATE, "--settle", "x", code=2).startswith("error: ")


def test_a_group_that_has_stopped_takes_no_line(cli):
    """If the source group has no members when the wait begins, ``migrate`` prints no empty line."""
    assert "\n\n" not in cli(*MIGRATE).stderr


def test_a_table_on_stdout_is_said_to_be_there(cli):
    """With ``-o -``, ``snapshot`` says on stderr that the table was written to stdout."""
    assert cli("snapshot", "old", "-o", "-").stderr == "1 partition of old written to stdout\n"


def test_a_file_in_place_of_its_receipts_names_those_that_exist(cli):
    """If ``rollback`` gets the applied file instead of a receipt, the error lists the receipts beside this file."""
    assert "pass the receipt of its write (there is none beside it)" in cli.fails("rollback", "split.csv", code=2)
    for group in ("a", "b"):
        cli("apply", "split.csv", "--to-group", group, "--copy", *APPLY[2:7])
    assert "its write, split.csv.a.receipt.json or split.csv.b.receipt.json, or the run directory" in (
        cli.fails("rollback", "split.csv", "--yes", code=2)
    )


def test_a_replay_that_has_been_consumed_is_not_sent_to_hand_back(cli):
    """If a group that ``apply`` created from a file of ``rewind`` has committed, rollback advises delete-group.

    It does not advise hand-back, which is refused because there is no source group.
    """
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
    """If a file of ``rewind`` is applied and rolled back, no message is about old or new groups.

    There is no source group.
    """
    cli("rewind", "--group", "old", "--to-earliest", "-o", "replay.csv")
    done = cli("apply", "replay.csv", "--to-group", "replay", "--yes", "--guard", "1ms", "--settle", "0s")
    assert "written and read back: START THE APPLICATIONS NOW\n" in done.stderr
    done = cli("rollback", "replay.csv.replay.receipt.json", "--yes")
    assert "processed twice" not in done.stderr
    assert "written and read back\n" in done.stderr
    assert "not applicable  source group" in done.stdout
    assert cli.offset("replay") is None


def test_offsets_from_stdin_need_a_receipt_and_a_yes_which_one_error_names(cli):
    """If ``apply -`` has neither --receipt nor --yes, one error asks for both: stdin is no file and no terminal."""
    text = (cli.folder / "split.csv").read_text()
    error = cli.fails("apply", "-", "--to-group", "x", code=2, stdin=text)
    assert "say with --receipt where the receipt goes, and pass --yes, because stdin" in error


def test_the_advice_for_a_group_that_is_source_and_target_works(cli):
    """If a split file is applied to its source group, the error advises to apply the snapshot with ``--restore``.

    This advice works.
    """
    cli("snapshot", "old", "-o", "old.csv")
    assert "name another target; to write a group's own offsets back, apply its snapshot with --restore" in (
        cli.fails("apply", "split.csv", "--to-group", "old", "--dry-run", code=3)
    )
    cli("apply", "old.csv", "--restore", "--dry-run")


def test_the_offsets_of_a_run_are_set_again_without_lowering_one(cli):
    """The file ``offsets.csv`` of a run sets an offset again that is missing or too low, and keeps a higher one."""
    cli(*MIGRATE)
    again = ("apply", "split.toml.run/offsets.csv", "--no-source-group", "--to-group", "new")
    for low, then in ((0, 5), (8, 8)):
        cli.cluster.commit("new", PARTITION, low)
        cli(*again, "--on-existing", "forward", "--yes", "--settle", "0s", "--guard", "1ms", "--receipt", f"{low}.json")
        assert cli.offset("new") == then
    cli.cluster.delete("new", [PARTITION])
    cli(*again, "--yes", "--settle", "0s", "--guard", "1ms")
    assert cli.offset("new") == 5


def test_groups_with_the_same_partitions_are_not_written_to_one_group(cli):
    """If two groups of a file have the same partition, ``apply --to-group`` is refused; the error names both groups."""
    cli.cluster.commit("other", PARTITION, 3)
    cli("snapshot", "old", "other", "-o", "both.csv")
    assert cli.fails("apply", "both.csv", "--to-group", "new", "--dry-run", code=2) == (
        "error: several groups have the same partitions: old, other; select one group with filter --group first"
    )


def test_offsets_from_a_pipe_need_a_receipt(cli):
    """If ``apply`` reads a pipe, such as ``<(…)``, the error asks for --receipt, because a pipe has no folder."""
    reading, writing = os.pipe()
    with open(writing, "wb") as file:  # noqa: PTH123 (a file descriptor)
        file.write((cli.folder / "split.csv").read_bytes())
    error = cli.fails("apply", f"/dev/fd/{reading}", "--yes", "--settle", "0s", code=2)
    os.close(reading)
    assert error == f"error: the offsets come from /dev/fd/{reading}: say with --receipt where the receipt goes"


@pytest.mark.parametrize("command", ["rollback", "hand-back", "delete-offsets"])
def test_a_way_back_before_any_run_names_the_migration(cli, command):
    """If the run directory of a spec does not exist, the error names the ``migrate`` command that makes it.

    This holds for rollback, hand-back and delete-offsets.
    """
    said = last(cli, command, "split.toml.run", "--dry-run", code=2)
    assert said == "error: split.toml.run does not exist: migrate split.toml makes it"


def reviewed(cli: Connected, *options: str) -> tuple[str, ...]:
    """Save a plan, as a reviewer gets it, and return the command that writes it with further options."""
    cli("migrate", "split.toml", "--dry-run", "--plan-out", "plan.json")
    return ("migrate", "split.toml", "--approved", "plan.json", "--yes", *options)


def test_options_that_do_not_change_what_is_written_need_no_new_review(cli):
    """A reviewed plan is written with another wait, settle, guard, second client, hold, run directory and commands."""
    how = ("--wait", "1m", "--settle", "1ms", "--guard", "2ms", "--second-client", "none", "--hold")
    also = ("--run-dir", "other.run", "--start-command", "true", "--stop-command", "true", "--reference", "CHG-1")
    cli(*reviewed(cli, *how, *also, "--format", "json", "--timeout", "5s"))
    assert cli.offset("new") == 5


@pytest.mark.parametrize(
    "option",
    [
        ("--on-existing", "forward"),
        ("--on-uncommitted", "earliest"),
        ("--on-out-of-range", "earliest"),
        ("--on-removed", "restore"),
        ("--any-kind",),
        ("--copy",),
        ("--rename", "new=x"),
    ],
    ids=lambda option: option[0],
)
def test_options_that_may_change_what_is_written_need_a_new_review(cli, option):
    """A reviewed plan is refused with an option that changes what may be written, or that switches a check off."""
    status, _, error = cli.outcome(*reviewed(cli, *option))
    assert status == (3 if option[0] == "--rename" else 2)
    assert "the plan differs from plan.json" in error
    assert "have a new plan reviewed" in error
    assert cli.offset("new") is None
