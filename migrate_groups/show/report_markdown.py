"""The result of ``reconcile`` as a GitHub comment: the problems, then a ``<details>`` section per group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from migrate_groups.show import comment
from migrate_groups.show import verdicts as in_words
from migrate_groups.show.comment import Size
from migrate_groups.text import counted, cut

if TYPE_CHECKING:
    from migrate_groups.spark.reconciliation.result import GroupTopic, Moment, PartitionVerdict, Reconciliation

_FIGURES = ("lag before >", "lag after >", "produced >", "consumed >")
_TIMES = ("time lag before >", "time lag after >")


def report(found: Reconciliation, summary_file: str | None = None) -> str:
    """Return the result of a reconciliation as GitHub Markdown of at most 64,000 bytes; a larger result is cut.

    summary_file: the name of the file with every group and topic; None if it was not written.
    """
    return comment.fitting(lambda size: _blocks(found, summary_file, size))


def _blocks(found: Reconciliation, summary_file: str | None, size: Size) -> Iterator[str]:
    where, groups = in_words.where(found), in_words.by_group(found.summary)
    yield f"### Reconciled: {counted(found.totals.partitions, 'partition')} ({in_words.tally(found.totals.counts)})"
    yield f"**{'clean' if found.clean else 'broken'}**: {in_words.conclusion(found)}."
    if size is not comment.WHOLE or found.topics > len(found.summary):
        yield _where_all_is(summary_file, size)
    yield "\n".join(f"- {_hint(hint, size)}" for hint in found.hints[: size.rows])
    yield _totals(found, size)
    yield _worst(found, where, size)
    for rows in groups[: size.rows]:
        yield _group(where(rows[0]), rows, size, timed=in_words.is_timed(found))
    yield comment.more(len(groups) - size.rows, "group")
    yield comment.more(found.topics - len(found.summary), "topic")
    yield _timeline(in_words.history(found.timeline), where, size)
    yield _meanings(found.totals, size)


def _where_all_is(summary_file: str | None, size: Size) -> str:
    if summary_file:
        return f"**Cut to fit a comment**: {comment.code(summary_file, size)} has every group and topic."
    return "**Cut to fit a comment**: `-o OUT` writes every group, topic and partition."


def _hint(hint: str, size: Size) -> str:
    """Return a hint as Markdown: the parts between backticks become inline code, the other parts are escaped."""
    parts = enumerate(cut(hint, size.characters).split("`"))
    return "".join((comment.code if place % 2 else comment.prose)(part, size) for place, part in parts if part)


def _figures(row: GroupTopic, *, timed: bool) -> list[str]:
    figures = (row.partitions, row.lag_before, row.lag_after, row.produced, row.consumed)
    times = (row.time_lag_before, row.time_lag_after) if timed else ()
    return [*map(in_words.number, figures), *map(in_words.span, times)]


def _header(*, timed: bool) -> tuple[str, ...]:
    return ("partitions >", *_FIGURES, *(_TIMES if timed else ()))


def _totals(found: Reconciliation, size: Size) -> str:
    timed = in_words.is_timed(found)
    header, figures = ["", *_header(timed=timed)], ["total", *_figures(found.totals, timed=timed)]
    if found.quarantined:
        header, figures = [*header, "rows set aside >"], [*figures, in_words.number(found.quarantined)]
    return comment.table(header, [figures], 1, size, "total")


def _worst(found: Reconciliation, where: Callable[[PartitionVerdict], str], size: Size) -> str:
    rows = (
        (
            comment.code(where(each), size),
            comment.code(f"{each.topic}-{each.partition}", size),
            each.status,
            in_words.number(each.before_offset),
            in_words.number(each.after_offset),
            comment.prose(each.reason or "", size),
        )
        for each in found.worst
    )
    header = ("group", "partition", "verdict", "offset before >", "offset after >", "reason")
    return comment.table(header, rows, found.problems, size, "partition") if found.worst else ""


def _group(name: str, topics: Sequence[GroupTopic], size: Size, *, timed: bool) -> str:
    counts: Counter[str] = sum((Counter(row.counts) for row in topics), Counter())
    rows = (
        (comment.code(row.topic or "-", size), in_words.tally(row.counts), *_figures(row, timed=timed))
        for row in topics
    )
    table = comment.table(("topic", "verdict", *_header(timed=timed)), rows, len(topics), size, "topic")
    return comment.folded(
        f"{comment.html_code(name, size)}: {counted(len(topics), 'topic')} ({in_words.tally(counts)})", table
    )


def _timeline(history: Sequence[Sequence[Moment]], where: Callable[[Moment], str], size: Size) -> str:
    rows = (
        (
            comment.code(where(moments[0]), size),
            "(all)" if moments[0].topic is None else comment.code(moments[0].topic, size),
            f"{len(moments):,}",
            *(in_words.number(lag) for lag in (moments[0].lag, in_words.highest(moments), moments[-1].lag)),
        )
        for moments in history
    )
    header = ("group", "topic", "moments >", "first lag >", "highest lag >", "last lag >")
    table = comment.table(header, rows, len(history), size, "row")
    return comment.folded("lag over time", table) if history else ""


def _meanings(totals: GroupTopic, size: Size) -> str:
    rows = [(status, meaning) for status, meaning in in_words.MEANING.items() if totals.counts[status]]
    return comment.folded(
        "meaning of the verdicts", comment.table(("verdict", "meaning"), rows, len(rows), size, "verdict")
    )
