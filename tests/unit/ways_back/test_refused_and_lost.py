"""`rollback`, `hand-back` and `delete-offsets` after offsets were refused or lost, or partitions were added."""

from __future__ import annotations

import re

import pytest

from migrate_groups.cli.commands import migrate, ways_back
from migrate_groups.files.runs import receipt_json
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from tests.support.clock import FakeClock
from tests.support.connected import MIGRATE, PARTITION, Connected

RUN = "split.toml.run"
SECOND = TopicPartition("t", 1)
FAN_OUT = """source = "old"
fan_out = true
[[target]]
group = "a"
topics = ["t"]
[[target]]
group = "b"
topics = ["t"]
[options]
settle = "0s"
guard = "1ms"
"""


class Refusing(Connected):
    """The command line on an in-memory cluster that refuses writes to the groups or partitions in ``refused``.

    Topic ``t`` has two partitions. Its group ``old`` has committed offset 5 in both.
    """

    def __init__(self, folder, monkeypatch) -> None:
        super().__init__(folder, monkeypatch)
        self.refused: set[object] = set()
        self.cluster.add_partitions("t", 2)
        self.cluster.produce("t", 1, 50)
        self.cluster.commit("old", SECOND, 5)
        written = self.cluster.alter

        def alter(group, offsets):
            refused = [each for each in offsets if {group, each} & self.refused]
            rest = {each: offset for each, offset in offsets.items() if each not in refused}
            answer = WriteAnswer(answer=Answer.REFUSED, error="INVALID_COMMIT_OFFSET_SIZE")
            return {**(written(group, rest) if rest else {}), **dict.fromkeys(refused, answer)}

        monkeypatch.setattr(self.cluster, "alter", alter)

    def offsets(self, group: str) -> dict[int, int]:
        """Return the group's committed offsets on topic ``t``, by partition number."""
        found = self.cluster.offsets(group).items()
        return {each.partition: committed.offset for each, committed in found if committed and each.topic == "t"}


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Refusing:
    return Refusing(tmp_path, monkeypatch)


def test_a_run_hands_over_again_after_a_rollback_restored_what_its_hand_back_had_left(cli):
    """The offset that the target group had at a hand-back is the run's own, also after a rollback has restored it.

    So the same command hands over again without an option, as often as it is rolled back. An offset that another client
    has committed since is not the run's own.
    """
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 7)
    cli("hand-back", RUN, "--wait", "0s", "--yes")
    for offset in (8, 9):
        cli.cluster.commit("old", PARTITION, offset)
        assert "1 partition with the planned offset already, 1 partition with an earlier offset of this run" in (
            cli(*MIGRATE).stdout
        )
        assert cli.offset("new") == offset
        cli("rollback", RUN, "--yes")
        assert cli.offset("new") == 7
    cli.cluster.commit("new", PARTITION, 6)
    assert "new t-0 is at 6, not 9" in cli.fails(*MIGRATE, code=3)


def test_a_rollback_of_offsets_of_others_leaves_them_to_others(cli):
    """An offset that a hand-over replaced with ``--on-existing``, and a rollback restored, is not the run's own."""
    cli.cluster.commit("new", PARTITION, 7)
    cli(*MIGRATE, "--on-existing", "overwrite")
    cli("rollback", RUN, "--yes")
    assert "new t-0 is at 7, not 5" in cli.fails(*MIGRATE, code=3)


def test_a_second_rollback_sets_the_offset_that_the_first_could_not(cli):
    """If `rollback` can't restore a lost offset of the old group, the next `rollback` restores it.

    It does so even if nothing else is left to roll back.
    """
    cli.cluster.commit("new", PARTITION, 5)
    cli(*MIGRATE)
    cli.cluster.delete("old", [PARTITION])
    cli.refused = {"old"}
    cli.fails("rollback", RUN, "--yes", code=4)
    assert 0 not in cli.offsets("old")
    cli.refused = set()
    cli("rollback", RUN, "--yes")
    assert (cli.offsets("old"), cli.offsets("new")) == ({0: 5, 1: 5}, {0: 5})


