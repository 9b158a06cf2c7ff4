"""The measured outage of a hand-over: when the source group stopped, START, when each target group began to consume."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

Sign = Literal["member", "commit"]
_Moment = Annotated[datetime, msgspec.Meta(tz=True)]


# Receipts have these values as they are.
class FirstSign(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The first sign, after START, that a target group consumes. A receipt has null for None.

    at: when it was first read; None if it was not seen during the guard. sign: ``member``: a member was assigned a
    partition; ``commit``: a committed offset differed from the one written, which includes the group's commit interval;
    None if there was no sign.
    """

    group: str
    at: _Moment | None
    sign: Sign | None


class Outage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The times between which no group consumed the partitions of a hand-over, as they were read from brokers.

    - ran_until: the last reading, while the tool waited, in which a source group had a member on the topics, or had
      committed; None if it was not seen running.
    - start_at: START, when all offsets had been read back, so that the target groups might start; None if they might
      not, or if the write was no hand-over.
    - first_signs: one for each target group, in order of their names; empty if there was no guard, so that it is not
      known when they began.
    """

    ran_until: _Moment | None
    start_at: _Moment | None
    first_signs: tuple[FirstSign, ...]

    @property
    def seconds(self) -> float | None:
        """The seconds from the last reading in which a source group ran to START; None if one is not known."""
        if self.ran_until is None or self.start_at is None:
            return None
        return (self.start_at - self.ran_until).total_seconds()

    def with_signs(self, signs: dict[str, Sign], at: datetime) -> Outage:
        """Return the outage with these signs, by group, for groups without an earlier sign. at: when they were read."""
        return replace(
            self,
            first_signs=tuple(
                FirstSign(group=each.group, at=at, sign=signs[each.group])
                if each.at is None and each.group in signs
                else each
                for each in self.first_signs
            ),
        )


NOT_MEASURED = Outage(ran_until=None, start_at=None, first_signs=())
