"""The findings of ``advise`` about consumer groups that several applications share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any

from migrate_groups.migration.advise.application import Application
from migrate_groups.migration.advise.shared_groups import Finding, GroupAdvice, idle
from migrate_groups.show.documents import Document, Part, of_row, row_of
from migrate_groups.show.groups import GROUP, LAG, MEMBERS
from migrate_groups.show.result import (
    LENGTH,
    NAME,
    OFFSET,
    TEXT,
    TEXTS,
    UNKNOWN,
    WORD,
    Column,
    Kind,
    Line,
    Result,
    Role,
    Table,
    Tone,
    within,
)
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted, some


class AdvisedTopic(Part, frozen=True, kw_only=True):
    """A topic of a consumer group. lag: the sum of the known lags of all partitions; null if no lag is known."""

    topic: str
    partitions: int
    lag: int | None


_Shared = tuple[Application, tuple[Row, ...]]
"""An application, and the partitions of its group."""
_TOPICS = Kind(Role.TEXT, lambda topics: some([each.topic for each in topics]), type=Sequence[AdvisedTopic])
_CLIENT_IDS = Kind(Role.TEXT, some, type=Sequence[str])
_APPLICATION: list[Column[_Shared]] = [
    Column("APPLICATION", NAME, lambda of: of[0].name, "name"),
    Column("MEMBERS", OFFSET, lambda of: len(of[0].members), "members"),
    Column("IDLE", OFFSET, lambda of: len(idle(of[0].members)), "idle_members"),
    Column("LAG", OFFSET, lambda of: _lag(of[1], of[0].topics), "lag", int | None),
    Column("TOPICS", _TOPICS, lambda of: _topics(of[0].topics, of[1]), "topics"),
    Column("CLIENT-IDS", _CLIENT_IDS, lambda of: of[0].client_ids, "client_ids"),
]


@row_of(_APPLICATION)
class AdvisedApplication:
    """Members of a group that share topics with each other, and share none with the group's other members.

    - name: the common prefix of the members' client ids. If that is empty or not unique, one of the topics.
    - idle_members: the number of members without a partition.
    - lag: the sum of the known lags of the topics; null if no lag is known.
    """


_ASSIGNOR = Kind(Role.WORD, lambda assignor: assignor or UNKNOWN)
_GROUP: list[Column[GroupAdvice]] = [
    *within(attrgetter("status"), GROUP),
    Column("ASSIGNOR", _ASSIGNOR, lambda each: each.status.description.assignor, "assignor"),
    Column("", WORD, lambda each: each.finding, "finding"),
    Column(
        "APPLICATIONS", LENGTH, lambda each: _applications(each), "applications", Sequence[AdvisedApplication] | None
    ),
    *within(attrgetter("status"), [MEMBERS]),
    Column(
        "IDLE", OFFSET, lambda each: None if each.applications is None else len(each.idle), "idle_members", int | None
    ),
    Column("TOPICS", OFFSET, lambda each: len(each.status.topics)),
    *within(attrgetter("status"), [LAG]),
    Column("ADVICE", TEXT, lambda each: each.advice, "advice"),
    Column("", TEXTS, lambda each: sorted({member.client_id for member in each.broad}), "joining_client_ids"),
    Column("", _TOPICS, lambda each: _topics(each.unsubscribed, each.status.partitions), "unsubscribed"),
    Column("", TEXTS, lambda each: each.status.remarks, "remarks"),
]


@row_of(_GROUP)
class AdvisedGroup:
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


class AdviceDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/advice"):
    """The document that ``advise`` prints: what it found out about each consumer group.

    Groups that several applications share come first.
    """

    groups: Sequence[AdvisedGroup]


def result(found: Sequence[GroupAdvice], *, whole: bool = False) -> Result:
    """Return a table with one line for each group, in the order of ``found``, and the totals.

    whole: add a table of the applications of each group.
    """
    document = AdviceDocument(groups=[of_row(AdvisedGroup, _GROUP, each) for each in found])
    table = Table(columns=_GROUP, rows=found, thing="group")
    details = [part for each in found if whole for part in _details(each)]
    return Result(document=document, parts=[table, Line(_totals(found)), *details])


def _details(advice: GroupAdvice) -> list[Table[Any] | Line]:
    if not advice.applications:
        return []
    rows = [(each, advice.status.partitions) for each in advice.applications]
    table = Table(title=f"group {advice.status.group}", columns=_APPLICATION, rows=rows, thing="application")
    lines: list[Table[Any] | Line] = [Line(""), table]
    if advice.unsubscribed:
        lines.append(
            Line(f"no member subscribes to {some(advice.unsubscribed)}, for which offsets are committed", Tone.REMARK)
        )
    return lines


def _applications(advice: GroupAdvice) -> list[AdvisedApplication] | None:
    if advice.applications is None:
        return None
    return [of_row(AdvisedApplication, _APPLICATION, (each, advice.status.partitions)) for each in advice.applications]


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
