"""The admin client `Client`, and `USED`, the private names of kafka-python that `Client` uses.

No other module uses private names of kafka-python. This module also defines the requests and responses that
kafka-python lacks: those of KIP-848 groups and of share groups.
"""

from __future__ import annotations

import inspect
import math
import ssl
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, MemberToRemove
from kafka.cluster import ClusterMetadata
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport
from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.metadata import ApiVersionsRequest, CoordinatorType, FindCoordinatorRequest
from kafka.structs import TopicPartition

from migrate_groups.kafka import request_log as request_log

T = TypeVar("T")

# 200 commits took 1.4 s over one connection, 0.17 s over eight, 0.10 s over sixteen
# (docs/kafka-behaviour.md#kafka-python).
# Several connections, because a broker answers the requests of one connection one after the other.
_MOST_CONNECTIONS = 16
_OLDER_API_VERSIONS = 3  # that of Kafka 2.4 to 3.8

# The public methods of the admin client raise one partition's error for the whole call, wait for each answer before
# the next request, offer no `require_stable` (KIP-447), and can't describe groups whose members are not consumers.
# The private names of each class that this module uses, each with the reason.
USED: Mapping[type, Mapping[str, str]] = {
    KafkaAdminClient: {
        "_manager": "requests of our own are sent by it, side by side",
        "_find_coordinator_id": "its cache of coordinators is the one that the connections belong to",
        "_find_coordinator_ids": "one request for several groups (KIP-699)",
        "_async_describe_configs": "the public method runs an event loop of its own",
        "_async_delete_group_offsets": "the same",
        "_async_remove_group_members": "the same",
    },
    KafkaConnectionManager: {
        "_do_bootstrap": "by itself each server may take the whole time-out, and no reason is kept",
        "_build_transport": "a TLS handshake has no time-out",
        "_conns": "a connection for the bootstrap is closed after it",
    },
    KafkaConnection: {"_api_versions_idx": "some brokers close the connection at the latest version of ApiVersions"},
    ClusterMetadata: {"_coordinator_brokers": "a further name for a broker is a further connection to it"},
    KafkaTCPTransport: {"_sock_recv": "what comes together with the end of a connection is thrown away"},
}


def lacking(used: Mapping[type, Mapping[str, str]] = USED) -> list[str]:
    """Return the private names in ``used`` that the installed kafka-python lacks, as lines ``Class.name: reason``.

    used: by class and name, the reason why this package uses the name.
    """
    return [
        f"{owner.__name__}.{name}: {reason}"
        for owner, names in used.items()
        for name, reason in names.items()
        if not hasattr(owner, name) and f"self.{name} = " not in inspect.getsource(owner)
    ]


class CertificateRefused(kafka_errors.KafkaError):  # type: ignore[misc]  # kafka-python has no types
    """A broker's certificate is not trusted, or is for another host name. A retry can't succeed."""


class BootstrapFailed(kafka_errors.KafkaError):  # type: ignore[misc]
    """No bootstrap server could be used. failures: by host and port, the error of each server that was tried."""

    def __init__(self, failures: dict[tuple[str, int], Exception]) -> None:
        super().__init__("no bootstrap server could be used")
        self.failures = failures


class _Unanswered(kafka_errors.KafkaConnectionError):  # type: ignore[misc]
    """A server closed the connection before it answered ApiVersions, the first request."""


