"""A write that a real broker refuses for some partitions."""

from __future__ import annotations

from contextlib import closing

import pytest

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.errors import PartlyApplied
from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.write import write
from migrate_groups.migration.write_result import WriteResult
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.change import Outcome
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.receipt import NOTHING_WRITTEN, Receipt
from tests.support.planning import plan_of


def test_topic_deleted_between_plan_and_write_is_exit_4(world, tmp_path):
    """If a topic is deleted between plan and write, the broker refuses its partitions; the others are written and
    confirmed.

    `WriteResult.check` then raises `PartlyApplied`, which is exit code 4 of a command.
    """
    kept, deleted, group = world.create_topic(), world.create_topic(), world.name("old")
    for topic in (kept, deleted):
        world.produce(topic, 0, 5)
        world.commit(group, TopicPartition(topic, 0), 3)
    config, clock = ClientConfig(bootstrap_servers=world.bootstrap_servers, timeout=20), SystemClock()
    file = ReceiptFile(tmp_path / "receipt.json", NOTHING_WRITTEN)
    with closing(SecondClient(config)) as second_client, closing(KafkaPythonWriter(config)) as writer:
        plan = plan_of(writer, group, f"{group}-new", settle=0)
        world.delete_topic(deleted)
        execution = write(Clients(writer, second_client), Execution.of(plan, clock.now()), file.record)
    assert {entry.topic: (entry.outcome, entry.error) for entry in execution.changes} == {
        kept: (Outcome.CONFIRMED, ""),
        deleted: (Outcome.REFUSED, "UNKNOWN_TOPIC_OR_PARTITION"),
    }
    assert world.committed(f"{group}-new") == {TopicPartition(kept, 0): 3}
    assert file.path is not None
    assert file.receipt == Receipt((execution,))
    assert receipt_json.to_bytes(receipt_json.load(file.path)) == receipt_json.to_bytes(file.receipt)
    with pytest.raises(PartlyApplied, match=r"1 partition not confirmed \(UNKNOWN_TOPIC_OR_PARTITION\); the receipt"):
        WriteResult(execution=execution, receipt=file.receipt, path=file.path).check()
