"""The pages of the docs: the command lines that they tell the reader to type, and the output that they show."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {str(path.relative_to(ROOT)): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}

_CODE = re.compile(
    r"^ *```(?P<language>\w*)\n(?P<block>.*?)^ *```$|`(?P<inline>migrate-groups [^`\n…]+)`", re.MULTILINE | re.DOTALL
)
_HEREDOC = r"^.*<<'(?P<end>\w+)'.*\n(?:.*\n)*?(?P=end)$"
_OF_THE_MOMENT = r"\$ |# s \S+ is |# s .* left\b"
_COMMAND = re.compile(rf"(?:{_HEREDOC}|^.+$)", re.MULTILINE)


def text_of(part: str, parts: Iterable[str] = ()) -> str:
    """Return the text of a part of the docs: ``PAGE`` or ``PAGE#HEADING``.

    parts: all parts. From the text of PAGE, the sections that are parts themselves are left out.
    """
    page, _, heading = part.partition("#")
    text = (ROOT / page).read_text()
    if heading:
        [section] = re.findall(rf"^#+ {re.escape(heading)}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        return str(section)
    for each in parts:
        if each.startswith(f"{page}#"):
            text = text.replace(text_of(each), "")
    return text


def commands(text: str) -> list[str]:
    """Return the command lines of a page, in order and each once, without their comments.

    They are the lines of shell blocks, what follows ``$`` in a block of output, and inline code that begins with
    ``migrate-groups``. A here-document belongs to its command.
    """
    found: list[str] = []
    for code in _CODE.finditer(text):
        if code["language"] == "sh":
            lines = _COMMAND.finditer(re.sub(r" *\\\n\s*", " ", code["block"]))
            found += [line[0] if line["end"] else re.sub(r"\s+# .*$", "", line[0]) for line in lines]
        elif code["language"] == "":
            found += re.findall(r"^\$ (.+)$", code["block"], re.MULTILINE)
        elif code["inline"]:
            found.append(code["inline"])
    return list(dict.fromkeys(found))


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks in a language."""
    return [code["block"] for code in _CODE.finditer(text) if code["language"] == language]


def not_printed(text: str, printed: str) -> list[str]:
    """Return the lines of output that a page shows and that no line of ``printed`` equals, except for its numbers.

    ``…`` in a line stands for any characters. Command lines are left out, and so are lines of progress, because these
    depend on the time.
    """
    lines = set(plain(printed))
    shown = [line for block in blocks(text, "") for line in plain(block)]
    return [line for line in shown if not re.match(_OF_THE_MOMENT, line) and not _among(line, lines)]


def _among(shown: str, lines: set[str]) -> bool:
    if "…" not in shown:
        return shown in lines
    pattern = re.compile(".*".join(map(re.escape, shown.split("…"))))
    return any(pattern.fullmatch(line) for line in lines)


def plain(text: str) -> list[str]:
    """Return the lines of an output without colours and repeated spaces, with ``#`` for numbers and ``ID`` for ids."""
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text).replace("\r", "\n")
    text = re.sub(r"(?<![\w-])[\w-]{22}(?![\w-])", "ID", text)
    return [" ".join(re.sub(r"[\d,]*\d", "#", line).split()) for line in text.splitlines()]
