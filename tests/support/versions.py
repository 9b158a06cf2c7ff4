"""What takes a certain version of Kafka, for tests that run on several (``--kafka``)."""

from __future__ import annotations

import pytest

NEEDS_KIP_848 = pytest.mark.needs_kafka("4.0.0", "groups of the consumer protocol (KIP-848)")
NEEDS_SHARE_GROUPS = pytest.mark.needs_kafka("4.1.0", "share groups (KIP-932)")
CONSUMER = pytest.param("consumer", marks=NEEDS_KIP_848)
"""The name of KIP-848's protocol, where tests take each."""
