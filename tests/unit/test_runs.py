"""What `migrate`, `rollback`, `hand-back` and other commands do after each other, on the in-memory cluster."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import pytest

from migrate_groups.cli.commands import migrate as cutover
from migrate_groups.cli.commands import ways_back
from migrate_groups.errors import ClusterUnavailable
from migrate_groups.files.runs.compared import compared
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.run_states import State, Step, Verb, step
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.clock import FakeClock
from tests.support.connected import APPLY, MIGRATE, PARTITION, SPEC, Connected, right_after
from tests.support.rows import row

RUN = "split.toml.run"
OTHER = TopicPartition("kept", 0)
IN_PLACE = "nothing was written: every offset was in place already; if another run wrote them, its receipt can undo it"
OF_ANOTHER = "if another run wrote the offsets, roll back with its receipt"


def member(name: str, *topics: str) -> Member:
    assignment = frozenset(TopicPartition(topic, 0) for topic in topics)
    return Member(member_id=name, client_id=name, host="/h", assignment=assignment, subscription=frozenset(topics))


def keep_a_topic(cli: Connected) -> None:
    """Let the source group keep topic ``kept``, to which one of its live members is subscribed."""
    cli.cluster.create_topic("kept", 1)
    cli.cluster.commit("old", OTHER, 0)
    spec = (cli.folder / "split.toml").read_text()
    (cli.folder / "split.toml").write_text(spec.replace("[options]", '[stay]\ntopics = ["kept"]\n[options]'))
    cli.cluster.join("old", member("lives-on", "kept"))


def verbs(cli: Connected) -> list[str]:
    receipt = json.loads((cli.folder / RUN / "receipt.json").read_text())
    return [execution["verb"] for execution in receipt["executions"]]


def test_the_table_in_the_docs_matches_the_code():
    """The table in docs/run-states.md agrees with the code on what each command does in each state of a partition."""
    words = {
        Step.START: ("start", "start anew"),
        Step.RESUME: ("resume",),
        Step.UNDO: ("undo",),
        Step.ALLOW: ("allow",),
        Step.NO_OP: ("nothing to do",),
        Step.SKIP: ("skip",),
        Step.REFUSE: ("refuse",),
    }
    lines = (Path(__file__).parents[2] / "docs" / "run-states.md").read_text().splitlines()
    rows = {cells[1].strip(): cells[2:6] for line in lines if len(cells := line.split("|")) == 8}
    for state in State:
        (row,) = (cells for name, cells in rows.items() if name.removesuffix(" (open)") == state)
        for verb, cell in zip(Verb, row, strict=True):
            assert cell.strip() in words[step(state, verb)], (state, verb)


def test_rerun_after_the_target_group_started(cli):
    """If the target group has started, a re-run of `migrate` writes nothing and ends with exit code 0."""
    cli(*MIGRATE)
    cli.cluster.join("new", member("started", "t"))
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 8)
    again = cli(*MIGRATE)
    assert "handed over already, and started since: group new; nothing was written" in again.stderr
    assert cli.offset("new") == 8
    assert verbs(cli) == ["hand-over"]


def test_a_file_without_offsets_is_not_the_same_hand_over(cli):
    """If a file contains no committed offset, `apply` does not take it for the hand-over in the receipt.

    The command ends with exit code 2.
    """
    cli(*APPLY)
    cli.cluster.commit("new", PARTITION, 8)
    assert "handed over already" in cli(*APPLY).stderr
    tables.save(SnapshotTable.of_rows([row(group="new", source_group="old", offset=None)]), cli.folder / "unset.csv")
    error = cli.fails("apply", "unset.csv", *APPLY[2:], code=2)
    assert "receipt.json is the receipt of another migration" in error


def test_another_snapshot_after_the_target_group_started(cli):
    """If the target group has started, `apply` of a snapshot with other partitions or offsets ends with exit code 2.

    It names what differs, and does not say that an offset was set or deleted.
    """
    cli(*APPLY)
    cli.cluster.commit("new", PARTITION, 8)
    rows = [row(group="new", source_group="old", offset=6), row(group="new", source_group="old", topic="u", offset=1)]
    tables.save(SnapshotTable.of_rows(rows), cli.folder / "later.csv")
    error = cli.fails("apply", "later.csv", *APPLY[2:], code=2)
    assert "of another migration (old t-0 was at 5, is at 6, u-0 from old to new is new)" in error
    assert cli.offset("new") == 8


def test_rerun_after_the_source_group_committed_again(cli):
    """If the old group committed after the new group had started, a re-run counts the records processed twice.

    It writes nothing and ends with exit code 4.
    """
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 6)
    cli.cluster.commit("old", PARTITION, 9)
    error = cli.fails(*MIGRATE, code=4)
    assert "started since: group new; group 'old' has committed on 1 partition since its offsets were read" in error
    assert "t-0 5 → 9 (4 records)" in error
    assert "no member is on the topics now" in error
    assert error.endswith("what it has read is processed twice: audit counts it; nothing was written")
    assert cli.offset("new") == 6
    cli.cluster.join("old", member("late", "t"))
    error = cli.fails(*MIGRATE, code=4)
    assert "stop these consumers, because what they read is processed twice; nothing was written" in error
    assert "no member" not in error


def test_rerun_after_a_target_commit_before_the_read_back(cli, monkeypatch):
    """If the target group commits before the read-back, `migrate` says that the partition is not confirmed, and why.

    It ends with exit code 4. A re-run treats the partition as handed over.
    """
    spec = (cli.folder / "split.toml").read_text()
    (cli.folder / "split.toml").write_text(f'{spec}on_existing = "overwrite"\n')
    right_after(monkeypatch, cli.cluster, "alter", lambda: cli.cluster.commit("new", PARTITION, 8))
    assert "1 partition not confirmed (read back as 8, which another client" in cli.fails(*MIGRATE, code=4)
    assert "started since: group new; nothing was written" in cli(*MIGRATE).stderr
    assert cli.offset("new") == 8


def test_rerun_after_a_target_group_lost_an_offset(cli):
    """If a target group has lost its committed offset, a re-run of `migrate` ends with exit code 3.

    This is so even if another target group has started.
    """
    cli.cluster.create_topic("u", 1)
    cli.cluster.commit("old", TopicPartition("u", 0), 0)
    spec = (cli.folder / "split.toml").read_text()
    second = '[[target]]\ngroup = "second"\ntopics = ["u"]\n'
    (cli.folder / "split.toml").write_text(spec.replace("[options]", f"{second}[options]"))
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 8)
    cli.cluster.delete("second", [TopicPartition("u", 0)])
    assert "no committed offset any more for second u-0, so it is not known how far" in cli.fails(*MIGRATE, code=3)


def test_rerun_after_a_partial_rollback(cli, monkeypatch):
    """If a rollback reverted only one of two target groups, a re-run of `migrate` ends with exit code 2.

    It does not say that everything is handed over.
    """
    other = TopicPartition("u", 0)
    cli.cluster.create_topic("u", 1)
    cli.cluster.produce("u", 0, 10)
    cli.cluster.commit("old", other, 0)
    cli.cluster.commit("second", other, 6)
    cli.cluster.commit("new", PARTITION, 7)
    spec = (cli.folder / "split.toml").read_text()
    second = '[[target]]\ngroup = "second"\ntopics = ["u"]\n'
    (cli.folder / "split.toml").write_text(spec.replace("[options]", f'{second}[options]\non_existing = "overwrite"'))
    cli(*MIGRATE)
    with monkeypatch.context() as patched:
        right_after(patched, cli.cluster, "alter", lambda: cli.cluster.commit("second", other, 3))
        cli.fails("rollback", RUN, "--yes", code=4)
    assert cli.offset("new") == 7
    assert "second u-0: the committed offset is no longer the one that" in cli.fails(*MIGRATE, code=3)


def test_delete_offsets_of_a_deleted_source_group(cli):
    """If the source group no longer exists, `delete-offsets` says that no offset is left to delete."""
    cli(*MIGRATE)
    cli.cluster.delete_group("old")
    done = cli("delete-offsets", RUN, "--yes")
    assert "group old not found any more: no offset is left to delete there" in done.stdout
    assert verbs(cli) == ["hand-over", "delete-offsets"]
    assert "group old not found any more" not in cli("delete-offsets", RUN, "--yes").stdout


def test_rerun_refuses_an_altered_offset_that_was_in_place(cli):
    """If an offset that `migrate` found in place has changed in the meantime, a re-run ends with exit code 3.

    Otherwise a rollback could not restore the offset.
    """
    spec = (cli.folder / "split.toml").read_text()
    (cli.folder / "split.toml").write_text(f'{spec}on_existing = "forward"\n')
    cli.cluster.commit("new", PARTITION, 7)
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 6)
    error = cli.fails(*MIGRATE, code=3)
    assert "new t-0: the committed offset is no longer the one that split.toml.run/receipt.json confirmed" in error
    assert cli.offset("new") == 6


def test_rerun_does_not_write_a_deleted_target_group_again(cli):
    """If a confirmed target group was deleted, a re-run does not write its offsets again, and ends with exit code 3.

    The group may have processed records. `status` says the same.
    """
    cli(*MIGRATE)
    cli.cluster.delete_group("new")
    error = cli.fails(*MIGRATE, code=3)
    assert "new t-0: the committed offset is no longer the one that split.toml.run/receipt.json confirmed" in error
    reason = error.removeprefix("error: ").removesuffix("; nothing was written")
    found = json.loads(cli("status", "split.toml.run", "--format", "json").stdout)
    assert next((each["answer"], each["reason"]) for each in found["commands"]) == ("refused", reason)
    assert found["next"] == reason
    assert cli.offset("new") is None


def test_rollback_does_not_delete_an_offset_that_is_committed_meanwhile(cli, monkeypatch):
    """If a consumer of the new group commits during `rollback`, its offset is not deleted, and the exit code is 4."""
    cli(*MIGRATE)
    cli.cluster.delete("old", [PARTITION])
    right_after(monkeypatch, cli.cluster, "alter", lambda: cli.cluster.commit("new", PARTITION, 8))
    done = cli("rollback", RUN, "--yes", code=4)
    assert "committed 8 during the rollback: stop the group's consumers" in done.stdout
    assert (cli.offset("new"), cli.offset("old")) == (8, 5)


def test_the_guard_of_a_rollback_watches_offsets_that_were_in_place(cli, monkeypatch):
    """The watch after `rollback` also covers offsets that were in place before the hand-over and were not written.

    If the new group commits there, `rollback` ends with exit code 4.
    """
    cli.cluster.create_topic("u", 1)
    cli.cluster.produce("u", 0, 10)
    cli.cluster.commit("old", TopicPartition("u", 0), 3)
    cli.cluster.commit("new", TopicPartition("u", 0), 3)
    spec = (cli.folder / "split.toml").read_text()
    (cli.folder / "split.toml").write_text(spec.replace('topics = ["t"]', 'topics = ["t", "u"]').replace("1ms", "5s"))
    clock = FakeClock()
    for module in (cutover, ways_back):
        monkeypatch.setattr(module, "SystemClock", lambda: clock)
    cli(*MIGRATE)
    clock = FakeClock(lambda: cli.cluster.commit("new", TopicPartition("u", 0), 6))
    assert "u-0 3 → 6 (3 records); stop it" in cli.fails("rollback", RUN, "--yes", code=4)


def test_rerun_hands_over_a_later_source_offset_if_the_target_has_not_started(cli):
    """If the target group has not started, a re-run of `migrate` hands over the source group's new, later offset."""
    cli(*MIGRATE)
    cli.cluster.commit("old", PARTITION, 9)
    cli(*MIGRATE)
    assert cli.offset("new") == 9
    assert verbs(cli) == ["hand-over"]


