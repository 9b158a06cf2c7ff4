"""Copy the logs of ``__consumer_offsets`` that ``audit`` reads, from one cluster or two."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from migrate_groups.cli.connect import Connection
from migrate_groups.cli.progress import bar
from migrate_groups.errors import InvalidInput, NotAuthorized, Undetermined, UsageError
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.topics import topic_ids
from migrate_groups.text import some

if TYPE_CHECKING:
    from migrate_groups.files.runs.copied_log import CopiedLog
    from migrate_groups.migration.log_ports import OffsetsTopicReader
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.model.stop_checkpoint import StopCheckpoint
    from migrate_groups.planning.execution import Execution


class LogSide(NamedTuple):
    """The log of ``__consumer_offsets`` on one cluster, and the groups whose commits ``audit`` judges from this log.

    - named_by, belongs: parts of the error for a wrong cluster, such as ``--bootstrap-server`` and ``the old group is
      on``.
    - partitions: the number of partitions of ``__consumer_offsets`` at the time of the migration.
    - groups: for each group its name, its partition of ``__consumer_offsets``, and the offset in this partition from
      which its commits are judged.
    """

    connection: Connection
    cluster_id: str
    named_by: str
    belongs: str
    partitions: int
    groups: list[tuple[str, int, int]]


def log_sides(
    run_dir: Path, execution: Execution, checkpoints: list[StopCheckpoint], connections: tuple[Connection, Connection]
) -> list[LogSide]:
    """Return the logs to audit: of the target groups' cluster and, if it is another one, of the source group's cluster.

    checkpoints: for each run of ``migrate``, the log end offsets of ``__consumer_offsets`` when the source group had
    stopped. connections: to the source group's cluster, and to the target groups' cluster. Raises `Undetermined` if the
    log end offsets of a run are missing.
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
        return [_side(connections[1], ("this", "the receipt is of"), from_last | from_first)]
    return [
        _side(connections[1], ("--to-bootstrap-server", "the new groups are on"), from_first),
        _side(connections[0], ("--bootstrap-server", "the old group is on"), {source.group: last}),
    ]


def _side(connection: Connection, words: tuple[str, str], checkpoints: Mapping[str, StopCheckpoint]) -> LogSide:
    """Return the log of ``__consumer_offsets`` on a cluster, and the groups whose commits are judged from this log.

    words: the fields ``named_by`` and ``belongs`` of the result. checkpoints: for each group, the log end offsets of
    ``__consumer_offsets`` after which its commits are judged. Raises `Undetermined` if an offset is not known.
    """
    from migrate_groups.model.offsets_topic import log_partition

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
    return LogSide(connection, checkpoint.cluster_id, *words, counts[0], found)


def log_folders(folder: Path, sides: list[LogSide]) -> list[Path]:
    """Return the folder for the copied log of each cluster: ``folder``, or two subfolders for two clusters.

    Raises `InvalidInput` if ``folder`` can't be made.
    """
    if len(sides) == 1:
        return [folder]
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder} can't be used: {error.strerror or error}") from error
    return [folder / "target", folder / "source"]


def copy_side(side: LogSide, folder: Path) -> CopiedLog:
    """Copy the partitions of ``__consumer_offsets`` that hold the groups of ``side``, and return the copied log.

    Records that the folder has already are not copied again. Raises `UsageError` if the connection leads to a wrong
    cluster, `Undetermined` if the number of partitions of ``__consumer_offsets`` has changed, `Refused` if another
    command copies to the folder, and `InvalidInput` if the folder can't be used.
    """
    from migrate_groups.files.runs.copied_log import CopiedLog
    from migrate_groups.migration.reading.copy_log import copy_log

    starts = _first_offsets(side.groups)
    with (
        _open_log(side) as (reader, topic),
        CopiedLog.locked(folder),
        bar(f"reading {OFFSETS_TOPIC} {some(starts)}") as progress,
    ):
        log = CopiedLog.load_with_starts(folder, side.cluster_id, starts)
        return copy_log(reader, topic, log, starts, progress)


def current_topic_ids(connection: Connection, topics: Collection[str]) -> dict[str, str]:
    """Return the current ids of topics, by name; a topic that does not exist or may not be described is left out."""
    with connection.open_reader() as reader:
        try:
            described = reader.describe_topics(topics)
        except NotAuthorized:
            described = reader.describe_topics(None)  # leaves out the topics that may not be described
    return {name: each for name, each in topic_ids(described).items() if name in topics}


def _first_offsets(groups: list[tuple[str, int, int]]) -> dict[int, int]:
    """Return, by partition number of ``__consumer_offsets``, the first offset to copy.

    groups: for each group its name, its partition number, and its first offset. If a partition holds several groups,
    the lowest offset is returned.
    """
    starts: dict[int, int] = {}
    for _, number, checkpoint in groups:
        starts[number] = min(checkpoint, starts.get(number, checkpoint))
    return starts


@contextmanager
def _open_log(side: LogSide) -> Iterator[tuple[GroupReader, OffsetsTopicReader]]:
    """Yield a client that reads groups and topics, and a client that reads the log of ``__consumer_offsets``.

    Raises `UsageError` if the connection leads to a wrong cluster, and `Undetermined` if the number of partitions of
    ``__consumer_offsets`` has changed since the migration.
    """
    with side.connection.open_offsets_topic() as (reader, topic):
        if reader.cluster_id() != side.cluster_id:
            is_here = f"{side.named_by} is cluster {reader.cluster_id()}"
            raise UsageError(f"{is_here}; {side.belongs} cluster {side.cluster_id}")
        described = reader.describe_topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
        if described is None or len(described.partitions) != side.partitions:
            now = len(described.partitions) if described else 0
            raise Undetermined(
                f"{OFFSETS_TOPIC} had {side.partitions} partitions, and has {now}: its groups are in other partitions "
                "now"
            )
        yield reader, topic
