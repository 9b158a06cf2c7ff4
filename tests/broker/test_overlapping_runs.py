"""Runs that overlap, on a real broker: a partition that a run has handed over is known to every later command."""

from __future__ import annotations

from contextlib import closing

import pytest

from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.reading.requests import read_all_committed
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.claims import ClaimState, decode
from tests.support.broker_world import until
from tests.support.cli import running

FAST = ("--settle", "0s", "--guard", "0s", "--yes")


class Groups:
    """A topic with 50 records, and group ``a``, which has committed offset 10. Hands over between groups."""

    def __init__(self, cli, world) -> None:
        self.cli, self.world = cli, world
        self.partition = TopicPartition(world.create_topic(), 0)
        world.produce(self.partition.topic, 0, 50)
        self.names = {name: world.name(name) for name in "abc"}
        world.commit(self.names["a"], self.partition, 10)

    def spec(self, source: str, target: str) -> str:
        name = f"{source}-{target}.toml"
        (self.cli.folder / name).write_text(
            f'source = "{self.names[source]}"\n[[target]]\ngroup = "{self.names[target]}"\n'
            f'topics = ["{self.partition.topic}"]\n[options]\nsettle = "0s"\nguard = "0s"\n'
        )
        return name

    def migrate(self, source: str, target: str, *options: str) -> str:
        """Hand the topic over, and return the run directory."""
        spec = self.spec(source, target)
        self.cli("migrate", spec, "--yes", *options)
        return f"{spec}.run"

    def consume(self, group: str, offset: int) -> None:
        """Commit an offset, as the group's application does when it has processed records."""
        self.world.commit(self.names[group], self.partition, offset)

    def offset(self, group: str) -> int | None:
        return self.world.committed(self.names[group]).get(self.partition)

    def refused(self, *command: object) -> str:
        return " ".join(self.cli.fails(*command, code=3).split())


@pytest.fixture
def groups(cli, world) -> Groups:
    return Groups(cli, world)


def test_a_topic_is_not_handed_over_to_two_groups(groups):
    """After A → B, and B has run, A → C by another spec and by `apply` is refused with the name of B and of the run."""
    groups.migrate("a", "b")
    groups.consume("b", 20)
    old, new = groups.names["a"], groups.names["b"]
    for command in (
        ("migrate", groups.spec("a", "c"), "--yes"),
        ("apply", "--from-group", old, "--to-group", groups.names["c"], *FAST),
    ):
        error = groups.refused(*command)
        assert f"{groups.partition} handed over from {old!r} to {new!r} on 20" in error
        assert f"go on from {new!r}, undo that run first, or pass --copy" in error
        assert groups.offset("c") is None


def test_a_chain_is_undone_in_the_opposite_order(groups):
    """After A → B and B → C, and C has run, the way back of the first run is refused before that of the second."""
    first, second = groups.migrate("a", "b"), groups.migrate("b", "c")
    groups.consume("c", 30)
    for command in ("rollback", "hand-back"):
        error = groups.refused(command, first, "--yes")
        assert f"handed over from {groups.names['b']!r} to {groups.names['c']!r} on 20" in error
        assert groups.offset("a") == 10
    groups.cli("hand-back", second, "--yes")
    groups.cli("hand-back", first, "--yes")
    assert groups.offset("a") == 30


def test_a_group_does_not_hand_on_what_the_group_before_it_has_consumed_since(groups):
    """After A → B, and A has committed beyond B since, B → C is refused until the first run is repeated."""
    first = groups.migrate("a", "b")
    groups.consume("a", 30)
    error = groups.refused("migrate", groups.spec("b", "c"), "--yes")
    assert f"{groups.names['a']!r} has committed higher offsets since, so records would be processed twice" in error
    assert groups.offset("c") is None
    groups.cli("migrate", first.removesuffix(".run"), "--yes")
    groups.migrate("b", "c")
    assert groups.offset("c") == 30


def test_a_way_back_that_is_done_is_refused_after_another_run(groups):
    """After A → B, its way back, and A → C by another run, the same way back again is refused: C has the topic."""
    first = groups.migrate("a", "b")
    for command in ("rollback", "hand-back"):
        groups.cli(command, first, "--yes")
        assert "nothing was written" in groups.cli(command, first, "--yes").stderr
        second = groups.migrate("a", "c")
        error = groups.refused(command, first, "--yes")
        assert f"handed over from {groups.names['a']!r} to {groups.names['c']!r} on 20" in error
        groups.cli("rollback", second, "--yes")
        groups.cli("migrate", "a-b.toml", "--yes")


def test_delete_offsets_leaves_a_group_that_got_its_topic_back(groups):
    """After A → B, and B → A by another run, `delete-offsets` of the first run is refused, and A keeps its offset."""
    first = groups.migrate("a", "b")
    groups.migrate("b", "a")
    error = groups.refused("delete-offsets", first, "--yes")
    assert f"handed over from {groups.names['b']!r} to {groups.names['a']!r} on 20" in error
    assert groups.offset("a") == 10


def test_two_runs_at_once(groups):
    """While a run waits for the old group to stop, another run of the group is refused; the first one ends as usual."""
    member = groups.world.join(groups.names["a"], groups.partition.topic)
    with running(groups.cli, "migrate", groups.spec("a", "b"), "--yes") as process:
        until(lambda: "waiting up to" in process.stderr.readline())
        error = groups.refused("migrate", groups.spec("a", "c"), "--yes")
        assert f"another run is at work on group {groups.names['a']!r}: wait until it ends" in error
        groups.world.leave(member)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert (groups.offset("b"), groups.offset("c")) == (10, None)


def test_a_killed_run_frees_its_lock(groups):
    """A run that is killed while it waits keeps others out until its session timeout, and leaves no claim."""
    member = groups.world.join(groups.names["a"], groups.partition.topic)
    with running(groups.cli, "migrate", groups.spec("a", "b"), "--yes") as process:
        until(lambda: "waiting up to" in process.stderr.readline())
        process.kill()
    groups.world.leave(member)
    journal = journal_group(groups.names["a"])
    assert groups.world.committed(journal) == {}
    assert "another run is at work" in groups.refused("migrate", groups.spec("a", "c"), "--yes")
    until(lambda: groups.cli.start("migrate", "a-c.toml", "--yes").wait() == 0, seconds=60)
    assert (groups.offset("b"), groups.offset("c")) == (None, 10)


def test_claims_on_the_cluster(groups, bootstrap_servers):
    """A claim is a committed offset of the journal: the source group's offset, and the claim as its metadata."""
    groups.migrate("a", "b")
    journal = journal_group(groups.names["a"])
    with closing(KafkaPythonWriter(ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20))) as cluster:
        found = read_all_committed(cluster, [journal])[journal][groups.partition]
    assert found is not None
    (claim,) = decode(found.metadata) or ()
    assert (found.offset, claim.state, claim.groups) == (10, ClaimState.HANDED_OVER, (groups.names["b"],))
