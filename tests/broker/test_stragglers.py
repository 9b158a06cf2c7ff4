"""Consumers of the source group that come back: they are noticed before the write (``--settle``) and after it
(``--guard``).
"""

from __future__ import annotations

import pytest

from tests.support.stragglers import hand_over

SECONDS = ("--guard", "1s")


@pytest.mark.parametrize(
    ("straggler", "options", "outcome"),
    [
        pytest.param("none", ["--settle", "0s", "--hold"], "clean", id="never"),
        pytest.param("restarted after 1 s", ["--settle", "10s"], "waited", id="during settle", marks=pytest.mark.long),
        pytest.param(
            *("restarted after 5 s", ["--settle", "0s", "--guard", "30s"], "exit 4"),
            id="during the guard",
            marks=pytest.mark.long,
        ),
        pytest.param(
            *("assign(), commits every 5 s", ["--settle", "0s", "--hold", "--guard", "20s"], "exit 4"),
            id="after the hold",
            marks=pytest.mark.long,
        ),
    ],
)
def test_an_old_consumer_that_comes_back_is_noticed(bootstrap_servers, straggler, options, outcome):
    """If an old consumer comes back before the write, `migrate` waits until it has left.

    If it comes back after the write, the exit code is 4. No record is skipped.
    """
    found = hand_over(bootstrap_servers, straggler, [*SECONDS, *options])
    assert found.kind == outcome, found
    assert found.skipped == 0
    assert outcome == "exit 4" or (found.late, found.twice) == (0, 0), found
    assert "--hold" not in options or found.guarded == 0, found
