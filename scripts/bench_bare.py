"""Copy a group's offsets with kafka-python alone: the bare script that bench_cutover.py compares with.

Usage: bench_bare.py BOOTSTRAP_SERVER OLD_GROUP NEW_GROUP. This is what a careful person would write in fifty lines. The
script checks that the old group is Empty and that each offset lies within the log, writes the offsets to the new group,
and reads them back. It has no receipt, no second client and no other check.
"""

from __future__ import annotations

import sys

from kafka import KafkaAdminClient
from kafka.admin import OffsetSpec

_A_REQUEST = 10_000


def main(bootstrap_server: str, old: str, new: str) -> None:
    """Copy the committed offsets of group ``old`` to ``new``. Exit with a message if a check or the read-back fails."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_server)
    state = admin.describe_groups([old])[old]["group_state"]
    if state != "Empty":
        sys.exit(f"group {old} is {state}: stop its members")
    committed = admin.list_group_offsets({old: None})[old]
    starts = admin.list_partition_offsets(dict.fromkeys(committed, OffsetSpec.EARLIEST))
    ends = admin.list_partition_offsets(dict.fromkeys(committed, OffsetSpec.LATEST))
    for partition, wanted in committed.items():
        if not starts[partition].offset <= wanted.offset <= ends[partition].offset:
            sys.exit(f"the committed offset {wanted.offset} of {partition} is not within the log")
    entries = list(committed.items())
    for first in range(0, len(entries), _A_REQUEST):
        answers = admin.alter_group_offsets(new, dict(entries[first : first + _A_REQUEST]))
        if any(error.errno for error in answers.values()):
            sys.exit("a partition was not written")
    found = admin.list_group_offsets({new: None})[new]
    if {partition: each.offset for partition, each in found.items()} != {tp: each.offset for tp, each in entries}:
        sys.exit("an offset that was read back differs from the one written")
    admin.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
