"""A story: operators run commands that write, and obey their messages, while other clients act at random."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from migrate_groups.model.partitions import TopicPartition
from tests.support.any_order import exceptions
from tests.support.any_order.acting import GROUPS, Killed, Verb
from tests.support.any_order.events import Event
from tests.support.any_order.judge import (
    BACK,
    KILLED,
    Ended,
    judge_coverage,
    judge_deletion,
    judge_exit_code,
    judge_half_done,
    judge_hand_over,
    judge_status,
    note_half_done,
)
from tests.support.any_order.requests import SESSION_SECONDS
from tests.support.any_order.runs import AtOnce, Command, Edit, Run, Setting, Start, Step
from tests.support.any_order.seams import opened_up
from tests.support.any_order.world import World
from tests.support.cli import CliHere
from tests.support.turns import Turns


class Story:
    """A story (a random sequence of commands and events), played until it ends or the promise is broken.

    The promise: after exit 0 no record is skipped or processed twice, except in the cases that `exceptions` lists, and
    no two runs have told groups to start on the same partition.
    """

    def __init__(self, setting: Setting, folder: Path, world: World | None = None) -> None:
        self.setting, self.folder, self.world = setting, folder, world or World()
        self.tool = CliHere(folder)
        self.runs = dict(setting.runs)
        self.ended: list[Ended] = []
        # By run, the way back that is not complete. Its operator completes it before anything else.
        self.open: dict[str, Command] = {}
        # The runs whose last command was a successful way back.
        self.undone: set[str] = set()
        self.kept: set[str] = set()
        world = self.world
        world.copy_run = self.copy
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

    # Steps.

    def play(self, steps: Sequence[Step], *, tables: bool = False) -> list[str]:
        """Play the steps and the end of the story. Return the problems that break the promise of `Story`."""
        with opened_up(self.world, tables=tables), self.tool.as_process():
            for step in steps:
                self.do(step)
                self.judge()
                if self.world.problems:
                    return self.world.problems
            self.conclude()
        return self.world.problems

    def do(self, step: Step) -> None:
        if isinstance(step, Event):
            self.world.tell(f"{step}")
            step.do(self.world)
        elif isinstance(step, Start):
            self.start(step.group, member=step.member)
        elif isinstance(step, Edit):
            self.edit(step)
        elif isinstance(step, AtOnce):
            self.at_once(step)
        else:
            self.run(step)

    @property
    def started(self) -> set[str]:
        """The runs that have told their operators to start applications. A copy counts as its original."""
        return {Path(ended.step.of).name for ended in self.ended if ended.starts}

    def judge(self) -> None:
        for found in exceptions.repeated(self.world):
            self.world.problem(found)

    def start(self, group: str, *, member: bool) -> None:
        topics = [topic for topic, owner in self.world.owner.items() if owner == group]
        if self.world.start(group, topics, member=member, latest=self.setting.latest):
            self.world.tell(f"the operator starts {group} on {', '.join(topics)}{'' if member else ', no member'}")

    def stop(self, group: str) -> None:
        if group in self.world.applications:
            self.world.tell(f"the operator stops {group}")
            self.world.stop(group)

    # Runs and their files.

    def edit(self, step: Edit) -> None:
        run = self.runs.get(step.of)
        if run is None or run.verb != "migrate" or (self.has_receipt(step.of) and step.of not in self.undone):
            return
        self.runs[step.of] = replace(run, to=dict(step.to))
        self.world.tell(f"the operator changes the split of {step.of}: {dict(step.to)}")

    def copy(self, of: str, receipt: bool) -> None:
        """Copy the files of a run, as `Copy` does."""
        run = self.runs.get(of)
        if run is None or not (self.folder / run.file(of)).exists():
            return
        name = f"copy/{of}"
        if any(verb.of == name for verb in self.world.verbs.values()):
            return
        _copy(self.folder / run.file(of), self.folder / run.file(name))
        _copy(self.folder / run.receipt(of) if receipt else None, self.folder / run.receipt(name))
        self.runs[name] = run
        self.undone = self.undone - {name} | ({name} if of in self.undone else set())
        self.open.pop(name, None)
        self.world.handed_over[name] = self.world.handed_over.get(of, 0.0)

    def has_receipt(self, name: str) -> bool:
        return (self.folder / self.runs[name].receipt(name)).exists()

    def prepare(self, step: Command) -> bool:
        """Write the spec, or take the snapshot, of a hand-over. Return whether it has something to hand over."""
        name, run = step.of, self.runs[step.of]
        file = self.folder / run.file(name)
        if run.verb == "apply" and step.again and file.exists():
            return True
        if name in self.undone or not self.has_receipt(name):
            topics = self.topics(run.source)
            if run.verb == "apply":  # its snapshot has each topic with a committed offset, and no other
                topics = [topic for topic in topics if topic in self.committed(run.source)]
                run = replace(run, to=dict.fromkeys(topics, run.targets[0]))
            run = replace(run, to={topic: run.to[topic] for topic in topics if topic in run.to})
            if not run.to or (
                run.verb == "apply" and run.source != "old" and set(topics) != self.committed(run.source)
            ):
                return False
            self.runs[name] = run
            if run.verb == "migrate":
                file.write_text(self.setting.spec(run, topics))
        return (
            run.verb == "migrate" or not self.call(step, "snapshot", run.source, "-o", run.file(name), "--force").code
        )

    def committed(self, group: str) -> set[str]:
        return {partition.topic for partition in self.world.cluster.offsets(group)}

    def topics(self, group: str) -> list[str]:
        """Return the topics of a group that its operator was told to start, and that still has offsets for them."""
        if group == "old":
            return list(self.setting.partitions)
        told = {each for verdict in self.world.verdicts if verdict.group == group for each in verdict.partitions}
        return sorted({partition.topic for partition in told} & self.committed(group))

    # Commands.

    def at_once(self, step: AtOnce) -> None:
        self.world.turns = Turns(step.passes())
        self.world.tell("two commands at once:")
        self.world.turns.run(lambda: self.run(step.first), lambda: self.run(step.second))
        self.world.turns = None

    def run_of(self, step: Command) -> Run:
        """Return the run of a step. That of delete, keep and restore is within one group."""
        if step.verb in _OF_A_GROUP:
            owned = [topic for topic, owner in self.world.owner.items() if owner == step.of]
            return Run(source=step.of, to=dict.fromkeys(owned, step.of))
        return self.runs[step.of]

    def may(self, step: Command) -> bool:
        """Return whether an operator, who knows only the commands of this run, would run this command now."""
        if step.verb in _OF_A_GROUP:
            owns = step.of in self.world.owner.values()
            if self.open:
                return False
            if step.verb == "delete":
                return not owns and self.world.cluster.description(step.of).exists
            return owns and (step.verb == "keep" or step.of in self.kept)
        if step.of not in self.runs:
            return False
        return step.verb == "hand-over" or self.has_receipt(step.of)

    def run(self, step: Command) -> None:
        if not self.may(step):
            return
        if step.stops:
            self.stop_for(step, self.run_of(step))
        if step.verb == "hand-over" and not self.prepare(step):
            return
        if step.verb == "keep":
            if not self.call(step, "snapshot", step.of, "-o", f"kept-{step.of}.csv", "--force").code:
                self.kept.add(step.of)
            return
        world, run = self.world, self.run_of(step)
        verb = Verb(
            name=run.verb if step.verb == "hand-over" else step.verb,
            of=step.of,
            client=world.cluster.other_client(),
            began=world.seconds,
            first=world.moments,
            planned=list(step.events),
            groups=tuple(dict.fromkeys((run.source, *run.targets))),
            partitions=frozenset(world.partitions(run.to)),
            of_topic={topic: (run.source, target) for topic, target in run.to.items()},
            by_choice="apply --restore was told to" if step.verb == "restore" else "",
        )
        status = self.status(step, run)
        with world.running(verb):
            world.tell(f"$ {' '.join(self.command(step, run))}")
            ended = self.call(step, *self.command(step, run))
            ended.wrote = bool(verb.wrote)
            self.ended.append(ended)
            said = [line for line in ended.err.splitlines() if line]
            world.tell(f"  exit {ended.code}: {' / '.join(said[-3:])}")
            self.judge_verb(run, ended, verb)
            judge_status(world, status, ended, verb)

    def stop_for(self, step: Command, run: Run) -> None:
        """Stop the applications that must not run during a command. With migrate, a group keeps its other topics."""
        if (step.verb == "hand-over" or step.verb in _STOPS_SOURCE) and (
            was := self.world.applications.get(run.source)
        ):
            self.stop(run.source)
            stays = [each for each in was.topics if each not in run.to and self.world.owner[each] == run.source]
            if step.verb == "hand-over" and run.verb == "migrate" and stays:
                self.world.start(run.source, stays, member=was.member, latest=was.latest)
        for group in run.targets if step.verb in BACK else ():
            self.stop(group)

    def command(self, step: Command, run: Run) -> tuple[str, ...]:
        """Return the arguments of the command line."""
        options = ("--settle", f"{self.setting.settle}s", "--guard", f"{self.setting.guard}s", "--yes")
        if step.verb == "delete":
            return ("delete-group", step.of, "--yes")
        if step.verb == "restore":
            return (
                *("apply", f"kept-{step.of}.csv", "--restore", "--on-existing", "overwrite", *options),
                *("--receipt", f"restore-{step.of}-{len(self.ended)}.json"),
            )
        if step.verb != "hand-over":
            wait = ("--wait", "20s") if step.verb == "hand-back" else ()
            return (step.verb, run.receipt(step.of), *wait, "--yes")
        if run.verb == "migrate":
            return ("migrate", run.file(step.of), "--wait", "20s", "--yes", *(("--hold",) if step.hold else ()))
        return (
            *("apply", run.file(step.of), "--to-group", *run.targets, *options),
            *("--on-existing", self.setting.on_existing),
            *("--on-uncommitted", self.setting.on_uncommitted.replace("latest", "refuse")),
        )

    def status(self, step: Command, run: Run) -> Mapping[str, str]:
        """Return what `status` says of the command that is run next; empty if it is not asked.

        It is asked only if nothing acts during the command.
        """
        acts = (
            step.events or self.world.turns or self.world.left_behind
        )  # brokers remove the member of a killed command
        if acts or step.verb not in _OF_A_RUN or not self.has_receipt(step.of):
            return {}
        ended = self.call(step, "status", run.receipt(step.of), "--format", "json")
        commands = json.loads(ended.out)["commands"] if not ended.code else []
        return dict(zip(_OF_A_RUN, commands, strict=True)).get(step.verb, {}) if commands else {}

    def call(self, step: Command, *arguments: str) -> Ended:
        try:
            code, out, err = self.tool.outcome_within(*arguments)
        except Killed:
            code, out, err = KILLED, "", "killed"
        return Ended(step, self.world.verb.name if self.world.verb else arguments[0], code, out, err)

    def judge_verb(self, run: Run, ended: Ended, verb: Verb) -> None:
        """Judge a command that has ended, and start the applications that it told the operator to start."""
        step, world = ended.step, self.world
        judge_exit_code(world, ended, verb)
        if step.verb == "hand-over" and verb.sent:
            world.handed_over[step.of] = world.seconds
            note_half_done(world, run, ended, verb)
        if step.verb == "delete-offsets":
            judge_deletion(world, self.setting, run, ended, verb)
        if ended.code in (4, 130, KILLED) and judge_half_done(world, run, ended, verb):
            self.open[step.of] = replace(step, events=())
        if ended.code not in (2, 3):  # nothing was written otherwise, so the run is as undone as it was
            self.undone.discard(step.of)
        if ended.code or step.verb == "delete":
            return
        world.undoing -= {(group, partition) for group in verb.groups for partition in verb.partitions}
        judge_coverage(world, ended, verb)
        if step.verb == "hand-over" or step.verb in BACK:
            judge_hand_over(world, self.setting, run, ended, verb)
            self.open.pop(step.of, None)
            self.undone |= {step.of} if step.verb in BACK else set()
            if step.starts:
                for group in dict.fromkeys(world.owner[topic] for topic in run.to):
                    self.start(group or "", member=step.member)

    # The end.

    def conclude(self) -> None:
        """Stop all applications, complete unfinished commands, and let the groups process every record."""
        world = self.world
        world.tell("the end: what is open is finished, all stop, the owners start")
        world.wait(SESSION_SECONDS + 1)
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
        """Run unfinished commands again, which must be safe. If one refuses, undo the hand-over or repeat it."""
        for name in list(self.open):
            for verb in ("", "rollback", "hand-back", "hand-over"):
                if name in self.open and not self.world.problems:
                    again = self.open[name]
                    self.run(replace(again, verb=verb or again.verb, starts=False, stops=True))

    def __str__(self) -> str:
        return "\n".join([f"{self.setting}", *self.world.told, "", str(self.world.ledger)])


def _copy(file: Path | None, to: Path) -> None:
    """Replace ``to`` by a copy of a file or folder. If this does not exist, ``to`` does not exist either."""
    to.parent.mkdir(exist_ok=True)
    shutil.rmtree(to) if to.is_dir() else to.unlink(missing_ok=True)
    if file and file.exists():
        shutil.copytree(file, to) if file.is_dir() else shutil.copy(file, to)


_OF_A_RUN = ("hand-over", "rollback", "hand-back", "delete-offsets")  # in the order of `status`
_OF_A_GROUP = ("delete", "keep", "restore")
_STOPS_SOURCE = ("hand-back", "delete", "restore")
