"""The verbs that write, in any order, while other clients act: no record is skipped, and none is processed twice.

``tests/support/any_order`` describes a story. The named stories were found by the randomly drawn ones.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples

from tests.support.any_order.drawn import stories
from tests.support.any_order.named import NAMED, REVERTED
from tests.support.any_order.reverts import MENDS, reverted
from tests.support.any_order.story import Story


@pytest.mark.parametrize("name", NAMED)
def test_story_by_name(tmp_path, name):
    """A story that once revealed a defect keeps the promise."""
    setting, steps = NAMED[name]
    story = Story(setting, tmp_path)
    assert story.play(steps) == [], f"\n{story}"


@pytest.mark.parametrize("mend", MENDS)
def test_story_finds_the_defect_without_its_mend(tmp_path, mend):
    """A named story fails when its fix is taken out, so the stories are able to fail."""
    setting, steps = NAMED[REVERTED[mend]]
    with reverted(mend):
        assert Story(setting, tmp_path).play(steps) != []


@examples(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(story=stories())
def test_no_order_of_verbs_skips_or_repeats(tmp_path_factory, story):
    """Whatever the order of verbs, and whatever other clients do meanwhile, exit 0 keeps the promise."""
    setting, steps = story
    played = Story(setting, tmp_path_factory.mktemp("story", numbered=True))
    assert played.play(steps) == [], f"\n{played}"
