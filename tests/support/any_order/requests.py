"""The requests of the tool in a story. Other clients act before and after each of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.groups import with_offsets
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from tests.support.any_order.acting import GROUPS, Killed, Offsets, Verb

SESSION_SECONDS = 10.0  # the session timeout of the members with which the tool holds groups
WRITES = ("alter_offsets", "delete_offsets", "delete_groups")
_REFUSED = WriteAnswer(answer=Answer.REFUSED, error="INVALID_COMMIT_OFFSET_SIZE")


class Requests:
    """A `GroupWriter` for the cluster of a `World`. Other clients act before and after each request."""

    def __init__(self, world, *, second: bool = False) -> None:
        self._world, self._second = world, second
        self.principal = world.cluster.principal

    def __getattr__(self, name: str):
        method = getattr(self._world.client, name)
        return lambda *arguments, **named: self._request(name, lambda: method(*arguments, **named))

    def _request(self, name: str, ask):
        world = self._world
        world.moment(f"before {name}")
        if name not in WRITES:
            answer = ask()
        else:
            assert world.verb is not None
            world.verb.sent = True
            before = world.offsets()
            answer = ask()
            self._record_write(world.verb, before, world.offsets())
        world.moment(f"after {name}")
        return answer

    # Groups one by one, so that other clients act between any two of them.

    def committed(self, wanted, *, wait: bool = True):
        def ask(group: str):
            answer = self._world.client.committed({group: wanted[group]}, wait=wait)[group]
            missing = self._world.partitions() if wanted[group] is None else ()
            if not isinstance(answer, MigrateGroupsError):
                self._record_read(group, {**dict.fromkeys(missing), **answer})
            return answer

        # Stories name the two kinds of readings differently.
        name = "committed" if wait else "all_committed"
        return {group: self._request(name, lambda group=group: ask(group)) for group in wanted}

    def alter_offsets(self, offsets):
        def ask(group: str):
            return self._altered(group, offsets[group])

        return {group: self._request("alter_offsets", lambda group=group: ask(group)) for group in offsets}

    def describe_groups(self, groups):
        def ask(group: str):
            return self._world.client.describe_groups([group])[group]

        return {group: self._request("describe_groups", lambda group=group: ask(group)) for group in groups}

    def describe_with_offsets(self, wanted):
        return with_offsets(wanted, self.describe_groups(wanted), lambda left: self.committed(left, wait=False))

    def make_ready(self, wanted):
        pass

    def describe_after_ends(self, partitions, group: str):
        ends = {partition: log.end for partition, log in self.log_ranges(partitions).items()}
        return ends, self.describe_with_offsets({group: None})[group]

    def round_trip(self):
        return 0.0

    def at_once(self, *calls):
        return [call() for call in calls]

    @contextmanager
    def held(self, group: str, partitions, assignor: str = "", holder: str = ""):
        world = self._world
        world.moment("before held")
        with ExitStack() as member:
            hold = member.enter_context(world.client.held(group, partitions, assignor, holder))
            world.held.add(group)
            member.callback(world.held.discard, group)
            try:
                world.moment("after held")
                yield hold
            except Killed:
                world.left_behind.append((world.seconds + SESSION_SECONDS, member.pop_all()))
                raise
        world.moment("after release")

    def _altered(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> Mapping[TopicPartition, Any]:
        """Alter committed offsets, except those that brokers refuse; return the answer for each partition."""
        world = self._world
        refused = {each for each in world.refused if each[0] in offsets and each[1] == (group not in GROUPS)}
        world.refused -= refused
        answers = dict.fromkeys([partition for partition, _ in refused], _REFUSED)
        rest = {partition: offset for partition, offset in offsets.items() if partition not in answers}
        return {**answers, **(world.client.alter(group, rest) if rest else {})}

    def _record_read(self, group: str, found) -> None:
        verb, moments = self._world.verb, self._world.moments
        if verb is None or group not in GROUPS:
            return
        for partition in verb.partitions & found.keys():
            committed = found[partition]
            verb.last_read[group, partition] = moments
            verb.believed[group, partition] = committed and committed.offset
            if not committed:
                verb.missed.add((group, partition))
                continue
            if group in verb.of_topic[partition.topic]:
                verb.covered.add(partition)
            if self._second:
                verb.confirmed[group, partition] = moments

    def _record_write(self, verb: Verb, before: Offsets, after: Offsets) -> None:
        world = self._world
        for place in sorted(before.keys() | after.keys()):
            was, now = before.get(place), after.get(place)
            if was == now:
                continue
            verb.wrote.add(place)
            verb.wrote_at = world.seconds
            verb.believed[place] = now
            world.gone.pop(place, None)
            world.tell(f"    wrote: {place[0]} {place[1]}: {was} -> {now}")
            if verb.by_choice and now is not None:
                was = max(now, world.ledger.reached(*place)) if was is None else was
                world.moved_by_choice(place[1], was, now, verb.by_choice)
