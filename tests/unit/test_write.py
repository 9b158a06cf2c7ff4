"""Writing to the in-memory cluster, and to variants of it that fail as brokers do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from msgspec import structs

from migrate_groups.errors import ClusterUnavailable, Refused
from migrate_groups.migration.guard import guard, look_at_watched
from migrate_groups.migration.make_plan import make_plan, plan_at_the_write
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.write import write
from migrate_groups.migration.write_requests import divided, rounds
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.change import Change, Outcome
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.planning import handed_over

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def cluster(kind: type[InMemoryCluster] = InMemoryCluster) -> InMemoryCluster:
    """Return a cluster where group ``old`` has committed offsets 3 and 4 in two partitions of ten records each."""
    made = kind()
    made.create_topic("t", 2)
    for partition, offset in ((FIRST, 3), (SECOND, 4)):
        made.produce("t", partition.partition, 10)
        made.commit("old", partition, offset, metadata=f"m{offset}")
    return made


def run(made, second_client=None, options: WriteOptions | None = None):
    plan = make_plan(made, handed_over(made, "old", "new"), options or WriteOptions())
    states: list[Execution] = []
    receipt = write(Clients(made, second_client or made), Execution.of(plan, FakeClock().now()), states.append)
    return receipt, states


def outcomes(receipt) -> list[Outcome]:
    return [entry.outcome for entry in receipt.changes]


def test_a_clean_write_is_confirmed_by_both_clients():
    """Each partition's offset and metadata are written, read back by both Kafka clients, and confirmed."""
    made = cluster()
    receipt, _ = run(made)
    assert outcomes(receipt) == [Outcome.CONFIRMED] * 2
    assert receipt.remarks == receipt.moved == ()
    assert made.offsets("new") == made.offsets("old")


def test_the_receipt_is_recorded_before_the_first_request_and_after_every_answer():
    """The receipt is saved with "not attempted" before the first request, and with "unknown" after the answer.

    kafka-python's reading does not change the receipt; it is "confirmed" only after the second client's.
    """
    made = cluster()
    made.commit("new", FIRST, 1)
    _, states = run(made, options=WriteOptions(on_existing="overwrite"))
    assert outcomes(states[0]) == [Outcome.NOT_ATTEMPTED] * 2
    assert [entry.before and entry.before.offset for entry in states[0].changes] == [1, None]
    assert [outcomes(state) for state in states[1:]] == [
        [Outcome.UNKNOWN] * 2,
        [Outcome.UNKNOWN] * 2,
        [Outcome.CONFIRMED] * 2,
    ]
    assert states[2] == states[1]


def test_no_reading_of_one_client_is_recorded_before_the_other_has_answered():
    """A write of several steps, and one that is resumed, save "unknown" until the second client has read back.

    So a killed process leaves nothing that the same command would take as read back.
    """
    made = cluster()
    receipt, _ = run(made)
    changes = [each.unknown("") for each in receipt.changes]
    deletion = structs.replace(
        changes[1], group="old", before=changes[1].after, after=None, outcome=Outcome.NOT_ATTEMPTED
    )
    states: list[Execution] = []
    write(made.clients, replace(receipt, changes=(*changes, deletion)), states.append)
    assert outcomes(states[-1]) == [Outcome.CONFIRMED] * 3
    assert [each for state in states[:-1] for each in outcomes(state) if each is Outcome.CONFIRMED_BY_ONE] == []


class InterruptedLater(InMemoryCluster):
    """A cluster on which Ctrl-C interrupts the second write."""

    asked = 0

    def alter(self, group, offsets):
        self.asked += 1
        if self.asked == 2:
            raise KeyboardInterrupt
        return super().alter(group, offsets)


