"""Brokers' answers to a write."""

from __future__ import annotations

from enum import StrEnum

from migrate_groups.model.partitions import PartitionValue


class Answer(StrEnum):
    """A broker's answer to the write of one partition. Without an answer, the write may still be applied: `UNKNOWN`."""

    WRITTEN = "written"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class WriteAnswer(PartitionValue, frozen=True, kw_only=True):
    """The answer for one partition. error: the name of Kafka's error; empty where there is none."""

    answer: Answer
    error: str = ""
