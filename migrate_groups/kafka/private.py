"""All of kafka-python's private parts that this package uses, each with its reason; everything else asks `Client`.

Its public methods lose something: ``require_stable`` and an error for each partition (KIP-447), one partition's error
raised for the whole call, groups whose members are no consumers; and each waits for its answer before the next is sent.
"""

from __future__ import annotations

import inspect
import ssl
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, MemberToRemove
from kafka.cluster import ClusterMetadata
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport
from kafka.structs import TopicPartition

T = TypeVar("T")

# By class: each private name, and why it is used.
USED: Mapping[type, Mapping[str, str]] = {
    KafkaAdminClient: {
        "_manager": "requests of our own are sent by it, side by side",
        "_find_coordinator_id": "its cache of coordinators is the one that the connections belong to",
        "_find_coordinator_ids": "one request for several groups (KIP-699)",
        "_async_list_groups": "the public method runs an event loop of its own",
        "_async_describe_configs": "the same",
        "_async_delete_group_offsets": "the same",
        "_async_remove_group_members": "the same",
    },
    KafkaConnectionManager: {
        "_do_bootstrap": "by itself each server may take the whole time-out, and no reason is kept",
        "_build_transport": "a TLS handshake has no time-out",
        "_conns": "a connection for the bootstrap is closed after it",
    },
    ClusterMetadata: {"_coordinator_brokers": "a further name for a broker is a further connection to it"},
    KafkaTCPTransport: {"_sock_recv": "what comes together with the end of a connection is thrown away"},
}


def lacking(used: Mapping[type, Mapping[str, str]] = USED) -> list[str]:
    """Return the private parts that this version of kafka-python does not have, each with what needs it."""
    return [
        f"{owner.__name__}.{name}: {reason}"
        for owner, names in used.items()
        for name, reason in names.items()
        if not hasattr(owner, name) and f"self.{name} = " not in inspect.getsource(owner)
    ]


class CertificateRefused(kafka_errors.KafkaError):  # type: ignore[misc]  # kafka-python has no types
    """A broker's certificate is not to be trusted, or not for its name. Trying again will not help."""


class BootstrapFailed(kafka_errors.KafkaError):  # type: ignore[misc]
    """What each bootstrap server, as host and port, was found to fail with."""

    def __init__(self, failures: dict[tuple[str, int], Exception]) -> None:
        super().__init__("no bootstrap server could be used")
        self.failures = failures


class Client:
    """kafka-python's admin client, connected; takes its configuration. Raises `BootstrapFailed` and as the client."""

    def __init__(self, **properties: Any) -> None:
        opened: list[KafkaNetClient] = []

        def net_client(**configs: Any) -> KafkaNetClient:
            time_out = configs["request_timeout_ms"]
            configs["socket_connection_setup_timeout_ms"] = time_out
            configs["socket_connection_setup_timeout_max_ms"] = time_out
            net = NetworkSelector(**configs)
            opened.append(KafkaNetClient(net=net, manager=_Manager(net, **configs)))
            return opened[-1]

        try:
            self._admin = KafkaAdminClient(kafka_client=net_client, **properties)
        except BaseException:
            for client in opened:
                client.close()
            raise
        self._manager = self._admin._manager

    def close(self) -> None:
        """Close all connections."""
        self._admin.close()

    def run(self, request: Callable[[Client], Awaitable[T]], deadline: float) -> T:
        """Return what a request returns, by this time of the monotonic clock; else raise ``KafkaTimeoutError``."""

        async def within_its_time() -> T:
            # kafka-python bounds each request, and not what comes before it: a connection to a broker that hangs.
            left = max(1, (deadline - time.monotonic()) * 1000)
            answer: T = await self._manager.wait_for(self._manager.call_soon(request, self), left)
            return answer

        result: T = self._manager.run(within_its_time)
        return result

    def send(self, request: Any, node: Any = None) -> Awaitable[Any]:
        """Send a request to a broker, to any where none is named; its answer can be awaited later."""
        sent: Awaitable[Any] = self._manager.send(request, node_id=node)
        return sent

    def begin(self, work: Callable[..., Awaitable[T]], *arguments: Any) -> Awaitable[T]:
        """Begin a coroutine beside this one; its result can be awaited later."""
        begun: Awaitable[T] = self._manager.call_soon(work, *arguments)
        return begun

    def version(self, request: Any) -> int:
        """Return the version in which this class of requests is sent, the highest that both sides know."""
        return int(self._manager.broker_version_data.api_version(request))

    async def coordinator(self, group: str) -> Any:
        """Return the broker that coordinates a group."""
        return await self._admin._find_coordinator_id(group)

    async def coordinators(self, groups: Collection[str]) -> Mapping[str, Any]:
        """Return the broker that coordinates each group. Raises the error of the first that has none."""
        found: Mapping[str, Any] = await self._admin._find_coordinator_ids(list(groups))
        return found

    def connections(self, node: Any, number: int) -> Iterator[Any]:
        """Yield so many names of one broker, for each of which there is a connection."""
        yield node
        cluster = self._manager.cluster
        broker = cluster.broker_metadata(node)
        for each in range(1, number):
            name = f"{node}-{each}"
            cluster._coordinator_brokers[name] = type(broker)(name, broker.host, broker.port, None)
            yield name

    def brokers(self) -> Sequence[int]:
        """Return the ids of the brokers."""
        return sorted(broker.node_id for broker in self._manager.cluster.brokers())

    async def list_groups(self) -> Sequence[Mapping[str, Any]]:
        """Return every group of every broker, with the fields of ListGroups."""
        listed: Sequence[Mapping[str, Any]] = await self._admin._async_list_groups()
        return listed

    async def describe_configs(self, resources: Sequence[ConfigResource]) -> Mapping[str, Any]:
        """Return the settings of these resources, also default ones."""
        found: Mapping[str, Any] = await self._admin._async_describe_configs(resources, config_filter="all")
        return found

    async def delete_offsets(
        self, group: str, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, type[kafka_errors.KafkaError]]:
        """Delete what a group has committed there, and return Kafka's error class for each (KIP-496)."""
        answers: Mapping[TopicPartition, type[kafka_errors.KafkaError]]
        answers = await self._admin._async_delete_group_offsets(group, partitions)
        return answers

    async def remove_member(self, group: str, member_id: str, reason: str) -> None:
        """Have a member leave its group (KIP-345)."""
        await self._admin._async_remove_group_members(group, [MemberToRemove(member_id=member_id, reason=reason)])


