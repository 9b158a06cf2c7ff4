"""The order in which the package's folders ("rooms") may import each other; slow packages are imported late."""

from __future__ import annotations

import ast
import builtins
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

import pytest

from tests.support import sources

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "migrate_groups"
# From the ground up: a module imports from its own room and from the rooms before it in this list.
GROUND = ["errors", "text", "clock", "schema", "arguments", "applications"]
ROOMS = [
    "model",
    "mirrors",
    "snapshots",
    "planning",
    "spark",
    "files",
    "migration",
    "kafka",
    "sandbox",
    "demo",
    "show",
    "api",
    "cli",
]
# These rooms know the ground alone: Spark's is submitted to a cluster, and the sandbox is usable by itself.
APART = {"spark", "sandbox"}
# Programs that other processes run; and Spark's session, because its JVM takes its address only from the environment.
PROGRAMS = {"kafka.child_program", "sandbox.supervisor", "spark.session"}
# The machine's clock, which callers pass in; and that of tokens, whose times a token server and a broker compare with
# theirs.
CLOCK = {"api.system_clock", "kafka.credentials.oauth"}
# What the library leaves to its caller: printing, exiting, reading the environment or the clock.
CALLERS = {
    *("print", "input", "exit", "quit", "sys.exit", "os._exit"),
    *("sys.stdin", "sys.stdout", "sys.stderr", "sys.argv"),
    *("os.environ", "os.environb", "os.getenv", "os.putenv"),
    *("time.time", "time.time_ns", "time.localtime", "time.gmtime"),
    *("datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow", "datetime.date.today"),
}


@cache
def modules() -> dict[str, ast.Module]:
    """Return the package's modules, by dotted name without the name of the package, such as ``kafka.ports``."""
    return {".".join(path.with_suffix("").parts): tree for path, tree in sources.modules().items()}


