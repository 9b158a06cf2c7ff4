"""``advise`` finds out which applications share a group, for groups of real clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import kafka
import pytest

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import BrokerWorld, until
from tests.support.documents import parsed
from tests.support.raw_member import raw_member
from tests.support.versions import CONSUMER

COOPERATIVE = pytest.param("cooperative-sticky", marks=pytest.mark.long)


@contextmanager
def polling(world: BrokerWorld, group: str, applications: dict[str, list[str]], protocol: str) -> Iterator[None]:
    """Let two members of each application poll, each in a thread, for the length of a ``with`` block.

    The last application uses kafka-python if the protocol is classic; all others use confluent-kafka.
    """
    config = {
        "classic": {"partition.assignment.strategy": "range"},
        "cooperative-sticky": {"partition.assignment.strategy": "cooperative-sticky"},
        "consumer": {"group.protocol": "consumer"},
    }[protocol]
    over = Event()

    def confluent(client_id: str, topics: list[str]) -> None:
        consumer = world.consumer(group, *topics, **{"client.id": client_id}, **config)
        while not over.is_set():
            consumer.poll(0.1)
        world.leave(consumer)

    def python(client_id: str, topics: list[str]) -> None:
        consumer = kafka.KafkaConsumer(
            *topics,
            bootstrap_servers=world.bootstrap_servers,
            group_id=group,
            client_id=client_id,
            partition_assignment_strategy=[kafka.coordinator.assignors.range.RangePartitionAssignor],
        )
        while not over.is_set():
            consumer.poll(100)
        consumer.close()

    *_, last = applications
    threads = [
        Thread(target=python if name == last and protocol == "classic" else confluent, args=(f"{name}-{n}", topics))
        for name, topics in applications.items()
        for n in (1, 2)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("protocol", ["classic", COOPERATIVE, CONSUMER])
def test_the_components_are_the_applications(cli, world, protocol):
    """``advise`` finds the three applications that share a group, with each protocol, and finds the idle member.

    A migration with the spec that ``advise --spec-for`` writes is not refused.
    """
    applications = {name: [world.create_topic(2) for _ in range(n)] for name, n in (("shop", 2), ("web", 1))}
    applications["billing"] = [world.create_topic(1)]
    group, left = world.name("big"), world.create_topic()
    all_topics = [*applications["shop"], *applications["web"]]
    both = {TopicPartition(topic, number): 0 for topic in all_topics for number in (0, 1)}
    world.commit_all(group, {**both, **{TopicPartition(each, 0): 0 for each in (*applications["billing"], left)}})

    def found():
        (advised,) = parsed(cli("advise", group, "--format", "json").stdout)["groups"]
        return advised

    with polling(world, group, applications, protocol):
        until(lambda: (each := found())["members"] == 6 and each["finding"] == "shared" and each["idle_members"] == 1)
        advised = found()
        line = next(line.split() for line in cli("advise").stdout.splitlines() if line.startswith(f"{group} "))
        cli("advise", "--spec-for", group, "-o", "split.toml")
        plan = parsed(cli("migrate", "split.toml", "--dry-run", "--format", "json").stdout)
    assert {each["name"]: [one["topic"] for one in each["topics"]] for each in advised["applications"]} == {
        name: sorted(topics) for name, topics in applications.items()
    }
    assert {each["name"]: (each["client_ids"], each["idle_members"]) for each in advised["applications"]} == {
        name: ([f"{name}-1", f"{name}-2"], int(name == "billing")) for name in applications
    }
    assert [each["topic"] for each in advised["unsubscribed"]] == [left]
    assert {(each["group"], each["topic"]) for each in plan["changes"]} == {
        (f"{group}-{name}", topic) for name, topics in applications.items() for topic in topics
    }
    assert [each for each in plan["checks"] if each["verdict"] == "refuse"] == []
    assert line[1:8] == [
        "Stable",
        "consumer" if protocol == "consumer" else "classic",
        {"classic": "range", "consumer": "-"}.get(protocol, protocol),
        *("3", "6", "1", "5"),
    ]


@pytest.mark.parametrize("protocol", [CONSUMER])
def test_a_regular_expression_that_joins_all_is_named(cli, world, protocol):
    """If two applications seem to be one only because a KIP-848 member's regular expression matches the topics of both,
    ``advise`` names the member.
    """
    group, prefix = world.name("big"), world.name("joined")
    topics = [world.create_topic(topic=f"{prefix}.{each}") for each in ("a", "b")]
    for topic in topics:
        world.join(group, topic, **{"group.protocol": protocol, "client.id": f"app-{topic[-1]}"})
    world.consumer(group, f"^{prefix}.*", **{"group.protocol": protocol, "client.id": "audit"}).poll(0.1)

    def said() -> str:
        (advised,) = parsed(cli("advise", group, "--format", "json").stdout)["groups"]
        return advised["advice"]

    until(lambda: said().startswith("one application; it would be 2 without the subscription of audit"))


def test_no_split_is_advised_for_other_groups(cli, world):
    """``advise`` proposes no split for a group of Connect workers or for a group without members, and says why."""
    partition, simple, worker = TopicPartition(world.create_topic(), 0), world.name("simple"), world.name("worker")
    world.commit(simple, partition, 0)
    with raw_member(world.bootstrap_servers, worker, protocol_type="connect"):
        found = parsed(cli("advise", simple, worker, "--format", "json").stdout)["groups"]
    assert {each["group"]: each["advice"] for each in found} == {
        simple: "not known: it has no members: stopped, or consumers without membership; run it while they consume",
        worker: "nothing to split: it is not a consumer group: its type is classic connect (workers of Kafka Connect)",
    }
