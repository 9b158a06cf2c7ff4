"""Marks for tests that need a minimum version of Kafka. The test suite runs on several versions (``--kafka``)."""

from __future__ import annotations

import pytest


def is_at_least(version: str, least: str) -> bool:
    """Return whether ``version``, a version of Kafka, is ``least`` or later."""
    number, needed = (tuple(map(int, each.split("."))) for each in (version, least))
    return number >= needed


NEEDS_KIP_848 = pytest.mark.needs_kafka("4.0.0", "groups of the consumer protocol (KIP-848)")
NEEDS_SHARE_GROUPS = pytest.mark.needs_kafka("4.1.0", "share groups (KIP-932)")
NEEDS_SHARE_OFFSETS = pytest.mark.needs_kafka("4.2.0", "share groups that need no feature to be turned on")
NEEDS_MODEL = pytest.mark.needs_kafka("4.0.0", "before, a group outlives the last of its offsets for a while")
NEEDS_TOOL_NAMES = pytest.mark.needs_kafka("3.9.0", "Kafka's own tools have other class names before")
NEEDS_TOOL = pytest.mark.needs_kafka("4.0.0", "Kafka's own tool has other tables and OAuth options before")
NEEDS_TRANSACTIONS = pytest.mark.needs_kafka("3.0.0", "transactions with KRaft")
NEEDS_THREE_BROKERS = pytest.mark.needs_kafka("3.0.0", "a cluster of several brokers with KRaft that comes up")
NEEDS_MANY_GROUPS = pytest.mark.needs_kafka("3.0.0", "requests for several groups at once (KIP-699, KIP-709)")
NEEDS_NEW_PARTITIONS = pytest.mark.needs_kafka("3.0.0", "adding partitions with KRaft")
NEEDS_FAILED_DISKS = pytest.mark.needs_kafka("3.7.0", "a failed disk beside a good one with KRaft (KIP-858)")
NEEDS_AUTHORIZER = pytest.mark.needs_kafka("3.2.0", "ACLs with KRaft (KIP-801)")
NEEDS_SCRAM = pytest.mark.needs_kafka("3.5.0", "SCRAM with KRaft (KIP-900), and ACLs (KIP-801)")
NEEDS_LATE_CLASSES = pytest.mark.needs_kafka("3.0.0", "an authorizer that is loaded as Kafka starts")
NEEDS_CLIENT_ASSERTION = pytest.mark.needs_kafka("4.3.0", "client assertions in Kafka's own tool (KIP-1258)")
NEEDS_TOPIC_IDS = pytest.mark.needs_kafka("4.3.0", "topic ids in committed offsets, whichever client commits")
CONSUMER = pytest.param("consumer", marks=NEEDS_KIP_848)
"""The value of ``group.protocol`` for KIP-848 groups, for tests that run with each protocol."""
