"""Add to an error what else may be its cause: topics that are hidden, or another name of the group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from migrate_groups.errors import GroupNotFound, MigrateGroupsError
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.offsets_topic import OWN_GROUPS
from migrate_groups.planning.checks.permission import ANY_TOPIC, hidden
from migrate_groups.snapshots.selection import NoTopicMatches
from migrate_groups.text import did_you_mean


def may_hide_topics(reader: GroupReader) -> bool:
    """Return whether the client's principal may lack Describe on some topics.

    Brokers leave such topics out of their answers without an error
    (docs/kafka-behaviour.md#what-a-principal-may-not-see).
    """
    return hidden(reader.permissions([ANY_TOPIC]))


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


@contextmanager
def similar_groups_named(reader: GroupReader) -> Iterator[None]:
    """In a ``with`` block, add the names of similar groups to the message of a `GroupNotFound`."""
    try:
        yield
    except GroupNotFound as error:
        if set(error.group) & {*"*?["}:
            advice = "globs are for topics only; migrate-groups list shows the names of all groups"
            raise GroupNotFound(error.group, advice) from None
        if error.group.startswith(OWN_GROUPS):
            raise  # another journal has the claims of another group
        try:
            advice = did_you_mean([error.group], [listed.group for listed in reader.list_groups()])
        except MigrateGroupsError:
            raise error from None  # without the groups, the error says enough
        raise GroupNotFound(error.group, advice) if advice else error from None
