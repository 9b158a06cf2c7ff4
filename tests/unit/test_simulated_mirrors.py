"""Offsets that are translated in simulated logs of honest and dishonest mirrors. The simulation knows the truth."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from migrate_groups.mirrors.position import Status
from tests.support.simulated_mirror import DISHONEST, HONEST, KINDS, POLICIES, simulated


def _judged(seeds: range) -> dict[str, Counter[str]]:
    """Return how many offsets have which status, by the kind of the mirror. Fails if one of them is wrong."""
    statuses = {mirror: Counter[str]() for mirror in (*HONEST, *DISHONEST)}
    for seed in seeds:
        rng = random.Random(seed)
        policy, mirror = KINDS[seed % len(KINDS)]
        case = simulated(rng, policy, mirror)
        position = case.translated()
        statuses[mirror][position.status] += 1
        assert not case.wrong(position), (seed, case, position)
        assert position.status is not Status.EXACT or position.is_known, (seed, case, position)
    return statuses


@pytest.mark.usefixtures("windows")
def test_no_translated_offset_is_wrong():
    """A group at an exact offset skips no record and reads none again. At another offset it reads at most ``reread``.

    Nor has the mirror left out a record from the committed offset on. This holds for honest and dishonest mirrors.
    """
    statuses = _judged(range(20 * len(KINDS)))
    assert statuses["honest"][Status.EXACT] + statuses["transactions"][Status.EXACT] > 60
    assert {*Status} - {Status.TRUSTED} <= set().union(*statuses.values())


@pytest.mark.long
def test_no_translated_offset_is_wrong_in_many_logs(windows):
    """The same holds in 20,000 logs. None is exact if the copy has only records of other producers, or all altered.

    The test prints the numbers of docs/evidence/reliability.md, by status.
    """
    statuses = _judged(range(20_000) if windows == "small windows" else range(20_000, 40_000))
    for title, mirrors in (("honest", HONEST), ("dishonest", DISHONEST)):
        print(title, windows, {str(each): sum(statuses[mirror][each] for mirror in mirrors) for each in Status})  # noqa: T201
    assert statuses["honest"][Status.EXACT] > 500
    for mirror in ("stamps headers", "foreign only", "foreign at the end"):
        assert statuses[mirror][Status.EXACT] == 0
        assert statuses[mirror][Status.DIFFERENT] > 500


@pytest.mark.parametrize("mirror", ["drops a third", "loses some", "filters a key", "stamps some", "foreign between"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_dishonest_mirror_of_a_topic_that_was_not_compacted(policy, mirror):
    """If nothing was compacted, a copy that lacks a record or has another one from the offset on is never exact.

    This does not depend on the topic's cleanup.policy.
    """
    faulty = 0
    for seed in range(100):
        case = simulated(random.Random(seed), policy, mirror)
        position = case.translated()
        if case.is_compacted or position.status is not Status.EXACT:
            faulty += position.status is Status.DIFFERENT
            continue
        assert position.offset is not None
        assert not case.lost(), (seed, case, position)
        assert not case.foreign(position.offset), (seed, case, position)
    assert faulty > 10


@pytest.mark.parametrize("off", [-1, 1])
def test_the_simulation_finds_an_offset_that_is_off_by_one(off):
    """The judgement of these tests is not empty: most exact offsets are wrong one record earlier or later."""
    wrong = total = 0
    for seed in range(200):
        case = simulated(random.Random(seed), POLICIES[seed % len(POLICIES)], "honest")
        position = case.translated()
        at = [each.offset for each in case.copy]
        if position.status is Status.EXACT and position.offset is not None:
            moved = position.offset + off
            total += moved in at or moved == case.copy_end
            wrong += bool(case.wrong(replace(position, offset=moved)))
    assert wrong > total / 2