def test_an_interrupted_rollback_sets_the_lost_offset_when_it_is_run_again(cli, monkeypatch):
    """If `rollback` is interrupted before its first request, a second `rollback` restores all lost offsets."""
    cli.cluster.commit("new", PARTITION, 5)
    cli(*MIGRATE)
    cli.cluster.delete("old", [PARTITION, SECOND])

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets", interrupt)
        cli("rollback", RUN, "--yes", code=130)
    cli("rollback", RUN, "--yes")
    assert (cli.offsets("old"), cli.offsets("new")) == ({0: 5, 1: 5}, {0: 5})


def test_a_rollback_that_was_refused_in_part_is_completed(cli):
    """If brokers refuse one partition of a rollback, the same command completes it, with exit code 0."""
    for partition in (PARTITION, SECOND):
        cli.cluster.commit("new", partition, 3)
    cli(*MIGRATE, "--on-existing", "overwrite")
    cli.refused = {SECOND}
    cli.fails("rollback", RUN, "--yes", code=4)
    cli.refused = set()
    cli("rollback", RUN, "--yes")
    assert (cli.offsets("old"), cli.offsets("new")) == ({0: 5, 1: 5}, {0: 3, 1: 3})


@pytest.mark.parametrize("before", [None, 3])
def test_a_commit_after_the_write_of_a_rollback(cli, monkeypatch, before):
    """If another client commits between the write of a rollback and its read back, `hand-back` is refused.

    The offset does not show how far the new group has read. If somebody sets the offset from before the hand-over by
    hand, `rollback` completes.
    """
    if before is not None:
        for partition in (PARTITION, SECOND):
            cli.cluster.commit("new", partition, before)
    cli(*MIGRATE, "--on-existing", "overwrite")
    with monkeypatch.context() as patched:
        for name in ("alter", "delete"):
            sent = getattr(cli.cluster, name)

            def overtaken(group, offsets, sent=sent):
                answer = sent(group, offsets)
                if group == "new":
                    cli.cluster.commit("new", SECOND, 9)
                return answer

            patched.setattr(cli.cluster, name, overtaken)
        cli.fails("rollback", RUN, "--yes", code=4)
    error = cli.fails("hand-back", RUN, "--yes", code=3)
    assert "new t-1: rollback has not finished: run rollback again first" in error
    error = cli.fails("rollback", RUN, "--yes", code=3)
    was = "no offset" if before is None else before
    assert f"new t-1 at 9 (before the hand-over: {was}): another client committed after the rollback's write" in error
    if before is None:
        cli.cluster.delete("new", [SECOND])
    else:
        cli.cluster.commit("new", SECOND, before)
    cli("rollback", RUN, "--yes")
    assert cli.offsets("old") == {0: 5, 1: 5}
    assert cli.offsets("new") == ({} if before is None else {0: before, 1: before})


def test_rollback_sets_the_lost_offset_of_a_refused_partition(cli):
    """`rollback` also restores a lost offset of the old group in a partition whose hand-over was refused."""
    cli.refused = {SECOND}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    cli.cluster.delete("old", [SECOND])
    cli("rollback", RUN, "--yes")
    assert (cli.offsets("old"), cli.offsets("new")) == ({0: 5, 1: 5}, {})


def test_rollback_refuses_if_a_new_group_consumed_an_added_partition(cli):
    """If the new group has committed in a partition added after the hand-over, `rollback` is refused (exit code 3).

    Otherwise its records would be processed again. `hand-back` is still possible.
    """
    cli(*MIGRATE)
    cli.cluster.add_partitions("t", 3)
    cli.cluster.produce("t", 2, 20)
    cli.cluster.commit("new", TopicPartition("t", 2), 20)
    error = cli.fails("rollback", RUN, "--yes", code=3)
    assert "not committed since: new t-2: the group has committed since the hand-over: use hand-back" in error
    cli("hand-back", RUN, "--yes")
    assert cli.offsets("old") == {0: 5, 1: 5, 2: 20}


