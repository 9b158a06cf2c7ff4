"""Brokers' answers to requests that alter or delete committed offsets, or that delete a group."""

from __future__ import annotations

from enum import StrEnum

from migrate_groups.model.partitions import PartitionValue


class Answer(StrEnum):
    """Whether a broker has applied a request that alters or deletes committed offsets, or that deletes a group.

    - `WRITTEN`: the broker has applied the request.
    - `REFUSED`: the broker has not applied the request.
    - `UNKNOWN`: the broker did not answer, or its error does not say whether the request was applied.
    """

    WRITTEN = "written"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class WriteAnswer(PartitionValue, frozen=True, kw_only=True):
    """The answer of a broker for one partition of a request, or for the deletion of a group.

    error: Kafka's name of the error, or a description; empty if the request was applied.
    """

    answer: Answer
    error: str = ""
