"""What Kafkas of other vendors offer, by what is published of them; a proxy makes an Apache Kafka offer the same.

Nothing of this was seen on the brokers themselves. What no source says is assumed, and is said to be so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP = 8, 9, 10, 11, 12, 13
SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 14, 15, 16, 18, 19, 20
OFFSET_FOR_LEADER_EPOCH, DESCRIBE_CONFIGS, DELETE_GROUPS, OFFSET_DELETE = 23, 32, 42, 47
DESCRIBE_CLUSTER, CONSUMER_GROUP_DESCRIBE, CONSUMER_GROUP_HEARTBEAT = 60, 69, 68
ANY = (0, 2**15 - 1)
"""The versions that the Kafka behind the proxy offers."""


class Profile(NamedTuple):
    """What brokers offer.

    versions: by key, the lowest and the highest version; other APIs are not offered. hides_offsets_topic: whether no
    client may see ``__consumer_offsets``.
    """

    versions: Mapping[int, tuple[int, int]]
    hides_offsets_topic: bool

    @property
    def deletes_offsets(self) -> bool:
        return OFFSET_DELETE in self.versions


REDPANDA = Profile(
    {
        **{PRODUCE: (0, 7), FETCH: (4, 11), LIST_OFFSETS: (0, 4), METADATA: (0, 8), OFFSET_COMMIT: (1, 8)},
        **{OFFSET_FETCH: (1, 7), FIND_COORDINATOR: (0, 3), JOIN_GROUP: (0, 6), HEARTBEAT: (0, 4), LEAVE_GROUP: (0, 4)},
        **{SYNC_GROUP: (0, 4), DESCRIBE_GROUPS: (0, 5), LIST_GROUPS: (0, 4), API_VERSIONS: (0, 3)},
        **{CREATE_TOPICS: (0, 6), DELETE_TOPICS: (0, 5), OFFSET_FOR_LEADER_EPOCH: (0, 4), DESCRIBE_CONFIGS: (0, 4)},
        **{DELETE_GROUPS: (0, 2), OFFSET_DELETE: (0, 0)},
    },
    hides_offsets_topic=False,
)
"""Redpanda 24.3: the versions in ``src/v/kafka/server/handlers`` of github.com/redpanda-data/redpanda at v24.3.2-rc5
(2024-12-17). That ``__consumer_offsets`` can be described is assumed."""

EVENT_HUBS = Profile(
    {
        **{PRODUCE: (0, 7), FETCH: (4, 6), LIST_OFFSETS: (0, 8), METADATA: (0, 5), OFFSET_COMMIT: (0, 8)},
        **{OFFSET_FETCH: (0, 8), FIND_COORDINATOR: (0, 4), JOIN_GROUP: (0, 9), HEARTBEAT: (0, 4), LEAVE_GROUP: (0, 5)},
        **{SYNC_GROUP: (0, 1), DESCRIBE_GROUPS: (0, 1), LIST_GROUPS: (0, 1), API_VERSIONS: (0, 3)},
        **{CREATE_TOPICS: (0, 2), DELETE_TOPICS: (0, 2), OFFSET_FOR_LEADER_EPOCH: (0, 0), DESCRIBE_CONFIGS: (0, 2)},
        **{DELETE_GROUPS: (0, 0)},
    },
    hides_offsets_topic=True,
)
"""Azure Event Hubs. The keys 0 to 13: github.com/oliveigah/klife/issues/13 (2024-11-20). DescribeConfigs and
DeleteGroups: github.com/Azure/azure-event-hubs-for-kafka/issues/209 (2022-09-23). The other keys: issue 69 there
(2019), so that later versions may be offered by now. ApiVersions up to 3: github.com/twmb/franz-go/pull/1022
(2025-05-16). Assumed: no OffsetDelete, because no source lists it, and no ``__consumer_offsets``. Not imitated: groups
without members that are Dead and not listed."""

MSK_SERVERLESS = Profile(
    {
        **{PRODUCE: (7, 9), FETCH: (10, 12), LIST_OFFSETS: (5, 6), METADATA: (7, 11), OFFSET_COMMIT: (6, 8)},
        **{OFFSET_FETCH: (5, 7), FIND_COORDINATOR: (2, 3), JOIN_GROUP: (4, 7), HEARTBEAT: (2, 4), LEAVE_GROUP: (2, 4)},
        **{SYNC_GROUP: (2, 5), DESCRIBE_GROUPS: (2, 5), LIST_GROUPS: (2, 4), API_VERSIONS: (2, 3)},
        **{CREATE_TOPICS: (3, 7), DELETE_TOPICS: (3, 6), OFFSET_FOR_LEADER_EPOCH: (2, 4), DESCRIBE_CONFIGS: (1, 4)},
        **{DELETE_GROUPS: (0, 2), OFFSET_DELETE: (0, 0)},
    },
    hides_offsets_topic=True,
)
"""Amazon MSK Serverless. The keys 0 to 25: ``kafka-broker-api-versions`` in github.com/tchiotludo/akhq/pull/1113
(2022-06-06). The keys from 32 on are assumed to be those of Kafka 2.8, and ``__consumer_offsets`` to be hidden."""

WARPSTREAM = Profile(
    dict.fromkeys(
        (
            *(PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP),
            *(HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS, CREATE_TOPICS),
            *(DELETE_TOPICS, DESCRIBE_CONFIGS, DELETE_GROUPS, OFFSET_DELETE, DESCRIBE_CLUSTER),
        ),
        ANY,
    ),
    hides_offsets_topic=True,
)
"""WarpStream: the messages in docs.warpstream.com/warpstream/reference/protocol-and-feature-support (read from a
copy of 2026; the page has no date). It names no versions: those of Kafka 4.3.0 are assumed. So is that there is no
``__consumer_offsets``."""

CONFLUENT_CLOUD = Profile(
    dict.fromkeys(
        (*WARPSTREAM.versions, OFFSET_FOR_LEADER_EPOCH, CONSUMER_GROUP_DESCRIBE, CONSUMER_GROUP_HEARTBEAT), ANY
    ),
    hides_offsets_topic=True,
)
"""Confluent Cloud: no table is published. That it offers what Kafka 4.3.0 does, and hides ``__consumer_offsets``, is
assumed."""

PROFILES: Mapping[str, Profile] = {
    "Redpanda 24.3": REDPANDA,
    "Event Hubs": EVENT_HUBS,
    "MSK Serverless": MSK_SERVERLESS,
    "WarpStream": WARPSTREAM,
    "Confluent Cloud": CONFLUENT_CLOUD,
}
