"""JSON is decoded into a class by one thread at a time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec

from migrate_groups.planning import typed_json


def test_one_thread_decodes_at_a_time(monkeypatch):
    """No thread decodes while another one does, because the first decoding of a class would crash the process."""
    at_work, together = [0], threading.Event()

    def decode(_data, *, type):  # noqa: A002  the name of msgspec
        at_work[0] += 1
        if at_work[0] > 1:
            together.set()
        together.wait(0.05)  # a second thread would come meanwhile
        at_work[0] -= 1
        return type()

    monkeypatch.setattr(msgspec.json, "decode", decode)
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda _: typed_json.decode("{}", dict), range(4))] == [{}] * 4
    assert not together.is_set()
