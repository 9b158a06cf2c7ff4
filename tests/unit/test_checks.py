"""The verdicts of the checks before a write, in cases that are hard or impossible to produce on a broker."""

from __future__ import annotations

from datetime import timedelta
from typing import get_type_hints

import pytest
from msgspec import structs

from migrate_groups.errors import NotAuthorized
from migrate_groups.migration.reading.survey import read_cluster_facts, survey
from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.check import Check, Verdict
from migrate_groups.planning.checks.application import Applications
from migrate_groups.planning.checks.barrier import Probes
from migrate_groups.planning.checks.facts import (
    FailOverFacts,
    GroupDeletionFacts,
    HandOverFacts,
    MirrorFacts,
    RollbackFacts,
    RunDeletionFacts,
)
from migrate_groups.planning.checks.journal import JournalFacts
from migrate_groups.planning.checks.live_source import LiveSource
from migrate_groups.planning.checks.registry import judge, rules_of
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.checks.source import running
from migrate_groups.planning.decide import wanted_rows
from migrate_groups.planning.options import WriteOptions
from migrate_groups.snapshots.row import Row
from tests.support.in_memory import InMemoryCluster
from tests.support.rows import row
from tests.support.stopped import FIRST, SECOND, stopped

FACTS = {
    Scope.HAND_OVER: HandOverFacts,
    Scope.SOURCE: HandOverFacts,
    Scope.MIRROR: MirrorFacts,
    Scope.TARGET: HandOverFacts,
    Scope.FAIL_OVER: FailOverFacts,
    Scope.LIVE_SOURCE: LiveSource,
    Scope.APPLICATION: Applications,
    Scope.BARRIER: Probes,
    Scope.JOURNAL: JournalFacts,
    Scope.ROLLBACK: RollbackFacts,
    Scope.HAND_BACK: HandOverFacts,
    Scope.DELETE_OF_RUN: RunDeletionFacts,
    Scope.DELETE_OF_GROUP: GroupDeletionFacts,
}
MEMBER = Member(member_id="m", client_id="app", host="/h", assignment=frozenset([TopicPartition("t", 0)]))


@pytest.fixture
def cluster() -> InMemoryCluster:
    """A cluster where group ``old`` has committed offset 4 in both partitions of ``t``, which have ten records each."""
    return stopped({FIRST: 4, SECOND: 4})


def handed_over(partition: int, offset: int | None = 4, *, group: str = "new") -> Row:
    return row(group=group, source_group="old", partition=partition, offset=offset)


BOTH = [handed_over(0), handed_over(1)]


def checks(cluster: InMemoryCluster, rows: list[Row], **options) -> dict[str, Check]:
    """Return the checks of the plan for these rows, by the name of the check."""
    chosen = WriteOptions(**options)
    wanted = wanted_rows(rows)
    facts = survey(cluster, wanted)
    decided = HandOverFacts(survey=facts, options=chosen, decided=wanted).decided_by(facts)
    return {each.name: each for each in judge(Scope.HAND_OVER, decided)}


def refusing(found: dict[str, Check]) -> list[str]:
    return [each.name for each in found.values() if each.verdict in (Verdict.PENDING, Verdict.REFUSE)]


def test_every_check_passes_for_a_clean_hand_over(cluster):
    """If the source group has stopped and the target group is new, the plan contains all checks, and all pass."""
    found = checks(cluster, BOTH)
    assert {name: each.verdict for name, each in found.items() if each.verdict is not Verdict.PASS} == {}
    assert list(found) == [
        "cluster",
        "hand-over",
        "topics",
        "kind",
        "permission",
        "hidden topics",
        "stopped",
        "not moved",
        "removed",
        "targets",
        "existing offsets",
        "complete",
        "in range",
        "retention",
    ]


@pytest.mark.parametrize("scope", Scope)
def test_each_check_of_the_registry_is_once_in_a_scope_and_after_those_it_depends_on(scope):
    """In each scope, no two checks have the same name, and a check comes after the checks on which it depends.

    Each judges the type of facts that belongs to the scope.
    """
    rules = rules_of(scope)
    assert all(issubclass(FACTS[scope], get_type_hints(rule.judge)["facts"]) for rule in rules)
    names = [rule.name for rule in rules]
    assert sorted(set(names)) == sorted(names)
    for at, rule in enumerate(rules):
        assert {name for name in rule.depends_on if name in names} <= {*names[:at]}


