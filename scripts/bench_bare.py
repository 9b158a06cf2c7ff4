"""What a careful person would write instead, in fifty lines of kafka-python: the bare script of bench_cutover.py.

Usage: bench_bare.py BOOTSTRAP_SERVER OLD_GROUP NEW_GROUP. It looks whether the old group is Empty, reads its offsets,
checks that each lies within the log, writes them to the new group and reads them back. No receipt, no second client, no
other check.
"""

from __future__ import annotations

import sys

from kafka import KafkaAdminClient
from kafka.admin import OffsetSpec

_A_REQUEST = 10_000


def main(bootstrap_server: str, old: str, new: str) -> None:
    """Copy the offsets of a group to another. Exits with a sentence where something is not as it must be."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_server)
    state = admin.describe_groups([old])[old]["group_state"]
    if state != "Empty":
        sys.exit(f"{old} is {state}")
    committed = admin.list_group_offsets({old: None})[old]
    starts = admin.list_partition_offsets(dict.fromkeys(committed, OffsetSpec.EARLIEST))
    ends = admin.list_partition_offsets(dict.fromkeys(committed, OffsetSpec.LATEST))
    for partition, wanted in committed.items():
        if not starts[partition].offset <= wanted.offset <= ends[partition].offset:
            sys.exit(f"{partition} at {wanted.offset} is not within the log")
    entries = list(committed.items())
    for first in range(0, len(entries), _A_REQUEST):
        answers = admin.alter_group_offsets(new, dict(entries[first : first + _A_REQUEST]))
        if any(error.errno for error in answers.values()):
            sys.exit("a partition was not written")
    found = admin.list_group_offsets({new: None})[new]
    if {partition: each.offset for partition, each in found.items()} != {tp: each.offset for tp, each in entries}:
        sys.exit("read back something else")
    admin.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