def test_the_error_of_the_guard_covers_started_and_unstarted_target_groups(cli, monkeypatch):
    """If the old group commits during the watch after the write, the error says what to do in two cases.

    The new groups may have started or not.
    """
    clock = FakeClock(lambda: cli.cluster.commit("old", PARTITION, 7))
    for module in (cutover, ways_back):
        monkeypatch.setattr(module, "SystemClock", lambda: clock)
    error = cli.fails(*MIGRATE, "--guard", "5s", code=4)
    assert (
        "t-0 5 → 7 (2 records); stop its consumers. If the new groups have not started, run the same command again"
        in error
    )
    assert "if they have started, these records are processed twice" in error


def late_member(cli: Connected, monkeypatch: pytest.MonkeyPatch, *, commits: bool) -> None:
    """Hand over while a member of the group that lives on was not stopped in time; it leaves afterwards."""
    keep_a_topic(cli)

    def consume() -> None:
        cli.cluster.join("old", member("late", "t"))
        if commits:
            cli.cluster.commit("old", PARTITION, 7)

    with monkeypatch.context() as patched:
        patched.setattr(cutover, "SystemClock", lambda: FakeClock(consume))
        assert "group 'old' has 1 member" in cli.fails(*MIGRATE, "--guard", "5s", code=4)
    cli.cluster.leave("old", "late")


