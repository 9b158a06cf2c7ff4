"""Ways back after offsets were refused or lost, after partitions were added, and with several target groups."""

from __future__ import annotations

import re

import pytest

from migrate_groups.files.runs import receipt_json
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
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
    """The command line on a cluster in memory that refuses writes to the groups or partitions in ``refused``.

    Topic ``t`` has two partitions. Its group ``old`` has committed offset 5 in both.
    """

    def __init__(self, folder, monkeypatch) -> None:
        super().__init__(folder, monkeypatch)
        self.refused: set[object] = set()
        self.cluster.add_partitions("t", 2)
        self.cluster.produce("t", 1, 50)
        self.cluster.commit("old", SECOND, 5)
        written = self.cluster.alter_offsets

        def alter(group, offsets):
            refused = [each for each in offsets if {group, each} & self.refused]
            rest = {each: offset for each, offset in offsets.items() if each not in refused}
            answer = WriteAnswer(answer=Answer.REFUSED, error="INVALID_COMMIT_OFFSET_SIZE")
            return {**(written(group, rest) if rest else {}), **dict.fromkeys(refused, answer)}

        monkeypatch.setattr(self.cluster, "alter_offsets", alter)

    def offsets(self, group: str) -> dict[int, int]:
        """Return the group's committed offsets on topic ``t``, by partition number."""
        found = self.cluster.all_committed(group).items()
        return {each.partition: committed.offset for each, committed in found if committed and each.topic == "t"}


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Refusing:
    return Refusing(tmp_path, monkeypatch)


def test_a_second_rollback_sets_the_offset_that_the_first_could_not(cli):
    """If a rollback can't set a lost offset of the old group again, the next one does, also if nothing else is left."""
    cli.cluster.commit("new", PARTITION, 5)
    cli(*MIGRATE)
    cli.cluster.delete_offsets("old", [PARTITION])
    cli.refused = {"old"}
    cli.fails("rollback", RUN, "--yes", code=4)
    assert 0 not in cli.offsets("old")
    cli.refused = set()
    cli("rollback", RUN, "--yes")
    assert (cli.offsets("old"), cli.offsets("new")) == ({0: 5, 1: 5}, {0: 5})


def test_an_interrupted_rollback_sets_the_lost_offset_when_it_is_run_again(cli, monkeypatch):
    """A rollback that was interrupted before its first request has set no offset; the same command sets all."""
    cli.cluster.commit("new", PARTITION, 5)
    cli(*MIGRATE)
    cli.cluster.delete_offsets("old", [PARTITION, SECOND])

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets_by_group", interrupt)
        cli("rollback", RUN, "--yes", code=130)
    cli("rollback", RUN, "--yes")
    assert (cli.offsets("old"), cli.offsets("new")) == ({0: 5, 1: 5}, {0: 5})


def test_rollback_sets_the_lost_offset_of_a_refused_partition(cli):
    """The old group also gets back a lost offset of a partition that brokers refused in the hand-over."""
    cli.refused = {SECOND}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    cli.cluster.delete_offsets("old", [SECOND])
    cli("rollback", RUN, "--yes")
    assert (cli.offsets("old"), cli.offsets("new")) == ({0: 5, 1: 5}, {})


def test_rollback_refuses_if_a_new_group_consumed_an_added_partition(cli):
    """A partition that was added since the hand-over counts: after a rollback its records would be processed again."""
    cli(*MIGRATE)
    cli.cluster.add_partitions("t", 3)
    cli.cluster.produce("t", 2, 20)
    cli.cluster.commit("new", TopicPartition("t", 2), 20)
    error = cli.fails("rollback", RUN, "--yes", code=3)
    assert "not committed since: new t-2: the group has committed since the hand-over: use hand-back" in error
    cli("hand-back", RUN, "--yes")
    assert cli.offsets("old") == {0: 5, 1: 5, 2: 20}


def test_a_group_that_consumed_an_added_partition_has_started(cli):
    """The same ``migrate`` again hands nothing over, because the new group has committed on an added partition."""
    spec = (cli.folder / "split.toml").read_text()
    (cli.folder / "split.toml").write_text(f'{spec}\non_existing = "overwrite"\n')
    cli(*MIGRATE)
    cli.cluster.add_partitions("t", 3)
    cli.cluster.produce("t", 2, 20)
    cli.cluster.commit("new", TopicPartition("t", 2), 20)
    assert "handed over already, and started since: group new" in cli(*MIGRATE).stderr
    assert cli.offsets("new") == {0: 5, 1: 5, 2: 20}


