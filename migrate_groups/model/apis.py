"""The APIs of Kafka's protocol that this tool uses, and what brokers offer of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Api(NamedTuple):
    """An API of Kafka's protocol that this tool uses.

    - name, key: as in Kafka's documentation of its protocol.
    - offered: the lowest and the highest version that the brokers offer; None if they do not offer the API.
    - used: the version in which this tool sends the request; None if it can't.
    """

    name: str
    key: int
    offered: tuple[int, int] | None
    used: int | None


class Offers(NamedTuple):
    """What brokers of other vendors, or old ones, may not offer.

    deletes_offsets: to delete committed offsets (OffsetDelete, KIP-496). tells_pending: to say whether a transactional
    commit is pending (OffsetFetch with ``require_stable``, KIP-447). alters_share_groups: to read, set and delete start
    offsets of share groups (KIP-932). apis: every API that this tool uses.
    """

    deletes_offsets: bool = True
    tells_pending: bool = True
    alters_share_groups: bool = True
    apis: Sequence[Api] = ()


SHARE_GROUPS = (
    *("ShareGroupDescribe", "DescribeShareGroupOffsets"),
    *("AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
)
"""The APIs for share groups (KIP-932), by name."""
ALL_OFFERED = Offers()
"""What Apache Kafka offers since 2.5."""
