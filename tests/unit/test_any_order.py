"""The verbs that write, in any order, while other clients act: no record is skipped or processed twice.

A story is a sequence of verbs and events, as ``tests/support/any_order`` defines it. Random stories have found the
named stories.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples

from tests.support.any_order.drawn import stories
from tests.support.any_order.named import NAMED, REVERTED
from tests.support.any_order.reverts import FIXES, reverted
from tests.support.any_order.story import Story


@pytest.mark.parametrize("name", NAMED)
def test_named_story_skips_and_repeats_no_record(tmp_path, name):
    """In a story that once showed a defect, no record is skipped or repeated after exit 0."""
    setting, steps = NAMED[name]
    story = Story(setting, tmp_path)
    assert story.play(steps) == [], f"\n{story}"


@pytest.mark.parametrize("fix", FIXES)
def test_named_story_fails_without_its_fix(tmp_path, fix):
    """Without the fix of its defect a named story fails, which shows that stories can fail."""
    setting, steps = NAMED[REVERTED[fix]]
    with reverted(fix):
        assert Story(setting, tmp_path).play(steps) != []


@examples(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(story=stories())
def test_random_stories_skip_and_repeat_no_record(tmp_path_factory, story):
    """For any order of verbs and any events, no record is skipped or repeated after exit 0."""
    setting, steps = story
    played = Story(setting, tmp_path_factory.mktemp("story", numbered=True))
    assert played.play(steps) == [], f"\n{played}"
