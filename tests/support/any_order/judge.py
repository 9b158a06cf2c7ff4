"""What an exit code promises: who owns the topics after a command, and which problems break the promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from migrate_groups.model.partitions import TopicPartition
from tests.support.any_order import exceptions
from tests.support.any_order.acting import Verb
from tests.support.any_order.runs import Command, Run, Setting
from tests.support.any_order.world import World

KILLED = -9
BACK = ("rollback", "hand-back")


@dataclass
class Ended:
    """The result of a command.

    - name: that of the command, such as ``migrate``.
    - wrote: whether the command has altered or deleted a committed offset.
    """

    step: Command
    name: str
    code: int
    out: str
    err: str
    wrote: bool = False

    @property
    def counts(self) -> bool:
        """Return whether the command has written, or has refused to write."""
        return self.wrote or self.code in (3, 4)

    @property
    def starts(self) -> bool:
        """Return whether the command has told the operator to start applications."""
        return self.code == 0 and "START THE" in self.err


def judge_exit_code(world: World, ended: Ended, verb: Verb) -> None:
    """Check that the exit code is one that the operator expects, and that it is true."""
    if ended.code not in (0, 2, 3, 4, 130, KILLED):
        world.problem(f"exit {ended.code} of {ended.name}: {ended.err.strip()}")
    if ended.code in (2, 3) and verb.wrote:
        world.problem(f"exit {ended.code} of {ended.name}, which means that nothing was written: {sorted(verb.wrote)}")


def judge_status(world: World, status: Mapping[str, str], ended: Ended, verb: Verb) -> None:
    """Check what `status` has said of a command against what the command then did. status: empty if it was not asked.

    A hand-over that is allowed may still be refused by its checks; a way back only by what happens while it runs: an
    application commits, another run is at work, or it waits for a stop, of which `status` says that it is pending.
    """
    answer, reason = status.get("answer"), status.get("reason", "")
    # A group that `status` says is to be started, or to have no offset, may have been started, and commits only now;
    # and a member of a killed command is removed by its session timeout.
    is_of_commits = "start the group" in reason or "has a committed offset any more" in reason
    is_passing = (world.applications and is_of_commits) or "a killed member" in reason
    if answer in ("refused", "done") and verb.wrote and not is_passing:
        world.problem(f"status said {answer} of {ended.name} ({reason}), which then wrote")
    happens = world.applications or "pending" in reason or "another run is at work" in ended.err
    is_alone = ended.name not in ("migrate", "apply") and not happens
    if answer == "allowed" and ended.code in (2, 3) and is_alone:
        world.problem(f"status said allowed of {ended.name} ({reason}), which refused: {ended.err.strip()}")
    # `status` reads the receipt, and not the spec or the snapshot, which may have other topics by now.
    is_another = "is the receipt of another migration" in ended.err
    if answer == "done" and ended.code in (2, 3) and not ended.step.hold and not is_another:
        world.problem(f"status said done of {ended.name} ({reason}), which refused: {ended.err.strip()}")


def judge_deletion(world: World, setting: Setting, run: Run, ended: Ended, verb: Verb) -> None:
    """Judge delete-offsets, after which the target groups own the topics, unless they have handed them on.

    This is so even if the hand-over was killed before it said so. But the offsets of a group that another run has told
    to start since the hand-over must stay.
    """
    if ended.code and (not verb.wrote or run.source in world.applications):
        return  # the operator sees that nothing was deleted, or that the source group still consumes
    for topic, target in run.to.items():
        told = _told(world, TopicPartition(topic, 0))
        is_later = told is not None and told.ended > world.handed_over.get(ended.step.of, 0.0)
        if told and is_later and told.run != ended.step.of and told.group == world.owner[topic] == run.source:
            if deleted := [place for place in sorted(verb.wrote) if place[1].topic == topic]:
                world.problem(f"delete-offsets takes the offsets of the owner, {_after(told, verb)}: {deleted}")
        elif world.owner[topic] in (run.source, None):
            world.owner[topic] = target
            for partition in world.partitions([topic]):
                _allow_forward(world, setting, verb, target, partition)


def judge_half_done(world: World, run: Run, ended: Ended, verb: Verb) -> bool:
    """Judge a way back that was not completed. Return whether its operator must complete it first."""
    if ended.name not in BACK:
        return False
    # Also if nothing was to be written: the topics may be the source group's again, and only a re-run says so.
    for topic in run.to if verb.sent else ():
        if world.owner[topic] in verb.of_topic[topic]:
            world.owner[topic] = None
    if ended.name == "rollback":
        world.undoing |= {place for place in verb.wrote if place[0] in run.targets and verb.believed[place] is None}
    if "processed twice" in ended.err:
        for partition in verb.partitions:
            said = range(world.ledger.starts[partition], world.ledger.ends[partition])
            world.ledger.may_repeat(partition, said, f"{ended.name} said so, with exit 4")
    return verb.sent


def note_half_done(world: World, run: Run, ended: Ended, verb: Verb) -> None:
    """Note the topics that a hand-over without exit 0 has given to a target group. This group may hand them on.

    Its operator starts neither group: the hand-over is to be completed or undone first. It has been given them without
    a write if the guard sees something amiss after the operator was told that every offset was in place already.
    """
    for topic, target in run.to.items():
        was_told = ended.code == 4 and "START THE" in ended.err
        written = was_told or any(group == target and partition.topic == topic for group, partition in verb.wrote)
        if ended.code and written and world.owner[topic] == run.source:
            world.half_done[topic] = target


def judge_coverage(world: World, ended: Ended, verb: Verb) -> None:
    """Check, after exit 0, that each partition has a committed offset if it had one when the command read it."""
    for partition in sorted(verb.covered):
        committed = {
            group: verb.believed.get((group, partition), world.committed_offset(group, partition))
            for group in verb.groups
        }
        if not any(offset is not None for offset in committed.values()) and not exceptions.deleted_after(
            world, verb, ended.name, partition
        ):
            world.problem(f"{ended.name} with exit 0 leaves {partition} in no group")


def judge_hand_over(world: World, setting: Setting, run: Run, ended: Ended, verb: Verb) -> None:
    """Judge a hand-over, or a way back, that has ended with exit 0: its groups own the topics from now on.

    No other run may have told another group to start, unless the command has taken the topic from this group.
    """
    back = ended.name in BACK
    # A hand-over that is over looks once, and then neither settles nor watches.
    is_over = "handed over already, and started since" in ended.err
    watched = 0 if ended.name == "hand-back" or is_over else setting.settle + setting.guard
    # Without a guard, no command looks for other consumers after its write.
    last_look = world.seconds if setting.guard else verb.wrote_at
    until = max(last_look, verb.began + watched) if verb.last_read else 0.0
    idle = "; nothing was written" in ended.err
    for topic, target in run.to.items():
        group = run.source if back else target
        partitions = frozenset(each for each in verb.partitions if each.topic == topic)
        if world.owner[topic] == group and (idle or not verb.last_read):
            continue  # the verb had nothing to do, so the offsets that an earlier verb read still count
        is_handed_on = world.half_done.get(topic) == run.source
        if world.owner[topic] not in (*verb.of_topic[topic], None) and not is_handed_on:
            if ended.starts:
                told = _told(world, TopicPartition(topic, 0))
                after = _after(told, verb) if told else "after delete-offsets of another run"
                world.problem(
                    f"{ended.name} starts a second group, {after}: {group}, {topic} is {world.owner[topic]}'s"
                )
            continue
        world.owner[topic] = group
        world.half_done.pop(topic, None)
        last_read = verb.last_read if back else {**verb.last_read, **verb.confirmed}  # later it only takes a snapshot
        world.verdicts.append(
            exceptions.Verdict(
                verb=ended.name,
                run=ended.step.of,
                group=group,
                groups=verb.of_topic[topic],
                partitions=partitions,
                ended=world.seconds,
                watched=until,
                last_read={each: last_read.get((group, each), verb.first) for each in partitions},
                uncovered=frozenset(partitions - verb.covered)
                | (_not_handed_over(world, run, topic) if back else frozenset()),
            )
        )
        for partition in partitions:
            _allow_options(world, setting, run, ended.name, partition)


def _after(told: exceptions.Verdict, verb: Verb) -> str:
    return f"{'during' if told.ended > verb.began else 'after'} {told.verb} of another run"


def _told(world: World, partition: TopicPartition) -> exceptions.Verdict | None:
    """Return the last result for a partition that an operator knows."""
    return next((each for each in reversed(world.verdicts) if partition in each.partitions), None)


def _allow_options(world: World, setting: Setting, run: Run, name: str, partition: TopicPartition) -> None:
    """Allow what the options of the run ask for."""
    source, target, verb = run.source, run.to[partition.topic], world.verb
    assert verb is not None
    back = name in BACK
    group = source if back else target
    if not back:
        _allow_forward(world, setting, verb, group, partition)
    if setting.on_uncommitted == "leave" and not back and verb.believed.get((group, partition)) is None:
        world.left_out |= {(group, partition), (source, partition)}
    ahead = setting.existing.get((target, partition))
    if name == "hand-back" and setting.on_existing == "forward" and ahead is not None:
        skipped = world.ledger.unprocessed(partition, ahead)
        world.ledger.may_skip(partition, skipped, "on_existing = forward had left the target ahead")
    if setting.on_uncommitted != "refuse" and (source, partition) in verb.missed:
        world.ledger.may_do_both(partition, f"on_uncommitted = {setting.on_uncommitted}")


def _allow_forward(world: World, setting: Setting, verb: Verb, target: str, partition: TopicPartition) -> None:
    """Allow that records are skipped because ``on_existing = forward`` has left a target group ahead."""
    if setting.on_existing == "forward" and (target, partition) not in verb.wrote:
        skipped = world.ledger.unprocessed(partition, world.committed_offset(target, partition) or 0)
        world.ledger.may_skip(partition, skipped, "on_existing = forward left the target ahead")


def _not_handed_over(world: World, run: Run, topic: str) -> frozenset[TopicPartition]:
    """Return the partitions that the last hand-over left out, because no group had a committed offset for them."""
    groups = (run.source, run.to[topic])
    undone = [
        each
        for each in world.verdicts
        if each.verb in ("migrate", "apply") and each.group in groups and topic in {at.topic for at in each.partitions}
    ]
    return undone[-1].uncovered if undone else frozenset()
