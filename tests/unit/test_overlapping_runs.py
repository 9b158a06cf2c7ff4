"""Runs that overlap: what a run has claimed in the journals on the cluster is known to every later command."""

from __future__ import annotations

import itertools
import re
import shutil

import pytest

from migrate_groups.errors import NotAuthorized
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.groups import Member
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.claims import Claims, ClaimState, decode, encode, handed_over
from tests.support.clock import FakeClock
from tests.support.connected import MIGRATE, PARTITION, SPEC, Connected

RUN = "split.toml.run"
REFUSED = TopicPartition("u", 0)
FAST = ("--settle", "0s", "--guard", "1ms", "--yes")


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    monkeypatch.setattr(
        "migrate_groups.files.runs.receipt_file.new_run_id", iter(f"run{n}" for n in range(1, 99)).__next__
    )
    return Connected(tmp_path, monkeypatch)


def spec(cli: Connected, name: str, source: str, target: str) -> str:
    text = SPEC.replace('source = "old"', f'source = "{source}"').replace('group = "new"', f'group = "{target}"')
    (cli.folder / name).write_text(text)
    return name


def migrate(cli: Connected, source: str, target: str, *options: str) -> str:
    """Hand the topic over with a spec of its own, and return the run directory."""
    name = spec(cli, f"{source}-{target}.toml", source, target)
    cli("migrate", name, "--yes", *options)
    return f"{name}.run"


def apply_topic(cli: Connected, topic: str, target: str) -> str:
    """Hand one topic of group ``old`` over with `apply`, and return the receipt."""
    cli("snapshot", "old", "-o", "all.csv")
    cli("filter", "all.csv", "--topic", topic, "-o", f"{topic}.csv")
    cli("apply", f"{topic}.csv", "--to-group", target, *FAST)
    return f"{topic}.csv.{target}.receipt.json"


def newest(cli: Connected, group: str, partition: TopicPartition = PARTITION) -> tuple[str, str, tuple[str, ...]]:
    """Return the run, the state and the groups of the newest claim on the partition in a group's journal."""
    claims = decode(cli.cluster.offsets(journal_group(group))[partition].metadata)
    assert claims is not None
    return claims[0].run, claims[0].state.value, claims[0].groups


def test_a_second_hand_over_to_another_group_is_refused(cli):
    """A topic that a run has handed over is not handed over to another group by another run, whatever its command.

    The refusal names the group, the date, the run and the way out. Nothing is written.
    """
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 8)
    for command in (
        ("migrate", spec(cli, "other.toml", "old", "other"), "--yes"),
        ("apply", "--from-group", "old", "--to-group", "other", *FAST),
        ("migrate", "other.toml", "--dry-run"),
    ):
        error = cli.fails(*command, code=3)
        assert "t-0 handed over from 'old' to 'new' on 20" in error
        assert "by run run1: go on from 'new', undo that run first, or pass --copy" in error
        assert cli.offset("other") is None


def test_a_snapshot_from_before_is_refused_too(cli):
    """An older snapshot of a group is not applied to another group after a run has handed the group's topic over."""
    cli("snapshot", "old", "-o", "before.csv")
    cli(*MIGRATE)
    error = cli.fails("apply", "before.csv", "--to-group", "other", *FAST, code=3)
    assert "handed over from 'old' to 'new'" in error
    assert cli.offset("other") is None


@pytest.mark.parametrize("command", ["rollback", "hand-back"])
def test_a_way_back_is_refused_after_the_target_group_has_handed_on(cli, command):
    """After A → B and B → C, a way back of the first run is refused until the second run is undone."""
    first = migrate(cli, "old", "new")
    second = migrate(cli, "new", "third")
    cli.cluster.commit("third", PARTITION, 8)
    error = cli.fails(command, first, *FAST[-1:], code=3)
    assert "t-0 handed over from 'new' to 'third' on 20" in error
    assert "by run run2: undo that run first" in error
    assert (cli.offset("old"), cli.offset("new"), cli.offset("third")) == (5, 5, 8)
    cli("hand-back", second, "--yes")
    cli("hand-back", first, "--yes")
    assert cli.offset("old") == 8
    assert newest(cli, "old") == ("run1", ClaimState.RETURNED, ("new",))
    assert newest(cli, "new") == ("run1", ClaimState.HANDED_OVER, ("old",))


