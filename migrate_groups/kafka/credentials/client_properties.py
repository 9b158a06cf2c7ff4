"""Parse a ``--command-config`` file of Kafka's tools (Java properties), and interpret it for both Python clients."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials.jaas import parse_jaas
from migrate_groups.kafka.credentials.oauth import ClientCredentials
from migrate_groups.kafka.credentials.pem import certificates, private_key, read_store
from migrate_groups.kafka.credentials.security import Password, Security, Tls

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
# By property, the values that name what this package does anyway, so that setting them changes nothing.
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_AS_HERE = {
    "ssl.keystore.type": {"PEM"},
    "ssl.truststore.type": {"PEM"},
    "sasl.login.callback.handler.class": {
        f"{_OAUTH}.OAuthBearerLoginCallbackHandler",
        f"{_OAUTH}.secured.OAuthBearerLoginCallbackHandler",
    },
    "sasl.oauthbearer.jwt.retriever.class": {
        f"{_OAUTH}.ClientCredentialsJwtRetriever",
        f"{_OAUTH}.DefaultJwtRetriever",
    },
}
# Properties that only affect speed, memory, or reading and writing records. Ignoring them does not change the outcome.
_TUNING = frozenset(
    """
    acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size buffer.memory check.crcs
    client.id client.rack compression.type connections.max.idle.ms delivery.timeout.ms enable.auto.commit
    enable.idempotence enable.metrics.push fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol heartbeat.interval.ms isolation.level key.deserializer key.serializer
    linger.ms max.block.ms max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms
    max.poll.records max.request.size metadata.max.age.ms metadata.max.idle.ms metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms partition.assignment.strategy
    partitioner.class receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms retries
    retry.backoff.max.ms retry.backoff.ms sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    send.buffer.bytes session.timeout.ms socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms transaction.timeout.ms transactional.id value.deserializer
    value.serializer
    """.split()  # noqa: SIM905  a list of quoted names would fill two screens
)
_SECRET = re.compile(
    r"(sasl\.jaas\.config|\.key|password|passphrase|secret|credentials?|token|user\.info)$", re.IGNORECASE
)
# Errors quote only these values, because a backslash at a line's end may have joined a secret to any other value.
_HARMLESS = frozenset(("GSSAPI", "AWS_MSK_IAM", "SCRAM-SHA-1", "TLS", "JKS", "PKCS12", *_PROTOCOLS, *_LOGIN_MODULES))
_ANOTHER = re.compile(r"(?:sasl|ssl|security|bootstrap)\.[a-z][a-z.]*[ \t]*[=:]")


class ClientProperties(NamedTuple):
    """The bootstrap servers and security settings of a properties file, and the keys that this package ignores."""

    bootstrap_servers: str
    security: Security
    not_used: tuple[str, ...]


def parse_properties(text: str, where: str) -> dict[str, str]:
    """Return the keys and values of a Java properties text.

    Raises `InvalidInput` if an escape is malformed, or if a value contains the property of the next line, because of a
    backslash at the line's end. ``where`` names the text in errors.
    """
    import javaproperties  # imported here because it takes 30 ms

    try:
        found = dict(javaproperties.loads(text))
    except javaproperties.InvalidUEscapeError as error:
        raise InvalidInput(f"{where}: a \\u is not followed by four hexadecimal digits") from error
    for key, value in found.items():
        if key != "sasl.jaas.config" and _ANOTHER.search(value):
            raise InvalidInput(
                f"{where}: the value of {key} has another property in it; remove the \\ at its line's end"
            )
    return found


def is_secret(key: str) -> bool:
    """Return whether the value of a property is or contains a secret."""
    return bool(_SECRET.search(key))


def understand(properties: Mapping[str, str]) -> ClientProperties:
    """Return the settings that these properties mean. Raises `InvalidInput`, which never quotes a secret."""
    given = _Given(properties)
    protocol = given.take("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise InvalidInput(f"security.protocol is {_told(protocol)}; expected one of {', '.join(_PROTOCOLS)}")
    security = Security(
        tls=_tls(given) if protocol.endswith("SSL") else None,
        login=_login(given) if protocol.startswith("SASL") else None,
    )
    return ClientProperties(given.take("bootstrap.servers"), security, given.not_used())


class _Given:
    """The properties of a file; it remembers which of them were not used."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        used_anyway = {key for key, value in values.items() if key in _TUNING or value.strip() in _AS_HERE.get(key, ())}
        self._unused = dict.fromkeys(values.keys() - used_anyway)

    def take(self, key: str, default: str = "") -> str:
        """Return a value without white space around it, and mark it as used."""
        self._unused.pop(key, None)
        return self._values.get(key, default).strip()

    def take_all(self, prefix: str) -> dict[str, str]:
        """Return the values of all keys that begin with ``prefix``, by the rest of the key; mark them as used."""
        return {key.removeprefix(prefix): self.take(key) for key in self._values if key.startswith(prefix)}

    def add_unused(self, keys: Iterable[str]) -> None:
        """Add keys that were not used."""
        self._unused |= dict.fromkeys(keys)

    def not_used(self) -> tuple[str, ...]:
        """Return the keys of the given client properties that nothing has read yet, sorted."""
        return tuple(sorted(self._unused))


