"""Brokers' answers to a request that alters or deletes committed offsets."""

from __future__ import annotations

from enum import StrEnum

from migrate_groups.model.partitions import PartitionValue


class Answer(StrEnum):
    """A broker's answer for one partition of a request that alters or deletes committed offsets.

    `UNKNOWN`: the broker did not answer, or its error does not tell whether it applied the request.
    """

    WRITTEN = "written"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class WriteAnswer(PartitionValue, frozen=True, kw_only=True):
    """A broker's answer for one partition. error: Kafka's error or what else went wrong; empty if it was written."""

    answer: Answer
    error: str = ""
