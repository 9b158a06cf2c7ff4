"""The result of the audit job: plain values of bounded size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from migrate_groups.spark.offsets_topic.evidence import Evidence

MAX_ROWS = 1000
"""The largest number of rows in the summary and in each list of partitions, commits, deletions or records."""


class AuditedTopic(NamedTuple):
    """The verdicts on one topic of a target group.

    old: verdict on the source group -> number of partitions. new: the same for the target group. rewinds: the number of
    partitions with a commit at a lower offset than the previous commit.
    """

    source_group: str | None
    group: str
    topic: str
    old: dict[str, int]
    new: dict[str, int]
    rewinds: int


class Partition(NamedTuple):
    """A partition that has a problem or the verdict ``undetermined``, or in which the target group has rewound.

    stopped_at: the source group's committed offset at the hand-over; if it had none, the same as ``written``. written:
    the offset that the migration wrote for the target group. old, new: the verdicts on the source group and on the
    target group. first_own: the offset of the target group's first commit that the migration did not write. committed:
    the target group's last committed offset. rewinds: the number of its commits at a lower offset than the previous
    commit. reason: why the evidence is in doubt; None: it is not.
    """

    source_group: str | None
    group: str
    topic: str
    partition: int
    stopped_at: int | None
    written: int | None
    old: str | None
    late_commits: int
    new: str | None
    first_own: int | None
    committed: int | None
    rewinds: int
    reason: str | None


class LateCommit(NamedTuple):
    """A commit of a source group after the hand-over.

    beyond: the committed offset minus the source group's offset at the hand-over, which is the number of records that
    both groups process. It is negative if the source group has committed a lower offset.
    """

    group: str
    topic: str
    partition: int
    log_time: datetime
    offset: int
    beyond: int | None


class Deletion(NamedTuple):
    """The deletion or expiry of a committed offset. If topic and partition are None, the whole group was deleted."""

    group: str
    topic: str | None
    partition: int | None
    log_time: datetime


class Malformed(NamedTuple):
    """A record that can't be decoded. problem: the reason."""

    log_partition: int
    log_offset: int
    problem: str


class OfLog(NamedTuple):
    """What an audit found in the log of one cluster.

    deletions: committed offsets that were deleted or have expired. evidence: for each partition of the log, the range
    of offsets that was read and how many records are missing from it. malformed: records that can't be decoded.
    """

    deletions: tuple[Deletion, ...]
    evidence: tuple[Evidence, ...]
    malformed: tuple[Malformed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of `audit_job.run_audit`. Each table has at most `MAX_ROWS` rows.

    old: verdict on the source group -> number of partitions. new: the same for the target group. rewinds: the number of
    partitions with a commit at a lower offset than the previous commit. problems: the number of partitions with such a
    commit or with one of the verdicts ``late-commit`` (the source group has committed since it stopped), ``earlier``,
    ``later`` (the target group began below or above the written offset) and ``missing`` (it has lost this offset).
    undetermined: the number of other partitions with the verdict ``undetermined``. doubtful: the partitions that
    ``problems`` and ``undetermined`` count. log: what was found in the log of the target groups' cluster. source_log:
    the same for the source groups' cluster; None: it is the same cluster.
    """

    old: dict[str, int]
    new: dict[str, int]
    rewinds: int
    summary: tuple[AuditedTopic, ...]
    doubtful: tuple[Partition, ...]
    late_commits: tuple[LateCommit, ...]
    log: OfLog
    source_log: OfLog | None = None
    problems: int
    undetermined: int