NO_MEMBER = "; no member is on the topics now (a consumer that uses assign() would not show)"
SAID = "the hand-over of 2026-11-20 12:00 UTC said: group 'old' has 1 member assigned or subscribed to t (late at h"


@pytest.mark.parametrize("commits", [True, False])
def test_a_member_that_has_left_is_told_as_past(cli, monkeypatch, commits):
    """A member that the guard saw, and that has left, is told as past, with the time, by `migrate` and `status`.

    The exit code stays 4, because records were processed twice. `status` says whether to repeat `migrate`, or that the
    new groups have started.
    """
    late_member(cli, monkeypatch, commits=commits)
    since = "group 'old' has committed on 1 partition since its offsets were read: t-0 5 → 7 (2 records); "
    step = json.loads(cli("status", RUN, "--format", "json").stdout)["next"]
    assert step.startswith(f"{since if commits else ''}{SAID}")
    assert step.endswith(
        f"{NO_MEMBER}: start no new group, and run migrate-groups migrate split.toml again; or undo it: migrate-groups "
        f"rollback {RUN}"
    )
    cli.cluster.commit("new", PARTITION, 8)
    step = json.loads(cli("status", RUN, "--format", "json").stdout)["next"]
    assert f"started since: group new; {since if commits else ''}{SAID}" in step
    assert step.endswith(f"{NO_MEMBER}; what it has read is processed twice: audit counts it")
    assert cli.fails(*MIGRATE, code=4) == f"error: {step}; nothing was written"


