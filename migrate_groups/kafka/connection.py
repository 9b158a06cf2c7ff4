"""Send requests with kafka-python, retry them until the time-out, and translate kafka-python's errors."""

from __future__ import annotations

import math
import queue
import re
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import kafka.errors as kafka_errors
import tenacity

from migrate_groups.errors import ClusterUnavailable, InvalidInput, MigrateGroupsError, NotAuthorized
from migrate_groups.kafka.client import Unreachable, open_client, refused
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.private import CertificateRefused, Client
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.text import counted, some

T = TypeVar("T")

# Each retry opens a new client, because kafka-python's client remembers a group's coordinator after it has moved, and
# does not know a restarted broker even if another broker's answer names it (docs/kafka-behaviour.md#kafka-python).
_RETRIABLE = (kafka_errors.RetriableError, kafka_errors.UnknownBrokerIdError, OSError)
_PAUSES = tenacity.wait_exponential(multiplier=0.05, max=1.0)
_LAST_ATTEMPT = 0.9  # the share of the time-out after which no attempt begins
_HOPELESS = (kafka_errors.SaslAuthenticationFailedError, CertificateRefused)
# More threads than this wait for their turn, because each of them may send several requests at once.
_MOST_AT_ONCE = 32
_LONGEST_NAME = 2**15 - 1  # in bytes, because Kafka's protocol stores the length in 16 bits


@dataclass(slots=True)
class OfGroups(Generic[T]):
    """The answers to requests about several groups, by the group's name.

    found: the answers. failed: the errors of groups without an answer.
    """

    found: dict[str, T] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)

    def fail(self, groups: Collection[str], error: Exception) -> None:
        """Store ``error`` for each of these groups that has no answer and no error yet."""
        self.failed.update({group: error for group in groups if group not in self.found and group not in self.failed})


# A coroutine function that sends requests about several groups, and stores each group's answer or error in the
# `OfGroups`. It stores the error of a coordinator, and does not raise it, because other groups have other coordinators.
# A deletion may raise the error, because it is for one group.
Ask = Callable[[Client, Collection[str], OfGroups[T]], Awaitable[None]]


def _describe_permission(group: str) -> str:
    return f"{Operation.DESCRIBE} on {Resource(ResourceType.GROUP, group)}"


def _check_length(group: str) -> None:
    size = len(group.encode(errors="replace"))
    if size > _LONGEST_NAME:
        raise InvalidInput(
            f"group {group[:40]!r}… has a name of {size:,} bytes: pass a name of at most {_LONGEST_NAME:,} bytes"
        )


