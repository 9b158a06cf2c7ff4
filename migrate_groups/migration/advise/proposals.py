"""Suggest what to do about a group that several applications share: change client settings, or split the group."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from migrate_groups.clock import Clock
from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.advise.client_settings import ClientSetting, client_settings
from migrate_groups.migration.advise.propose import propose
from migrate_groups.migration.advise.shared_groups import Finding, advise
from migrate_groups.migration.ports import GroupReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """What to do about a consumer group that several applications share.

    settings: client settings to try first, which cost less than a split. spec: the text of a spec file with a split,
    which gives each application a group of its own; empty if no split is proposed. why_not: why none is proposed.
    """

    settings: tuple[ClientSetting, ...]
    spec: str
    why_not: str = ""


def suggestions(reader: GroupReader, clock: Clock, groups: Collection[str]) -> dict[str, Suggestion]:
    """Return, by group, which client settings to change and how to split it, if several applications share the group.

    A group without a split is included, with the reason. Groups that do not exist are left out. Raises `NotAuthorized`
    or `ClusterUnavailable`.
    """
    there = {each.group for each in reader.list_groups()}
    found = advise(reader, clock, sorted(there.intersection(groups))) if there.intersection(groups) else ()
    made = {}
    for each in found:
        cheaper = client_settings(each.status) if each.finding in (Finding.SHARED, Finding.JOINED) else ()
        try:
            made[each.status.group] = Suggestion(settings=cheaper, spec=propose(reader, each).to_toml())
        except MigrateGroupsError as error:
            made[each.status.group] = Suggestion(settings=cheaper, spec="", why_not=str(error))
    return made