@pytest.fixture
def one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit each write request to one partition."""
    monkeypatch.setattr("migrate_groups.migration.write.rounds", partial(rounds, most_bytes=1))


def written(made: InMemoryCluster, states: list[Execution]) -> None:
    plan = make_plan(made, handed_over(made, "old", "new"), WriteOptions())
    write(made.clients, Execution.of(plan, FakeClock().now()), states.append)


@pytest.mark.usefixtures("one_each")
def test_the_receipt_is_recorded_once_for_all_requests_of_an_attempt():
    """If a write takes several requests, the receipt is saved after the last one, not after each.

    Saving it takes longer than a request.
    """
    states: list[Execution] = []
    written(cluster(), states)
    assert [outcomes(state) for state in states[:3]] == [
        [Outcome.NOT_ATTEMPTED] * 2,
        [Outcome.UNKNOWN] * 2,
        [Outcome.UNKNOWN] * 2,
    ]


@pytest.mark.usefixtures("one_each")
def test_an_interrupted_write_is_recorded():
    """If a write is interrupted between two requests, the receipt records the first request's partition as "unknown".

    It records the second request's partition as "not attempted".
    """
    states: list[Execution] = []
    with pytest.raises(KeyboardInterrupt):
        written(cluster(InterruptedLater), states)
    assert outcomes(states[-1]) == [Outcome.UNKNOWN, Outcome.NOT_ATTEMPTED]


class TimesOutOnce(InMemoryCluster):
    """A cluster that neither applies nor answers the first write."""

    asked = 0

    def alter(self, group, offsets):
        self.asked += 1
        if self.asked == 1:
            return dict.fromkeys(offsets, WriteAnswer(answer=Answer.UNKNOWN, error="timed out"))
        return super().alter(group, offsets)


class AppliedWithoutAnswer(InMemoryCluster):
    """A cluster that applies every write and loses the answer."""

    asked = 0

    def alter(self, group, offsets):
        self.asked += 1
        super().alter(group, offsets)
        return dict.fromkeys(offsets, WriteAnswer(answer=Answer.UNKNOWN, error="timed out"))


class LosesWrites(InMemoryCluster):
    """A cluster that acknowledges every write, and applies none."""

    def alter(self, group, offsets):
        return dict.fromkeys(offsets, WriteAnswer(answer=Answer.WRITTEN))


class RefusesSecond(InMemoryCluster):
    """A cluster that refuses to write the offset of partition 1."""

    def alter(self, group, offsets):
        taken = {partition: offset for partition, offset in offsets.items() if partition != SECOND}
        refused = WriteAnswer(answer=Answer.REFUSED, error="TOPIC_AUTHORIZATION_FAILED")
        return {**super().alter(group, taken), SECOND: refused}


def test_a_write_without_an_answer_is_read_back_and_retried_once():
    """If a write gets no answer and its offsets do not read back, it is sent once more.

    The receipt counts two attempts.
    """
    receipt, _ = run(cluster(TimesOutOnce))
    assert outcomes(receipt) == [Outcome.CONFIRMED] * 2
    assert {entry.attempts for entry in receipt.changes} == {2}


def test_an_applied_write_whose_answer_was_lost_is_not_written_again():
    """If a write was applied and its answer lost, the read-back confirms the write, and no second request is sent."""
    made = cluster(AppliedWithoutAnswer)
    assert isinstance(made, AppliedWithoutAnswer)
    receipt, _ = run(made)
    assert outcomes(receipt) == [Outcome.CONFIRMED] * 2
    assert made.asked == 1


def test_a_write_that_does_not_read_back_is_unknown():
    """If the broker acknowledges an offset but does not return it at the read-back, the outcome is "unknown"."""
    receipt, _ = run(cluster(LosesWrites))
    assert outcomes(receipt) == [Outcome.UNKNOWN] * 2
    assert receipt.failed[0].error == "read back as no offset"


def test_a_refused_partition_is_not_retried_and_the_others_are_confirmed():
    """If the broker refuses one partition, that partition is not tried again, and the other partition is confirmed."""
    receipt, _ = run(cluster(RefusesSecond))
    assert outcomes(receipt) == [Outcome.CONFIRMED, Outcome.REFUSED]
    assert receipt.failed[0].error == "TOPIC_AUTHORIZATION_FAILED"
    assert receipt.failed[0].attempts == 1


class SecondClient:
    """A second Kafka client that gives a fixed answer; if the answer is an exception, it is raised."""

    def __init__(self, answer):
        self._answer = answer

    def committed(self, wanted):
        if isinstance(self._answer, Exception):
            raise self._answer
        return {group: dict.fromkeys(partitions, self._answer) for group, partitions in wanted.items()}


def test_a_partition_that_the_second_client_reads_differently_is_refused():
    """If the second client reads another offset, the outcome is "refused", and the error shows both offsets.

    The offset that was written stays in `own`, the offsets that this migration may have written.
    """
    receipt, _ = run(cluster(), second_client=SecondClient(CommittedOffset(offset=4, leader_epoch=0)))
    assert outcomes(receipt) == [Outcome.REFUSED, Outcome.CONFIRMED]
    assert receipt.changes[0].after in receipt.changes[0].own
    assert receipt.failed[0].error == "kafka-python reads 3, confluent-kafka reads 4"


class FirstReadsBefore:
    """A second Kafka client whose first reading began before the brokers applied a write that they did not answer."""

    def __init__(self, made):
        self._made, self.readings = made, 0

    def committed(self, wanted):
        self.readings += 1
        if self.readings == 1:
            return {group: dict.fromkeys(partitions) for group, partitions in wanted.items()}
        return self._made.committed(wanted)


def test_a_second_reading_that_began_before_the_write_was_applied_is_repeated():
    """A write gets no answer and is applied later: the second client read too early, and the first one reads it back.

    The second client reads once more, both agree, and the write is confirmed.
    """
    made = cluster(AppliedWithoutAnswer)
    second = FirstReadsBefore(made)
    receipt, _ = run(made, second_client=second)
    assert outcomes(receipt) == [Outcome.CONFIRMED] * 2
    assert second.readings == 2


@pytest.mark.parametrize(("mode", "expected"), [("auto", Outcome.CONFIRMED_BY_ONE), ("required", Outcome.UNKNOWN)])
def test_a_write_without_the_second_clients_answer(mode, expected):
    """If the second client does not answer, the outcome is "confirmed by one client", or "unknown" with
    ``--second-client required``.

    A remark names the reason.
    """
    second_client = SecondClient(ClusterUnavailable("died twice"))
    receipt, _ = run(cluster(), second_client=second_client, options=WriteOptions(second_client=mode))
    assert outcomes(receipt) == [expected] * 2
    assert "confirmed by one client only: died twice" in receipt.remarks[0]


def test_a_source_group_that_moved_after_the_plan_was_shown_is_refused():
    """If the source group commits after the plan was shown, the write is refused."""
    made = cluster()
    named = handed_over(made, "old", "new")
    shown = make_plan(made, named, WriteOptions())
    plan_at_the_write(made, named, shown)
    made.commit("old", FIRST, 5)
    with pytest.raises(Refused, match="t-0 3 → 5"):
        plan_at_the_write(made, named, shown)


def test_a_target_that_changed_after_it_was_shown_is_refused():
    """If a target offset changes after the plan was shown, the write is refused.

    The user has agreed only to the plan.
    """
    made = cluster()
    named = handed_over(made, "old", "new")
    options = WriteOptions(on_existing="overwrite")
    shown = make_plan(made, named, options)
    made.commit("new", SECOND, 9)
    with pytest.raises(Refused, match="changed since the plan was shown: new t-1"):
        plan_at_the_write(made, named, shown)


def test_guard_ends_at_the_first_commit_of_the_source_group():
    """The watch after the write ends as soon as the source group commits.

    It reports the group's member, and by how many records the offset moved.
    """
    made = cluster()
    plan = make_plan(made, handed_over(made, "old", "new"), WriteOptions())
    receipt = write(made.clients, Execution.of(plan, FakeClock().now()), lambda state: None)
    assert guard(made.clients, receipt, 30, quiet := FakeClock()).moved == ()
    assert quiet.slept == 30
    back = Member(member_id="m", client_id="late-app", host="/h", assignment=frozenset([FIRST]))

    def comes_back() -> None:
        made.join("old", back)
        made.commit("old", FIRST, 8)

    clock = FakeClock(comes_back)
    seen = guard(made.clients, receipt, 30, clock).moved
    assert clock.slept == 1
    assert "late-app at h" in seen[0]
    assert "t-0 3 → 8 (5 records)" in seen[1]


def test_guard_reads_at_least_once():
    """A guard whose time has passed before the first reading, as on a busy machine, still reads the groups once."""
    made = cluster()
    plan = make_plan(made, handed_over(made, "old", "new"), WriteOptions())
    receipt = write(made.clients, Execution.of(plan, FakeClock().now()), lambda state: None)

    class Busy(FakeClock):
        def monotonic(self) -> float:
            self.slept += 1
            return self.slept

    assert guard(made.clients, receipt, 0.001, Busy()).guard_readings == 1
    made.commit("old", FIRST, 8)
    assert "t-0 3 → 8" in str(guard(made.clients, receipt, 0.001, Busy()).moved)


def test_a_pending_check_passes_the_dry_run_and_refuses_the_write():
    """If the source group has a member, the plan is "pending": a dry run passes, but a write is refused."""
    made = cluster()
    named = handed_over(made, "old", "new")
    made.join("old", Member(member_id="m", client_id="app", host="/h", subscription=frozenset({"t"})))
    plan = make_plan(made, named, WriteOptions())
    assert plan.verdict is Verdict.PENDING
    assert plan.refusals(at_the_write=False) == ()
    assert [check.name for check in plan.refusals(at_the_write=True)] == ["stopped"]


def test_leader_epoch_is_dropped_without_a_topic_id():
    """If the snapshot lacks the topic id, the leader epoch is not written.

    The epoch may be from an earlier topic of the same name.
    """
    made = cluster()
    named = handed_over(made, "old", "new")
    foreign = SnapshotTable.of_rows(structs.replace(row, topic_id=None) for row in named.rows())
    for rows, epoch in ((named, 0), (foreign, None)):
        plan = make_plan(made, rows, WriteOptions())
        assert {change.after and change.after.leader_epoch for change in plan.changes} == {epoch}


def test_offsets_are_part_of_the_content_hash_but_not_of_the_intent_hash():
    """If the source group commits, the plan's content hash changes but not its intent hash.

    Another write option changes the intent hash.
    """
    made = cluster()
    plan = make_plan(made, handed_over(made, "old", "new"), WriteOptions())
    made.commit("old", FIRST, 5)
    moved = make_plan(made, handed_over(made, "old", "new"), WriteOptions())
    other = make_plan(made, handed_over(made, "old", "new"), WriteOptions(on_existing="forward"))
    assert plan.intent == moved.intent != other.intent
    assert plan.content != moved.content


@pytest.mark.parametrize("after", [CommittedOffset(offset=1, metadata="é" * 10), None])
def test_requests_are_split_by_bytes_and_by_group(after):
    """A write request contains one group and at most ``most_bytes`` bytes.

    Requests of several groups are sent together, but each deletion is sent alone.
    """
    entries = [
        Change(source_group=None, group=group, topic="topic", partition=number, after=after)
        for group, size in (("a", 10), ("b", 5))
        for number in range(size)
    ]
    size = 1 + 5 + (20 if after else 0) + 44
    cut = [Counter(entry.group for entry in each) for each in rounds(entries, most_bytes=4 * size)]
    side_by_side = [{"a": 4, "b": 4}, {"a": 4, "b": 1}, {"a": 2}]
    assert cut == (side_by_side if after else [{"a": 4}, {"a": 4}, {"a": 2}, {"b": 4}, {"b": 1}])
    sent = [entry for each in rounds(entries, most_bytes=4 * size) for entry in each]
    assert sorted(sent, key=lambda entry: entry.order) == entries


def test_claims_of_several_groups_fit_into_requests(monkeypatch: pytest.MonkeyPatch):
    """Claims are committed in requests that hold what fits into one batch, with those of other groups beside them."""
    monkeypatch.setattr("migrate_groups.migration.write_requests._MOST_BYTES", 4 * (1 + 5 + 20 + 44))
    claim = CommittedOffset(offset=1, metadata="m" * 20)
    claims = {
        group: {TopicPartition("topic", number): claim for number in range(size)}
        for group, size in (("a", 10), ("b", 5))
    }
    requests = [*divided(claims)]
    assert [{group: len(of_group) for group, of_group in each.items()} for each in requests] == [
        {"a": 4, "b": 4},
        {"a": 4, "b": 1},
        {"a": 2},
    ]
    sent: dict[str, dict[TopicPartition, CommittedOffset]] = {group: {} for group in claims}
    for each in requests:
        for group, of_group in each.items():
            sent[group] |= of_group
    assert sent == claims


def test_a_target_at_another_offset_after_the_guard_is_a_remark():
    """If a target group without members has a later offset than was written, a remark after the watch says so.

    Another run or an application may have committed it.
    """
    made = cluster()
    receipt, _ = run(made)
    assert guard(made.clients, receipt, 5, FakeClock()).remarks == ()
    made.commit("new", FIRST, 9)
    (remark,) = guard(made.clients, guard(made.clients, receipt, 5, FakeClock()), 5, FakeClock()).remarks
    assert "'new' has no members, and the committed offset of 1 partition is not the one written: t-0" in remark
    made.join("new", Member(member_id="m", client_id="c", host="/h"))
    assert guard(made.clients, receipt, 5, FakeClock()).remarks == ()


@pytest.mark.parametrize("offset", [1, None])
def test_a_target_that_is_moved_back_during_the_guard_is_a_failure(offset):
    """If a target offset is lowered or deleted during the watch after the write, the partition is reported as failed.

    An application would only raise the offset.
    """
    made = cluster()
    receipt, _ = run(made)
    made.delete("new", [FIRST]) if offset is None else made.commit("new", FIRST, offset)
    (entry,) = guard(made.clients, receipt, 5, FakeClock()).failed
    assert (entry.topic_partition, entry.outcome) == (FIRST, Outcome.REFUSED)
    assert "lowered or deleted by another client" in entry.error


class CannotDescribe(InMemoryCluster):
    """A cluster that can't describe any group."""

    def description(self, group):
        raise ClusterUnavailable("no coordinator")