class Client:
    """A connected admin client of kafka-python, which can send several requests concurrently.

    properties: the configuration of ``KafkaAdminClient``. A ``node`` is kafka-python's name of a broker, such as the
    broker id. Raises `BootstrapFailed` if no bootstrap server can be used.
    """

    def __init__(self, **properties: Any) -> None:
        opened: list[KafkaNetClient] = []

        def noted(**configs: Any) -> KafkaNetClient:
            # Without metrics, which nothing reads, and which take about a tenth of the CPU time of each request.
            opened.append(_net_client(_LoggingManager, configs | {"metrics": None}))
            return opened[-1]

        try:
            self._admin = KafkaAdminClient(kafka_client=noted, **properties)
        except BaseException:
            for client in opened:
                with suppress(RuntimeError):  # an interrupt may come before kafka-python's thread has started
                    client.close()
            raise
        self._manager = self._admin._manager

    is_closed = False

    def close(self) -> None:
        """Close all connections."""
        self.is_closed = True
        self._admin.close()

    def run(self, request: Callable[[Client], Awaitable[T]], deadline: float, seconds: float) -> T:
        """Run the coroutine function ``request`` with this client, and return its result.

        Raises ``KafkaTimeoutError`` at ``deadline``, a time of `time.monotonic`, or later: ``seconds`` after the last
        response, because ``request`` may send many requests, one after the other. Raises ``KafkaConnectionError`` if
        another thread has closed this client.
        """

        async def within_its_time() -> T:
            # Needed because kafka-python's time-out covers a request, but not connecting to a broker that hangs.
            until, began, running = deadline, time.monotonic(), self._manager.call_soon(request, self)
            while True:
                try:
                    answer: T = await self._manager.wait_for(running, max(1, (until - time.monotonic()) * 1000))
                except kafka_errors.KafkaTimeoutError:
                    answered_at = self._manager.answered_at
                    if running.is_done or answered_at < began or answered_at + seconds <= time.monotonic():
                        raise
                    until = answered_at + seconds
                else:
                    return answer

        try:
            result: T = self._manager.run(within_its_time)
        except (AttributeError, LookupError, RuntimeError, ValueError) as error:
            # kafka-python closes connections in the thread that closes the client, while its own thread uses them
            # (docs/kafka-behaviour.md#kafka-python).
            if not (self.is_closed or "Transport closed" in str(error)):
                raise
            raise kafka_errors.KafkaConnectionError("closed, because another request failed") from error
        return result

    def send(self, request: Any, node: Any = None) -> Awaitable[Any]:
        """Send a request, and return an awaitable of the response. node: the broker; None: any broker."""
        sent: Awaitable[Any] = self._manager.send(request, node_id=node)
        return sent

    @property
    def round_trip(self) -> float:
        """The shortest time in seconds from a request to its response so far; infinite before the first response."""
        return float(self._manager.round_trip)

    def begin(self, work: Callable[..., Awaitable[T]], *arguments: Any) -> Awaitable[T]:
        """Start ``work(*arguments)`` concurrently with the caller, and return an awaitable of its result."""
        begun: Awaitable[T] = self._manager.call_soon(work, *arguments)
        return begun

    def version(self, request: Any) -> int:
        """Return the highest version of this request class that both the client and the brokers support."""
        return int(self._manager.broker_version_data.api_version(request))

    def offers(self, request: Any) -> bool:
        """Return whether the brokers offer this request class in any version (ApiVersions)."""
        return self.offered(request) is not None

    def offered(self, request: Any) -> tuple[int, int] | None:
        """Return the lowest and the highest version of this request class that the brokers offer; None: they do not."""
        versions: tuple[int, int] | None
        versions = (self._manager.broker_version_data.api_versions or {}).get(request.API_KEY)
        return versions and (int(versions[0]), int(versions[1]))

    def at_most(self, request: Any, version: int) -> int:
        """Return the highest version of this request class to send: ``version``, or the lowest that the brokers offer.

        Brokers of other vendors may offer only later versions.
        """
        lowest, _ = self.offered(request) or (0, 0)
        return max(version, lowest)

    async def coordinator(self, group: str) -> Any:
        """Return kafka-python's name of the group's coordinator. Raises kafka-python's error if there is none."""
        return await self._admin._find_coordinator_id(group)

    async def coordinators(self, groups: Collection[str]) -> Mapping[str, Any]:
        """Return kafka-python's name of each group's coordinator, by group, with one request (KIP-699).

        Brokers before 3.0 get a request for each group, over several connections. Raises kafka-python's error if the
        coordinator of any group can't be found.
        """
        cluster = self._manager.cluster
        unknown = [group for group in groups if cluster.get_coordinator(group) is None]
        node = self._manager.least_loaded_node() if self.version(FindCoordinatorRequest) < 4 and unknown else None
        if node is not None:

            async def find(connection: Any, group: str) -> None:
                request = FindCoordinatorRequest(key=group, key_type=CoordinatorType.GROUP.value, max_version=3)
                answer = await self.send(request, connection)
                cluster.add_coordinator(answer, CoordinatorType.GROUP, group, synthesize_node_id=False)

            for error in (await self.side_by_side(find, node, unknown)).values():
                raise error
        found: Mapping[str, Any] = await self._admin._find_coordinator_ids(list(groups))
        return found

    async def side_by_side(
        self, work: Callable[[Any, str], Awaitable[None]], node: Any, groups: Collection[str]
    ) -> dict[str, Exception]:
        """Call ``work(connection, group)`` for each group, over up to 16 connections to the broker ``node``.

        Returns the errors of Kafka and of the network that ``work`` raised, by group.
        """
        left, failed = iter(groups), dict[str, Exception]()

        async def of_connection(connection: Any) -> None:
            for group in left:
                try:
                    await work(connection, group)
                except (kafka_errors.KafkaError, OSError) as error:
                    failed[group] = error

        connections = self.connections(node, min(len(groups), _MOST_CONNECTIONS))
        for done in [self.begin(of_connection, connection) for connection in connections]:
            await done
        return failed

    def connections(self, node: Any, number: int) -> Iterator[Any]:
        """Yield names for ``number`` connections to the broker ``node``; kafka-python opens one for each name."""
        yield node
        cluster = self._manager.cluster
        broker = cluster.broker_metadata(node)
        for each in range(1, number):
            name = f"{node}-{each}"
            cluster._coordinator_brokers[name] = type(broker)(name, broker.host, broker.port, None)
            yield name

    def brokers(self) -> Sequence[int]:
        """Return the ids of the brokers, in ascending order."""
        return sorted(broker.node_id for broker in self._manager.cluster.brokers())

    async def list_groups(self) -> Sequence[Any]:
        """Return the groups in the ListGroups responses of all brokers.

        All brokers are asked concurrently. Raises kafka-python's error if a broker returns an error.
        """
        # kafka-python asks one broker after the other, and makes a dict of each group, which takes most of the time.
        answers = [await asked for asked in [self.send(ListGroupsRequest(), broker) for broker in self.brokers()]]
        for answer in answers:
            if answer.error_code:
                raise kafka_errors.for_code(answer.error_code)
        return [group for answer in answers for group in answer.groups]

    async def describe_configs(self, resources: Sequence[ConfigResource]) -> Mapping[str, Any]:
        """Return the configuration of brokers or topics, including default values (DescribeConfigs).

        The result is ``{"broker" or "topic": {resource name: {setting: its fields}}}``. Settings that the broker does
        not report, for instance because a permission is lacking, are left out.
        """
        found: Mapping[str, Any] = await self._admin._async_describe_configs(resources, config_filter="all")
        return found

    async def delete_offsets(
        self, group: str, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, type[kafka_errors.KafkaError]]:
        """Delete a group's committed offsets of these partitions (OffsetDelete, KIP-496).

        Returns kafka-python's error class for each partition; ``NoError``: the offset is deleted.
        """
        answers: Mapping[TopicPartition, type[kafka_errors.KafkaError]]
        answers = await self._admin._async_delete_group_offsets(group, partitions)
        return answers

    async def remove_member(self, group: str, member_id: str, reason: str) -> None:
        """Remove a member from its group (LeaveGroup, KIP-345). reason: a text for the broker's log.

        Raises kafka-python's error if the coordinator refuses the request. Errors about the member, such as an unknown
        member id, are ignored.
        """
        await self._admin._async_remove_group_members(group, [MemberToRemove(member_id=member_id, reason=reason)])


