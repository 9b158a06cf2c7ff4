"""Make docs/pictures from one real migration on a sandbox.

Usage: ``.venv/bin/python scripts/pictures.py`` (``scripts/test`` makes .venv). It takes about two minutes. Look at each
picture before you commit it.

Two applications share a group, and one of them gets a group of its own. The commands run in a pseudo-terminal, and
their output becomes SVG. In migrate.svg each line appears when the command printed it; a longer wait is cut to two
seconds. The HTML pages become PNG, which needs a Chromium on the PATH.
"""

from __future__ import annotations

import argparse
import codecs
import fcntl
import io
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from _sandbox import sandbox

from migrate_groups.demo.applications import Stage
from tests.support.broker_world import broker_world, until
from tests.support.cli import Cli
from tests.support.old_consumers import Consumer, Ledger

ROOT = Path(__file__).parents[1]
WIDTH = 124
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SPLIT = """source = "big-group"

[[target]]
group  = "billing"
topics = ["invoices", "payments.*"]

[stay]
topics = ["search.*"]
"""
APPLICATIONS = {"billing-app": ["invoices", "payments.card"], "search-app": ["search.clicks"]}
TOPICS = [topic for topics in APPLICATIONS.values() for topic in topics]
# In seconds: the longest time for which the animation does not change, and the time for which it shows its end.
LONGEST_GAP, LAST = 2.0, 6.0
READING = 2.0

_CUT_OFF = re.compile(r"(?:\x1b(?:\[[\d;]*)?)?\Z")

Piece = tuple[float, str]
"""Text that a command printed at once: the seconds since the command's start, and the text."""
Action = tuple[str, Callable[[], str]]
"""A text to wait for in a command's output, and a function to call then. Its result is typed into the terminal."""

