"""Faults of the brokers, and of the connections to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from migrate_groups.sandbox.node import Node
from tests.support.campaign.fault import Run, before_or_during
from tests.support.halted import Halted
from tests.support.offsets_topic import move_coordinator, need_in_sync, replicate_again


def _group(run: Run) -> str:
    return run.chance.choice([run.scenario.source, *run.scenario.written])


def _coordinator(run: Run) -> Node:
    return run.brokers.coordinator(_group(run))


@contextmanager
def _at_the_coordinator(run: Run) -> Iterator[tuple[Halted, Node]]:
    """Halt the command at the step of the fault. Yield the command, and the broker that is to fail: a coordinator."""
    with run.halted() as halted:
        victim = _coordinator(run)
        before_or_during(run, halted)
        yield halted, victim


def coordinator_killed(run: Run) -> None:
    with _at_the_coordinator(run) as (halted, victim):
        victim.kill()
        halted.release()
        if run.chance.random() < 0.5:
            run.pause(3)
            victim.start()


def coordinator_hangs(run: Run) -> None:
    with _at_the_coordinator(run) as (halted, victim):
        run.brokers.hang(victim)
        halted.release()
        run.pause(6)
        run.brokers.go_on(victim)


def coordinator_restarted(run: Run) -> None:
    with _at_the_coordinator(run) as (halted, victim):
        victim.stop()
        halted.release()
        victim.start()


def coordinator_moved(run: Run) -> None:
    """Move the coordinator of a group to another broker."""
    group = _group(run)
    run.repair(lambda: replicate_again(run.brokers, group))
    with run.halted() as halted:
        before_or_during(run, halted)
        move_coordinator(run.brokers, group)


def offsets_topic_under_min_isr(run: Run) -> None:
    """Let commits need all three brokers, and kill a broker that is not the coordinator. Start it again within 6 s."""
    coordinator = _coordinator(run)
    victim = run.chance.choice([node for node in run.brokers.sandbox.nodes if node is not coordinator])
    run.repair(lambda: need_in_sync(run.brokers, 2))
    need_in_sync(run.brokers, 3)
    with run.halted() as halted:
        before_or_during(run, halted)
        victim.kill()
        halted.release()
        run.pause(6)
        victim.start()


def cluster_gone(run: Run) -> None:
    with run.halted() as halted:
        before_or_during(run, halted)
        for node in run.brokers.sandbox.nodes:
            node.kill()
        halted.release()
        run.pause(3)
        for node in run.brokers.sandbox.nodes:
            node.start()


def rolling_restart(run: Run) -> None:
    """Restart the brokers one by one, while the application for which the command waits still runs."""
    run.wait_for_application()
    with run.halted() as halted:
        halted.release()
        run.brokers.roll()
        run.scenario.produce()
        run.pause(1)


def partition_without_leader(run: Run) -> None:
    """Kill the only broker that has a replica of the topic ``pay``."""
    with run.halted() as halted:
        before_or_during(run, halted)
        run.brokers.sandbox.nodes[(run.scenario.only_on or 1) - 1].kill()
        halted.release()
        run.pause(6)


def connection_cut(run: Run) -> None:
    """Cut one to three connections of the command in the middle of a response."""
    proxies = run.brokers.proxies()
    run.repair(proxies.heal)
    with run.halted() as halted:
        before_or_during(run, halted)
        proxies.cut(run.chance.randint(1, 3))


def connections_slow(run: Run) -> None:
    """Delay each 256 bytes between the command and the brokers, for some seconds or until the command ends."""
    proxies = run.brokers.proxies()
    run.repair(proxies.heal)
    with run.halted() as halted:
        proxies.slow(run.chance.choice((0.02, 0.1, 0.5)))
        halted.release()
        run.pause(6)
        proxies.heal()
