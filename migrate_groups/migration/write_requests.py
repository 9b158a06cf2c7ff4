"""Divide a write of offsets into requests that fit into one batch of ``__consumer_offsets``."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from migrate_groups.planning.change import Change, by_group

# A request must fit into one batch of __consumer_offsets, which holds 1 MB: 14,000 partitions passed, 15,000 failed
# (docs/kafka-behaviour.md#altering-offsets). Half of that leaves a margin.
_MOST_BYTES = 500_000
_BYTES_A_PARTITION = 44


def rounds(changes: Sequence[Change], most_bytes: int = _MOST_BYTES) -> Iterator[list[Change]]:
    """Yield the changes of committed offsets in lists, each of which can be sent at once.

    A list either sets offsets, with at most one request for each group, or deletes offsets of one group.
    most_bytes: the most bytes that one request may add to ``__consumer_offsets``.
    """
    to_set: dict[str, list[list[Change]]] = defaultdict(list)
    to_delete: list[list[Change]] = []
    for group, of_group in by_group(changes).items():
        for deletes, of_kind in itertools.groupby(of_group, lambda change: change.after is None):
            (to_delete if deletes else to_set[group]).extend(_requests(of_kind, most_bytes))
    for requests in itertools.zip_longest(*to_set.values(), fillvalue=()):
        yield [*itertools.chain.from_iterable(requests)]
    yield from to_delete


def _requests(changes: Iterable[Change], most_bytes: int) -> Iterator[list[Change]]:
    """Divide the changes of one group into requests that add at most ``most_bytes`` to ``__consumer_offsets``."""
    request: list[Change] = []
    size = of_group = 0
    for change in changes:
        of_group = of_group or len(change.group.encode()) + _BYTES_A_PARTITION
        more = of_group + len(change.topic)
        if change.after and change.after.metadata:
            more += len(change.after.metadata.encode())
        if request and size + more > most_bytes:
            yield request
            request, size = [], 0
        request.append(change)
        size += more
    if request:
        yield request