def test_a_run_whose_target_group_has_handed_on_is_not_to_set_offsets_again(cli):
    """After A → B, B → C and the deletion of B's offsets, nothing of the first run is lost.

    Its command and `status` name the run that handed on, and do not advise to set B's offset again: B would process
    again what C has processed.
    """
    first = migrate(cli, "old", "new")
    second = migrate(cli, "new", "third")
    cli.cluster.commit("third", PARTITION, 8)
    cli("delete-offsets", second, "--yes")
    for error in (
        cli.fails("migrate", "old-new.toml", "--yes", code=3),
        cli("status", first).stdout.partition("next:")[2],
    ):
        assert "t-0 handed over from 'new' to 'third' on 20" in error
        assert "by run run2: undo that run first" in error
        assert "--no-source-group" not in error
    assert cli.offset("new") is None


def test_a_group_gets_no_offset_for_what_it_has_handed_on(cli):
    """After A → B and B → C, B gets no offset without a source group: it would process what C has processed.

    `--copy` writes it all the same, and once the second run is undone, nothing is refused.
    """
    migrate(cli, "old", "new")
    second = migrate(cli, "new", "third")
    cli.cluster.commit("third", PARTITION, 8)
    (cli.folder / "set.csv").write_text(f"{PARTITION.topic},{PARTITION.partition},6\n")
    command = ("apply", "set.csv", "--to-group", "new", "--no-source-group", "--on-existing", "forward", *FAST)
    error = cli.fails(*command, code=3)
    assert "journal: t-0 handed over from 'new' to 'third' on 20" in error
    assert "by run run2: go on from 'third', undo that run first, or pass --copy if both" in error
    assert cli.offset("new") == 5
    cli(*command, "--copy")
    cli("hand-back", second, "--yes")
    (cli.folder / "set.csv").write_text(f"{PARTITION.topic},{PARTITION.partition},9\n")
    cli(*command, "--receipt", "later.json")
    assert cli.offset("new") == 9


def test_delete_offsets_is_refused_after_another_run_gave_the_topic_back(cli):
    """After A → B and B → A by another run, A owns the topic: `delete-offsets` of the first run is refused."""
    first = migrate(cli, "old", "new")
    migrate(cli, "new", "old")
    error = cli.fails("delete-offsets", first, "--yes", code=3)
    assert "t-0 handed over from 'new' to 'old' on 20" in error
    assert cli.offset("old") == 5


def test_undoing_the_way_there_and_back(cli):
    """After A → B, and B → A by another run that is rolled back, B owns the topic again: A can't hand it over."""
    first = migrate(cli, "old", "new")
    cli.cluster.commit("new", PARTITION, 8)
    back = migrate(cli, "new", "old", "--on-existing", "forward")
    cli("rollback", back, "--yes")
    assert newest(cli, "old") == ("run1", ClaimState.HANDED_OVER, ("new",))
    spec(cli, "other.toml", "old", "other")
    assert "handed over from 'old' to 'new'" in cli.fails("migrate", "other.toml", "--yes", code=3)
    cli("hand-back", first, "--yes")
    cli("migrate", "other.toml", "--yes")
    assert cli.offset("other") == 8


@pytest.mark.parametrize("refused", ["new", "search"])
def test_a_topic_that_only_one_of_two_groups_has_given_back_is_not_handed_over(cli, monkeypatch, refused):
    """If a rollback fails for one of the groups that share a topic (``fan_out``), other runs do not get the topic."""
    second = '[[target]]\ngroup = "search"\ntopics = ["t"]\n[options]\n'
    (cli.folder / "split.toml").write_text("fan_out = true\n" + SPEC.replace("[options]\n", second))
    cli(*MIGRATE)
    delete = cli.cluster.delete

    def refuse(group, partitions):
        if group != refused:
            return delete(group, partitions)
        return dict.fromkeys(partitions, WriteAnswer(answer=Answer.REFUSED, error="NOT_LEADER"))

    with monkeypatch.context() as patch:
        patch.setattr(cli.cluster, "delete", refuse)
        cli("rollback", RUN, "--yes", code=4)
    error = cli.fails("migrate", spec(cli, "other.toml", "old", "other"), "--yes", code=3)
    assert "t-0 handed over from 'old' to 'new', 'search' on 20" in error
    assert cli.offset("other") is None


