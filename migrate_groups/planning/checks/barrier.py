"""Check that the last reading of committed offsets can wait for commits that are being replicated."""

from __future__ import annotations

from collections.abc import Collection

from migrate_groups.model.offsets_topic import OWN_GROUPS
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.checks.permission import Permissions, missing
from migrate_groups.planning.plan import Check
from migrate_groups.text import some

NAME = "barrier"
TARGET_NAME = f"target {NAME}"
"""The name of the check of the target groups' cluster in a move to another cluster."""
_SHORTEST_SETTLE = 10.0
_GRANT = f"grant Read and Delete on groups with the prefix {OWN_GROUPS!r}"


def can_wait(principal: str, probes: Collection[str], permissions: Permissions, settle: float) -> Check:
    """Check that the principal may commit to the probe groups, and delete them.

    permissions: the operations that the principal may perform on each probe group; None (the brokers don't return
    them) counts as all. settle: see `cannot_wait`.
    """
    if not may_commit(probes, permissions):
        return cannot_wait(f"{principal} lacks {some(_lacking(Operation.READ, probes, permissions))}", settle, _GRANT)
    if lacking := _lacking(Operation.DELETE, probes, permissions):
        reason = f"{principal} lacks {some(lacking)}, so the probe groups stay until their offsets expire"
        return Check.warned(NAME, f"{reason}: {_GRANT}")
    return Check.passed(NAME, f"commits that wait for a replica are waited for, with {some(probes)}")


def may_commit(probes: Collection[str], permissions: Permissions) -> bool:
    """Return whether the principal may commit to all probe groups, as far as the brokers return its permissions."""
    return not _lacking(Operation.READ, probes, permissions)


def cannot_wait(reason: str, settle: float, advice: str) -> Check:
    """Return the verdict if the last reading can't wait for commits that are being replicated.

    It warns, or refuses if ``settle`` is shorter than 10 s. reason, advice: why, and what the user can do.
    """
    found = f"{reason}, so a commit that waits for a replica may be missed when the offsets are read"
    if settle >= _SHORTEST_SETTLE:
        return Check.warned(NAME, f"{found}: {advice}")
    return Check.refused(NAME, f"{found}: {advice}, or pass --settle {_SHORTEST_SETTLE:g}s to hand over without it")


def not_answered(reason: str) -> Check:
    """Return the verdict if the commit to a probe group got no answer, so that others may be unanswered too."""
    return Check.pending(
        NAME,
        f"{reason}, so a commit may wait for a replica, and would be missed: look for a broker that is slow or hangs, "
        "and run the same command again, or pass a longer --timeout",
    )


def _lacking(operation: Operation, probes: Collection[str], permissions: Permissions) -> list[str]:
    return missing({Resource(ResourceType.GROUP, probe): frozenset({operation}) for probe in probes}, permissions)