def imported(module: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each name that an import binds anywhere in the module, with the full name of the imported object."""
    package = f"migrate_groups.{module}".rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, alias.name
                yield alias.name.partition(".")[0], alias.name.partition(".")[0]  # the name that `import os.path` binds
        if isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                yield alias.asname or alias.name, f"{origin}.{alias.name}"


def rooms_of(module: str, tree: ast.Module) -> set[str]:
    """Return the rooms (folders) of this package from which a module imports."""
    names = [name.split(".") for _, name in imported(module, tree)]
    return {name[1] for name in names if name[0] == "migrate_groups" and len(name) > 1}


def upward(module: str, tree: ast.Module) -> set[str]:
    """Return the rooms (folders) from which a module must not import, but does."""
    room = module.partition(".")[0]
    below = GROUND if room in APART else [*GROUND, *ROOMS[: ROOMS.index(room)], "__version__"]
    return rooms_of(module, tree) - {room, *below}


def files_of(module: str, tree: ast.Module) -> set[str]:
    """Return the modules of this package that a module imports, or imports names from."""
    names = {name.removeprefix("migrate_groups.") for _, name in imported(module, tree)}
    return {found for name in names for found in (name, name.rpartition(".")[0]) if found in modules()} - {module}


def cycles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return each set of nodes that can all be reached from one another."""
    reached = {node: set(others) for node, others in graph.items()}
    for through in graph:
        for others in reached.values():
            if through in others:
                others |= reached[through]
    return {
        frozenset({node, *(other for other in reached[node] if node in reached.get(other, ()))})
        for node in graph
        if node in reached[node]
    }


def calls_left_to_the_caller(module: str, tree: ast.Module) -> set[str]:
    """Return the names of `CALLERS`, such as ``print``, that a module uses, under whatever alias."""
    bound = {name: name for name in vars(builtins)} | dict(imported(module, tree))
    used = {bound[node.id] for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in bound}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            used.add(f"{bound.get(first, '')}.{rest}")
    return used & CALLERS


def test_imports_point_downwards():
    """A module in a room (folder) imports only from `GROUND`, its own room, and earlier rooms in `ROOMS`.

    Modules in spark and sandbox import only from `GROUND` and their own room.
    """
    found = {module: upward(module, tree) for module, tree in modules().items() if module.partition(".")[0] in ROOMS}
    assert {module: names for module, names in found.items() if names} == {}
    assert {module.partition(".")[0] for module in found} == set(ROOMS)


def test_there_are_no_circular_imports():
    """Neither modules nor folders import one another in a circle, not even inside functions.

    Imports between a folder and its subfolders are ignored. A module in no folder is treated as a folder.
    """
    files = {module: files_of(module, tree) for module, tree in modules().items()}
    folders: dict[str, set[str]] = {}
    for module, others in files.items():
        own = module.rpartition(".")[0] or module
        theirs = {other.rpartition(".")[0] or other for other in others}
        nested = {other for other in theirs if f"{own}.".startswith(f"{other}.") or f"{other}.".startswith(f"{own}.")}
        folders.setdefault(own, set()).update(theirs - nested)
    assert cycles(files) == set()
    assert cycles(folders) == set()
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {frozenset("abc")}


@pytest.mark.parametrize(
    "line",
    [
        "from migrate_groups.cli.app import main",
        "from migrate_groups.cli import app",
        "from migrate_groups import cli",
        "import migrate_groups.cli.app",
        "import migrate_groups.cli.app as app",
        "from ..cli import app",
        "from .. import cli",
        "def later():\n    from migrate_groups.cli import app",
    ],
)
def test_every_form_of_an_upward_import_is_detected(line):
    """`upward` detects an import of a later room: absolute or relative, of a module or a name, or in a function."""
    assert upward("planning.plan", ast.parse(line)) == {"cli"}
    assert upward("cli.app", ast.parse(line)) == set()


def test_no_function_has_too_many_parameters():
    """A function has at most eight parameters. Commands are exempt, because their parameters are options."""
    crowded = {
        f"{module}.{node.name}": len(names)
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not module.startswith("cli.commands")
        for names in [{each.arg for each in (*node.args.args, *node.args.kwonlyargs)} - {"self"}]
        if len(names) > 8
    }
    assert crowded == {}


def loaded_by(*arguments: str) -> set[str]:
    """Run a command of migrate-groups in a new Python process, and return the modules that the process has loaded."""
    program = (
        "import sys\nfrom migrate_groups.cli.app import main\n"
        "try: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
    return set(done.stderr.split())


def test_help_loads_nothing_slow():
    """``--help`` imports no Kafka client, no pyarrow and no pyspark."""
    loaded = loaded_by("--help")
    assert "migrate_groups.cli.registry" in loaded
    assert {"pyarrow", "pyspark", "kafka", "confluent_kafka", "tenacity", "numpy"} & loaded == set()


def test_describe_loads_only_the_clients_that_it_uses():
    """``describe`` without TLS and SASL loads kafka-python, but no module for logins, writes or tables."""
    loaded = loaded_by("describe", "orders", "--bootstrap-server", "127.0.0.1:1")
    assert {"kafka", "migrate_groups.kafka.reader", "migrate_groups.migration.reading.status"} <= loaded
    clients = ("writer", "second_client", "records", "offsets_topic")
    logins = ("jaas", "tls", "oauth", "kerberos")
    unused = {
        *("pyarrow", "urllib.request"),
        *(f"migrate_groups.kafka.{name}" for name in clients),
        *(f"migrate_groups.kafka.credentials.{name}" for name in logins),
    }
    assert unused & loaded == set()


def test_only_the_command_line_prints_exits_or_reads_the_environment():
    """Outside of cli and demo, no module prints, exits, or reads the clock or the environment.

    Only the modules in `PROGRAMS` and `CLOCK` are exempt.
    """
    found = {module: calls_left_to_the_caller(module, tree) for module, tree in modules().items()}
    library = {module for module in found if module.partition(".")[0] not in ("cli", "demo")} - PROGRAMS - CLOCK
    assert {module: found[module] for module in library if found[module]} == {}
    assert {module for module in PROGRAMS | CLOCK if not found.get(module)} == set(), "exempt without a need"


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("print(1)", "print"),
        ("import sys\nsys.exit(1)", "sys.exit"),
        ("from sys import exit as leave\nleave()", "sys.exit"),
        ("import os\nos.environ['A']", "os.environ"),
        ("from os import environ\nenviron.get('A')", "os.environ"),
        ("import os as system\nsystem.getenv('A')", "os.getenv"),
        ("from datetime import datetime\ndatetime.now()", "datetime.datetime.now"),
        ("import datetime\ndatetime.datetime.now()", "datetime.datetime.now"),
        ("import time\ntime.time()", "time.time"),
        ("from time import time\ntime()", "time.time"),
        ("import sys\nsys.stderr.write('')", "sys.stderr"),
        ("import sys\n\ndef f(to=sys.stdout): ...", "sys.stdout"),
        ("# print(1), os.environ\n'sys.exit'\nfootprint = 1\nself.time.time()", None),
    ],
)
def test_forbidden_calls_are_detected_under_any_alias(source, used):
    """A forbidden call or attribute is detected under any import alias.

    Comments, strings and other names are ignored.
    """
    assert calls_left_to_the_caller("planning.plan", ast.parse(source)) == ({used} if used else set())


def test_every_test_has_a_docstring():
    """Each test function in tests/ has a docstring."""
    tests = [
        (path.name, node)
        for path, tree in sources.parsed((ROOT / "tests").rglob("test_*.py")).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert [f"{name}: {node.name}" for name, node in tests if not ast.get_docstring(node)] == []
    assert len(tests) > 500
