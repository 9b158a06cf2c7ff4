"""Offsets in a mirror's copy, translated back to the original, in simulated logs. The simulation knows the truth."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from migrate_groups.mirrors.position import Status
from tests.support.simulated_mirror import DISHONEST, FOREIGNERS, HONEST, KINDS, simulated


def _judged(seeds: range) -> dict[str, Counter[str]]:
    """Return how many offsets have which status, by the kind of the mirror. Fails if one of them is wrong."""
    statuses = {mirror: Counter[str]() for mirror in (*HONEST, *DISHONEST)}
    for seed in seeds:
        rng = random.Random(seed)
        policy, mirror = KINDS[seed % len(KINDS)]
        case = simulated(rng, policy, mirror)
        committed = rng.choice([case.copy_end, rng.randint(case.copy_start, case.copy_end)])
        position = case.returned(committed)
        statuses[mirror][position.status] += 1
        assert not case.wrong_return(committed, position), (seed, committed, case, position)
    return statuses


@pytest.mark.usefixtures("windows")
def test_no_offset_translated_back_is_wrong():
    """A group that returns skips no record and reads none again.

    It leaves no unread record of another producer behind. This holds for honest and dishonest mirrors.
    """
    statuses = _judged(range(20 * len(KINDS)))
    assert statuses["honest"][Status.EXACT] > 30
    assert sum(statuses[mirror][Status.EXACT] for mirror in FOREIGNERS) > 30
    assert sum(statuses[mirror][Status.DIFFERENT] for mirror in FOREIGNERS) > 30


@pytest.mark.long
def test_no_offset_translated_back_is_wrong_in_many_logs(windows):
    """The same holds in 20,000 logs."""
    statuses = _judged(range(20_000) if windows == "small windows" else range(20_000, 40_000))
    assert statuses["honest"][Status.EXACT] > 500
