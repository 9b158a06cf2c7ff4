"""Propose a split that gives each application of a shared consumer group a target group of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from migrate_groups.applications import EAGER_ASSIGNORS
from migrate_groups.clock import Clock
from migrate_groups.errors import MigrateGroupsError, Refused, Undetermined, UsageError
from migrate_groups.files.split_toml import to_toml
from migrate_groups.migration.advise.application import Application
from migrate_groups.migration.advise.shared_groups import Finding, GroupAdvice, advise, idle
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.status import GroupStatus
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted, did_you_mean, some


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A proposed split of a consumer group, with the comments for the spec file.

    heading: the comment lines at the top. notes: by target group, the comment lines above it; by None, those above the
    topics that stay with the source group.
    """

    spec: SplitSpec
    heading: tuple[str, ...]
    notes: Mapping[str | None, tuple[str, ...]]

    def to_toml(self) -> str:
        """Return the text of a spec file with this split and its comments."""
        return to_toml(self.spec, self.heading, self.notes)


def propose(reader: GroupReader, advice: GroupAdvice, applications: Collection[str] = ()) -> Proposal:
    """Return a split that gives each application of a shared group a new target group.

    Topics to which no member subscribes stay with the source group. applications: the names of those that get a new
    group; the others stay, too. If empty, all get one.

    Raises `Refused` if the group is not shared by several applications; `Undetermined` if its applications are not
    known; `UsageError` for an unknown name.
    """
    group, found = advice.status.group, advice.applications
    if advice.finding is Finding.UNKNOWN:
        raise Undetermined(f"group {group!r} can't be advised: {advice.advice}")
    if advice.finding is not Finding.SHARED or found is None:
        raise Refused(f"no split of group {group!r} would separate applications: {advice.advice}")
    known = [each.name for each in found]
    if unknown := [name for name in applications if name not in known]:
        advised = did_you_mean(unknown, known) or f"choose from {some(known)}"
        raise UsageError(f"group {group!r} has no application {some(unknown)}: {advised}")
    moved = [each for each in found if not applications or each.name in applications]
    names = _target_names(group, moved, {each.group for each in reader.list_groups()})
    existing = reader.describe_topics(advice.status.topics).keys()
    staying = [each for each in found if each not in moved]
    stay = sorted(advice.unsubscribed.union(*(each.topics for each in staying)) & existing)
    targets = {name: each for name, each in zip(names, moved, strict=True) if each.topics & existing}
    spec = SplitSpec(
        source=group,
        targets=tuple(
            SplitTarget(group=name, topics=_patterns(each.topics & existing)) for name, each in targets.items()
        ),
        stay=_patterns(stay),
    )
    notes: dict[str | None, tuple[str, ...]] = {name: _note(each) for name, each in targets.items()}
    return Proposal(spec=spec, heading=_heading(reader, advice), notes={**notes, None: _note_on_stay(advice, staying)})


def _note_on_stay(advice: GroupAdvice, staying: Sequence[Application]) -> tuple[str, ...]:
    if not staying:
        return ("No member subscribes to these.",)
    applications = [f"{each.name} stays: {'; '.join(_note(each))}" for each in staying]
    nobody = [f"No member subscribes to {some(sorted(advice.unsubscribed))}."] if advice.unsubscribed else []
    return (*applications, *nobody)


def _target_names(group: str, found: Sequence[Application], existing: Collection[str]) -> list[str]:
    names: list[str] = []
    for each in found:
        name = each.name if each.name.startswith(group) else f"{group}-{each.name}"
        while name in existing or name in names:
            name += "-2"
        names.append(name)
    return names


def _patterns(topics: Collection[str]) -> tuple[TopicPattern, ...]:
    return tuple(map(TopicPattern, sorted(topics)))


def _note(application: Application) -> tuple[str, ...]:
    idlers = len(idle(application.members))
    without = f", {idlers:,} without a partition" if idlers else ""
    found = [f"{counted(len(application.members), 'member')} ({some(application.client_ids)}){without}"]
    if application.unconnected > 1:
        found.append("One application by client ids alone: no member connects its topics.")
    return tuple(found)


def _heading(reader: GroupReader, advice: GroupAdvice) -> tuple[str, ...]:
    status = advice.status
    lines = [
        f"A group for each application that shares {status.group}, as one look found them.",
        "Rename the groups as you like, then: migrate-groups migrate split.toml --dry-run",
    ]
    if cheaper := client_settings(status):
        lines += ["", "These settings cost less than a split. Try them first:"]
        lines += [f"- {each.setting}: {each.why}." for each in cheaper]
    delay = reader.initial_rebalance_delay() if status.group_type == "classic" else None
    if delay:
        lines += [
            "",
            "A split makes an application worse if all its members restart together. Its own group is then Empty, and",
            f"waits {span_in_words(delay)} (group.initial.rebalance.delay.ms) before it assigns partitions again.",
        ]
    if uncommitted := sum(row.offset is None for row in status.partitions):
        lines += [
            "",
            f"{counted(uncommitted, 'partition')} without a committed offset. To say where the new groups start there,",
            'add [options] with on_uncommitted = "earliest", "latest" or "leave".',
        ]
    return tuple(lines)


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

    A group without a split is included, with the reason. Groups that do not exist are left out.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSetting:
    """A client setting to change, and why, as texts for users."""

    setting: str
    why: str


def client_settings(group: GroupStatus) -> tuple[ClientSetting, ...]:
    """Return the client settings that make this group's rebalances shorter or fewer, the most effective first."""
    found = []
    if group.group_type == "classic":
        found.append(
            ClientSetting(
                setting="group.protocol=consumer (KIP-848, brokers 4.0 or later)",
                why="the brokers move single partitions, and no member waits for all others",
            )
        )
    if group.description.assignor in EAGER_ASSIGNORS:
        found.append(
            ClientSetting(
                setting="partition.assignment.strategy=cooperative-sticky",
                why=f"with {group.description.assignor} all members give up all partitions in each rebalance; "
                "with cooperative-sticky only partitions that change their member are given up",
            )
        )
    if group.group_type == "classic":
        found.append(
            ClientSetting(
                setting="max.poll.records (shorter polls)",
                why="a rebalance ends only when each member has polled, so the slowest one makes the others wait",
            )
        )
    if any(member.group_instance_id is None for member in group.members or ()):
        found.append(
            ClientSetting(
                setting="group.instance.id (static membership)",
                why="a member that is back within session.timeout.ms causes no rebalance",
            )
        )
    return tuple(found)
