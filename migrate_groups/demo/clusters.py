"""Run the demo ``clusters``: an application moves to another cluster, to which MirrorMaker 2 copies its topics."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from migrate_groups.demo.applications import APPLICATIONS, PARTITIONS, Stage
from migrate_groups.demo.ledger import count
from migrate_groups.demo.scene import Ending, Scene, Telling
from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.ports import GroupReader, GroupWriter
from migrate_groups.migration.reading.requests import read_all_committed
from migrate_groups.model.answers import Answer
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.sandbox.mirrored import MirroredSandbox

_APPLICATION = APPLICATIONS[0]
_GROUP = _APPLICATION.name
_NAIVE = "mirror-maker"
# On the other cluster the application consumes the copies, which MirrorMaker 2 names like this.
_ON_TARGET = replace(_APPLICATION, name="on-b", topics=tuple(f"source.{topic}" for topic in _APPLICATION.topics))
_EXPIRED = 1000
_ENOUGH_RECORDS = 3000
_UNCHANGED_LOOKS = 8  # one each half second; the sandbox's MirrorMaker 2 translates offsets every second
_SPEC = f'source = "{_GROUP}"\n\n[[target]]\ngroup = "{_GROUP}"\ntopics = [{_APPLICATION.pattern}]\n'


class Clusters(Scene):
    """The demo ``clusters``: an application moves to another cluster, and starts there in two groups.

    One group starts at the offsets of this tool, the other group at those of MirrorMaker 2. Skipped and repeated
    records are counted for each group.
    """

    seconds = 180

    def __init__(self, both: MirroredSandbox, folder: Path, telling: Telling) -> None:
        super().__init__(both.source, folder, telling)
        self._both = both
        self._target = both.target.bootstrap_servers
        self._across = ("--to-bootstrap-server", self._target)

    @property
    def where(self) -> str:
        """The bootstrap servers of both clusters, in one text."""
        return f"{super().where} and {self._target}"

    def wait(self) -> None:
        """Wait until a cluster or MirrorMaker 2 has ended, then raise `ClusterUnavailable`. This never returns."""
        self._both.wait()

    def play(self) -> Ending:
        """Run the demo, and return how many records were produced, processed, skipped and processed twice.

        Raises `MigrateGroupsError` if a command fails or a wait times out.
        """
        self._ledgers.mkdir()
        self._create_topics(_APPLICATION.topics)
        self._expire_records()
        with (
            Stage(self._sandbox.bootstrap_servers, self._ledgers) as here,
            Stage(self._target, self._ledgers) as there,
        ):
            old = self._on_source(here)
            self._compare(here)
            self._migrate()
            ours, naive = self._on_target(there)
            self._tell.say("The producer stops; the applications process the remaining records.")
            here.stop("producer")
            produced = self._ledgers / "producer.txt"
            self._await_rest({"migrate-groups": [old, ours], _NAIVE: [old, naive]})
            there.stop("")
            return Ending(
                ours=count(produced, [old, ours]), naive=count(produced, [old, naive]), naive_way="MirrorMaker 2"
            )

    def _expire_records(self) -> None:
        """Produce the first records of each partition, and delete them before MirrorMaker 2 copies them."""
        import confluent_kafka
        from confluent_kafka.admin import AdminClient

        servers = {"bootstrap.servers": self._sandbox.bootstrap_servers}
        producer = confluent_kafka.Producer(servers)
        places = [(topic, number) for topic in _APPLICATION.topics for number in range(PARTITIONS)]
        for topic, number in places:
            for _ in range(_EXPIRED):
                producer.produce(topic, value="expired", partition=number)
        producer.flush()
        ends = [confluent_kafka.TopicPartition(topic, number, _EXPIRED) for topic, number in places]
        admin = AdminClient(servers)  # kept in a variable, because without the client its pending answers are lost
        for deleted in admin.delete_records(ends).values():
            deleted.result(self.seconds)

    def _on_source(self, here: Stage) -> Path:
        self._tell.say(
            f"Two clusters, A and B. The application {_GROUP} runs on A. MirrorMaker 2 copies its topics to B, and "
            f"translates its committed offsets. The first {_EXPIRED:,} records of each partition have expired on A, so "
            "a record has another offset on B."
        )
        ledger = here.start_application(_APPLICATION, _GROUP)
        self._await_members(_GROUP, 1)
        here.start_producer(_APPLICATION.topics)
        partitions = PARTITIONS * len(_APPLICATION.topics)
        self._await_translated("partitions with an offset on B", len, lambda seen: seen == partitions)
        self._await_records("processed on A", [ledger], _ENOUGH_RECORDS)
        return ledger

    def _compare(self, here: Stage) -> None:
        self._tell.say(
            "The application stops on A; the producer does not. Where would it continue on B? PLACE is the exact "
            "offset, TARGET-COMMITTED is that of MirrorMaker 2."
        )
        here.stop(f"{_GROUP}.")
        looks: deque[int] = deque(maxlen=_UNCHANGED_LOOKS)

        def unchanged(seen: int) -> bool:
            looks.append(seen)
            return len(looks) == _UNCHANGED_LOOKS and len({*looks}) == 1

        self._await_translated("sum of the offsets that MirrorMaker 2 writes on B", sum, unchanged)
        self._run("compare", _GROUP, *self._across, codes=(0, 6))

    def _migrate(self) -> None:
        self._tell.say(
            "Two groups on B: mirror-maker gets the offsets of MirrorMaker 2 as they are, billing the exact places, "
            "which migrate finds by the content of the records."
        )
        self._copy_translated()
        (self._folder / "move.toml").write_text(_SPEC, encoding="utf-8")
        options = ("--on-existing", "forward", "--settle", "2s", "--guard", "2s", "--yes")
        self._run("migrate", self._file("move.toml"), *self._across, *options)

    def _on_target(self, there: Stage) -> tuple[Path, Path]:
        self._tell.say("The application starts on B twice: once in each of the two groups.")
        ours = there.start_application(_ON_TARGET, _GROUP)
        naive = there.start_application(_ON_TARGET, _NAIVE)
        self._await_records("processed on B", [ours, naive], 1)
        return ours, naive

    def _await_translated(self, what: str, value: Callable[[list[int]], int], done: Callable[[int], bool]) -> None:
        """Wait until a number that is computed from the group's committed offsets on the target cluster is as expected.

        what: the name of the number in the output. value: computes the number from the offsets. done: returns whether
        the number is as expected.
        """
        with self._writer() as writer:

            def look() -> dict[str, int]:
                return {_GROUP: value([each.offset for each in _committed(writer).values()])}

            self._await(what, look, lambda seen: done(seen[_GROUP]), fails=True)

    def _copy_translated(self) -> None:
        with self._writer() as writer:
            answers = writer.alter_offsets({_NAIVE: _committed(writer)})[_NAIVE].values()
        if failed := [each.error for each in answers if each.answer is not Answer.WRITTEN]:
            raise MigrateGroupsError(f"the offsets of MirrorMaker 2 could not be copied: {failed[0]}")

    @contextmanager
    def _writer(self) -> Iterator[GroupWriter]:
        from migrate_groups.kafka.client_config import ClientConfig
        from migrate_groups.kafka.writer import KafkaPythonWriter

        with closing(KafkaPythonWriter(ClientConfig(bootstrap_servers=self._target))) as writer:
            yield writer


def _committed(reader: GroupReader) -> Mapping[TopicPartition, CommittedOffset]:
    return {
        partition: offset
        for partition, offset in read_all_committed(reader, [_GROUP])[_GROUP].items()
        if offset is not None
    }
