"""What `doctor` reads from a cluster, and what this tool can do there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from migrate_groups.model.apis import SHARE_GROUPS, Offers
from migrate_groups.model.offsets_topic import OWN_GROUPS
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.checks.deletion import NOT_OFFERED
from migrate_groups.planning.checks.permission import ANY_GROUP, ANY_TOPIC, OFFSETS, Permissions, hidden, missing
from migrate_groups.planning.checks.source import PENDING_NOT_TOLD
from migrate_groups.text import some

YES, NO, PARTLY, NOT_KNOWN = "yes", "no", "partly", "not known"

_READS = ("Metadata", "FindCoordinator", "DescribeGroups", "OffsetFetch", "ListOffsets")
_WRITES = (*_READS, "ListGroups", "OffsetCommit", "JoinGroup", "SyncGroup", "LeaveGroup")
_OWN = Resource(ResourceType.GROUP, f"{OWN_GROUPS}doctor")
NEEDED: Mapping[Resource, frozenset[Operation]] = {
    OFFSETS: frozenset({Operation.DESCRIBE, Operation.READ}),
    ANY_TOPIC: frozenset({Operation.DESCRIBE}),
    ANY_GROUP: frozenset({Operation.DESCRIBE}),
    _OWN: frozenset({Operation.DESCRIBE, Operation.READ, Operation.DELETE}),
}
"""The permissions that do not depend on the groups of a migration (docs/permissions.md)."""
PURPOSES: Mapping[Resource, str] = {
    OFFSETS: "Read: audit, history, advise --log. Describe: barrier",
    ANY_TOPIC: "a name that no topic has: Describe shows that no topic is hidden",
    ANY_GROUP: "a name that no group has: Describe shows that no group is hidden",
    _OWN: f"probe groups and journals, whose names begin with {OWN_GROUPS}",
}


class Capability(NamedTuple):
    """Something that this tool does, such as ``rollback``. answer: whether the cluster allows it. reason: why not."""

    what: str
    answer: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """A cluster, as far as its brokers show it to the principal of the client.

    - second_client: why the second client (confluent-kafka) can't read back; empty if it logged in.
    - permissions: the operations that the principal may perform on each of `NEEDED`; None if brokers don't return them.
    - offsets_topic: whether ``__consumer_offsets`` can be read, as the answer and reason of a `Capability`.
    - retention: the broker's ``offsets.retention.minutes``; None if it can't be read.
    """

    principal: str
    cluster_id: str
    brokers: Sequence[int]
    second_client: str
    offers: Offers
    permissions: Permissions
    offsets_topic: tuple[str, str]
    retention: timedelta | None

    @property
    def capabilities(self) -> Sequence[Capability]:
        """What this tool can do on the cluster."""
        return (
            self._with("list, advise", *_READS, "ListGroups", hides="no group", of=ANY_GROUP),
            self._with("describe, snapshot, rewind, watch, export", *_READS, hides="no topic", of=ANY_TOPIC),
            self._with("migrate, apply, hand-back", *_WRITES),
            self._with("migrate --hold", *_WRITES, "Heartbeat"),
            self._deletes("rollback of a new group, delete-offsets"),
            self._with("delete-group", *_READS, "ListGroups", "DeleteGroups"),
            self._own_groups("barrier and journals of writes"),
            self._second_client("read back with a second client"),
            self._pending("see pending transactional commits"),
            self._with("describe KIP-848 groups, if there are any", "ConsumerGroupDescribe"),
            self._with("hand over to share groups", *SHARE_GROUPS),
            self._offsets_topic("audit, history, advise --log"),
            self._with("compare, moves to another cluster, --time-lag", *_READS, "Fetch"),
            self._with("notice records that an unclean leader election replaced", "OffsetForLeaderEpoch"),
            self._retention("know when offsets expire"),
        )

    def _lacking(self, apis: Sequence[str]) -> str:
        """Return which of the APIs can't be used, as a reason; empty if all can."""
        reasons = []
        for api in self.offers.apis:
            if api.name in apis and api.used is None:
                versions = f" in a version that this tool speaks (only {span(api.offered)})" if api.offered else ""
                reasons.append(f"the brokers do not offer {api.name}{versions}")
        return "; ".join(reasons)

    def _with(self, what: str, *apis: str, hides: str = "", of: Resource = OFFSETS) -> Capability:
        if reason := self._lacking(apis):
            return Capability(what, NO, reason)
        if hides and hidden({of: self.permissions[of]}):
            return Capability(what, PARTLY, f"{self.principal} may not know that {hides} is hidden from it")
        return Capability(what, YES)

    def _deletes(self, what: str) -> Capability:
        if not self.offers.deletes_offsets:
            return Capability(what, NO, f"{NOT_OFFERED}: delete-group undoes a hand-over that nobody started")
        return self._with(what, *_WRITES, "OffsetDelete")

    def _own_groups(self, what: str) -> Capability:
        if reason := self._lacking(_WRITES):
            return Capability(what, NO, reason)
        if lacking := missing({_OWN: NEEDED[_OWN]}, self.permissions):
            advice = f"grant this on groups with the prefix {OWN_GROUPS!r}"
            return Capability(what, NO, f"{self.principal} lacks {some(lacking)}: {advice}")
        if self.permissions[_OWN] is None:
            return Capability(what, NOT_KNOWN, f"the brokers do not return what {self.principal} may do")
        return Capability(what, YES)

    def _second_client(self, what: str) -> Capability:
        return Capability(what, NO, self.second_client) if self.second_client else Capability(what, YES)

    def _pending(self, what: str) -> Capability:
        return Capability(what, YES) if self.offers.tells_pending else Capability(what, NO, PENDING_NOT_TOLD)

    def _offsets_topic(self, what: str) -> Capability:
        if reason := self._lacking(("Metadata", "ListOffsets", "Fetch")):
            return Capability(what, NO, reason)
        return Capability(what, *self.offsets_topic)

    def _retention(self, what: str) -> Capability:
        if self.retention is not None:
            return Capability(what, YES)
        reason = self._lacking(("DescribeConfigs",)) or f"{self.principal} may lack DescribeConfigs on Cluster"
        return Capability(what, NO, reason)


def span(versions: tuple[int, int]) -> str:
    """Return versions of an API as text, such as ``0 to 9``."""
    low, high = versions
    return str(low) if low == high else f"{low} to {high}"
