"""Divide a write of offsets into requests that fit into one batch of ``__consumer_offsets``."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.change import Change, by_group

T = TypeVar("T")
Offsets = Mapping[str, Mapping[TopicPartition, CommittedOffset]]

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
            sized = ((change, change.topic, change.after) for change in of_kind)
            (to_delete if deletes else to_set[group]).extend(_requests(group, sized, most_bytes))
    for requests in itertools.zip_longest(*to_set.values(), fillvalue=()):
        yield [*itertools.chain.from_iterable(requests)]
    yield from to_delete


def divided(offsets: Offsets) -> Iterator[Offsets]:
    """Divide committed offsets by group and partition into several such mappings.

    Each has as many partitions of a group as fit into one request.
    """
    requests = {
        group: _requests(group, ((each, each[0].topic, each[1]) for each in of_group.items()), _MOST_BYTES)
        for group, of_group in offsets.items()
    }
    for of_round in itertools.zip_longest(*requests.values()):
        yield {group: dict(request) for group, request in zip(requests, of_round, strict=True) if request}


def _requests(group: str, sized: Iterable[tuple[T, str, CommittedOffset | None]], most_bytes: int) -> Iterator[list[T]]:
    """Divide the items of one group into requests that add at most ``most_bytes`` to ``__consumer_offsets``.

    sized: each item with its topic and its offset, which is None if it is deleted.
    """
    request: list[T] = []
    size, of_group = 0, len(group.encode()) + _BYTES_A_PARTITION
    for item, topic, committed in sized:
        more = of_group + len(topic)
        if committed is not None and committed.metadata:
            more += len(committed.metadata.encode())
        if request and size + more > most_bytes:
            yield request
            request, size = [], 0
        request.append(item)
        size += more
    if request:
        yield request