class _Manager(KafkaConnectionManager):  # type: ignore[misc]
    """Connections that are made within their time, and whose failures keep their reason."""

    async def _do_bootstrap(self, deadline: float) -> bool:
        failures: dict[tuple[str, int], Exception] = {}
        servers = self.cluster.bootstrap_brokers()
        for left, server in zip(range(len(servers), 0, -1), servers, strict=True):
            seconds = max(0.001, (deadline - time.monotonic()) / left)
            try:
                await self.wait_for(self.call_soon(self._bootstrap_from, server.node_id, seconds), seconds * 1000)
            except kafka_errors.KafkaTimeoutError:
                silence = f"nothing within {seconds:.0f} s"
                failures[server.host, server.port] = kafka_errors.KafkaConnectionError(silence)
            except Exception as error:  # noqa: BLE001  the next server may do
                failures[server.host, server.port] = error
                if isinstance(error, kafka_errors.SaslAuthenticationFailedError):
                    break  # one wrong password is enough: accounts get locked
            else:
                self.cluster.start_refresh_loop()
                return True
        raise BootstrapFailed(failures)

    async def _bootstrap_from(self, node_id: str, seconds: float) -> None:
        connection = self.get_connection(
            node_id,
            timeout_ms=seconds * 1000,
            pop_on_close=False,
            refresh_metadata_on_err=False,
            reset_backoff_on_connect=False,
        )
        try:
            await connection
            await self.cluster.refresh_metadata(node_id)
            if not self.cluster.brokers():
                raise kafka_errors.KafkaConnectionError("it does not know of any broker yet")
        finally:
            self._conns.pop(node_id, connection).close()

    async def _build_transport(self, node: Any, timeout_at: float) -> Any:
        milliseconds = max(1, (timeout_at - time.monotonic()) * 1000)
        try:
            built = self.call_soon(super()._build_transport, node, timeout_at)
            return _last_words_first(await self.wait_for(built, milliseconds))
        except kafka_errors.KafkaConnectionError as error:
            if isinstance(error.__context__, ssl.SSLCertVerificationError):
                where, reason = f"{node.host}:{node.port}", error.__context__.verify_message.rstrip(".")
                raise CertificateRefused(f"the certificate of {where} can't be trusted: {reason}") from error
            raise


def _last_words_first(transport: Any) -> Any:
    """Have a transport hand over what it has read before it says that the connection is closed.

    kafka-python 3.0 throws away what comes together with the end: the reason why a broker refuses a login
    (docs/kafka-behaviour.md#kafka-python).
    """
    receive = transport._sock_recv

    def received() -> tuple[bytes, Exception | None]:
        content, error = receive()
        return content, None if content else error  # the next look finds the end again

    transport._sock_recv = received
    return transport