@pytest.mark.parametrize("consumed", ["committed", "lost"])
def test_hand_back_refuses_what_became_of_refused_partitions(cli, consumed):
    """Refused partitions stay with the old group, unless a new group consumed them or the old offset is lost."""
    cli.refused = {SECOND}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    cli.cluster.commit("new", PARTITION, 8)
    if consumed == "committed":
        cli.cluster.commit("new", SECOND, 40)
        said = "not handed over: of partitions that were refused in the hand-over, new t-1 at 40, old at 5: the new"
    else:
        cli.cluster.delete_offsets("old", [SECOND])
        said = "old t-1: the committed offset expired or was deleted: set it with rewind and apply"
    before = cli.offsets("old")
    assert said in cli.fails("hand-back", RUN, "--yes", "--wait", "0s", code=3)
    assert cli.offsets("old") == before


def test_hand_back_refuses_while_a_refused_group_has_members(cli):
    """A group that got nothing, because its whole hand-over was refused, must have no members on its topics."""
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
    """A refused partition that no new group consumed stays at the old group's offset, and the rest is handed back."""
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
    """If one of two targets of a partition was refused, the old group keeps the offset that this target needs."""
    (cli.folder / "split.toml").write_text(FAN_OUT)
    cli.refused = {"b"}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    cli.cluster.commit("a", PARTITION, 8)
    assert said in cli.fails(command, RUN, "--yes", code=3)
    assert cli.offsets("old") == {0: 5, 1: 5}


def retarget(cli: Refusing, group: str) -> None:
    """Change the target group of the spec."""
    spec = (cli.folder / "split.toml").read_text()
    (cli.folder / "split.toml").write_text(re.sub(r'group = "\w+"', f'group = "{group}"', spec))


def test_rollback_sets_the_offset_of_the_last_hand_over(cli):
    """An earlier split that was rolled back does not count: its offsets are older."""
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
    cli.cluster.delete_offsets("old", [PARTITION])
    cli("rollback", RUN, "--yes")
    assert cli.offsets("old") == {0: 9, 1: 5}


def test_rollback_sets_no_offset_on_a_recreated_topic(cli):
    """A topic of which every partition was refused may have been created again: no old offset is set there."""
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
    assert TopicPartition("u", 0) not in cli.cluster.all_committed("old")
    assert cli.offsets("old") == {0: 5, 1: 5}


@pytest.mark.parametrize("command", ["hand-back", "delete-offsets"])
def test_a_refused_split_that_was_replaced_is_over(cli, command):
    """After another split has handed everything over, what was refused before forbids nothing."""
    cli.refused = {"new"}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    retarget(cli, "newer")
    cli(*MIGRATE)
    cli.cluster.commit("newer", PARTITION, 8)
    cli(command, RUN, "--yes")


def test_hand_back_passes_over_a_refused_group_that_does_not_exist(cli):
    """A target group whose whole hand-over was refused does not exist, and is no reason to refuse."""
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
    """A rollback that was interrupted looks again at partitions that were added since."""
    cli(*MIGRATE)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets_by_group", interrupt)
        patched.setattr(cli.cluster, "delete_offsets", interrupt)
        cli("rollback", RUN, "--yes", code=130)
    cli.cluster.add_partitions("t", 3)
    cli.cluster.produce("t", 2, 20)
    cli.cluster.commit("new", TopicPartition("t", 2), 20)
    assert "not committed since: new t-2" in cli.fails("rollback", RUN, "--yes", code=3)


@pytest.mark.parametrize("before", [None, 12])
def test_delete_offsets_waits_for_the_whole_hand_over(cli, before):
    """While a partition is refused, nothing is deleted, also if the new group has an offset there from before."""
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
    """A rollback warns if the old group has committed since, and of offsets that the log no longer has."""
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
    """After a rollback or hand-back and another split, the ways back are those of the last split only."""
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
    """After a rollback and another split, `reconcile` judges the last split."""
    cli(*MIGRATE)
    cli("rollback", RUN, "--yes")
    retarget(cli, "newer")
    cli(*MIGRATE)
    judged = receipt_json.load(cli.folder / RUN / "receipt.json").to_judge()
    assert {entry.change.group for entry in judged.entries} == {"newer"}


def test_hand_back_passes_over_what_was_refused_after_a_rollback(cli):
    """A partition that was rolled back, and refused in the next hand-over, stays with the old group."""
    cli(*MIGRATE)
    cli("rollback", RUN, "--yes")
    cli.refused = {SECOND}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    cli.cluster.commit("new", PARTITION, 8)
    cli("hand-back", RUN, "--yes")
    assert cli.offsets("old") == {0: 8, 1: 5}


def test_rollback_sets_a_lost_offset_that_was_refused_after_a_rollback(cli):
    """The old group gets back a lost offset also if the partition was rolled back before, and refused since."""
    cli(*MIGRATE)
    cli("rollback", RUN, "--yes")
    cli.refused = {SECOND}
    cli.fails(*MIGRATE, code=4)
    cli.refused = set()
    cli.cluster.delete_offsets("old", [SECOND])
    cli("rollback", RUN, "--yes")
    assert (cli.offsets("old"), cli.offsets("new")) == ({0: 5, 1: 5}, {})
