"""``delete-offsets --group`` on the in-memory cluster: refusals, the receipt, and the rollback of a deletion."""

from __future__ import annotations

import json
import os

import pytest

from migrate_groups.cli.commands import ways_back
from migrate_groups.errors import Refused, Undetermined
from migrate_groups.files.runs import receipt_json
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from tests.support.clock import FakeClock
from tests.support.connected import APPLY, MIGRATE, PARTITION, Connected, right_after

OTHER, KEPT = TopicPartition("t", 1), TopicPartition("kept", 0)
DELETE = ("delete-offsets", "--group", "old", "--topic", "t", "--settle", "0s", "--yes")
RECEIPT = "old.delete-offsets.receipt.json"
ROLLBACK = ("rollback", RECEIPT, "--yes")


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    """Return the command line on the in-memory cluster.

    Group ``old`` has committed 5 and 7 in two partitions of topic ``t``, and 2 in topic ``kept``.
    """
    made = Connected(tmp_path, monkeypatch)
    made.cluster.add_partitions("t", 2)
    made.cluster.create_topic("kept", 1)
    for partition, offset in ((OTHER, 7), (KEPT, 2)):
        made.cluster.produce(partition.topic, partition.partition, 10)
        made.cluster.commit("old", partition, offset, "meta")
    return made


def committed(cli: Connected) -> dict[TopicPartition, int]:
    found = cli.cluster.offsets("old")
    return {partition: each.offset for partition, each in found.items() if each is not None}


def verbs(cli: Connected) -> list[str]:
    return [each["verb"] for each in json.loads((cli.folder / RECEIPT).read_text())["executions"]]


def second_clients(cli: Connected, receipt: str) -> list[str]:
    return [each["options"]["second_client"] for each in json.loads((cli.folder / receipt).read_text())["executions"]]


def member(*topics: str) -> Member:
    assignment = frozenset(TopicPartition(topic, 0) for topic in topics)
    return Member(member_id="m", client_id="app", host="/h", assignment=assignment, subscription=frozenset(topics))


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_offsets_are_deleted_and_restored_by_rollback(cli):
    """``delete-offsets --topic t`` deletes only the offsets of this topic.

    Rollback restores them with metadata; a second rollback does nothing.
    """
    before = cli.cluster.offsets("old")
    done = cli(*DELETE)
    assert committed(cli) == {KEPT: 2}
    assert "2 partitions: 2 confirmed" in done.stdout
    assert f"back: migrate-groups rollback {RECEIPT}" in done.stderr
    cli(*ROLLBACK)
    assert cli.cluster.offsets("old") == before
    assert "is rolled back already; nothing was written" in cli(*ROLLBACK).stderr
    assert verbs(cli) == ["delete-offsets", "rollback"]


def test_a_group_name_that_librdkafka_trims_has_no_second_client(cli):
    """If librdkafka would trim a group's name, the second client does not read back: it would read another group."""
    for partition in (PARTITION, OTHER):
        cli.cluster.commit("\told", partition, 5)
    hand_over = ("apply", "--from-group", "\told", "--to-group", "new", "--settle", "0s", "--guard", "1ms", "--yes")
    cli(*hand_over, "--receipt", "r.json")
    cli("delete-offsets", "r.json", "--yes")
    assert (cli.offset("\told"), second_clients(cli, "r.json")) == (None, ["auto", "none"])
    cli("hand-back", "r.json", "--yes", "--wait", "0s")
    assert (cli.offset("\told"), second_clients(cli, "r.json")) == (5, ["auto", "none", "none"])
    cli("delete-offsets", "--group", "\told", "--topic", "t", "--settle", "0s", "--yes", "--receipt", "d.json")
    assert second_clients(cli, "d.json") == ["none"]


def test_a_dry_run_shows_the_offsets_and_deletes_nothing(cli):
    """``delete-offsets --dry-run`` shows each offset that would be deleted, and changes neither cluster nor folder."""
    before, files = committed(cli), set(cli.folder.iterdir())
    shown = cli(*DELETE[:-1], "--dry-run").stdout
    assert [line.split() for line in shown.splitlines() if line.startswith("old ")] == [
        ["old", "t", "0", "5", "-", "delete"],
        ["old", "t", "1", "7", "-", "delete"],
    ]
    assert (committed(cli), set(cli.folder.iterdir())) == (before, files)


def test_globs_and_several_topics(cli):
    """If ``--topic`` is given twice, as a name and as a glob, the offsets of all matching topics are deleted."""
    cli("delete-offsets", "--group", "old", "--topic", "t", "--topic", "k*", "--settle", "0s", "--yes")
    assert committed(cli) == {}


