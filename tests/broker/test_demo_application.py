"""The demo's application that uses kafka-python, on a broker that answers slowly."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from kafka.coordinator.base import BaseCoordinator

from migrate_groups.demo.application import Place, consume_with_kafka_python
from tests.support.broker_world import until

_SLOW_SECONDS = 0.5  # longer than the application's poll
_LONG_SECONDS = 90  # longer than a request of kafka-python that times out on a busy machine


def test_a_rebalance_that_outlasts_a_poll_is_completed(world, bootstrap_servers, monkeypatch):
    """The application processes all records, even if its poll ends before the broker has answered SyncGroup.

    The application leads the group. It rejoins because a second member has subscribed to another topic.
    """
    join_and_sync = BaseCoordinator._do_join_and_sync_async

    async def join_and_sync_slowly(self):
        assignment = await join_and_sync(self)
        await self._net.sleep(_SLOW_SECONDS)
        return assignment

    monkeypatch.setattr(BaseCoordinator, "_do_join_and_sync_async", join_and_sync_slowly)
    group, topic, other_topic = world.name("group"), world.create_topic(), world.create_topic()
    stopped: Any = SimpleNamespace(now=False)
    processed: list[str] = []

    def apply() -> None:
        for ids in consume_with_kafka_python(Place(bootstrap_servers, group, "app"), [topic], stopped):
            processed.extend(ids)

    application = threading.Thread(target=apply)
    application.start()
    try:
        world.produce(topic, 0, 1)
        until(lambda: len(processed) == 1, seconds=_LONG_SECONDS)
        world.join(group, other_topic, **{"partition.assignment.strategy": "range"})
        world.produce(topic, 0, 3, prefix="later ")
        until(lambda: len(processed) == 4, seconds=_LONG_SECONDS)
    finally:
        stopped.now = True
        application.join()
    assert len(set(processed)) == 4
