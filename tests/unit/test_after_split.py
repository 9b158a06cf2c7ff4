"""``advise`` after a split: it compares predicted and measured seconds without an owner, and says what is unknown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from migrate_groups.errors import UsageError
from migrate_groups.migration.advise.after import AfterSplit, Split, compare
from migrate_groups.migration.advise.predicted_costs import judge_costs
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.change import Change, Outcome
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.translation import Translation
from migrate_groups.show import after_split as views
from migrate_groups.spark.offsets_topic.advice_result import SharedCost
from tests.support.drawn import on_a_terminal

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
COMMITTED = CommittedOffset(offset=5)
HOUR, DELAY = timedelta(hours=1), timedelta(seconds=3)
FLAPPING: dict[str, Any] = {
    "outage": 12.0,
    "replaced": 4,
    "restart_outage": 10.0,
    "restart_gone": 2.0,
    "single_most": 2.0,
}


def cost(application: str = "billing", group: str = "big", **of: Any) -> SharedCost:
    """Return the cost of sharing a group, for an application with two members and a topic of the application's name."""
    values: dict[str, Any] = {
        "assignor": "range",
        "applications": 3,
        "regex": False,
        "topics": [application],
        "clients": [f"{application}-1", f"{application}-2"],
        "since": NOON - HOUR if group == "big" else NOON,
        "rebalances": 8,
        "caused": 8,
        "stood_still": None,
        "outage": None,
        "replaced": 0,
        "restart_outage": None,
        "restart_gone": None,
        "single_most": None,
        "keeps_up": None,
        "best_third": None,
        "idle": None,
        "spread": None,
        "missing": 0,
    }
    return SharedCost(group=group, application=application, **{**values, **of})


def compared(
    before: SharedCost, *after: SharedCost, targets: tuple[str, ...] = ("billing",), delay: timedelta | None = DELAY
) -> AfterSplit:
    split = Split(targets={("big", each): [f"new-{each}"] for each in targets}, written_at=NOON)
    (found,) = compare([before], after, split, delay=delay, read_at=NOON + 2 * HOUR)
    return found


def test_the_prediction_is_for_the_restarts_since_the_split():
    """For each restart since the split, the prediction adds the seconds without members and two rebalance delays.

    It multiplies the other outages by the ratio of the periods after and before the split.
    """
    found = compared(cost(**FLAPPING), cost(group="new-billing", outage=37.0, replaced=5))
    assert found.predicted == (2 * 2 + 5 * 6.5, 2 * 2 + 5 * 8.5)
    assert (found.measured, found.restarts, found.holds, found.remarks) == (37.0, 5, True, ())


def test_an_application_of_other_topics_in_the_new_group_is_not_counted():
    """Of the applications in the target group, only those that consume one of the topics are compared."""
    before, after = cost(**FLAPPING), cost(group="new-billing", outage=37.0, replaced=5)
    other = cost("search", group="new-billing", outage=99.0, replaced=7)
    assert compared(before, after, other) == compared(before, after)


def test_one_member_waits_once():
    """For an application with one member, the prediction adds the rebalance delay once for each restart."""
    before = cost(**{**FLAPPING, "outage": 10.0}, clients=["billing-1"])
    assert compared(before, cost(group="new-billing", replaced=5, rebalances=0)).predicted == (5 * 3.5, 5 * 5.5)


def test_a_kip_848_group_has_no_delay():
    """In a KIP-848 group, a restart is predicted to take as long as before the split, without the rebalance delay.

    The upper bound adds heartbeat intervals.
    """
    before = cost(**FLAPPING, assignor="consumer")
    assert compared(before, cost(group="new-billing", outage=20.0, replaced=4), delay=None).predicted == (10, 35)


