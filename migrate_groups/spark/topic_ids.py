"""Compare topic ids as `model.topics` does in Python. A topic that is created again has another id (KIP-516)."""

from __future__ import annotations

from pyspark.sql import Column, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)


def is_recreated(then: Column, now: Column, *, if_unknown: Column | bool) -> Column:
    """Return whether a topic was deleted and created again, as a boolean column without nulls.

    then, now: an earlier topic id and a later one; null: not known. if_unknown: the result if one of them is not known;
    null counts as False.
    """
    return F.coalesce(then != now, F.lit(if_unknown), F.lit(False))


def are_recreated(topic_id: Column) -> Column:
    """Return an aggregate over rows with distinct topic ids: whether two known ids of the topic differ."""
    return F.count(topic_id) > 1


def known_before(topic_id: Column, order: WindowSpec) -> Column:
    """Return the last known topic id in the rows before each row; null: none is known. order: a window in order."""
    return F.last(topic_id, ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, -1))
