"""Results of ``reconcile``, for tests of how they are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from migrate_groups.spark.reconciliation.reconcile import AHEAD_PROVES_NOTHING, PROBLEMS, STATUSES
from migrate_groups.spark.reconciliation.result import GroupTopic, Moment, PartitionVerdict, Reconciliation

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def topic(
    name: str = "t",
    *,
    group: str = "new",
    cluster_id: str | None = "cluster-1",
    lag: tuple[int | None, int | None] = (5, 5),
    produced: int | None = 0,
    consumed: int | None = 0,
    **counts: int,
) -> GroupTopic:
    """Return a row of ``reconcile``'s summary.

    counts: the number of partitions by status, such as ``below_log_start=2``; by default one ``exact``.
    """
    found = {status: (counts or {"exact": 1}).get(status.replace("-", "_"), 0) for status in STATUSES}
    return GroupTopic(
        cluster_id,
        group,
        name,
        next(status for status in STATUSES if found[status]),
        sum(found.values()),
        found,
        *lag,
        produced,
        consumed,
    )


def partition(status: str = "behind", number: int = 0, **more: Any) -> PartitionVerdict:
    """Return an entry for ``reconcile``'s list of the worst partitions. more: fields that replace the defaults."""
    values: dict[str, Any] = {
        "cluster_id": "cluster-1",
        "group": "new",
        "source_group": "old",
        "topic": "t",
        "before_offset": 10,
        "after_offset": 4,
        "lag_before": 0,
        "lag_after": 6,
        "reason": "6 records will be processed again",
    }
    return PartitionVerdict(**(values | {"partition": number, "status": status} | more))


def moments(*lags: int | None, group: str = "new", topic: str | None = None) -> tuple[Moment, ...]:
    """Return the timeline of a group, or of one of its topics, with these lags at intervals of a minute."""
    return tuple(
        Moment("cluster-1", group, topic, NOON + timedelta(minutes=minute), 1, lag, 10, 10)
        for minute, lag in enumerate(lags)
    )


def reconciliation(*summary: GroupTopic, topics: int | None = None, worst=(), **more) -> Reconciliation:
    """Return the result of a reconciliation with these rows, sorted from worst to best, and their totals."""
    ordered = sorted(summary, key=lambda row: STATUSES.index(row.worst))
    counts = {status: sum(row.counts[status] for row in ordered) for status in STATUSES}
    sums = [_sum(row[place] for row in ordered) for place in range(6, 10)]
    first = next(status for status in STATUSES if counts[status])
    return Reconciliation(
        totals=GroupTopic(None, None, None, first, sum(counts.values()), counts, *sums),
        topics=len(ordered) if topics is None else topics,
        summary=tuple(ordered),
        worst=tuple(worst) or tuple(partition(first, 0, topic=row.topic) for row in ordered if row.worst in PROBLEMS),
        **({"hints": ()} | more),
    )


def _sum(values) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def realistic() -> Reconciliation:
    """Return a realistic result: five groups that took over forty topics, most of them without problems."""
    names = {
        "billing": ["invoices", "payments.authorised", "payments.captured", "payments.refunded", "dunning.letters"],
        "search-indexer": [f"catalog.{kind}" for kind in ("products", "prices", "stock", "reviews", "images", "media")],
        "fraud-scoring": ["payments.authorised", "logins", "devices.fingerprints", "blocklist.changes"],
        "warehouse": [f"logistics.{kind}.v2" for kind in ("orders", "picks", "parcels", "returns", "carriers")],
        "analytics-export-to-the-data-lake": [f"events.{kind}" for kind in "abcdefghijklmnopqrst"],
    }
    rows, number = [], 0
    for group, topics in names.items():
        for place, name in enumerate(topics):
            number += 1
            before = 7_919 * number * number % 48_000 * (10 if group.startswith("ana") else 1)
            after = max(0, before + (number * 733) % 5_000 - 2_200)
            rows.append(
                topic(name, group=group, lag=(before, after), produced=9_000 + number, consumed=8_000, exact=12)
                if place % 3
                else topic(name, group=group, lag=(before, before + 900), produced=900, consumed=0, ahead=3, exact=9)
            )
    rows[1] = topic(
        "payments.authorised", group="billing", lag=(12_400, 19_800), produced=400, consumed=-7_000, behind=2, exact=10
    )
    rows[3] = topic("payments.refunded", group="billing", lag=(310, None), produced=None, consumed=None, missing=1)
    rows[8] = topic(
        "catalog.reviews", group="search-indexer", lag=(None, None), produced=None, consumed=None, no_commit=4
    )
    rows[17] = topic("logistics.parcels.v2", group="warehouse", lag=(80, 2_100), below_log_start=1, exact=5)
    waves = {
        "billing": (900, 2_400, 13_000, 21_500, 17_000, 8_000, 2_500, 900, 1_100),
        "search-indexer": (44_000, 39_000, 41_000, 36_000, None, None, 22_000, 15_000, 9_000),
        "warehouse": (80, 75, 90, 2_100, 60, 80, 85, 70, 75),
    }
    return reconciliation(
        *rows,
        worst=(
            partition("missing", 0, group="billing", topic="payments.refunded", before_offset=88_214, after_offset=None,
                      lag_before=310, lag_after=None, reason="offset 88214 was committed before, none after"),
            partition("below-log-start", 3, group="warehouse", topic="logistics.parcels.v2", before_offset=5_120,
                      after_offset=5_120, lag_after=2_100,
                      reason="the log start offset is 5600: 480 records already deleted"),
            partition("behind", 4, group="billing", topic="payments.authorised", before_offset=1_204_418,
                      after_offset=1_200_918, lag_before=600, lag_after=4_300,
                      reason="3500 records will be processed again"),
            partition("behind", 7, group="billing", topic="payments.authorised", before_offset=1_198_002,
                      after_offset=1_194_502, lag_before=580, lag_after=4_270,
                      reason="3500 records will be processed again"),
        ),
        hints=("set aside in bad: 2 invalid rows (BEFORE 1, AFTER 1); the verdict is about the other rows only",
               AHEAD_PROVES_NOTHING),
        timeline=tuple(moment for group, lags in waves.items() for moment in moments(*lags, group=group)),
        quarantined=2,
    )  # fmt: skip