def test_a_rolled_back_topic_can_be_handed_over_by_another_run(cli):
    """A rollback releases the claim, and the next run hands the topic over to another group."""
    cli(*MIGRATE)
    cli("rollback", RUN, "--yes")
    assert newest(cli, "old") == ("run1", ClaimState.RETURNED, ("new",))
    migrate(cli, "old", "other")
    assert newest(cli, "old")[1:] == (ClaimState.HANDED_OVER, ("other",))


@pytest.mark.parametrize("command", ["rollback", "hand-back"])
@pytest.mark.parametrize("target", ["new", "other"])
def test_a_way_back_that_is_done_is_refused_after_another_run_has_the_topic(cli, command, target):
    """A repeated way back is refused if another run has handed the topic over since, to the same group or another one.

    Otherwise the user would start the old applications again.
    """
    cli(*MIGRATE)
    cli(command, RUN, "--yes")
    assert "already; nothing was written" in cli(command, RUN, "--yes").stderr
    second = migrate(cli, "old", target)
    for options in (["--yes"], ["--dry-run"]):
        error = cli.fails(command, RUN, *options, code=3)
        assert f"t-0 handed over from 'old' to '{target}' on 20" in error
        assert "by run run2: undo that run first, or go on from there" in error
    cli(command, second, "--yes")
    assert "already; nothing was written" in cli(command, RUN, "--yes").stderr


@pytest.mark.parametrize("command", ["rollback", "hand-back"])
def test_a_way_back_that_is_done_is_refused_after_another_copy_handed_over_again(cli, command):
    """A repeated way back is refused after the same command, with a copy of the run directory, handed over again."""
    cli(*MIGRATE)
    cli(command, RUN, "--yes")
    shutil.copytree(cli.folder / RUN, cli.folder / "copy")
    cli(*MIGRATE, "--run-dir", "copy")
    error = cli.fails(command, RUN, "--yes", code=3)
    assert "by run run1 (another copy of this run directory): undo that run first" in error


def test_a_rollback_that_is_done_is_not_refused_after_the_target_group_has_handed_on_its_own_offsets(cli):
    """After a rollback, the target group has its offsets from before. A hand-over of these is no matter of the run.

    It is possible once the claims on the target group are forgotten.
    """
    cli.cluster.commit("new", PARTITION, 3)
    cli(*MIGRATE, "--on-existing", "overwrite")
    cli("rollback", RUN, "--yes")
    cli("delete-group", journal_group("new"), "--yes")
    migrate(cli, "new", "third")
    assert "is rolled back already; nothing was written" in cli("rollback", RUN, "--yes").stderr


def test_delete_offsets_that_is_done_is_refused_after_another_run_gave_the_topic_back(cli):
    """A repeated `delete-offsets` is refused if another run has given the topic back since: there are offsets again."""
    cli(*MIGRATE)
    cli("delete-offsets", RUN, "--yes")
    assert "nothing was written" in cli("delete-offsets", RUN, "--yes").stderr
    migrate(cli, "new", "old")
    error = cli.fails("delete-offsets", RUN, "--yes", code=3)
    assert "t-0 handed over from 'new' to 'old' on 20" in error


@pytest.mark.parametrize("command", ["rollback", "hand-back"])
def test_a_way_back_that_is_done_asks_the_cluster_of_the_run(cli, command):
    """A repeated way back is refused on another cluster, where no run has claimed anything."""
    cli(*MIGRATE)
    cli(command, RUN, "--yes")
    cli.cluster._cluster_id = "another"
    for options in (["--yes"], ["--dry-run"]):
        assert "another" in cli.fails(command, RUN, *options, code=3)


