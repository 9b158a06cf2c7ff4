"""A story: an operator runs commands that write, and obeys their messages, while other clients act at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from migrate_groups.model.partitions import TopicPartition
from tests.support.any_order import exceptions
from tests.support.any_order.events import At, Event
from tests.support.any_order.seams import opened_up
from tests.support.any_order.world import Killed, Verb, World
from tests.support.cli import CliHere

GROUPS = ("old", "a", "b", "c")
KILLED = -9


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The state in which a story begins. The source group ``old`` has committed offsets for the topics t and u.

    split: for each topic the group that gets it; ``old``: it is not handed over. existing: the committed offsets of
    target groups.
    """

    partitions: dict[str, int] = field(default_factory=lambda: {"t": 1, "u": 1})
    records: int = 40
    committed: int = 10
    split: dict[str, str] = field(default_factory=lambda: {"t": "a", "u": "a"})
    existing: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    on_existing: str = "refuse"
    uncommitted: str = "refuse"
    vanished: str = "refuse"
    settle: int = 6
    guard: int = 6
    latest: bool = True

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.split.values()) - {"old"}))

    @property
    def moved(self) -> tuple[str, ...]:
        return tuple(topic for topic, group in self.split.items() if group != "old")

    def spec(self) -> str:
        staying = [topic for topic, group in self.split.items() if group == "old"]
        targets = {group: [topic for topic in self.moved if self.split[topic] == group] for group in self.targets}
        options = {"on_existing": self.on_existing, "uncommitted": self.uncommitted, "vanished": self.vanished}
        options |= {"settle": f"{self.settle}s", "guard": f"{self.guard}s"}
        return "\n".join(
            [
                'source = "old"',
                *(f'[[target]]\ngroup = "{group}"\ntopics = {topics}' for group, topics in targets.items()),
                *([f"[stay]\ntopics = {staying}"] if staying else []),
                "[options]",
                *(f'{name} = "{value}"' for name, value in options.items()),
            ]
        )


@dataclass(frozen=True)
class Do:
    """A step of a story: an event between two commands."""

    event: Event


@dataclass(frozen=True)
class Start:
    """A step of a story: the operator starts a group's application, if the group owns topics."""

    group: str
    member: bool = True


@dataclass(frozen=True)
class Resplit:
    """A step of a story: the operator changes the split spec, after a successful rollback or hand-back."""

    split: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Run:
    """A step of a story: the operator runs a command.

    - of: the group, if the verb is delete, keep or restore. Otherwise the write that the command makes or reverts:
      ``split`` or ``apply``.
    - stops: whether the operator first stops the applications that must not run.
    - starts: whether the operator starts the applications of the groups that got the topics, after exit 0.
    - member: whether these applications join their groups as members.
    """

    verb: str
    of: str = "split"
    events: tuple[At, ...] = ()
    stops: bool = True
    starts: bool = False
    member: bool = True
    hold: bool = False
    again: bool = False


Step = Do | Start | Resplit | Run


@dataclass
class Ended:
    """The result of a command. wrote: whether the command has altered or deleted a committed offset."""

    step: Run
    code: int
    out: str
    err: str
    wrote: bool = False

    @property
    def counts(self) -> bool:
        """Return whether the command has written, or has refused to write."""
        return self.wrote or self.code in (3, 4)


