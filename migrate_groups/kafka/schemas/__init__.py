"""Kafka's protocol messages that kafka-python lacks, with the schemas in the jars of kafka-clients 4.1.0 to 4.3.0."""

from __future__ import annotations

import sys

from kafka.protocol.api_message import ApiMessage

_HERE = sys.modules[__name__]  # the package with the schemas


class ConsumerGroupDescribeRequest(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]
    """The request ConsumerGroupDescribe (API key 69), which returns the members of KIP-848 groups."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]
    """The response to ConsumerGroupDescribe (API key 69). Because this class exists, kafka-python can decode it."""


class ShareGroupDescribeRequest(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]
    """The request ShareGroupDescribe (API key 77), which returns the epoch of share groups (KIP-932)."""


class ShareGroupDescribeResponse(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]
    """The response to ShareGroupDescribe (API key 77)."""


class DescribeShareGroupOffsetsRequest(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]
    """The request DescribeShareGroupOffsets (API key 90), which returns start offsets of share groups (KIP-932)."""


class DescribeShareGroupOffsetsResponse(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]
    """The response to DescribeShareGroupOffsets (API key 90)."""


class AlterShareGroupOffsetsRequest(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]
    """The request AlterShareGroupOffsets (API key 91), which sets start offsets of a share group (KIP-932)."""


class AlterShareGroupOffsetsResponse(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]
    """The response to AlterShareGroupOffsets (API key 91)."""


class DeleteShareGroupOffsetsRequest(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]
    """The request DeleteShareGroupOffsets (API key 92), which deletes start offsets of a share group (KIP-932)."""


class DeleteShareGroupOffsetsResponse(ApiMessage, load_json=_HERE):  # type: ignore[misc,call-arg]
    """The response to DeleteShareGroupOffsets (API key 92)."""
