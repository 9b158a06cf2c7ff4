"""Hand over, roll back and hand back the offsets of throwaway groups: ``doctor --write``."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from migrate_groups.api.clients import open_writer
from migrate_groups.api.cluster import Cluster
from migrate_groups.api.snapshot import Split
from migrate_groups.arguments import checked_seconds
from migrate_groups.clock import Clock
from migrate_groups.errors import HandOverBroken, MigrateGroupsError, NotAuthorized, PartlyApplied, Refused
from migrate_groups.kafka.throwaway_topic import ThrowawayTopic
from migrate_groups.migration.barrier import barrier_for
from migrate_groups.migration.events import Events
from migrate_groups.migration.ports import GroupReader, GroupWriter
from migrate_groups.model.answers import Answer
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.trial import DONE, FAILED, REFUSED, THROWAWAY, Step, Trial

_RECORDS = 10  # consumed in each part of the trial
_PARTS = 3
_STOPPED_SECONDS = 60.0
_PAUSE = 0.5  # seconds
_HAS_MEMBERS, _IS_GONE = "NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"
# Longer than the session timeout of the trial's consumer, so that a consumer that could not leave is removed before.
_CLEAN_UP_SECONDS = 20.0


def throwaway_name() -> str:
    """Return a new name for the topic of a trial. The names of its groups begin with it."""
    return f"{THROWAWAY}{uuid.uuid4().hex[:8]}"


def try_out(cluster: Cluster, *, settle: float = 10.0, name: str | None = None) -> Trial:
    """Make a topic and two groups, move offsets between the groups and back, and delete all that was made.

    What was made is deleted, too, if the trial fails or is interrupted. It does not ask.

    cluster: its events get each step, as a line for the user. settle: for how many seconds a group must not have
    changed before a write. name: the name of the topic; by default a new one (`throwaway_name`).

    An error ends the trial and is in the result; ``check()`` raises it. Raises `ClusterUnavailable` or `NotAuthorized`
    if the cluster can't be reached before anything was made.
    """
    said, clock = cluster._events.said, cluster._clock
    with Cluster(cluster._config, Events(), clock) as own:
        before = _groups(own._reading_client())
        attempt = _Attempt(own, name or throwaway_name(), clock, said, checked_seconds("settle", settle))
        try:
            attempt.run()
        finally:
            attempt.clean_up(before)
        return attempt.trial


class _Attempt:
    """The steps of a trial."""

    def __init__(self, cluster: Cluster, name: str, clock: Clock, said: Callable[[str], None], settle: float) -> None:
        self._cluster, self._clock, self._said = cluster, clock, said
        self._old, self._new = f"{name}.old", f"{name}.new"
        self._partition = TopicPartition(name, 0)
        self._options = WriteOptions(settle=settle, guard=0.0)
        self.trial = Trial(topic=name, groups=[self._old, self._new])

    def run(self) -> None:
        """Run the steps. An error of this package ends them, and is stored in the trial."""
        config, name = self._cluster._config, self.trial.topic
        try:
            with closing(ThrowawayTopic(config, name)) as topic, TemporaryDirectory() as folder:
                self._steps(topic, Path(folder) / "run")
        except MigrateGroupsError as error:
            self.trial.error = error

    def _steps(self, topic: ThrowawayTopic, run: Path) -> None:
        records = _PARTS * _RECORDS
        self._step("create the topic", lambda: topic.create())
        self._step(f"produce {records} records", lambda: topic.produce(records))
        self._step("consume with the old group", lambda: self._consume(topic, self._old, 0, first="earliest"))
        self._step("migrate", lambda: self._migrate(run))
        if self._step("rollback", lambda: self._rollback(run), may_be_refused=True):
            self._step("migrate again", lambda: self._migrate(run))
        self._step("consume with the new group", lambda: self._consume(topic, self._new, _RECORDS))
        if self._step("hand-back", lambda: self._hand_back(run), may_be_refused=True):
            self._step("consume with the old group again", lambda: self._consume(topic, self._old, 2 * _RECORDS))

    def _step(self, what: str, work: Callable[[], str | None], *, may_be_refused: bool = False) -> bool:
        """Do a step, and return whether it was done. Raises its error, unless it was refused and may be."""
        begun, outcome, remark = self._clock.monotonic(), DONE, ""
        self._said(what)
        try:
            remark = work() or ""
        except MigrateGroupsError as error:
            is_refusal = isinstance(error, Refused | NotAuthorized)
            outcome, remark = REFUSED if is_refusal else FAILED, str(error)
            if not (is_refusal and may_be_refused):
                raise
        finally:
            self.trial.steps.append(Step(what, self._clock.monotonic() - begun, outcome, remark))
        return outcome == DONE

    def _consume(self, topic: ThrowawayTopic, group: str, start: int, *, first: str = "none") -> str:
        offsets = topic.consume(group, _RECORDS, first=first)
        if offsets != [*range(start, start + _RECORDS)]:
            wanted = f"{start} to {start + _RECORDS - 1}"
            raise HandOverBroken(f"group {group!r} got the offsets {offsets}, and not {wanted}: please report it")
        self._expect(group, start + _RECORDS)
        return f"offsets {start} to {start + _RECORDS - 1}, each once"

    def _migrate(self, run: Path) -> str:
        split = Split(source=self._old, targets={self._new: [self.trial.topic]})
        self._cluster.migrate(split, run_dir=run, options=self._options, wait=_STOPPED_SECONDS)
        self._expect(self._new, _RECORDS)
        return f"the new group has offset {_RECORDS}, as the old one"

    def _rollback(self, run: Path) -> str:
        self._cluster.rollback(run)
        self._expect(self._new, None)
        self._expect(self._old, _RECORDS)
        return "the new group has no offset again"

    def _hand_back(self, run: Path) -> str:
        self._cluster.hand_back(run, wait=_STOPPED_SECONDS)
        self._expect(self._old, 2 * _RECORDS)
        return f"the old group has offset {2 * _RECORDS}, as the new one"

    def _expect(self, group: str, offset: int | None) -> None:
        """Raise `PartlyApplied` if another offset is committed. None: no offset."""
        answer = self._cluster._reading_client().committed({group: [self._partition]})[group]
        if isinstance(answer, MigrateGroupsError):
            raise answer
        found = answer.get(self._partition)
        if (found and found.offset) != offset:
            raise PartlyApplied(f"group {group!r} has {found}, and not offset {offset}: please report it")

    def clean_up(self, before: frozenset[str]) -> None:
        """Delete the groups and the topic, and store in the trial what is left. before: groups that were there before.

        It uses new clients, because an interrupt may have left the others in the middle of a request.
        """
        self._said("clean up")
        begun, trial, config = self._clock.monotonic(), self.trial, self._cluster._config
        with open_writer(config) as clients, closing(ThrowawayTopic(config, trial.topic)) as topic:
            self._try_to_delete("groups of this trial", lambda: self._delete_groups(clients.writer, before))
            self._try_to_delete(f"topic {trial.topic}", lambda: self._delete_topic(clients.writer, topic))
        outcome, said = (FAILED, trial.left_over) if trial.left else (DONE, "all that was made is deleted")
        trial.steps.append(Step("clean up", self._clock.monotonic() - begun, outcome, said))
        self._said(said)

    def _try_to_delete(self, what: str, delete: Callable[[], list[str]]) -> None:
        try:
            self.trial.left += delete()
        except MigrateGroupsError as error:
            self.trial.left.append(f"{what} ({error})")

    def _delete_topic(self, reader: GroupReader, topic: ThrowawayTopic) -> list[str]:
        """Delete the topic, and return its name if it is still there later."""
        topic.delete()
        is_gone = self._soon(lambda: not reader.describe_topics([topic.name]))
        return [] if is_gone else [f"topic {topic.name}"]

    def _delete_groups(self, writer: GroupWriter, before: frozenset[str]) -> list[str]:
        """Delete the groups of the trial, their journals and their probe groups; return what is left, with the reason.

        before: the groups that were there before the trial.
        """
        groups = {*self.trial.groups, *map(journal_group, self.trial.groups)}
        with suppress(MigrateGroupsError):  # the topic may be missing or hidden
            probes = barrier_for(writer, self.trial.groups, [self._partition], self._options.settle).probes
            groups |= {*(probes.groups if probes else ())} - before  # another run may have made a probe group
        left: dict[str, str] = {}

        def is_decided() -> bool:
            answers = writer.delete_groups(sorted(groups & _groups(writer)))
            left.clear()
            left.update({group: each.error for group, each in answers.items() if each.answer is not Answer.WRITTEN})
            return _HAS_MEMBERS not in left.values()

        self._soon(is_decided)
        return [f"group {group} ({error})" for group, error in sorted(left.items()) if error != _IS_GONE]

    def _soon(self, condition: Callable[[], bool]) -> bool:
        """Wait until a condition holds, and return whether it does."""
        until = self._clock.monotonic() + _CLEAN_UP_SECONDS
        while not (holds := condition()) and self._clock.monotonic() < until:
            self._clock.sleep(_PAUSE)
        return holds


def _groups(reader: GroupReader) -> frozenset[str]:
    return frozenset(each.group for each in reader.list_groups())