@pytest.mark.parametrize("scope", [Scope.HAND_OVER, Scope.SOURCE])
def test_offsets_of_a_source_group_that_has_committed_since_are_not_judged_further(cluster, scope):
    """If a stopped source group has other offsets than the wanted ones, only `not moved` refuses them.

    This is so on one cluster, and on the source group's cluster in a move to another one.
    """
    wanted = wanted_rows(BOTH)
    cluster.commit("old", TopicPartition("t", 0), 6)
    facts = survey(cluster, wanted)
    decided = HandOverFacts(survey=facts, options=WriteOptions(), decided=wanted).decided_by(facts)
    found = {each.name: each for each in judge(scope, decided)}
    assert refusing(found) == ["not moved"]
    verdicts = {found[name].verdict for name in ("removed", "complete", "in range")}
    assert verdicts == {Verdict.NOT_APPLICABLE}


def test_a_file_without_offsets_is_refused(cluster):
    """If a file contains no offsets to hand over, the check ``hand-over`` refuses it."""
    assert refusing(checks(cluster, [])) == ["hand-over"]


@pytest.mark.parametrize("name", [" new", "\tnew", "\nnew", "\vnew", "\fnew", "\rnew", " ", "\0new", "new\0"])
def test_a_target_name_that_the_second_client_reads_differently_is_refused(cluster, name):
    """A target group's name with leading white space or a NUL is refused: confluent-kafka would read another group.

    Without this second client it is not refused. Source: docs/kafka-behaviour.md#confluent-kafka
    """
    rows = [handed_over(0, group=name), handed_over(1, group=name)]
    found = checks(cluster, rows)["targets"]
    assert found.verdict is Verdict.REFUSE
    assert f"{name!a} with white space at the start or with a NUL" in found.reason
    assert checks(cluster, rows, second_client="none")["targets"].verdict is not Verdict.REFUSE


@pytest.mark.parametrize("name", ["n ew", "\u00a0new"])
def test_a_target_name_with_other_white_space_passes(cluster, name):
    """A target group's name with white space inside, or with non-ASCII white space at its start, passes the check.

    Both clients read the same group. Source: docs/kafka-behaviour.md#confluent-kafka
    """
    assert checks(cluster, [handed_over(0, group=name), handed_over(1, group=name)])["targets"].verdict is Verdict.PASS


@pytest.mark.parametrize("name", ["new ", "new\n", "new\u00a0"])
def test_a_target_name_that_ends_in_white_space_is_a_warning(cluster, name):
    """If a target group's name ends in white space, the check warns and shows the name in quotes.

    A name with white space at both ends is refused.
    """
    found = checks(cluster, [handed_over(0, group=name), handed_over(1, group=name)])["targets"]
    assert found.verdict is Verdict.WARN
    assert found.reason == f"group name {name!a} with white space at the end: check the spelling"
    assert checks(cluster, [handed_over(0, group=f" {name}")])["targets"].verdict is Verdict.REFUSE


@pytest.mark.parametrize("group", ["old", "new"])
def test_a_kip_1071_streams_group_is_refused_only_if_it_has_internal_topics(cluster, group):
    """A stopped Streams group with a changelog topic is refused. Without internal topics it passes with a warning."""
    cluster.join(group, MEMBER, group_type="streams", protocol_type="streams", assignor="")
    assert refusing(checks(cluster, BOTH)) == ["stopped" if group == "old" else "targets"]
    cluster.leave(group, MEMBER.member_id)
    found = checks(cluster, BOTH)
    assert (found["kind"].verdict, refusing(found)) == (Verdict.WARN, [])
    assert found["kind"].reason.startswith(f"group {group} of Kafka Streams without internal topics")
    cluster.create_topic(f"{group}-store-changelog", 1)
    found = checks(cluster, BOTH)
    assert f"{group} belongs to a Kafka Streams application with state" in found["kind"].reason
    assert refusing(found) == ["kind"]


def description(**changes) -> GroupDescription:
    values = {"group": "g", "state": "Stable", "group_type": "consumer", "protocol_type": "consumer"}
    return GroupDescription(**(values | changes))


