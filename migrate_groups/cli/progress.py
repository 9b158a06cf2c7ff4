"""Show progress on stderr, as bars on a terminal and otherwise as lines."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from migrate_groups.cli.console import talk
from migrate_groups.cli.progress_display import shown_work
from migrate_groups.migration.events import Events, not_known
from migrate_groups.snapshots.times import span_in_words

if TYPE_CHECKING:
    from rich.progress import TaskID

    from migrate_groups.migration.events import Done
    from migrate_groups.migration.watch import TopicProgress, WatchProgress
    from migrate_groups.sandbox.ivy import FetchProgress

_LINE_SECONDS = 10.0
_MOST_TOPICS = 20


@contextmanager
def shown_progress(group: str) -> Iterator[Callable[[WatchProgress], None]]:
    """Yield a function that shows on stderr how far a group has read. The block calls it about once a second."""
    if sys.stderr.isatty():
        with _bars(group) as tell:
            yield tell
    else:
        yield _lines(group)


class Reporter(Events):
    """Shows on stderr what a command that only reads reports."""

    def working(self, doing: str, done: Done = not_known) -> AbstractContextManager[None]:
        """Show the progress of the block, if it is not short."""
        return shown_work(doing, done)

    def said(self, line: str) -> None:
        """Print the line."""
        talk(line)


@contextmanager
def fetch_bar(what: str, megabytes: int) -> Iterator[Callable[[FetchProgress], None]]:
    """Yield a function that shows the progress of a download of jars on stderr.

    what: the product that is downloaded. If the function is never called, nothing is shown.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    bar = Bar(*columns, console=Console(stderr=True), transient=True)

    def report(progress: FetchProgress) -> None:
        if not bar.tasks:
            talk(f"fetching {what}, once: about {megabytes} MB of jars, a minute or two")
            bar.add_task("looking for jars", total=None)
            if sys.stderr.isatty():
                bar.start()
        description = "downloading" if progress.downloaded else "looking for jars"
        bar.update(bar.tasks[0].id, description=description, completed=progress.downloaded, total=progress.found)

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()
    if bar.tasks:
        talk(f"fetched {bar.tasks[0].completed:.0f} jars")


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


@contextmanager
def _bars(group: str) -> Iterator[Callable[[WatchProgress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    from migrate_groups.show.terminal_text import cell

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[left]} left", justify="right"),
        TextColumn("{task.fields[pace]}", justify="right"),
    )
    tasks: dict[str, TaskID] = {}
    said: list[str] = []
    with Bars(*columns, console=Console(file=sys.stderr, highlight=False)) as shown:

        def tell(progress: WatchProgress) -> None:
            for topic in progress_rows(progress):
                if topic.topic not in tasks:
                    tasks[topic.topic] = shown.add_task(topic.topic, total=topic.records, left="", pace="")
                done = max(0, topic.records - topic.left)
                shown.update(tasks[topic.topic], completed=done, left=f"{topic.left:,}", pace=_pace(topic))
            remark = _remark(group, progress)
            if remark and said[-1:] != [remark]:
                shown.console.print(cell(remark))
            said[:] = [remark]

        yield tell


def _lines(group: str) -> Callable[[WatchProgress], None]:
    next_line: dict[str, float] = {}  # by topic, or by remark

    def tell(progress: WatchProgress) -> None:
        for topic in progress_rows(progress):
            due = next_line.get(topic.topic, 0.0)
            if progress.seconds >= due or (not topic.left and due < math.inf):
                talk(f"{progress.seconds:4.0f} s  {progress_line(topic)}")
                next_line[topic.topic] = progress.seconds + _LINE_SECONDS if topic.left else math.inf
        remark = _remark(group, progress)
        if remark and progress.seconds >= next_line.get(remark, 0.0):
            talk(remark)
            next_line[remark] = progress.seconds + _LINE_SECONDS

    return tell


def _pace(topic: TopicProgress) -> str:
    if not topic.left:
        return "done"
    if topic.rate is None:
        return ""
    if topic.seconds_left is None:
        return "no progress"
    return f"{topic.rate:,.0f}/s, {span_in_words(timedelta(seconds=round(topic.seconds_left)))} to go"


def _remark(group: str, progress: WatchProgress) -> str:
    if progress.remark or progress.reached or progress.members:
        return progress.remark
    return f"group {group} has no members: nobody consumes"
