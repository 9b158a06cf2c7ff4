"""Judge a hand-over from the log of ``__consumer_offsets``, on one cluster or two."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from migrate_groups.errors import ClusterUnavailable, InvalidInput, NotAuthorized, Undetermined, UsageError
from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.files.runs.run_dir import RunDir, receipt_in
from migrate_groups.migration.clusters import Clusters, one_cluster
from migrate_groups.migration.events import Events, amounts_shown
from migrate_groups.migration.journal import NOT_HANDED_ON, HandedOn, handed_on
from migrate_groups.migration.offsets_topic.copied import OpenLog
from migrate_groups.migration.ports import GroupReader, LogClients
from migrate_groups.migration.reading.copy_log import copy_log
from migrate_groups.migration.receipt_refusals import check_clusters_named
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, StopCheckpoint, log_partition
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.topics import is_same_topic, topic_ids
from migrate_groups.planning.change import share_groups
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.receipt import Receipt
from migrate_groups.text import did_you_mean, some

if TYPE_CHECKING:
    from migrate_groups.spark.offsets_topic.audit_result import Audit
    from migrate_groups.spark.session import OpenSpark


class AuditRequest(NamedTuple):
    """The input of `audit`.

    run_dir: the run directory of the migration, or the folder of a fleet. log: the folder for the copied log of
    ``__consumer_offsets``; None: a temporary folder. without_membership: target groups whose consumers use
    ``assign()``, and are not members of them.
    """

    run_dir: Path
    log: Path | None = None
    without_membership: Sequence[str] = ()


def audit(
    asked: AuditRequest,
    open_source: OpenLog,
    open_target: OpenLog | None,
    open_spark: OpenSpark,
    events: Events,
) -> Audit:
    """Judge every commit of source and target groups since a hand-over, and return the verdicts.

    open_source: connects to the source group's cluster. open_target: connects to the target groups' cluster; None: they
    are on the source group's cluster.

    Raises:
        UsageError: a connection leads to a wrong cluster, a cluster is missing or not needed, or a group of
            ``without_membership`` is not a target group.
        InvalidInput: a file of the run can't be read, or the folder for the log can't be used.
        Refused: the run wrote nothing, or was rolled back or handed back; or another command copies to the folder.
        Undetermined: the run has not finished, has no stop checkpoint, or ``__consumer_offsets`` was recreated or has
            another number of partitions since.
    """
    runs = RunDir(asked.run_dir).several() or [RunDir(asked.run_dir)]
    receipts = [receipt_json.load(receipt_in(run.folder)) for run in runs]
    executions = [receipt.hand_over_to_judge() for receipt in receipts]
    for execution in executions:
        check_clusters_named(execution, is_target_named=open_target is not None)
    changes = [change for execution in executions for change in execution.changes]
    vouched = _vouched({change.group for change in changes}, asked.without_membership)
    sides = _joined(
        asked.run_dir,
        [
            _sides(run.folder, execution, run.checkpoints(execution.content))
            for run, execution in zip(runs, executions, strict=True)
        ],
    )
    with ExitStack() as kept:
        folder = asked.log or Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="migrate-groups-")))
        with ExitStack() as opened:
            source = opened.enter_context(open_source())
            target = opened.enter_context(open_target()) if open_target else source
            clients = [target, source][: len(sides)]
            logs = zip(sides, _folders(folder, len(sides)), clients, strict=True)
            copied = [_copy(side, path, opened_log, events) for side, path, opened_log in logs]
            # Read after the logs: a topic that has its old id now had it when each of their commits was made.
            now = _current_topic_ids(target.reader, {change.topic for change in changes})
            starts = _log_starts(target.reader, {change.topic_partition for change in changes})

        def judge(since: Sequence[HandedOn]) -> Audit:
            own = zip(executions, since, strict=True)
            rows = [row for execution, each in own for row in _handed_over(execution, now, starts, each)]
            return _judged(rows, sides, copied, open_spark, vouched, share_groups(changes))

        judged = judge([NOT_HANDED_ON] * len(executions))
        is_good = not (judged.problems or judged.undetermined)
        since = [] if is_good else _handed_on(receipts, open_source, open_target)
        if any(each.in_words() for each in since):
            # What another run has done with a partition since is no problem of this one. But a start below the offset
            # handed over came before that.
            earlier = {(each.group, each.topic, each.partition) for each in judged.doubtful if each.new == "earlier"}
            since = [each.without(earlier) for each in since]
            words = dict.fromkeys(text for each in since for text in each.in_words())
            judged = replace(judge(since), handed_on=some(words, 3) or None)
    by = sorted({str(execution.by) for execution in executions if execution.by.operator})
    is_copy = all(execution.options.copy for execution in executions)
    return replace(judged, handed_over_by=some(by) or None, is_copy=is_copy)


class LogSide(NamedTuple):
    """The log of ``__consumer_offsets`` on one cluster, and the groups whose commits `audit` judges from this log.

    - named_by, belongs: parts of the error for a wrong cluster, such as ``--bootstrap-server`` and ``the old group is
      on``.
    - partitions: the number of partitions of ``__consumer_offsets`` at the time of the migration.
    - groups: for each group its name, its partition of ``__consumer_offsets``, and the offset in this partition from
      which its commits are judged.
    """

    cluster_id: str
    named_by: str
    belongs: str
    partitions: int
    groups: list[tuple[str, int, int]]


def _vouched(targets: Collection[str], groups: Sequence[str]) -> frozenset[str]:
    """Return the target groups without membership. Raises `UsageError` if one is not of this run."""
    for group in groups:
        if group not in targets:
            near = did_you_mean([group], targets) or f"they are {some(sorted(targets))}"
            raise UsageError(f"--without-membership {group!r} is not one of the new groups of this run: {near}")
    return frozenset(groups)


def _sides(run_dir: Path, execution: Execution, checkpoints: Sequence[StopCheckpoint]) -> list[LogSide]:
    """Return the logs to audit: of the target groups' cluster and, if it is another one, of the source group's cluster.

    checkpoints: for each run of ``migrate``, the log end offsets of ``__consumer_offsets`` when the source group had
    stopped. Raises `Undetermined` if the log end offsets of a run are missing.
    """
    source = execution.translation
    changes = execution.changes
    targets = {change.group for change in changes}
    of_target = [checkpoint for checkpoint in checkpoints if checkpoint.cluster_id == execution.cluster_id]
    of_source = (
        of_target
        if source is None
        else [checkpoint for checkpoint in checkpoints if checkpoint.cluster_id == source.cluster_id]
    )
    of_earlier_runs = any(change.own for change in execution.changes)
    if min(len(of_target), len(of_source)) < 1 + of_earlier_runs:
        raise Undetermined(
            f"{run_dir} has no stop checkpoint of each run: commits from before the cut-over can't be told from later "
            f"ones (migrate keeps one where it may describe {OFFSETS_TOPIC})"
        )
    # A source group is judged from the checkpoint of the last run, which read its committed offsets again. A target
    # group is judged from that of the first run, because each run may have written to it.
    first, last = of_target[0], of_source[-1]
    from_first = dict.fromkeys(targets, first)
    if source is None:
        from_last = {change.source_group: last for change in changes if change.source_group}
        return [_side(("this", "the receipt is of"), from_last | from_first)]
    return [
        _side(("--to-bootstrap-server", "the new groups are on"), from_first),
        _side(("--bootstrap-server", "the old group is on"), {source.group: last}),
    ]


def _joined(folder: Path, of_runs: Sequence[list[LogSide]]) -> list[LogSide]:
    """Return the logs of one run, or of all runs of a fleet: each log once, with the groups of all runs.

    Raises `UsageError` if the runs can't be judged together.
    """
    found = []
    for sides in zip(*of_runs, strict=True):
        groups = [group for side in sides for group in side.groups]
        logs = {(side.cluster_id, side.partitions) for side in sides}
        if len(logs) > 1 or len({name for name, *_ in groups}) < len(groups):
            raise UsageError(f"the runs in {folder} can't be judged together: name one, such as {folder}/GROUP")
        found.append(sides[0]._replace(groups=groups))
    return found


def _side(words: tuple[str, str], checkpoints: Mapping[str, StopCheckpoint]) -> LogSide:
    """Return the log of ``__consumer_offsets`` on a cluster, and the groups whose commits are judged from this log.

    words: the fields ``named_by`` and ``belongs`` of the result. checkpoints: for each group, the log end offsets of
    ``__consumer_offsets`` after which its commits are judged. Raises `Undetermined` if an offset is not known.
    """
    counts = sorted({len(checkpoint.ends) for checkpoint in checkpoints.values()})
    if len(counts) > 1:
        raise Undetermined(
            f"{OFFSETS_TOPIC} had {counts[0]} partitions at one cut-over and {counts[-1]} at another: its groups are "
            "in other partitions now"
        )
    found = []
    for group, checkpoint in sorted(checkpoints.items()):
        number = log_partition(group, len(checkpoint.ends))
        end = checkpoint.ends[number]
        if end is None:
            raise Undetermined(f"{OFFSETS_TOPIC}-{number}, which holds group {group!r}, had no leader at the cut-over")
        found.append((group, number, end))
    checkpoint = next(iter(checkpoints.values()))
    return LogSide(checkpoint.cluster_id, *words, counts[0], found)


def _folders(folder: Path, clusters: int) -> list[Path]:
    """Return the folder for the copied log of each cluster: ``folder``, or two subfolders for two clusters.

    Raises `InvalidInput` if ``folder`` can't be made.
    """
    if clusters == 1:
        return [folder]
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder} can't be used: {error.strerror or error}") from error
    return [folder / "target", folder / "source"]


def _copy(side: LogSide, folder: Path, clients: LogClients, events: Events) -> CopiedLog:
    """Copy the partitions of ``__consumer_offsets`` that hold the groups of ``side``, and return the copied log.

    Records that the folder has already are not copied again. Raises `UsageError` if the clients are of a wrong cluster,
    `Undetermined` if the number of partitions of ``__consumer_offsets`` has changed, `Refused` if another command
    copies to the folder, and `InvalidInput` if the folder can't be used.
    """
    reader, topic = clients
    if reader.cluster_id() != side.cluster_id:
        is_here = f"{side.named_by} is cluster {reader.cluster_id()}"
        raise UsageError(f"{is_here}; {side.belongs} cluster {side.cluster_id}")
    described = reader.describe_topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
    if described is None or len(described.partitions) != side.partitions:
        now = len(described.partitions) if described else 0
        raise Undetermined(
            f"{OFFSETS_TOPIC} had {side.partitions} partitions, and has {now}: its groups are in other partitions now"
        )
    starts = _first_offsets(side.groups)
    with CopiedLog.locked(folder), amounts_shown(events, f"reading {OFFSETS_TOPIC} {some(starts)}") as progress:
        log = CopiedLog.load_with_starts(folder, side.cluster_id, starts)
        return copy_log(reader, topic, log, starts, progress)


def _first_offsets(groups: list[tuple[str, int, int]]) -> dict[int, int]:
    """Return, by partition number of ``__consumer_offsets``, the first offset to copy.

    groups: for each group its name, its partition number, and its first offset. If a partition holds several groups,
    the lowest offset is returned.
    """
    starts: dict[int, int] = {}
    for _, number, checkpoint in groups:
        starts[number] = min(checkpoint, starts.get(number, checkpoint))
    return starts


def _current_topic_ids(reader: GroupReader, topics: Collection[str]) -> dict[str, str]:
    """Return the current ids of topics, by name; a topic that does not exist or may not be described is left out."""
    try:
        described = reader.describe_topics(topics)
    except NotAuthorized:
        described = reader.describe_topics(None)  # leaves out the topics that may not be described
    return {name: each for name, each in topic_ids(described).items() if name in topics}


def _judged(
    handed_over: list[tuple[object, ...]],
    sides: list[LogSide],
    copied: list[CopiedLog],
    open_spark: OpenSpark,
    vouched: frozenset[str],
    shares: Collection[str],
) -> Audit:
    """Return the verdicts on the commits in the copied logs.

    vouched, shares: the target groups without membership, and the share groups among the target groups.
    """
    with open_spark(sum(each.offsets for each in copied)) as spark:
        from migrate_groups.spark.offsets_topic.audit_job import Log, run_audit
        from migrate_groups.spark.offsets_topic.offsets_log import copied_log

        logs = [
            Log(copied_log(spark, str(each.folder)), side.groups, each.ranges)
            for side, each in zip(sides, copied, strict=True)
        ]
        return run_audit(spark, handed_over, *logs, without_membership=vouched, share_groups=shares)


def _handed_on(receipts: Sequence[Receipt], open_source: OpenLog, open_target: OpenLog | None) -> list[HandedOn]:
    """Return what other runs have done since with the partitions of each hand-over."""
    with ExitStack() as opened:
        source = opened.enter_context(open_source()).reader
        clusters = Clusters(source, opened.enter_context(open_target()).reader) if open_target else one_cluster(source)
        return [handed_on(clusters, receipt) for receipt in receipts]


def _log_starts(reader: GroupReader, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the log start offsets of the partitions whose logs can be read."""
    try:
        return {partition: log.start for partition, log in reader.log_ranges(partitions).items()}
    except ClusterUnavailable:
        return {}


