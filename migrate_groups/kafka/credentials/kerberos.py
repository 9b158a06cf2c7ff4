"""SASL GSSAPI (Kerberos) for kafka-python, with a ticket cache or a keytab. It needs the extra ``kerberos``."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

from migrate_groups.errors import INSTALL_KERBEROS, ClusterUnavailable, MissingDependency
from migrate_groups.kafka.credentials.properties import Properties

_WITHOUT_EFFECT = (
    *("clearPass", "debug", "doNotPrompt", "isInitiator", "refreshKrb5Config", "renewTGT", "storeKey", "storePass"),
    *("tryFirstPass", "useFirstPass"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kerberos:
    """A login with Kerberos tickets, from a keytab or from a ticket cache.

    service: the service name of the brokers' principal, such as ``kafka``. client: the client's principal; None: the
    ticket cache's principal. keytab: a path; None: a ticket cache is used. ticket_cache: a path; None: the default
    cache.
    """

    mechanism = "GSSAPI"
    second_client_lacks = "confluent-kafka's wheel has no GSSAPI (Kerberos)"
    service: str
    client: str | None = None
    keytab: str | None = None
    ticket_cache: str | None = None

    @property
    def principal(self) -> str:
        """A description of the client's principal, such as ``Kerberos principal alice@EXAMPLE.COM``."""
        # The name in Kafka's ACLs is not known, because the brokers shorten the principal by their rules.
        return f"Kerberos principal {self.client}" if self.client else "the Kerberos principal of the ticket cache"

    def kafka_python(self) -> dict[str, Any]:
        """Return this login as configuration for kafka-python."""
        register_sasl_mechanism("GSSAPI", _Gssapi, overwrite=True)
        return {"sasl_kerberos_name": self}

    def confluent(self) -> dict[str, Any]:
        """Raise `ClusterUnavailable`, because confluent-kafka can't log in with Kerberos."""
        raise ClusterUnavailable(f"the second client can't log in: {self.second_client_lacks}")

    def begin(self, host: str) -> tuple[str, Any, bytes]:
        """Begin a login to a broker: return the service's name, the security context, and the context's first token.

        Raises `ClusterUnavailable` if there is no valid Kerberos ticket.
        """
        import gssapi

        service = f"{self.service}@{host}"
        store = {"client_keytab": f"FILE:{self.keytab}", "ccache": f"MEMORY:{hash(self)}"} if self.keytab else {}
        store |= {"ccache": f"FILE:{self.ticket_cache}"} if self.ticket_cache else {}
        try:
            client = gssapi.Name(self.client, gssapi.NameType.kerberos_principal) if self.client else None
            credentials = gssapi.Credentials(name=client, usage="initiate", store=store or None)
            name = gssapi.Name(service, gssapi.NameType.hostbased_service).canonicalize(gssapi.MechType.kerberos)
            context = gssapi.SecurityContext(name=name, creds=credentials, usage="initiate")
            return service, context, context.step(None)
        except gssapi.exceptions.GSSError as error:
            cure = "check the keytab and its principal" if self.keytab else "run kinit"
            raise ClusterUnavailable(f"no valid Kerberos ticket ({' '.join(str(error).split())}): {cure}") from error


# kafka-python's own class uses only the default ticket cache.
class _Gssapi(SaslMechanismGSSAPI):  # type: ignore[misc]  # kafka-python has no types
    """Logs in to a broker with GSSAPI (Kerberos), with tickets from a keytab or from any ticket cache."""

    def __init__(self, **config: Any) -> None:
        login: Any = config.get("sasl_kerberos_name")
        if not hasattr(login, "begin"):
            super().__init__(**config)  # for a client of another package in this process
            return
        self._is_done = self._is_authenticated = False
        with _refused():
            self.auth_id, self._client_ctx, self._next_token = login.begin(config["host"])

    def receive(self, auth_bytes: bytes) -> None:
        """Process the broker's answer."""
        with _refused():
            super().receive(auth_bytes)

    def auth_details(self) -> str:
        """Return a text about the login for kafka-python's log."""
        # kafka-python's own method needs the security context, which may have expired.
        return f"Authenticated to {self.auth_id} via SASL / GSSAPI"


@contextmanager
def _refused() -> Iterator[None]:
    """Turn any error of the ``with`` block into `SaslAuthenticationFailedError`."""
    try:
        yield
    # Every exception, because the errors of gssapi can't be named without an import of gssapi.
    except Exception as error:
        raise SaslAuthenticationFailedError(" ".join(str(error).split())) from error


def kerberos(properties: Properties, options: Properties) -> Kerberos:
    """Return the Kerberos login that client properties and JAAS options describe.

    properties: the client properties. options: the JAAS options of Java's Krb5LoginModule. Raises `MissingDependency`
    if the extra ``kerberos`` is not installed.
    """
    if importlib.util.find_spec("gssapi") is None:
        raise MissingDependency(f"Kerberos needs a package that is not installed: {INSTALL_KERBEROS}")
    for option in _WITHOUT_EFFECT:
        options.take(option)
    uses_keytab = options.take("useKeyTab", "false").lower() == "true"
    uses_cache = options.take("useTicketCache", "false").lower() == "true"
    keytab, cache = options.take("keyTab"), options.take("ticketCache")
    return Kerberos(
        service=properties.take("sasl.kerberos.service.name") or options.take("serviceName") or "kafka",
        client=options.take("principal") or properties.take("sasl.kerberos.principal") or None,
        keytab=(keytab if uses_keytab else "") or properties.take("sasl.kerberos.keytab") or None,
        ticket_cache=cache if uses_cache and cache else None,
    )