def test_a_member_that_is_back_is_told_as_present(cli, monkeypatch):
    """A member that is on the topics now is to be stopped, as `status` says, whether the new groups have started."""
    late_member(cli, monkeypatch, commits=False)
    cli.cluster.join("old", member("again", "t"))
    step = json.loads(cli("status", RUN, "--format", "json").stdout)["next"]
    assert step.startswith("group 'old' has 1 member assigned or subscribed to t (again at h on t; ")
    assert SAID not in step
    assert "): stop these consumers, start no new group, and run migrate-groups migrate split.toml again; or" in step
    cli.cluster.commit("new", PARTITION, 8)
    step = json.loads(cli("status", RUN, "--format", "json").stdout)["next"]
    assert step.endswith("): stop these consumers, because what they read is processed twice")
    assert "no member" not in step


def test_no_member_is_claimed_absent_if_the_group_cannot_be_read(cli, monkeypatch):
    """If the old group can't be read now, `migrate` repeats what the hand-over said, and to look with `describe`."""
    late_member(cli, monkeypatch, commits=False)
    cli.cluster.commit("new", PARTITION, 8)
    described = cli.cluster.description
    monkeypatch.setattr(cli.cluster, "description", lambda group: silent(group) if group == "old" else described(group))
    error = cli.fails(*MIGRATE, code=4)
    assert SAID in error
    assert "; see with describe whether it still does; what it has read" in error


def test_reconcile_remarks_that_the_old_group_consumed(cli, monkeypatch):
    """If the hand-over saw the old group consume, `reconcile` of the run says so: equal offsets do not show it."""
    late_member(cli, monkeypatch, commits=False)
    first, _ = compared([str(cli.folder / RUN)], [], has_spec=False).hints
    assert first.startswith(
        "old consumed after the hand-over, or may have, so records may be processed twice: audit counts them; "
        f"{SAID} on t; "
    )


