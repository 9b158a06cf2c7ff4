"""Functions that the commands rollback, hand-back and delete-offsets share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from migrate_groups.planning.checks.target import is_trimmed
from migrate_groups.planning.options import WriteOptions


def options_of_write(options: WriteOptions, groups: Iterable[str]) -> WriteOptions:
    """Return the options for a write to these groups, without confluent-kafka if it would misread a group's name.

    librdkafka changes some names (docs/kafka-behaviour.md#confluent-kafka).
    """
    return replace(options, second_client="none") if any(map(is_trimmed, groups)) else options