@pytest.mark.parametrize("command", ["rollback", "hand-back"])
@pytest.mark.parametrize("target", ["new", "other"])
def test_a_way_back_is_refused_if_another_run_has_a_topic_that_was_refused(cli, monkeypatch, command, target):
    """If brokers refused a claim of a hand-over, and another run hands over this partition, a way back is refused.

    Otherwise the source group would start with this partition too. Once the other run is undone, it is not refused, and
    leaves the claims of that run alone.
    """
    cli.cluster.create_topic("u", 1)
    cli.cluster.produce("u", 0, 10)
    cli.cluster.commit("old", REFUSED, 5)
    (cli.folder / "split.toml").write_text(SPEC.replace('["t"]', '["t", "u"]'))
    cli(*MIGRATE)
    cli("rollback", RUN, "--yes")
    answers, name = cli.cluster.alter_offsets, journal_group("old")

    def refuse_claim(offsets):
        left = {group: {at: each for at, each in of.items() if at != REFUSED} for group, of in offsets.items()}
        refused = {REFUSED: WriteAnswer(answer=Answer.REFUSED, error="refused")} if name in offsets else {}
        return {group: {**of, **refused} if group == name else of for group, of in answers(left).items()}

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets", refuse_claim)
        cli(*MIGRATE, code=4)
    assert cli.cluster.offsets("new").keys() == {PARTITION}
    other = apply_topic(cli, REFUSED.topic, target)
    for options in (["--yes"], ["--dry-run"]):
        error = cli.fails(command, RUN, *options, code=3)
        assert f"u-0 handed over from 'old' to '{target}' on 20" in error
        assert "by run run2: undo that run first" in error
    assert cli.cluster.offsets(target)[REFUSED].offset == 5
    cli("rollback", other, "--yes")
    assert "START THE OLD APPLICATIONS NOW" in cli(command, RUN, "--yes").stderr
    assert newest(cli, "old", REFUSED)[0] == "run2"


@pytest.mark.parametrize("command", ["rollback", "hand-back", "delete-offsets"])
def test_a_copy_of_the_run_directory_after_another_copy_has_undone_it(cli, command):
    """A copy of a run directory does not undo a run, or delete offsets, after another copy has undone it."""
    cli(*MIGRATE)
    shutil.copytree(cli.folder / RUN, cli.folder / "copy")
    cli("hand-back", RUN, "--yes")
    error = cli.fails(command, "copy", "--yes", code=3)
    assert "by run run1 (another copy of this run directory): nothing of this run is left there" in error
    assert cli.offset("old") == 5


def test_a_run_does_not_hand_over_again_what_another_copy_of_it_has_handed_over(cli):
    """After a rollback, and a hand-over with a copy of the run directory, the original does not hand over again.

    The target group may have processed records since. If it has the offset of the source group, nothing is written.
    """
    cli(*MIGRATE)
    cli("rollback", RUN, "--yes")
    shutil.copytree(cli.folder / RUN, cli.folder / "copy")
    again = (*MIGRATE, "--on-existing", "overwrite")
    cli(*again, "--run-dir", "copy")
    cli.cluster.commit("new", PARTITION, 8)
    error = cli.fails(*again, code=3)
    assert "by run run1 (another copy of this run directory): run the command again with the run directory of" in error
    assert cli.offset("new") == 8
    cli.cluster.commit("new", PARTITION, 5)
    assert "every offset was in place" in cli(*again).stderr


def test_a_hand_over_whose_claim_is_left_may_be_repeated(cli, monkeypatch):
    """If brokers refuse a hand-over, and then the release of its claim, the same command again hands over."""
    answers = cli.cluster.alter_offsets

    def refuse(offsets):
        refused = {name: of for name, of in offsets.items() if name == "new" or '"returned"' in f"{of}"}
        rest = answers({name: of for name, of in offsets.items() if name not in refused})
        no = WriteAnswer(answer=Answer.REFUSED, error="refused")
        return {**rest, **{name: dict.fromkeys(of, no) for name, of in refused.items()}}

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets", refuse)
        cli(*MIGRATE, code=4)
    assert newest(cli, "old")[1] == ClaimState.HANDED_OVER
    cli(*MIGRATE)
    assert cli.offset("new") == 5


def test_a_resumed_hand_over_that_can_not_be_claimed_is_still_handed_over(cli, monkeypatch):
    """If brokers refuse the claim of a run that has handed a topic over, its earlier claim and its receipt stay.

    Otherwise another run could hand the topic over, and a way back of this run would leave it out.
    """
    cli(*MIGRATE)
    answers, name = cli.cluster.alter_offsets, journal_group("old")

    def refuse_claim(offsets):
        if name in offsets and "handed over" in f"{offsets[name]}":
            return {name: dict.fromkeys(offsets[name], WriteAnswer(answer=Answer.REFUSED, error="refused"))}
        return answers(offsets)

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets", refuse_claim)
        cli(*MIGRATE, code=4)
    assert newest(cli, "old") == ("run1", ClaimState.HANDED_OVER, ("new",))
    spec(cli, "other.toml", "old", "other")
    assert "handed over from 'old' to 'new'" in cli.fails("migrate", "other.toml", "--yes", code=3)
    cli("rollback", RUN, "--yes")
    assert cli.offset("new") is None


