"""Commands are refused on a cluster other than that of their receipt, even if groups and topics have the same names."""

from __future__ import annotations

import pytest

from migrate_groups.cli.commands import ways_back
from migrate_groups.errors import ClusterUnavailable
from tests.support.clock import FakeClock
from tests.support.connected import APPLY, MIGRATE, PARTITION
from tests.support.in_memory import InMemoryCluster

RUN = "split.toml.run"
VERDICTS = ("not applicable", "pass", "warn", "not known", "pending", "refuse")


def other_cluster(**offsets: int) -> InMemoryCluster:
    """Return a second cluster, ``staging``, which also has a topic ``t``. offsets: committed offsets by group."""
    made = InMemoryCluster("staging")
    made.create_topic("other", 1)  # so that the topic ids differ from those of the run
    made.create_topic("t", 1)
    made.produce("t", 0, 100)
    for group, offset in offsets.items():
        made.commit(group, PARTITION, offset)
    return made


def test_a_hand_back_on_another_cluster_is_refused(cli):
    """On a cluster other than that of the receipt, `hand-back` writes nothing and ends with exit code 3.

    On the receipt's cluster, the same command then hands the offset back.
    """
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 8)
    right, cli.cluster = cli.cluster, other_cluster(old=20, new=70)
    for option in ("--dry-run", "--yes"):
        error = cli.fails("hand-back", RUN, option, code=3)
        assert "cluster: the receipt is from cluster in-memory, this is staging: check --bootstrap-server" in error
    assert cli.offset("old") == 20
    cli.cluster = right
    cli("hand-back", RUN, "--yes")
    assert cli.offset("old") == 8


def test_a_watch_is_repeated_on_the_cluster_of_the_run_only(cli, monkeypatch):
    """If the watch after `rollback` got no answer, only `rollback` on the same cluster repeats the watch.

    On another cluster, `rollback` is refused with exit code 3. On the same cluster, it then reports what the new group
    has committed.
    """
    cli(*MIGRATE)

    def silent(group: str) -> None:
        raise ClusterUnavailable("no answer")

    with monkeypatch.context() as patched:
        clock = FakeClock(lambda: patched.setattr(cli.cluster, "description", silent))
        patched.setattr(ways_back, "SystemClock", lambda: clock)
        cli.fails("rollback", RUN, "--yes", code=4)
    cli.cluster.commit("new", PARTITION, 7)
    right, cli.cluster = cli.cluster, other_cluster()
    error = cli.fails("rollback", RUN, "--yes", code=3)
    assert (
        "the receipt is from cluster in-memory, this is staging: check --bootstrap-server; nothing was written" in error
    )
    cli.cluster = right
    assert "t-0 no offset → 7; stop its consumers" in cli.fails("rollback", RUN, "--yes", code=4)


@pytest.mark.parametrize("old", [5, 20])
def test_a_migrate_on_another_cluster_is_not_the_hand_over(cli, old):
    """If the same `migrate` is run on another cluster, it is refused with exit code 2, as another migration.

    It does not call the offsets handed over already, or records processed twice.
    """
    cli(*MIGRATE)
    cli.cluster = other_cluster(old=old, new=70)
    for option in ("--dry-run", "--yes"):
        error = cli.fails("migrate", "split.toml", option, code=2)
        assert "is the receipt of another migration (the cluster was in-memory, this is staging)" in error
    assert cli.offset("new") == 70


def test_an_apply_on_another_cluster_is_not_the_hand_over(cli):
    """If the same `apply` is run on another cluster, it is refused with exit code 2, as another migration."""
    cli(*APPLY)
    cli.cluster = other_cluster(old=5, new=9)
    assert "(the cluster was in-memory, this is staging)" in cli.fails(*APPLY, code=2)
    assert cli.offset("new") == 9


def test_a_rollback_on_another_cluster_judges_nothing_else(cli):
    """If `rollback` is run on another cluster, the wrong cluster is the only finding (exit code 3).

    Topics and groups of the same names are others there, so that further findings would be false.
    """
    cli(*MIGRATE)
    cli.cluster = other_cluster(old=5, new=9)
    done = cli("rollback", RUN, "--dry-run", code=3)
    assert [line.split()[:2] for line in done.stdout.splitlines() if line.startswith(VERDICTS)] == [
        ["refuse", "cluster"]
    ]


def test_a_deletion_resumed_on_another_cluster_judges_nothing_else(cli):
    """If `delete-offsets --group` is resumed on another cluster, the wrong cluster is the only finding (exit code 3).

    This also holds if the group or its topics do not exist there.
    """
    delete = ("delete-offsets", "--group", "old", "--topic", "t", "--settle", "0s")
    cli(*delete, "--yes")
    cli.cluster = InMemoryCluster("staging")
    error = cli.fails(*delete, "--dry-run", code=3)
    assert "the receipt is from cluster in-memory, this is staging: check --bootstrap-server" in error