def net_client(**configs: Any) -> KafkaNetClient:
    """Return the connections of a client of kafka-python: pass this function as its property ``kafka_client``.

    Connections are opened within the time-out of a request. The client raises `BootstrapFailed` if no bootstrap server
    can be used. Its requests are not logged.
    """
    return _net_client(_Manager, configs)


def _net_client(manager: type[_Manager], configs: dict[str, Any]) -> KafkaNetClient:
    time_out = configs["request_timeout_ms"]
    configs["socket_connection_setup_timeout_ms"] = time_out
    configs["socket_connection_setup_timeout_max_ms"] = time_out
    net = NetworkSelector(**configs)
    return KafkaNetClient(net=net, manager=manager(net, **configs))


class _Manager(KafkaConnectionManager):  # type: ignore[misc]
    """Opens kafka-python's connections within a time limit.

    Raises `BootstrapFailed`, with the error of each bootstrap server, if none of them can be used.
    """

    async def _do_bootstrap(self, deadline: float) -> bool:
        failures: dict[tuple[str, int], Exception] = {}
        servers = self.cluster.bootstrap_brokers()
        for left, server in zip(range(len(servers), 0, -1), servers, strict=True):
            seconds = max(0.001, (deadline - time.monotonic()) / left)
            try:
                await self.wait_for(self.call_soon(self._bootstrap_from, server.node_id, seconds), seconds * 1000)
            except kafka_errors.KafkaTimeoutError:
                is_short = seconds < 0.5
                silence = f"no answer within {seconds:.{3 * is_short}f} s{': raise --timeout' * is_short}"
                failures[server.host, server.port] = kafka_errors.KafkaConnectionError(silence)
            except Exception as error:  # noqa: BLE001  the next server may work
                failures[server.host, server.port] = error
                if isinstance(error, kafka_errors.SaslAuthenticationFailedError):
                    break  # because repeated wrong passwords may lock the account
            else:
                self.cluster.start_refresh_loop()
                return True
        raise BootstrapFailed(failures)

    async def _bootstrap_from(self, node_id: str, seconds: float) -> None:
        try:
            await self._bootstrap_with(node_id, seconds, ApiVersionsRequest.max_version)
        except _Unanswered:
            # Some brokers close the connection at a later version, and do not answer with the versions that they offer
            # (docs/kafka-behaviour.md#kafka-python). No login has been tried yet.
            self.reset_backoff(node_id)
            await self._bootstrap_with(node_id, seconds, _OLDER_API_VERSIONS)

    async def _bootstrap_with(self, node_id: str, seconds: float, api_versions: int) -> None:
        """Bootstrap from a server with this version of ApiVersions.

        Raises `_Unanswered` if the server closes the connection before it answers, unless the version is the older one.
        """
        connection = self.get_connection(
            node_id,
            timeout_ms=(seconds + 1) * 1000,  # so that the time limit of the caller, with its clearer error, ends first
            pop_on_close=False,
            refresh_metadata_on_err=False,
            reset_backoff_on_connect=False,
        )
        connection._api_versions_idx = api_versions
        try:
            await self._await_versions(connection, api_versions)
            await self.cluster.refresh_metadata(node_id)
            if not self.cluster.brokers():
                raise kafka_errors.KafkaConnectionError("it knows no broker yet")
        finally:
            self._conns.pop(node_id, connection).close()

    @staticmethod
    async def _await_versions(connection: KafkaConnection, api_versions: int) -> None:
        try:
            await connection
        except kafka_errors.KafkaConnectionError as error:
            is_connected, is_answered = connection.parser is not None, connection.broker_version_data is not None
            if is_connected and not is_answered and api_versions > _OLDER_API_VERSIONS:
                raise _Unanswered(str(error)) from error
            raise

    async def _build_transport(self, node: Any, timeout_at: float) -> Any:
        milliseconds = max(1, (timeout_at - time.monotonic()) * 1000)
        try:
            built = self.call_soon(super()._build_transport, node, timeout_at)
            return _with_bytes_before_close(await self.wait_for(built, milliseconds))
        except kafka_errors.KafkaConnectionError as error:
            if isinstance(error.__context__, ssl.SSLCertVerificationError):
                where, reason = f"{node.host}:{node.port}", error.__context__.verify_message.rstrip(".")
                raise CertificateRefused(f"the certificate of {where} can't be trusted: {reason}") from error
            raise


