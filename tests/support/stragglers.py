"""Stragglers: kinds of old consumers that come back, or never leave, while `migrate` hands over their group."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import forks
from tests.support.broker_world import broker_world
from tests.support.cli import Cli
from tests.support.old_consumers import SimpleConsumer
from tests.support.straggling import HandOver, Outcome

# Begins the consumption, or plays what the old consumers do once `migrate` waits for them to stop.
Act = Callable[[HandOver], None]


def hand_over(bootstrap_servers: str, name: str, options: Sequence[str]) -> Outcome:
    """Run one hand-over with these options of `migrate` and one kind of old consumers. name: a key of `STRAGGLERS`."""
    kind = STRAGGLERS[name]
    with tempfile.TemporaryDirectory() as folder, broker_world(bootstrap_servers) as world:
        one = HandOver(world, Cli(Path(folder), bootstrap_servers), kind.config)
        kind.begin(one)
        one.consumed()
        try:
            return one.run(kind.scenario, *options)
        finally:
            world.delete_topic(one.topic)


def _two_members(one: HandOver) -> None:
    one.join(0)
    one.join(1)


def _leave(one: HandOver) -> None:
    """All old members leave, and none of them comes back."""
    one.leave()


def _stay(one: HandOver) -> None:
    """The old consumer, which is no member of the group, does not stop."""
    one.left()


def _back(seconds: float, apart: float = 0.0) -> Act:
    """Return a scenario: both members leave, and come back after ``seconds``, the second ``apart`` seconds later."""

    def scenario(one: HandOver) -> None:
        one.leave()
        one.pause(seconds)

        def both() -> None:
            one.join(0)
            one.pause(apart)
            one.join(1)

        one.come_back(both)

    return scenario


def _over_poll(seconds: float) -> Act:
    """Return a scenario: a member leaves; the other is removed for not polling, and polls ``seconds`` later."""

    def scenario(one: HandOver) -> None:
        first, slow = one.members
        slow.going.clear()
        first.stop()
        one.members.remove(first)
        one.left()
        one.pause(seconds)
        one.come_back(slow.going.set)

    return scenario


def _killed(one: HandOver) -> None:
    """The only member is killed. Another member joins 2 s later."""
    assert one.process is not None
    one.process.kill()
    one.process.wait()
    one.pause(2)
    one.come_back(lambda: one.join(1))


def _without_membership(every: float, *, transactional: bool = False) -> Act:
    def begin(one: HandOver) -> None:
        producer = one.world.transactional_producer() if transactional else None
        one.members.append(SimpleConsumer(one.old, one.topic, one.config(0), every=every, producer=producer))
        one.consumed()
        one.pause(random.uniform(0, every))

    return begin


def _process(one: HandOver) -> None:
    arguments = ("confluent-kafka", one.world.bootstrap_servers, one.group, "old-0", one.file, one.topic)
    one.process = forks.Popen([sys.executable, "-m", "migrate_groups.demo.application", *map(str, arguments)])


@dataclass(frozen=True, slots=True)
class Straggler:
    """A kind of old consumers that come back, or never leave, while `migrate` hands over their group.

    scenario: what they do once `migrate` waits. begin: how they start. config: the configuration of the members.
    """

    name: str
    scenario: Act
    begin: Act = _two_members
    config: Mapping[str, str] = field(default_factory=dict)


_SLOW = {"max.poll.interval.ms": "6000", "session.timeout.ms": "5999"}
_STATIC = {"group.instance.id": "old-{}", "session.timeout.ms": "6000"}
_KIP_848 = {"group.protocol": "consumer"}

STRAGGLERS = {
    each.name: each
    for each in (
        Straggler("none", _leave),
        Straggler("assign(), commits every 5 s", _stay, _without_membership(5)),
        Straggler("assign(), commits every 30 s", _stay, _without_membership(30)),
        Straggler("assign(), transaction every 5 s", _stay, _without_membership(5, transactional=True)),
        *(Straggler(f"rolling restart, Empty {s:g} s", _back(s, apart=2)) for s in (0.5, 2, 5)),
        *(Straggler(f"restarted after {s} s", _back(s)) for s in (1, 5, 15)),
        *(Straggler(f"max.poll.interval, back after {s} s", _over_poll(s), config=_SLOW) for s in (2, 15)),
        Straggler("killed, replaced after 2 s", _killed, _process),
        Straggler("static, back after 2 s", _back(2), config=_STATIC),
        *(Straggler(f"KIP-848, back after {s} s", _back(s), config=_KIP_848) for s in (2, 15)),
    )
}