@pytest.mark.parametrize("state", ["Stable", "Assigning", "Reconciling", "PreparingRebalance", "CompletingRebalance"])
def test_a_group_that_shows_no_members_but_is_not_empty_has_not_stopped(state):
    """A group that shows no members but is not Empty is treated as running, because it may consume any topic.

    So is a Connect group with a worker.
    """
    assert running(description(state=state), {"t"}) == [f"is {state}"]
    worker = Member(member_id="m", client_id="app", host="/h")
    assert running(description(protocol_type="connect", members=(worker,)), {"t"})[0].startswith("is Stable with 1 mem")


def test_a_running_member_is_named_with_two_of_its_topics():
    """A refusal names a member that may still consume with two of its topics, and counts the others."""
    worker = Member(member_id="m", client_id="app", host="/h", subscription=frozenset("abcd"))
    (reason,) = running(description(state="Stable", members=(worker,)), {"a"})
    assert "has 1 member assigned or subscribed to a (app at h on a, b and 2 more; " in reason


def test_a_stable_group_has_stopped_for_topics_without_a_member():
    """A Stable group is treated as stopped for the topics that none of its members is assigned or subscribed to."""
    group = description(members=(MEMBER,))
    assert running(group, {"other"}) == []
    assert running(group, {"t", "other"})[0].startswith("has 1 member assigned or subscribed to other, t (app at h")
    assert running(group, None)[0].startswith("is Stable with 1 member (app at h")


@pytest.mark.parametrize(
    ("protocol_type", "permitted", "verdict", "reason"),
    [
        ("consumer", frozenset({Operation.READ}), Verdict.PASS, "g can be held during the hand-over"),
        ("consumer", None, Verdict.NOT_KNOWN, "the brokers do not return what User:a may do with Group 'g'"),
        ("consumer", frozenset({Operation.DESCRIBE}), Verdict.REFUSE, "User:a lacks Read on Group 'g'"),
        ("", frozenset(), Verdict.REFUSE, "User:a lacks Read on Group 'g'"),
        ("", frozenset({Operation.READ}), Verdict.WARN, "g never had a member: with --hold, all its offsets expire"),
    ],
)
def test_a_hold_needs_read_on_the_group(protocol_type, permitted, verdict, reason):
    """``--hold`` is refused without Read on the group. If the brokers do not report permissions, it is not known.

    If the group never had a member, the check warns that all its offsets expire.
    """
    group = description(state="Empty", protocol_type=protocol_type)
    live = LiveSource(group=group, principal="User:a", permitted=permitted, is_held=True, kept=None, settle=10)
    (found,) = judge(Scope.LIVE_SOURCE, live)
    assert (found.name, found.verdict) == ("hold", verdict)
    assert found.reason.startswith(reason)


@pytest.mark.parametrize("operation", [Operation.READ, Operation.DESCRIBE])
def test_missing_describe_is_an_error_and_missing_read_a_refusal(cluster, operation):
    """Without Describe on a group, one error lists every missing permission.

    Without Read, the check refuses the write.
    """
    cluster.deny(Resource(ResourceType.GROUP, "new"), operation)
    if operation is Operation.READ:
        assert checks(cluster, BOTH)["permission"].reason.startswith("User:ANONYMOUS lacks Read on Group 'new';")
        return
    cluster.deny(Resource(ResourceType.TOPIC, "t"), Operation.READ)
    with pytest.raises(NotAuthorized, match="lacks Describe on Group 'new', Read on Topic 't';"):
        checks(cluster, BOTH)


def test_permissions_that_brokers_do_not_report_are_not_known(cluster, monkeypatch):
    """If the brokers do not report permissions (before Kafka 2.3), the check says `not known`."""
    monkeypatch.setattr(cluster, "permissions", dict.fromkeys)
    found = checks(cluster, BOTH)["permission"]
    assert (found.verdict, "the brokers do not return" in found.reason) == (Verdict.NOT_KNOWN, True)


