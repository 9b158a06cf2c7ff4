"""SASL GSSAPI (Kerberos) for kafka-python, with a ticket cache or a keytab. It needs the extra ``kerberos``."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

from migrate_groups.errors import INSTALL_KERBEROS, ClusterUnavailable, MissingDependency
from migrate_groups.kafka.credentials.given import Given

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
        from migrate_groups.kafka.credentials.kafka_python_login import use_our_gssapi

        use_our_gssapi()
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


def kerberos(given: Given, options: Given) -> Kerberos:
    """Return the Kerberos login that client properties and JAAS options describe.

    given: the client properties. options: the JAAS options of Java's Krb5LoginModule. Raises `MissingDependency` if the
    extra ``kerberos`` is not installed.
    """
    if importlib.util.find_spec("gssapi") is None:
        raise MissingDependency(f"Kerberos needs a package that is not installed: {INSTALL_KERBEROS}")
    for option in _WITHOUT_EFFECT:
        options.take(option)
    uses_keytab = options.take("useKeyTab", "false").lower() == "true"
    uses_cache = options.take("useTicketCache", "false").lower() == "true"
    keytab, cache = options.take("keyTab"), options.take("ticketCache")
    return Kerberos(
        service=given.take("sasl.kerberos.service.name") or options.take("serviceName") or "kafka",
        client=options.take("principal") or given.take("sasl.kerberos.principal") or None,
        keytab=(keytab if uses_keytab else "") or given.take("sasl.kerberos.keytab") or None,
        ticket_cache=cache if uses_cache and cache else None,
    )
