"""Check that the applications of the target groups may read, by the ACLs of their principals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from migrate_groups.errors import UsageError
from migrate_groups.model.permissions import ANY_HOST, EVERYONE, Acl, Acls, Operation, Resource, ResourceType
from migrate_groups.planning.change import Change
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.text import did_you_mean, some

_USER = "User:"
_OPTION = "--app-principal"
_ALL = "All"
_MOST = 3
_READS = frozenset({Operation.READ, _ALL})
_DENIES = frozenset({Operation.READ, Operation.DESCRIBE, _ALL})  # without Describe, a consumer finds no coordinator


class AppPrincipal(NamedTuple):
    """The principal of an application that consumes with a target group. group: None: with any target group."""

    principal: str
    group: str | None = None

    @staticmethod
    def parse(text: str) -> AppPrincipal:
        """Return what ``User:NAME`` or ``GROUP=User:NAME`` says. Raises `UsageError` if the text is malformed."""
        group, is_of_group, name = ("", "", text) if text.startswith(_USER) else text.partition(f"={_USER}")
        principal = f"{_USER}{name}" if is_of_group else name
        if not principal.startswith(_USER) or principal in (_USER, EVERYONE) or bool(is_of_group) != bool(group):
            raise UsageError(
                f"{_OPTION} is {text!r}; expected User:NAME, or GROUP=User:NAME, such as billing=User:billing"
            )
        return AppPrincipal(principal, group or None)


def check_groups(principals: Iterable[AppPrincipal], targets: Collection[str]) -> None:
    """Raise `UsageError` if a principal is given for a group that is none of the target groups."""
    for each in principals:
        if each.group is not None and each.group not in targets:
            near = did_you_mean([each.group], targets) or f"the new groups are {some(sorted(targets))}"
            raise UsageError(f"{_OPTION} is for {each.group!r}, which is no new group of the split: {near}")


def read_by(principals: Iterable[AppPrincipal], changes: Iterable[Change]) -> Mapping[str, Collection[Resource]]:
    """Return, for each principal, the target groups and the topics that its application must read."""
    wanted: dict[str, dict[Resource, None]] = defaultdict(dict)
    given = tuple(principals)
    for change in changes:
        for each in given:
            if each.group in (None, change.group):
                wanted[each.principal][Resource(ResourceType.GROUP, change.group)] = None
                wanted[each.principal][Resource(ResourceType.TOPIC, change.topic)] = None
    return {principal: sorted(resources) for principal, resources in wanted.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Applications:
    """The facts of the applications of target groups.

    readers: for each principal, the groups and topics that it must read; empty if no principal was given.
    """

    readers: Mapping[str, Collection[Resource]]
    acls: Acls


def application(facts: Applications) -> Judgement | None:
    """Check that the principals may read their target groups and the topics of these. None if no principal was given.

    A DENY counts more than an ALLOW. The verdict is ``not known`` if ACLs can't be read or don't decide. The check
    warns if it depends on the host of the application. A client can't know super users, so the reason says what to do
    for one.
    """
    if not facts.readers:
        return None
    names = some(sorted(facts.readers))
    if facts.acls.unknown:
        return Verdict.NOT_KNOWN, f"{facts.acls.unknown}: make sure that {names} may read the new groups and topics"
    problems: dict[Verdict, list[str]] = defaultdict(list)
    for principal, resources in sorted(facts.readers.items()):
        own = [each for each in facts.acls.entries if each.principal in (principal, EVERYONE)]
        for resource in resources:
            verdict, why = _judged([each for each in own if each.applies_to(resource)])
            problems[verdict].append(f"{principal} {why} {resource}")
    if refused := problems[Verdict.REFUSE]:
        also = "" if len(refused) <= _MOST else f" and {len(refused) - _MOST} more"
        return Verdict.REFUSE, (
            f"{'; '.join(refused[:_MOST])}{also}: grant Read, or the application can't start; for a super user, leave "
            f"out {_OPTION}"
        )
    if limited := problems[Verdict.WARN]:
        return Verdict.WARN, f"{'; '.join(limited[:_MOST])}: check the hosts of the application"
    return Verdict.PASS, f"{names} may read the new groups and their topics"


def _judged(acls: Collection[Acl]) -> tuple[Verdict, str]:
    """Return whether the ACLs of a group or topic let a principal read it, and why not."""
    denied = {each.host for each in acls if not each.is_allowed and each.operation in _DENIES}
    allowed = {each.host for each in acls if each.is_allowed and each.operation in _READS}
    if ANY_HOST in denied:
        return Verdict.REFUSE, "is denied to read"
    if not allowed:
        return Verdict.REFUSE, "has no ACL to read"
    if denied:
        return Verdict.WARN, f"may not read from {some(sorted(denied))}"
    if ANY_HOST not in allowed:
        return Verdict.WARN, f"may read only from {some(sorted(allowed))}"
    return Verdict.PASS, "may read"


RULES = (Rule(name="application", scopes=(Scope.APPLICATION,), judge=application),)