def test_after_a_late_commit_the_offsets_are_deleted_by_group(cli, monkeypatch):
    """If the old group committed after the hand-over, and has no member there now, the way to delete its offsets works.

    `delete-offsets` of the run names it. While a member is there, it says to stop it. Afterwards, hand-back is refused
    until the deletion is rolled back.
    """
    late_member(cli, monkeypatch, commits=True)
    cli.cluster.commit("new", PARTITION, 9)
    cli.cluster.join("old", member("again", "t"))
    refusal = cli.fails("delete-offsets", RUN, "--yes", code=3)
    assert "the source group has committed since the hand-over: stop its consumers of these topics" in refusal
    cli.cluster.leave("old", "again")
    assert (
        "not moved: t-0: the source group has committed since the hand-over, and no member is on these topics now: "
        "unless the group has been given them back, migrate-groups delete-offsets --group old --topic t deletes its "
        "offsets, but hand-back of this run needs them"
    ) in cli.fails("delete-offsets", RUN, "--yes", code=3)
    cli("hand-back", RUN, "--dry-run")
    cli("delete-offsets", "--group", "old", "--topic", "t", "--settle", "0s", "--yes")
    assert cli.offset("old") is None
    assert f"expired or was deleted, and {SAID}" in cli.fails("hand-back", RUN, "--dry-run", code=3)
    cli.cluster.leave("old", "lives-on")
    cli("rollback", "old.delete-offsets.receipt.json", "--yes")
    cli("hand-back", RUN, "--dry-run")


def test_the_command_that_deletes_by_group_names_three_topics_at_most(cli, monkeypatch):
    """The command to delete the offsets of a group that committed since has at most three topics."""
    for topic in ("a", "b", "c"):
        cli.cluster.create_topic(topic, 1)
        cli.cluster.produce(topic, 0, 10)
        cli.cluster.commit("old", TopicPartition(topic, 0), 5)
    (cli.folder / "split.toml").write_text(SPEC.replace('["t"]', '["a", "b", "c", "t"]'))
    cli(*MIGRATE)
    for topic in ("a", "b", "c", "t"):
        cli.cluster.commit("old", TopicPartition(topic, 0), 6)
    refusal = cli.fails("delete-offsets", RUN, "--yes", code=3)
    assert "delete-offsets --group old --topic a --topic b --topic c … deletes its offsets" in refusal


def test_a_repeated_rollback_after_exit_4_of_the_guard_is_exit_4(cli, monkeypatch):
    """If the new group committed during the watch after `rollback`, a second `rollback` ends with exit code 4, too.

    It writes nothing, and reports again that records are processed twice.
    """
    cli(*MIGRATE)
    clock = FakeClock(lambda: cli.cluster.commit("new", PARTITION, 7))
    for module in (cutover, ways_back):
        monkeypatch.setattr(module, "SystemClock", lambda: clock)
    assert "t-0 no offset → 7; stop its consumers" in cli.fails("rollback", RUN, "--yes", code=4)
    error = cli.fails("rollback", RUN, "--yes", code=4)
    assert "is rolled back already, but group 'new' has committed on 1 partition since its offsets were read" in error
    assert f"{NO_MEMBER}; what it has read is processed twice, unless the old group has not started" in error
    cli.cluster.join("new", member("left", "t"))
    error = cli.fails("rollback", RUN, "--yes", code=4)
    assert "stop its consumers, because what they read from there on is processed twice; nothing was written" in error
    assert verbs(cli) == ["hand-over", "rollback"]


def silent(group: str) -> None:
    """Raise the error of a broker that does not answer."""
    raise ClusterUnavailable("no answer")


def test_a_repeated_migrate_looks_at_the_group_that_the_first_could_not_watch(cli, monkeypatch):
    """If `migrate` got no answer during the watch after the write, a re-run looks at the old group again.

    It ends with exit code 4 until it gets an answer.
    """
    with monkeypatch.context() as patched:
        clock = FakeClock(lambda: patched.setattr(cli.cluster, "description", silent))
        patched.setattr(cutover, "SystemClock", lambda: clock)
        error = cli.fails(*MIGRATE, "--guard", "5s", code=4)
    assert "group 'old' could not be watched after the write: no answer: run the same command again" in error
    cli.cluster.commit("new", PARTITION, 7)
    described = cli.cluster.description
    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "description", lambda group: silent(group) if group == "old" else described(group))
        error = cli.fails(*MIGRATE, code=4)
    assert "started since: group new; group 'old' could not be watched" in error
    assert error.endswith("run the same command again, which looks at the group; nothing was written")
    assert "handed over already" in cli(*MIGRATE).stderr


