"""A check that compared nothing does not pass: its verdict is `not applicable`, or `not known` if it could not read."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs

from migrate_groups.migration.make_plan import make_plan
from migrate_groups.migration.reading.survey import survey
from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.check import Check
from migrate_groups.planning.checks.facts import HandOverFacts
from migrate_groups.planning.checks.live_source import LiveSource
from migrate_groups.planning.checks.registry import judge
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.decide import wanted_rows
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.rows import row
from tests.support.stopped import FIRST, SECOND, stopped


@pytest.fixture
def cluster() -> InMemoryCluster:
    """A cluster where group ``old`` has committed offset 4 in both partitions of ``t``, which have ten records each."""
    return stopped({FIRST: 4, SECOND: 4})


def handed_over(partition: int, offset: int | None = 4, **changes) -> Row:
    return structs.replace(row(group="new", source_group="old", partition=partition, offset=offset), **changes)


BOTH = [handed_over(0), handed_over(1)]


def plan_of(cluster: InMemoryCluster, rows: list[Row], **options) -> Plan:
    return make_plan(cluster, SnapshotTable.of_rows(rows), WriteOptions(**options))


def checks(cluster: InMemoryCluster, rows: list[Row], **options) -> dict[str, Check]:
    """Return the checks of the plan for these rows, by the name of the check."""
    return {each.name: each for each in plan_of(cluster, rows, **options).checks}


def verdicts(found: dict[str, Check]) -> dict[str, str]:
    return {name: str(each.verdict) for name, each in found.items()}


def without_topic_ids(cluster: InMemoryCluster, monkeypatch) -> None:
    """Let the cluster return no topic ids, as brokers before Kafka 2.8 do."""
    describe = cluster.describe_topics
    monkeypatch.setattr(
        cluster,
        "describe_topics",
        lambda topics: {name: replace(found, topic_id=None) for name, found in describe(topics).items()},
    )


def epochs(plan: Plan) -> set[int | None]:
    """Return the leader epochs that a plan writes."""
    return {change.after.leader_epoch for change in plan.changes if change.after}


def test_checks_of_a_source_group_do_not_apply_to_offsets_without_one(cluster):
    """Without a source group, the checks that compare it with the snapshot are `not applicable`."""
    found = verdicts(checks(cluster, [row(group="new", partition=0), row(group="new", partition=1)]))
    names = ("hidden topics", "stopped", "not moved", "removed")
    assert {name: found[name] for name in names} == dict.fromkeys(names, "not applicable")


def test_a_plan_that_writes_nothing_has_no_check_that_passes(cluster):
    """With no offset to write, no check passes: nothing was compared."""
    wanted = wanted_rows([])
    facts = survey(cluster, wanted)
    decided = HandOverFacts(survey=facts, options=WriteOptions(), decided=wanted).decided_by(facts)
    found = judge(Scope.HAND_OVER, decided)
    assert [check.name for check in found if check.verdict == "pass"] == []
    assert {str(check.verdict) for check in found} == {"refuse", "not applicable"}


def test_a_plan_without_checks_does_not_pass():
    """The verdict of a plan without checks is `not applicable`."""
    assert Plan(cluster_id="c", options=WriteOptions(), changes=(), checks=()).verdict == "not applicable"


def test_expired_offsets_are_not_compared_with_the_snapshot(cluster):
    """If all committed offsets have expired and are restored, `not moved` compared none, and does not pass.

    If one is left, the check passes, and says how many it compared.
    """
    cluster.delete("old", [FIRST])
    found = checks(cluster, BOTH, on_removed="restore")["not moved"]
    assert (found.verdict, found.reason) == ("pass", "1 partition as in the snapshot, 1 no longer has an offset")
    cluster.delete("old", [SECOND])
    found = checks(cluster, BOTH, on_removed="restore")["not moved"]
    assert found.verdict == "not applicable"


def test_offsets_that_are_all_in_place_are_not_checked_against_the_log(cluster):
    """If every offset is in place already, `in range` and `retention` of new offsets compare nothing to write."""
    cluster.alter("new", cluster.offsets("old"))
    found = verdicts(checks(cluster, BOTH))
    assert found["in range"] == "not applicable"
    assert found["existing offsets"] == "pass"


def test_offsets_in_place_outside_the_log_are_a_warning(cluster):
    """If an offset that is in place already is no longer within the log, `in range` warns: the group is reset there.

    It does not refuse, because an interrupted run must still be able to write the other offsets.
    """
    cluster.alter("new", {FIRST: cluster.offsets("old")[FIRST]})
    cluster.delete_records("t", 0, 7)
    found = checks(cluster, BOTH)["in range"]
    assert found.verdict == "warn"
    assert "1 offset in place already but outside the log: t-0 at 4: 3 records deleted already" in found.reason
    assert "auto.offset.reset" in found.reason
    cluster.alter("new", {SECOND: cluster.offsets("old")[SECOND]})
    assert checks(cluster, BOTH)["in range"] == found


def test_an_unknown_retention_is_not_known(cluster):
    """If the brokers do not report ``offsets.retention.minutes``, the check `retention` says `not known`."""
    cluster.keep_offsets(None)
    assert checks(cluster, BOTH)["retention"].verdict == "not known"
    cluster.keep_offsets(timedelta(days=7))
    assert checks(cluster, BOTH)["retention"].verdict == "pass"


@pytest.mark.parametrize("of_file", [True, False])
def test_topics_whose_id_is_not_known_are_not_called_the_same(cluster, monkeypatch, of_file):
    """If the file or the brokers lack a topic's id, the check `topics` says `not known` and names the topic.

    A topic that was deleted and created again would not be recognised.
    """
    rows = BOTH
    if of_file:
        rows = [structs.replace(each, topic_id=None) for each in BOTH]
    else:
        without_topic_ids(cluster, monkeypatch)
    found = checks(cluster, rows)["topics"]
    assert found.verdict == "not known"
    assert "id of topic t" in found.reason
    assert plan_of(cluster, rows).refusals(at_the_write=True) == ()


@pytest.mark.parametrize("of_file", [True, False])
def test_a_leader_epoch_of_a_topic_whose_id_is_not_known_is_not_written(cluster, monkeypatch, of_file):
    """If the file and the brokers lack the topic's id, the offset is written without its leader epoch.

    The epoch may be of a topic that was deleted, and would then stop a Java consumer.
    """
    rows = [handed_over(0, leader_epoch=0), handed_over(1, leader_epoch=0)]
    assert epochs(plan_of(cluster, rows)) == {0}
    without_topic_ids(cluster, monkeypatch)
    if of_file:
        rows = [structs.replace(each, topic_id=None) for each in rows]
    assert epochs(plan_of(cluster, rows)) == {None}


def test_a_file_without_a_cluster_id_is_not_known(cluster):
    """If the file names no cluster, the check `cluster` says `not known`."""
    rows = [structs.replace(each, cluster_id=None) for each in BOTH]
    assert checks(cluster, rows)["cluster"].verdict == "not known"


def test_permissions_that_brokers_do_not_report_are_not_known(cluster, monkeypatch):
    """If brokers do not report permissions (before Kafka 2.3), `permission` and `hold` say `not known`."""
    monkeypatch.setattr(cluster, "permissions", dict.fromkeys)
    assert checks(cluster, BOTH)["permission"].verdict == "not known"
    group = GroupDescription(group="g", state="Empty", group_type="classic", protocol_type="consumer")
    live = LiveSource(group=group, principal="User:a", permitted=None, is_held=True, kept=None, settle=10)
    assert [each.verdict for each in judge(Scope.LIVE_SOURCE, live)] == ["not known"]


def test_after_a_wrong_cluster_nothing_else_is_judged(cluster):
    """If the offsets are of another cluster, the plan has only this finding, and no changes.

    Groups and topics of the same names are others there, so that every other finding would mislead.
    """
    rows = [structs.replace(each, cluster_id="elsewhere", topic_id="another") for each in BOTH]
    plan = plan_of(cluster, rows)
    assert [(check.name, str(check.verdict)) for check in plan.checks] == [("cluster", "refuse")]
    assert plan.changes == ()


def test_an_outdated_file_gets_one_advice(cluster):
    """If some offsets of a file have moved and others have expired, the only advice is to take a new snapshot."""
    cluster.commit("old", FIRST, 6)
    cluster.delete("old", [SECOND])
    plan = plan_of(cluster, BOTH)
    (refusal,) = plan.refusals(at_the_write=True)
    assert refusal.name == "not moved"
    assert refusal.reason.endswith("; take a new snapshot")
    assert verdicts({each.name: each for each in plan.checks})["removed"] == "not applicable"


def test_an_outdated_file_of_a_running_group_gets_one_advice(cluster):
    """If the group still runs, an offset that expired is refused, with the advice of the offsets that moved."""
    cluster.delete("old", [SECOND])
    cluster.join("old", Member(member_id="m", client_id="app", host="/h", assignment=frozenset([FIRST])))
    cluster.commit("old", FIRST, 6)
    found = checks(cluster, BOTH)
    assert found["not moved"].reason.endswith("; stop the group, and take a new snapshot")
    assert (found["removed"].verdict, found["removed"].reason.split("; ")[-1]) == ("refuse", "take a new snapshot")


def test_offsets_of_a_recreated_topic_are_not_judged_further(cluster):
    """If a topic was deleted and created again, its offsets are not compared with the new log or the group."""
    cluster.delete_topic("t")
    cluster.create_topic("t", 2)
    plan = plan_of(cluster, BOTH)
    assert [each.name for each in plan.refusals(at_the_write=True)] == ["topics"]
    found = verdicts({each.name: each for each in plan.checks})
    assert {found[name] for name in ("not moved", "removed", "complete", "in range")} == {"not applicable"}


def test_a_group_that_is_gone_gets_one_advice(cluster):
    """If the source group no longer exists, only `stopped` refuses, and names the option that restores its offsets."""
    rows = [structs.replace(each, source_group="gone") for each in BOTH]
    (refusal,) = plan_of(cluster, rows).refusals(at_the_write=True)
    assert (refusal.name, refusal.reason.count("--on-removed restore")) == ("stopped", 1)


def test_a_snapshot_of_a_running_group_that_is_gone_is_not_restored(cluster):
    """If the source group no longer exists and ran when the snapshot was taken, `stopped` refuses without a way round.

    Nothing shows how far it has read since the snapshot. An interrupted run of this snapshot may still be completed.
    """
    rows = [structs.replace(each, source_group="gone", group_state="Stable") for each in BOTH]
    for on_removed in ("refuse", "restore"):
        (refusal,) = plan_of(cluster, rows, on_removed=on_removed).refusals(at_the_write=True)
        assert refusal.name == "stopped"
        assert "so it is not known where it stopped" in refusal.reason
        assert "--on-removed" not in refusal.reason
    rows = [structs.replace(each, group_state="Stable") for each in BOTH]
    begun = Receipt((Execution.of(plan_of(cluster, rows), FakeClock().now()),))
    cluster.delete_group("old")
    plan = make_plan(cluster, SnapshotTable.of_rows(rows), WriteOptions(on_removed="restore"), begun)
    assert plan.refusals(at_the_write=True) == ()


def test_metadata_above_the_limit_of_the_brokers_is_refused(cluster):
    """Metadata longer than ``offset.metadata.max.bytes`` refuses the plan, with the partition and both lengths.

    Brokers count UTF-16 code units, so that a character outside the basic plane counts as two.
    """
    cluster.alter("old", {FIRST: CommittedOffset(offset=4, leader_epoch=0, metadata="😀" * 2048)})
    rows = [handed_over(0, leader_epoch=0, metadata="😀" * 2048), handed_over(1)]
    assert checks(cluster, rows)["metadata"].verdict == "pass"
    rows[0] = structs.replace(rows[0], metadata="😀" * 2048 + "x")
    found = checks(cluster, rows)["metadata"]
    assert (found.verdict, "new t-0: 4,097" in found.reason) == ("refuse", True)
    found = checks(cluster, [*rows, handed_over(0, group="other", leader_epoch=0)])["metadata"]
    assert (found.verdict, "new t-0: 4,097" in found.reason) == ("refuse", True)


def test_without_metadata_its_length_is_not_checked(cluster):
    """If no offset to write has metadata, the plan has no check of the metadata."""
    assert "metadata" not in checks(cluster, BOTH)


def test_metadata_is_not_known_to_fit_if_the_limit_is_not(cluster):
    """If the brokers do not report their limit, its default is assumed. A longer text is refused all the same."""
    cluster.keep_offsets(timedelta(days=7), metadata=None)
    for length, verdict in ((4096, "not known"), (4097, "refuse")):
        cluster.commit("old", FIRST, 4, "x" * length)
        found = checks(cluster, [handed_over(0, metadata="x" * length), handed_over(1)])["metadata"]
        assert (found.verdict, "4,096 by default; grant DescribeConfigs" in found.reason) == (verdict, True)
