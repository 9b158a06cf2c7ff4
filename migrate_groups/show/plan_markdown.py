"""A plan of offset writes as a GitHub comment: a summary, then a ``<details>`` section of partitions per group.

A plan that is too large for a comment is cut.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.plan import Action, Change, Check, Plan, Verdict
from migrate_groups.planning.planned_stop import PlannedStop
from migrate_groups.show import changes as in_words
from migrate_groups.show import comment, planned_stop
from migrate_groups.show.comment import Size
from migrate_groups.text import counted

_MEANING = {
    Verdict.NOT_APPLICABLE: "there is nothing to check",
    Verdict.PASS: "every check that applies passes",
    Verdict.WARN: "no check refuses",
    Verdict.NOT_KNOWN: "no check refuses; what could not be read is named below",
    Verdict.PENDING: "no check refuses; the pending checks must pass at the write",
    Verdict.REFUSE: "refused: nothing can be written",
}


def plan(plan: Plan, plan_file: str | None = None, stop: PlannedStop | None = None) -> str:
    """Return a plan of offset writes as GitHub Markdown of at most 64,000 bytes; a larger plan is cut.

    plan_file: the file with the whole plan; None if the plan was not saved. stop: which members of the source group
    must stop; None leaves this part out.
    """
    return comment.fitting(lambda size: _blocks(plan, plan_file, stop, size))


def _blocks(plan: Plan, plan_file: str | None, stop: PlannedStop | None, size: Size) -> Iterator[str]:
    groups: dict[str, list[Change]] = defaultdict(list)
    for change in plan.changes:
        groups[change.group].append(change)
    yield f"### Consumer groups: {in_words.tally(plan.changes)}"
    yield f"**{plan.verdict}**: {_MEANING[plan.verdict]}. {_where(plan, size)}."
    if size is not comment.WHOLE:
        yield _where_all_is(plan_file, size)
    if stop is not None:
        notes = [*planned_stop.who(stop), planned_stop.how_long(stop)]
        yield "\n".join(f"- {comment.prose(note, size)}" for note in notes)
    yield _hand_overs(plan, size)
    yield _attention(plan.checks, size)
    yield comment.folded(f"{counted(len(plan.checks), 'check')}: {_verdicts(plan.checks)}", _checks(plan.checks, size))
    for group, of_group in islice(groups.items(), size.rows):
        yield _group(group, of_group, in_words.origins(plan), size)
    yield comment.more(len(groups) - size.rows, "group")
    yield f"intent {comment.code(plan.intent, comment.WHOLE)}<br>content {comment.code(plan.content, comment.WHOLE)}"


def _where_all_is(plan_file: str | None, size: Size) -> str:
    if plan_file:
        return f"**Cut to fit a comment**: {comment.code(plan_file, size)} has every partition."
    return "**Cut to fit a comment**: `--plan-out plan.json` saves every partition."


def _where(plan: Plan, size: Size) -> str:
    here = comment.code(plan.cluster_id, size)
    if plan.translation is None:
        return f"Cluster {here}"
    return f"From cluster {comment.code(plan.translation.cluster_id, size)} to cluster {here}"


def _hand_overs(plan: Plan, size: Size) -> str:
    elsewhere = plan.translation.group if plan.translation else None
    counts: dict[tuple[str | None, str], Counter[Action]] = defaultdict(Counter)
    topics: dict[tuple[str | None, str], set[str]] = defaultdict(set)
    for change in plan.changes:
        pair = change.source_group or elsewhere, change.group
        counts[pair][change.action] += 1
        topics[pair].add(change.topic)
    actions = [each for each in Action if each is not Action.NOT_MIRRORED or any(of[each] for of in counts.values())]
    rows = (
        (
            comment.code(source, size) if source is not None else "(set)",
            comment.code(group, size),
            f"{len(topics[source, group]):,}",
            *(f"{counts[source, group][action]:,}" for action in actions),
        )
        for source, group in counts
    )
    header = ("from", "to", "topics >", *(f"{action} >" for action in actions))
    return comment.table(header, rows, len(counts), size, "hand-over")


def _attention(checks: Sequence[Check], size: Size) -> str:
    worst_first = sorted(checks, key=lambda check: list(Verdict).index(check.verdict), reverse=True)
    return "\n".join(
        f"- **{check.verdict}** {comment.prose(check.name, size)}: {comment.prose(check.reason, size)}"
        for check in worst_first
        if check.verdict not in (Verdict.PASS, Verdict.NOT_APPLICABLE)
    )


def _checks(checks: Sequence[Check], size: Size) -> str:
    rows = ((check.verdict, comment.prose(check.name, size), comment.prose(check.reason, size)) for check in checks)
    return comment.table(("verdict", "check", "reason"), rows, len(checks), size, "check")


def _verdicts(checks: Sequence[Check]) -> str:
    counts = Counter(check.verdict for check in checks)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def _group(group: str, changes: Sequence[Change], origins: Mapping[TopicPartition, str], size: Size) -> str:
    summary = f"{comment.html_code(group, size)}: {in_words.tally(changes)}"
    rows = (
        (
            comment.code(change.topic, size),
            str(change.partition),
            *in_words.cells(change),
            *([origins.get(change.topic_partition, "")] if origins else []),
        )
        for change in changes
    )
    header = ("topic", "partition >", "before >", "after >", "change", *(["from"] if origins else []))
    return comment.folded(summary, comment.table(header, rows, len(changes), size, "partition"))