def test_a_repeated_rollback_watches_the_groups_that_the_first_could_not_watch(cli, monkeypatch):
    """If `rollback` got no answer during the watch after the write, a second `rollback` watches the new group.

    It ends with exit code 4 if this group has committed, otherwise 0. A dry run says that the group is still to be
    watched, and ends with exit code 4.
    """
    cli(*MIGRATE)
    with monkeypatch.context() as patched:
        clock = FakeClock(lambda: patched.setattr(cli.cluster, "description", silent))
        patched.setattr(ways_back, "SystemClock", lambda: clock)
        error = cli.fails("rollback", RUN, "--yes", code=4)
        assert "group 'new' could not be watched after the write: no answer: run the same command again" in error
        said = cli.fails("rollback", RUN, "--dry-run", code=4)
        assert "is rolled back already, but group 'new' could not be watched after the write" in said
    before = (cli.folder / RUN / "receipt.json").read_bytes()
    cli("rollback", RUN, "--yes")
    assert verbs(cli) == ["hand-over", "rollback"]
    (cli.folder / RUN / "receipt.json").write_bytes(before)
    cli.cluster.commit("new", PARTITION, 7)
    assert "t-0 no offset → 7; stop its consumers" in cli.fails("rollback", RUN, "--yes", code=4)


def test_rollback_of_a_run_that_wrote_nothing(cli):
    """If `migrate` found every offset in place and wrote nothing, `rollback` ends with exit code 3."""
    cli.cluster.commit("new", PARTITION, 5)
    done = cli(*MIGRATE)
    assert done.stderr.endswith(f"{IN_PLACE}\n")
    assert "rollback" not in done.stderr
    assert "not applicable  in range          no offset is written\n" in done.stdout
    refusal = cli.fails("rollback", RUN, "--yes", code=3)
    assert f"nothing to roll back: the last hand-over wrote nothing; {OF_ANOTHER}" in refusal
    assert cli.offset("new") == 5


def test_a_rerun_after_a_hand_back_that_finds_every_offset_in_place(cli):
    """If `migrate` is run again after a hand-back, and finds every offset in place, it says that it wrote nothing.

    `rollback` then ends with exit code 3, and another `hand-back` is possible.
    """
    cli(*MIGRATE)
    cli("hand-back", RUN, "--yes", "--wait", "0s")
    assert cli(*MIGRATE).stderr.endswith(f"{IN_PLACE}\n")
    assert f"the last hand-over wrote nothing; {OF_ANOTHER}" in cli.fails("rollback", RUN, "--yes", code=3)
    cli.cluster.commit("new", PARTITION, 7)
    cli("hand-back", RUN, "--yes", "--wait", "0s")
    assert cli.offset("old") == 7


def test_rollback_names_the_groups_and_says_what_may_start(cli, monkeypatch):
    """The confirmation prompt of `rollback` counts the offsets to restore and to delete, by group.

    After the read-back, the first line on stderr says to start the old applications.
    """
    cli.cluster.create_topic("u", 1)
    cli.cluster.produce("u", 0, 3)
    for group, topic, offset in (("old", "u", 3), ("b", "u", 1)):
        cli.cluster.commit(group, TopicPartition(topic, 0), offset)
    targets = '[[target]]\ngroup = "b"\ntopics = ["u"]\n[options]\non_existing = "forward"\n'
    (cli.folder / "split.toml").write_text((cli.folder / "split.toml").read_text().replace("[options]\n", targets))
    cli(*MIGRATE)
    asked: list[str] = []

    def agree(question: str, **_) -> bool:
        asked.append(question)
        return True

    monkeypatch.setattr("typer.confirm", agree)
    monkeypatch.setattr("migrate_groups.cli.terminal.Terminal.check_can_be_asked", lambda _: None)
    done = cli("rollback", RUN)
    assert asked == ["Restore 1 offset in b and delete 1 offset in new?"]
    assert "pass     in range             the offsets of all groups are within the log" in done.stdout
    start, *_, later = done.stderr.splitlines()
    assert start == "written and read back: START THE OLD APPLICATIONS NOW"
    assert later == "later: migrate-groups delete-group new, if nothing else uses it; or migrate again"


