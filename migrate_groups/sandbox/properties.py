"""The ``server.properties`` of a small Kafka that starts quickly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def server_properties(
    *,
    node_id: int,
    controllers: Sequence[str],
    addresses: Mapping[str, str],
    protocols: Mapping[str, str],
    settings: Mapping[str, str],
) -> str:
    """Return the text of ``server.properties`` for one broker, which is also a controller.

    controllers: the addresses of all brokers' CONTROLLER listeners, ordered by node id from 1. addresses: the addresses
    of this broker's listeners, by listener name. protocols: security protocols by listener name; by default a
    listener's protocol is its name. settings: further properties.
    """
    listeners = {name: f"{name}://{address}" for name, address in addresses.items()}
    spoken = {name: protocols.get(name, name) for name in addresses} | {"CONTROLLER": "PLAINTEXT"}
    properties = {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(f"{number}@{each}" for number, each in enumerate(controllers, 1)),
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(listeners.values()),
        "advertised.listeners": ",".join(each for name, each in listeners.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in spoken.items()),
        "log.dirs": "data",
        # Fewer partitions are created faster.
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.num.partitions": "4",
        # So the first rebalance does not wait, short session timeouts are allowed, and a mistyped topic is an error.
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "100",
        "auto.create.topics.enable": "false",
        # By default Kafka fills 128 MB of the heap when it starts.
        "log.cleaner.dedupe.buffer.size": "4194304",
        **_replication(len(controllers)),
        **settings,
    }
    return "".join(f"{name}={value.replace(chr(92), chr(92) * 2)}\n" for name, value in properties.items())


def _replication(brokers: int) -> dict[str, str]:
    """Return the replication settings for this number of brokers.

    Each broker gets a replica of each partition. If there are several brokers, one may fail.
    """
    replicas, in_sync = str(brokers), str(max(1, brokers - 1))
    properties = {
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
    }
    if brokers > 1:
        # So that the other brokers notice a failure within seconds.
        properties |= {
            "broker.heartbeat.interval.ms": "300",
            "broker.session.timeout.ms": "3000",
            "controller.quorum.election.timeout.ms": "600",
            "controller.quorum.election.backoff.max.ms": "300",
            "controller.quorum.fetch.timeout.ms": "1500",
        }
    return properties