def test_a_group_that_consumed_an_added_partition_has_started(cli):
    """If the new group has committed in a partition added after the hand-over, a re-run of `migrate` writes nothing.

    It treats this group as started.
    """
    spec = (cli.folder / "split.toml").read_text()
    (cli.folder / "split.toml").write_text(f'{spec}\non_existing = "overwrite"\n')
    cli(*MIGRATE)
    cli.cluster.add_partitions("t", 3)
    cli.cluster.produce("t", 2, 20)
    cli.cluster.commit("new", TopicPartition("t", 2), 20)
    assert "handed over already, and started since: group new" in cli(*MIGRATE).stderr
    assert cli.offsets("new") == {0: 5, 1: 5, 2: 20}


@pytest.mark.parametrize("consumed", ["committed", "lost", "both"])
def test_hand_back_refuses_what_became_of_refused_partitions(cli, consumed):
    """`hand-back` is refused if a new group has consumed a partition whose hand-over was refused.

    It is also refused if the old group's offset of such a partition was lost. If both happened, the message says that
    the old group has no offset.
    """
    cli.refused = {SECOND}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    cli.cluster.commit("new", PARTITION, 8)
    said = "old t-1: the committed offset expired or was deleted: set it with rewind and apply"
    if consumed != "lost":
        cli.cluster.commit("new", SECOND, 40)
        said = "not handed over: of partitions that were refused in the hand-over, new t-1 at 40, old at 5: the new"
    if consumed != "committed":
        cli.cluster.delete("old", [SECOND])
        said = said.replace("old at 5", "old at no offset")
    before = cli.offsets("old")
    assert said in cli.fails("hand-back", RUN, "--yes", "--wait", "0s", code=3)
    assert cli.offsets("old") == before


def test_hand_back_refuses_while_a_refused_group_has_members(cli):
    """If the whole hand-over to a target group was refused, `hand-back` is refused while this group has members."""
    cli.cluster.create_topic("u", 1)
    cli.cluster.produce("u", 0, 90)
    cli.cluster.commit("old", TopicPartition("u", 0), 3)
    spec = (cli.folder / "split.toml").read_text()
    (cli.folder / "split.toml").write_text(
        spec.replace("[options]", '[[target]]\ngroup = "b"\ntopics = ["u"]\n[options]')
    )
    cli.refused = {"b"}
    cli.fails(*MIGRATE, code=4)
    cli.cluster.commit("new", PARTITION, 8)
    cli.cluster.join("b", Member(member_id="m", client_id="app", host="/h", subscription=frozenset("u")))
    error = cli.fails("hand-back", RUN, "--yes", "--wait", "0s", code=3)
    assert "not handed over: of partitions that were refused in the hand-over, b has 1 member" in error
    assert cli.offsets("old") == {0: 5, 1: 5}


def test_hand_back_leaves_refused_partitions_that_nobody_consumed(cli):
    """If a partition's hand-over was refused and no new group consumed it, `hand-back` leaves its offset unchanged.

    The other partitions are handed back.
    """
    cli.refused = {SECOND}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    cli.cluster.commit("new", PARTITION, 8)
    assert "pass     not handed over   1 partition stayed with the old group" in cli("hand-back", RUN, "--yes").stdout
    assert cli.offsets("old") == {0: 8, 1: 5}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("delete-offsets", "taken over: b t-0, b t-1: no committed offset, or a lower one than was handed over"),
        ("hand-back", "several target groups consume the same partition (fan_out)"),
    ],
)
def test_offsets_that_another_target_still_needs_are_kept(cli, command, said):
    """If the hand-over to one of a partition's two target groups was refused, the old group keeps its offset.

    `hand-back` and `delete-offsets` end with exit code 3, because this target group still needs the offset.
    """
    (cli.folder / "split.toml").write_text(FAN_OUT)
    cli.refused = {"b"}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    cli.cluster.commit("a", PARTITION, 8)
    assert said in cli.fails(command, RUN, "--yes", code=3)
    assert cli.offsets("old") == {0: 5, 1: 5}