class KafkaConnection:
    """Sends requests with a client of kafka-python. Each retry uses a new client.

    If no bootstrap server can be reached, the first request fails at once. Later requests try again until the time-out
    of ``config``. Several threads may send requests (`at_once`).
    """

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._client: Client | None = None
        self._was_reached = False
        self._opening = threading.Lock()
        self._used = threading.local()
        self._turns = threading.Semaphore(_MOST_AT_ONCE)

    def run(
        self,
        request: Callable[[Client], Awaitable[T]],
        *,
        doing: str,
        needs: str = "",
        answered: Callable[[], int] = lambda: 0,
    ) -> T:
        """Run the coroutine function ``request`` with a client, and return its result.

        After a retriable error ``request`` runs again, until the time-out, so it must be safe to repeat. doing: for
        error messages, such as "listing the groups". needs: the required permission, such as "Read on Group 'g'".
        answered: returns how much of ``request`` is done; the time-out begins again when it is more.
        Raises `ClusterUnavailable`, `NotAuthorized` or `InvalidInput`.
        """
        began, done = time.monotonic(), answered()

        def is_over(state: tenacity.RetryCallState) -> bool:
            nonlocal began, done
            if answered() > done:
                began, done = time.monotonic(), answered()
            # An attempt without time left would hide the error of the attempt before it behind a time-out.
            return time.monotonic() + state.upcoming_sleep - began >= self._config.timeout * _LAST_ATTEMPT

        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(self._is_worth_another_try),
            stop=is_over,
            wait=_PAUSES,
            after=lambda _: self.close_used(),
            reraise=True,
        )
        try:
            result: T = attempts(lambda: self._attempt(request, began + self._config.timeout))
        except (kafka_errors.KafkaError, OSError) as error:
            raise explain(error, self._config, doing, needs) from error
        return result

    def repeat_while(self, work: Callable[[], object]) -> None:
        """Call ``work`` until it returns a false value, with pauses; at the time-out, stop without an error."""
        tenacity.Retrying(
            retry=tenacity.retry_if_result(bool),
            stop=tenacity.stop_after_delay(self._config.timeout),
            wait=_PAUSES,
            retry_error_callback=lambda _: None,
        )(work)

    def run_of_groups(
        self, groups: Collection[str], ask: Ask[T], doing: str, needs: Callable[[str], str] = _describe_permission
    ) -> Mapping[str, T | MigrateGroupsError]:
        """Send a request about each group, and return each group's answer or error.

        After a retriable error, groups without an answer are asked again, until the time-out. ask: sends the requests.
        doing: for error messages, such as "describing". needs: returns the permission that the request requires, by
        default Describe on the group. Raises `InvalidInput` if a group's name is too long for Kafka's protocol.
        """
        for group in groups:
            _check_length(group)
        into: OfGroups[T] = OfGroups()

        async def request(client: Client) -> None:
            into.failed.clear()
            await ask(client, [group for group in groups if group not in into.found], into)
            # Raise a retriable error before any other, because otherwise its group would get no retry.
            for error in sorted(into.failed.values(), key=lambda error: not isinstance(error, _RETRIABLE)):
                raise error

        if not groups:
            return {}
        try:
            self.run(request, doing=f"{doing} {counted(len(groups), 'group')}", answered=lambda: len(into.found))
        except MigrateGroupsError as error:
            into.fail(groups, error)
        return {
            group: into.found[group]
            if group in into.found
            else self._explained(into.failed[group], f"{doing} group {group!r}", needs(group))
            for group in groups
        }

    def _explained(self, error: Exception, doing: str, needs: str) -> MigrateGroupsError:
        return error if isinstance(error, MigrateGroupsError) else explain(error, self._config, doing, needs)

    def run_once(self, request: Callable[[Client], Awaitable[T]]) -> T:
        """Run the coroutine function ``request`` without a retry, and return its result.

        Raises kafka-python's errors unchanged. If no connection can be opened, raises `ClusterUnavailable`,
        `NotAuthorized` or `InvalidInput`.
        """
        return self._attempt(request, time.monotonic() + self._config.timeout)

    @property
    def was_closed(self) -> bool:
        """Whether another thread has closed the client that this thread used last, because its own request failed."""
        client: Client | None = getattr(self._used, "client", None)
        return client is not None and client.is_closed

    def round_trip(self) -> float:
        """Return the shortest time in seconds from a request to its response so far; 0 if it is not known."""
        seconds = self._client.round_trip if self._client else math.inf
        return seconds if math.isfinite(seconds) else 0.0

    def at_once(self, *calls: Callable[[], object]) -> list[Any]:
        """Call functions that send requests with this connection, each in its own thread, and return their results.

        Raises the error of the first function that raised one, after all of them have ended.
        """
        ended: queue.SimpleQueue[tuple[int, object, BaseException | None]] = queue.SimpleQueue()

        def call(number: int) -> None:
            try:
                ended.put((number, calls[number](), None))
            except BaseException as error:  # noqa: BLE001  raised below, in the caller's thread
                ended.put((number, None, error))

        # Daemon threads, so that an interrupt ends the process although a broker does not answer.
        for number in range(len(calls)):
            threading.Thread(target=call, args=(number,), daemon=True).start()
        outcomes = sorted((ended.get() for _ in calls), key=lambda outcome: outcome[0])
        for _, _, error in outcomes:
            if error is not None:
                raise error
        return [result for _, result, _ in outcomes]

    def close(self) -> None:
        """Close the client; the next request opens a new one."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _attempt(self, request: Callable[[Client], Awaitable[T]], deadline: float) -> T:
        self._used.client = None
        with self._opening:
            if self._client is None:
                self._client = open_client(self._config, max(0.001, deadline - time.monotonic()))
                self._was_reached = True
            client = self._used.client = self._client
        asked = time.monotonic()
        with self._turns:
            # The wait for this turn is not a broker's silence, after which all threads would get another client.
            return client.run(request, deadline + time.monotonic() - asked, self._config.timeout)

    def close_used(self) -> None:
        """Close the client that this thread used last, unless another thread has opened a new one already."""
        with self._opening:
            client = self._client
            is_used = client is getattr(self._used, "client", None)
            if client is None or not is_used:
                return
            self._client = None
        client.close()

    def _is_worth_another_try(self, error: BaseException) -> bool:
        return isinstance(error, _RETRIABLE) or (self._was_reached and isinstance(error, Unreachable))


def explain(error: BaseException, config: ClientConfig, doing: str, needs: str = "") -> MigrateGroupsError:
    """Return this package's error for an error of kafka-python or of the network.

    The result is `NotAuthorized` if a permission is lacking or the login failed, else `ClusterUnavailable`. doing: for
    the message, such as "listing the groups". needs: the required permission, such as "Read on Group 'g'".
    """
    if isinstance(error, _HOPELESS):
        return refused(error, config)
    if isinstance(error, kafka_errors.AuthorizationError):
        lacking = needs or "a permission"
        reason = f"{in_kafkas_words(type(error))} while {doing}"
        return NotAuthorized(f"not authorized: {config.principal} lacks {lacking} ({reason}): grant it")
    if isinstance(error, kafka_errors.UnsupportedVersionError | kafka_errors.IncompatibleBrokerVersion):
        return ClusterUnavailable(_no_common_version(_text(error), doing))
    if isinstance(error, kafka_errors.BrokerResponseError) and not _is_silence(error):
        about = "".join(f" ({_line(each)})" for each in error.args[:1])
        answer = f"a broker answered {in_kafkas_words(type(error))}{about} while {doing}"
        return ClusterUnavailable(f"{answer}: check the brokers and their logs, and try again")
    return ClusterUnavailable(
        f"{config.cluster} did not answer while {doing} ({_text(error)}): check its brokers, or pass a longer --timeout"
    )


def _is_silence(error: BaseException) -> bool:
    """Return whether this is kafka-python's own error for a request without a response.

    It has the class of the error with which a broker answers that a write was not replicated in time.
    """
    return isinstance(error, kafka_errors.RequestTimedOutError) and "Request timed out after" in str(error)


def _no_common_version(reason: str, doing: str) -> str:
    """Return a message for a request that the brokers do not offer in a version that kafka-python speaks."""
    found = re.search(r"client \[\d+-(\d+)\] and broker \[(\d+)-\d+\]", reason)
    if found and int(found[1]) < int(found[2]):
        return f"the brokers are too new for {doing}: {reason}; upgrade migrate-groups"
    if "does not support" in reason:
        return f"{doing} is not possible on these brokers, which are too old or of another vendor: {reason}"
    return f"the brokers are too old for {doing}: {reason}; upgrade them"


def check_visible(principal: str, hidden: Iterable[str]) -> None:
    """Raise `NotAuthorized` if ``hidden`` is not empty. hidden: topics on which the principal lacks Describe."""
    lacking = [f"{Operation.DESCRIBE} on {Resource(ResourceType.TOPIC, topic)}" for topic in hidden]
    if lacking:
        these = "this permission" if len(lacking) == 1 else "these permissions"
        raise NotAuthorized(f"not authorized: {principal} lacks {some(lacking, most=20)}; grant it {these}")


def _line(text: object) -> str:
    return " ".join(str(text).split())


def _text(error: BaseException) -> str:
    return _line(error) or type(error).__name__.removesuffix("Error")


def in_kafkas_words(error_class: Any) -> str:
    """Return Kafka's name of a kafka-python error class, such as ``UNKNOWN_MEMBER_ID``.

    For an error that is not part of Kafka's protocol, return the name of the class.
    """
    message: str = getattr(error_class, "message", "") or error_class.__name__
    return message
