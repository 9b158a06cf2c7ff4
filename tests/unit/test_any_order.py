"""The commands that write, in any order, while other clients act: no record is skipped or processed twice.

A story is a sequence of commands and events, as ``tests/support/any_order`` defines it. The named stories were found by
random stories.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples

from tests.support.any_order.drawn import stories
from tests.support.any_order.named import NAMED, REVERTED
from tests.support.any_order.reverts import reverted
from tests.support.any_order.story import Story


@pytest.mark.parametrize("name", NAMED)
def test_named_story_skips_and_repeats_no_record(tmp_path, name):
    """If commands and events that once showed a defect are played, exit code 0 means no skipped or repeated record."""
    setting, steps = NAMED[name]
    story = Story(setting, tmp_path)
    assert story.play(steps) == [], f"\n{story}"


@pytest.mark.parametrize("name", REVERTED)
def test_named_story_fails_without_its_fix(tmp_path, name):
    """If the fix of a defect is undone, the story that once showed this defect fails.

    This shows that stories can fail.
    """
    setting, steps = NAMED[name]
    with reverted(REVERTED[name]):
        assert Story(setting, tmp_path).play(steps) != []


def test_random_stories_skip_and_repeat_no_record(tmp_path_factory):
    """In a random sequence of commands and events, no record is skipped or repeated after exit code 0.

    In a third of the stories or more, two runs tell their operators to start applications, so the commands are not just
    refused.
    """
    played = []

    @examples(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(drawn=stories())
    def play(drawn):
        setting, steps = drawn
        story = Story(setting, tmp_path_factory.mktemp("story", numbered=True))
        assert story.play(steps) == [], f"\n{story}"
        played.append(story)

    play()
    assert sum(len(story.started) > 1 for story in played) > len(played) / 3
