"""Check that the last reading of committed offsets can wait for commits that are being replicated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, OWN_GROUPS
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.permission import Permissions, missing
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.text import some

_SHORTEST_SETTLE = 10.0
_GRANT = f"grant Read and Delete on groups with the prefix {OWN_GROUPS!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """The facts of the last reading of committed offsets on one cluster.

    - principal: the client's principal.
    - groups: the probe groups; empty if they are not known, because the principal may not describe
      ``__consumer_offsets``.
    - permissions: the operations that the principal may perform on each probe group; None (the brokers don't return
      them) counts as all.
    - settle: see `barrier`.
    - answers: the answers to the commits to the probe groups; None before these commits.
    """

    principal: str
    groups: tuple[str, ...] = ()
    permissions: Permissions = field(default_factory=dict)
    settle: float
    answers: Mapping[str, WriteAnswer] | None = None

    @property
    def may_commit(self) -> bool:
        """Whether the principal may commit to all probe groups, as far as the brokers return its permissions."""
        return bool(self.groups) and not self.lacking(Operation.READ)

    def lacking(self, operation: Operation) -> list[str]:
        """Return the probe groups on which the principal lacks the operation, such as ``Read on Group 'g'``."""
        wanted = {Resource(ResourceType.GROUP, group): frozenset({operation}) for group in self.groups}
        return missing(wanted, self.permissions)


def barrier(facts: Probes) -> Judgement:
    """Check that the principal may commit to the probe groups, and delete them; and that the commits were answered.

    If the last reading can't wait for commits that are being replicated, the check warns, or refuses if ``settle`` is
    shorter than 10 s. It is ``pending`` if a commit to a probe group got no answer: others may be unanswered, too.
    """
    if not facts.groups:
        hidden = f"{facts.principal} may not describe Topic {OFFSETS_TOPIC!r}"
        return _cannot_wait(hidden, facts.settle, f"grant Describe on Topic {OFFSETS_TOPIC!r}")
    if lacking := facts.lacking(Operation.READ):
        return _cannot_wait(f"{facts.principal} lacks {some(lacking)}", facts.settle, _GRANT)
    if facts.answers is not None:
        return _answered(facts.groups, facts.answers, facts.settle)
    if lacking := facts.lacking(Operation.DELETE):
        reason = f"{facts.principal} lacks {some(lacking)}, so the probe groups stay until their offsets expire"
        return Verdict.WARN, f"{reason}: {_GRANT}"
    return Verdict.PASS, f"commits that wait for a replica are waited for, with {some(facts.groups)}"


def _answered(groups: tuple[str, ...], answers: Mapping[str, WriteAnswer], settle: float) -> Judgement:
    failed = {
        kind: [f"{probe} ({each.error})" for probe, each in answers.items() if each.answer is kind]
        for kind in (Answer.REFUSED, Answer.UNKNOWN)
    }
    if refused := failed[Answer.REFUSED]:
        return _cannot_wait(f"a broker refused the commit to {some(refused)}", settle, "see its log")
    if unknown := failed[Answer.UNKNOWN]:
        return Verdict.PENDING, (
            f"no answer to the commit to {some(unknown)}, so a commit may wait for a replica, and would be missed: "
            "look for a broker that is slow or hangs, and run the same command again, or pass a longer --timeout"
        )
    return Verdict.PASS, f"no accepted commit waited for a replica when the offsets were read, as {some(groups)} showed"


def _cannot_wait(reason: str, settle: float, advice: str) -> Judgement:
    found = f"{reason}, so a commit that waits for a replica may be missed when the offsets are read"
    if settle >= _SHORTEST_SETTLE:
        return Verdict.WARN, f"{found}: {advice}"
    return Verdict.REFUSE, f"{found}: {advice}, or pass --settle {_SHORTEST_SETTLE:g}s to hand over without it"


RULES = (Rule(name="barrier", scopes=(Scope.BARRIER,), judge=barrier),)
