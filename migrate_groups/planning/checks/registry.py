"""The registry of all checks, and the functions that judge facts by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from migrate_groups.model.topics import topic_ids
from migrate_groups.planning.check import Check, Verdict
from migrate_groups.planning.checks import (
    application,
    barrier,
    deletion,
    hand_back,
    journal,
    kind,
    live_source,
    mirror,
    offsets,
    origin,
    permission,
    rollback,
    source,
    target,
    written,
)
from migrate_groups.planning.checks.application import Applications
from migrate_groups.planning.checks.barrier import Probes
from migrate_groups.planning.checks.facts import Facts
from migrate_groups.planning.checks.journal import JournalFacts
from migrate_groups.planning.checks.live_source import LiveSource
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.planning.plan import Plan

F = TypeVar("F", bound=Facts)

REGISTRY: tuple[Rule, ...] = (
    *origin.RULES,
    *kind.RULES,
    *permission.RULES,
    *source.RULES,
    *target.RULES,
    *mirror.RULES,
    *offsets.RULES,
    *written.RULES,
    *rollback.RULES,
    *deletion.RULES,
    *hand_back.RULES,
    *barrier.RULES,
    *journal.RULES,
    *live_source.RULES,
    *application.RULES,
)
"""All checks, in the order in which a plan shows those of one scope."""


def judge(scope: Scope, facts: Facts | Probes | JournalFacts | LiveSource | Applications) -> tuple[Check, ...]:
    """Return the verdicts of all checks of this scope on the facts, in the order in which they are shown.

    If the check ``cluster`` refuses, it is the only one. The name of a check of the target of a move begins with
    ``target`` if the source has a check of the same name.
    """
    made: dict[str, Check] = {}
    for rule in rules_of(scope):
        judgement = rule.judge(facts)
        if judgement is None:
            continue
        verdict, reason = judgement
        refusing = [name for name in rule.depends_on if name in made and made[name].verdict is Verdict.REFUSE]
        if refusing:
            verdict, reason = Verdict.NOT_APPLICABLE, f"not judged, because the check {refusing[0]!r} refuses"
        made[rule.name] = Check(name=rule.name, verdict=verdict, reason=reason)
        if rule.is_first and verdict is Verdict.REFUSE:
            break
    if scope is not Scope.TARGET:
        return tuple(made.values())
    of_source = {rule.name for rule in rules_of(Scope.SOURCE)}
    return tuple(of_target(check) if check.name in of_source else check for check in made.values())


def rules_of(scope: Scope) -> list[Rule]:
    """Return the checks in the registry that apply to this scope."""
    return [rule for rule in REGISTRY if scope in rule.scopes]


def of_target(check: Check) -> Check:
    """Return the check with the name that it has for the target groups in a move to another cluster."""
    return replace(check, name=f"target {check.name}")


def is_wrong_cluster(scope: Scope, facts: Facts) -> bool:
    """Return whether the check ``cluster`` refuses. Nothing else must be read then, and the plan writes nothing."""
    # Groups and topics of the same names are others on another cluster, so other checks would mislead.
    judgements = [rule.judge(facts) for rule in rules_of(scope) if rule.is_first]
    return any(judgement is not None and judgement[0] is Verdict.REFUSE for judgement in judgements)


def read_on(scope: Scope, facts: F, read: Callable[[F], F]) -> F:
    """Return what ``read`` makes of the facts; the facts unchanged if the check ``cluster`` refuses.

    Until now only the id of the cluster was read.
    """
    return facts if is_wrong_cluster(scope, facts) else read(facts)


def planned(scope: Scope, facts: Facts) -> Plan:
    """Return the plan that writes the changes in the facts, with the verdict of every check."""
    survey = facts.survey
    return Plan(
        cluster_id=survey.cluster_id,
        options=facts.options,
        changes=tuple(facts.changes),
        checks=judge(scope, facts),
        topic_ids=topic_ids(survey.topics) if facts.topic_ids is None else facts.topic_ids,
    )