def test_a_topic_or_glob_without_a_committed_offset_is_named(cli):
    """If topics or globs match no committed offset, the error names all of them, and nothing is deleted."""
    before = committed(cli)
    error = cli.fails(*DELETE, "--topic", "none", "--topic", "x*", code=2)
    assert (
        "group 'old' has no committed offset for topics none, x*; it has committed offsets for topics kept, t" in error
    )
    assert committed(cli) == before
    assert not (cli.folder / RECEIPT).exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("receipt.json", "--group", "old"), "RUN (receipt.json) and --group old contradict each other"),
        (("receipt.json", "--topic", "t"), "go with --group, not with RUN"),
        (("receipt.json", "--settle", "0s"), "go with --group, not with RUN"),
        (("receipt.json", "--receipt", "r.json"), "go with --group, not with RUN"),
        ((), "name the RUN that handed over, or a group and its topics"),
        (("--group", "old"), "name the topics with --topic, or all with '*'"),
        (("--topic", "t"), "name the RUN that handed over, or a group and its topics"),
        (("--group", "old", "--group", "b", "--topic", "t"), "--group takes one group, not several: b, old"),
        (("--group", "old", "--topic", ""), "a topic pattern is empty"),
        (("--group", "old", "--topic", "t", "--receipt", "-"), "name a file"),
        (("--group", os.fsdecode(b"g\xff"), "--topic", "t"), "not UTF-8 text"),
        (("--group", "old", "--topic", "t", "--settle", "soon"), "--settle"),
    ],
)
def test_options_that_contradict_each_other(cli, arguments, said):
    """``delete-offsets`` needs either RUN or ``--group`` with ``--topic``.

    Contradictory options and unusable values end with exit code 2, and nothing is deleted.
    """
    assert said in cli.fails("delete-offsets", *arguments, "--yes", code=2)
    assert len(committed(cli)) == 3


@pytest.mark.parametrize(("topic", "code"), [("t", 3), ("kept", 0)])
def test_a_member_on_the_topic_refuses_the_deletion(cli, topic, code):
    """If a member is assigned or subscribed to the topic, the deletion is refused; other members do not matter."""
    cli.cluster.join("old", member(topic))
    done = cli(*DELETE, code=code)
    assert ("1 member assigned or subscribed to t" in done.stderr) == bool(code)
    assert len(committed(cli)) == (3 if code else 1)


def test_a_rollback_is_refused_while_the_group_has_members(cli):
    """While the group has members, rollback is refused with exit code 3, because brokers then accept no offsets."""
    cli(*DELETE)
    cli.cluster.join("old", member("kept"))
    assert "old is Stable with 1 member" in cli.fails(*ROLLBACK, code=3)
    cli.cluster.leave("old", "m")
    cli(*ROLLBACK)
    assert committed(cli) == {PARTITION: 5, OTHER: 7, KEPT: 2}


def test_a_rollback_is_refused_after_a_commit(cli):
    """If the group has committed after the deletion, rollback is refused; the error does not advise ``hand-back``."""
    cli(*DELETE)
    cli.cluster.commit("old", OTHER, 9)
    error = cli.fails(*ROLLBACK, code=3)
    assert "old t-1: the group has committed since the deletion: set the right offsets with apply" in error
    assert "hand-back" not in error
    assert committed(cli) == {OTHER: 9, KEPT: 2}


def test_a_rollback_is_refused_if_the_topic_was_created_again(cli):
    """If the topic was recreated, rollback is refused, because the new topic has other records at the old offsets."""
    cli(*DELETE)
    cli.cluster.delete_topic("t")
    cli.cluster.create_topic("t", 2)
    assert "created again" in cli.fails(*ROLLBACK, code=3)


def test_a_commit_during_the_settle_time_refuses_the_deletion(cli, monkeypatch):
    """If a consumer without membership commits between two reads of the offsets 10 s apart, the deletion is refused."""
    clock = FakeClock(lambda: cli.cluster.commit("old", OTHER, 8))
    monkeypatch.setattr(ways_back, "SystemClock", lambda: clock)
    command = ("delete-offsets", "--group", "old", "--topic", "t", "--yes")
    assert "t-1: the group has committed since the plan was shown" in cli.fails(*command, code=3)
    assert (clock.slept, committed(cli)) == (10.0, {PARTITION: 5, OTHER: 8, KEPT: 2})