def test_known_cluster_facts_are_not_requested_again(cluster, monkeypatch):
    """If permissions and offset retention are known, a further reading of the cluster does not request them again."""
    known = read_cluster_facts(cluster, wanted_rows(BOTH))
    for question in ("permissions", "offset_limits"):
        monkeypatch.setattr(cluster, question, None)
    describe = cluster.describe_topics
    monkeypatch.setattr(cluster, "describe_topics", lambda topics: describe([*topics]))  # not all of them
    assert survey(cluster, wanted_rows(BOTH), known).cluster_facts is known


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (timedelta(days=1), "in 1 day, unless"),
        (timedelta(hours=36), "in 36 hours, unless"),
        (timedelta(minutes=90), "in 90 minutes, unless"),
    ],
)
def test_retention_is_shown_in_the_largest_whole_unit(cluster, kept, said):
    """The check shows the brokers' offset retention in the largest whole unit, and warns if it is less than a day."""
    cluster.keep_offsets(kept)
    found = checks(cluster, BOTH)["retention"]
    assert said in found.reason
    assert found.verdict is (Verdict.WARN if kept < timedelta(days=1) else Verdict.PASS)


def test_unchanged_offsets_expire_from_their_own_commit(cluster):
    """If a target offset stays unchanged, the check lists its expiry apart: it counts from the offset's own commit."""
    first = TopicPartition("t", 0)
    cluster.alter("new", {first: cluster.offsets("old")[first]})
    assert "1 unchanged offset 7 days after the commit" in checks(cluster, BOTH)["retention"].reason


def test_uncommitted_earliest_does_not_overwrite_a_target_offset_by_default(cluster):
    """With ``on_uncommitted=earliest``, a target offset that differs is refused, except with
    ``on_existing=overwrite``.
    """
    cluster.commit("new", TopicPartition("t", 1), 7)
    cluster.delete("old", [TopicPartition("t", 1)])
    rows = [handed_over(0), handed_over(1, None)]
    found = checks(cluster, rows, on_uncommitted="earliest")
    assert "new t-1 is at 7, not 0" in found["existing offsets"].reason
    assert refusing(found) == ["existing offsets"]
    assert refusing(checks(cluster, rows, on_uncommitted="earliest", on_existing="overwrite")) == []
    for on_existing, becomes in (("overwrite", "overwritten"), ("forward", "raised only")):
        check = checks(cluster, rows, on_uncommitted="earliest", on_existing=on_existing)["existing offsets"]
        assert check.verdict is Verdict.WARN
        assert check.reason.endswith(f"; {becomes}")


def test_uncommitted_leave_refuses_a_target_that_has_an_offset(cluster):
    """With ``on_uncommitted=leave``, a partition in which only the target group has an offset is refused."""
    cluster.commit("new", TopicPartition("t", 1), 7)
    cluster.delete("old", [TopicPartition("t", 1)])
    found = checks(cluster, [handed_over(0), handed_over(1, None)], on_uncommitted="leave")
    assert "new t-1 is at 7, and stays there" in found["existing offsets"].reason
    assert refusing(found) == ["existing offsets"]


def test_a_partition_for_several_groups_is_counted_once(cluster):
    """If several groups get the same partition, the checks count it once as moved, removed or uncommitted."""
    cluster.commit("old", TopicPartition("t", 0), 9)
    groups = ("a", "b", "c")
    moved = checks(cluster, [handed_over(number, group=group) for number in (0, 1) for group in groups])
    assert moved["not moved"].reason.startswith("1 committed offset moved since the snapshot: t-0 4 → 9 (+5);")
    cluster.commit("old", TopicPartition("t", 0), 4)
    cluster.delete("old", [TopicPartition("t", 1)])
    gone = checks(cluster, [handed_over(number, group=group) for number in (0, 1) for group in groups])
    assert gone["removed"].reason.startswith("1 committed offset expired or deleted since the snapshot: t-1 at 4;")
    without = checks(cluster, [handed_over(1, None, group=group) for group in groups], on_uncommitted="leave")
    assert without["complete"].reason.startswith("no offset is written for 2 partitions: t-0, t-1;")


def test_a_leader_epoch_that_is_not_the_source_groups_counts_as_moved(cluster):
    """If a leader epoch in a file differs from that of the source group's committed offset, the check refuses the file.

    A file without leader epochs passes. Source: docs/kafka-behaviour.md#logs
    """
    epochs = {0: 3, 1: None}
    for number, epoch in epochs.items():
        cluster.alter("old", {TopicPartition("t", number): CommittedOffset(offset=4, leader_epoch=epoch)})
    rows = [structs.replace(handed_over(number), leader_epoch=None) for number in (0, 1)]
    assert refusing(checks(cluster, rows)) == []
    assert refusing(checks(cluster, [structs.replace(rows[0], leader_epoch=3), rows[1]])) == []
    for epoch in (2, 7):
        found = checks(cluster, [structs.replace(row, leader_epoch=epoch) for row in rows])
        assert refusing(found) == ["not moved"]
        assert found["not moved"].reason.startswith(
            f"2 committed offsets moved since the snapshot: t-0 at 4, leader epoch {epoch} → 3, "
            f"t-1 at 4, leader epoch {epoch} → none;"
        )


