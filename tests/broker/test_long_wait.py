"""A long wait for a source group to stop needs no more memory and sockets than a short one."""

from __future__ import annotations

import gc
import resource
from contextlib import closing
from pathlib import Path

import pytest

from migrate_groups.errors import Refused
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.migration import stop
from migrate_groups.migration.stop import Wait, prove_stopped
from tests.support.clock import FakeClock
from tests.support.versions import CONSUMER

POLL_SECONDS = stop._POLL_SECONDS


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def kilobytes() -> int:
    """Return the resident memory of this process in kB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_long_wait_leaks_no_memory_and_no_sockets(world, bootstrap_servers, capsys, request, protocol):
    """While the tool waits for a live group to stop, it opens no more files or sockets, and needs less than 4 MB more
    memory.
    """
    all_polls = 1000 if request.config.getoption("--long") else 200
    topic, group = world.create_topic(4), world.name("live")
    world.join(group, topic, **{"group.protocol": protocol})
    config = ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20)
    seen: list[tuple[int, int]] = []
    polls = 0

    with closing(KafkaPythonReader(config)) as reader:

        def on_poll(reasons, polls_until_now, seconds):
            nonlocal polls
            polls += 1
            if polls in (all_polls // 10, all_polls):
                gc.collect()
                seen.append((open_files(), kilobytes()))

        wait = Wait(wait=all_polls * POLL_SECONDS, settle=0.0, progress=on_poll)
        with pytest.raises(Refused, match="not stopped"):
            prove_stopped(reader, [group], FakeClock(), wait)
    assert polls >= all_polls
    (files_before, memory_before), (files, memory) = seen
    with capsys.disabled():
        print(f"\n{protocol}: open files {files_before} → {files}, {memory_before:,} → {memory:,} kB")  # noqa: T201
    assert files <= files_before + 2  # a socket may be opened again just then
    assert memory - memory_before < 4096
