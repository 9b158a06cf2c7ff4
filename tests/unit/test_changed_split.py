"""``migrate`` with a changed split and the run directory of an earlier run, after a target group has started."""

from __future__ import annotations

import pytest

from migrate_groups.errors import UsageError
from migrate_groups.files import split_toml
from migrate_groups.files.runs import receipt_json
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.migrate import plan_migration
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.intent import split_differences
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.connected import MIGRATE, PARTITION, Connected
from tests.support.move import OPTIONS, THERE, Move
from tests.support.rows import row

STAY = '[stay]\ntopics = ["u.1"]\n'
NEW, MORE = '[[target]]\ngroup = "new"\ntopics = ["t", "v.*"]\n', '[[target]]\ngroup = "more"\ntopics = ["u.*"]\n'


def write_split(cli: Connected, *targets: str, source: str = "old", on_uncommitted: str = "refuse") -> None:
    options = f'[options]\nsettle = "0s"\nguard = "1ms"\non_uncommitted = "{on_uncommitted}"\n'
    (cli.folder / "split.toml").write_text(f'source = "{source}"\n{"".join(targets)}{options}')


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    """A command line after ``old`` has handed over ``t`` and ``v.1`` to ``new``, which has started.

    ``old`` keeps ``u.1``.
    """
    made = Connected(tmp_path, monkeypatch)
    for topic in ("u.1", "v.1"):
        made.cluster.create_topic(topic, 1)
        made.cluster.commit("old", TopicPartition(topic, 0), 0)
    write_split(made, NEW, STAY)
    made(*MIGRATE)
    made.cluster.commit("new", PARTITION, 8)
    return made


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ((NEW, MORE), "topic u.1 from old to more is new"),
        ((NEW.replace("v.*", "*"),), "topic u.1 from old to new is new"),
        ((NEW, MORE.replace("u.*", "w.*"), STAY), "topic w.* from old to more is new"),
        ((NEW.replace(', "v.*"', ""), STAY), "topic v.1 from old to new is missing now"),
        ((NEW.replace('"new"', '"other"'), STAY), "topic t from old to other is new"),
    ],
)
def test_another_split_is_not_handed_over_already(cli, targets, said):
    """If the split has another topic or target group, a re-run ends with exit code 2 and names the difference."""
    write_split(cli, *targets)
    for option in ("--dry-run", "--yes"):
        error = cli.fails("migrate", "split.toml", option, code=2)
        assert "split.toml.run/receipt.json is the receipt of another migration" in error
        assert said in error


def test_another_source_group_is_not_handed_over_already(cli):
    """If the split names another source group, a second `migrate` ends with exit code 2 and names both groups."""
    cli.cluster.commit("other", TopicPartition("u.1", 0), 3)
    write_split(cli, MORE, source="other")
    assert "another migration (the old group was old, is other)" in cli.fails(*MIGRATE, code=2)


def test_the_same_split_in_other_words_is_handed_over_already(cli):
    """If other patterns give each topic to the same group as before, a second `migrate` ends with exit code 0.

    This holds even if the source group has been deleted.
    """
    cli.cluster.delete_group("old")
    write_split(cli, NEW.replace("v.*", "v.1"), STAY)
    assert "handed over already, and started since: group new; nothing was written" in cli(*MIGRATE).stderr


def test_a_topic_without_a_commit_that_was_left_out_is_no_other_split(tmp_path, monkeypatch):
    """If the split now also names a topic without a committed offset, a second `migrate` ends with exit code 0.

    With ``on_uncommitted = "leave"``, the receipt does not contain such a topic.
    """
    cli = Connected(tmp_path, monkeypatch)
    cli.cluster.create_topic("v.1", 1)
    cli.cluster.create_topic("w", 1)
    cli.cluster.commit("old", TopicPartition("w", 0), 0)
    write_split(cli, NEW.replace("v.*", "w"), on_uncommitted="leave")
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 8)
    write_split(cli, NEW.replace("v.*", 'w", "v.1'), on_uncommitted="leave")
    assert "handed over already" in cli(*MIGRATE).stderr


@pytest.mark.parametrize(
    ("on_uncommitted", "differences"), [("refuse", ["topic v.2 from old to new is new"]), ("leave", [])]
)
def test_a_topic_without_a_commit_before_the_hand_over(tmp_path, monkeypatch, on_uncommitted, differences):
    """If the split now also names a topic that had no committed offset before the hand-over, this is a difference.

    With ``on_uncommitted = "leave"`` it is none, because such a topic is not handed over.
    """
    cli = Connected(tmp_path, monkeypatch)
    write_split(cli, NEW.replace(', "v.*"', ""), on_uncommitted=on_uncommitted)
    cli(*MIGRATE)
    receipt = receipt_json.load(cli.folder / "split.toml.run" / "receipt.json")
    write_split(cli, NEW, on_uncommitted=on_uncommitted)
    spec = split_toml.load(cli.folder / "split.toml").spec
    before = SnapshotTable.of_rows([row(group="old", topic="v.2", offset=None)])
    assert split_differences(receipt, spec, before) == differences


def test_a_topic_that_the_old_group_has_got_since_is_no_other_split(cli):
    """If the source group commits a new topic after the hand-over, a second `migrate` still ends with exit code 0."""
    cli.cluster.create_topic("v.2", 1)
    cli.cluster.commit("old", TopicPartition("v.2", 0), 0)
    assert "handed over already" in cli(*MIGRATE).stderr


def test_a_move_to_another_cluster_compares_the_topics_names_there(tmp_path):
    """After a move to another cluster, a second run with the same split writes nothing.

    A further target group is refused.
    """
    move = Move(tmp_path)
    move.copy(0, 50)
    move.commit(10, 20)
    move.migrate()
    move.target.commit("g", THERE, 15)
    assert plan_migration(move.target, move.wanted(OPTIONS), move.clock, Events()) is None
    move.groups = ["g", "h"]
    with pytest.raises(UsageError, match=r"another migration \(topic orders from g to h is new\)"):
        plan_migration(move.target, move.wanted(OPTIONS), move.clock, Events())
