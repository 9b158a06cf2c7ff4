"""What a person decided about a write; part of a plan's intent, so that it is reviewed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from migrate_groups.errors import InvalidInput

Uncommitted = Literal["refuse", "earliest", "latest", "leave"]
OnExisting = Literal["refuse", "forward", "overwrite"]
OutOfRange = Literal["refuse", "earliest"]
Vanished = Literal["refuse", "restore"]
SecondClientMode = Literal["auto", "required", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of a write.

    uncommitted: what partitions without a commit get: the log start offset (``earliest``), the log end offset from
    while a member was last seen to consume the topic (``latest``), or nothing (``leave``). on_existing: what happens to
    offsets that a target has already.
    out_of_range: whether an offset below the log's start, whose records are gone, is set to that start.
    vanished: whether commits of an old group that have expired since the snapshot are taken from it all the same.
    settle: seconds that the old group must have been quiet. guard: seconds that it is watched after the write.
    second_client: whether the second client must answer. restore: a group's own snapshot may be written back to it.
    any_kind: groups that look like those of Kafka Streams or Connect are taken for plain consumer groups.
    """

    uncommitted: Uncommitted = "refuse"
    on_existing: OnExisting = "refuse"
    out_of_range: OutOfRange = "refuse"
    vanished: Vanished = "refuse"
    settle: float = 10.0
    guard: float = 30.0
    second_client: SecondClientMode = "auto"
    restore: bool = False
    any_kind: bool = False

    def __post_init__(self) -> None:
        for name in ("settle", "guard"):
            seconds = float(getattr(self, name))
            if not 0 <= seconds < math.inf:
                raise InvalidInput(f"{name} is {seconds:g}; expected a number of seconds")
            # 10 and 10.0 are one option, and one hash.
            object.__setattr__(self, name, seconds)
        _one_of("uncommitted", self.uncommitted, Uncommitted)
        _one_of("on_existing", self.on_existing, OnExisting)
        _one_of("out_of_range", self.out_of_range, OutOfRange)
        _one_of("vanished", self.vanished, Vanished)
        _one_of("second_client", self.second_client, SecondClientMode)


def _one_of(name: str, value: str, choices: Any) -> None:
    if value not in get_args(choices):
        raise InvalidInput(f"{name} is {value!r}; expected one of {', '.join(get_args(choices))}")
