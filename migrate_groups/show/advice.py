"""The findings of ``advise`` about consumer groups that several applications share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from migrate_groups.migration.advise.application import Application
from migrate_groups.migration.advise.shared_groups import Finding, GroupAdvice, idle
from migrate_groups.show.documents import Document, Part
from migrate_groups.show.result import (
    LENGTH,
    NAME,
    OFFSET,
    TEXT,
    UNKNOWN,
    WORD,
    Column,
    Kind,
    Line,
    Result,
    Role,
    Table,
    Tone,
    headed,
)
from migrate_groups.show.rows import of_columns
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted, some


class AdvisedTopic(Part, frozen=True, kw_only=True):
    """A topic of a consumer group. lag: the sum of the known lags of all partitions; null if no lag is known."""

    topic: str
    partitions: int
    lag: int | None


class AdvisedApplication(Part, frozen=True, kw_only=True):
    """Members of a group that share topics with each other, and share none with the group's other members.

    - name: the common prefix of the members' client ids. If that is empty or not unique, one of the topics.
    - idle_members: the number of members without a partition.
    - lag: the sum of the known lags of the topics; null if no lag is known.
    """

    name: str
    client_ids: Sequence[str]
    members: int
    idle_members: int
    topics: Sequence[AdvisedTopic]
    lag: int | None


class AdvisedGroup(Part, frozen=True, kw_only=True):
    """What ``advise`` found out about a consumer group.

    - state, type, assignor: as Kafka names them.
    - finding: "shared" (by several applications), "joined by one subscription" (a broad subscription connects several
      applications), "members without a partition", "not known" or "nothing to do".
    - advice: the finding as a sentence.
    - members, applications: null if not known.
    - idle_members: the number of members without a partition; null if not known.
    - joining_client_ids: the client ids of the members with the broad subscription.
    - unsubscribed: the topics with a committed offset to which no member subscribes.
    - lag: the sum of the known lags; null if no lag is known.
    - remarks: what is not known, and why.
    """

    group: str
    state: str
    type: str
    assignor: str
    finding: str
    advice: str
    members: int | None
    idle_members: int | None
    applications: Sequence[AdvisedApplication] | None
    joining_client_ids: Sequence[str]
    unsubscribed: Sequence[AdvisedTopic]
    lag: int | None
    remarks: Sequence[str]


class AdviceDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/advice"):
    """The document that ``advise`` prints: what it found out about each consumer group.

    Groups that several applications share come first.
    """

    groups: Sequence[AdvisedGroup]


_GROUP: list[Column[GroupAdvice]] = [
    Column("GROUP", NAME, lambda each: each.status.group, "group"),
    Column("STATE", WORD, lambda each: each.status.state, "state"),
    Column("TYPE", WORD, lambda each: each.status.group_type, "type"),
    Column(
        "ASSIGNOR",
        Kind(Role.WORD, lambda assignor: assignor or UNKNOWN),
        lambda each: each.status.description.assignor,
        "assignor",
    ),
    Column("", WORD, lambda each: each.finding, "finding"),
    Column("APPLICATIONS", LENGTH, lambda each: _described(each), "applications"),
    Column(
        "MEMBERS", OFFSET, lambda each: None if each.status.members is None else len(each.status.members), "members"
    ),
    Column("IDLE", OFFSET, lambda each: None if each.applications is None else len(each.idle), "idle_members"),
    Column("TOPICS", OFFSET, lambda each: len(each.status.topics)),
    Column("LAG", OFFSET, lambda each: each.status.lag, "lag"),
    Column("ADVICE", TEXT, lambda each: each.advice, "advice"),
    Column("", TEXT, lambda each: sorted({member.client_id for member in each.broad}), "joining_client_ids"),
    Column("", TEXT, lambda each: _topics(each.unsubscribed, each.status.partitions), "unsubscribed"),
    Column("", TEXT, lambda each: each.status.remarks, "remarks"),
]
_APPLICATION: list[Column[AdvisedApplication]] = [
    Column("APPLICATION", NAME, lambda each: each.name),
    Column("MEMBERS", OFFSET, lambda each: each.members),
    Column("IDLE", OFFSET, lambda each: each.idle_members),
    Column("LAG", OFFSET, lambda each: each.lag),
    Column("TOPICS", TEXT, lambda each: some([topic.topic for topic in each.topics])),
    Column("CLIENT-IDS", TEXT, lambda each: some(each.client_ids)),
]


def result(found: Sequence[GroupAdvice], *, whole: bool = False) -> Result:
    """Return a table with one line for each group, in the order of ``found``, and the totals.

    whole: add a table of the applications of each group.
    """
    document = AdviceDocument(groups=[of_columns(AdvisedGroup, _GROUP, each) for each in found])
    table: list[Table[Any] | Line] = [Table(columns=headed(_GROUP), rows=found, thing="group")] if found else []
    details = [part for group in document.groups if whole for part in _applications(group)]
    return Result(document=document, parts=[*table, Line(_totals(found)), *details])


def _applications(group: AdvisedGroup) -> list[Table[Any] | Line]:
    if not group.applications:
        return []
    table = Table(title=f"group {group.group}", columns=_APPLICATION, rows=group.applications, thing="application")
    lines: list[Table[Any] | Line] = [Line(""), table]
    if group.unsubscribed:
        topics = some([each.topic for each in group.unsubscribed])
        lines.append(Line(f"no member subscribes to {topics}, for which offsets are committed", Tone.REMARK))
    return lines


def _described(advice: GroupAdvice) -> list[AdvisedApplication] | None:
    if advice.applications is None:
        return None
    return [_application(each, advice.status.partitions) for each in advice.applications]


def _application(application: Application, rows: Sequence[Row]) -> AdvisedApplication:
    return AdvisedApplication(
        name=application.name,
        client_ids=application.client_ids,
        members=len(application.members),
        idle_members=len(idle(application.members)),
        topics=_topics(application.topics, rows),
        lag=_lag(rows, application.topics),
    )


def _topics(topics: Collection[str], rows: Iterable[Row]) -> list[AdvisedTopic]:
    by_topic = defaultdict(list)
    for row in rows:
        by_topic[row.topic].append(row)
    return [
        AdvisedTopic(topic=topic, partitions=len(by_topic[topic]), lag=_lag(by_topic[topic], topics))
        for topic in sorted(topics)
    ]


def _lag(rows: Iterable[Row], topics: Collection[str]) -> int | None:
    known = [row.lag for row in rows if row.topic in topics and row.lag is not None]
    return sum(known) if known else None


def _totals(found: Sequence[GroupAdvice]) -> str:
    counts = {finding: sum(each.finding is finding for each in found) for finding in Finding}
    parts = [f"{number:,} {finding}" for finding, number in counts.items() if number]
    return ": ".join([counted(len(found), "group"), *([", ".join(parts)] if parts else [])])
