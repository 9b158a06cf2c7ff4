"""Waiting on the in-memory cluster until groups have stopped, while coordinators move or commits are pending."""

from __future__ import annotations

import pytest

from migrate_groups.errors import GroupNotFound, PendingCommits
from migrate_groups.migration.stop import Wait, prove_stopped
from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.model.partitions import TopicPartition
from tests.support.clock import FakeClock
from tests.support.connected import Connected
from tests.support.in_memory import InMemoryCluster

MEMBER = Member(member_id="m", client_id="app", host="/127.0.0.1", subscription=frozenset({"t"}))


class Forgetful(InMemoryCluster):
    """A cluster that reports the group as Dead, as a new coordinator may.

    forgets: the descriptions of a group, counted from 0, that report the group as Dead.
    """

    def __init__(self, forgets: range) -> None:
        super().__init__()
        self.create_topic("t", 1)
        self.commit("big", TopicPartition("t", 0), 5)
        self.join("big", MEMBER)
        self._forgets, self._looks = forgets, 0

    def description(self, group: str) -> GroupDescription:
        self._looks += 1
        if self._looks - 1 in self._forgets:
            return GroupDescription(group=group, state="Dead", group_type="")
        return super().description(group)


def test_a_group_that_is_missing_while_its_coordinator_moves_is_waited_for():
    """If a group is no longer found during the wait, it is described again, because its coordinator may be moving."""
    cluster, waited = Forgetful(range(2, 5)), list[bool]()
    clock = FakeClock(lambda: cluster.leave("big", "m") if len(waited) == 3 else None)
    how = Wait(wait=60, settle=0, progress=lambda reasons, looks, seconds: waited.append(bool(reasons["big"])))
    looks = prove_stopped(cluster, ["big"], clock, how)
    assert looks["big"].description.stopped
    assert waited == [True, True, True, False]


def test_the_stop_is_said_before_the_settle_time():
    """When the last member has left, a line says so.

    It also says how long the tool now watches for commits (``settle``).
    """
    cluster, said = InMemoryCluster(), list[tuple[float, str]]()
    cluster.create_topic("t", 1)
    cluster.commit("big", TopicPartition("t", 0), 5)
    cluster.join("big", MEMBER)
    clock = FakeClock(lambda: cluster.leave("big", "m") if cluster.description("big").members else None)
    how = Wait(wait=60, settle=90, doing=lambda line: said.append((clock.slept, line)))
    prove_stopped(cluster, ["big"], clock, how)
    prove_stopped(cluster, ["big"], FakeClock(), how, topics=["t"])
    (at, line), (_, of_topics) = said
    assert of_topics.startswith("   0 s  stopped: t of big; ")
    assert line == "   0 s  stopped: big; waiting 1 min 30 s to see that nothing is committed"
    assert at == pytest.approx(clock.slept - 90)


@pytest.mark.parametrize("forgets", [range(1_000_000), range(1, 1_000_000)], ids=["never existed", "deleted"])
def test_a_group_that_does_not_exist_is_an_error(forgets):
    """A wait for a group that never existed fails at once.

    If the group is deleted during the wait, the wait fails at its time-out.
    """
    clock = FakeClock()
    with pytest.raises(GroupNotFound, match="'big' does not exist"):
        prove_stopped(Forgetful(forgets), ["big"], clock, Wait(wait=60, settle=0))
    assert clock.slept == (60 if forgets.start else 0)


class Transacting(InMemoryCluster):
    """A cluster with a group that has a pending transactional commit and no members.

    questions: how many requests for committed offsets fail because the commit is pending.
    """

    def __init__(self, questions: int) -> None:
        super().__init__()
        self.create_topic("t", 1)
        self.commit("big", TopicPartition("t", 0), 5)
        self._left = questions

    def fetched(self, group, partitions, *, wait):
        if not wait:
            return dict.fromkeys(self.offsets(group))
        self._left -= 1
        if self._left >= 0:
            raise PendingCommits("a commit is pending; wait")
        return super().fetched(group, partitions, wait=wait)


def test_a_pending_commit_is_waited_for():
    """A wait for a group to stop also waits until its pending transactional commit has ended.

    If no wait was requested, a pending commit is an error at once.
    """
    looks = prove_stopped(Transacting(3), ["big"], FakeClock(), Wait(wait=60, settle=1))
    committed = looks["big"].committed[TopicPartition("t", 0)]
    assert committed is not None
    assert committed.offset == 5
    clock = FakeClock()
    with pytest.raises(PendingCommits, match="a commit is pending"):
        prove_stopped(Transacting(1_000_000), ["big"], clock, Wait(wait=60, settle=1))
    assert clock.slept == 60
    with pytest.raises(PendingCommits, match="a commit is pending"):
        prove_stopped(Transacting(3), ["big"], FakeClock(), Wait(wait=0, settle=1))


def test_verify_with_topic_speaks_of_that_topic_only(tmp_path, monkeypatch):
    """`verify` with ``--topic`` reports only that this topic is no longer consumed.

    The group may still have a member that consumes another topic.
    """
    cli = Connected(tmp_path, monkeypatch)
    cli.cluster.create_topic("other", 1)
    cli.cluster.join("old", Member(member_id="m", client_id="a", host="/h", subscription=frozenset({"other"})))
    said = cli("verify", "old", "--topic", "t", "--settle", "1ms").stdout
    assert said == "stopped: t of old; no member on these topics, and no offset of theirs moved within 1ms\n"
    cli.cluster.leave("old", "m")
    said = cli("verify", "old", "--settle", "1ms").stdout
    assert said == "stopped: old; no member, and no offset moved within 1ms\n"


@pytest.mark.parametrize(
    ("regex", "stopped"),
    [("^t|u", False), ("(^[a-z]$)", False), ("(?i)T", False), ("other.*", True), ("tt", True), ("[[", False)],
)
def test_a_regular_expression_that_matches_the_topic_is_named(tmp_path, monkeypatch, regex, stopped):
    """`verify` is refused if a member's regular expression matches the topic of ``--topic`` or can't be evaluated.

    The error names the member and the expression.
    """
    cli = Connected(tmp_path, monkeypatch)
    member = Member(member_id="m", client_id="app", host="/h", subscription_regex=regex)
    cli.cluster.join("old", member, group_type="consumer")
    if stopped:
        cli("verify", "old", "--topic", "t", "--settle", "1ms")
    else:
        refusal = cli.fails("verify", "old", "--topic", "t", "--wait", "0s", "--settle", "1ms", code=3)
        assert f"old has 1 member assigned or subscribed to t (app at h subscribed to regex {regex}; " in refusal
