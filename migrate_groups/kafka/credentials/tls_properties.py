"""Read the TLS properties: the trusted certificates, and the client's own certificate and private key."""

from __future__ import annotations

from pathlib import Path

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials import pem
from migrate_groups.kafka.credentials.given import Given, told
from migrate_groups.kafka.credentials.security import Tls
from migrate_groups.kafka.credentials.stores import TYPES, Store, to_pkcs12


def tls(given: Given) -> Tls:
    """Return the TLS settings in client properties. Raises `InvalidInput` if a property or its file can't be used."""
    algorithm = given.take("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("https", "none", ""):  # librdkafka has "none" where Kafka has an empty value
        raise InvalidInput(
            "ssl.endpoint.identification.algorithm is neither https nor empty: leave it empty to check no host name"
        )
    key_password = given.take("ssl.key.password") or None
    chain, key = _own(given, key_password)
    return Tls(
        trusted=trusted(given),
        certificates=chain,
        key=key,
        key_password=key_password,
        check_host_name=algorithm == "https",
    )


def trusted(given: Given) -> str | None:
    """Return the trusted certificates as PEM; None: those that this machine trusts.

    given: client properties or JAAS options. Raises `InvalidInput` if they name a truststore that can't be used.
    """
    if inline := given.take("ssl.truststore.certificates"):
        _check_type(given, "truststore")
        return pem.certificates(inline, given.written("ssl.truststore.certificates"))
    store = _store(given, "truststore")
    return store.trusted() if store else None


def _own(given: Given, key_password: str | None) -> tuple[str | None, str | None]:
    """Return the client's own certificate chain and private key as PEM; ``(None, None)`` if it has none."""
    if inline := given.take("ssl.keystore.key"):
        _check_type(given, "keystore")
        chain, where = given.take("ssl.keystore.certificate.chain"), given.written("ssl.keystore.certificate.chain")
        return pem.certificates(chain, where), pem.private_key(inline, given.written("ssl.keystore.key"))
    if store := _store(given, "keystore"):
        return store.own(key_password)
    of_chain, of_key = "ssl.certificate.location", "ssl.key.location"  # librdkafka reads them from two files
    chain, key = given.take(of_chain), given.take(of_key)
    if bool(chain) != bool(key):
        raise InvalidInput(f"only one of {of_chain} and {of_key} is given: give both")
    if chain:
        found = pem.certificates(read_file(chain, of_chain).decode(errors="replace"), of_chain)
        return found, pem.private_key(read_file(key, of_key).decode(errors="replace"), of_key)
    return None, None


def _store(given: Given, kind: str) -> Store | None:
    of_location, of_password = f"ssl.{kind}.location", f"ssl.{kind}.password"
    _check_type(given, kind)
    location, password = given.take(of_location), given.take(of_password) or None
    if not location:
        return None
    of_location = given.written(of_location)
    return Store(location, read_file(location, of_location), password, of_location, of_password)


def _check_type(given: Given, kind: str) -> None:
    """Raise `InvalidInput` if the properties name a type of truststore or keystore that is not supported.

    kind: ``truststore`` or ``keystore``.
    """
    # A supported type is ignored, because the content of a store shows its type.
    written = given.take(f"ssl.{kind}.type")
    if written and written.upper() not in TYPES:
        advice = to_pkcs12(given.take(f"ssl.{kind}.location")) if told(written) == written else "correct it"
        raise InvalidInput(f"ssl.{kind}.type is {told(written)}; supported are {', '.join(TYPES)}: {advice}")


def read_file(location: str, where: str) -> bytes:
    """Return the content of a file. Raises `InvalidInput` if the file can't be read.

    where: the property that names the file, for the error.
    """
    try:
        return Path(location).read_bytes()
    except (OSError, ValueError) as error:  # The path is not quoted, because it may contain a secret of the next line.
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise InvalidInput(
            f"{where} can't be read ({reason}): check the path and the permissions of the file"
        ) from error
