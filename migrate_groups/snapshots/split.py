"""The split of a consumer group: which topics go to which target group, and which stay with the source group."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from migrate_groups.errors import InvalidInput, Refused
from migrate_groups.model.renames import Rename, new_names
from migrate_groups.snapshots.selection import NoTopicMatches, TopicPattern, advice_for
from migrate_groups.snapshots.snapshot import SnapshotTable, concatenate_by_group
from migrate_groups.text import did_you_mean, is_unicode, named, some


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitTarget:
    """A target group and the patterns of the topics that it takes over. is_share: it is a share group (KIP-932)."""

    group: str
    topics: tuple[TopicPattern, ...]
    is_share: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSpec:
    """The content of a split file: the source group, and which target group takes over which of its topics.

    stay: patterns of topics that stay with the source group. fan_out: allow a topic to go to several target groups,
    each of which then processes every record.

    Raises `InvalidInput` if there is no target group, if a target group has no topics or occurs twice, or if the name
    of a group is empty or not UTF-8.
    """

    source: str
    targets: tuple[SplitTarget, ...]
    stay: tuple[TopicPattern, ...] = ()
    fan_out: bool = False

    @property
    def share_groups(self) -> frozenset[str]:
        """The target groups that are share groups."""
        return frozenset(target.group for target in self.targets if target.is_share)

    def __post_init__(self) -> None:
        if not self.source:
            raise InvalidInput("the source group of the split is empty: name a group")
        if not self.targets:
            raise InvalidInput("the split has no target group: add one")
        names = [target.group for target in self.targets]
        if "" in names:
            raise InvalidInput("a target group of the split has an empty name: name it")
        wrong = [name for name in (self.source, *names) if not is_unicode(name)]
        if wrong:
            raise InvalidInput(
                f"group {some(wrong)} is not UTF-8 text, as every group name in Kafka is: name the group in UTF-8"
            )
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise InvalidInput(
                f"{named('target group', twice)} named more than once in the split: list all its topics together"
            )
        empty = [target.group for target in self.targets if not target.topics]
        if empty:
            raise InvalidInput(f"{named('target group', empty)} without topics: add topics, or remove the group")

    def check_other_groups(self) -> None:
        """Raise `InvalidInput` if a target group is the source group. Use this only for a split within one cluster."""
        if self.source in {target.group for target in self.targets}:
            raise InvalidInput(
                f"target group {self.source!r} is the source group: name the topics that stay with it in --stay, or in "
                "[stay] of a spec"
            )

    def renamed(self, rules: Sequence[Rename]) -> SplitSpec:
        """Return the split with other group names.

        A group to which no rule applies keeps its name. If the source group has the same name as a target group (on
        another cluster), only the target group is renamed.

        Raises `InvalidInput` if an old name is not in the split, or if a new name is empty, not UTF-8 or used twice.
        """
        known = [self.source, *(target.group for target in self.targets)]
        names, unknown = new_names(rules, known)
        if unknown:
            advice = did_you_mean(unknown, known) or "rename only its source group and its target groups"
            raise InvalidInput(f"{named('group', unknown)} not found in the split: {advice}")
        targets = tuple(replace(target, group=names.get(target.group, target.group)) for target in self.targets)
        keeps_name = self.source in {target.group for target in self.targets}  # on another cluster
        source = self.source if keeps_name else names.get(self.source, self.source)
        return replace(self, source=source, targets=targets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The topics of a source group that go to each target group, and the topics that stay.

    targets: topics by target group. expansions: for each pattern of the split, its target group (None: its topics
    stay), the pattern, and the matching topics.
    """

    targets: Mapping[str, tuple[str, ...]]
    stay: tuple[str, ...]
    expansions: tuple[tuple[str | None, TopicPattern, tuple[str, ...]], ...] = field(repr=False)


