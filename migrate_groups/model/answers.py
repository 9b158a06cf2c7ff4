"""Brokers' answers to a request that alters or deletes committed offsets."""

from __future__ import annotations

from enum import StrEnum

from migrate_groups.model.partitions import PartitionValue


class Answer(StrEnum):
    """Whether a broker has applied a request that alters or deletes a committed offset, or that deletes a group.

    `WRITTEN`: the broker has applied it. `REFUSED`: it has not. `UNKNOWN`: the broker did not answer, or its error does
    not tell.
    """

    WRITTEN = "written"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class WriteAnswer(PartitionValue, frozen=True, kw_only=True):
    """An `Answer` with its error: for one partition, or for the deletion of a group.

    error: Kafka's name of the error, or what else went wrong; empty if the answer is `WRITTEN`.
    """

    answer: Answer
    error: str = ""