def retarget(cli: Refusing, group: str) -> None:
    """Change the target group in the spec file to ``group``."""
    spec = (cli.folder / "split.toml").read_text()
    (cli.folder / "split.toml").write_text(re.sub(r'group = "\w+"', f'group = "{group}"', spec))


def test_rollback_sets_the_offset_of_the_last_hand_over(cli):
    """`rollback` restores a lost offset of the old group from the last hand-over.

    It does not use an earlier hand-over, which was rolled back.
    """
    cli(*MIGRATE)
    cli("rollback", RUN, "--yes")
    cli.cluster.commit("old", PARTITION, 7)
    retarget(cli, "newer")
    cli(*MIGRATE)
    cli("rollback", RUN, "--yes")
    cli.cluster.commit("old", PARTITION, 9)
    retarget(cli, "new")
    cli(*MIGRATE)
    assert "the source group has its committed offsets" in cli("rollback", RUN, "--dry-run").stdout
    cli.cluster.delete("old", [PARTITION])
    cli("rollback", RUN, "--yes")
    assert cli.offsets("old") == {0: 9, 1: 5}


def test_rollback_sets_no_offset_on_a_recreated_topic(cli):
    """If a topic was refused in the hand-over, and recreated later, `rollback` restores no old offset in this topic."""
    cli.cluster.create_topic("u", 1)
    cli.cluster.produce("u", 0, 9)
    cli.cluster.commit("old", TopicPartition("u", 0), 3)
    spec = (cli.folder / "split.toml").read_text()
    (cli.folder / "split.toml").write_text(spec.replace('topics = ["t"]', 'topics = ["t", "u"]'))
    cli.refused = {TopicPartition("u", 0)}
    cli.fails(*MIGRATE, code=4)
    cli.cluster.delete_topic("u")
    cli.cluster.create_topic("u", 1)
    cli.cluster.produce("u", 0, 9)
    cli.refused = set()
    cli("rollback", RUN, "--yes")
    assert TopicPartition("u", 0) not in cli.cluster.offsets("old")
    assert cli.offsets("old") == {0: 5, 1: 5}


@pytest.mark.parametrize("command", ["hand-back", "delete-offsets"])
def test_a_refused_split_that_was_replaced_is_over(cli, command):
    """If a split was refused, and another split handed everything over, `hand-back` and `delete-offsets` succeed."""
    cli.refused = {"new"}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    retarget(cli, "newer")
    cli(*MIGRATE)
    cli.cluster.commit("newer", PARTITION, 8)
    cli(command, RUN, "--yes")


def test_hand_back_passes_over_a_refused_group_that_does_not_exist(cli):
    """If a target group does not exist, because its whole hand-over was refused, `hand-back` ignores this group."""
    cli.cluster.create_topic("u", 1)
    cli.cluster.produce("u", 0, 9)
    cli.cluster.commit("old", TopicPartition("u", 0), 3)
    spec = (cli.folder / "split.toml").read_text()
    target = '[[target]]\ngroup = "b"\ntopics = ["u"]\n[options]'
    (cli.folder / "split.toml").write_text(spec.replace("[options]", target))
    cli.refused = {"b"}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    cli.cluster.commit("new", PARTITION, 8)
    cli("hand-back", RUN, "--yes")
    assert cli.offsets("old") == {0: 8, 1: 5}