def cover(spec: SplitSpec, topics: Iterable[str]) -> Coverage:
    """Return which topics go to which target group, and which topics stay.

    topics: the topics of the source group. Raises `InvalidInput` if a pattern matches no topic, if no pattern matches
    one of the topics, if a topic both goes and stays, or if a topic goes to several groups without ``fan_out``. Raises
    `Refused` if there are no topics.
    """
    present = {*topics}
    if not present:
        raise Refused(
            f"group {spec.source!r} has no committed offset, assignment or subscription that this client may see, so "
            "there is nothing to hand over: leave the group out"
        )
    claims: list[tuple[str | None, tuple[TopicPattern, ...]]] = [
        *((target.group, target.topics) for target in spec.targets),
        (None, spec.stay),
    ]
    expansions = tuple(
        (group, pattern, tuple(pattern.matching(present))) for group, patterns in claims for pattern in patterns
    )
    takers: dict[str, set[str | None]] = defaultdict(set)
    for group, _, matched in expansions:
        for topic in matched:
            takers[topic].add(group)
    if useless := [(pattern, group) for group, pattern, matched in expansions if not matched]:
        patterns = some([f"{pattern} ({group or 'stay'})" for pattern, group in useless], most=10)
        advice = advice_for([pattern for pattern, _ in useless], present) or "correct or remove the pattern"
        raise NoTopicMatches(f"no topic of the group matches {patterns}: {advice}")
    if forgotten := present - takers.keys():
        topics = named("topic", forgotten, most=10)
        raise InvalidInput(
            f"no target group takes {topics}: give each to a target group, or let it stay (--stay, or [stay] of a spec)"
        )
    shared = {topic: groups for topic, groups in takers.items() if len(groups) > 1}
    if torn := [_taken_by(topic, groups) for topic, groups in shared.items() if None in groups]:
        raise InvalidInput(
            f"{named('topic', torn, most=10)} would both stay and go to a group, so records would be processed twice: "
            "remove each from the group's topics, or from --stay ([stay] of a spec)"
        )
    if shared and not spec.fan_out:
        topics = named("topic", [_taken_by(topic, groups) for topic, groups in shared.items()], most=10)
        raise InvalidInput(
            f"several groups take {topics}, so records would be processed twice: keep one group, or write a spec with "
            "fan_out = true"
        )
    taken: dict[str | None, set[str]] = defaultdict(set)
    for group, _, matched in expansions:
        taken[group].update(matched)
    return Coverage(
        targets={target.group: tuple(sorted(taken[target.group])) for target in spec.targets},
        stay=tuple(sorted(taken[None])),
        expansions=expansions,
    )


def _taken_by(topic: str, groups: Iterable[str | None]) -> str:
    return f"{topic} ({', '.join(sorted(group or 'stay' for group in groups))})"


def split(snapshot: SnapshotTable, spec: SplitSpec) -> tuple[SnapshotTable, Coverage]:
    """Return the source group's rows with their target groups, and which topics go to which target group.

    Rows of other groups, and of topics that stay with the source group, are left out. If no row has a group, all rows
    are split.

    Raises `InvalidInput` if the snapshot lacks the source group or was split before, if a partition has several rows,
    if the patterns in ``spec`` do not fit the topics, or if a target group is the source group.
    """
    spec.check_other_groups()
    has_no_groups = snapshot.groups() == [None]
    source = (snapshot if has_no_groups else snapshot.keep({"group": [spec.source]})).at_one_moment()
    if not len(source):
        present = [group for group in snapshot.groups() if group is not None]
        advice = did_you_mean([spec.source], present) or f"it has {some(present) or 'no group'}; correct the source"
        raise InvalidInput(f"source group {spec.source!r} is not in the file: {advice}")
    snapshot.refuse_some_without_group()
    if source.table["source_group"].null_count < len(source):
        raise InvalidInput(
            f"the rows of {spec.source!r} have a source_group, so the file was split before: split the snapshot instead"
        )
    coverage = cover(spec, source.topics())
    claimed = None if has_no_groups else spec.source
    pieces = [
        source.keep({"topic": topics}).given_to(group, claimed, is_share=group in spec.share_groups)
        for group, topics in coverage.targets.items()
    ]
    return concatenate_by_group(pieces), coverage
