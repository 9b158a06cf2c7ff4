"""Give topics back to a source group on another cluster: a move from the target groups' cluster to that one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from migrate_groups.errors import Refused
from migrate_groups.files import split_toml
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.migration.clusters import Clusters, Mirror
from migrate_groups.migration.hand_over.prepared import MigrateRequest
from migrate_groups.migration.reading.requests import existing_group, own_topics
from migrate_groups.migration.receipt_refusals import another_cluster, check_clusters_named, refuse_by_record
from migrate_groups.model.renames import Rename
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from migrate_groups.text import some


def move_back(receipt: Receipt, folder: Path, mirror: Mirror) -> MigrateRequest:
    """Return the request that moves a group back to the cluster from which a run has moved it.

    Its offsets in the mirror's copies are translated to the topics that were copied, which needs no other mirror. The
    request has a run directory of its own, the folder ``hand-back`` in that of the run.

    folder: of the receipt. mirror: its source cluster is the one to which the run has moved the group.

    Raises `Refused` if the receipt (the record of the run) forbids it, or if the run has moved the topics to several
    groups; `UsageError` if the run is not a move to another cluster; `GroupNotFound`; `ClusterUnavailable` and
    `NotAuthorized`.
    """
    refuse_by_record(receipt, Verb.HAND_BACK)
    hand_over = receipt.last_hand_over
    if hand_over is None:
        raise Refused("nothing to hand back: this run wrote nothing")
    check_clusters_named(hand_over, is_target_named=True)
    if another := another_cluster(Clusters(mirror.target.groups, mirror.source.groups), receipt):
        raise Refused(f"{another}; nothing was written")
    moved = hand_over.translation
    if moved is None:  # check_clusters_named has refused it
        raise ValueError("not a move to another cluster")
    groups = sorted({change.group for change in hand_over.changes})
    if len(groups) != 1:
        raise Refused(
            f"the run has moved {moved.group!r} to {some(groups)}, which can't go back together: move each back with "
            "migrate from its cluster, with --rename-topic COPY=TOPIC; nothing was written"
        )
    copies = {copy for _, copy in moved.topics}
    reader = mirror.source.groups
    target = SplitTarget(group=moved.group, topics=tuple(map(TopicPattern, sorted(copies))))
    stay = sorted(own_topics(reader, existing_group(reader, groups[0])) - copies)
    spec = SplitSpec(source=groups[0], targets=(target,), stay=tuple(map(TopicPattern, stay)))
    options = replace(hand_over.options, on_existing="forward", accept_reread=0, trust_copy=())
    if hand_over.is_fail_over:  # a partition without a kept offset, that the group has not read there, stays as it is
        options = replace(options, on_uncommitted="leave")
    renames = [Rename(old=copy, new=topic, option="the record of the run") for topic, copy in moved.topics]
    return MigrateRequest(
        file=split_toml.SplitFile(content=split_toml.to_toml(spec, (), {}).encode(), spec=spec, options=options),
        run=RunDir(folder).of_return,
        mirror=mirror._replace(renames=renames, is_return=True, kept=moved if hand_over.is_fail_over else None),
    )