def test_the_plan_says_that_hand_back_needs_the_whole_source_group_stopped(cli):
    """If a topic stays with the source group, the plan says that a hand-back needs all its members to stop."""
    assert "way back" not in cli("migrate", "split.toml", "--dry-run").stdout
    keep_a_topic(cli)
    shown = cli("migrate", "split.toml", "--dry-run").stdout
    assert "old keeps topic kept: for a hand-back, all its members must stop, for 0 s" in shown
    assert "hand-back split.toml.run (after: all of old must stop for it)" in cli(*MIGRATE).stderr


def test_hand_back_waits_until_the_source_group_has_no_member(cli, monkeypatch):
    """`hand-back` waits until the source group has no member.

    Brokers refuse offsets for a group that has members.
    """
    keep_a_topic(cli)
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 8)
    assert "not stopped" in cli.fails("hand-back", RUN, "--yes", "--wait", "0s", code=3)
    assert cli.offset("old") == 5
    clock = FakeClock(lambda: cli.cluster.leave("old", "lives-on") if cli.cluster.description("old").members else 0)
    monkeypatch.setattr(ways_back, "SystemClock", lambda: clock)
    done = cli("hand-back", RUN, "--yes", "--wait", "60s")
    assert cli.offset("old") == 8
    assert "written and read back: START THE OLD APPLICATIONS NOW\n" in done.stderr


def test_a_hand_back_says_which_groups_to_delete_and_on_which_condition(cli):
    """The last line of `hand-back` names the new groups that can be deleted if nothing else uses them.

    They may have offsets in topics that this run did not hand over.
    """
    cli.cluster.create_topic("u", 1)
    cli.cluster.commit("old", TopicPartition("u", 0), 0)
    cli.cluster.commit("second", TopicPartition("u", 0), 0)
    second = '[[target]]\ngroup = "second"\ntopics = ["u"]\n[options]'
    (cli.folder / "split.toml").write_text((cli.folder / "split.toml").read_text().replace("[options]", second))
    cli(*MIGRATE)
    cli.cluster.create_topic("kept", 1)
    cli.cluster.commit("new", OTHER, 0)
    done = cli("hand-back", RUN, "--yes")
    assert (
        "new keeps its offsets of topic kept, which this run did not hand over: before an old application"
        in done.stdout
    )
    assert done.stderr.splitlines()[-1] == (
        "later: migrate-groups delete-group new second, if nothing else uses them; or migrate again, which replaces "
        "their offsets"
    )


def test_a_target_commit_while_hand_back_is_planned_is_pending(cli, monkeypatch):
    """If a target group commits while `hand-back` makes its first plan, its offsets are read again before the write."""
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 6)
    bounds, late = cli.cluster.log_ranges, [7, 8]

    def commits_meanwhile(*arguments, **named):
        if late:
            cli.cluster.commit("new", PARTITION, late.pop(0))
        return bounds(*arguments, **named)

    monkeypatch.setattr(cli.cluster, "log_ranges", commits_meanwhile)
    done = cli("hand-back", RUN, "--yes", "--wait", "60s")
    assert "t-0 6 → 7 (+1); hand-back reads its offsets again\n" in done.stdout
    assert cli.offset("old") == 8


def test_rerun_after_a_hand_back_replaces_the_target_offset(cli):
    """After a hand-back, a re-run of `migrate` replaces the target's offset with the source group's current offset."""
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 7)
    cli("hand-back", RUN, "--yes", "--wait", "0s")
    assert cli.offset("old") == 7
    cli.cluster.commit("old", PARTITION, 9)
    cli(*MIGRATE)
    assert cli.offset("new") == 9
    assert verbs(cli) == ["hand-over", "hand-back", "hand-over"]


def test_rerun_after_a_hand_back_refuses_another_clients_target_offset(cli):
    """If another client commits in the target group after a hand-back, a re-run of `migrate` ends with exit code 3."""
    cli(*MIGRATE)
    cli("hand-back", RUN, "--yes", "--wait", "0s")
    cli.cluster.commit("new", PARTITION, 8)
    assert "existing offsets" in cli.fails(*MIGRATE, code=3)
    assert cli.offset("new") == 8


@contextmanager
def expiring(cli: Connected, monkeypatch):
    """Delete the source group while `migrate` waits for ``--settle``, as if the group had expired."""

    def expire() -> None:
        if cli.cluster.description("old").exists:
            cli.cluster.delete_group("old")

    clock = FakeClock(expire)
    monkeypatch.setattr(cutover, "SystemClock", lambda: clock)
    yield


