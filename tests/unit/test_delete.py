"""``delete-group`` on the in-memory cluster: what it refuses, how it checks each deletion, and what it prints."""

from __future__ import annotations

import shlex

import pytest

from migrate_groups.errors import ClusterUnavailable, GroupNotFound, NotAuthorized, PartlyApplied, Refused
from migrate_groups.migration.delete_groups import Deletion, delete_groups, what_would_go
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from tests.support.clock import FakeClock
from tests.support.connected import PARTITION, Connected
from tests.support.in_memory import InMemoryCluster

MEMBER = Member(member_id="m", client_id="replayer", host="/127.0.0.1", subscription=frozenset({"t"}))
SEVERAL = ("delete-group", "a", "b", "c", "--yes")


def cluster(kind: type[InMemoryCluster] = InMemoryCluster, *others: str) -> InMemoryCluster:
    made = kind()
    made.create_topic("t", 2)
    made.produce("t", 0, 10)
    for group in ("replay", *others):
        made.commit(group, TopicPartition("t", 0), 3)
    return made


def delete(made: InMemoryCluster, *groups: str) -> Deletion:
    deletion = delete_groups(made, groups or ("replay",), FakeClock())
    deletion.check()
    return deletion


def test_the_preview_lists_only_partitions_with_a_committed_offset():
    """The preview of ``delete-group`` lists only the partitions in which the group has a committed offset."""
    going = what_would_go(cluster(), ["replay"], FakeClock())["replay"]
    assert [(each.topic_partition, each.offset) for each in going.rows()] == [(TopicPartition("t", 0), 3)]


def test_a_group_with_members_and_a_connect_group_are_refused():
    """``delete-group`` refuses a group with members and a Connect group.

    For an unknown group, the error is "not found".
    """
    made = cluster()
    made.join("replay", MEMBER)
    made.join("connect-sink", MEMBER, protocol_type="connect")
    with pytest.raises(Refused, match=r"replayer at 127\.0\.0\.1.*nothing was deleted"):
        what_would_go(made, ["replay"], FakeClock())
    with pytest.raises(Refused, match="not a consumer group: its type is classic connect"):
        what_would_go(made, ["connect-sink"], FakeClock())
    with pytest.raises(GroupNotFound, match="'repaly' does not exist"):
        what_would_go(made, ["repaly"], FakeClock())


def test_each_group_that_cannot_be_deleted_is_named_and_none_is_deleted():
    """If some of several groups can't be deleted, one error names each of them with its reason, and none is deleted."""
    made = cluster(InMemoryCluster, "live", "denied")
    made.join("live", MEMBER)
    made.deny(Resource(ResourceType.GROUP, "denied"), Operation.DELETE)
    with pytest.raises(Refused) as refused:
        delete(made, "replay", "live", "none", "denied")
    for said in ("'live' is Stable with 1 member", "'none' does not exist", "lacks Delete on Group 'denied'"):
        assert said in str(refused.value)
    assert str(refused.value).endswith("; nothing was deleted")
    assert all(made.description(group).exists for group in ("replay", "live", "denied"))


def test_a_missing_permission_is_reported_before_the_deletion():
    """If the permission Delete is missing, the preview of ``delete-group`` fails and names the group."""
    made = cluster()
    made.deny(Resource(ResourceType.GROUP, "replay"), Operation.DELETE)
    with pytest.raises(NotAuthorized, match="lacks Delete on Group 'replay'"):
        what_would_go(made, ["replay"], FakeClock())


def test_a_member_that_joins_during_the_question_prevents_the_deletion():
    """If a member joins a group while the confirmation prompt waits, ``delete-group`` deletes none of its groups."""
    made = cluster(InMemoryCluster, "other")
    assert what_would_go(made, ["other", "replay"], FakeClock()).keys() == {"other", "replay"}
    made.join("replay", MEMBER)
    with pytest.raises(Refused, match=r"'replay' is Stable with 1 member.*nothing was deleted"):
        delete_groups(made, ["other", "replay"], FakeClock())
    assert made.description("other").exists


class Refusing(InMemoryCluster):
    """A cluster on which a member joins each group of ``late`` right before its deletion."""

    late: tuple[str, ...] = ("replay",)

    def delete_group(self, group):
        if group in self.late:
            self.join(group, MEMBER)
        return super().delete_group(group)


def test_a_member_that_joins_after_the_checks_prevents_the_deletion():
    """If a member joins the group after the checks, Kafka refuses the deletion, and the exit code is 3."""
    made = cluster(Refusing)
    with pytest.raises(Refused, match="NON_EMPTY_GROUP"):
        delete(made)
    assert made.description("replay").exists


def test_a_failure_of_one_group_does_not_stop_the_others():
    """If one of several deletions fails, the other groups are deleted.

    The error (exit code 4) names the group that is left.
    """
    made, gone = cluster(Refusing, "a", "b"), list[str]()
    deletion = delete_groups(made, ["a", "replay", "b"], FakeClock(), gone=gone.append)
    assert deletion.deleted == ("a", "b")
    assert gone == ["a", "b"]
    with pytest.raises(PartlyApplied, match=r"^2 of 3 groups deleted; group 'replay' was not deleted: NON_EMPTY"):
        deletion.check()


