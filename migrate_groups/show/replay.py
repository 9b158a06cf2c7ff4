"""Show on a terminal how far a group has read, which ``watch`` follows."""

from __future__ import annotations

from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from migrate_groups.migration.watch import TopicProgress, WatchProgress
from migrate_groups.snapshots.times import span_in_words

_MOST_TOPICS = 20


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
