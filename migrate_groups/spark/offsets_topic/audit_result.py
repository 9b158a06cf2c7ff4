"""The result of the audit job as plain values. Its lists have a maximum length."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from migrate_groups.errors import HandOverBroken, Undetermined
from migrate_groups.spark.offsets_topic.audit import COMMITTED_BEFORE_MEMBERS, COMMITTED_WITHOUT_MEMBERS
from migrate_groups.spark.offsets_topic.evidence import Evidence
from migrate_groups.text import counted, named


class AuditedTopic(NamedTuple):
    """The audit's verdicts on one topic of a target group.

    old, new: the number of partitions by verdict on the source group and on the target group. rewinds: the number of
    partitions in which the target group committed a lower offset than before.
    """

    source_group: str | None
    group: str
    topic: str
    old: dict[str, int]
    new: dict[str, int]
    rewinds: int


class Partition(NamedTuple):
    """A partition with a problem or the verdict ``undetermined``, or with a target group that committed a lower offset.

    - stopped_at: the source group's committed offset at the migration; equal to ``written`` if there was none.
    - written: the offset that the migration wrote for the target group.
    - old, new: the verdicts on the source group and on the target group.
    - late_commits: the number of the source group's commits after the migration.
    - first_own: the offset of the target group's first commit, not counting the migration's.
    - committed: the target group's last committed offset.
    - rewinds: the number of the target group's commits at a lower offset than before.
    - reason: why a verdict is in doubt, or None.
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
    """A commit that a source group made after the migration.

    beyond: the committed offset minus the source group's offset at the migration. Source and target group both process
    this number of records. A negative number means that the source group committed a lower offset. None: not known.
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
    """A record of ``__consumer_offsets`` that can't be decoded. problem: the reason."""

    log_partition: int
    log_offset: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfLog:
    """What an audit found in the log of one cluster's ``__consumer_offsets``.

    deletions: committed offsets that were deleted or have expired, and deleted groups. evidence: how complete each
    partition of the log is. malformed: records that can't be decoded.
    """

    deletions: tuple[Deletion, ...]
    evidence: tuple[Evidence, ...]
    malformed: tuple[Malformed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(OfLog):
    """The result of the command audit. Each list has at most 1000 rows.

    - problems: the number of partitions with a rewind or with the verdict ``late-commit``, ``earlier``, ``later`` or
      ``missing``.
    - undetermined: the number of other partitions with the verdict ``undetermined``.
    - old, new: the number of partitions by verdict on the source group and on the target group.
    - rewinds: the number of partitions in which a target group committed a lower offset than before.
    - summary: one row for each group and topic.
    - doubtful: the partitions that ``problems`` and ``undetermined`` count.
    - late_commits: commits of the source group after its offsets were handed over.
    - deletions, evidence, malformed: what was found in the log of the target groups' cluster (`OfLog`).
    - source_log: the same of the source group's cluster; None: it is the same cluster.
    - handed_over_by: who handed over, with which version of this tool and why, as the receipt says; None: not known.
    - handed_on: what other runs have done since with partitions, which are therefore not judged; None: nothing, or all
      could be judged.
    - is_copy: whether the target groups got a copy (``--copy``), so that the source group may go on and is not judged.
    """

    problems: int
    undetermined: int
    old: dict[str, int]
    new: dict[str, int]
    rewinds: int
    summary: tuple[AuditedTopic, ...]
    doubtful: tuple[Partition, ...]
    late_commits: tuple[LateCommit, ...]
    source_log: OfLog | None = None
    handed_over_by: str | None = None
    handed_on: str | None = None
    is_copy: bool = False

    def check(self) -> None:
        """Raise an error unless the audit proves the hand-over.

        To prove it, a source group must have been judged, unless it may go on, and a target group must have committed.

        Raises `HandOverBroken` if a partition has a problem, and `Undetermined` if the log shows too little.
        """
        if self.problems:
            problems = counted(self.problems, "partition")
            raise HandOverBroken(f"{problems} committed late, started elsewhere or went back")
        if self.undetermined:
            raise Undetermined(
                f"the log does not tell of {counted(self.undetermined, 'partition')}: see the evidence and the reasons"
                f"{self._without_membership()}"
            )
        if self.handed_on and not self.new.get("starts-at-snapshot"):
            raise Undetermined(f"not proven, because of what other runs did since: {self.handed_on}: audit these runs")
        if not (self.is_copy or self.old.get("stopped")):
            raise Undetermined("not proven: this run has no partition of which an old group could be judged")
        if not self.new.get("starts-at-snapshot"):
            raise Undetermined(
                "not proven yet: no new group has committed since the hand-over: start the new applications, and run "
                "audit again once they have committed"
            )

    def _without_membership(self) -> str:
        """Return the option that makes commits without membership count, if they are why verdicts are undetermined."""
        no_member = (COMMITTED_BEFORE_MEMBERS, COMMITTED_WITHOUT_MEMBERS)
        groups = {each.group for each in self.doubtful if any(reason in (each.reason or "") for reason in no_member)}
        if not groups:
            return ""
        return (
            f"; commits without membership in {named('group', groups)}: pass --without-membership with each group "
            "whose consumers use assign(), and are no members"
        )
