"""The terminal views of a replay: the offset at which each partition's replay begins, and how far a group has read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from migrate_groups.migration.watch import TopicProgress, WatchProgress
from migrate_groups.show.tables import table as new_table
from migrate_groups.snapshots.rewind_decision import Note, RewindDecision
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted

_STYLES = {Note.CLAMPED: "yellow", Note.GONE: "yellow", Note.SKIPPED: "yellow", Note.NO_COMMIT: "yellow"}
_MOST_ROWS = 50
_MOST_TOPICS = 20


def decisions(decided: Sequence[RewindDecision]) -> RenderableType:
    """Return a table of the offset at which each partition's replay begins, and a line with the totals.

    At most 50 partitions are shown. Partitions that start exactly as requested are left out first.
    """
    shown = sorted(decided, key=lambda decision: decision.note is None)[:_MOST_ROWS]
    table = new_table(
        "topic", partition=">", log_start=">", log_end=">", committed=">", offset=">", to_replay=">", note="<"
    )
    for decision in sorted(shown, key=lambda decision: decision.row.topic_partition):
        offsets = (decision.bounds.start, decision.bounds.end, decision.row.offset, decision.offset, decision.to_replay)
        table.add_row(
            decision.row.topic,
            str(decision.row.partition),
            *("-" if number is None else f"{number}" for number in offsets),
            _note(decision),
        )
    rest = len(decided) - len(shown)
    more = [Text(f"… and {counted(rest, 'more partition')}: the file has all", style="dim")] if rest else []
    notes = Counter(decision.note for decision in decided if decision.note)
    words = "".join(f", {number:,} {note}" for note, number in sorted(notes.items()))
    replayed = sum(decision.to_replay for decision in decided)
    return Group(
        table, *more, Text(f"{counted(len(decided), 'partition')}, {counted(replayed, 'record')} to replay{words}")
    )


def progress_rows(progress: WatchProgress) -> tuple[TopicProgress, ...]:
    """Return the progress of each topic that a group reads, then the total.

    For a single topic, the total is left out. For more than 20 topics, only the total is returned.
    """
    if len(progress.topics) == 1:
        return progress.topics
    return (*(progress.topics if len(progress.topics) <= _MOST_TOPICS else ()), progress.total)


def progress_line(topic: TopicProgress) -> str:
    """Return the progress of a topic in one line: ``orders: 4,880 of 5,000 left, 250/s, 19 s to go``."""
    if not topic.left:
        return f"{topic.topic}: {topic.records:,} done"
    pace = _pace(topic)
    return f"{topic.topic}: {topic.left:,} of {topic.records:,} left" + (f", {pace}" if pace else "")


def bars(console: Console) -> Bars:
    """Return an empty display for progress bars. `update` adds the bars and moves them."""
    return Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[left]} left", justify="right"),
        TextColumn("{task.fields[pace]}", justify="right"),
        console=console,
    )


def update(shown: Bars, tasks: dict[str, TaskID], progress: WatchProgress) -> None:
    """Show the progress in bars: one for each topic and one for all topics; with many topics only the latter.

    tasks: the bars by topic; missing bars are added.
    """
    for topic in progress_rows(progress):
        if topic.topic not in tasks:
            tasks[topic.topic] = shown.add_task(topic.topic, total=topic.records, left="", pace="")
        done = max(0, topic.records - topic.left)
        shown.update(tasks[topic.topic], completed=done, left=f"{topic.left:,}", pace=_pace(topic))


def _pace(topic: TopicProgress) -> str:
    if not topic.left:
        return "done"
    if topic.rate is None:
        return ""
    if topic.seconds_left is None:
        return "no progress"
    return f"{topic.rate:,.0f}/s, {span_in_words(timedelta(seconds=round(topic.seconds_left)))} to go"


def _note(decision: RewindDecision) -> Text:
    if decision.note is None:
        return Text("")
    return Text(f"{decision.note}: {decision.detail}", style=_STYLES.get(decision.note, ""))
