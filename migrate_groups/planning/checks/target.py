"""Checks of the target groups: they have no members, and no committed offset that would be replaced."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_groups.planning.checks.source import running
from migrate_groups.planning.decide import Decision
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Check
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.survey import Survey
from migrate_groups.planning.wanted import Wanted
from migrate_groups.text import counted, some

_TRIMMED = frozenset(" \t\n\v\f\r")  # librdkafka trims these (docs/kafka-behaviour.md#confluent-kafka)


def writable(wanted: Sequence[Wanted], survey: Survey, options: WriteOptions) -> Check:
    """Check that every target group is Empty or does not exist. It may be a source group with ``restore`` only.

    The coordinator refuses offsets for a group with members (UNKNOWN_MEMBER_ID, error 25). A group name that librdkafka
    would change is refused, because confluent-kafka, which reads the offsets back, would read another group.
    """
    targets = sorted({each.group for each in wanted})
    both = sorted(set(targets) & {each.source_group for each in wanted})
    if both and not options.restore:
        return Check.refused("targets", f"group {some(both)} is source and target")
    trimmed = [group for group in targets if group[:1] in _TRIMMED or "\0" in group]
    if trimmed and options.second_client != "none":
        reason = (
            f"{some([ascii(group) for group in trimmed])}: white space at a name's beginning, or a NUL in it: the "
            "second client would look at another group; choose another name"
        )
        return Check.refused("targets", reason)
    described = [survey.groups[group] for group in targets]
    live = [f"{group.group} {reason}" for group in described if group.exists for reason in running(group, None)]
    if live:
        reason = f"{some(live, most=3)}; stop its members: offsets are written to groups without members only"
        return Check.refused("targets", reason)
    new = [group.group for group in described if not group.exists]
    reason = f"{some(new)} will be created: check the spelling" if new else f"{some(targets)} Empty"
    return Check.passed("targets", reason)


def existing_offsets(decisions: Sequence[Decision], options: WriteOptions, receipt: Receipt) -> Check:
    """Check that no target group has a committed offset other than the planned one, or ``on_existing`` allows it.

    Partitions for which nothing is written are included, because their target group would start at the offset that it
    has. An offset that this run wrote, or that the target group had at a hand-back of this run, is allowed in any case.
    """
    own = receipt.own_writes()
    differing = []
    for decision in decisions:
        before, after, wanted = decision.before, decision.after, decision.wanted
        if before is None:
            continue
        ours = after is not None and before in own.get((wanted.group, wanted.topic, wanted.partition), ())
        if not ours and (after is None or before.offset != after.offset):
            instead = f"not {after.offset}" if after else "and is left there"
            differing.append(f"{wanted.group} {wanted.topic_partition} is at {before.offset}, {instead}")
    if not differing:
        same = sum(each.before is not None and each.after is not None for each in decisions)
        return Check.passed(
            "existing offsets", f"{counted(same, 'partition')} as wanted already" if same else "the targets have none"
        )
    found = f"{counted(len(differing), 'partition')} with another offset: {some(differing, most=3)}"
    if options.on_existing == "refuse":
        advice = "--on-existing forward moves them forward only, --on-existing overwrite replaces them"
        return Check.refused("existing offsets", f"{found}; {advice}")
    execution = "moved forward only" if options.on_existing == "forward" else "overwritten"
    return Check.warned("existing offsets", f"{found}; {execution}")
