"""Another client commits between any two requests of a command: the command notices the new offset."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from migrate_groups.api.system_clock import SystemClock
from tests.support.clock import FakeClock
from tests.support.connected import APPLY, MIGRATE, PARTITION, Connected
from tests.support.in_memory import Asked

RUN = "split.toml.run"
WAYS_BACK = {
    "rollback": ("rollback", RUN, "--yes"),
    "hand-back": ("hand-back", RUN, "--yes", "--wait", "0s"),
    "delete-offsets": ("delete-offsets", RUN, "--yes"),
}
QUESTIONS = {
    *("describe_groups", "committed", "log_ranges"),
    *("describe_topics", "permissions", "cluster_id", "alter_offsets", "delete_offsets"),
}


class Interfered(Asked):
    """A cluster that counts requests and calls ``happens`` right before request number ``due``."""

    def __init__(self) -> None:
        super().__init__()
        self.requests, self.due, self.at = 0, 0, ""
        self.happens: Callable[[], object] = lambda: None

    def before_request(self, name: str) -> None:
        if name in QUESTIONS:
            self.requests += 1
            if self.requests == self.due:
                self.at = name
                self.happens()

    def interfere(self, due: int, happens: Callable[[], object]) -> None:
        self.requests, self.due, self.happens = 0, due, happens


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Return a function that makes a new command line, connected to a new `Interfered` cluster.

    Its clock moves only while it sleeps, because on a busy machine a guard of 1 ms may otherwise end before it reads.
    """
    number, clock = 0, FakeClock()
    for name in ("now", "monotonic", "sleep"):
        monkeypatch.setattr(SystemClock, name, lambda _, *given, name=name: getattr(clock, name)(*given))

    def made() -> Connected:
        nonlocal number
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        return Connected(folder, monkeypatch, Interfered())

    return made


@pytest.mark.parametrize("command", [MIGRATE, APPLY])
def test_a_source_commit_at_any_moment_of_a_hand_over_is_noticed(cli, command):
    """If the source group commits during a hand-over, the new offset is handed over or the exit code is not 0.

    This does not apply to a commit after the last reading of the source group. Only the target groups and their topics
    are read after it.
    """
    for due in range(1, 200):
        here = cli()
        here.cluster.interfere(due, lambda here=here: here.cluster.commit("old", PARTITION, 7))
        code, requests = here.outcome(*command)[0], here.cluster.requests
        moved = here.offset("old") == 7
        if requests > due + 2:
            as_moved = here.offset("new") == here.offset("old")
            assert as_moved if code == 0 else moved, f"request {due} {here.cluster.at}: exit {code}"
        if not moved:
            break
    assert 12 < due < 199


@pytest.mark.parametrize("verb", WAYS_BACK)
def test_a_target_commit_at_any_moment_of_a_way_back_is_not_lost(cli, verb):
    """If a target group commits during rollback, hand-back or delete-offsets, the commit is kept or the command fails.

    The exception is a commit between the last reading and the deletion, because brokers delete whatever is committed.
    """
    for due in range(1, 200):
        here = cli()
        here(*MIGRATE)
        here.cluster.interfere(due, lambda here=here: here.cluster.commit("new", PARTITION, 8))
        code = here.outcome(*WAYS_BACK[verb])[0]
        moved = here.cluster.requests >= due
        if not moved:
            assert code == 0
            break
        if here.cluster.at == "delete_offsets":
            continue
        offsets = {here.offset("old"), here.offset("new")}
        assert 8 in offsets or code != 0, f"request {due} {here.cluster.at}: exit {code}, at {offsets}"
    assert 8 < due < 199
