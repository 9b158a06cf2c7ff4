"""Add groups with a similar name to the error for a group that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from migrate_groups.errors import GroupNotFound, MigrateGroupsError
from migrate_groups.migration.ports import GroupReader
from migrate_groups.text import did_you_mean


@contextmanager
def similar_groups_named(reader: GroupReader) -> Iterator[None]:
    """In a ``with`` block, add the names of similar groups to the message of a `GroupNotFound`."""
    try:
        yield
    except GroupNotFound as error:
        if set(error.group) & {*"*?["}:
            advice = "globs are for topics only; migrate-groups list shows the names of all groups"
            raise GroupNotFound(error.group, advice) from None
        try:
            advice = did_you_mean([error.group], [listed.group for listed in reader.list_groups()])
        except MigrateGroupsError:
            raise error from None  # without the groups, the error says enough
        raise GroupNotFound(error.group, advice) if advice else error from None
