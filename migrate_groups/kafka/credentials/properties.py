"""Parse client properties (Java properties), and look them up under Kafka's names or librdkafka's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from migrate_groups.errors import InvalidInput
from migrate_groups.files.read import read_bytes, status
from migrate_groups.text import did_you_mean, is_unicode

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
# librdkafka's name of a property (as in files of kcat and confluent-kafka), and Kafka's name of the same property.
_LIBRDKAFKA = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.assertion.jwt.template.file": "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
# Values of properties that change nothing, because this package behaves like that anyway. They need no warning.
_AS_HERE = {
    "enable.ssl.certificate.verification": {"true"},
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
    retry.backoff.max.ms retry.backoff.ms sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.connect.timeout.ms
    sasl.login.read.timeout.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    send.buffer.bytes session.timeout.ms socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms transaction.timeout.ms transactional.id value.deserializer
    value.serializer
    """.split()  # noqa: SIM905  a list of quoted names would fill two screens
)
_READ = frozenset(
    """
    bootstrap.servers https.ca.location https.ca.pem sasl.jaas.config sasl.login.callback.handler.class sasl.mechanism
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.config sasl.oauthbearer.extensions
    sasl.oauthbearer.grant.type sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwt.retriever.class
    sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.method
    sasl.kerberos.keytab sasl.kerberos.principal sasl.kerberos.service.name
    sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url sasl.password sasl.username security.protocol
    ssl.certificate.location
    ssl.endpoint.identification.algorithm ssl.key.location ssl.key.password ssl.keystore.certificate.chain
    ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.truststore.certificates
    ssl.truststore.location ssl.truststore.password ssl.truststore.type
    """.split()  # noqa: SIM905
)
_SECRET = re.compile(
    r"(sasl\.jaas\.config|\.key(\.pem)?|password|passphrase|secret|credentials?|token|user\.info)$", re.IGNORECASE
)
# Errors quote no other values, because a value may contain the next line, with a secret, after a backslash.
_HARMLESS = frozenset(
    (
        *("AWS_MSK_IAM", "GSSAPI", "OAUTHBEARER", "PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        *("TLS", "JKS", "PKCS12", "PEM", "BCFKS", "BKS", "JCEKS", "UBER", *PROTOCOLS),
    )
)
# Only keys of this form are shown. Others may be secret: without escapes, Java reads each line of a PEM key as a key.
_SHOWN = re.compile(r"[a-z][a-z0-9._-]{0,99}|[A-Za-z.]{1,40} in sasl\.jaas\.config")
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_MOST_BYTES = 1_000_000
_ANOTHER = re.compile(r"(?:sasl|ssl|security|bootstrap)\.[a-z][a-z.]*[ \t]*[=:]")


def load_properties(path: Path) -> dict[str, str]:
    """Return the keys and values of a client.properties file. Its encoding is ISO 8859-1, as in Java.

    Raises `InvalidInput` if the file can't be read or parsed, is too large, or begins with a byte order mark.
    """
    file = status(path)
    if file is not None and file.st_size > _MOST_BYTES:
        raise InvalidInput(f"{path} is larger than {_MOST_BYTES:,} bytes: name a client.properties file")
    content = read_bytes(path)
    if content.startswith(_BYTE_ORDER_MARKS):
        raise InvalidInput(f"{path} begins with a byte order mark, with which Java can't read it: save it without one")
    return parse_properties(content.decode("latin-1"), str(path))


def parse_properties(text: str, where: str) -> dict[str, str]:
    """Return the keys and values of a Java properties text.

    where: names the text in errors. Raises `InvalidInput` if an escape is malformed, or if a backslash at the end
    of a line joins two properties.
    """
    import javaproperties  # imported here because it takes 30 ms

    try:
        properties = dict(javaproperties.loads(text))
    except javaproperties.InvalidUEscapeError as error:
        raise InvalidInput(
            f"{where}: a \\u is not followed by four hexadecimal digits: write \\\\u for a plain \\u"
        ) from error
    for key, value in properties.items():
        if key != "sasl.jaas.config" and _ANOTHER.search(value):
            raise InvalidInput(
                f"{where}: the value of {_shown(key)} contains another property: remove the \\ at the end of its line"
            )
    return properties


def is_secret(key: str) -> bool:
    """Return whether the value of a property is or contains a secret."""
    return bool(_SECRET.search(key))


def similar_property(key: str) -> str:
    """Return ``did you mean …?`` with the known properties that ``key`` resembles; empty if there are none.

    A known property after a prefix, such as ``spring.kafka.properties.``, is also recognised.
    """
    known = {*_READ, *_LIBRDKAFKA}
    if key in known:
        return ""
    if end := next((each for each in sorted(known) if key.endswith(f".{each}")), ""):
        return f"did you mean {end}?"
    # Only almost equal names, because the names of many of Kafka's properties are alike.
    return did_you_mean([key], known, likeness=0.9)


class Properties:
    """Client properties or JAAS options, by their names in Kafka. It keeps track of the keys that were not used.

    A key in librdkafka's spelling is stored under Kafka's name. Raises `InvalidInput` if both spellings have different
    values, or if a value can't be encoded as UTF-8.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        if wrong := [_shown(key) for key, value in values.items() if not is_unicode(value)]:
            raise InvalidInput(f"the value of {wrong[0]} is not UTF-8, or has half of a character: write it anew")
        self._written = {_LIBRDKAFKA[key]: key for key in values if key in _LIBRDKAFKA}
        for key, written in self._written.items():
            if values.get(key, values[written]) != values[written]:
                raise InvalidInput(f"{written} and {key} are the same property, with different values: remove one")
        values = {_LIBRDKAFKA.get(key, key): value for key, value in values.items()}
        self._values = values
        used_anyway = {key for key, value in values.items() if key in _TUNING or value.strip() in _AS_HERE.get(key, ())}
        self._unused = dict.fromkeys(values.keys() - used_anyway)

    def take(self, key: str, default: str = "") -> str:
        """Return the value of a key without white space around it, and mark the key as used."""
        self._unused.pop(key, None)
        return self._values.get(key, default).strip()

    def value(self, key: str) -> str:
        """Return the value of a key without white space around it. The key is not marked as used."""
        return self._values.get(key, "").strip()

    def written(self, key: str) -> str:
        """Return a property's name as the user wrote it, in librdkafka's spelling or Kafka's. key: Kafka's name."""
        return self._written.get(key, key)

    def take_all(self, prefix: str) -> dict[str, str]:
        """Return the values of all keys that begin with ``prefix``, and mark these keys as used.

        In the result the keys have no prefix.
        """
        return {key.removeprefix(prefix): self.take(key) for key in self._values if key.startswith(prefix)}

    def add_unused(self, keys: Iterable[str]) -> None:
        """Mark keys as not used, so that the user is warned about them."""
        self._unused |= dict.fromkeys(keys)

    def not_used(self) -> tuple[str, ...]:
        """Return the keys to warn about because they have no effect, sorted, as the user wrote them.

        A key that does not look like a property is replaced by a placeholder, because it may be part of a secret.
        """
        return tuple(sorted({_shown(self.written(key)) for key in self._unused}))


def _shown(key: str) -> str:
    return (
        key
        if _SHOWN.fullmatch(key)
        else "a line that is not a property (does the line before it lack a \\ at its end?)"
    )


def quoted(value: str) -> str:
    """Return a property's value for an error message, or ``an unknown value`` if it may be a secret."""
    return value if value in _HARMLESS else "an unknown value"
