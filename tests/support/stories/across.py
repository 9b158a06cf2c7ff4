"""Type the page of the docs about two clusters. A simple mirror copies topics from the first to the second."""

from __future__ import annotations

from collections.abc import Mapping

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import BrokerWorld, broker_world, until
from tests.support.mirror import records, write
from tests.support.pages import PAGES, blocks
from tests.support.reader import Reader, commits_as_member, committed

[MOVE] = blocks(PAGES["docs/two-clusters.md"].read_text(), "toml")


def compared(reader: Reader) -> None:
    """Type the section about ``compare``. A mirror has copied each record twice; its offsets are too low."""
    source, target = reader.starts(), reader.starts_another()
    source.create_topic(4, topic="orders")
    for number in range(4):
        source.produce("orders", number, 100)
    committed(source, "g", {"orders": [1, 50, 99, 100]})
    committed(source, "orders", {"orders": [1, 50, 99, 100]})
    _mirror(source, target, {"orders": 4})
    _mirror(source, target, {"orders": 4})
    committed(target, "g", {"source.orders": [100, 140, 191, 191]})
    reader.reads("docs/two-clusters.md#Compare", codes={"migrate-groups compare": 6})


def moved(reader: Reader) -> None:
    source, target = reader.starts(), reader.starts_another()
    for topic, partitions in (("orders", 3), ("invoices", 2)):
        source.create_topic(partitions, topic=topic)
        for number in range(partitions):
            source.produce(topic, number, 500)
        _mirror(source, target, {topic: partitions})
    _audited(reader, source, target)
    _one_group(reader, source, target)


def failed_over(reader: Reader) -> None:
    """Type the section about a lost cluster, on ``sandbox --mirror`` in another terminal.

    A's Kafka is killed, ``billing`` goes on on B, and returns to the original topics once A has been started again.
    """
    source, target, sandbox = reader.starts_mirrored("4711")
    for topic, partitions in (("orders", 3), ("invoices", 2)):
        source.create_topic(partitions, topic=topic)
        for number in range(partitions):
            source.produce(topic, number, 500)
    committed(source, "billing", {"orders": [418, 300, 300], "invoices": [450, 450]})
    committed(source, "search", {"orders": [500, 500, 500]})
    until(lambda: _copied(target) == [500] * 5, seconds=120)
    (reader.folder / "move.toml").write_text(MOVE)

    def returned() -> None:
        commits_as_member(target, "billing", {"source.orders": [500, 400, 400], "source.invoices": [460, 460]})
        start = sandbox.type("\n")
        sandbox.wait_for("cluster A runs again", start)
        source.produce("orders", 0, 100)
        until(lambda: _copied(target) == [600, 500, 500, 500, 500], seconds=120)
        commits_as_member(target, "billing", {"source.orders": [600, 400, 400], "source.invoices": [460, 460]})

    reader.reads("docs/two-clusters.md#Fail over, and return", before={"hand-back": returned})
    with broker_world(source.bootstrap_servers) as again:  # because the connections of ``source`` are lost
        found = {each: of for each, of in again.committed("billing").items() if each.topic == "orders"}
    assert found == {TopicPartition("orders", number): at for number, at in enumerate((600, 400, 400))}


def _copied(target: BrokerWorld) -> list[int]:
    """Return the log end offsets of the copies of ``orders`` and ``invoices`` that exist."""
    copies = {"source.orders": range(3), "source.invoices": range(2)}
    there = target.topics()
    return [end for copy, of in copies.items() if copy in there for _, end in sorted(target.ends(copy, of).items())]


def _audited(reader: Reader, source: BrokerWorld, target: BrokerWorld) -> None:
    """Type the commands of docs/audit.md about a move to another cluster, after a move of the group ``stock``.

    After the move the source group commits once more, and the target group commits a lower offset in one partition.
    """
    committed(source, "stock", {"orders": [300, 300, 300], "invoices": [450, 450]})
    spec = MOVE.replace('"billing"', '"stock"')
    (reader.folder / "stock.toml").write_text(spec)
    reader.type("migrate-groups migrate stock.toml --bootstrap-server a:9092 --to-bootstrap-server b:9092")
    source.commit("stock", TopicPartition("orders", 1), 304)
    commits_as_member(target, "stock", {"source.invoices": [448], "source.orders": [None, 370, 310]})
    reader.reads("docs/audit.md#After a move to another cluster", codes={"audit": 6})
    for cluster in ("a:9092", "b:9092"):
        reader.type(f"migrate-groups delete-group stock --bootstrap-server {cluster}")


def _one_group(reader: Reader, source: BrokerWorld, target: BrokerWorld) -> None:
    """Type the rest of the page. A consumer of ``billing`` runs until ``migrate`` waits for it to stop."""
    (reader.folder / "move.toml").write_text(MOVE)
    committed(source, "billing", {"orders": [418, 300, 300], "invoices": [450, 450]})
    committed(target, "billing", {"source.orders": [414, 300, 300], "source.invoices": [450, 450]})
    application = source.join("billing", "orders", "invoices", **{"client.id": "billing-1"})
    stop = {"stop its applications now": lambda: source.leave(application)}
    reader.reads("docs/two-clusters.md", when={"move.toml --bootstrap": stop})


def _mirror(source: BrokerWorld, target: BrokerWorld, topics: Mapping[str, int]) -> None:
    """Copy all records of topics to the target cluster. topics: the number of partitions of each topic."""
    for topic, partitions in topics.items():
        copy = f"source.{topic}"
        if copy not in target.topics():
            target.create_topic(partitions, topic=copy)
        for number in range(partitions):
            write(target.bootstrap_servers, copy, records(source.bootstrap_servers, topic, number))
