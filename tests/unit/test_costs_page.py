"""advice.html of ``advise``: what it shows of each shared group, and that names can't break the page."""

from __future__ import annotations

from datetime import timedelta

from migrate_groups.migration.advise.predicted_costs import judge_costs
from migrate_groups.migration.advise.propose import ClientSetting, Suggestion
from migrate_groups.show import costs, markdown
from migrate_groups.show.costs import page
from migrate_groups.spark.offsets_topic.advice_result import Costs, Generation, SharedCost, Subscription
from migrate_groups.spark.reconciliation.result import Moment
from tests.unit.test_after_split import DELAY, FLAPPING, HOUR, NOON, cost

HOSTILE = 'web"><script>\n'


def found(*rows: SharedCost) -> Costs:
    subscriptions = [Subscription(row.group, row.application, each, row.topics) for row in rows for each in row.clients]
    ended = Generation("big", 1, "range", NOON - HOUR, NOON, 4, [], [], [rows[0].application])
    return Costs(applications=rows, found=len(rows), generations=(ended,), subscriptions=tuple(subscriptions))


def shown(*rows: SharedCost, lag: tuple[Moment, ...] = (), **suggested: Suggestion) -> str:
    """Return the page. Each application has two client ids; one rebalance was caused by the first application."""
    return page(found(*rows), judge_costs(rows, NOON, DELAY), lag, suggested)


def test_the_page_has_each_part_of_a_shared_group():
    """For a shared group, advice.html shows map, timeline, seconds without an owner, lag, settings and split spec.

    The page loads no other file.
    """
    cure = ClientSetting(setting="group.instance.id", why="a member that is back causes no rebalance")
    moments = tuple(
        Moment("cluster", "big", None, NOON + timedelta(minutes=minute), *([minute] * (len(Moment._fields) - 4)))
        for minute in range(3)
    )
    text = shown(
        cost(**FLAPPING),
        cost("shop", stood_still=40.0),
        lag=moments,
        big=Suggestion(settings=(cure,), spec="source = 'big'", why_not=""),
    )
    for part in (
        "Members and topics",
        "Generations over time",
        "generation 1, ended by billing",
        "Seconds without an owner",
        "28.0 to 36.0 s",
        "<code>group.instance.id</code>: a member that is back causes no rebalance.",
        "<pre>source = &#39;big&#39;</pre>",
        "Lag over time",
    ):
        assert part in text, part
    assert text.count('<span class="hidden">reads</span>') == 4  # two client ids of each application, each reads one
    assert "http" not in text.replace("http-equiv", "")


def test_the_load_of_an_application_is_shown():
    """advice.html and the Markdown show how each application keeps up, its idle members, and its busiest member's load.

    An unknown figure is shown as "-".
    """
    rows = cost("shop", keeps_up=0.714, idle=1, spread=2.25), cost()
    titles = ("keeps up", "idle members", "busiest to mean")
    text, comment = shown(*rows), markdown.draw(costs.result(found(*rows), judge_costs(rows, NOON, DELAY)))
    assert [title for title in titles if f">{title}</th>" not in text or title not in comment] == []
    for figures in (("71%", "1", "2.2"), ("-", "-", "-")):
        assert "".join(f'<td class="n">{each}</td>' for each in figures) in text
        assert f"| {' | '.join(figures)} |" in comment


def test_a_group_without_a_split_says_why():
    """If no split is proposed, advice.html shows the reason in place of a split spec."""
    rows = cost(**FLAPPING), cost("shop")
    assert "No split is proposed: it has stopped" in shown(
        *rows, big=Suggestion(settings=(), spec="", why_not="it has stopped")
    )
    assert "No split is proposed: the group does not exist now" in shown(*rows)
    assert "Lag over time" not in shown(*rows)


def test_names_are_escaped():
    """Names of applications, clients and topics appear in advice.html as escaped text on one line."""
    text = shown(cost(), cost(HOSTILE))
    assert "<script>" not in text
    assert HOSTILE not in text


def test_a_group_of_many_members_is_cut():
    """advice.html shows at most 40 client ids and 20 topics of a group, and says which file contains the others."""
    many = cost("many", topics=[f"t{n:02}" for n in range(30)], clients=[f"c{n}" for n in range(1000)])
    text = shown(many, cost("shop"))
    assert "962 more client ids, 11 more topics in subscriptions.parquet" in text
