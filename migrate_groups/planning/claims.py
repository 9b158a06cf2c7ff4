"""What the runs of this tool have claimed: which group handed a partition over to which one, as the cluster keeps it.

The claims on a group's partitions are in the group's journal, a consumer group that this tool owns
(`model.offsets_topic.journal_group`). They are the metadata of its committed offsets (docs/run-states.md#journals).
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from migrate_groups.planning import typed_json
from migrate_groups.text import some

_MOST_CLAIMS = 8
"""How many claims on a partition are kept."""
_MOST_BYTES = 4096
"""How long their text may be: the default of the broker's setting ``offset.metadata.max.bytes``."""


class ClaimState(StrEnum):
    """What a run did with a partition of the group whose journal has the claim.

    - handed over: the group gave the partition to other groups. From there on it is theirs.
    - arriving: another group is giving the partition to this group, and the user has not been told to start it yet.
    - arrived: another group gave the partition to this group.
    - returned: the hand-over was undone, so the partition is the group's again.
    """

    HANDED_OVER = "handed over"
    ARRIVING = "arriving"
    ARRIVED = "arrived"
    RETURNED = "returned"


class Claim(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a run did with a partition of a group.

    - run: the id of the run.
    - groups: the groups that got the partition, or the group that gave it, by name.
    - at: when the run claimed it.
    - cluster: the id of the cluster on which the other groups are; empty if it is that of the journal.
    """

    run: str
    state: ClaimState
    groups: tuple[str, ...]
    at: datetime
    cluster: str = ""


Claims = tuple[Claim, ...]
"""The claims on one partition in a group's journal, newest first. The older ones count again if a newer is undone."""


def in_words(claim: Claim, group: str) -> str:
    """Return what a run did with a partition of this group, as the end of a sentence that begins with the partition."""
    others = some([*map(repr, claim.groups)]) + (f" on cluster {claim.cluster}" if claim.cluster else "")
    what = {
        ClaimState.HANDED_OVER: f"handed over from {group!r} to {others}",
        ClaimState.ARRIVING: f"being handed over from {others} to {group!r}",
        ClaimState.ARRIVED: f"handed over from {others} to {group!r}",
        ClaimState.RETURNED: f"given back from {others} to {group!r}",
    }[claim.state]
    return f"{what} on {claim.at:%Y-%m-%d %H:%M} UTC, by run {claim.run}"


# Most partitions of a write have the same claims. So each is computed and encoded once, not ten thousand times.
_once = lru_cache(maxsize=256)


@_once
def encode(claims: Claims) -> str:
    """Return the claims on one partition as the metadata of a committed offset, without the oldest if they are long."""
    text = msgspec.json.encode(claims)
    while len(text) > _MOST_BYTES and len(claims) > 1:
        claims = claims[:-1]
        text = msgspec.json.encode(claims)
    return text.decode()


def decode(metadata: str) -> Claims | None:
    """Return the claims in the metadata of a committed offset; None if this tool did not write it."""
    try:
        claims = typed_json.decode(metadata, tuple[Claim, ...])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return claims if all(claim.at.tzinfo is not None for claim in claims) else None


def is_copied(claims: Claims, cluster: str) -> bool:
    """Return whether the claims are from another cluster, because they name this one as the other.

    The group sync of a mirror copies journals too. cluster: the id of the journal's cluster.
    """
    return bool(cluster) and any(claim.cluster == cluster for claim in claims)


def gives(claims: Claims, groups: Collection[str], cluster: str) -> bool:
    """Return whether the newest claim is that the partition was handed over to exactly these groups, by any run.

    cluster: the id of the groups' cluster; empty if it is that of the journal.
    """
    newest = claims[0] if claims else None
    return (
        newest is not None
        and newest.state is ClaimState.HANDED_OVER
        and {*newest.groups} == {*groups}
        and newest.cluster == cluster
    )


@_once
def handed_over(claims: Claims, run: str, groups: tuple[str, ...], at: datetime, cluster: str = "") -> Claims:
    """Return the claims after this run has claimed to hand the partition over to these groups; the same one is kept.

    cluster: as in `gives`.
    """
    if gives(claims, groups, cluster):
        return claims
    claim = Claim(run=run, state=ClaimState.HANDED_OVER, groups=tuple(sorted(groups)), at=at, cluster=cluster)
    return (claim, *without_returned(claims))[:_MOST_CLAIMS]


@_once
def returned(claims: Claims, run: str, groups: tuple[str, ...], at: datetime, cluster: str = "") -> Claims:
    """Return the claims after this run has undone that the partition was handed over to these groups.

    cluster: as in `gives`.
    """
    earlier = without_returned(claims)
    if gives(earlier, groups, cluster):
        earlier = without_returned(earlier[1:])
    claim = Claim(run=run, state=ClaimState.RETURNED, groups=tuple(sorted(groups)), at=at, cluster=cluster)
    return (claim, *earlier)[:_MOST_CLAIMS]


class Giving(NamedTuple):
    """A run that gives a partition of a source group to a target group, or takes it back, and when.

    cluster: the id of the source group's cluster; empty if it is that of the journal.
    """

    run: str
    source: str
    at: datetime
    cluster: str = ""


@_once
def arriving(claims: Claims, giving: Giving) -> Claims:
    """Return a target group's claims after the run has begun to give it the partition."""
    earlier = claims[1:] if claims and _arrives(claims[0], giving) else claims
    state, groups = ClaimState.ARRIVING, (giving.source,)
    claim = Claim(run=giving.run, state=state, groups=groups, at=giving.at, cluster=giving.cluster)
    return (claim, *earlier)[:_MOST_CLAIMS]


@_once
def arrived(claims: Claims, giving: Giving) -> Claims:
    """Return a target group's claims after it has got the partition, and the user is told to start it."""
    if claims and _arrives(claims[0], giving):
        return (replace(claims[0], state=ClaimState.ARRIVED), *claims[1:])
    return claims


@_once
def not_arrived(claims: Claims, giving: Giving) -> Claims:
    """Return a target group's claims from before it got the partition."""
    arrival = next((at for at, claim in enumerate(claims) if _arrives(claim, giving)), None)
    return claims if arrival is None else claims[arrival + 1 :]


@_once
def giving_back(claims: Claims, giving: Giving) -> Claims:
    """Return a target group's claims after the run has begun to give the partition back to the source group."""
    return handed_over(claims, giving.run, (giving.source,), giving.at, giving.cluster)


@_once
def not_given_back(claims: Claims, giving: Giving) -> Claims:
    """Return a target group's claims from before the run began to give the partition back."""
    is_ours = gives(claims, [giving.source], giving.cluster) and claims[0].run == giving.run
    return claims[1:] if is_ours else claims


@_once
def given_back(claims: Claims, giving: Giving) -> Claims:
    """Return a target group's claims after the run has given the partition back to the source group."""
    before = not_arrived(claims, giving)
    if before and before[0].state is ClaimState.HANDED_OVER:
        return before  # the group had given it away before this run, so it is not the group's now either
    return giving_back(before, giving)


def _arrives(claim: Claim, giving: Giving) -> bool:
    is_arrival = claim.state in (ClaimState.ARRIVING, ClaimState.ARRIVED)
    return is_arrival and (claim.groups, claim.cluster) == ((giving.source,), giving.cluster)


def without_returned(claims: Claims) -> Claims:
    """Return the claims that count: those before a hand-over that was undone, if it is the newest."""
    return claims[1:] if claims and claims[0].state is ClaimState.RETURNED else claims
