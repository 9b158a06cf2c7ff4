"""Every verb that writes, in any order, while others act: nothing is skipped, and nothing is processed twice.

What a story is: ``tests/support/any_order``. The stories by name were found by the drawn ones.
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given
from hypothesis import settings as examples

from migrate_groups.cluster.ports import TopicPartition
from tests.support.any_order.deeds import At, Expire, Grow, Kill, Pass
from tests.support.any_order.drawn import stories
from tests.support.any_order.story import Do, Run, Setting, Story

T, U = TopicPartition("t", 0), TopicPartition("u", 0)
# The new group has offsets already, of an earlier trial.
TRIED = Setting(existing={("a", T): 30, ("a", U): 30}, on_existing="overwrite")


def promise_kept(folder: Path, setting: Setting, *steps) -> Story:
    """Play a story whose promise must be kept, and return it."""
    story = Story(setting, folder)
    assert story.play(steps) == [], f"\n{story}"
    return story


def test_rollback_leaves_no_partition_in_no_group(tmp_path):
    """A partition whose committed offset expired in the source is in some group after a rollback with exit 0."""
    promise_kept(tmp_path, Setting(), Run("migrate"), Do(Expire("old", T)), Run("rollback"))


def test_delete_offsets_after_a_rollback_leaves_the_source_its_offsets(tmp_path):
    """The source has the topics again, and its application starts where it stopped."""
    promise_kept(tmp_path, TRIED, Run("migrate"), Run("rollback"), Run("delete-offsets"))


def test_hand_back_after_a_rollback_leaves_the_source_where_it_stopped(tmp_path):
    """What the target had before the run is nothing that the source has processed."""
    promise_kept(tmp_path, TRIED, Run("migrate"), Run("rollback"), Run("hand-back"))


def test_rollback_sees_a_consumer_without_membership(tmp_path):
    """A consumer without membership that commits every 5 s in the target is seen by a rollback, or by its guard."""
    migrate = Run("migrate", starts=True, member=False)
    promise_kept(tmp_path, Setting(), migrate, Run("rollback", stops=False, starts=True), Do(Pass(10)))


def test_rollback_looks_at_partitions_that_were_in_place(tmp_path):
    """A target that had the wanted offsets already, and has moved on since the hand-over, is not rolled back."""
    there = Setting(existing={("a", T): 10, ("a", U): 10})
    promise_kept(tmp_path, there, Run("migrate", starts=True), Do(Pass(10)), Run("rollback", starts=True))


def test_rollback_leaves_an_added_partition_in_a_group(tmp_path):
    """A partition that was added while the source was waited for, and set to its start, is in some group afterwards."""
    grown = At("before committed", 1, Grow("u"))
    promise_kept(tmp_path, Setting(), Run("migrate", deeds=(grown,)), Run("rollback"))


def test_hand_back_after_a_killed_migration_leaves_the_source_where_it_stopped(tmp_path):
    """Nothing was handed over yet: what the target had before is nothing that the source has processed."""
    killed = At("after receipt", 1, Kill())
    promise_kept(tmp_path, TRIED, Run("migrate", deeds=(killed,)), Run("hand-back"))


@examples(max_examples=300, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(story=stories())
def test_no_order_of_verbs_skips_or_repeats(tmp_path_factory, story):
    """Whatever is run in whatever order, and whoever acts meanwhile, exit 0 keeps the promise."""
    setting, steps = story
    promise_kept(tmp_path_factory.mktemp("story", numbered=True), setting, *steps)
