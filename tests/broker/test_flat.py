"""A wait of hours takes no more memory and sockets than a wait of minutes."""

from __future__ import annotations

import gc
import os
import resource
from contextlib import closing
from pathlib import Path

import pytest

from migrate_groups.errors import Refused
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.migration import stop
from migrate_groups.migration.stop import Wait, prove_stopped
from tests.support.clock import FakeClock
from tests.support.versions import NEEDS_KIP_848

A_LOOK_SECONDS = stop._POLL_SECONDS


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def kilobytes(pid: int) -> int:
    """Return the resident memory of a process in kB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() // 1024


@pytest.mark.parametrize(("protocol", "most"), [("classic", 1000), pytest.param("consumer", 200, marks=NEEDS_KIP_848)])
def test_a_long_wait_is_flat(world, bootstrap_servers, capsys, protocol, most):
    """Waiting for a group that never stops keeps the number of open files, and memory grows only by some caches.

    A KIP-848 group needs one request of the second client (60 ms) at each look; 1,000 looks were flat too.
    """
    topic, group = world.create_topic(4), world.name("live")
    world.join(group, topic, **({"group.protocol": "consumer"} if protocol == "consumer" else {}))
    config = ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20)
    seen: list[list[tuple[int, int]]] = []
    looks = 0

    with (
        closing(SecondClient(config)) as second,
        closing(KafkaPythonReader(config, describe_members=second.describe_group)) as reader,
    ):

        def look(reasons, looks_at, seconds):
            nonlocal looks
            looks += 1
            if looks in (most // 10, most):
                gc.collect()
                pids = [os.getpid(), *([second._child._process.pid] if second._child else [])]
                seen.append([(open_files(pid), kilobytes(pid)) for pid in pids])

        wait = Wait(wait=most * A_LOOK_SECONDS, settle=0.0, progress=look)
        with pytest.raises(Refused, match="not stopped"):
            prove_stopped(reader, [group], FakeClock(), wait)
    assert looks >= most
    for (files_before, memory_before), (files, memory) in zip(*seen, strict=True):
        with capsys.disabled():
            print(f"\n{protocol}: open files {files_before} → {files}, {memory_before:,} → {memory:,} kB")  # noqa: T201
        assert files <= files_before + 2  # a socket may be opened again just then
        assert memory - memory_before < 4096