def test_without_a_delay_a_restart_costs_what_it_takes():
    """Without a rebalance delay, the predicted range reaches from the time without members to the measured outage.

    An application whose restarts a split does not make longer is not named in the advice.
    """
    rows = [cost(**{**FLAPPING, "restart_gone": 0.0}), cost("shop", stood_still=40.0, caused=0)]
    after = cost(group="new-billing", outage=7.0, replaced=4, since=NOON + HOUR)
    found = compared(rows[0], after, delay=timedelta(0))
    assert (found.predicted, found.holds) == ((2, 12), True)
    (judged,) = judge_costs(rows, NOON, timedelta(0))
    assert judged.predicted["billing"] == (2, 12)
    assert "alone would stand still" not in judged.advice


@pytest.mark.parametrize(("measured", "holds"), [(42.5, True), (42.6, False), (21.7, True), (21.6, False)])
def test_a_prediction_holds_within_a_fifth_or_two_seconds(measured, holds):
    """A prediction of 26 to 34 s holds if the measured time is beyond it by at most a fifth of itself, or by 2 s."""
    before = cost(**{**FLAPPING, "outage": 10.0})
    assert compared(before, cost(group="new-billing", outage=measured, replaced=4)).holds is holds


def test_who_only_waited_for_others_waits_no_more():
    """If an application never restarts, ``advise`` predicts that it stands still for 0 s after the split."""
    found = compared(cost(stood_still=20.0), cost(group="new-billing", rebalances=0))
    assert (found.predicted, found.measured, found.holds) == ((0, 0), 0, True)


@pytest.mark.parametrize(
    ("before", "after", "options", "remark"),
    [
        (cost(), [], {"targets": ()}, "its topics have not moved"),
        (cost(), [], {}, "no record of members of new-billing since the split"),
        (cost(**FLAPPING), [cost(group="new-billing", replaced=1)], {"delay": None}, "delay.ms can't be read"),
        (cost(), [cost(group="new-billing", replaced=1)], {}, "never restarted together before"),
        (cost(**FLAPPING), [cost(group="new-billing")], {}, "have not restarted together since"),
        (cost(), [cost(group="new-billing")], {}, "not measured: no commit"),
        (cost(missing=3), [cost(group="new-billing", missing=4)], {}, "7 offsets compacted away"),
        (
            cost(topics=["billing", "late"]),
            [cost(group="new-billing"), cost(group="new-late", topics=["late"])],
            {"targets": ("billing", "late")},
            "no prediction: its topics went to 2 groups",
        ),
        (cost(), [cost(group="new-billing", topics=["billing", "clicks"])], {}, "shares its new group with readers of"),
    ],
)
def test_what_cant_be_told_is_said(before, after, options, remark):
    """If ``advise`` can't predict or measure a figure, a remark in table, JSON and page gives the reason."""
    found = compared(before, *after, **options)
    assert remark in "; ".join(found.remarks)
    shown = views.result([found])
    assert remark in on_a_terminal(shown)
    assert remark in "; ".join(shown.document.applications[0].remarks)
    assert remark.replace("'", "&#39;") in views.page(shown)


def test_the_advice_says_what_a_split_costs_whoever_restarts():
    """If a split would make an application's restarts slower, the advice names the application and the seconds.

    An application without restarts is predicted to stand still for 0 s.
    """
    rows = [cost(**FLAPPING), cost("shop", stood_still=40.0, caused=0)]
    (found,) = judge_costs(rows, NOON, DELAY)
    assert "billing alone would stand still about 28 to 36 s for 4 restarts, not 12 s" in found.advice
    assert found.predicted["shop"] == (0, 0)


@pytest.mark.parametrize(
    ("rows", "advice"),
    [
        ([cost(assignor="stream", applications=1)], "nothing to split: the topics of a Kafka Streams application"),
        ([cost(clients=["connector-consumer-s-0"])], "nothing to split: it belongs to a Connect sink"),
        ([cost(regex=True, assignor="consumer")], "not known: a member subscribes by a regular expression"),
        ([cost(applications=1)], "nothing to do: one application"),
        ([cost(), cost("shop", stood_still=3.0)], "nothing to do: 3.0 s stood still for others"),
        ([cost(missing=7), cost("shop", stood_still=3.0, missing=7)], "7 offsets compacted away: earlier rebalances"),
        ([cost(assignor="cooperative-sticky", missing=7)], "7 offsets compacted away: earlier rebalances"),
    ],
)
def test_what_the_log_says_of_other_groups(rows, advice):
    """``advise`` proposes no split for Streams and Connect groups, nor for an application that rarely waits for others.

    The advice also says what the log of ``__consumer_offsets`` does not show.
    """
    (found,) = judge_costs(rows, NOON, DELAY)
    assert advice in found.advice