class _LoggingManager(_Manager):
    """Also logs requests, and notes when the last one was answered, and how soon they are."""

    answered_at = 0.0
    """The time of `time.monotonic` of the last response."""
    round_trip = math.inf
    """The shortest time in seconds from a request to its response."""

    # All requests except those of logins go through this method.
    def send(self, request: Any, node_id: Any = None, request_timeout_ms: float | None = None) -> Any:
        began = time.monotonic()
        if not request_log.is_on():
            return super().send(request, node_id, request_timeout_ms).add_callback(self._note_answer, began)
        node_id = self.least_loaded_node() if node_id is None else node_id
        what = request_log.described(request, node_id)
        answer = super().send(request, node_id, request_timeout_ms).add_callback(self._note_answer, began)
        answer.add_callback(lambda _: request_log.answered(began, what))
        answer.add_errback(lambda error: request_log.answered(began, what, error))
        return answer

    def _note_answer(self, began: float, _: object) -> None:
        self.answered_at = time.monotonic()
        self.round_trip = min(self.round_trip, self.answered_at - began)


def _with_bytes_before_close(transport: Any) -> Any:
    """Change kafka-python's transport so that it returns the last received bytes before it reports a closed connection.

    Returns the same transport.
    """
    # kafka-python 3.0 drops bytes that arrive together with the close. If a broker refuses a login, they contain the
    # reason (docs/kafka-behaviour.md#kafka-python).
    receive = transport._sock_recv

    def received() -> tuple[bytes, Exception | None]:
        content, error = receive()
        return content, None if content else error  # the next read reports the close

    transport._sock_recv = received
    return transport
