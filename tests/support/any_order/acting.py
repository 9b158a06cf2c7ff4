"""What acts on the cluster of a story: applications, and commands of the tool."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from migrate_groups.model.partitions import TopicPartition
from tests.support.any_order.ledger import Processing

if TYPE_CHECKING:
    from tests.support.any_order.events import At  # events imports this module


GROUPS = ("old", "a", "b", "c")
Offsets = dict[tuple[str, TopicPartition], int]
"""By group and partition, the committed offset."""


class Killed(BaseException):
    """Raised where the tool's process is killed. Afterwards the process may send no request and write no file."""


@dataclass(slots=True, kw_only=True)
class Application:
    """A consumer of a group, which processes records from the group's committed offset on.

    - member: whether it joins the group and commits each second. Otherwise it assigns itself partitions, keeps its own
      positions and commits all of them every 5 s.
    - latest: whether it starts at the log end offset if its group has no committed offset.
    - straggles: whether it is a straggler, which the operator did not start.
    """

    group: str
    topics: tuple[str, ...]
    member: bool
    latest: bool
    joined: float
    straggles: bool = False
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    pending: list[Processing] = field(default_factory=list)
    committed_at: float = 0.0
    owed: float = 0.0

    @property
    def member_id(self) -> str:
        """Return the application's member id."""
        return f"{self.group}-app"


@dataclass(slots=True, kw_only=True)
class Verb:
    """A running command, and what the tool has read and written so far.

    - name: that of the command, such as ``migrate``. of: the name of its run, or of its group.
    - client: its client of the cluster.
    - planned: the events that happen while it runs.
    - dead: whether its process was killed.
    - last_read: by group and partition, the value of `World.moments` when the tool last read the offset.
    - believed: by group and partition, the offset that the tool last read or wrote.
    - of_topic: for each topic, the groups of the command that may own the topic.
    - covered: the partitions that had a committed offset in one of these groups when the tool read them.
    - confirmed: by group and partition, the value of `World.moments` when the second client read the offset.
    - sent: whether the tool has sent a request that writes, also one that writes a claim to a journal.
    - wrote_at: when the tool last wrote, in seconds of the story's clock.
    """

    name: str
    of: str
    client: Any
    began: float
    first: int
    planned: list[At]
    groups: tuple[str, ...]
    partitions: frozenset[TopicPartition]
    of_topic: dict[str, tuple[str, ...]]
    moments: Counter[str] = field(default_factory=Counter)
    last_read: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    believed: dict[tuple[str, TopicPartition], int | None] = field(default_factory=dict)
    missed: set[tuple[str, TopicPartition]] = field(default_factory=set)
    covered: set[TopicPartition] = field(default_factory=set)
    wrote: set[tuple[str, TopicPartition]] = field(default_factory=set)
    confirmed: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    by_choice: str = ""
    wrote_at: float = 0.0
    sent: bool = False
    dead: bool = False
