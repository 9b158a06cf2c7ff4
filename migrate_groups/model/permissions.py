"""The types of resources and the operations in Kafka's ACLs that this tool uses."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


class ResourceType(StrEnum):
    """The type of a resource, named as in Kafka's ACLs."""

    GROUP = "Group"
    TOPIC = "Topic"


class Resource(NamedTuple):
    """A group or a topic in Kafka's ACLs."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name!r}"


class Operation(StrEnum):
    """An operation on a resource, named as in Kafka's ACLs. Read and Delete imply Describe."""

    DELETE = "Delete"
    DESCRIBE = "Describe"
    READ = "Read"


EVERYONE = "User:*"
"""The principal in an ACL that applies to every user."""
ANY_HOST = "*"
"""The host in an ACL that applies on every host."""


class Acl(NamedTuple):
    """One of Kafka's ACLs on groups or topics.

    - name: a name; with ``is_prefix`` the beginning of names, and otherwise ``*`` for all names.
    - operation: as Kafka writes it, such as ``Read`` or ``All``.
    - is_allowed: whether it allows the operation; otherwise it denies it.
    """

    type: ResourceType
    name: str
    is_prefix: bool
    principal: str
    host: str
    operation: str
    is_allowed: bool

    def applies_to(self, resource: Resource) -> bool:
        """Return whether this ACL is one of the group or the topic."""
        if self.type is not resource.type:
            return False
        return resource.name.startswith(self.name) if self.is_prefix else self.name in ("*", resource.name)


class Acls(NamedTuple):
    """The ACLs of some principals, and of every user.

    unknown: why they can't be read, or don't decide what principals may do; empty if they do.
    """

    entries: Sequence[Acl] = ()
    unknown: str = ""