@pytest.mark.parametrize(
    ("figures", "clause"),
    [
        (
            {"keeps_up": 0.7, "best_third": 0.9},
            "not keeping up with what is produced: shop (70%): add members",
        ),
        ({"keeps_up": 0.0, "best_third": 0.0}, "not keeping up with what is produced: shop (0%): add members"),
        ({"idle": 2, "spread": 3.0}, "members without a partition: shop (2): stop them, or add partitions"),
        ({"idle": 0, "spread": 2.0}, "the busiest member consumed several times the mean: shop (2.0): spread the"),
    ],
)
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("applications", [1, 2])
def test_the_advice_says_what_a_split_does_not_change(figures, clause, assignor, applications):
    """If an application does not keep up, has idle members or an uneven load, the advice names it.

    It does so even if no split is advised.
    """
    (found,) = judge_costs([cost("shop", assignor=assignor, applications=applications, **figures)], NOON, DELAY)
    assert found.advice.startswith("nothing to split")
    assert found.advice.count(clause) == 1
    assert found.advice.count(";") == 1


def test_a_load_not_worth_acting_on_is_not_said():
    """The advice does not mention an application that kept up with the producers for at least a third of the time.

    Nor does it mention a load of 1.9 times the mean on the busiest member.
    """
    row = cost("shop", applications=1, keeps_up=0.9, best_third=1.0, idle=0, spread=1.9)
    assert judge_costs([row], NOON, DELAY)[0].advice == "nothing to do: one application"


def moved(source: str | None, topic: str, group: str) -> Change:
    """Return the change of a partition of a topic whose offset a group took over from a source group."""
    outcome = Outcome.CONFIRMED
    return Change(source_group=source, group=group, topic=topic, partition=0, after=COMMITTED, outcome=outcome)


def handed_over(*changes: Change, translation: Translation | None = None) -> Execution:
    return Execution(
        cluster_id="c",
        options=WriteOptions(),
        intent="",
        content="",
        started_at=NOON,
        changes=changes,
        translation=translation,
    )


def test_a_topic_that_several_groups_took_over_is_compared_with_all_of_them():
    """If several groups took over a topic (a fan-out), the split has all of them, for each source group on its own."""
    found = Split.of(
        handed_over(moved("big", "t", "a"), moved("big", "t", "b"), moved("big", "u", "a"), moved("other", "t", "c"))
    )
    assert found.targets == {("big", "t"): {"a", "b"}, ("big", "u"): {"a"}, ("other", "t"): {"c"}}
    assert found.source_groups == {"big", "other"}
    assert found.target_groups == {"a", "b", "c"}
    after = [cost("t", group, topics=["t"], outage=seconds) for group, seconds in (("a", 1.0), ("b", 2.0), ("c", 9.0))]
    (compared,) = compare([cost(topics=["t"])], after, found, delay=DELAY, read_at=NOON + HOUR)
    assert (compared.groups, compared.measured) == (("a", "b"), 3.0)
    assert "no prediction: its topics went to 2 groups" in compared.remarks


def test_a_run_without_a_source_group_on_this_cluster_is_no_split():
    """A run that moved a group from another cluster, and one that set offsets without a source group, are refused."""
    translation = Translation(group="big", cluster_id="a", partitions=())
    with pytest.raises(UsageError, match="the run moved group 'big' from another cluster"):
        Split.of(handed_over(moved(None, "t", "big"), translation=translation))
    with pytest.raises(UsageError, match="no group handed over offsets in this run"):
        Split.of(handed_over(moved(None, "t", "big")))