def test_a_resumed_rollback_counts_added_partitions(cli, monkeypatch):
    """If the new group commits in a partition that was added after a rollback was interrupted, a re-run is refused.

    The second `rollback` ends with exit code 3.
    """
    cli(*MIGRATE)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets", interrupt)
        patched.setattr(cli.cluster, "delete", interrupt)
        cli("rollback", RUN, "--yes", code=130)
    cli.cluster.add_partitions("t", 3)
    cli.cluster.produce("t", 2, 20)
    cli.cluster.commit("new", TopicPartition("t", 2), 20)
    assert "not committed since: new t-2" in cli.fails("rollback", RUN, "--yes", code=3)


@pytest.mark.parametrize("before", [None, 12])
def test_delete_offsets_waits_for_the_whole_hand_over(cli, before):
    """If the hand-over of a partition was refused, `delete-offsets` deletes nothing and ends with exit code 3.

    This is so even if the new group had an offset there before the hand-over.
    """
    spec = (cli.folder / "split.toml").read_text()
    (cli.folder / "split.toml").write_text(f'{spec}\non_existing = "overwrite"\n')
    if before:
        cli.cluster.commit("new", SECOND, before)
    cli.refused = {SECOND}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    cli.cluster.commit("new", PARTITION, 8)
    assert "taken over: new t-1: no committed offset" in cli.fails("delete-offsets", RUN, "--yes", code=3)
    assert cli.offsets("old") == {0: 5, 1: 5}


def test_rollback_warns_of_offsets_that_are_not_those_of_the_hand_over(cli):
    """`rollback` warns if the old group committed after the hand-over, and if its old offset is outside the log."""
    cli(*MIGRATE)
    cli.cluster.commit("old", SECOND, 9)
    cli.cluster.delete_records("t", 0, 6)
    done = cli("rollback", RUN, "--yes").stdout
    assert re.search(r"warn +source group +committed since the hand-over, and left as it is: old t-1 5 → 9\n", done)
    assert re.search(
        r"warn +in range +old t-0 at 5: outside the log by now, so auto.offset.reset decides there\n", done
    )


@pytest.mark.parametrize(("back", "moved"), [("rollback", False), ("hand-back", True)])
@pytest.mark.parametrize("command", ["rollback", "hand-back", "delete-offsets"])
def test_a_split_that_was_taken_back_is_over(cli, back, moved, command):
    """If a split was rolled back or handed back, and another split was made, each command acts on the last split only.

    The commands are `rollback`, `hand-back` and `delete-offsets`.
    """
    cli(*MIGRATE)
    if moved:
        cli.cluster.commit("new", PARTITION, 7)
    cli(back, RUN, "--yes")
    retarget(cli, "newer")
    cli(*MIGRATE)
    if command != "rollback":
        cli.cluster.commit("newer", PARTITION, 8)
    cli(command, RUN, "--yes")
    old = {"rollback": {0: 7 if moved else 5, 1: 5}, "hand-back": {0: 8, 1: 5}, "delete-offsets": {}}[command]
    assert cli.offsets("old") == old


def test_a_split_that_was_taken_back_is_not_judged(cli):
    """After a rollback and another split in the same run directory, `reconcile` judges only the last split."""
    cli(*MIGRATE)
    cli("rollback", RUN, "--yes")
    retarget(cli, "newer")
    cli(*MIGRATE)
    judged = receipt_json.load(cli.folder / RUN / "receipt.json").hand_over_to_judge()
    assert {entry.group for entry in judged.changes} == {"newer"}


def refuse_after_rollback(cli: Refusing) -> None:
    """Hand all partitions over, roll them back, and hand them over again; brokers then refuse `SECOND`."""
    cli(*MIGRATE)
    cli("rollback", RUN, "--yes")
    cli.refused = {SECOND}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()


def test_hand_back_passes_over_what_was_refused_after_a_rollback(cli):
    """If a partition was rolled back and its next hand-over refused, `hand-back` leaves it with the old group."""
    refuse_after_rollback(cli)
    cli.cluster.commit("new", PARTITION, 8)
    cli("hand-back", RUN, "--yes")
    assert cli.offsets("old") == {0: 8, 1: 5}