def test_the_question_is_about_a_deletion(cli, monkeypatch):
    """Without ``--yes``, a prompt asks whether to delete the offsets.

    If the answer is no, nothing is deleted, and no receipt is written.
    """
    asked: list[str] = []
    monkeypatch.setattr("typer.confirm", lambda text, **_: asked.append(text))
    monkeypatch.setattr("migrate_groups.cli.terminal.Terminal.check_can_be_asked", lambda _: None)
    assert "the answer was no; nothing was written" in cli.fails(*DELETE[:-1], code=3)
    assert asked == ["Delete 2 offsets in old?"]
    assert len(committed(cli)) == 3
    assert not (cli.folder / RECEIPT).exists()


@pytest.mark.parametrize("is_deleted", [False, True])
@pytest.mark.parametrize("then", [DELETE, ROLLBACK])
def test_an_interrupted_deletion_is_resumed_or_rolled_back(cli, monkeypatch, is_deleted, then):
    """If a deletion was interrupted, whether its offsets were deleted or not, both a re-run and a rollback succeed."""
    delete = cli.cluster.delete

    def interrupted(*arguments):
        if is_deleted:
            delete(*arguments)
        interrupt()

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "delete", interrupted)
        assert cli(*DELETE, code=130).stderr.endswith(
            f"{RECEIPT} lists what was written: run the same command again to resume\n"
        )
    with pytest.raises(Undetermined, match="delete-offsets has not finished"):
        receipt_json.load(cli.folder / RECEIPT).hand_over_to_judge()
    cli(*then)
    if then is ROLLBACK:
        assert committed(cli) == {PARTITION: 5, OTHER: 7, KEPT: 2}
    else:
        assert (committed(cli), verbs(cli)) == ({KEPT: 2}, ["delete-offsets"])
        cli(*ROLLBACK)
        assert committed(cli) == {PARTITION: 5, OTHER: 7, KEPT: 2}


def test_an_unfinished_deletion_refuses_one_of_other_topics(cli, monkeypatch):
    """While a deletion is unfinished, its receipt is refused for other topics.

    With a new receipt, their offsets can be deleted.
    """
    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "delete", interrupt)
        cli(*DELETE, code=130)
    other = ("delete-offsets", "--group", "old", "--topic", "kept", "--settle", "0s", "--yes")
    assert "the deletion for topic t has not finished" in cli.fails(*other, code=2)
    cli(*other, "--receipt", "other.json")
    assert committed(cli) == {PARTITION: 5, OTHER: 7}


def test_a_partition_that_the_broker_refuses_is_deleted_by_a_rerun(cli, monkeypatch):
    """If the broker refuses a partition, the exit code is 4.

    A re-run deletes that partition's offset, and a rollback restores the offsets of both runs.
    """
    delete = cli.cluster.delete

    def refuse_one(group, partitions):
        answers = delete(group, [each for each in partitions if each != OTHER])
        return {**answers, OTHER: WriteAnswer(answer=Answer.REFUSED, error="GROUP_SUBSCRIBED_TO_TOPIC")}

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "delete", refuse_one)
        done = cli(*DELETE, code=4)
    assert "GROUP_SUBSCRIBED_TO_TOPIC" in done.stdout
    assert "run the same command again" in done.stderr
    cli(*DELETE)
    assert (committed(cli), verbs(cli)) == ({KEPT: 2}, ["delete-offsets"])
    cli(*ROLLBACK)
    assert committed(cli) == {PARTITION: 5, OTHER: 7, KEPT: 2}


def test_a_rerun_after_the_deletion_has_nothing_to_do(cli):
    """If all offsets are deleted already, the same command writes nothing and ends with exit code 0."""
    cli(*DELETE)
    assert f"{RECEIPT} has no offsets left to delete; nothing was written" in cli(*DELETE).stderr
    assert f"{RECEIPT} has no offsets left to delete" in cli(*DELETE[:-1], "--dry-run").stderr
    assert verbs(cli) == ["delete-offsets"]


def test_rollbacks_undo_the_deletions_of_a_receipt_one_after_the_other(cli):
    """If a receipt has two deletions, a rollback undoes the later one and names what stays deleted.

    A second rollback undoes the earlier one.
    """
    cli(*DELETE)
    kept = ("delete-offsets", "--group", "old", "--topic", "kept", "--settle", "0s", "--yes")
    cli(*kept)
    assert (committed(cli), verbs(cli)) == ({}, ["delete-offsets", "delete-offsets"])
    still = "2 offsets of topic t, deleted before th"
    assert f"{still}at, stay deleted" in cli(*ROLLBACK[:-1], "--dry-run").stdout
    assert f"next: the same command again restores {still}ose" in cli(*ROLLBACK).stderr
    assert committed(cli) == {KEPT: 2}
    assert still not in cli(*ROLLBACK).stderr
    assert committed(cli) == {PARTITION: 5, OTHER: 7, KEPT: 2}
    assert "is rolled back already; nothing was written" in cli(*ROLLBACK).stderr


