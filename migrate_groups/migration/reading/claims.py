"""Read what runs of this tool have claimed of groups' partitions, from the groups' journals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from migrate_groups.errors import MigrateGroupsError, NotAuthorized
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.offsets_topic import OWN_GROUPS, journal_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.checks.journal import GroupAt, JournalFacts, Place
from migrate_groups.planning.claims import Claim, Claims, ClaimState, decode, in_words, without_returned
from migrate_groups.text import some

GRANT = f"grant Read on groups with the prefix {OWN_GROUPS!r}"
_LONGEST_NAME = 2**15 - 1  # in bytes, because Kafka's protocol stores the length in 16 bits


class ReadClaims(NamedTuple):
    """The claims in journals, by the group whose partitions are claimed.

    - claims: by partition.
    - offsets: the offsets that are committed with the claims.
    - not_known: why the claims of a group are not known.
    """

    claims: Mapping[str, Mapping[TopicPartition, Claims]]
    offsets: Mapping[str, Mapping[TopicPartition, int]]
    not_known: Mapping[str, str]


def read_claims(reader: GroupReader, groups: Collection[str], not_known: Mapping[str, str]) -> ReadClaims:
    """Return the claims that are committed now. not_known: why those of some of the groups are not read."""
    unknown = dict(not_known)
    names = {journal_group(group): group for group in groups if group not in unknown}
    claims: dict[str, dict[TopicPartition, Claims]] = {}
    offsets: dict[str, dict[TopicPartition, int]] = {}
    for name, found in reader.committed(dict.fromkeys(names), wait=False).items():
        group = names[name]
        if isinstance(found, MigrateGroupsError):
            if not isinstance(found, NotAuthorized):
                raise found
            unknown[group] = f"{found}; {GRANT}"
            continue
        there = {place: committed for place, committed in found.items() if committed is not None}
        decoded = {place: decode(committed.metadata) for place, committed in there.items()}
        if foreign := [place for place, of_place in decoded.items() if of_place is None]:
            unknown[group] = (
                f"group {name!r} has committed offsets that are no claims of this tool, such as {min(foreign)}: if no "
                "application uses this group, delete it"
            )
            continue
        claims[group] = {place: of_place for place, of_place in decoded.items() if of_place}
        offsets[group] = {place: committed.offset for place, committed in there.items()}
    return ReadClaims(claims, offsets, unknown)


def journals_not_granted(reader: GroupReader, groups: Collection[str]) -> dict[str, str]:
    """Return, by group, why the client's principal can't claim its partitions; empty if it can, as far as it shows."""
    not_known = {
        group: f"the name of group {group[:40]!r}… is too long for a journal"
        for group in groups
        if len(journal_group(group).encode(errors="replace")) > _LONGEST_NAME
    }
    resources = {
        group: Resource(ResourceType.GROUP, journal_group(group)) for group in groups if group not in not_known
    }
    permitted = reader.permissions([*resources.values()])
    for group, resource in resources.items():
        operations = permitted[resource]
        if operations is not None and Operation.READ not in operations:
            not_known[group] = f"{reader.principal} lacks Read on {resource}; {GRANT}"
    return not_known


def with_givers(reader: GroupReader, facts: JournalFacts, stopped_at: Mapping[Place, int]) -> JournalFacts:
    """Return the facts with ``givers``. stopped_at: the offsets that are committed with the claims."""
    arrived = {
        source: newest[0]
        for source in facts.handed
        if (newest := without_returned(facts.of(source)))
        and newest[0].state is ClaimState.ARRIVED
        and not newest[0].cluster
    }
    wanted: dict[str, list[TopicPartition]] = defaultdict(list)
    for (_, partition), claim in arrived.items():
        wanted[claim.groups[0]].append(partition)
    now = reader.committed(wanted) if wanted else {}
    givers: dict[Place, tuple[Claim, int]] = {}
    not_known = dict(facts.not_known)
    for source, claim in arrived.items():
        giver = claim.groups[0]
        found = now[giver]
        if isinstance(found, NotAuthorized):
            not_known[GroupAt(giver)] = f"whether {giver!r} has consumed them since it handed them over: {found}"
        elif isinstance(found, MigrateGroupsError):
            raise found
        elif (committed := found[source[1]]) is not None and committed.offset > stopped_at[source]:
            givers[source] = claim, committed.offset
    return replace(facts, givers=givers, not_known=not_known)


def claims_in_words(reader: GroupReader, groups: Collection[str]) -> list[str]:
    """Return what runs have handed over of these groups, a line for each claim, or why it is not known of a group."""
    found = read_claims(reader, groups, journals_not_granted(reader, groups))
    # The journals of both groups of a hand-over say the same of it.
    partitions: dict[str, set[str]] = defaultdict(set)
    for group, of_group in found.claims.items():
        for place, claims in sorted(of_group.items()):
            partitions[in_words(claims[0], group)].add(str(place))
    lines = [f"{some(places)} {what}" for what, places in partitions.items()]
    return [*lines, *(f"it is not known what runs have handed over: {why}" for why in found.not_known.values())]


def groups_further_on(reader: GroupReader, offsets: Mapping[Place, int], known: Collection[str]) -> list[str]:
    """Return the groups that consume partitions of source groups, and have committed at or after the given offsets.

    offsets: of the source groups. known: groups to leave out. Such a group may have got the partitions from a source
    group by another run, or it reads the topics on its own account.
    """
    names = [each.group for each in reader.list_groups() if each.state not in ("Empty", "Dead")]
    wanted = [name for name in names if name not in known and not name.startswith(OWN_GROUPS)]
    topics = {partition.topic for _, partition in offsets}
    described = reader.describe_groups(wanted)
    on_them = [
        group
        for group, each in described.items()
        if not isinstance(each, MigrateGroupsError)
        and each.group_type != "share"
        and any(member.topics & topics for member in each.members)
    ]
    partitions = sorted({partition for _, partition in offsets})
    committed = reader.committed(dict.fromkeys(on_them, partitions), wait=False)
    return [
        group
        for group, found in committed.items()
        if not isinstance(found, MigrateGroupsError)
        and any(
            (there := found.get(partition)) is not None and there.offset >= offset
            for (_, partition), offset in offsets.items()
        )
    ]