def test_all_groups_refused_is_exit_3():
    """If the coordinators refuse to delete every group, the error names each group, and the exit code is 3."""

    class RefusingAll(Refusing):
        late = ("replay", "a")

    with pytest.raises(Refused, match=r"'a' was not deleted.*'replay' was not deleted"):
        delete(cluster(RefusingAll, "a"), "a", "replay")


def test_a_group_is_read_again_after_a_time_out_of_its_deletion():
    """If a deletion times out, ``delete-group`` reads the group again: it fails only if the group still exists."""

    class TimesOut(InMemoryCluster):
        deletes = True

        def delete_group(self, group):
            if self.deletes:
                super().delete_group(group)
            return WriteAnswer(answer=Answer.UNKNOWN, error="timed out")

    delete(cluster(TimesOut))
    made = cluster(TimesOut)
    assert isinstance(made, TimesOut)
    made.deletes = False
    with pytest.raises(PartlyApplied, match=r"still exists \(timed out\)"):
        delete(made)


def test_a_group_that_cannot_be_read_after_its_deletion_is_unknown():
    """If a group can't be read after its deletion, the error (exit code 4) says that the group may be deleted."""

    class Unavailable(InMemoryCluster):
        lost = False

        def delete_group(self, group):
            self.lost = True
            return super().delete_group(group)

        def description(self, group):
            if self.lost:
                raise ClusterUnavailable("no answer")
            return super().description(group)

    with pytest.raises(PartlyApplied, match="'replay' may be deleted; it can't be described: no answer"):
        delete(cluster(Unavailable))


def test_a_group_that_is_deleted_meanwhile_is_no_error():
    """If another client deletes the group after the checks, ``delete-group`` succeeds."""

    class DeletedMeanwhile(InMemoryCluster):
        def delete_group(self, group):
            super().delete_group(group)
            return super().delete_group(group)

    assert delete(cluster(DeletedMeanwhile)).deleted == ("replay",)


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    made = Connected(tmp_path, monkeypatch)
    for group in ("a", "b", "c"):
        made.cluster.commit(group, PARTITION, 3)
    return made


def test_the_command_deletes_several_groups(cli):
    """``delete-group`` deletes several groups; its dry run shows their offsets and a command that saves them.

    After the deletion, ``apply --restore`` restores the offsets from this snapshot.
    """
    done = cli(*SEVERAL[:-1], "--dry-run")
    assert [line for line in done.stdout.splitlines() if line.startswith("group ")] == ["group a", "group b", "group c"]
    (snapshot,) = (line.split("migrate-groups ")[1] for line in done.stderr.splitlines() if "to keep them" in line)
    cli(*shlex.split(snapshot))
    assert cli(*SEVERAL).stdout.endswith("deleted: a\ndeleted: b\ndeleted: c\n")
    assert [cli.offset(group) for group in ("a", "b", "c")] == [None, None, None]
    cli("apply", "kept.csv", "--restore", "--settle", "0s", "--guard", "0s", "--on-removed", "restore", "--yes")
    assert [cli.offset(group) for group in ("a", "b", "c")] == [3, 3, 3]


def test_an_interrupt_between_two_deletions_says_which_are_done(cli, monkeypatch):
    """If ``delete-group`` is interrupted, the last line names the deleted groups and the group that may be deleted."""
    delete_group, asked = cli.cluster.delete_group, []

    def interrupted_at_the_second(group):
        asked.append(group)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return delete_group(group)

    monkeypatch.setattr(cli.cluster, "delete_group", interrupted_at_the_second)
    assert cli(*SEVERAL, code=130).stderr.endswith(
        "interrupted; deleted: a; group b may be deleted: migrate-groups describe b tells\n"
    )
    assert [cli.offset(group) for group in ("a", "b", "c")] == [None, 3, 3]


def test_one_question_for_several_groups(cli, monkeypatch):
    """For several groups, ``delete-group`` shows one prompt with their number and names.

    The answer no deletes no group.
    """
    asked: list[str] = []
    monkeypatch.setattr("typer.confirm", lambda text, **_: asked.append(text))
    monkeypatch.setattr("migrate_groups.cli.terminal.Terminal.check_can_be_asked", lambda _: None)
    assert "the answer was no; nothing was deleted" in cli.fails(*SEVERAL[:-1], code=3)
    assert asked == ["Delete 3 groups (a, b, c)?"]
    assert cli.offset("a") == 3


def test_a_group_that_is_named_twice_is_deleted_once(cli):
    """If a group is named twice, ``delete-group`` deletes it once, without an error."""
    assert cli("delete-group", "a", "a", "--yes").stdout.count("deleted: a\n") == 1