# The parts of GitHub's own style that a comment needs.
COMMENT = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; padding: 16px; background: #fff; color: #1f2328; font: 14px/1.5 "Liberation Sans", Arial, sans-serif }
article { border: 1px solid #d1d9e0; border-radius: 6px }
header { padding: 8px 16px; background: #f6f8fa; border-bottom: 1px solid #d1d9e0; border-radius: 6px 6px 0 0 }
main { padding: 0 16px }
h2 { padding-bottom: .3em; border-bottom: 1px solid #d1d9e0 }
table { border-collapse: collapse; margin-bottom: 16px }
th, td { padding: 6px 13px; border: 1px solid #d1d9e0 }
tr:nth-child(even) { background: #f6f8fa }
code { padding: .2em .4em; background: #818b981f; border-radius: 6px; font: 12px "Liberation Mono", monospace }
details { margin-bottom: 16px }
</style><article><header><b>github-actions</b> commented</header><main>"""


class Scene:
    """The sandbox with its topics and applications, and a folder in which the commands run."""

    def __init__(self, bootstrap_servers: str, folder: Path) -> None:
        self.folder, self.run = folder, Cli(folder, bootstrap_servers)
        self._bootstrap_servers = bootstrap_servers
        self._applications: dict[str, tuple[Consumer, Ledger]] = {}

    def start(self, name: str, group: str) -> None:
        """Start an application in a group."""
        config = {"bootstrap.servers": self._bootstrap_servers, "group.id": group, "client.id": name}
        config["group.protocol"] = "consumer"  # because its member ids are short enough for the picture
        ledger = Ledger()
        self._applications[name] = Consumer(ledger, APPLICATIONS[name], config), ledger

    def stop(self, *names: str) -> None:
        """Stop the applications with these names; without names, stop all."""
        for name in names or [*self._applications]:
            self._applications.pop(name)[0].stop()

    def await_consumed(self, number: int) -> None:
        """Wait until each running application has consumed at least ``number`` records."""
        until(lambda: all(len(ledger.records) >= number for _, ledger in self._applications.values()), seconds=120)

    def await_no_lag(self) -> None:
        """Wait until the new group has lag 0."""

        def is_there() -> bool:
            groups = json.loads(self.run("list", "--format", "json").stdout)["groups"]
            return not any(each["lag"] for each in groups if each["group"] == "billing")

        until(is_there, seconds=60)

    def run_in_terminal(self, arguments: Sequence[str], actions: Sequence[Action] = ()) -> list[Piece]:
        """Run a command in a pseudo-terminal, and return the prompt with the command, followed by its output.

        actions: they are done in this order, each once its text has been printed.
        """
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "migrate_groups", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self.folder,
            env=self.run.environment | {"TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)
        began, to_do = time.monotonic(), [*actions]
        pieces, said = [(0.0, f"\x1b[1m$ migrate-groups {' '.join(arguments)}\x1b[0m\n")], ""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")  # because a read can end within a character
        while read := _read(ours):
            text = decoder.decode(read)
            pieces.append((time.monotonic() - began, text.replace("\r\n", "\n")))
            said += text
            while to_do and to_do[0][0] in said:
                if typed := to_do.pop(0)[1]():
                    os.write(ours, typed.encode())
        if process.wait():
            raise SystemExit(f"migrate-groups {arguments[0]} failed:\n{said}")
        return pieces


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the command has ended
        return b""


def svg(pieces: Sequence[Piece], name: str, *, animated: bool = False) -> str:
    """Return the picture of a terminal as SVG. If ``animated``, each line appears when the command printed it.

    pieces: the output. name: a prefix of the ids in the SVG. The last line stays empty, because Rich cuts off the lower
    half of the last line.
    """
    from rich.ansi import AnsiDecoder
    from rich.console import Console
    from rich.text import Text

    lines = [Text()]
    steps: list[list[int]] = [[]]
    decoder, cut_off = AnsiDecoder(), ""
    for step, (_, said) in enumerate(pieces):
        # A read of the terminal can end within an escape sequence. Its rest is in the next piece.
        whole = cut_off + said
        cut_off = _CUT_OFF.findall(whole)[0]
        for number, row in enumerate(map(decoder.decode_line, whole.removesuffix(cut_off).split("\n"))):
            if number:
                lines.append(Text())
                steps.append([])
            if row:
                typed = "[y/N]:" in lines[-1].plain
                lines[-1].append_text(row if not typed else Text(row.plain, style="bold yellow"))
                steps[-1].append(step)
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor", highlight=False
    )
    shown: list[list[int]] = []
    for line, of in zip(lines, steps, strict=True):
        # A terminal breaks a long line at its edge, even within a word.
        rows = line.divide(range(WIDTH, len(line), WIDTH)) if line else [line]
        for row in rows:
            console.print(row, no_wrap=True, crop=False)
            shown.append(of)
    text = console.export_svg(title="", unique_id=name, font_aspect_ratio=0.61)
    text = re.sub(r"@font-face \{.*?\}\n", "", text, flags=re.DOTALL)  # a picture must not fetch anything
    text = text.replace("Fira Code, monospace", '"Fira Code", Menlo, Consolas, "DejaVu Sans Mono", monospace')
    text = re.sub(r"<text [^>]*>\n</text>", "", text)  # Rich adds the end of each line as a text
    text = re.sub(r"[ \t]+\n", "\n", text)
    return _animated(text, pieces, shown) if animated else text


def _animated(text: str, pieces: Sequence[Piece], shown: Sequence[Sequence[int]]) -> str:
    """Return the picture ``text`` with an animation, in which each line appears when the command printed it.

    shown: for each line of the picture, the numbers of its pieces. A line can have two pieces: a question and the
    answer. Then the question appears with the first piece, and the answer with the second.
    """
    at, starts = 0.0, []
    for number, (seconds, _) in enumerate(pieces):
        at += min(seconds - pieces[max(0, number - 1)][0], LONGEST_GAP)
        starts.append(at)
    whole = at + LAST
    begun: set[int] = set()

    def of_step(found: re.Match[str]) -> str:
        line = int(found["line"])
        step = shown[line][-1 if line in begun else 0]
        begun.add(line)
        return f'<text class="{found["style"]} s{step}"{found["rest"]}'

    text = re.sub(r'<text class="(?P<style>[\w-]+)"(?P<rest>[^>]*-line-(?P<line>\d+)\)")', of_step, text)
    rules = []
    for step in sorted({step for of in shown for step in of} - {0}):
        part = f"{starts[step] / whole:.2%}"
        rules.append(f"@keyframes k{step} {{ 0% {{ opacity: 0 }} {part}, 100% {{ opacity: 1 }} }}")
        rules.append(f".s{step} {{ animation: k{step} {whole:.1f}s step-end infinite }}")
    still = "@media (prefers-reduced-motion: reduce) { text { animation: none !important } }"
    return text.replace("</style>", "\n".join([*rules, still, "</style>"]), 1)


def terminal_pictures(scene: Scene, output: Path) -> None:
    """Migrate the group, and make an SVG of each command. One application moves, the other keeps running."""
    (output / "describe.svg").write_text(svg(scene.run_in_terminal(["describe", "big-group"]), "describe"))
    dry_run = scene.run_in_terminal(["migrate", "split.toml", "--dry-run"])
    (output / "dry-run.svg").write_text(svg(dry_run, "dry-run"))

    def confirm() -> str:
        time.sleep(READING)
        return "y\n"

    def stop() -> str:
        time.sleep(READING)
        scene.stop("billing-app")
        return ""

    def start() -> str:
        time.sleep(READING)
        scene.start("billing-app", "billing")
        return ""

    pieces = scene.run_in_terminal(
        ["migrate", "split.toml"],
        [
            ("[y/N]:", confirm),
            ("has 1 member", stop),
            ("START THE NEW GROUPS NOW", start),
        ],
    )
    (output / "migrate.svg").write_text(svg(pieces, "migrate", animated=True))


def page_pictures(scene: Scene, comment: str, output: Path, browser: str) -> None:
    """Make the PNGs: the comment in a pull request, and both reports on a desktop and on a phone.

    comment: the comment's Markdown. browser: the path of Chromium.
    """
    from markdown_it import MarkdownIt
    from playwright.sync_api import sync_playwright

    (scene.folder / "comment.html").write_text(COMMENT + MarkdownIt("commonmark").enable("table").render(comment))
    pages = {
        "comment": ("comment.html", 900, 900, 1),
        "report": ("reconciled/report.html", 1200, 1000, 1),
        "report-phone": ("reconciled/report.html", 390, 844, 1.5),
        "history": ("history/history.html", 1200, 1000, 1),
        "history-phone": ("history/history.html", 390, 844, 1.5),
    }
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=browser) as chromium:
        for name, (page, width, height, scale) in pages.items():
            size: Any = {"width": width, "height": height}
            with chromium.new_context(viewport=size, device_scale_factor=scale, color_scheme="light") as context:
                opened = context.new_page()
                opened.goto((scene.folder / page).as_uri())
                tall = opened.evaluate("document.documentElement.getBoundingClientRect().height")
                clip: Any = {"x": 0, "y": 0, "width": width, "height": min(height, tall)}
                opened.screenshot(path=output / f"{name}.png", clip=clip, full_page=True)


def main() -> int:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description="Make docs/pictures from one real migration on a sandbox.")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "pictures", help="the folder")
    output = parser.parse_args().output
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"there is no browser on the PATH ({', '.join(BROWSERS)}): install Chromium")
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sandbox() as kafka, Stage(kafka.bootstrap_servers, Path(name)) as stage:
        folder = Path(name)
        scene = Scene(kafka.bootstrap_servers, folder)
        with broker_world(kafka.bootstrap_servers) as world:
            for topic in TOPICS:
                world.create_topic(3, topic=topic)
        stage.start_producer(TOPICS)
        for name in APPLICATIONS:
            scene.start(name, "big-group")
        scene.await_consumed(2000)
        (folder / "split.toml").write_text(SPLIT)
        comment = scene.run("migrate", "split.toml", "--dry-run", "--format", "markdown").stdout
        terminal_pictures(scene, output)
        scene.run("reconcile", "split.toml.run", "-o", "reconciled")
        stage.stop("producer")
        scene.await_no_lag()
        scene.run("history", "--log", "offsets-log", "-o", "history", "--every", "2s")
        page_pictures(scene, comment, output, browser)
        scene.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