def test_groups_that_the_guard_cannot_read_are_reported():
    """If the watch after the write can't read a source group, the receipt lists the group as not watched.

    If it can't read a target group, there is a remark.
    """
    made = cluster()
    receipt, _ = run(made)
    blind = CannotDescribe()
    watched = guard(blind.clients, receipt, 5, FakeClock())
    assert watched.moved == ()
    assert watched.not_watched == ("group 'old' could not be watched after the write: no coordinator",)
    assert watched.remarks == (
        "group 'new' could not be read again after the watch: no coordinator; check it with snapshot",
    )


class Rebalancing(InMemoryCluster):
    """A cluster on which the source group is rebalancing while ``rebalances`` is true."""

    rebalances = True

    def description(self, group):
        found = super().description(group)
        return replace(found, state="PreparingRebalance") if group == "old" and self.rebalances else found


def test_a_rebalance_of_a_source_group_that_keeps_topics_is_not_reported():
    """After the write, a rebalance of the source group is reported, unless some of its topics were not handed over."""
    made = cluster(Rebalancing)
    made.join("old", Member(member_id="m", client_id="c", host="/h"))
    receipt = Execution.of(make_plan(made, handed_over(made, "old", "new"), WriteOptions()), FakeClock().now())
    assert "PreparingRebalance" in look_at_watched(made, receipt).moved[0]
    made.create_topic("kept", 1)
    made.commit("old", TopicPartition("kept", 0), 0)
    assert look_at_watched(made, receipt).moved == ()


