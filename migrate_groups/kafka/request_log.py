"""Log each request to the cluster, with its groups and its duration, to ``migrate_groups.kafka.request_log`` (INFO).

The log contains no credentials, and no metadata of committed offsets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from migrate_groups.text import brief, counted, some

logging.getLogger("migrate_groups").addHandler(logging.NullHandler())  # a library leaves its log to its caller
# No line contains credentials, because requests of logins are not logged.
_log = logging.getLogger(__name__)
_MOST_GROUPS = 3
_WRITES = {"OffsetCommit", "OffsetDelete", "DeleteGroups"}


def is_on() -> bool:
    """Return whether requests are logged."""
    return _log.isEnabledFor(logging.INFO)


def answered(began: float, what: str, error: BaseException | None = None) -> None:
    """Log that a request was answered or has failed, and how long it took.

    began: the time of `time.monotonic` at which the request was sent. what: the request as text. error: why the request
    failed; None: an answer came, which may contain error codes.
    """
    failure = f": failed: {str(error) or type(error).__name__}" if error else ""
    _log.info("%s", brief(f"{time.monotonic() - began:.3f} s  {what}{failure}"))


@contextmanager
def logged(what: Callable[[], str]) -> Iterator[None]:
    """Log the ``with`` block as one request to the cluster, with its duration and its error.

    what: returns the request as text. It is called only if requests are logged.
    """
    began = time.monotonic()
    try:
        yield
    except Exception as error:
        if is_on():
            answered(began, what(), error)
        raise
    if is_on():
        answered(began, what())


def described(request: Any, node: Any) -> str:
    """Return a request of kafka-python as text, such as ``OffsetFetch big-group: 12 partitions from broker 1``.

    node: kafka-python's name of the broker; None if no broker is available.
    """
    parts = [request, *(_values(request, "groups"))]
    topics = [topic for part in parts for topic in _values(part, "topics")]
    partitions = sum(len(_values(topic, "partitions") or _values(topic, "partition_indexes")) for topic in topics)
    fields = ("groups", "group_ids", "groups_names", "coordinator_keys")
    names = [name for each in fields for name in _values(request, each)]
    groups = [getattr(each, "group_id", each) for each in names] or [
        name for name in (getattr(request, "group_id", ""), getattr(request, "key", "")) if name
    ]
    what = counted(partitions, "partition") if partitions else counted(len(topics), "topic") if topics else ""
    return line(type(request).__name__.removesuffix("Request"), groups, what, _broker(node))


def line(name: str, groups: Collection[str], what: str, whom: str) -> str:
    """Return a request as text, such as ``OffsetFetch big-group: 12 partitions from broker 1``.

    name: the request's name in Kafka's protocol. groups: may be empty. what: the number of topics or partitions, such
    as ``12 partitions``; may be empty. whom: the receiver, such as ``broker 1``.
    """
    of = f" {some(groups, _MOST_GROUPS)}" if groups else ""
    return f"{name}{of}{': ' if what else ''}{what} {'to' if name in _WRITES else 'from'} {whom}"


def _values(part: Any, name: str) -> Collection[Any]:
    # A field that this version of a request lacks is missing or None.
    return getattr(part, name, None) or ()


def _broker(node: Any) -> str:
    if node is None:
        return "no broker"
    first, _, rest = str(node).partition("-")
    return f"broker {rest if first == 'coordinator' else first}" if first != "bootstrap" else "a bootstrap server"
