"""docs/getting-started.md: its commands, typed into three terminals, print what the page shows."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.broker_world import until
from tests.support.terminal import Terminal

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "getting-started.md").read_text()
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S)
CTRL_C = "\x03"
# The moment of the look decides what such a line says of members that are leaving.
_LEAVING = re.compile(r"# s \S+ is ")
_SECONDS = 400


class Shell(Terminal):
    """A terminal in which bash waits for commands."""

    def __init__(self, folder: Path, **variables: str) -> None:
        super().__init__()
        fcntl.ioctl(self.stream, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 1000, 0, 0))
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = os.environ | {"PATH": programs, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "PS1": ""} | variables
        command = ["setsid", "--ctty", "bash", "--norc", "--noediting", "-i"]
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), self.stream)
        self._bash = subprocess.Popen(command, cwd=folder, env=environment, **streams)  # type: ignore[call-overload]

    def type(self, text: str) -> int:
        """Type a text; return where the output begins that comes from now on."""
        start = len(self.shown)
        os.write(self._ours, text.encode())
        return start

    def await_(self, pattern: str, start: int = 0) -> None:
        """Wait until the output from ``start`` on has a match of the pattern."""
        until(lambda: re.search(pattern, self.shown[start:]), seconds=_SECONDS)

    def await_end(self, start: int) -> None:
        """Wait until all has ended that was typed. start: where its output begins."""
        self.type("echo all 'has ended'\n")
        self.await_("all has ended\r", start)

    def run(self, commands: str) -> None:
        """Type commands, and wait until they have ended."""
        self.await_end(self.type(commands))

    def close(self) -> str:
        """End bash and its jobs, close the terminal, and return its whole output."""
        if not self.stream.closed:
            self.type(f"{CTRL_C}\nkill $(jobs -p)\nwait\nexec true\n")
            self._bash.wait(_SECONDS)
        return super().close()


def lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def plain(text: str) -> list[str]:
    """Return the lines of an output, without colours, the width of columns, and what differs from run to run."""
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text).replace("\r", "\n")
    text = re.sub(r"(?<![\w-])[\w-]{22}(?![\w-])", "ID", text)
    return [" ".join(re.sub(r"[\d,]*\d", "#", line).split()) for line in text.splitlines()]


@pytest.fixture
def terminals(tmp_path) -> Iterator[list[Shell]]:
    """The three terminals of the page: Kafka runs in the first, and the others have its address."""
    with ExitStack() as opened:
        kafka = opened.enter_context(Shell(tmp_path))
        kafka.type("migrate-groups sandbox\n")
        kafka.await_(r"\n127\.0\.0\.1:\d+\r")
        address = kafka.shown.split()[-1]
        more = [opened.enter_context(Shell(tmp_path, MIGRATE_GROUPS_BOOTSTRAP_SERVER=address)) for _ in range(2)]
        yield [kafka, *more]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="setsid gives bash its terminal")
def test_the_page_shows_what_its_commands_print(terminals, tmp_path):
    """A reader who types the commands of the page sees each line that it shows, with other numbers."""
    _, applications, commands = terminals
    produced, processed = (tmp_path / f"{name}.txt" for name in ("produced", "processed"))
    shared = [tmp_path / f"shared-{name}.txt" for name in ("billing", "search")]
    typed = [text for language, text in BLOCKS if language == "sh"]
    # Without the blocks for the installation, the other terminals, and the reader's own cluster.
    begin, look, dry_run, split, new, prove, back, stop, again, count, share, move, leave, moved = typed[2:-1]

    def confirmed(command: str) -> int:
        start = commands.type(command)
        commands.await_(r"\[y/N\]: $", start)
        commands.type("y\n")
        commands.await_("waiting up to", start)
        return start

    def handed_over(start: int, new_applications: str) -> None:
        commands.await_("START THE NEW GROUPS NOW", start)
        applications.type(new_applications)
        commands.await_end(start)

    applications.type(begin)
    until(lambda: lines(processed) > 500, seconds=_SECONDS)
    commands.run(look)
    commands.run(dry_run)
    start = confirmed(split)
    applications.type(CTRL_C)
    handed_over(start, new)
    commands.run(prove)
    start = confirmed(back)
    applications.type(stop)
    commands.await_end(start)
    applications.type(again)
    until(lambda: lines(processed) >= lines(produced), seconds=_SECONDS)
    applications.type(CTRL_C)
    applications.run(count)
    applications.type(share)
    until(lambda: min(map(lines, shared)) > 500, seconds=_SECONDS)
    start = confirmed(move)
    applications.type(leave)
    handed_over(start, moved)

    printed = {line for each in terminals for line in plain(each.close())}
    shown = [line for language, text in BLOCKS if not language for line in plain(text)]
    shown = [line for line in shown if not line.startswith(("$ ", "…")) and not _LEAVING.match(line)]
    assert len(shown) > 50
    assert [line for line in shown if line not in printed] == []