def test_a_topic_that_came_back_is_not_handed_over_by_the_offset_in_the_receipt(cli):
    """A run that is run again does not take a lost offset from its receipt after another run gave the topic back.

    The source group may have processed records since.
    """
    migrate(cli, "old", "new")
    migrate(cli, "new", "old")
    cli.cluster.commit("old", PARTITION, 8)
    cli.cluster.delete("old", [PARTITION])
    error = cli.fails("migrate", "old-new.toml", "--yes", code=3)
    assert "t-0 handed over from 'new' to 'old' on 20" in error
    assert "its committed offset is gone since, and the receipt has that from before" in error
    assert cli.offset("new") == 5


def test_a_topic_that_another_run_gave_back_is_handed_over_again_with_another_run_directory(cli):
    """A run that is run again hands nothing over after another run has given the topic back.

    Its rollback would restore in the target group what the group had before the first time, although the group has
    given the topic back since. Another run directory begins anew, and its rollback restores the offset since then.
    """
    cli.cluster.commit("new", PARTITION, 37)
    again = ("migrate", spec(cli, "old-new.toml", "old", "new"), "--on-existing", "overwrite", "--yes")
    cli(*again)
    migrate(cli, "new", "old")
    error = cli.fails(*again, code=3)
    assert "t-0 handed over from 'new' to 'old' on 20" in error
    assert "this run had handed it over before that: undo that run, or, to hand it over once more, name" in error
    cli.cluster.commit("old", PARTITION, 8)
    cli(*again, "--run-dir", "second")
    assert cli.offset("new") == 8
    cli("rollback", "second", "--yes")
    assert cli.offset("new") == 5


def test_the_same_command_again_is_not_refused(cli):
    """The claims of a run do not refuse the run itself: the same commands again, and a second hand-over."""
    cli(*MIGRATE)
    cli(*MIGRATE)
    for _ in range(2):
        cli("rollback", RUN, "--yes")
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 8)
    for _ in range(2):
        cli("hand-back", RUN, "--yes")
    cli.cluster.commit("old", PARTITION, 9)
    cli(*MIGRATE, "--on-existing", "forward")
    assert (cli.offset("old"), cli.offset("new")) == (9, 9)
    for _ in range(2):
        cli("delete-offsets", RUN, "--yes")
    assert cli.offset("old") is None


def test_a_group_that_was_not_told_to_start_hands_nothing_on(cli, monkeypatch):
    """After a hand-over with exit code 4, no other run hands over from the target group, until the run is complete.

    The run is complete also if the user has started the target group, and it is run again then.
    """
    answers = cli.cluster.alter_offsets

    def commit_as_well(offsets):
        answered = answers(offsets)
        if "new" in offsets:
            cli.cluster.commit("old", PARTITION, 6)
        return answered

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets", commit_as_well)
        assert "group 'old' has committed on 1 partition" in cli.fails(*MIGRATE, code=4)
    assert newest(cli, "new") == ("run1", ClaimState.ARRIVING, ("old",))
    spec(cli, "on.toml", "new", "newer")
    error = cli.fails("migrate", "on.toml", "--yes", code=3)
    assert "being handed over from 'old' to 'new'" in error
    assert "its outcome is not known: run that command again first; if its run directory is lost, forget" in error
    assert cli.offset("newer") is None
    cli.cluster.commit("new", PARTITION, 8)
    assert "what it has read is processed twice" in cli.fails(*MIGRATE, code=4)
    assert newest(cli, "new")[1] == ClaimState.ARRIVING


def test_a_killed_run_whose_group_has_started_claims_it_when_it_is_run_again(cli, monkeypatch):
    """If a run was killed after START, and its target group has started, the same command again claims that."""
    answers, name = cli.cluster.alter_offsets, journal_group("new")

    def kill(offsets):
        if any('"arrived"' in each.metadata for each in offsets.get(name, {}).values()):
            raise KeyboardInterrupt
        return answers(offsets)

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets", kill)
        cli(*MIGRATE, code=130)
    assert newest(cli, "new")[1] == ClaimState.ARRIVING
    cli.cluster.commit("new", PARTITION, 8)
    assert "started since: group new" in cli(*MIGRATE).stderr
    assert newest(cli, "new") == ("run1", ClaimState.ARRIVED, ("old",))
    migrate(cli, "new", "newer")
    assert cli.offset("newer") == 8


