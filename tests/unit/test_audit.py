"""``audit`` refuses what it cannot prove on this cluster, before it reads any record."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from migrate_groups.cli import audited_logs
from migrate_groups.cli.commands import audit
from migrate_groups.cli.connect import Connection
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.spark.offsets_topic.audit_result import Audit, OfLog
from tests.support.connected import MIGRATE, Connected
from tests.support.in_memory import InMemoryCluster


class OtherCluster(InMemoryCluster):
    """A cluster whose id is not that in the receipt."""

    def cluster_id(self) -> str:
        return "another"


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    """The command line after a migration. ``audit`` reads ``cli.cluster``, but no log of the offsets topic."""
    made = Connected(tmp_path, monkeypatch)
    made.cluster.create_topic(OFFSETS_TOPIC, 50)
    made(*MIGRATE)

    @contextmanager
    def open_offsets_topic(_):
        yield made.cluster, None

    monkeypatch.setattr(Connection, "open_offsets_topic", open_offsets_topic)
    return made


def test_a_receipt_of_another_cluster_is_refused(cli):
    """The receipt of another cluster is refused, with both cluster ids. Groups there may have the same names."""
    ours, cli.cluster = cli.cluster.cluster_id(), OtherCluster()
    refusal = cli.fails("audit", "split.toml.run", code=2)
    assert refusal == f"error: this is cluster another; the receipt is of cluster {ours}"


def test_an_offsets_topic_with_another_partition_count_is_exit_7(cli):
    """With another partition count, groups map to other partitions of the offsets topic: exit 7, with both numbers."""
    cli.cluster.delete_topic(OFFSETS_TOPIC)
    cli.cluster.create_topic(OFFSETS_TOPIC, 25)
    assert f"{OFFSETS_TOPIC} had 50 partitions, and has 25" in cli.fails("audit", "split.toml.run", code=7)


@pytest.mark.parametrize(
    ("new", "code", "said"),
    [
        ({"no-commit-yet": 2}, 7, "error: not proven yet: no new group has committed since the hand-over: start the"),
        ({"no-commit-yet": 1, "starts-at-snapshot": 1}, 0, "not proven yet for 1 partition without a commit\nnext: a"),
        ({"starts-at-snapshot": 2}, 0, "proven: the old group stayed stopped, and every new group began at the offs"),
    ],
)
def test_an_audit_without_a_problem_ends_with_its_verdict(cli, monkeypatch, new, code, said):
    """Until a new group has committed, nothing is proven: exit 7 without advice to delete offsets. Then exit 0."""
    found = Audit(
        summary=(),
        doubtful=(),
        late_commits=(),
        log=OfLog((), (), ()),
        rewinds=0,
        problems=0,
        undetermined=0,
        old={"stopped": 2},
        new=new,
    )
    monkeypatch.setattr(audited_logs, "land_side", lambda *_: None)
    monkeypatch.setattr(audit, "_prove", lambda *_: found)
    shown = cli("audit", "split.toml.run", code=code)
    assert said in shown.stderr
    assert ("delete-offsets" in shown.stderr) == (code == 0)
