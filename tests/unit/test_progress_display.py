"""Progress on stderr: none for quick work, a bar on a terminal, and a line every ten seconds without a terminal."""

from __future__ import annotations

import io
import re
import sys
import threading
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest

from migrate_groups.cli import progress_display
from migrate_groups.cli.console import talk
from migrate_groups.cli.progress_display import Work, shown_looks, shown_work
from tests.support.connected import APPLY, Connected
from tests.support.terminal import Terminal


class Over(threading.Event):
    """An event on a simulated clock, which is set after ``end`` seconds, when the work is over."""

    def __init__(self, end: float) -> None:
        super().__init__()
        self.now, self._end = 0.0, end

    def wait(self, timeout: float | None = None) -> bool:
        self.now = min(self.now + (timeout or 0.0), self._end)
        return self.is_set()

    def is_set(self) -> bool:
        return self.now >= self._end


class Recorded:
    """A display that records the times at which it is drawn."""

    def __init__(self, first: float, pause: float) -> None:
        self.first, self.pause, self.times = first, pause, list[float]()

    def draw(self, work, seconds):
        self.times.append(round(seconds, 1))

    def clear(self):
        """Do nothing."""


def drawn(display, seconds: float, monkeypatch) -> None:
    """Simulate work that takes ``seconds`` seconds and is drawn on ``display``."""
    over = Over(seconds)
    monkeypatch.setattr(progress_display, "time", SimpleNamespace(monotonic=lambda: over.now))
    monkeypatch.setattr(progress_display, "_displays", [display])
    progress_display._draw(lambda: Work("reading", (3, 1200)), display, over)


@pytest.mark.parametrize(("seconds", "times"), [(1.9, []), (2.0, []), (2.5, [2.0, 2.2, 2.4])])
def test_a_bar_appears_after_two_seconds(monkeypatch, seconds, times):
    """On a terminal no progress is shown for the first two seconds; then a bar is drawn five times a second."""
    display = Recorded(progress_display._BarDisplay.first, progress_display._BarDisplay.pause)
    drawn(display, seconds, monkeypatch)
    assert display.times == times


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(2.5, ""), (10.0, ""), (25.0, "  10 s  reading: 3 of 1,200\n  20 s  reading: 3 of 1,200\n")],
)
def test_a_line_comes_every_ten_seconds_elsewhere(monkeypatch, capsys, seconds, said):
    """If stderr is not a terminal, a line with the progress is written to it every ten seconds."""
    drawn(progress_display._Lines(), seconds, monkeypatch)
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize(("amounts", "said"), [((0, 1), ""), (None, ""), ((0, 2), "0 of 2"), ((3, 1200), "3 of 1,200")])
def test_amounts_are_shown_if_there_are_several(amounts, said):
    """The progress shows how many pieces of work are done, but only if there is more than one piece."""
    assert Work("reading", amounts).how_far == said


