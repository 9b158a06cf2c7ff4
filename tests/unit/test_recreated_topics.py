"""If a topic is recreated while a run is interrupted, the old topic's offsets are never written to the new topic."""

from __future__ import annotations

import pytest

from migrate_groups.migration.hand_over import migrate
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.topics import recreated_topics
from tests.support.connected import MIGRATE, PARTITION, Connected

DELETE = ("delete-offsets", "--group", "old", "--topic", "t", "--settle", "0s", "--yes")
RECEIPT = "old.delete-offsets.receipt.json"
SECOND, KEPT = TopicPartition("t", 1), TopicPartition("kept", 0)


def test_a_topic_counts_as_recreated_only_if_both_ids_are_known_and_differ():
    """A topic without an earlier or a current id, and a topic that does not exist now, do not count as recreated."""
    then = [("same", "1"), ("new", "1"), ("once unknown", None), ("once empty", ""), ("now unknown", "1")]
    now = {"same": "1", "new": "2", "once unknown": "2", "once empty": "2", "added": "2"}
    assert recreated_topics(then, now) == {"new"}


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    """The command line on the in-memory cluster. Group ``old`` has committed in two partitions of topic ``t``."""
    made = Connected(tmp_path, monkeypatch)
    made.cluster.add_partitions("t", 2)
    made.cluster.produce("t", 1, 10)
    made.cluster.commit("old", SECOND, 7)
    return made


def interrupt(*_, **__):
    raise KeyboardInterrupt


def recreate(cli: Connected) -> None:
    cli.cluster.delete_topic("t")
    cli.cluster.create_topic("t", 2)
    for number in range(2):
        cli.cluster.produce("t", number, 30)


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_resumed_deletion_does_not_restore_offsets_of_the_old_topic(cli, monkeypatch, is_deleted):
    """If a topic is recreated before `delete-offsets` is resumed, `rollback` restores none of the old topic's offsets.

    It restores the offset that the group had committed in the new topic.
    """
    cli.cluster.create_topic("kept", 1)
    cli.cluster.commit("old", KEPT, 0)
    delete = cli.cluster.delete

    def stop_in_between(group, partitions):
        if is_deleted:
            delete(group, partitions)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "delete", stop_in_between)
        cli(*DELETE, code=130)
    recreate(cli)
    cli.cluster.commit("old", SECOND, 3)
    cli(*DELETE)
    assert [*cli.cluster.offsets("old")] == [KEPT]
    cli("rollback", RECEIPT, "--yes")
    found = {partition: each.offset for partition, each in cli.cluster.offsets("old").items() if each}
    assert found == {KEPT: 0, SECOND: 3}


def test_a_resumed_deletion_without_offsets_of_the_new_topic_has_nothing_to_roll_back(cli, monkeypatch):
    """If a topic is recreated before `delete-offsets` is resumed, and has no new commit, `rollback` is refused.

    It ends with exit code 3, and says that the receipt has no deleted offset.
    """
    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "delete", interrupt)
        cli(*DELETE, code=130)
    recreate(cli)
    cli(*DELETE)
    error = cli.fails("rollback", RECEIPT, "--yes", code=3)
    assert "the receipt has no deleted offset, for instance because the topic was deleted and created again" in error
    assert cli.offset("old") is None


def test_a_deletion_that_is_resumed_without_the_topic_keeps_its_id(cli, monkeypatch):
    """If a topic is missing when `delete-offsets` is resumed, and is created again afterwards, `rollback` is refused.

    It ends with exit code 3, because the receipt keeps the id of the old topic.
    """
    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "delete", interrupt)
        cli(*DELETE, code=130)
    cli.cluster.delete_topic("t")
    cli(*DELETE)
    cli.cluster.create_topic("t", 2)
    assert "topics: t: deleted, or created again, since the deletion" in cli.fails("rollback", RECEIPT, "--yes", code=3)
    assert cli.offset("old") is None


def test_a_resumed_hand_over_does_not_write_offsets_of_the_old_topic(cli, monkeypatch):
    """If a topic is recreated after `migrate` was interrupted at the write, a re-run ends with exit code 2.

    The error names the topic. With another run directory, the offset committed in the new topic is handed over.
    """
    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets", interrupt)
        cli(*MIGRATE, code=130)
    recreate(cli)
    cli.cluster.commit("old", PARTITION, 2)
    for option in ("--dry-run", "--yes"):
        error = cli.fails("migrate", "split.toml", option, code=2)
        assert "another migration (topic t was deleted and created again)" in error
    assert cli.offset("new") is None
    cli.cluster.commit("old", SECOND, 0)
    cli(*MIGRATE, "--run-dir", "another")
    assert cli.offset("new") == 2


def test_the_baseline_does_not_restore_offsets_of_the_old_topic(cli, monkeypatch):
    """If `migrate` is interrupted, its topic recreated and its old group deleted, a re-run restores no old offset.

    Even with ``--on-removed restore`` it ends with exit code 3.
    """
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "write_plan", interrupt)
        cli(*MIGRATE, code=130)
    recreate(cli)
    cli.cluster.delete_group("old")
    error = cli.fails(*MIGRATE, "--on-removed", "restore", code=3)
    assert "complete: 2 partitions without a committed offset: t-0, t-1; pass --on-uncommitted earliest" in error
    assert cli.offset("new") is None
