"""Brokers' answers to requests that alter or delete committed offsets, or that delete a group."""

from __future__ import annotations

from enum import StrEnum

from migrate_groups.model.partitions import PartitionValue


class Answer(StrEnum):
    """Whether a broker has applied a request that alters or deletes a committed offset, or that deletes a group.

    `WRITTEN`: the broker has applied it. `REFUSED`: the broker has not applied it. `UNKNOWN`: the broker did not
    answer, or returned an error that does not say whether the request was applied.
    """

    WRITTEN = "written"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class WriteAnswer(PartitionValue, frozen=True, kw_only=True):
    """The answer of a broker for one partition of a request, or for the deletion of a group.

    error: Kafka's name of the error, or a description of another failure; empty if the answer is `WRITTEN`.
    """

    answer: Answer
    error: str = ""