@pytest.fixture
def terminal(monkeypatch):
    """Open a terminal on which a progress bar is shown at once."""
    monkeypatch.setattr(progress_display._BarDisplay, "first", 0.0)
    monkeypatch.setattr(progress_display._BarDisplay, "pause", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with Terminal() as opened:
        yield opened


def shown_on(terminal, look):
    """Return a context in which stderr is the terminal, and shows the progress that ``look`` returns."""
    stack = ExitStack()
    stack.enter_context(redirect_stderr(terminal.stream))
    stack.enter_context(shown_looks(look))
    return stack


def test_a_bar_appears_and_disappears(terminal):
    """During the work a bar shows a text and the number of finished pieces; at the end its line is erased.

    The bar writes nothing to stdout.
    """
    with redirect_stdout(io.StringIO()) as out:
        with shown_on(terminal, lambda: Work("reading 3 [groups]", (1, 3))):
            terminal.wait_for(r"reading 3 \[groups\].*━.*1 of 3.*0 s")
            sys.stdout.write("data\n")
        shown = terminal.close()
    assert out.getvalue() == "data\n"
    assert shown.endswith("\x1b[2K")  # erases the line of the bar
    assert "\x1b[?25h" in shown  # the cursor is visible again


def test_a_message_stays_above_the_bar(terminal):
    """A message that is printed while a bar is shown appears above the bar, and stays."""
    with shown_on(terminal, lambda: Work("reading")):
        terminal.wait_for("reading")
        talk("note this")
    assert "note this\r\n" in terminal.close()


def test_the_inner_work_is_shown_alone(terminal):
    """During work within other work, only the inner work is shown; afterwards the outer work is shown again."""
    with shown_on(terminal, lambda: Work("outer")):
        terminal.wait_for("outer")
        with shown_work("inner", lambda: None):
            terminal.wait_for("inner")
            begun = len(terminal.shown)
            terminal.wait_for("(inner.*){5}", begun)
            assert "outer" not in terminal.shown[begun:]
        terminal.wait_for("outer", len(terminal.shown))


def test_the_bar_is_hidden_while_there_is_nothing_to_show(terminal):
    """The bar disappears while no work is running, and comes back when work runs again."""
    now: list[Work | None] = [Work("stage 1", (1, 2))]
    with shown_on(terminal, lambda: now[0]):
        terminal.wait_for("stage 1")
        now[0] = None
        terminal.wait_for(r"\x1b\[\?25h", len(terminal.shown))
        now[0] = Work("stage 2", (1, 2))
        terminal.wait_for("stage 2")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_end_by_an_error_removes_the_bar(terminal, error):
    """If work ends by Ctrl-C or an error, its progress bar is erased."""

    def fail():
        terminal.wait_for("reading")
        raise error

    with pytest.raises(error), shown_on(terminal, lambda: Work("reading")):
        fail()
    assert terminal.close().endswith("\x1b[2K")


def test_nothing_is_shown_after_the_end_even_by_a_slow_look(terminal, monkeypatch):
    """When the work ends, a slow ``look``, which returns the progress, is waited for at most `_JOIN_SECONDS`.

    Its late answer is not shown.
    """
    monkeypatch.setattr(progress_display, "_JOIN_SECONDS", 0.0)
    asked, answer = threading.Event(), threading.Event()

    def look() -> Work:
        asked.set()
        answer.wait()
        return Work("too late")

    before = set(threading.enumerate())
    with shown_on(terminal, look):
        asked.wait()
        [thread] = set(threading.enumerate()) - before
    assert thread.daemon
    answer.set()
    thread.join()
    assert terminal.close() == ""


@contextmanager
def slow(cluster, name, monkeypatch, waiting):
    """Make each call of the cluster's method ``name`` call ``waiting`` first."""
    method = getattr(type(cluster), name)

    def slowly(self, *arguments, **named):
        waiting()
        return method(self, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(type(cluster), name, slowly)
        yield


@pytest.mark.parametrize(
    ("command", "method", "said"),
    [
        (("snapshot", "old", "-o", "-"), "describe_groups", "reading 1 group"),
        (APPLY, "describe_groups", "reading 1 partition of 1 group"),
        (APPLY, "alter_offsets", "writing 1 offset and reading them back"),
    ],
)
def test_slow_commands_show_what_they_do(tmp_path, monkeypatch, terminal, command, method, said):
    """If `snapshot` or `apply` is slow, a terminal shows what it is reading or writing. stdout gets no progress."""
    cli = Connected(tmp_path, monkeypatch)
    monkeypatch.setattr("tests.support.cli.contextlib.redirect_stderr", lambda _: redirect_stderr(terminal.stream))
    with slow(cli.cluster, method, monkeypatch, lambda: terminal.wait_for(said)):
        code, out, _ = cli.outcome(*command)
    assert code == 0
    assert out
    assert not re.search("reading [0-9]|writing", out)


def test_quick_commands_show_nothing(tmp_path, monkeypatch):
    """A command that ends at once shows no progress on a terminal."""
    monkeypatch.setenv("TERM", "xterm")
    cli = Connected(tmp_path, monkeypatch)
    with Terminal() as terminal:
        monkeypatch.setattr("tests.support.cli.contextlib.redirect_stderr", lambda _: redirect_stderr(terminal.stream))
        assert cli.outcome(*APPLY)[0] == 0
        shown = terminal.close()
    assert "written and read back" in shown
    assert not re.search("━|reading|writing|\x1b\\[2K", shown)


def test_an_interrupt_while_the_thread_starts_is_an_interrupt(monkeypatch):
    """If Ctrl-C comes while the thread that shows the progress starts, KeyboardInterrupt is raised.

    Joining a thread that has not started would raise another error.
    """

    def interrupted(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), shown_work("reading", lambda: None):
        pass
