"""The messages that docs/troubleshooting.md explains, and the messages of the errors that the code raises."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from migrate_groups import errors
from tests.support.sources import modules

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
ANY = "…"
"""What stands for a value in a message."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Entry(NamedTuple):
    """A row of the page. fragments: parts of messages."""

    code: int
    fragments: tuple[str, ...]


class Message(NamedTuple):
    """The message of an error that the code raises, with `ANY` in place of values."""

    code: int
    text: str
    place: str


@cache
def entries() -> list[Entry]:
    """Return the rows of the page, with the exit code of their section."""
    found = []
    for section in PAGE.read_text().split("## Exit code ")[1:]:
        for line in re.findall(r"^\| (`.+`) \| .+ \|$", section, re.MULTILINE):
            found.append(Entry(int(section.split()[0]), tuple(re.findall("`([^`]+)`", line))))
    return found


def raised() -> Iterator[Message]:
    """Return the messages that the code raises, except those of ``sandbox`` and ``demo``.

    A local variable in a message is replaced by the text that is assigned to it.
    """
    codes = {name: each.exit_code for name, each in vars(errors).items() if hasattr(each, "exit_code")}
    for path, tree in modules().items():
        if path.parts[0] in ("sandbox", "demo"):
            continue
        for scope in [node for node in ast.walk(tree) if isinstance(node, _Function)]:
            texts = _assigned(scope)
            for node in ast.walk(scope):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in codes:
                    text = ANY.join(_template(argument, texts) for argument in node.args)
                    yield Message(codes[node.func.id], text, f"{path}:{node.lineno}")


@cache
def all_texts() -> frozenset[str]:
    """Return all texts in the code, with `ANY` in place of values."""
    return frozenset(
        _template(node, {})
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr | ast.Constant)
    )


def _assigned(scope: _Function) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts[node.targets[0].id] = _template(node.value, texts)
    return texts


def _template(node: ast.expr, texts: Mapping[str, str]) -> str:
    """Return the text of an expression; `ANY` for what is not a text. texts: the texts of local variables."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(each, texts) for each in node.values)
    if isinstance(node, ast.FormattedValue):
        return _template(node.value, texts)
    if isinstance(node, ast.Name):
        return texts.get(node.id, ANY)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ANY
