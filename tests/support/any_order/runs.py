"""What a story is made of: its first state, the runs with their files, and the steps.

A run is one use of the tool, with its own spec or snapshot, and its own receipt. Its operator knows no other run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from migrate_groups.model.partitions import TopicPartition
from tests.support.any_order.events import At, Event


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run: topics of a source group go to target groups.

    - to: for each topic that is handed over the group that gets it. The other topics stay with the source group.
    - verb: ``migrate`` with a spec, or ``apply`` with a snapshot of the source group.
    """

    source: str = "old"
    to: Mapping[str, str] = field(default_factory=lambda: {"t": "a", "u": "a"})
    verb: str = "migrate"

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the target groups, sorted."""
        return tuple(sorted(set(self.to.values())))

    def file(self, name: str) -> str:
        """Return the name of the spec or snapshot. name: that of the run."""
        return f"{name}.toml" if self.verb == "migrate" else f"{name}.csv"

    def receipt(self, name: str) -> str:
        """Return the name of the run directory or receipt. name: that of the run."""
        return f"{name}.toml.run" if self.verb == "migrate" else f"{name}.csv.{self.targets[0]}.receipt.json"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The state in which a story begins. The group ``old`` has committed offsets for the topics t and u.

    runs: by name, the runs that the operators have in mind. existing: the committed offsets of other groups.
    """

    partitions: dict[str, int] = field(default_factory=lambda: {"t": 1, "u": 1})
    records: int = 40
    committed: int = 10
    runs: dict[str, Run] = field(
        default_factory=lambda: {"split": Run(), "apply": Run(to={"t": "c", "u": "c"}, verb="apply")}
    )
    existing: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    on_existing: str = "refuse"
    on_uncommitted: str = "refuse"
    on_removed: str = "refuse"
    settle: int = 6
    guard: int = 6
    latest: bool = True

    def spec(self, run: Run, topics: Collection[str]) -> str:
        """Return the spec of a run. topics: those of the source group; those that are not handed over stay."""
        staying = [topic for topic in topics if topic not in run.to]
        targets = {group: [topic for topic in run.to if run.to[topic] == group] for group in run.targets}
        options = {
            "on_existing": self.on_existing,
            "on_uncommitted": self.on_uncommitted,
            "on_removed": self.on_removed,
        }
        options |= {"settle": f"{self.settle}s", "guard": f"{self.guard}s"}
        return "\n".join(
            [
                f'source = "{run.source}"',
                *(f'[[target]]\ngroup = "{group}"\ntopics = {topics}' for group, topics in targets.items()),
                *([f"[stay]\ntopics = {staying}"] if staying else []),
                "[options]",
                *(f'{name} = "{value}"' for name, value in options.items()),
            ]
        )


@dataclass(frozen=True)
class Start:
    """A step of a story: the operator starts a group's application, if the group owns topics."""

    group: str
    member: bool = True


@dataclass(frozen=True)
class Edit:
    """A step of a story: the operator changes the split of a run that has written nothing, or that was undone."""

    of: str
    to: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Command:
    """A step of a story: the operator of a run runs a command.

    - verb: ``hand-over`` is ``migrate`` or ``apply``, as the run has it.
    - of: the group, if the verb is delete, keep or restore. Otherwise the name of the run.
    - stops: whether the operator first stops the applications that must not run.
    - starts: whether the operator starts the applications of the groups that got the topics, after exit 0.
    - member: whether these applications join their groups as members.
    - again: whether ``apply`` takes the snapshot that is there, and not a new one.
    """

    verb: str
    of: str = "split"
    events: tuple[At, ...] = ()
    stops: bool = True
    starts: bool = False
    member: bool = True
    hold: bool = False
    again: bool = False


@dataclass(frozen=True)
class AtOnce:
    """A step of a story: two operators run a command each at the same time.

    turns: how many requests each of them sends, in turn, before the other one goes on. Then each ends.
    """

    first: Command
    second: Command
    turns: tuple[int, ...]

    def passes(self) -> Iterator[bool]:
        """Yield for each request whether the other command goes on after it."""
        for turn in self.turns:
            yield from [False] * (turn - 1)
            yield True


Step = Event | Start | Edit | Command | AtOnce
"""A step of a story. An `Event` happens between two commands."""
