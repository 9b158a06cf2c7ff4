"""The options of a write, which a reviewer approves together with the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from migrate_groups.arguments import check_bool, check_choice, check_whole_number, checked_seconds, checked_texts

OnUncommitted = Literal["refuse", "earliest", "latest", "leave"]
OnExisting = Literal["refuse", "forward", "overwrite"]
OnOutOfRange = Literal["refuse", "earliest"]
OnRemoved = Literal["refuse", "restore"]
SecondClientMode = Literal["auto", "required", "none"]

FREE = frozenset({"settle", "guard", "second_client"})
"""The options that do not change which offsets are written. They may differ from a reviewed plan, and between runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of a write of offsets. ``refuse`` means that the write is refused in the case that the option covers.

    - on_uncommitted: what a target group gets for a partition in which the source group has no committed offset.
      ``earliest``: the log start offset. ``latest``: the log end offset, read while the source group still
      consumed the topic. ``leave``: no offset.
    - on_existing: when another committed offset of a target group is replaced: only by a higher one (``forward``), or
      always (``overwrite``).
    - on_out_of_range: ``earliest`` replaces an offset below the log start offset by the log start offset.
    - on_removed: ``restore`` hands over offsets of the snapshot that have expired in the source group since, or were
      deleted.
    - settle: seconds before the write in which the source group must not commit or change its members.
    - guard: seconds after the write for which the groups that must no longer consume are watched.
    - second_client: whether confluent-kafka reads the offsets back too: always (``required``), if it can (``auto``), or
      never (``none``).
    - restore: allow a group to be both source and target, so that its own snapshot is written back to it.
    - any_kind: treat groups that look like those of Kafka Streams or Connect workers as plain consumer groups.
    - copy: the target groups get a copy, and the source group keeps its partitions. What other runs have handed over is
      not looked at, and nothing is claimed.
    - accept_reread: how many records of a partition a target group on another cluster may read again, if the exact
      offset in the mirror's copy is not known.
    - trust_copy: topics on the source group's cluster whose copies are trusted where the source has no record left to
      compare: a target group then starts at the end of the copy. Sorted, each once.

    Raises `UsageError` for a value that is not allowed.
    """

    on_uncommitted: OnUncommitted = "refuse"
    on_existing: OnExisting = "refuse"
    on_out_of_range: OnOutOfRange = "refuse"
    on_removed: OnRemoved = "refuse"
    settle: float = 10.0
    guard: float = 30.0
    second_client: SecondClientMode = "auto"
    restore: bool = False
    any_kind: bool = False
    copy: bool = False
    accept_reread: int = 0
    trust_copy: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("settle", "guard"):
            # A float, so that 10 and 10.0 have the same intent hash.
            object.__setattr__(self, name, checked_seconds(name, getattr(self, name)))
        check_choice("on_uncommitted", self.on_uncommitted, OnUncommitted)
        check_choice("on_existing", self.on_existing, OnExisting)
        check_choice("on_out_of_range", self.on_out_of_range, OnOutOfRange)
        check_choice("on_removed", self.on_removed, OnRemoved)
        check_choice("second_client", self.second_client, SecondClientMode)
        check_bool("restore", self.restore)
        check_bool("any_kind", self.any_kind)
        check_bool("copy", self.copy)
        check_whole_number("accept_reread", self.accept_reread)
        # Sorted, so that the order on the command line does not change the intent hash.
        object.__setattr__(self, "trust_copy", tuple(sorted({*checked_texts("trust_copy", self.trust_copy)})))

    @property
    def reviewed(self) -> Mapping[str, object]:
        """The options that are part of a plan's intent, by name: all except those in `FREE`."""
        return {name: value for name, value in asdict(self).items() if name not in FREE}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetLimits:
    """The limits of a fleet, in which many groups are handed over side by side.

    - max_stopped: how many groups may be between their stop and the start of the new group at once, where
      ``--stop-command`` stops them.
    - max_failures: after so many groups that were begun and failed, no more groups are begun.

    Raises `UsageError` for a value that is not a whole number, or below 1.
    """

    max_stopped: int = 50
    max_failures: int = 5

    def __post_init__(self) -> None:
        for name in ("max_stopped", "max_failures"):
            check_whole_number(name, getattr(self, name), least=1)


def in_words(value: object) -> str:
    """Return the value of an option as users write it: a float is a number of seconds, such as ``30s``."""
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return f"{value:g}s" if isinstance(value, float) else str(value)
