"""Checks of the target groups: they have no members, and no committed offset that would be replaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from migrate_groups.planning.change import Origin
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import HandOverFacts
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.planning.checks.source import live
from migrate_groups.planning.options import WriteOptions
from migrate_groups.text import counted, named, some

_TRIMMED = frozenset(" \t\n\v\f\r")  # librdkafka trims these (docs/kafka-behaviour.md#confluent-kafka)


def writable(facts: HandOverFacts) -> Judgement:
    """Check that every target group is Empty or does not exist, and that no target group is also a source group.

    With the option ``restore`` (write a group's own snapshot back to it), a group may be both. A group name that
    librdkafka would change is refused if confluent-kafka is to read the offsets back.
    """
    wanted, options = facts.wanted, facts.options
    targets = sorted({each.group for each in wanted})
    if not targets:
        return Verdict.NOT_APPLICABLE, "no group to write to"
    both = sorted(set(targets) & {each.source_group for each in wanted})
    if both and not options.restore:
        return Verdict.REFUSE, (
            f"{named('group', both)} named as source and target: name another target; to write a group's own offsets "
            "back, apply its snapshot with --restore and without --to-group"
        )
    trimmed = [group for group in targets if _is_trimmed(group)]
    if trimmed and options.second_client != "none":
        reason = (
            f"{named('group name', [ascii(group) for group in trimmed])} with white space at the start or with a NUL, "
            "which confluent-kafka can't read back: choose another name, or pass --second-client none"
        )
        return Verdict.REFUSE, reason
    described = [facts.survey.groups[group] for group in targets]
    # The coordinator refuses offsets for a group that has members (UNKNOWN_MEMBER_ID, error 25).
    if members := live(facts.survey.groups, dict.fromkeys(targets)):
        reason = f"{some(members, most=3)}; stop these members: brokers accept offsets only for groups without members"
        return Verdict.REFUSE, reason
    # Legal, but a table does not show it.
    if padded := [ascii(group) for group in targets if group != group.rstrip()]:
        return Verdict.WARN, f"{named('group name', padded)} with white space at the end: check the spelling"
    new = [group.group for group in described if not group.exists]
    reason = f"{some(new)} will be created: check the spelling" if new else f"no members in {some(targets)}"
    return Verdict.PASS, reason


def _is_trimmed(group: str) -> bool:
    """Return whether librdkafka would change a group's name, so that confluent-kafka would read another group.

    It changes a name that begins with white space or contains a NUL.
    """
    return group[:1] in _TRIMMED or "\0" in group


def options_of_write(options: WriteOptions, groups: Iterable[str]) -> WriteOptions:
    """Return the options for a write to these groups, without confluent-kafka if it would misread a group's name.

    librdkafka changes some names (docs/kafka-behaviour.md#confluent-kafka).
    """
    return replace(options, second_client="none") if any(map(_is_trimmed, groups)) else options


def existing_offsets(facts: HandOverFacts) -> Judgement:
    """Check that no target group has another committed offset than the planned one.

    With the option ``on_existing`` "forward" or "overwrite", the check only warns. Offsets that this migration wrote
    are allowed.
    """
    decided, on_existing = facts.decided, facts.options.on_existing
    if not decided:
        return Verdict.NOT_APPLICABLE, "no group to write to"
    own = facts.receipt.own_writes()
    differing = []
    for each in decided:
        before, after = each.before, each.given_up or each.after
        if before is None:
            continue
        late = each.origin is Origin.NOT_MIRRORED
        # Without an offset to write, the group would start at the offset that it has.
        ours = (after is not None or late) and before in own.get(each.order, ())
        if not ours and (after is None or before.offset != after.offset):
            otherwise = "its translated offset is not known yet" if late else "and stays there"
            instead = f"not {after.offset}" if after else otherwise
            differing.append(f"{each.group} {each.topic_partition} is at {before.offset}, {instead}")
    if not differing:
        there = [(each.before.offset, each.after.offset) for each in decided if each.before and each.after]
        same = sum(before == after for before, after in there)
        kinds = {"the planned offset already": same, "an earlier offset of this run": len(there) - same}
        counts = [f"{counted(number, 'partition')} with {what}" for what, number in kinds.items() if number]
        return Verdict.PASS, ", ".join(counts) or "none in the target groups"
    found = f"{counted(len(differing), 'partition')} with another committed offset: {some(differing, most=3)}"
    if on_existing == "refuse":
        advice = "unless an application has run there, pass --on-existing forward (raises offsets only) or overwrite"
        return Verdict.REFUSE, f"{found}; {advice}"
    execution = "raised only" if on_existing == "forward" else "overwritten"
    return Verdict.WARN, f"{found}; {execution}"


RULES = (
    Rule(name="targets", scopes=(Scope.HAND_OVER, Scope.HAND_BACK, Scope.TARGET), judge=writable),
    Rule(
        name="existing offsets",
        scopes=(Scope.HAND_OVER, Scope.HAND_BACK, Scope.TARGET),
        judge=existing_offsets,
        depends_on=("topics", "not moved"),
    ),
)