def test_a_lost_run_directory_is_replaced_once_its_claims_are_forgotten(cli):
    """Without its run directory, a hand-over is refused if it would write again what the target group had.

    The refusal says how to forget the claims. If every offset is in place, the same command makes a new run directory.
    """
    cli(*MIGRATE)
    shutil.rmtree(cli.folder / RUN)
    assert "nothing was written: every offset was in place" in cli(*MIGRATE).stderr
    shutil.rmtree(cli.folder / RUN)
    cli.cluster.delete("new", [PARTITION])
    error = cli.fails(*MIGRATE, code=3)
    assert "if it is lost, and 'new' has not started, forget the claims with migrate-groups delete-group" in error
    assert cli.offset("new") is None
    cli("delete-group", journal_group("old"), "--yes")
    cli(*MIGRATE)
    assert cli.offset("new") == 5


def test_one_command_forgets_the_claims_of_all_target_groups(cli):
    """The refusal of a lost run with several target groups has one command, which names the journals of all."""
    cli.cluster.create_topic("u", 1)
    cli.cluster.commit("old", REFUSED, 0)
    (cli.folder / "split.toml").write_text(
        SPEC.replace("[options]", '[[target]]\ngroup = "other"\ntopics = ["u"]\n[options]')
    )
    cli(*MIGRATE)
    shutil.rmtree(cli.folder / RUN)
    cli.cluster.delete("new", [PARTITION])
    cli.cluster.delete("other", [REFUSED])
    journals = " ".join(map(journal_group, ("old", "new", "other")))
    error = cli.fails(*MIGRATE, code=3)
    assert error.count(f"forget the claims with migrate-groups delete-group {journals}") == 2
    cli("delete-group", *journals.split(), "--yes")
    cli(*MIGRATE)
    assert "did you mean" not in cli.fails("delete-group", journal_group("olds"), "--yes", code=3)


def test_a_lost_run_is_undone_by_deleting_its_groups(cli):
    """If a run directory is lost, deleting the new group and the journals leaves the state from before the run."""
    cli(*MIGRATE)
    shutil.rmtree(cli.folder / RUN)
    cli(*MIGRATE)
    assert "nothing to roll back: the last hand-over wrote nothing" in cli.fails("rollback", RUN, "--yes", code=3)
    cli("delete-group", "new", journal_group("old"), journal_group("new"), "--yes")
    assert (cli.offset("old"), cli.offset("new")) == (5, None)
    cli("apply", "--from-group", "old", "--to-group", "other", *FAST)
    assert cli.offset("other") == 5


def test_a_hand_over_that_another_run_has_undone_is_not_called_done(cli):
    """If another run with the same groups has undone a hand-over, the first one run again does not say that it is over.

    Its target groups have offsets beyond those that were handed over, as if they had started.
    """
    cli.cluster.commit("new", PARTITION, 9)
    overwrite = ("--on-existing", "overwrite")
    cli(*MIGRATE, *overwrite)
    spec(cli, "other.toml", "old", "new")
    other = ("migrate", "other.toml", "--yes", *overwrite)
    assert "nothing was written: every offset was in place" in cli(*other).stderr
    cli("rollback", RUN, "--yes")
    assert cli.offset("new") == 9
    error = cli.fails(*other, code=3)
    assert "by run run1: nothing of this run is left there" in error


def test_claims_that_would_be_too_long_leave_out_the_oldest():
    """With long names of groups, the metadata of a claim stays below the limit of brokers, with the newest claims."""
    claims: Claims = ()
    for number in range(4):
        claims = handed_over(claims, "run", ("x" * 1500 + str(number),), FakeClock().now())
    text = encode(claims)
    assert len(text) <= 4096
    assert decode(text) == claims[:2]


def test_a_copy_is_neither_refused_nor_claimed(cli):
    """With ``--copy``, what runs have claimed is not looked at, and no claim is made."""
    cli("migrate", "split.toml", "--yes", "--copy")
    assert not cli.cluster.offsets(journal_group("old"))
    migrate(cli, "old", "other")
    migrate(cli, "old", "third", "--copy")
    assert newest(cli, "old")[1:] == (ClaimState.HANDED_OVER, ("other",))


