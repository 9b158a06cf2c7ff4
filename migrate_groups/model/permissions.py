"""The types of resources and the operations in Kafka's ACLs that this tool uses."""

from __future__ import annotations

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
