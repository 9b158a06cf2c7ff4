"""Random sequences of the commands that write, run on a real broker while other clients act.

Such a sequence is called a story. ``scripts/any_order.py --broker`` plays more of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples

from tests.support.any_order.broker import Broker, broker
from tests.support.any_order.drawn import stories
from tests.support.any_order.named import NAMED
from tests.support.any_order.story import Story


@pytest.fixture(scope="module")
def shared(bootstrap_servers: str) -> Iterator[Broker]:
    """A broker with connected clients."""
    with broker(bootstrap_servers) as connected:
        yield connected


def promise_kept(folder, shared: Broker, setting, steps) -> None:
    """Play a story (a sequence of commands and events), and assert that no command with exit code 0 skips or repeats
    records.
    """
    with shared.world() as world:
        story = Story(setting, folder, world)
        assert story.play(steps) == [], f"\n{story}"


@pytest.mark.parametrize("name", NAMED)
def test_story_by_name(tmp_path, shared, name):
    """Each sequence of commands in `NAMED`, which once showed a defect on the in-memory cluster, passes on a real
    broker too.
    """
    setting, steps = NAMED[name]
    promise_kept(tmp_path, shared, setting, steps)


@examples(max_examples=4, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(story=stories())
def test_no_order_of_verbs_skips_or_repeats(tmp_path_factory, shared, story):
    """If commands that write run in any order, and other clients act in between, no command that ends with exit code 0
    skips or repeats a record.
    """
    promise_kept(tmp_path_factory.mktemp("story", numbered=True), shared, *story)
