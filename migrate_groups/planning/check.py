"""A check: its name, its verdict, and the reason of the verdict."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec


class Verdict(StrEnum):
    """The possible verdicts of a check, from best to worst.

    - not applicable: there was nothing to compare, or a check that comes first refuses.
    - pass: something was compared, and nothing speaks against the write.
    - warn: what was found allows the write.
    - not known: what had to be compared could not be read. The write is allowed, as with ``warn``.
    - pending: the condition of the check does not hold yet, but must hold when offsets are written. A dry run succeeds,
      and a write is refused.
    - refuse: the write is forbidden.
    """

    NOT_APPLICABLE = "not applicable"
    PASS = "pass"  # noqa: S105  no password
    WARN = "warn"
    NOT_KNOWN = "not known"
    PENDING = "pending"
    REFUSE = "refuse"


Judgement = tuple[Verdict, str]
"""The verdict of a check, and its reason: what the check found, and what the user can do about it."""


# Plan files have these values as they are.
class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The verdict of a check.

    name: the check. reason: what it found, and what the user can do about it.
    """

    name: Annotated[str, msgspec.Meta(min_length=1)]
    verdict: Verdict
    reason: str