def test_a_rollback_of_an_earlier_deletion_leaves_what_a_later_one_has_restored(cli):
    """If a partition's offset was deleted twice, the rollback of the later deletion restores it.

    The rollback of the earlier deletion then leaves this partition as it is.
    """
    cli(*DELETE)
    cli.cluster.commit("old", PARTITION, 6)
    cli(*DELETE)
    assert "has no offsets left to delete" in cli(*DELETE).stderr
    cli(*ROLLBACK)
    assert committed(cli) == {PARTITION: 6, KEPT: 2}
    cli.cluster.commit("old", PARTITION, 8)
    cli(*ROLLBACK)
    assert committed(cli) == {PARTITION: 8, OTHER: 7, KEPT: 2}


@pytest.mark.parametrize("topic", ["t", "kept"])
def test_a_commit_on_a_topic_refuses_only_the_rollback_of_its_deletion(cli, topic):
    """A rollback is refused if the group has committed to a topic of the deletion that would be undone.

    Commits to other topics do not prevent the rollback.
    """
    cli(*DELETE)
    cli("delete-offsets", "--group", "old", "--topic", "kept", "--settle", "0s", "--yes")
    cli.cluster.commit("old", PARTITION if topic == "t" else KEPT, 9)
    cli(*ROLLBACK, code=0 if topic == "t" else 3)
    assert "the group has committed since the deletion" in cli.fails(*ROLLBACK, code=3)
    assert committed(cli) == ({PARTITION: 9, KEPT: 2} if topic == "t" else {KEPT: 9})


@pytest.mark.parametrize("is_written", [False, True])
def test_an_interrupted_rollback_of_an_earlier_deletion_is_resumed(cli, monkeypatch, is_written):
    """If Ctrl-C ends a rollback, the next rollback completes it, whether its offsets were written or not."""
    cli(*DELETE)
    cli("delete-offsets", "--group", "old", "--topic", "kept", "--settle", "0s", "--yes")
    cli(*ROLLBACK)
    alter = cli.cluster.alter

    def interrupted(*arguments):
        if is_written:
            alter(*arguments)
        interrupt()

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter", interrupted)
        cli(*ROLLBACK, code=130)
    cli(*ROLLBACK)
    assert committed(cli) == {PARTITION: 5, OTHER: 7, KEPT: 2}


def test_a_group_that_lost_its_last_offset_is_created_again(cli):
    """If brokers delete the group with its last offset, a re-run does nothing, and a rollback restores the group."""
    everything = ("delete-offsets", "--group", "old", "--topic", "*", "--settle", "0s", "--yes")
    cli(*everything)
    cli.cluster.delete_group("old")
    assert "has no offsets left to delete" in cli(*everything).stderr
    cli(*ROLLBACK)
    assert committed(cli) == {PARTITION: 5, OTHER: 7, KEPT: 2}


def test_the_receipt_of_a_deletion_is_no_receipt_of_a_hand_over(cli):
    """``apply``, ``hand-back`` and ``delete-offsets RUN`` refuse a receipt of ``delete-offsets --group``."""
    cli(*DELETE)
    apply = (*APPLY[:-1], RECEIPT)
    for command in (apply, ("hand-back", RECEIPT, "--yes")):
        assert "deleted by delete-offsets --group: name another receipt" in cli.fails(*command, code=3)
    assert "handed over no offset" in cli.fails("delete-offsets", RECEIPT, "--yes", code=3)
    with pytest.raises(Refused, match="deleted by delete-offsets --group"):
        receipt_json.load(cli.folder / RECEIPT).hand_over_to_judge()
    cli(*ROLLBACK)
    assert "and restored by rollback: name another receipt" in cli.fails(*apply, code=3)


def test_the_receipt_of_another_run_is_refused(cli):
    """If ``--receipt`` names the receipt of a hand-over, or of another group's deletion, the deletion is refused."""
    cli(*APPLY, "--on-uncommitted", "leave")
    assert "receipt.json is the receipt of a hand-over" in cli.fails(*DELETE, "--receipt", "receipt.json", code=2)
    cli.cluster.commit("b", PARTITION, 1)
    cli(*DELETE, "--receipt", "other.json")
    other = ("delete-offsets", "--group", "b", "--topic", "t", "--settle", "0s", "--yes")
    assert "other.json is the receipt of group old" in cli.fails(*other, "--receipt", "other.json", code=2)