def _told(value: str) -> str:
    """Return a property's value for an error message; ``something else`` if it may be a secret."""
    return value if value in _HARMLESS else "something else"


def _tls(given: _Given) -> Tls:
    algorithm = given.take("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("https", ""):
        raise InvalidInput("ssl.endpoint.identification.algorithm is neither https nor empty, which is for none")
    chain, key = _own(given)
    return Tls(
        trusted=_trusted(given),
        certificates=chain,
        key=key,
        key_password=given.take("ssl.key.password") or None,
        check_host_name=bool(algorithm),
    )


def _trusted(given: _Given) -> str | None:
    if inline := given.take("ssl.truststore.certificates"):
        return certificates(inline, "ssl.truststore.certificates")
    if location := given.take("ssl.truststore.location"):
        return certificates(read_store(location, "truststore"), "ssl.truststore.location")
    return None


def _own(given: _Given) -> tuple[str | None, str | None]:
    """Return the client's own certificate chain and private key, or None for both."""
    if inline := given.take("ssl.keystore.key"):
        chain = given.take("ssl.keystore.certificate.chain")
        return certificates(chain, "ssl.keystore.certificate.chain"), private_key(inline, "ssl.keystore.key")
    if location := given.take("ssl.keystore.location"):
        store, where = read_store(location, "keystore"), "ssl.keystore.location"
        return certificates(store, where), private_key(store, where)
    return None, None


def _login(given: _Given) -> Password | ClientCredentials:
    mechanism = given.take("sasl.mechanism", "GSSAPI")
    if mechanism not in _LOGIN_MODULES:
        raise InvalidInput(f"sasl.mechanism is {_told(mechanism)}; taken here are {', '.join(_LOGIN_MODULES)}")
    options = _jaas_options(given.take("sasl.jaas.config"), mechanism)
    login = _client_credentials(given, options) if mechanism == "OAUTHBEARER" else _password(mechanism, options)
    given.add_unused(f"{option} in sasl.jaas.config" for option in options.not_used())
    return login


def _jaas_options(text: str, mechanism: str) -> _Given:
    if not text:
        return _Given({})
    entry = parse_jaas(text)
    if entry.module != _LOGIN_MODULES[mechanism]:
        of = next((name for name, module in _LOGIN_MODULES.items() if module == entry.module), "another mechanism")
        raise InvalidInput(f"sasl.jaas.config is for {of}; {mechanism} takes {_LOGIN_MODULES[mechanism]}")
    return _Given(entry.options)


def _password(mechanism: str, options: _Given) -> Password:
    username, password = options.take("username"), options.take("password")
    if not username or not password:
        raise InvalidInput(f"{mechanism} needs a username and a password in sasl.jaas.config")
    return Password(mechanism=mechanism, username=username, password=password)


def _client_credentials(given: _Given, options: _Given) -> ClientCredentials:
    """Return the OAuth client's id and secret, from properties (KIP-1139, Kafka 4.1) or from JAAS options (KIP-768)."""
    endpoint = given.take("sasl.oauthbearer.token.endpoint.url")
    own = "sasl.oauthbearer.client.credentials"
    client_id = given.take(f"{own}.client.id") or options.take("clientId")
    client_secret = given.take(f"{own}.client.secret") or options.take("clientSecret")
    if not endpoint.startswith(("https://", "http://")):
        raise InvalidInput(
            "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url, the http(s) address of a token server"
        )
    if not client_id or not client_secret:
        raise InvalidInput(
            f"OAUTHBEARER needs {own}.client.id and .secret, or clientId and clientSecret in sasl.jaas.config"
        )
    return ClientCredentials(
        endpoint=endpoint,
        client_id=client_id,
        client_secret=client_secret,
        scope=given.take("sasl.oauthbearer.scope") or options.take("scope") or None,
        extensions=options.take_all("extension_"),
        trusted=_trusted(options),
    )
