"""The second client's process (confluent-kafka) crashes, and is restarted at most once in each request."""

from __future__ import annotations

import json
import os
import signal
from contextlib import closing
from typing import Any

import pytest

from migrate_groups.kafka import second_client
from migrate_groups.kafka.child import Child
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.migration.reading.requests import read_committed
from migrate_groups.model.partitions import TopicPartition
from tests.support.old_group import Old


class Crashing(Child):
    """The second client's process. It is killed before each request, until no signal is left in ``crashes``."""

    crashes: list[int]

    def answer(self, question, timeout):
        if self.crashes:
            os.kill(self._process.pid, self.crashes.pop())
        return super().answer(question, timeout)


@pytest.fixture
def crashes(monkeypatch) -> list[int]:
    """The signals that kill the second client at its next requests."""
    Crashing.crashes = []
    monkeypatch.setattr(second_client, "Child", Crashing)
    return Crashing.crashes


@pytest.mark.parametrize("crash", [signal.SIGSEGV, signal.SIGABRT])
def test_second_client_survives_a_crash(bootstrap_servers, world, crashes, crash):
    """If the second client's process crashes, during a request or between two, a new process answers with the same
    offsets.
    """
    partition = TopicPartition(world.create_topic(), 0)
    world.commit("crash", partition, 7)
    with closing(second_client.SecondClient(ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20))) as second:
        first = read_committed(second, {"crash": [partition]})["crash"]
        crashes.append(crash)
        assert read_committed(second, {"crash": [partition]})["crash"] == first
        at, child = first[partition], second._child
        assert at is not None
        assert at.offset == 7
        assert child is not None
        os.kill(child._process.pid, crash)
        child._process.wait()
        assert read_committed(second, {"crash": [partition]})["crash"] == first


def receipt(here) -> Any:
    return json.loads((here.folder / "split.toml.run" / "receipt.json").read_text())


def remarks(here) -> list[str]:
    return receipt(here)["executions"][0]["remarks"]


def outcomes(here) -> set[str]:
    return {entry["outcome"] for entry in receipt(here)["entries"]}


def test_migrate_confirms_all_offsets_after_one_crash(here, world, crashes, monkeypatch, bootstrap_servers):
    """If the second client crashes once, `migrate` restarts it, and both clients confirm every offset."""
    monkeypatch.setitem(here.environment, "MIGRATE_GROUPS_BOOTSTRAP_SERVER", bootstrap_servers)
    old = Old(here, world)
    crashes.append(signal.SIGSEGV)
    here("migrate", "split.toml", "--yes")
    assert crashes == []
    assert [each for each in remarks(here) if "one client" in each] == []
    assert outcomes(here) == {"confirmed"}
    assert world.committed(old.pay_group) == old.offsets(old.pay)


@pytest.mark.parametrize("required", [False, True])
def test_migrate_reports_groups_confirmed_by_one_client_only(
    here, world, crashes, monkeypatch, bootstrap_servers, required
):
    """If the second client crashes twice in one request, `migrate` reports groups that only one client has confirmed.

    With ``--second-client required``, the exit code is then 4.
    """
    monkeypatch.setitem(here.environment, "MIGRATE_GROUPS_BOOTSTRAP_SERVER", bootstrap_servers)
    old = Old(here, world)
    crashes += [signal.SIGABRT, signal.SIGSEGV]
    done = here(
        "migrate", "split.toml", "--yes", *(["--second-client", "required"] if required else []), code=4 * required
    )
    said = (
        f"groups '{old.find_group}', '{old.pay_group}' confirmed by one client only: "
        "the second client (confluent-kafka) died or hung"
    )
    assert remarks(here)[0].startswith(said)
    assert outcomes(here) == {"unknown" if required else "confirmed by one client"}
    assert said in done.stdout
    assert world.committed(old.find_group) == old.offsets(old.find)
