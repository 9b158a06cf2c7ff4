"""The permission that a request about a group requires, and the error for topics that can't be described."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from migrate_groups.errors import InvalidInput, NotAuthorized
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.text import some

_LONGEST_NAME = 2**15 - 1  # in bytes, because Kafka's protocol stores the length in 16 bits


def describe_permissions(groups: Collection[str]) -> Mapping[str, str]:
    """Return the permission that reading each group requires, such as ``Describe on Group 'g'``.

    Raises `InvalidInput` if a group's name is too long for Kafka's protocol.
    """
    return {group: _describe_permission(group) for group in groups}


def _describe_permission(group: str) -> str:
    size = len(group.encode(errors="replace"))
    if size > _LONGEST_NAME:
        raise InvalidInput(
            f"group {group[:40]!r}… has a name of {size:,} bytes: pass a name of at most {_LONGEST_NAME:,} bytes"
        )
    return f"{Operation.DESCRIBE} on {Resource(ResourceType.GROUP, group)}"


def check_visible(principal: str, hidden: Iterable[str]) -> None:
    """Raise `NotAuthorized` if ``hidden`` is not empty. hidden: topics on which the principal lacks Describe."""
    lacking = [f"{Operation.DESCRIBE} on {Resource(ResourceType.TOPIC, topic)}" for topic in hidden]
    if lacking:
        these = "this permission" if len(lacking) == 1 else "these permissions"
        raise NotAuthorized(f"not authorized: {principal} lacks {some(lacking, most=20)}; grant it {these}")
