"""What brokers answer to a write."""

from __future__ import annotations

from enum import StrEnum

from migrate_groups.model.partitions import PartitionValue


class Answer(StrEnum):
    """What a broker said to the write of one partition. Silence is not a refusal: it may still be applied."""

    WRITTEN = "written"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class WriteAnswer(PartitionValue, frozen=True, kw_only=True):
    """The answer for one partition, with the name of Kafka's error where there is one."""

    answer: Answer
    error: str = ""
