"""The structure: imports point downwards only, and slow packages load where they are needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "migrate_groups"
# From the top down: a module imports from its own layer and from those below.
LAYERS = ["cli", "demo", "sandbox", "show", "spark", "migration", "files", "plan", "offsets", "cluster"]
BASE = {"errors", "text", "clock"}


def imports(path: Path) -> set[str]:
    """Return the modules of this package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "migrate_groups":
            names = [f"migrate_groups.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("migrate_groups.")}
    return found


def test_imports_point_downwards():
    """No module imports from a layer above its own; spark and sandbox know nothing of the other layers."""
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        layer = path.relative_to(PACKAGE).parts[0]
        if layer not in LAYERS:
            continue
        allowed = {*LAYERS[LAYERS.index(layer) :], *BASE, "__version__"}
        if layer in ("spark", "sandbox"):
            allowed = {layer, *BASE}
        wrong += [f"{path.relative_to(PACKAGE)} imports {name}" for name in imports(path) - allowed]
    assert wrong == []


def test_help_loads_nothing_slow():
    """``--help`` imports neither a Kafka client nor pyarrow nor pyspark."""
    code = """
import sys
sys.argv = ["migrate-groups", "--help"]
from migrate_groups.cli.app import main
try:
    main()
except SystemExit:
    pass
slow = {"pyarrow", "pyspark", "kafka", "confluent_kafka", "tenacity", "numpy"} & set(sys.modules)
assert not slow, slow
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PACKAGE.parent, stdout=subprocess.DEVNULL)


def test_only_the_command_line_prints_exits_or_reads_the_environment():
    """The library never prints, exits, or reads clock or environment behind the caller's back.

    Exempt: programs of their own, which other processes run (the witness's child, the sandbox's keeper, Spark's job);
    and Spark's session, whose JVM takes its address from the environment alone.
    """
    programs = {"cluster/witness_child.py", "sandbox/keeper.py", "spark/job.py", "spark/session.py"}
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        if name.startswith(("cli/", "demo/")) or name in programs or name == "__main__.py":
            continue
        source = path.read_text()
        wrong += [
            f"{name}: {word}"
            for word in ("print(", "sys.exit", "os.environ", "datetime.now", "time.time(", "sys.std")
            if word in source
        ]
    assert wrong == []


def test_every_test_says_what_behaviour_it_states():
    """Each test has a docstring."""
    silent = [
        f"{path.name}: {node.name}"
        for path in (PACKAGE.parent / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not ast.get_docstring(node)
    ]
    assert silent == []
