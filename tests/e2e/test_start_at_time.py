"""Two kafka-python consumers start at a given time. Their code sets no offsets: the tool has set them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import confluent_kafka
import pytest
from faker import Faker
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import RebalanceInProgressError

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until

NOW = ("--settle", "0s", "--guard", "0s")
NAIVE = "2022-11-09T21:24:55"
ZONE = "Australia/Sydney"
SINCE = datetime.fromisoformat(NAIVE).replace(tzinfo=ZoneInfo(ZONE))


def order(faker: Faker, placed: datetime) -> dict[str, str]:
    return {
        "id": faker.uuid4(),
        "customer": faker.name(),
        "address": faker.address(),
        "card": faker.credit_card_number(),
        "placed": placed.isoformat(),
    }


class Shop:
    """Produces orders as JSON. The timestamp of a record is the time of its order."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        settings = {"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "log_level": 0}
        self._producer = confluent_kafka.Producer(settings)
        self._topic, self._faker = topic, Faker()
        self._faker.seed_instance(6)

    def sell(self, partition: int, placed: datetime) -> str:
        """Produce one order, and return its id."""
        made = order(self._faker, placed)
        stamp = int(placed.timestamp() * 1000)
        self._producer.produce(self._topic, json.dumps(made).encode(), partition=partition, timestamp=stamp)
        assert self._producer.flush(30) == 0
        return made["id"]


@pytest.fixture
def shop(world):
    """A shop, its topic, and the ids of the orders since `SINCE`, all in partition 0.

    Both partitions also have earlier orders.
    """
    topic = world.create_topic(2, topic=world.name("orders"), **{"retention.ms": "-1"})
    made = Shop(world.bootstrap_servers, topic)
    since = []
    for seconds in range(-20, 20):
        sold = made.sell(0, SINCE + timedelta(seconds=seconds))
        since += [sold] if seconds >= 0 else []
        if seconds < 0:
            made.sell(1, SINCE + timedelta(seconds=seconds))
    return made, topic, since


class Rejoin(ConsumerRebalanceListener):  # type: ignore[misc]
    """Makes the consumer complete a rebalance that outlasts a poll; see migrate_groups.demo.application."""

    def __init__(self, of: KafkaConsumer) -> None:
        self._consumer = of

    def on_partitions_revoked(self, revoked: object) -> None:
        self._consumer._coordinator.request_rejoin()

    def on_partitions_assigned(self, assigned: object) -> None:
        pass


def consumer(bootstrap_servers: str, group: str, topic: str) -> KafkaConsumer:
    """Return a consumer that has subscribed. It has no auto-commit, and starts at the committed offsets."""
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    made = KafkaConsumer(bootstrap_servers=bootstrap_servers, group_id=group, **settings)
    # kafka-python 3.0.12 does not assign a topic that it does not know yet.
    made.partitions_for_topic(topic)
    made.subscribe([topic], listener=Rejoin(made))
    return made


@contextmanager
def each_in_a_thread(consumers: Sequence[KafkaConsumer], received: list[dict[str, str]]) -> Iterator[None]:
    """Poll each consumer in its own thread during the block. Add the records that it commits to ``received``."""
    stop = threading.Event()

    def consume(each: KafkaConsumer) -> None:
        with closing(each):
            while not stop.is_set():
                polled = each.poll(timeout_ms=200)
                try:
                    each.commit()
                except RebalanceInProgressError:
                    continue  # its partitions are revoked, and these records come again
                received.extend(json.loads(record.value) for records in polled.values() for record in records)

    with ThreadPoolExecutor(len(consumers)) as threads:
        ended = [threads.submit(consume, each) for each in consumers]
        try:
            yield
        finally:
            stop.set()
        for each in ended:
            each.result()


def test_consumers_get_orders_since_a_local_time(cli, world, shop):
    """Two consumers of a group that ``rewind`` and ``apply`` set to a local time get each order since then once.

    In a partition without an order since then, they get the next one that is produced.
    """
    sells, topic, since = shop
    group = world.name("since")
    said = cli("rewind", "--topic", topic, "--to-datetime", NAIVE, "--timezone", ZONE, "-o", "offsets.csv").stderr
    assert f"from 2022-11-09T10:24:55Z = {NAIVE}+11:00 ({ZONE})" in said
    assert "past end: no record at or after the time" in said
    assert cli("export", "offsets.csv", "-o", "-").stdout == f"{topic},0,20\n{topic},1,20\n"
    cli("apply", "offsets.csv", "--to-group", group, *NOW, "--yes")
    received: list[dict[str, str]] = []
    consumers = [consumer(world.bootstrap_servers, group, topic) for _ in range(2)]
    with each_in_a_thread(consumers, received):
        until(lambda: all(each.assignment() for each in consumers))
        assert set().union(*(each.assignment() for each in consumers)) == {(topic, 0), (topic, 1)}
        until(lambda: len(received) >= len(since))
        later = sells.sell(1, SINCE + timedelta(days=1))
        until(lambda: len(received) > len(since))
    assert sorted(each["id"] for each in received) == sorted([*since, later])
    assert min(each["placed"] for each in received) == SINCE.isoformat()
    assert world.committed(group) == {TopicPartition(topic, 0): 40, TopicPartition(topic, 1): 21}
