"""Committed offsets that expire during a cut-over, on a broker that looks for expired offsets every second.

Other tests can't share this broker, because it also deletes Empty groups without offsets every second.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.broker import start_sandbox
from tests.support.broker_world import wait_for_coordinators
from tests.support.cli import waiting
from tests.support.old_group import Old


@pytest.fixture(scope="module")
def bootstrap_servers(java, kafka_jars) -> Iterator[str]:
    """The bootstrap servers of a broker that looks for expired offsets every second."""
    with start_sandbox(kafka_jars, java=java, settings={"offsets.retention.check.interval.ms": "1000"}) as sandbox:
        wait_for_coordinators(sandbox.bootstrap_servers)
        yield sandbox.bootstrap_servers


def test_offset_that_expires_during_the_wait_is_restored(cli, world):
    """If a committed offset expires while `migrate` waits for the source group to stop, the saved plan reports this.

    With ``on_removed = "restore"``, the target group gets the offset that the source group had before the wait.
    """
    old = Old(cli, world, options='on_removed = "restore"')
    before = world.committed(old.group)
    consumer = world.join(old.group, old.find)
    with waiting(cli):
        for number in (0, 1):
            world.let_expire(old.group, TopicPartition(old.pay, number), member=consumer)
        world.leave(consumer)
    assert world.committed(old.pay_group) | world.committed(old.find_group) == before
    assert old.offsets(old.pay) == {}
    saved = json.loads((cli.folder / "split.toml.run" / "plan.json").read_text())
    assert (
        "2 committed offsets expired or deleted since the snapshot"
        in {each["name"]: each["reason"] for each in saved["checks"]}["removed"]
    )
