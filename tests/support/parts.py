"""A pytest plugin: runs tests that share a slow fixture on one worker, skips long tests, prints the time by folder.

On Linux it also prints how long all cores were busy, because most work is done by Spark and brokers, whose CPU time
the shell's `time` leaves out if they are killed.

It also prints a failure as soon as it happens, so that a run that is ended from outside shows it too.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# The parts in the order in which they run, the longest first.
PARTS = ("spark", "broker", "e2e", "browser", "contract", "unit")
_SPARK_IN_E2E = (
    "test_advise",
    "test_audit",
    "test_history",
    "test_python_api",
    "test_python_docs",
    "test_reconcile",
    "test_snapshot_at",
)
_SPARK_OF_THEIR_OWN = ("test_class_data", "test_cluster")
_BROKERS_OF_ITS_KIND = {
    "secured": ("test_acls", "test_oauth", "test_security", "test_stores"),
    "guarded": ("test_hold", "test_permissions"),
}
# The longest modules run first, so that all workers end at about the same time.
_LONGEST = (
    "spark",
    "broker/test_faults",
    "spark/test_class_data",
    "spark/test_cluster",
    "e2e/test_demo",
    "e2e/test_pages",
)


_STATISTICS = Path("/proc/stat")


def _busy_and_idle() -> tuple[float, float]:
    """Return for how many seconds the cores of this machine were busy and idle since it started, added up."""
    user, nice, system, idle, waiting, *interrupts = map(int, _STATISTICS.read_text().split("\n")[0].split()[1:8])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + sum(interrupts)) / ticks, (idle + waiting) / ticks


_AT_START = _busy_and_idle() if _STATISTICS.exists() else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run also what is marked as long")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the longest groups of tests first. Skip tests that are marked as long, unless ``--long`` is given."""
    for item in items:
        if item.get_closest_marker("long") and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="--long"))
    items.sort(key=lambda item: _place(item.path))


class Groups(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """A scheduler that gives each worker whole groups of tests in order, and unit tests one by one.

    The tests of a group share a fixture that starts slowly: Spark, or a special broker. `--dist loadgroup` of
    pytest-xdist 3.8.0 would do this, but does not work with pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _group(Path(nodeid.partition("::")[0])) or nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Groups:
    return Groups(config, log)


def _part(path: Path) -> str:
    return next((part for part in path.parts[::-1] if part in PARTS), "unit")


def _group(path: Path) -> str:
    """Return the name of the group (see `Groups`) to which a module's tests belong; empty for unit tests."""
    part, module = _part(path), path.stem
    borrows = module not in _SPARK_OF_THEIR_OWN if part == "spark" else part == "e2e" and module in _SPARK_IN_E2E
    if borrows:
        return "spark"
    for kind, modules in _BROKERS_OF_ITS_KIND.items():
        if part == "broker" and module in modules:
            return kind
    return "" if part == "unit" else f"{part}/{module}"


def _place(path: Path) -> tuple[int, int]:
    group = _group(path)
    return (_LONGEST.index(group) if group in _LONGEST else len(_LONGEST)), PARTS.index(_part(path))


class _Failures:
    """Prints each failed test, with the reason, when its report comes."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._terminal.ensure_newline()
            self._terminal.section(f"failed: {report.nodeid}", sep="_")
            report.toterminal(self._terminal._tw)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if terminal := config.pluginmanager.get_plugin("terminalreporter"):
        config.pluginmanager.register(_Failures(terminal))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the number of tests in each folder and the sum of their durations."""
    seconds: defaultdict[str, float] = defaultdict(float)
    tests: defaultdict[str, set[str]] = defaultdict(set)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                part = _part(Path(report.location[0]))
                seconds[part] += report.duration
                tests[part].add(report.nodeid)
    terminalreporter.section("time of each part")
    for part in sorted(seconds, key=seconds.__getitem__, reverse=True):
        terminalreporter.line(f"{seconds[part]:7.1f}s {part}, {len(tests[part])} tests")
    if _AT_START is not None:
        busy, idle = (now - before for now, before in zip(_busy_and_idle(), _AT_START, strict=True))
        terminalreporter.line(f"cores of this machine: busy {busy:.0f}s, idle {idle:.0f}s")
