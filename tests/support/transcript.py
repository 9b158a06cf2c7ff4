"""Run transcripts again: files of command lines with what they print, on in-memory clusters.

A line of a transcript begins with what it is:

- ``$``: a command line of ``migrate-groups``, or ``cat FILE``.
- ``>``: something that happens on a cluster, such as ``commit old t-0 5``; the methods of `World` are the verbs. A
  verb that begins with ``b.`` happens on the cluster B.
- ``:``: a line of the file that the ``> file NAME`` above it writes.
- two spaces, ``!``, ``=``: a line of stdout, a line of stderr, an exit code other than 0. These are written anew.
- ``#``: a comment.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.target_cluster import Copies
from migrate_groups.migration.clusters import Mirror
from migrate_groups.migration.ports import Clients, Side
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from tests.support.cli import CliHere
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster, InMemoryRecords

FOLDER = Path(__file__).parents[1] / "data" / "transcripts"
_RESULTS = ("  ", "!", "=")
# Numbers and texts that differ from run to run, each with what a transcript shows in its place.
_VARYING = (
    (re.compile(r'(?<=")[0-9a-f]{64}(?=")'), "<sha256>"),
    (re.compile(r'(?<="run": ")[0-9a-f]{8}(?=")|(?<=by run )[0-9a-f]{8}'), "<run>"),
    # Click names the program after the module that Python runs, which is pytest here.
    (re.compile("python -m pytest.migrate-groups"), "migrate-groups"),
)


def _partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


class World:
    """What a transcript's lines ``> verb words`` do on one in-memory cluster."""

    def __init__(self, cluster: InMemoryCluster, mirrored_from: InMemoryCluster | None = None) -> None:
        self._cluster, self._source, self._time = cluster, mirrored_from, 0

    def topic(self, name: str, partitions: str = "1", compacted: str = "") -> None:
        """Create a topic."""
        self._cluster.create_topic(name, int(partitions), compacted=bool(compacted))

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self._cluster.delete_topic(name)

    def add_partitions(self, name: str, total: str) -> None:
        """Add partitions to a topic until it has ``total``."""
        self._cluster.add_partitions(name, int(total))

    def produce(self, partition: str, records: str) -> None:
        """Append records to a partition, each with a timestamp of its own."""
        topic, number = _partition(partition)
        for _ in range(int(records)):
            self._time += 1
            self._cluster.produce(topic, number, 1, timestamp=self._time)

    def copy(self, partition: str, first: str, end: str, to: str = "") -> None:
        """Copy records of cluster A to this cluster, as a mirror does."""
        assert self._source is not None
        copied = self._source.records(_partition(partition), range(int(first), int(end)), committed_only=False)
        topic, number = _partition(to or partition)
        self._cluster.append_copies(topic, number, copied)

    def delete_records(self, partition: str, before: str) -> None:
        """Delete the records below an offset."""
        topic, number = _partition(partition)
        self._cluster.delete_records(topic, number, int(before))

    def lose_leader(self, partition: str) -> None:
        """Leave a partition without a leader."""
        self._cluster.lose_leader(*_partition(partition))

    def commit(self, group: str, partition: str, offset: str, metadata: str = "") -> None:
        """Commit an offset."""
        self._cluster.commit(group, _partition(partition), int(offset), metadata)

    def expire(self, group: str, partition: str) -> None:
        """Delete a committed offset."""
        self._cluster.delete(group, [_partition(partition)])

    def join(self, group: str, member: str, topics: str, protocol_type: str = "consumer") -> None:
        """Add a member that is subscribed to some topics, separated by commas."""
        subscribed = frozenset(topics.split(","))
        joined = Member(member_id=member, client_id=member, host="/10.0.0.7", subscription=subscribed)
        group_type = "share" if protocol_type == "share" else "classic"
        self._cluster.join(group, joined, group_type=group_type, protocol_type=protocol_type)

    def leave(self, group: str, member: str) -> None:
        """Remove a member from its group."""
        self._cluster.leave(group, member)

    def deny(self, kind: str, name: str, *operations: str) -> None:
        """Take permissions on a group or a topic from the principal."""
        resource = Resource(ResourceType[kind.upper()], name)
        self._cluster.deny(resource, *(Operation[operation.upper()] for operation in operations))


class _Connected(CliHere):
    """The command line, connected to in-memory clusters A and B, with a clock that does not wait."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder)
        self.environment["COLUMNS"] = "120"
        a, b = InMemoryCluster("cluster-a"), InMemoryCluster("cluster-b")
        self.worlds = {"": World(a), "b.": World(b, a)}
        monkeypatch.setattr("migrate_groups.api.operator._operator", lambda: "ops@bastion")
        monkeypatch.setattr("migrate_groups.api.operator.__version__", "0.0.0")
        clock = FakeClock()
        for name in ("now", "monotonic", "sleep"):
            monkeypatch.setattr(SystemClock, name, lambda _, *given, name=name: getattr(clock, name)(*given))

        def reached(connection: Connection) -> InMemoryCluster:
            return b if (connection.bootstrap_server or "").startswith("b:") else a

        @contextmanager
        def open_writer(connection: Connection) -> Iterator[Clients]:
            yield Clients(reached(connection), reached(connection))

        def open_mirror(copies: Copies, *_: object, writes: bool = False) -> object:
            here = Side(a, InMemoryRecords(a), a if writes else None)
            return nullcontext(Mirror(here, Side(b, InMemoryRecords(b))))

        monkeypatch.setattr(Connection, "open_reader", lambda each: nullcontext(reached(each)))
        monkeypatch.setattr(Connection, "open_writer", open_writer)
        monkeypatch.setattr(Copies, "open_mirror", open_mirror)


def run(transcript: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the commands of a transcript in an empty folder, and return the transcript with what they print now."""
    cli, written = _Connected(folder, monkeypatch), list[str]()
    file = None
    for line in transcript.splitlines():
        if line.startswith(_RESULTS):
            continue
        written.append(line)
        if line.startswith("> file "):
            file = folder / line.removeprefix("> file ")
            file.write_text("", encoding="utf-8")
        elif line.startswith(":"):
            assert file is not None, f"no '> file' above: {line}"
            with file.open("a", encoding="utf-8") as stream:
                stream.write(line[2:] + "\n")
        elif line.startswith("> "):
            verb, *words = shlex.split(line[2:])
            side = "b." if verb.startswith("b.") else ""
            getattr(cli.worlds[side], verb.removeprefix(side).replace("-", "_"))(*words)
        elif line.startswith("$ "):
            written.extend(_results(cli, shlex.split(line[2:])))
    return "\n".join(written) + "\n"


def _results(cli: _Connected, words: list[str]) -> Iterator[str]:
    if words[0] == "cat":
        code, out, err = 0, (cli.folder / words[1]).read_text(encoding="utf-8"), ""
    else:
        code, out, err = cli.outcome(*words)
    for lead, text in (("  ", out), ("! ", err)):
        text = text.replace(str(cli.folder), "FOLDER")
        for pattern, shown in _VARYING:
            text = pattern.sub(shown, text)
        yield from (f"{lead}{line}".rstrip() if line.strip() else lead for line in text.splitlines())
    if code:
        yield f"= {code}"
