"""Say that topics may be hidden from the client's principal if a topic pattern matches none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from migrate_groups.migration.ports import GroupReader
from migrate_groups.planning.checks.permission import OFFSETS, hidden
from migrate_groups.snapshots.selection import NoTopicMatches


def may_hide_topics(reader: GroupReader) -> bool:
    """Return whether the client's principal may lack Describe on some topics.

    Brokers leave such topics out of their answers without an error
    (docs/kafka-behaviour.md#what-a-principal-may-not-see). Raises `ClusterUnavailable`.
    """
    return hidden(reader.permissions([OFFSETS]))


@contextmanager
def hidden_topics_named(reader: GroupReader) -> Iterator[None]:
    """In a ``with`` block, add to a `NoTopicMatches` that topics may be hidden from the client's principal."""
    try:
        yield
    except NoTopicMatches as error:
        if not may_hide_topics(reader):
            raise
        raise NoTopicMatches(
            f"{error}; {reader.principal} may not describe every topic, and hidden ones match no pattern: grant "
            "Describe on them, or name each topic"
        ) from None
