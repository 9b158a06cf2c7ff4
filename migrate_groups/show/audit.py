"""The result of ``audit``, which checks a migration in the log of ``__consumer_offsets``: terminal and JSON views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.show.documents import Document, Part
from migrate_groups.show.rows import object_type, objects
from migrate_groups.show.tables import cell, table
from migrate_groups.spark.local_rows import MAX_ROWS
from migrate_groups.spark.offsets_topic import audit_result, evidence
from migrate_groups.spark.offsets_topic.audit import COMMITTED_BEFORE_MEMBERS, COMMITTED_WITHOUT_MEMBERS
from migrate_groups.spark.offsets_topic.audit_result import Audit, OfLog
from migrate_groups.text import counted, named

_AuditedTopic, _Partition = object_type(audit_result.AuditedTopic), object_type(audit_result.Partition)
_LateCommit, _Deletion = object_type(audit_result.LateCommit), object_type(audit_result.Deletion)
Evidence, _Malformed = object_type(evidence.Evidence), object_type(audit_result.Malformed)
# More rows than this are hard to read on a terminal; the JSON document has more.
_MOST_ROWS = 50


class LogPart(Part, frozen=True, kw_only=True):
    """What ``audit`` found in the log of ``__consumer_offsets`` on one cluster.

    deletions: committed offsets that were deleted or expired, and deleted groups (topic null). evidence: for each
    partition of the log, the offsets that were read and the number of missing records. malformed: records that can't be
    decoded.
    """

    deletions: tuple[_Deletion, ...]  # type: ignore[valid-type]  # made from the job's row, as those that follow
    evidence: tuple[Evidence, ...]  # type: ignore[valid-type]
    malformed: tuple[_Malformed, ...]  # type: ignore[valid-type]


class AuditDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/audit"):
    """The document that ``audit`` prints. Each list has at most 1,000 rows.

    - problems: the number of partitions with a rewind or a bad verdict, such as ``late-commit``.
    - undetermined: the number of other partitions with the verdict ``undetermined``.
    - old, new: the number of partitions by the verdict on the source group, and by the verdict on the target group.
    - rewinds: the number of partitions with a rewind, which is a commit at a lower offset than the previous commit.
    - summary: one row for each group and topic.
    - doubtful: the partitions that ``problems`` and ``undetermined`` count.
    - late_commits: commits of the source group after its offsets were handed over.
    - deletions: committed offsets that were deleted or expired.
    - evidence: for each partition of ``__consumer_offsets``, the offsets that were read and the number of missing
      records.
    - malformed: records that can't be decoded.
    - source_log: ``deletions``, ``evidence`` and ``malformed`` of the source group's cluster; null if the target groups
      are on the same cluster.
    """

    problems: int
    undetermined: int
    old: dict[str, int]
    new: dict[str, int]
    rewinds: int
    summary: tuple[_AuditedTopic, ...]  # type: ignore[valid-type]  # made from the job's row, as those that follow
    doubtful: tuple[_Partition, ...]  # type: ignore[valid-type]
    late_commits: tuple[_LateCommit, ...]  # type: ignore[valid-type]
    deletions: tuple[_Deletion, ...]  # type: ignore[valid-type]
    evidence: tuple[Evidence, ...]  # type: ignore[valid-type]
    malformed: tuple[_Malformed, ...]  # type: ignore[valid-type]
    source_log: LogPart | None


def document(found: Audit) -> AuditDocument:
    """Return the JSON document for the result of an audit."""
    log = _log(found.log)
    return AuditDocument(
        problems=found.problems,
        undetermined=found.undetermined,
        old=found.old,
        new=found.new,
        rewinds=found.rewinds,
        summary=objects(_AuditedTopic, found.summary),
        doubtful=objects(_Partition, found.doubtful),
        late_commits=objects(_LateCommit, found.late_commits),
        deletions=log.deletions,
        evidence=log.evidence,
        malformed=log.malformed,
        source_log=None if found.source_log is None else _log(found.source_log),
    )


def _log(found: OfLog) -> LogPart:
    return LogPart(
        deletions=objects(_Deletion, found.deletions),
        evidence=objects(Evidence, found.evidence),
        malformed=objects(_Malformed, found.malformed),
    )


def undetermined(found: Audit) -> str:
    """Return the error for an audit that found no problem, but partitions with the verdict ``undetermined``.

    If commits without membership are a reason, it names the option that makes them count.
    """
    said = f"the log does not tell of {counted(found.undetermined, 'partition')}: see the evidence and the reasons"
    no_member = (COMMITTED_BEFORE_MEMBERS, COMMITTED_WITHOUT_MEMBERS)
    groups = {each.group for each in found.doubtful if any(reason in (each.reason or "") for reason in no_member)}
    if not groups:
        return said
    return (
        f"{said}; commits without membership in {named('group', groups)}: pass --without-membership with each group "
        "whose consumers use assign(), and are no members"
    )


def not_proven(found: Audit) -> str:
    """Return why an audit that found no problem and nothing undetermined proves nothing; empty if it proves something.

    It needs a partition whose source group is judged, and one that a target group has started to consume.
    """
    if not found.old.get("stopped"):
        return "not proven: this run has no partition of which an old group could be judged"
    if not found.new.get("starts-at-snapshot"):
        return (
            "not proven yet: no new group has committed since the hand-over: start the new applications, and run audit "
            "again once they have committed"
        )
    return ""


def conclusion(found: Audit) -> str:
    """Return the verdict of an audit that proves something (`not_proven`), as a sentence.

    The sentence says how many partitions have no commit yet.
    """
    waiting = found.new.get("no-commit-yet", 0)
    if not waiting:
        return "proven: the old group stayed stopped, and every new group began at the offsets handed over"
    return (
        "proven: the old group stayed stopped, and each partition with a commit of its new group began at the offset "
        f"handed over; not proven yet for {counted(waiting, 'partition')} without a commit"
    )


def terminal(found: Audit) -> RenderableType:
    """Return the result of an audit as tables with at most 50 rows each.

    The tables are: verdicts, partitions with a problem or an undetermined verdict, commits of the source group after
    its offsets were handed over, deleted offsets, and the number of records that were read from each partition of
    ``__consumer_offsets``.
    """
    parts: list[RenderableType] = [_summary(found)]
    parts += _section("doubtful", _doubtful(found), found.doubtful)
    parts += _section("late commits of the old group", _late(found), found.late_commits)
    if found.source_log is None:
        parts += _of_log(found.log, "")
    else:
        parts += _of_log(found.source_log, " on the old group's cluster")
        parts += _of_log(found.log, " on the new groups' cluster")
    return Group(*parts)


def _of_log(found: OfLog, where: str) -> list[RenderableType]:
    """Return the tables about the log of one cluster. where: the end of each title, such as the name of the cluster."""
    parts = _section(f"deleted or expired{where}", _deletions(found), found.deletions)
    parts += [Text(f"evidence{where}", style="bold"), _evidence(found)]
    if found.malformed:
        first = found.malformed[0]
        place = f"partition {first.log_partition}, offset {first.log_offset}: {first.problem}"
        number = sum(each.malformed for each in found.evidence)
        parts.append(Text(f"{counted(number, 'record')} can't be decoded; the first: {place}"))
    return parts


def _summary(found: Audit) -> RenderableType:
    made = table("group", "topic", "from", "old group", "new group", rewinds=">")
    for each in found.summary[:_MOST_ROWS]:
        source = cell(each.source_group or "-")
        made.add_row(cell(each.group), each.topic, source, _counts(each.old), _counts(each.new), f"{each.rewinds:,}")
    made.add_row("total", "", "", _counts(found.old), _counts(found.new), f"{found.rewinds:,}", style="bold")
    return made


def _counts(verdicts: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {verdict}" for verdict, number in verdicts.items() if number) or "-"


def _section(title: str, shown: RenderableType, rows: Sequence[object]) -> list[RenderableType]:
    if not rows:
        return []
    rest = len(rows) - _MOST_ROWS
    at_least = "at least " if len(rows) >= MAX_ROWS else ""
    more = [Text(f"… and {at_least}{rest:,} more", style="dim")] if rest > 0 else []
    return [Text(title, style="bold"), shown, *more]


def _doubtful(found: Audit) -> RenderableType:
    made = table(
        "group",
        "partition",
        "old group",
        "new group",
        handed_over=">",
        first_own=">",
        committed=">",
        rewinds=">",
        reason="<",
    )
    for each in found.doubtful[:_MOST_ROWS]:
        numbers = _numbers(each.written, each.first_own, each.committed, each.rewinds)
        place = f"{each.topic}-{each.partition}"
        made.add_row(cell(each.group), place, each.old or "-", each.new or "-", *numbers, cell(each.reason or ""))
    return made


def _late(found: Audit) -> RenderableType:
    made = table("group", "partition", "time", offset=">", beyond=">")
    for each in found.late_commits[:_MOST_ROWS]:
        at = f"{each.log_time:%Y-%m-%d %H:%M:%S}"
        made.add_row(cell(each.group), f"{each.topic}-{each.partition}", at, *_numbers(each.offset, each.beyond))
    return made


def _deletions(found: OfLog) -> RenderableType:
    made = table("group", "partition", "time")
    for each in found.deletions[:_MOST_ROWS]:
        place = "the whole group" if each.topic is None else f"{each.topic}-{each.partition}"
        made.add_row(cell(each.group), place, f"{each.log_time:%Y-%m-%d %H:%M:%S}")
    return made


def _evidence(found: OfLog) -> RenderableType:
    columns = ("from", "to", "records", "control", "aborted", "missing", "malformed", "held_back")
    made = table("log partition", **dict.fromkeys(columns, ">"))
    for each in found.evidence[:_MOST_ROWS]:
        made.add_row(str(each.log_partition), *_numbers(*each[1:-1]))
    return made


def _numbers(*numbers: int | None) -> Iterable[str]:
    return ["-" if number is None else f"{number:,}" for number in numbers]