def _handed_over(
    execution: Execution, now: Mapping[str, str], starts: Mapping[TopicPartition, int], since: HandedOn
) -> list[tuple[object, ...]]:
    """Return one row for each partition of the hand-over, as input for the Spark job of ``audit``.

    A row has these columns:

    - source group, and the topic's name on the source group's cluster
    - target group, topic and partition number
    - the source group's committed offset at the hand-over; if it had none, the offset that the target group gets
    - the target group's committed offset before the write, and the one that was to be written
    - all offsets that the runs of this migration wrote, or may have written, for this partition
    - the topic's id at the hand-over, and whether the topic has this id now; None if not known
    - the log start offset now; None if not known

    An offset of None means: no committed offset. now: topic ids by topic, as they are now. starts: the log start
    offsets. since: what other runs have done since: a source group is not judged on such a partition, and a target
    group as if nothing were handed over.
    """
    ids = {topic: each.replace("-", "").upper() for topic, each in execution.topic_ids.items()}
    sources = execution.sources()
    rows: list[tuple[object, ...]] = []
    for change in execution.changes:
        # A partition that was added during a run has no source group in its change, and is judged without one. So is a
        # copy, because its source group may go on.
        is_handed_over = change.source_group is not None or execution.translation is not None
        is_judged = is_handed_over and not execution.options.copy
        source = next(iter(sources[change.order]), None) if is_judged else None
        if source is not None and source.order in since.sources:
            source = None
        if change.order in since.targets:
            change = structs.replace(change, before=None, after=None, own=())
        rows.append(
            (
                source.group if source else None,
                source.partition.topic if source else None,
                *change.order,
                source.stopped_at if source else change.handed_over_at,
                change.before.offset if change.before else None,
                change.after.offset if change.after else None,
                sorted({offset.offset for offset in change.written if offset}),
                ids.get(change.topic),
                is_same_topic(execution.topic_ids.get(change.topic), now.get(change.topic)),
                starts.get(change.topic_partition),
            )
        )
    return rows
