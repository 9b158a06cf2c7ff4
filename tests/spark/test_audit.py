"""The verdicts of ``audit``, on logs of the offsets topic that the tests make record by record."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pyspark.sql import Row, SparkSession

from migrate_groups.spark.local_rows import local_table
from migrate_groups.spark.offsets_topic import audit
from migrate_groups.spark.offsets_topic.audit import (
    DELETED_RECORDS,
    GROUPS,
    HANDED_OVER,
    IS_RECREATED,
    deletions,
    group_deletions,
    hand_over,
    late_commits,
    places,
)
from migrate_groups.spark.offsets_topic.audit_job import Log, run_audit
from migrate_groups.spark.offsets_topic.audit_result import Audit
from migrate_groups.spark.offsets_topic.chains import chains
from migrate_groups.spark.offsets_topic.evidence import REASONS, evidence, reasons
from migrate_groups.spark.offsets_topic.offsets_log import decode
from tests.support.offsets_records import commit_key, commit_value, generation, group_key, member, member_key
from tests.support.raw_log import raw_log

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
CHECKPOINT = 100


def of_members(number: int, version: int = 3) -> bytes:
    """Return the value of a generation that has this number of members."""
    return generation(1, *[member("m", version=version)] * number, version=version)


class Case(NamedTuple):
    """The records of one partition of the offsets topic, from the checkpoint on.

    The checkpoint is the end of this log when group ``old`` had stopped. The group stopped at offset 10, and its
    partition was handed over to group ``new``.

    records: each has one of these forms. ``(group, offset)`` and ``(group, offset, topic id)`` are commits, the second
    as Kafka 4.3 writes them; ``(group, None)`` is the deletion of a committed offset; ``(group, "members", number)`` is
    a generation of a classic group; ``(group, "joins", member)`` and ``(group, "leaves", member)`` are a KIP-848
    member; ``(key, value)`` in bytes is any record; ``key`` in bytes is a record without a value; ``"control"`` or
    ``"aborted"`` is a record of this kind; None is an offset without a record. before, written, ours, topic_id,
    same_topic, log_start: the columns of `audit.HANDED_OVER`. held_back: the number of offsets that can't be read
    because of an open transaction. old_checkpoint: the checkpoint of group ``old``. at_once: whether all records have
    the same time; otherwise each record is a second later than the previous one. without_membership: whether the user
    names group ``new``.
    """

    records: tuple[Any, ...]
    before: int | None = None
    written: int | None = 10
    ours: tuple[int, ...] = (10,)
    held_back: int = 0
    old_checkpoint: int = CHECKPOINT
    at_once: bool = False
    topic_id: str | None = "0A" * 16
    same_topic: bool | None = True
    log_start: int | None = None
    without_membership: bool = False


class Tables:
    """The tables that the audit computes for some cases.

    Each case has its own partition of the log and its own groups.
    """

    def __init__(self, spark: SparkSession, cases: Iterable[Case]) -> None:
        rows: list[Any] = []
        given, groups, ranges = [], [], []
        for number, case in enumerate(cases):
            old, new = f"old-{number}", f"new-{number}"
            topic = case.topic_id, case.same_topic, case.log_start
            given.append((old, "t", new, "t", 0, 10, case.before, case.written, list(case.ours), *topic, number))
            groups += [(old, number, case.old_checkpoint, False, False)]
            groups += [(new, number, CHECKPOINT, True, case.without_membership)]
            ranges.append((number, CHECKPOINT, CHECKPOINT + len(case.records), case.held_back))
            for offset, content in enumerate(case.records, start=CHECKPOINT):
                record = self.record(number, content)
                time = NOON + timedelta(seconds=CHECKPOINT if case.at_once else offset)
                rows += [(number, offset, time, *record)] if record else []
        raw, of_groups = raw_log(spark, rows), local_table(spark, groups, GROUPS)
        self.given, self.groups = local_table(spark, given, HANDED_OVER), groups
        self.records = audit.of_groups(decode(raw).localCheckpoint(), of_groups)
        self.chains = chains(self.records, self.given)
        malformed = {row.log_partition: row.malformed for row in self.chains.where("malformed > 0").collect()}
        self.evidence = evidence(raw, malformed, ranges)

    @staticmethod
    def record(number: int, content: Any) -> tuple[str, bytes, bytes | None] | None:
        match content:
            case None:
                return None
            case bytes():
                return "record", content, None
            case str():
                return content, commit_key(f"new-{number}"), commit_value(99)
            case bytes(), bytes():
                return "record", *content
            case str(), "members", int():
                return "record", group_key(f"{content[0]}-{number}"), of_members(content[2])
            case str(), "joins", str():
                return "record", member_key(f"{content[0]}-{number}", content[2]), b"\0\0"
            case str(), "leaves", str():
                return "record", member_key(f"{content[0]}-{number}", content[2]), None
        return (
            "record",
            commit_key(f"{content[0]}-{number}"),
            None if content[1] is None else commit_value(*content[1:]),
        )

    def proof(self) -> list[Row]:
        deleted = {row.group: [f"group {row.group} was deleted"] for row in group_deletions(self.records).collect()}
        told = reasons((each[:3] for each in self.groups), self.evidence, deleted)
        doubts = local_table(self.given.sparkSession, told, REASONS)
        found = hand_over(self.chains, late_commits(self.records, self.given), doubts).collect()
        return sorted(found, key=lambda row: int(row.group.removeprefix("new-")))


OURS = ("new", 10)
BEFORE, WITHOUT = audit.COMMITTED_BEFORE_MEMBERS, audit.COMMITTED_WITHOUT_MEMBERS
JOIN, LEFT = ("new", "members", 1), ("new", "members", 0)
TOPIC, RECREATED = "0A" * 16, "0B" * 16
GONE, AGAIN = ("new", None), ("new", 3, RECREATED)
NEW: dict[str, tuple[Case, str | None]] = {
    "no commit yet": (Case((OURS,)), "no-commit-yet"),
    "consumes on": (Case((OURS, JOIN, ("new", 13), ("new", 20))), "starts-at-snapshot"),
    "an idle group commits the same offset again": (Case((OURS, JOIN, OURS)), "starts-at-snapshot"),
    "never written": (Case(()), "missing"),
    "not written, and started elsewhere": (
        Case(
            (
                JOIN,
                ("new", 17),
            )
        ),
        "later",
    ),
    "not written, and started at the start": (
        Case(
            (
                JOIN,
                ("new", 0),
            )
        ),
        "earlier",
    ),
    "not written, and started at the same offset by chance": (
        Case(
            (
                JOIN,
                ("new", 10),
            ),
            ours=(),
        ),
        "starts-at-snapshot",
    ),
    "deleted": (Case((OURS, ("new", None))), "missing"),
    "deleted before the start": (Case((OURS, JOIN, ("new", None), ("new", 17))), "later"),
    "rewound before it consumed": (Case((OURS, JOIN, ("new", 8))), "earlier"),
    "another offset was overwritten": (Case((OURS, JOIN, ("new", 12)), before=7), "starts-at-snapshot"),
    "had the offset already": (
        Case(
            (
                JOIN,
                ("new", 12),
            ),
            before=10,
        ),
        "starts-at-snapshot",
    ),
    "had the offset already, and has not started": (Case((), before=10), "no-commit-yet"),
    "has an offset that the tool did not write": (Case((), before=7), "missing"),
    "two runs": (Case((("new", 6), OURS, JOIN, ("new", 12)), ours=(6, 10)), "starts-at-snapshot"),
    "started before the write": (Case((JOIN, ("new", 17), OURS)), "later"),
    "left out": (Case((), written=None, ours=()), None),
    "left out, and consumed": (Case((("new", 3),), written=None, ours=()), "not-in-snapshot"),
    "a record is missing": (Case((OURS, JOIN, None, ("new", 12))), "undetermined"),
    "the only record is missing": (Case((None,)), "undetermined"),
    "rewound, and a record is missing": (Case((JOIN, None, ("new", 8))), "earlier"),
    "an open transaction": (Case((OURS,), held_back=2), "undetermined"),
    "a malformed record": (Case((OURS, commit_key("new") + b"?")), "undetermined"),
    "transactions": (Case((OURS, JOIN, "aborted", "control", ("new", 12))), "starts-at-snapshot"),
    "deleted, and replayed": (Case((OURS, JOIN, ("new", 18), ("new", None), ("new", 4))), "undetermined"),
    "deleted, and continued at the same offset": (
        Case((OURS, JOIN, ("new", 18), ("new", None), ("new", 18))),
        "undetermined",
    ),
    "deleted, and skipped": (Case((OURS, JOIN, ("new", 18), ("new", None), ("new", 30))), "undetermined"),
    "deleted, and started at the same offset by chance": (
        Case((OURS, JOIN, ("new", None), ("new", 10))),
        "undetermined",
    ),
    "deleted, continued, and deleted again": (
        Case((OURS, JOIN, ("new", 18), ("new", None), ("new", 30), ("new", None))),
        "missing",
    ),
    "the group is deleted": (Case((OURS, group_key("new-29"))), "undetermined"),
    "the group is deleted and created again": (
        Case((OURS, group_key("new-30"), (group_key("new-30"), b"v"), ("new", 12))),
        "undetermined",
    ),
    "the group changes its protocol": (
        Case(
            (OURS, group_key("new-31"), (group_key("new-31", kind=3), b"v"), ("new", "joins", "m"), ("new", 12)),
            at_once=True,
        ),
        "starts-at-snapshot",
    ),
    "the group is deleted, and later created with another protocol": (
        Case((OURS, group_key("new-32"), (group_key("new-32", kind=3), b"v"), ("new", 12))),
        "undetermined",
    ),
}
# The value is the verdict, whether there is a rewind, and whether the reason is that the topic was recreated.
IDS: dict[str, tuple[Case, tuple[str, bool, bool]]] = {
    "the same topic": (Case((OURS, JOIN, ("new", 13, TOPIC))), ("starts-at-snapshot", False, False)),
    "no commit, then recreated": (Case((OURS, JOIN, GONE, AGAIN), same_topic=False), ("undetermined", False, True)),
    "consumed, then recreated": (
        Case((OURS, JOIN, ("new", 13, TOPIC), GONE, AGAIN, ("new", 1, RECREATED)), same_topic=False),
        ("undetermined", False, True),
    ),
    "recreated, and the deletion is compacted away": (
        Case((OURS, JOIN, None, AGAIN), same_topic=False),
        ("undetermined", False, True),
    ),
    "started at the start, then recreated": (
        Case((OURS, JOIN, ("new", 8, TOPIC), GONE, AGAIN), same_topic=False),
        ("earlier", True, True),
    ),
    "recreated and deleted again": (
        Case((OURS, JOIN, GONE, AGAIN, GONE), same_topic=False),
        ("undetermined", False, True),
    ),
    "the receipt has no topic id": (
        Case((OURS, JOIN, ("new", 13, TOPIC), GONE, AGAIN), topic_id=None, same_topic=None),
        ("undetermined", False, True),
    ),
    "the commits have no topic ids, then recreated": (
        Case((OURS, JOIN, ("new", 13), GONE, AGAIN[:2]), same_topic=False),
        ("undetermined", False, True),
    ),
    "the commits have no topic ids, and one is by chance at the offset handed over": (
        Case((OURS, JOIN, ("new", 10)), same_topic=False),
        ("undetermined", False, False),
    ),
    "a transaction of the same topic": (
        Case((OURS, JOIN, ("new", 13), ("new", 15, TOPIC))),
        ("starts-at-snapshot", False, False),
    ),
    "a transaction, and the topic was recreated": (
        Case((OURS, JOIN, ("new", 13), ("new", 15, TOPIC)), same_topic=False),
        ("undetermined", False, True),
    ),
    "commits have topic ids, and the topic was recreated later": (
        Case((("new", 10, TOPIC), JOIN, ("new", 13, TOPIC), GONE), same_topic=False),
        ("missing", False, False),
    ),
    "commits have no topic ids, and the topic can't be described": (
        Case((OURS, JOIN, ("new", 13)), same_topic=None),
        ("undetermined", False, False),
    ),
    "commits have topic ids, and the topic can't be described": (
        Case((("new", 10, TOPIC), JOIN, ("new", 13, TOPIC)), same_topic=None),
        ("starts-at-snapshot", False, False),
    ),
    "brokers without topic ids": (
        Case((OURS, JOIN, ("new", 13)), topic_id=None, same_topic=None),
        ("undetermined", False, False),
    ),
    "brokers without topic ids, and a problem": (
        Case((OURS, JOIN, ("new", 8)), topic_id=None, same_topic=None),
        ("earlier", True, False),
    ),
    "a late request for the topic before": (
        Case((OURS, JOIN, AGAIN, ("new", 12, TOPIC))),
        ("undetermined", False, True),
    ),
}
# The value is the verdict and the reason.
MEMBERS: dict[str, tuple[Case, tuple[str, str | None]]] = {
    "no member, and a reset by hand": (Case((OURS, ("new", 20))), ("undetermined", BEFORE)),
    "a reset by hand before the first member": (
        Case((OURS, ("new", 20), JOIN, ("new", 25))),
        ("undetermined", BEFORE),
    ),
    "a reset by hand after the last member left": (
        Case((OURS, JOIN, ("new", 12), LEFT, ("new", 20))),
        ("undetermined", WITHOUT),
    ),
    "a reset by hand between a stop and a start": (
        Case((OURS, JOIN, ("new", 12), LEFT, ("new", 20), JOIN, ("new", 25))),
        ("undetermined", WITHOUT),
    ),
    "a reset by hand to a lower offset": (Case((OURS, ("new", 8), JOIN)), ("earlier", BEFORE)),
    "a reset by hand of another offset than the one handed over": (Case((("new", 17),)), ("later", BEFORE)),
    "stopped and started": (Case((OURS, JOIN, ("new", 12), LEFT, JOIN, ("new", 14))), ("starts-at-snapshot", None)),
    "one member less": (
        Case((OURS, ("new", "members", 2), ("new", 12), JOIN, ("new", 14))),
        ("starts-at-snapshot", None),
    ),
    "one of two KIP-848 members leaves": (
        Case((OURS, ("new", "joins", "a"), ("new", "joins", "b"), ("new", 12), ("new", "leaves", "a"), ("new", 14))),
        ("starts-at-snapshot", None),
    ),
    "the last of two KIP-848 members leaves": (
        Case(
            (
                *(OURS, ("new", "joins", "a"), ("new", "joins", "b"), ("new", 12)),
                *(("new", "leaves", "a"), ("new", "leaves", "b"), ("new", 14)),
            )
        ),
        ("undetermined", WITHOUT),
    ),
    "a KIP-848 member whose record is written twice leaves": (
        Case((OURS, ("new", "joins", "a"), ("new", "joins", "a"), ("new", "leaves", "a"), ("new", 14))),
        ("undetermined", WITHOUT),
    ),
    "a KIP-848 member leaves that joined before the log begins": (
        Case((OURS, ("new", "leaves", "a"), ("new", "joins", "b"), ("new", 14))),
        ("starts-at-snapshot", None),
    ),
    "a group with members becomes a KIP-848 group": (
        Case(
            (
                *(OURS, JOIN, ("new", 12), group_key("new-12"), (group_key("new-12", kind=3), b"v")),
                *(("new", "joins", "a"), ("new", 14)),
            ),
            at_once=True,
        ),
        ("starts-at-snapshot", None),
    ),
    "a streams group": (
        Case((OURS, (member_key("new-13", "a", kind=19), b"\0\0"), ("new", 14))),
        ("starts-at-snapshot", None),
    ),
    "members of another group": (Case((OURS, ("old", "members", 1), ("new", 14))), ("undetermined", BEFORE)),
    "the write is repeated": (Case((OURS, OURS)), ("no-commit-yet", None)),
    "the offset that was there is repeated": (Case((OURS,), before=10, ours=()), ("no-commit-yet", None)),
    "the write is repeated, then members commit": (Case((OURS, OURS, JOIN, ("new", 12))), ("starts-at-snapshot", None)),
    "a reset by hand to the current offset": (
        Case((OURS, JOIN, ("new", 12), LEFT, ("new", 12), JOIN, ("new", 14))),
        ("starts-at-snapshot", None),
    ),
    "a consumer without membership": (Case((OURS, ("new", 14)), without_membership=True), ("starts-at-snapshot", None)),
    "an idle consumer without membership": (Case((OURS, OURS), without_membership=True), ("starts-at-snapshot", None)),
    "a consumer without membership that skips": (Case((("new", 14),), without_membership=True), ("later", None)),
    "a record of members is missing": (
        Case((OURS, None, ("new", 14))),
        ("undetermined", f"partition 22 of the log lacks 1 of its offsets; {BEFORE}"),
    ),
    "a generation of an unknown version": (
        Case((OURS, (group_key("new-23"), b"\0\x09" + of_members(1)[2:]), ("new", 14))),
        ("undetermined", BEFORE),
    ),
    "a generation that is cut short": (
        Case((OURS, (group_key("new-24"), of_members(1)[:-41]), ("new", 14))),
        ("undetermined", BEFORE),
    ),
    "a generation that is cut short in the number of members": (
        Case(
            (
                OURS,
                (group_key("new-25"), of_members(256)[: 2 + 10 + 4 + 7 + 8 + 8 + 3]),
                ("new", 14),
            )
        ),
        ("undetermined", BEFORE),
    ),
    "an empty generation": (Case((OURS, (group_key("new-26"), b""), ("new", 14))), ("undetermined", BEFORE)),
    **{
        f"a generation of version {version}": (
            Case(
                (
                    OURS,
                    (group_key(f"new-{27 + version}"), of_members(1, version)),
                    ("new", 14),
                )
            ),
            ("starts-at-snapshot", None),
        )
        for version in (0, 1, 2, 3)
    },
    "the records handed over were deleted, and it may have started after that": (
        Case((OURS, JOIN, ("new", 30), ("new", 35)), log_start=20),
        ("undetermined", DELETED_RECORDS),
    ),
    "the records handed over were deleted after they were read": (
        Case((OURS, JOIN, ("new", 14), ("new", 30)), log_start=20),
        ("starts-at-snapshot", None),
    ),
    "the log start is not beyond the offset handed over": (
        Case((OURS, JOIN, ("new", 30)), log_start=10),
        ("starts-at-snapshot", None),
    ),
}
# The value is the verdict, the number of late commits, and the reason.
OLD: dict[str, tuple[Case, tuple[str, int, str | None]]] = {
    "no commit": (Case((OURS,)), ("stopped", 0, None)),
    "committed": (Case((OURS, ("old", 12))), ("late-commit", 1, None)),
    "committed, and a record is missing": (
        Case((OURS, ("old", 12), None)),
        ("late-commit", 1, "partition 2 of the log lacks 1 of its offsets"),
    ),
    "no commit, and a record is missing": (
        Case((OURS, None)),
        ("undetermined", 0, "partition 3 of the log lacks 1 of its offsets"),
    ),
    "the offset is deleted": (Case((OURS, ("old", None))), ("stopped", 0, None)),
    "the group is deleted": (
        Case((OURS, ("old", None), group_key("old-5"))),
        ("undetermined", 0, "group old-5 was deleted"),
    ),
    "the group is deleted and created again": (
        Case((OURS, group_key("old-6"), (group_key("old-6"), b"v"))),
        ("undetermined", 0, "group old-6 was deleted"),
    ),
    "it becomes a KIP-848 group": (
        Case((OURS, group_key("old-7"), (group_key("old-7", kind=3), b"v")), at_once=True),
        ("stopped", 0, None),
    ),
    "it becomes a classic group": (
        Case((OURS, group_key("old-8", kind=3), (group_key("old-8"), b"v")), at_once=True),
        ("stopped", 0, None),
    ),
    "committed before its checkpoint": (Case((("old", 12), OURS), old_checkpoint=CHECKPOINT + 1), ("stopped", 0, None)),
    "the group is deleted, and later created with another protocol": (
        Case((OURS, group_key("old-10"), (group_key("old-10", kind=3), b"v"))),
        ("undetermined", 0, "group old-10 was deleted"),
    ),
    "committed for the same topic": (
        Case((OURS, ("old", 12, TOPIC))),
        ("late-commit", 1, None),
    ),
    "committed for a topic that was recreated": (
        Case((OURS, ("old", 3, RECREATED))),
        ("undetermined", 0, IS_RECREATED),
    ),
    "committed without a topic id, and the topic was recreated": (
        Case((OURS, ("old", 12)), same_topic=False),
        ("undetermined", 0, IS_RECREATED),
    ),
    "committed without a topic id, and the topic can't be described": (
        Case((OURS, ("old", 12)), same_topic=None),
        ("late-commit", 1, None),
    ),
    "committed, then for a topic that was recreated": (
        Case((OURS, ("old", 12, TOPIC), ("old", 3, RECREATED))),
        ("late-commit", 1, IS_RECREATED),
    ),
}


def test_verdicts_of_a_target_group(compiled: SparkSession) -> None:
    """The audit judges a target group by its commits after the hand-over. A gap in the log never improves the verdict.

    Here Spark compiles expressions, as in a large job. In the other tests it interprets them, as in a small job.
    """
    found = Tables(compiled, (case for case, _ in NEW.values())).proof()
    assert {name: row.new for name, row in zip(NEW, found, strict=True)} == {
        name: verdict for name, (_, verdict) in NEW.items()
    }


def test_commits_of_a_recreated_topic_are_not_judged(spark: SparkSession) -> None:
    """A target group's commit for a recreated topic is used neither as its first commit nor as a rewind.

    The commit then has another topic id. Commits without a topic id are judged by their offsets.
    """
    found = Tables(spark, (case for case, _ in IDS.values())).proof()
    assert {
        name: (row.new, row.rewinds > 0, IS_RECREATED in (row.reason or ""))
        for name, row in zip(IDS, found, strict=True)
    } == {name: verdict for name, (_, verdict) in IDS.items()}


def test_only_commits_of_members_prove_the_start_of_a_target_group(spark: SparkSession) -> None:
    """If a commit changed the offset of a target group while it had no members, its verdict is undetermined at best.

    Such a commit may be a reset by hand. It counts as a consumer's only if the user names the group. If it does not
    change the offset, it counts as nothing.
    """
    found = Tables(spark, (case for case, _ in MEMBERS.values())).proof()
    assert {name: (row.new, row.reason) for name, row in zip(MEMBERS, found, strict=True)} == {
        name: verdict for name, (_, verdict) in MEMBERS.items()
    }


def test_verdicts_of_a_source_group(spark: SparkSession) -> None:
    """If the source group commits after the hand-over, its verdict is late-commit, even if the log has gaps.

    Without such a commit the verdict is stopped, or undetermined if the log has gaps or the group was deleted. A group
    that changes its protocol (classic, KIP-848) is not treated as deleted.
    """
    tables = Tables(spark, (case for case, _ in OLD.values()))
    found = {name: (row.old, row.late_commits, row.reason) for name, row in zip(OLD, tables.proof(), strict=True)}
    assert found == {name: verdict for name, (_, verdict) in OLD.items()}
    late = late_commits(tables.records, tables.given).orderBy("group", "log_offset").collect()
    assert [(row.group, row.log_offset, row.offset, row.beyond, row.recreated) for row in late] == [
        ("old-1", 101, 12, 2, False),
        ("old-11", 101, 12, 2, False),
        ("old-12", 101, 3, -7, True),
        ("old-13", 101, 12, 2, True),
        ("old-14", 101, 12, 2, False),
        ("old-15", 101, 12, 2, False),
        ("old-15", 102, 3, -7, True),
        ("old-2", 101, 12, 2, False),
    ]
    gone = (
        deletions(tables.records, places(tables.given, of_sources=True, of_targets=True))
        .orderBy("group", "log_offset")
        .collect()
    )
    assert [(row.group, row.topic, row.partition) for row in gone] == [
        ("old-10", None, None),
        ("old-4", "t", 0),
        ("old-5", "t", 0),
        ("old-5", None, None),
        ("old-6", None, None),
    ]


def test_rewinds_and_evidence_are_counted(spark: SparkSession) -> None:
    """A commit at a lower offset than the previous commit is a rewind, unless the tool wrote it.

    A deletion between two commits does not hide a rewind. In the evidence, each offset of the log is counted as a
    record, a control record, an aborted record, or missing.
    """
    back = Case((OURS, JOIN, ("new", 20), ("new", 12), ("new", 30), ("new", 29)), before=40)
    rest = [
        Case((OURS, "control", "aborted", None, None, b"")),
        Case((None,)),
        Case((b"",)),
        Case((OURS,), held_back=3),
        Case((OURS, JOIN, ("new", 20), ("new", None), ("new", None), ("new", 4))),
    ]
    tables = Tables(spark, [back, *rest])
    found, *_, replayed = tables.proof()
    assert (found.new, found.rewinds, found.commits, found.committed) == ("starts-at-snapshot", 2, 4, 29)
    assert (replayed.new, replayed.rewinds, replayed.deletions) == ("undetermined", 1, 2)
    assert replayed.reason == "the committed offset was deleted or expired, and the group has committed since"
    rows = tables.evidence
    assert [row.whole for row in rows] == [True, False, False, False, False, True]
    row = rows[1]
    assert (row.records, row.control, row.aborted, row.missing, row.malformed, row.whole) == (2, 1, 1, 2, 1, False)


def two_clusters(
    spark: SparkSession, source: tuple[Any, ...], target: tuple[Any, ...], *, members: int = 1, **given: Any
) -> Audit:
    """Return the audit of a move of group ``g``, from offset 10 on the source cluster to 20 on the target cluster.

    Group and topic have the same names on both clusters. source, target: the records of ``g`` in each cluster's offsets
    topic, from the checkpoint on: ``(offset, topic id)`` is a commit, None is an offset without a record. On both
    clusters the first record after the checkpoint shows this number of members. given: more arguments of `run_audit`.
    """
    logs = []
    for records in (target, source):
        rows = [
            (3, CHECKPOINT + 1 + at, NOON + timedelta(seconds=at), "record", commit_key("g"), commit_value(*each))
            for at, each in enumerate(records)
            if each is not None
        ]
        rows.append((3, CHECKPOINT, NOON, "record", group_key("g"), of_members(members)))
        raw = raw_log(spark, rows).localCheckpoint()
        logs.append(Log(raw, [("g", 3, CHECKPOINT)], [(3, CHECKPOINT, CHECKPOINT + 1 + len(records), 0)]))
    return run_audit(spark, [("g", "t", "g", "t", 0, 10, None, 20, [20], TOPIC, True, None)], *logs, **given)


def test_a_move_is_proven_only_by_members(spark: SparkSession) -> None:
    """After a move to another cluster, too, only commits of members prove a start, or of a group that the user names.

    If the user names a group that has members, the audit is undetermined.
    """
    commits = ((20, TOPIC), (25, TOPIC))
    found = two_clusters(spark, (), commits, members=0)
    assert (found.new["undetermined"], found.undetermined, found.doubtful[0].reason) == (1, 1, BEFORE)
    assert two_clusters(spark, (), commits, members=0, without_membership={"g"}).new["starts-at-snapshot"] == 1
    found = two_clusters(spark, (), commits, without_membership={"g"})
    assert found.doubtful[0].reason == "group g has members, although --without-membership names it"


def test_a_move_is_judged_from_the_logs_of_both_clusters(spark: SparkSession) -> None:
    """After a move to another cluster, the audit judges the source group only by the log of the source cluster.

    It judges the target group only by the log of the target cluster.
    """
    # On the source the topic has another id, which makes a commit there neither less late nor recreated.
    found = two_clusters(spark, ((13, RECREATED),), ((20, TOPIC), (19, TOPIC)))
    assert (found.old["late-commit"], found.new["earlier"], found.rewinds) == (1, 1, 1)
    assert [(each.group, each.topic, each.offset, each.beyond) for each in found.late_commits] == [("g", "t", 13, 3)]
    (doubtful,) = found.doubtful
    assert (doubtful.stopped_at, doubtful.written, doubtful.first_own, doubtful.reason) == (10, 20, 19, None)


def test_a_log_with_gaps_leaves_the_verdicts_of_the_other_cluster(spark: SparkSession) -> None:
    """If only the source cluster's log lacks a record, only the source group's verdict is undetermined.

    The reason names the source group's cluster.
    """
    found = two_clusters(spark, (None,), ((20, TOPIC), (25, TOPIC)))
    assert (found.old["undetermined"], found.new["starts-at-snapshot"]) == (1, 1)
    assert found.source_log is not None
    assert ([each.missing for each in found.source_log.evidence], found.evidence[0].missing) == ([1], 0)
    assert found.doubtful[0].reason == "on the old group's cluster: partition 3 of the log lacks 1 of its offsets"


def test_a_share_group_is_undetermined_and_its_source_group_judged(spark: SparkSession) -> None:
    """A share group commits nothing to the log, so its verdict is ``undetermined``; the source group has a verdict."""
    shares = two_clusters(spark, (), (), share_groups={"g"})
    assert (shares.old["stopped"], shares.new["undetermined"], shares.problems) == (1, 1, 0)
    assert shares.doubtful[0].reason == "share group g commits nothing to this log"
    assert two_clusters(spark, ((13, TOPIC),), (), share_groups={"g"}).old["late-commit"] == 1
    assert two_clusters(spark, (), ()).new["missing"] == 1
