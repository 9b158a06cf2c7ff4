"""The split: which topic goes to which target group, and the proof that every topic goes to one or stays."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from migrate_groups.errors import InvalidInput
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.snapshot import Snapshot, one_after_the_other
from migrate_groups.text import is_unicode, some


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitTarget:
    """A target group and the patterns of the topics that it takes over."""

    group: str
    topics: tuple[TopicPattern, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSpec:
    """The content of a split file: the source group, and which target group takes over which of its topics.

    stay: patterns of the topics that are left with the source group on purpose. fan_out: a topic may go to several
    target groups, each of which then processes every record once. Raises `InvalidInput` for a name that is empty, not
    UTF-8 or used twice, and for a split without target groups or a target group without topics.
    """

    source: str
    targets: tuple[SplitTarget, ...]
    stay: tuple[TopicPattern, ...] = ()
    fan_out: bool = False

    def __post_init__(self) -> None:
        if not self.source:
            raise InvalidInput("the split names no source group")
        if not self.targets:
            raise InvalidInput("the split has no target group")
        names = [target.group for target in self.targets]
        if "" in names:
            raise InvalidInput("a target group has an empty name")
        wrong = [name for name in (self.source, *names) if not is_unicode(name)]
        if wrong:
            raise InvalidInput(f"group {some(wrong)} is no UTF-8 text; Kafka has no such name")
        if self.source in names:
            raise InvalidInput(f"target group {self.source!r} is the source group; what stays belongs under [stay]")
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise InvalidInput(f"target group {some(twice)} stands twice in the split")
        empty = [target.group for target in self.targets if not target.topics]
        if empty:
            raise InvalidInput(f"target group {some(empty)} has no topics")

    def renamed(self, names: Mapping[str, str]) -> SplitSpec:
        """Return the split with other group names, for a rehearsal. Raises `InvalidInput` for an unknown group."""
        unknown = sorted(set(names) - {self.source, *(target.group for target in self.targets)})
        if unknown:
            raise InvalidInput(f"the split has no group {some(unknown)} to rename")
        targets = tuple(replace(target, group=names.get(target.group, target.group)) for target in self.targets)
        return replace(self, source=names.get(self.source, self.source), targets=targets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Where each topic of the source group goes.

    targets: topics by target group. stay: topics left with the source group. expansions: for each pattern, its target
    group (None: ``stay``), the pattern, and the topics that it matched.
    """

    targets: Mapping[str, tuple[str, ...]]
    stay: tuple[str, ...]
    expansions: tuple[tuple[str | None, TopicPattern, tuple[str, ...]], ...] = field(repr=False)


def cover(spec: SplitSpec, topics: Iterable[str]) -> Coverage:
    """Return which target group each topic goes to, or that it stays, after a check that no topic is forgotten.

    Raises `InvalidInput` naming the topics that go nowhere or, without ``fan_out``, to several target groups, the
    topics that go to a target group and stay, and each pattern that matches no topic.
    """
    present = {*topics}
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
    _refuse(
        "no topic of the group matches",
        [f"{pattern} ({group or 'stay'})" for group, pattern, matched in expansions if not matched],
    )
    _refuse("no target takes topic", sorted(present - takers.keys()), "add it to one, or to [stay]")
    _refuse(
        "more than one target takes topic",
        [
            f"{topic} ({', '.join(sorted(group or 'stay' for group in groups))})"
            for topic, groups in sorted(takers.items())
            if len(groups) > 1 and (None in groups or not spec.fan_out)
        ],
        "its records would be processed twice; fan_out = true allows several targets",
    )
    taken: dict[str | None, set[str]] = defaultdict(set)
    for group, _, matched in expansions:
        taken[group].update(matched)
    return Coverage(
        targets={target.group: tuple(sorted(taken[target.group])) for target in spec.targets},
        stay=tuple(sorted(taken[None])),
        expansions=expansions,
    )


def split(snapshot: Snapshot, spec: SplitSpec) -> tuple[Snapshot, Coverage]:
    """Return the source group's rows under their target groups, and which target group each topic goes to.

    Each row gets ``source_group``. Rows of topics that stay, and rows of other groups, are left out. If no row has a
    group yet (after a rewind), all rows are split, and get no source group. Raises `InvalidInput` as `cover` does, and
    if the source group is not in the snapshot, the rows have been split before, or they are of several moments.
    """
    of_nobody = snapshot.groups() == [None]
    source = (snapshot if of_nobody else snapshot.keep({"group": [spec.source]})).at_one_moment()
    if not len(source):
        present = some([group for group in snapshot.groups() if group is not None]) or "no group"
        raise InvalidInput(f"source group {spec.source!r} is not in the file; it has {present}")
    if source.table["source_group"].null_count < len(source):
        raise InvalidInput(f"the rows of {spec.source!r} have a source_group: this file has been split already")
    coverage = cover(spec, source.topics())
    claimed = None if of_nobody else spec.source
    pieces = [source.keep({"topic": topics}).given_to(group, claimed) for group, topics in coverage.targets.items()]
    return one_after_the_other(pieces), coverage


def _refuse(complaint: str, names: list[str], advice: str = "") -> None:
    if names:
        raise InvalidInput(f"{complaint} {some(names, most=10)}" + (f"; {advice}" if advice else ""))
