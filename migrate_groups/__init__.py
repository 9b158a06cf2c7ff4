"""Migrate Kafka consumer groups: no record skipped, none processed twice.

This module offers the Python API. Each name is imported when it is first used. So ``import migrate_groups`` loads no
Kafka client, no pyarrow and no Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate_groups.api.cluster import Cluster as Cluster
    from migrate_groups.api.cluster import connect as connect
    from migrate_groups.api.proof import reconcile as reconcile
    from migrate_groups.api.reading import Copies as Copies
    from migrate_groups.api.snapshot import PlannedWrite as PlannedWrite
    from migrate_groups.api.snapshot import Snapshot as Snapshot
    from migrate_groups.api.snapshot import Split as Split
    from migrate_groups.api.trial import try_out as try_out
    from migrate_groups.errors import ClusterUnavailable as ClusterUnavailable
    from migrate_groups.errors import GroupNotFound as GroupNotFound
    from migrate_groups.errors import HandOverBroken as HandOverBroken
    from migrate_groups.errors import InvalidInput as InvalidInput
    from migrate_groups.errors import MigrateGroupsError as MigrateGroupsError
    from migrate_groups.errors import MissingDependency as MissingDependency
    from migrate_groups.errors import NotAuthorized as NotAuthorized
    from migrate_groups.errors import PartlyApplied as PartlyApplied
    from migrate_groups.errors import PendingCommits as PendingCommits
    from migrate_groups.errors import Refused as Refused
    from migrate_groups.errors import Undetermined as Undetermined
    from migrate_groups.errors import UsageError as UsageError
    from migrate_groups.files.split_toml import SplitFile as SplitFile
    from migrate_groups.migration.across.compare import Comparison as Comparison
    from migrate_groups.migration.advise.after import AfterSplit as AfterSplit
    from migrate_groups.migration.advise.shared_groups import GroupAdvice as GroupAdvice
    from migrate_groups.migration.events import Events as Events
    from migrate_groups.migration.offsets_topic.costs import MeasuredCosts as MeasuredCosts
    from migrate_groups.migration.reading.status import GroupStatus as GroupStatus
    from migrate_groups.migration.run_status import RunStatus as RunStatus
    from migrate_groups.migration.write_result import WriteResult as WriteResult
    from migrate_groups.planning.examination import Examination as Examination
    from migrate_groups.planning.options import WriteOptions as WriteOptions
    from migrate_groups.planning.plan import Plan as Plan
    from migrate_groups.planning.trial import Trial as Trial
    from migrate_groups.snapshots.rewind_to import ShiftBy as ShiftBy
    from migrate_groups.snapshots.rewind_to import ToCurrent as ToCurrent
    from migrate_groups.snapshots.rewind_to import ToEarliest as ToEarliest
    from migrate_groups.snapshots.rewind_to import ToLatest as ToLatest
    from migrate_groups.snapshots.rewind_to import ToOffset as ToOffset
    from migrate_groups.snapshots.rewind_to import ToTime as ToTime
    from migrate_groups.snapshots.row import Row as Row

__version__ = "0.1.0"

_ERRORS = (
    *("ClusterUnavailable", "GroupNotFound", "HandOverBroken", "InvalidInput", "MigrateGroupsError"),
    *("MissingDependency", "NotAuthorized", "PartlyApplied", "PendingCommits", "Refused", "Undetermined", "UsageError"),
)
_HOMES = {
    **dict.fromkeys(("Cluster", "connect"), "api.cluster"),
    **dict.fromkeys(("PlannedWrite", "Snapshot", "Split"), "api.snapshot"),
    "Copies": "api.reading",
    "reconcile": "api.proof",
    "try_out": "api.trial",
    **dict.fromkeys(_ERRORS, "errors"),
    "SplitFile": "files.split_toml",
    "Comparison": "migration.across.compare",
    "AfterSplit": "migration.advise.after",
    "GroupAdvice": "migration.advise.shared_groups",
    "MeasuredCosts": "migration.offsets_topic.costs",
    "Events": "migration.events",
    "GroupStatus": "migration.reading.status",
    "RunStatus": "migration.run_status",
    "WriteResult": "migration.write_result",
    "Examination": "planning.examination",
    "WriteOptions": "planning.options",
    "Plan": "planning.plan",
    "Trial": "planning.trial",
    **dict.fromkeys(("ShiftBy", "ToCurrent", "ToEarliest", "ToLatest", "ToOffset", "ToTime"), "snapshots.rewind_to"),
    "Row": "snapshots.row",
}
__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__]
