"""The modules of the package, parsed once for all tests of a process that look at them."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "migrate_groups"


def parsed(paths: Iterable[Path]) -> Mapping[Path, ast.Module]:
    """Return the parsed files, in the order of ``paths``."""
    # If a destructor that the garbage collector runs meanwhile fails, pytest formats its traceback with `ast.parse`,
    # and Python 3.11.7 raises SystemError for an `ast.parse` within another. Without the collector it is faster, too.
    gc.disable()
    try:
        return {path: ast.parse(path.read_text(), str(path)) for path in paths}
    finally:
        gc.enable()


@cache
def modules() -> Mapping[Path, ast.Module]:
    """Return the package's modules, by their path in the package, such as ``kafka/private.py``, sorted."""
    return {path.relative_to(PACKAGE): tree for path, tree in parsed(sorted(PACKAGE.rglob("*.py"))).items()}


@cache
def texts() -> Mapping[Path, tuple[ast.Constant, ...]]:
    """Return the constants of each module, without its docstrings."""
    found = {}
    for path, tree in modules().items():
        nodes = [*ast.walk(tree)]
        docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
        found[path] = tuple(node for node in nodes if isinstance(node, ast.Constant) and node not in docstrings)
    return found