def test_an_unfinished_rollback_refuses_the_next_deletion(cli, monkeypatch):
    """If a rollback was interrupted, the next deletion is refused until the rollback has been run again."""
    cli(*DELETE)
    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter", interrupt)
        cli(*ROLLBACK, code=130)
    assert "rollback has not finished: run rollback again first" in cli.fails(*DELETE, code=3)
    cli(*ROLLBACK)
    cli(*DELETE)
    assert committed(cli) == {KEPT: 2}


def test_a_commit_right_after_the_deletion_is_exit_4(cli, monkeypatch):
    """If another client commits before the offsets are read back, the exit code is 4.

    No rollback replaces the committed offset.
    """
    with monkeypatch.context() as patched:
        right_after(patched, cli.cluster, "delete", lambda: cli.cluster.commit("old", OTHER, 9))
        assert "read back as 9, which another client committed" in cli(*DELETE, code=4).stdout
    assert "committed since" in cli.fails(*ROLLBACK, code=3)
    assert committed(cli) == {OTHER: 9, KEPT: 2}


def test_a_member_that_joins_during_the_deletion_is_exit_4(cli, monkeypatch):
    """If a member joins during the deletion, the exit code is 4, and the error says that the group runs again."""
    delete = cli.cluster.delete

    def delete_and_join(*arguments):
        answers = delete(*arguments)
        cli.cluster.join("old", member("t"))
        return answers

    monkeypatch.setattr(cli.cluster, "delete", delete_and_join)
    assert "the group runs again; look at its offsets with describe" in cli.fails(*DELETE, code=4)


def test_missing_permissions(cli):
    """If a permission for the deletion is missing, nothing is deleted.

    If only a rollback would need the permission, a dry run says that it is missing.
    """
    cli.cluster.deny(Resource(ResourceType.GROUP, "old"), Operation.READ)
    assert "lacks Read on Group 'old', so a rollback would be refused" in cli(*DELETE[:-1], "--dry-run").stdout
    cli.cluster.deny(Resource(ResourceType.TOPIC, "t"), Operation.READ)
    assert "lacks Read on Topic 't'" in cli.fails(*DELETE, code=3)
    cli.cluster.deny(Resource(ResourceType.GROUP, "old"), Operation.DELETE)
    assert "lacks Delete on Group 'old'" in cli.fails(*DELETE, code=3)
    assert len(committed(cli)) == 3


def test_groups_without_such_offsets_are_refused(cli):
    """If the group does not exist, or is a group of Kafka Connect, the exit code is 3, and the error says so."""
    cli.cluster.join("connect", member("t"), protocol_type="connect")
    for group, said in (
        ("none", "'none' does not exist"),
        ("connect", "its type is classic connect"),
    ):
        assert said in cli.fails("delete-offsets", "--group", group, "--topic", "t", "--yes", code=3)


@pytest.mark.parametrize("group", ["../up", "-x", "a b/ü\n", " old", "x" * 300, "."])
def test_any_group_name_makes_a_receipt_in_the_current_directory(cli, group):
    """Whatever the group's name, the receipt is a file in the current folder, and ``rollback`` accepts its name."""
    cli.cluster.alter(group, {PARTITION: CommittedOffset(offset=3, leader_epoch=0, metadata="m")})
    before = set(cli.folder.iterdir())
    cli("delete-offsets", f"--group={group}", "--topic", "t", "--settle", "0s", "--yes")
    (receipt,) = {path for path in cli.folder.iterdir() if not path.name.endswith(".lock")} - before
    assert cli.offset(group) is None
    cli("rollback", receipt.name, "--yes")
    assert cli.offset(group) == 3


def test_deletion_after_a_hand_over_is_unchanged(cli):
    """With the receipt of a hand-over, ``delete-offsets`` deletes only the source group's offsets of moved topics."""
    (cli.folder / "split.toml").write_text(
        (cli.folder / "split.toml").read_text().replace("[options]", '[stay]\ntopics = ["kept"]\n[options]')
    )
    cli(*MIGRATE)
    cli("delete-offsets", "split.toml.run", "--yes")
    assert committed(cli) == {KEPT: 2}
    assert "it was handed over" not in cli("delete-offsets", "split.toml.run", "--yes").stderr
