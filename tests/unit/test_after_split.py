"""``advise`` after a split: it compares predicted and measured seconds without an owner, and says what is unknown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from migrate_groups.migration.advise.after import AfterSplit, Split, compare
from migrate_groups.migration.advise.costs import judge_costs
from migrate_groups.show import after_split as views
from migrate_groups.spark.offsets_topic.advice_result import SharedCost

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
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
    split = Split(targets={each: f"new-{each}" for each in targets}, written_at=NOON, read_at=NOON + 2 * HOUR)
    (found,) = compare([before], after, split, delay)
    return found


def test_the_prediction_is_for_the_restarts_since_the_split():
    """For each restart since the split, the prediction adds the seconds without members and two rebalance delays.

    It multiplies the other outages by the ratio of the periods after and before the split.
    """
    found = compared(cost(**FLAPPING), cost(group="new-billing", outage=37.0, replaced=5))
    assert found.predicted == (2 * 2 + 5 * 6.5, 2 * 2 + 5 * 8.5)
    assert (found.measured, found.restarts, found.holds, found.remarks) == (37.0, 5, True, ())


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


@pytest.mark.parametrize(("assignor", "said"), [("range", False), ("consumer", True)])
def test_the_rule_of_kip_848_is_said_where_it_is_used(assignor, said):
    """The note below the table of predictions mentions KIP-848 only if one of the groups is a KIP-848 group."""
    before = cost(**{**FLAPPING, "assignor": assignor})
    found = compared(before, cost(group="new-billing", outage=20.0, replaced=4, assignor=assignor))
    console = Console(width=400)
    with console.capture() as shown:
        console.print(views.terminal([found]))
    assert ("KIP-848" in shown.get()) is said
    assert ("KIP-848" in views.page([found])) is said


@pytest.mark.parametrize(("measured", "holds"), [(31.0, True), (33.0, False), (21.7, True), (21.6, False)])
def test_a_prediction_holds_within_a_fifth_or_two_seconds(measured, holds):
    """A prediction holds if it differs by at most a fifth of the measured time, or by at most 2 s."""
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
    console = Console(width=400)
    with console.capture() as shown:
        console.print(views.terminal([found]))
    assert remark in shown.get()
    assert remark in "; ".join(views.document([found]).applications[0].remarks)
    assert remark.replace("'", "&#39;") in views.page([found])


def test_the_advice_says_what_a_split_costs_whoever_restarts():
    """If a split would make an application's restarts slower, the advice names the application and the seconds.

    An application without restarts is predicted to stand still for 0 s.
    """
    rows = [cost(**FLAPPING), cost("shop", stood_still=40.0, caused=0)]
    (found,) = judge_costs(rows, NOON, DELAY)
    assert "billing alone would stand still about 28 s (at most 36 s) for 4 restarts, not 12 s" in found.advice
    assert found.predicted["shop"].seconds == 0


@pytest.mark.parametrize(
    ("rows", "advice"),
    [
        ([cost(assignor="stream", applications=1)], "nothing to split: the topics of a Kafka Streams application"),
        ([cost(group="connect-sink", applications=1)], "nothing to split: it belongs to a Connect sink"),
        ([cost(clients=["connector-consumer-s-0"])], "nothing to split: it belongs to a Connect sink"),
        ([cost(regex=True, assignor="consumer")], "not known: a member subscribes by a regular expression"),
        ([cost(applications=1)], "nothing to do: one application"),
        ([cost(), cost("shop", stood_still=3.0)], "nothing to do: at most 3.0 s stood still for others"),
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