def test_a_partition_for_several_groups_is_a_warning(cluster):
    """If several groups get the same partition, the check warns, because each of them processes the records.

    The warning also counts offsets without a source group.
    """
    rows = [*BOTH, handed_over(0, group="more")]
    shared = "1 partition goes to several groups, each of which processes its records: t-0 (more, new)"
    assert checks(cluster, rows)["hand-over"].reason == shared
    rows.append(handed_over(1, group="more"))
    found = checks(cluster, rows)
    assert (found["hand-over"].verdict, refusing(found)) == (Verdict.WARN, [])
    assert checks(cluster, [*rows, row(group="a"), row(group="b")])["hand-over"].reason == (
        "2 offsets without a source group, so no old group is checked; 2 partitions go to several groups, each of "
        "which processes their records: t-0 (more, new), t-1 (more, new)"
    )


def test_uncommitted_earliest_refuses_a_committed_partition_that_the_file_lacks(cluster):
    """With ``on_uncommitted=earliest``, a file that lacks a partition with a source commit is refused.

    With ``on_uncommitted=leave`` it passes.
    """
    found = checks(cluster, [handed_over(0)], on_uncommitted="earliest")
    assert found["complete"].reason.startswith("the file lacks 1 partition with a committed offset: t-1;")
    assert refusing(found) == ["complete"]
    assert refusing(checks(cluster, [handed_over(0)], on_uncommitted="leave")) == []


def test_a_topic_is_handed_over_if_any_of_its_rows_has_a_source_group(cluster):
    """If only the second row of a topic has a source group, a partition that the file lacks is still refused."""
    cluster.create_topic("u", 3)
    for partition in (0, 1, 2):
        cluster.produce("u", partition, 10)
        cluster.commit("old", TopicPartition("u", partition), 4)
    rows = [
        row(group="new", source_group=source, topic="u", topic_id=None, partition=partition, offset=4)
        for partition, source in enumerate((None, "old"))
    ]
    found = checks(cluster, rows)
    assert refusing(found) == ["complete"]
    assert found["complete"].reason.startswith("the file lacks 1 partition with a committed offset: u-2;")


def test_rows_without_a_source_group_are_reported(cluster):
    """For rows without a source group, the check says whether a partition without an offset gets the log start."""
    rows = [row(group="new", partition=0), row(group="new", partition=1, offset=None)]
    assert "no offset is written for 1 partition" in checks(cluster, rows)["complete"].reason
    assert "on_uncommitted = earliest" in checks(cluster, rows, on_uncommitted="earliest")["complete"].reason


def test_partitions_that_a_file_without_a_source_group_lacks_are_a_warning(cluster):
    """If a file without a source group lacks a partition, the check warns that ``auto.offset.reset`` decides there.

    It does not warn if the target group has an offset in this partition.
    """
    rows = [row(group="new", partition=0)]
    found = checks(cluster, rows)["complete"]
    assert (found.verdict, found.reason) == (
        Verdict.WARN,
        "no offset is written for 1 partition: t-1; the new group's auto.offset.reset decides there",
    )
    cluster.commit("new", TopicPartition("t", 1), 3)
    assert checks(cluster, rows)["complete"].verdict is Verdict.PASS


def test_every_offset_outside_the_log_is_named(cluster):
    """The check names every offset that is below the log start, beyond the log end or in an unknown partition."""
    cluster.delete_records("t", 0, 6)
    rows = [row(group="new", partition=0, offset=2), row(group="new", partition=1, offset=13)]
    reason = checks(cluster, [*rows, row(group="new", partition=7)])["in range"].reason
    assert "t-0 at 2: 4 records deleted already" in reason
    assert "t-1 at 13: the log end offset is 10" in reason
    assert "1 offset in partitions that do not exist or have no leader: t-7;" in reason
    assert "t-7" in reason