def test_rollback_sets_a_lost_offset_that_was_refused_after_a_rollback(cli):
    """If a partition was rolled back and its next hand-over refused, `rollback` still restores its lost old offset."""
    refuse_after_rollback(cli)
    cli.cluster.delete("old", [SECOND])
    cli("rollback", RUN, "--yes")
    assert (cli.offsets("old"), cli.offsets("new")) == ({0: 5, 1: 5}, {})


def test_a_hand_back_does_not_rewind_a_source_group_that_loses_its_offset(cli, monkeypatch):
    """If the old group has read on, and loses its offset during ``settle``, `hand-back` is refused.

    It would otherwise set the old group back to the new group's offset. A lower offset that is lost is set again.
    """
    monkeypatch.setattr(migrate, "SystemClock", FakeClock)
    cli(*MIGRATE, "--settle", "5s")
    cli.cluster.commit("old", PARTITION, 9)
    losses = [[PARTITION, SECOND], [PARTITION]]
    clock = FakeClock(lambda: losses and cli.cluster.delete("old", losses.pop(0)))
    monkeypatch.setattr(ways_back, "SystemClock", lambda: clock)
    error = cli.fails("hand-back", RUN, "--yes", "--wait", "20s", code=3)
    assert "old t-0 (9); set it again" in error
    assert cli.offsets("old") == {}
    cli.cluster.commit("old", PARTITION, 5)
    cli("hand-back", RUN, "--yes", "--wait", "20s")
    assert cli.offsets("old") == {0: 5, 1: 5}


def test_a_hand_back_does_not_leave_out_an_added_partition_that_the_new_group_loses(cli, monkeypatch):
    """If the new group loses its offset in an added partition during ``settle``, `hand-back` is refused.

    Otherwise ``auto.offset.reset`` would decide where the old group starts there.
    """
    monkeypatch.setattr(migrate, "SystemClock", FakeClock)
    cli(*MIGRATE, "--settle", "5s")
    added = TopicPartition("t", 2)
    cli.cluster.add_partitions("t", 3)
    cli.cluster.produce("t", 2, 20)
    cli.cluster.commit("new", added, 7)
    clock = FakeClock(lambda: cli.cluster.delete("new", [added]))
    monkeypatch.setattr(ways_back, "SystemClock", lambda: clock)
    error = cli.fails("hand-back", RUN, "--yes", "--wait", "20s", code=3)
    assert "committed offset expired or deleted since the plan was shown: new t-2 (7); set it again" in error
    assert cli.offsets("old") == {0: 5, 1: 5}


def test_a_rollback_says_where_the_old_group_had_no_offset(tmp_path, monkeypatch):
    """A partition without a committed offset gets the one that was handed over, and the plan does not call it lost."""
    cli = Connected(tmp_path, monkeypatch)
    cli.cluster.add_partitions("t", 2)
    cli(*MIGRATE, "--on-uncommitted", "earliest")
    plan = cli("rollback", RUN, "--dry-run").stdout
    assert "without a committed offset before, gets the one that was handed over: old t-1\n" in plan
    assert "expired or deleted" not in plan


def test_the_rollback_of_a_copy_leaves_the_old_group_alone(tmp_path, monkeypatch):
    """The old group of a copy goes on by itself, so a rollback neither stops it nor sets its offsets."""
    cli = Connected(tmp_path, monkeypatch)
    cli(*MIGRATE, "--copy")
    cli.cluster.delete("old", [PARTITION])
    done = cli("rollback", RUN, "--yes")
    assert "source group         a copy: the old group goes on by itself\n" in done.stdout
    assert "written and read back\n" in done.stderr
    assert "old applications" not in (done.stdout + done.stderr).lower()
    assert (cli.offset("old"), cli.offset("new")) == (None, None)