def test_the_old_group_of_a_copy_is_never_moved_or_deleted(cli):
    """After a hand-over with ``--copy``, `hand-back` and `delete-offsets` are refused, and `status` offers neither.

    The old group may go on: the offsets of the copy do not say what it has processed.
    """
    said = cli("migrate", "split.toml", "--yes", "--copy", "--guard", "1s").stderr
    assert "back: migrate-groups rollback split.toml.run (before the new groups commit)\n" in said
    assert "watching" not in said
    cli.cluster.commit("old", PARTITION, 5)
    cli.cluster.commit("new", PARTITION, 9)
    before = cli.cluster.offsets("old")
    for command in ("hand-back", "delete-offsets"):
        assert "this run made a copy (--copy)" in cli.fails(command, "split.toml.run", "--yes", code=3)
    assert cli.cluster.offsets("old") == before
    refusal = cli.fails("rollback", "split.toml.run", "--yes", code=3)
    assert "no old group can take that back: stop it, and delete it with migrate-groups delete-group new" in refusal
    status = cli("status", "split.toml.run").stdout
    assert re.findall(r"(hand-back|delete-offsets) split.toml.run +refused", status) == ["hand-back", "delete-offsets"]
    assert "next: nothing: the new groups have started with a copy (--copy)" in status


def test_a_run_that_is_at_work_keeps_others_out(cli):
    """While a run is at work on a group, no other run of the group begins.

    The other run may be handing over, so nothing says that the old applications may go on.
    """
    with cli.cluster.other_client().held(journal_group("old"), ()):
        said = cli(*MIGRATE, code=3).stderr
    assert "another run is at work on group 'old': wait until it ends" in said
    assert "the old applications may go on" not in said
    assert cli.offset("new") is None
    cli(*MIGRATE)


def test_a_lost_lock_writes_nothing(cli, monkeypatch):
    """If a run has lost its lock when it claims the partitions, nothing is written for them."""
    answers = cli.cluster.alter_offsets

    def after_removal(offsets):
        for name in offsets.keys() & {journal_group("old")}:
            for member in cli.cluster.description(name).members:
                cli.cluster.leave(name, member.member_id)
        return answers(offsets)

    monkeypatch.setattr(cli.cluster, "alter_offsets", after_removal)
    done = cli(*MIGRATE, code=4)
    assert f"not claimed in group {journal_group('old')}: UNKNOWN_MEMBER_ID" in done.stdout + done.stderr
    assert cli.offset("new") is None


def test_describe_shows_what_was_handed_over_and_list_hides_the_journals(cli):
    """`describe` says what runs have handed over of a group; `list` shows no journal. A journal is no target."""
    cli(*MIGRATE)
    said = cli("describe", "old", "new").stderr
    assert said.startswith("t-0 handed over from 'old' to 'new' on 20")
    assert said.count("handed over") == 1
    assert "UTC, by run run1" in said
    assert "migrate-groups." not in cli("list").stdout
    journal = journal_group("old")
    assert cli("describe", journal).stdout
    error = cli.fails("apply", "--from-group", "old", "--to-group", f"{journal}.x", *FAST, code=3)
    assert "of this tool: choose another name" in error
    cli("delete-group", journal, "--yes")
    assert "handed over" not in cli("describe", "old").stderr


def test_a_way_back_is_done_only_when_its_claim_is_released(cli, monkeypatch):
    """If the claim can't be released, the way back is not done (exit code 4); the same command again releases it."""
    cli(*MIGRATE)
    answers, name = cli.cluster.alter_offsets, journal_group("old")

    def refuse_release(offsets):
        if any('"returned"' in each.metadata for each in offsets.get(name, {}).values()):
            return {name: dict.fromkeys(offsets[name], WriteAnswer(answer=Answer.UNKNOWN, error="timeout"))}
        return answers(offsets)

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets", refuse_release)
        done = cli("rollback", RUN, "--yes", code=4)
        assert "START" not in done.stderr
    assert newest(cli, "old")[1] == ClaimState.HANDED_OVER
    assert "START THE OLD APPLICATIONS NOW" in cli("rollback", RUN, "--yes").stderr
    assert newest(cli, "old")[1] == ClaimState.RETURNED


def test_without_permission_the_plan_warns(cli):
    """Without Read on the journal, it is not known whether another run handed over: the plan says what to grant."""
    journal = Resource(ResourceType.GROUP, journal_group("old"))
    cli.cluster.deny(journal, Operation.READ)
    done = cli(*MIGRATE)
    assert "it is not known whether another run handed over partitions of old" in done.stdout
    assert "grant Read on groups with the prefix 'migrate-groups.'" in done.stdout
    assert cli.offset("new") == 5