class Story:
    """A story (a random sequence of commands and events), played until it ends or the promise is broken.

    The promise: after exit 0 no record is skipped or processed twice, except in the cases that `exceptions` lists.
    """

    def __init__(self, setting: Setting, folder: Path, world: World | None = None) -> None:
        self.setting, self.folder, self.world = setting, folder, world or World()
        self.tool = CliHere(folder)
        self.ended: list[Ended] = []
        self.open: Run | None = None
        self.kept: set[str] = set()
        world = self.world
        for topic, count in setting.partitions.items():
            world.cluster.create_topic(topic, count)
            world.owner[topic] = "old"
            for number in range(count):
                partition = TopicPartition(topic, number)
                world.cluster.produce(topic, number, setting.records)
                world.ledger.starts[partition], world.ledger.ends[partition] = setting.committed, setting.records
                world.cluster.commit("old", partition, setting.committed)
        for (group, partition), offset in setting.existing.items():
            world.cluster.commit(group, partition, offset)
        (folder / "split.toml").write_text(setting.spec())

    # Steps.

    def play(self, steps: Sequence[Step], *, tables: bool = False) -> list[str]:
        """Play the steps and the end of the story. Return the problems that break the promise of `Story`."""
        with opened_up(self.world, tables=tables):
            for step in steps:
                self.do(step)
                self.judge()
                if self.world.problems:
                    return self.world.problems
            self.conclude()
        return self.world.problems

    def do(self, step: Step) -> None:
        if isinstance(step, Do):
            self.world.tell(f"{step.event}")
            step.event.do(self.world)
        elif isinstance(step, Start):
            self.start(step.group, member=step.member)
        elif isinstance(step, Resplit):
            self.resplit(step)
        else:
            self.run(step)

    def judge(self) -> None:
        for found in exceptions.repeated(self.world):
            self.world.problem(found)

    def resplit(self, step: Resplit) -> None:
        last = self.ended[-1] if self.ended else None
        if (
            last is None
            or (last.code, last.step.of) != (0, "split")
            or last.step.verb not in ("rollback", "hand-back")
            or {*self.world.owner.values()} != {"old"}
        ):
            return
        self.setting = replace(self.setting, split=dict(step.split))
        (self.folder / "split.toml").write_text(self.setting.spec())
        self.world.tell(f"the operator changes the split: {self.setting.split}")

    def start(self, group: str, *, member: bool) -> None:
        topics = [topic for topic, owner in self.world.owner.items() if owner == group]
        if self.world.start(group, topics, member=member, latest=self.setting.latest):
            self.world.tell(f"the operator starts {group} on {', '.join(topics)}{'' if member else ', no member'}")

    def stop(self, group: str) -> None:
        if group in self.world.applications:
            self.world.tell(f"the operator stops {group}")
            self.world.stop(group)

    # Verbs.

    def groups(self, step: Run) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Return the source group, the target groups and the topics of the write that a step makes or reverts."""
        if step.verb == "delete" or step.verb in ("keep", "restore"):
            owned = [topic for topic, owner in self.world.owner.items() if owner == step.of]
            return step.of, (step.of,), tuple(owned)
        if step.of == "apply":
            return "old", ("c",), tuple(self.setting.partitions)
        return "old", self.setting.targets, self.setting.moved

    def target(self, step: Run, topic: str) -> str:
        """Return the target group of a topic in the step's write; for delete, keep and restore the step's group."""
        own = step.verb in ("delete", "keep", "restore")
        return step.of if own else "c" if step.of == "apply" else self.setting.split[topic]

    def may(self, step: Run) -> bool:
        """Return whether an operator who knows the commands so far would run this command now."""
        source, targets, topics = self.groups(step)
        owners = {self.world.owner[topic] for topic in topics}
        if self.open is not None and (self.open.of, step.verb in _HANDS) != (step.of, step.verb in _HANDS):
            return False
        if step.verb == "delete":
            return not topics and self.world.cluster.description(step.of).exists
        if step.verb in ("keep", "restore"):
            return bool(topics) and (step.verb == "keep" or step.of in self.kept)
        if step.verb in ("migrate", "apply"):
            return owners <= {source, None} or (owners <= {*targets, None})
        return (self.folder / self.receipt(step)).exists() and owners <= {source, *targets, None}

    def receipt(self, step: Run) -> str:
        return "snap.csv.c.receipt.json" if step.of == "apply" else "split.toml.run"

    def run(self, step: Run) -> None:
        if not self.may(step):
            return
        source, targets, topics = self.groups(step)
        if step.stops:
            self.stop_for(step, source, targets, topics)
        there = step.again and (self.folder / "snap.csv").exists()
        if step.verb == "apply" and not there and self.call(step, "snapshot", "old", "-o", "snap.csv", "--force").code:
            return
        if step.verb == "keep":
            if not self.call(step, "snapshot", step.of, "-o", f"kept-{step.of}.csv", "--force").code:
                self.kept.add(step.of)
            return
        world = self.world
        partitions = frozenset(world.partitions(topics))
        began = world.seconds
        world.verb = verb = Verb(
            began=began,
            first=world.moments,
            groups=(source, *targets),
            partitions=partitions,
            of_topic={topic: (source, self.target(step, topic)) for topic in topics},
            by_choice="apply --restore was told to" if step.verb == "restore" else "",
        )
        world.planned = list(step.events)
        told = len(world.told)
        ended = self.call(step, *self.command(step))
        verb, world.verb, world.planned = world.verb, None, []
        ended.wrote = bool(verb.wrote)
        self.ended.append(ended)
        said = [line for line in ended.err.splitlines() if line]
        world.told.insert(told, f"{began:7.1f} s  $ {' '.join(self.command(step))}")
        world.tell(f"  exit {ended.code}: {' / '.join(said[-3:])}")
        self.judge_verb(step, ended, verb)

    def stop_for(self, step: Run, source: str, targets: Sequence[str], topics: Sequence[str]) -> None:
        stopped = {
            "migrate": [source],
            "apply": [source],
            "rollback": targets,
            "hand-back": [source, *targets],
            "delete": [source],
            "restore": [source],
        }.get(step.verb, [])
        for group in stopped:
            if step.verb != "rollback" and group == source and group in self.world.applications:
                was = self.world.applications[group]
                self.stop(group)
                stays = [topic for topic in was.topics if topic not in topics and self.world.owner[topic] == group]
                if step.verb == "migrate" and stays:
                    self.world.start(group, stays, member=was.member, latest=was.latest)
            else:
                self.stop(group)

    def command(self, step: Run) -> tuple[str, ...]:
        receipt = self.receipt(step)
        options = ("--settle", f"{self.setting.settle}s", "--guard", f"{self.setting.guard}s")
        return {
            "migrate": ("migrate", "split.toml", "--wait", "20s", "--yes", *(("--hold",) if step.hold else ())),
            "apply": (
                *("apply", "snap.csv", "--to-group", "c", *options, "--yes", "--on-existing", self.setting.on_existing),
                *("--uncommitted", self.setting.uncommitted.replace("latest", "refuse")),
            ),
            "restore": (
                *("apply", f"kept-{step.of}.csv", "--restore", "--on-existing", "overwrite", *options, "--yes"),
                *("--receipt", f"restore-{step.of}-{len(self.ended)}.json"),
            ),
            "rollback": ("rollback", receipt, "--yes"),
            "hand-back": ("hand-back", receipt, "--wait", "20s", "--yes"),
            "delete-offsets": ("delete-offsets", receipt, "--yes"),
            "delete": ("delete-group", step.of, "--yes"),
        }[step.verb]

    def call(self, step: Run, *arguments: str) -> Ended:
        try:
            code, out, err = self.tool.outcome(*arguments)
        except Killed:
            code, out, err = KILLED, "", "killed"
        self.world.dead = False
        return Ended(step, code, out, err)

    # The meaning of an exit code.

    def judge_verb(self, step: Run, ended: Ended, verb: Verb) -> None:
        world = self.world
        if ended.code not in (0, 2, 3, 4, 130, KILLED):
            world.problem(f"exit {ended.code} of {step.verb}: {ended.err.strip()}")
        if ended.code in (2, 3) and verb.wrote:
            world.problem(
                f"exit {ended.code} of {step.verb}, which means that nothing was written: {sorted(verb.wrote)}"
            )
        if step.verb == "delete-offsets" and (ended.code == 0 or verb.wrote):
            # The target groups own the topics now, even if the hand-over was killed before it said so.
            self.world.owner |= {topic: self.target(step, topic) for topic in self.groups(step)[2]}
        if ended.code in (4, 130, KILLED):
            self.judge_half_done(step, ended, verb)
        if ended.code or step.verb == "delete":
            return
        self.judge_coverage(step, verb)
        if step.verb in ("migrate", "apply", "rollback", "hand-back"):
            self.judge_hand_over(step, verb, idle="; nothing was written" in ended.err)
            if step.starts:
                for group in dict.fromkeys(self.world.owner[topic] for topic in self.groups(step)[2]):
                    self.start(group or "", member=step.member)

    def judge_half_done(self, step: Run, ended: Ended, verb: Verb) -> None:
        if step.verb not in ("rollback", "hand-back"):
            return
        if verb.wrote:
            for topic in self.groups(step)[2]:
                self.world.owner[topic] = None
            self.open = replace(step, events=())
        if "processed twice" in ended.err:
            ledger = self.world.ledger
            for partition in verb.partitions:
                said = range(ledger.starts[partition], ledger.ends[partition])
                ledger.may_repeat(partition, said, f"{step.verb} said so, with exit 4")

    def judge_coverage(self, step: Run, verb: Verb) -> None:
        """Check, after exit 0, that each partition has a committed offset if it had one when the command read it."""
        for partition in sorted(verb.covered):
            committed = {
                group: verb.believed.get((group, partition), self.world.committed_offset(group, partition))
                for group in verb.groups
            }
            if not any(offset is not None for offset in committed.values()) and not exceptions.deleted_after(
                self.world, verb, step.verb, partition
            ):
                self.world.problem(f"{step.verb} with exit 0 leaves {partition} in no group")

    def judge_hand_over(self, step: Run, verb: Verb, *, idle: bool) -> None:
        world, setting = self.world, self.setting
        source, _, topics = self.groups(step)
        back = step.verb in ("rollback", "hand-back")
        watched = 0 if step.verb == "hand-back" else setting.settle + setting.guard
        # Without a guard, no command looks for other consumers after its write.
        last_look = world.seconds if setting.guard else verb.wrote_at
        until = max(last_look, verb.began + watched) if verb.last_read else 0.0
        for topic in topics:
            group = source if back else self.target(step, topic)
            partitions = frozenset(each for each in verb.partitions if each.topic == topic)
            if world.owner[topic] == group and (idle or not verb.last_read):
                continue  # the verb had nothing to do, so the offsets that an earlier verb read still count
            world.owner[topic] = group
            last_read = (
                verb.last_read if back else {**verb.last_read, **verb.confirmed}
            )  # later it only takes a snapshot
            world.verdicts.append(
                exceptions.Verdict(
                    verb=step.verb,
                    group=group,
                    groups=verb.groups,
                    partitions=partitions,
                    ended=world.seconds,
                    watched=until,
                    last_read={each: last_read.get((group, each), verb.first) for each in partitions},
                    uncovered=frozenset(partitions - verb.covered)
                    | (self._not_handed_over(verb) if back else frozenset()),
                )
            )
            for partition in partitions:
                committed = world.committed_offset(group, partition)
                if not back and setting.on_existing == "forward" and (group, partition) not in verb.wrote:
                    skipped = world.ledger.unprocessed(partition, committed or 0)
                    world.ledger.may_skip(partition, skipped, "on_existing = forward left the target ahead")
                if setting.uncommitted == "leave" and not back and verb.believed.get((group, partition)) is None:
                    world.left_out |= {(group, partition), (source, partition)}
                ahead = setting.existing.get((setting.split[topic], partition))
                if step.verb == "hand-back" and setting.on_existing == "forward" and ahead is not None:
                    skipped = world.ledger.unprocessed(partition, ahead)
                    world.ledger.may_skip(partition, skipped, "on_existing = forward had left the target ahead")
                if setting.uncommitted != "refuse" and (source, partition) in verb.missed:
                    every = range(world.ledger.starts[partition], world.ledger.ends[partition])
                    world.ledger.may_skip(partition, every, f"uncommitted = {setting.uncommitted}")
                    world.ledger.may_repeat(partition, every, f"uncommitted = {setting.uncommitted}")
        self.open = None

    def _not_handed_over(self, verb: Verb) -> frozenset[TopicPartition]:
        """Return the partitions that the last hand-over left out, because no group had a committed offset for them."""
        undone = [
            each for each in self.world.verdicts if each.verb in ("migrate", "apply") and each.group in verb.groups
        ]
        return undone[-1].uncovered if undone else frozenset()

    # The end.

    def conclude(self) -> None:
        """Stop all applications, complete an unfinished command, and let the groups process every record."""
        world = self.world
        world.tell("the end: what is open is finished, all stop, the owners start")
        world.wait(6)
        for group in list(world.applications):
            self.stop(group)
        self.finish()
        if world.problems:
            return
        for partition in world.partitions():
            world.produce(partition, 2)
        for group in GROUPS:
            self.start(group, member=True)
        world.wait(max(world.ledger.ends.values()) / 2 + 2)  # long enough from the log start offset on
        self.judge()
        for partition, offset in world.left():
            world.problem(f"records never processed: {partition} from {offset} on, of {world.owner[partition.topic]}")

    def finish(self) -> None:
        """Run an unfinished command again, which must be safe. If it refuses, undo the hand-over or repeat it."""
        for verb in ("", "rollback", "hand-back", "migrate"):
            if self.open is not None and not self.world.problems:
                hands_over = "apply" if self.open.of == "apply" else "migrate"
                again = verb.replace("migrate", hands_over) or self.open.verb
                self.run(replace(self.open, verb=again, starts=False, stops=True))

    def __str__(self) -> str:
        return "\n".join([f"{self.setting}", *self.world.told, "", str(self.world.ledger)])


_HANDS = ("migrate", "apply", "rollback", "hand-back", "delete-offsets")