def test_a_rebalance_at_the_end_of_the_guard_is_watched_until_it_ends():
    """If the source group is rebalancing when the watch after the write ends, the watch continues.

    It ends with the rebalance. After five more minutes the rebalance itself is reported.
    """

    def watched(*, ends_after: float) -> tuple[tuple[str, ...], float]:
        made = cluster(Rebalancing)
        assert isinstance(made, Rebalancing)
        made.join("old", Member(member_id="m", client_id="late-app", host="/h", assignment=frozenset([FIRST])))
        receipt = Execution.of(make_plan(made, handed_over(made, "old", "new"), WriteOptions()), FakeClock().now())
        made.create_topic("kept", 1)
        made.commit("old", TopicPartition("kept", 0), 0)

        def settles() -> None:
            made.rebalances = clock.slept < ends_after

        clock = FakeClock(settles)
        return guard(made.clients, receipt, 5, clock).moved, clock.slept

    (seen,), seconds = watched(ends_after=20)
    assert "late-app at h" in seen
    assert seconds == 21
    (never,), seconds = watched(ends_after=1000)
    assert "is still rebalancing, so it is not known which members have the topics" in never
    assert seconds == 305


def test_guard_reports_a_source_commit_below_the_handed_over_offset():
    """If the source group commits below the handed-over offset, the watch after the write reports the commit.

    The records in between are processed twice.
    """
    made = cluster()
    receipt, _ = run(made)
    made.commit("old", FIRST, 1)
    (seen,) = guard(made.clients, receipt, 5, FakeClock()).moved
    assert "t-0 3 → 1 (2 records back)" in seen


def test_thousands_of_partitions_are_written_in_requests_that_fit():
    """Each write request is at most 500 kB, half a batch of the offsets topic, and no partition is lost.

    A partition takes the bytes of its names and metadata, and 44 more: docs/kafka-behaviour.md#altering-offsets
    """
    sizes = []

    class Counting(InMemoryCluster):
        def alter(self, group, offsets):
            metadata = sum(len(each.metadata.encode()) for each in offsets.values())
            sizes.append(sum(len(group.encode()) + len(tp.topic) + 44 for tp in offsets) + metadata)
            return super().alter(group, offsets)

    made = Counting()
    for topic in ("t" * 249, "u"):
        made.create_topic(topic, 4_000)
        for number in range(4_000):
            made.commit("old", TopicPartition(topic, number), 0, metadata="m" * 4096 if number % 100 == 0 else "")
    receipt, _ = run(made)
    assert len(receipt.changes) == 8_000
    assert set(outcomes(receipt)) == {Outcome.CONFIRMED}
    assert max(sizes) <= 500_000
    assert min(sizes[:-1]) > 495_000
    assert len(sizes) == 4