def test_without_permission_groups_that_consume_the_topics_are_named(cli):
    """Without Read on the journal, a group that consumes the topics at or after the old group's offsets is named."""
    cli.cluster.deny(Resource(ResourceType.GROUP, journal_group("old")), Operation.READ)
    for group, offset in (("ahead", 5), ("behind", 4)):
        assigned = frozenset([PARTITION])
        cli.cluster.join(group, Member(member_id=group, client_id=group, host="/h", assignment=assigned))
        cli.cluster.commit(group, PARTITION, offset)
    said = cli("migrate", "split.toml", "--dry-run").stdout
    assert "group ahead with members on these topics and commits at or after these offsets" in said


@pytest.mark.parametrize("metadata", ["", "{}", "[" * 5000, '[{"run":1}]', "\ud800"])
def test_a_foreign_group_with_the_name_of_a_journal(cli, metadata):
    """Committed offsets that are no claims make the claims unknown, and are not overwritten."""
    cli.cluster.commit(journal_group("old"), PARTITION, 3, metadata)
    done = cli(*MIGRATE)
    assert "committed offsets that are no claims of this tool, such as t-0" in " ".join(done.stdout.split())
    assert cli.cluster.offsets(journal_group("old"))[PARTITION].metadata == metadata
    assert cli.offset("new") == 5


def test_a_group_does_not_hand_on_what_the_group_before_it_has_consumed_since(cli):
    """After A → B, and A has committed beyond B since, B → C is refused: C would process the records a second time.

    It is possible once the first run has given the offsets of A to B.
    """
    migrate(cli, "old", "new")
    cli.cluster.commit("old", PARTITION, 8)
    spec(cli, "new-third.toml", "new", "third")
    for command in (["migrate", "new-third.toml"], ["apply", "--from-group", "new", "--to-group", "third", *FAST[:-1]]):
        for last in ("--yes", "--dry-run"):
            error = cli.fails(*command, last, code=3)
            assert "t-0 handed over from 'old' to 'new' on 20" in error
            assert "'old' has committed higher offsets since" in error
            assert "if 'new' has not started, run the command of that run again" in error
            assert cli.offset("third") is None
    cli("migrate", "old-new.toml", "--yes")
    cli("migrate", "new-third.toml", "--yes")
    assert cli.offset("third") == 8


def test_a_group_hands_on_if_the_group_before_it_is_behind_or_can_not_be_read(cli, monkeypatch):
    """B → C is not refused where A's offset is not beyond B's; without Describe on A the check is ``not known``."""
    migrate(cli, "old", "new")
    cli.cluster.commit("old", PARTITION, 8)
    cli.cluster.commit("new", PARTITION, 9)
    second = migrate(cli, "new", "third")
    assert cli.offset("third") == 9
    cli("rollback", second, "--yes")
    answers = cli.cluster.committed
    denied = {"old": NotAuthorized("lacks Describe on group old")}

    def committed(wanted, **options):
        return {**answers(wanted, **options), **(denied if "old" in wanted else {})}

    monkeypatch.setattr(cli.cluster, "committed", committed)
    said = cli("migrate", "new-third.toml", "--dry-run", "--run-dir", "another").stdout
    assert "whether 'old' has consumed them since it handed them over: lacks Describe" in " ".join(said.split())


@pytest.mark.parametrize("command", [MIGRATE, ("rollback", RUN, "--yes")], ids=["migrate", "rollback"])
@pytest.mark.parametrize("which", ["old", "new"])
def test_a_claim_without_an_answer(cli, monkeypatch, command, which: str):
    """If the broker is lost once it has got the claim, twice, nothing is written. The same command again succeeds."""
    if command is not MIGRATE:
        cli(*MIGRATE)
    before = cli.offset("new")
    alter, journal = cli.cluster.alter, journal_group(which)
    is_claim = itertools.cycle([True, False])  # the second request is to release it

    def unanswered(group, offsets):
        if group != journal or next(is_claim):
            answers = alter(group, offsets)
        return answers if group != journal else dict.fromkeys(offsets, silence)

    silence = WriteAnswer(answer=Answer.UNKNOWN, error="connection lost")

    with monkeypatch.context() as lost:
        lost.setattr(cli.cluster, "alter", unanswered)
        for _ in range(2):
            cli(*command, code=4)
    assert cli.offset("new") == before
    cli(*command)
    assert (cli.offset("new") is None) is (command is not MIGRATE)