def test_a_source_group_that_expires_during_the_settle_time_is_restored(cli, monkeypatch):
    """If the source group expires during ``--settle``, ``--on-removed restore`` hands over its last known offsets."""
    with expiring(cli, monkeypatch):
        cli(*MIGRATE, "--settle", "5s", "--on-removed", "restore")
    assert cli.offset("new") == 5


def test_the_error_about_an_expired_source_group_names_the_option(cli, monkeypatch):
    """If the source group expires during ``--settle``, the error of `migrate` counts its expired offsets.

    The error names ``--on-removed restore``, which hands them over. A re-run without this option names it again.
    """
    with expiring(cli, monkeypatch):
        error = cli.fails(*MIGRATE, "--settle", "5s", "--wait", "20s", code=3)
    assert "group 'old' has no committed offset any more: 1 committed offset expired or deleted since this run" in error
    assert "pass --on-removed restore to hand over the offsets read before" in error
    assert (cli.folder / RUN / "baseline.parquet").exists()
    assert "pass --on-removed restore" in cli.fails(*MIGRATE, code=3)
    cli(*MIGRATE, "--on-removed", "restore")
    assert cli.offset("new") == 5
    assert [each.offset for each in tables.load(cli.folder / RUN / "baseline.parquet").rows()] == [5]


def test_an_expired_group_that_was_last_seen_with_members_is_refused(cli):
    """If an expired group had members when its offsets were last read, ``--on-removed restore`` is refused.

    The group may have committed later offsets before it expired.
    """
    cli.cluster.join("old", member("runs", "t"))
    cli.fails(*MIGRATE, "--wait", "0s", code=3)
    cli.cluster.leave("old", "runs")
    cli.cluster.delete_group("old")
    assert "still ran when they were read" in cli.fails(*MIGRATE, "--on-removed", "restore", code=3)
    assert cli.offset("new") is None


def test_each_target_of_one_file_has_its_own_receipt(cli):
    """`apply --to-group` names its receipt after the target group, so one file can be applied to several groups."""
    cli("snapshot", "old", "-o", "s.csv")
    for group in ("one", "a/b"):
        cli("apply", "s.csv", "--to-group", group, "--copy", "--settle", "0s", "--guard", "1ms", "--yes")
        assert cli.offset(group) == 5
    assert sorted(path.name for path in cli.folder.glob("s.csv.*.json")) == [
        "s.csv.a%2Fb.receipt.json",
        "s.csv.one.receipt.json",
    ]
    cli("rollback", "s.csv.one.receipt.json", "--yes")
    assert (cli.offset("one"), cli.offset("a/b")) == (None, 5)


@pytest.mark.parametrize(
    ("way_back", "said"), [("rollback", "rolled back already"), ("hand-back", "handed back already")]
)
def test_reconcile_of_a_reverted_run_is_refused(cli, way_back, said):
    """If a run was rolled back or handed back, `reconcile` ends with exit code 3, without a hand-over to judge."""
    cli(*MIGRATE)
    cli(way_back, RUN, "--yes")
    assert f"no hand-over to judge: new t-0: {said}" in cli.fails("reconcile", RUN, code=3)


def test_reconcile_of_a_run_without_a_receipt_is_refused(cli):
    """If a run directory contains no receipt, `reconcile` ends with exit code 3, because the run wrote nothing."""
    cli.cluster.join("old", member("runs", "t"))
    cli.fails(*MIGRATE, "--wait", "0s", code=3)
    assert "no hand-over to judge: this run wrote nothing" in cli.fails("reconcile", RUN, code=3)


def test_a_refused_migration_leaves_no_empty_run_directory(cli):
    """If `migrate` is refused, it removes the run directory that it made, if nothing was saved in it.

    A folder that existed before stays.
    """
    cli.cluster.commit("new", PARTITION, 9)
    cli.fails(*MIGRATE, code=3)
    assert not (cli.folder / RUN).exists()
    (cli.folder / "mine").mkdir()
    cli.fails(*MIGRATE, "--run-dir", "mine", code=3)
    assert [*(cli.folder / "mine").iterdir()] == []
