"""JSON is decoded into a class in several threads."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys, threading
import msgspec
from migrate_groups.files.runs import receipt_json
from migrate_groups.planning.typed_json import decode
sys.setswitchinterval(1e-6)
barrier = threading.Barrier(12)
def run():
    barrier.wait()
    try:
        decode(b"{}", receipt_json.ReceiptJson)
    except msgspec.ValidationError:
        pass
threads = [threading.Thread(target=run) for _ in range(12)]
for each in threads: each.start()
for each in threads: each.join()
"""


def test_the_first_decoding_happens_in_several_threads():
    """If several threads decode the first JSON of a class at once, the process does not crash."""
    ends = [subprocess.run([sys.executable, "-c", _PROGRAM], check=False).returncode for _ in range(5)]
    assert ends == [0] * 5
