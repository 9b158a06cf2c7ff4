"""A broker with an authorizer and a listener for each security protocol, client properties, and a token server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from migrate_groups.sandbox.broker import Sandbox, start_sandbox
from tests.support import keystores
from tests.support.token_server import CLIENT_SECRET, TokenServer, public, token_server

ALLOWED_URLS = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls"
MODULES = "org.apache.kafka.common.security"
LISTENERS = {"SSL": "SSL", "MTLS": "SSL", "SASL_PLAINTEXT": "SASL_PLAINTEXT", "SASL_SSL": "SASL_SSL"}
# Contains every character that has a meaning in properties files and in JAAS.
ODD_PASSWORD = "p\"a's=s; \\w#o:r\\d!"
SECRETS = {
    "alice": ODD_PASSWORD,
    "least": "least-hidden-1",
    "SCRAM-SHA-256": "scram-hidden-2",
    "SCRAM-SHA-512": "scram-hidden-3",
    "key": "key=hid;den-4",
    "client": CLIENT_SECRET,
    "store": keystores.PASSWORD,
    "key of JKS": keystores.KEY_PASSWORD,
}


def jaas(module: str, **options: str) -> str:
    """Return a JAAS entry for a login module with these options, escaped as JAAS requires."""
    quoted = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in options.items()}
    return " ".join([f"{MODULES}.{module}", "required", *(f'{name}="{value}"' for name, value in quoted.items())]) + ";"


def properties_text(**properties: str) -> str:
    """Return the text of a properties file, escaped as the format requires. A ``_`` in a name becomes a dot."""
    escaped = {
        name.replace("_", "."): value.replace("\\", "\\\\").replace("\n", "\\n") for name, value in properties.items()
    }
    return "".join(f"{name}={value}\n" for name, value in escaped.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """A running broker with a listener for each security protocol.

    folder: the folder of the certificates. server: the token server. tokens: the token server's URL.
    """

    sandbox: Sandbox
    folder: Path
    tokens: str
    server: TokenServer

    def address(self, listener: str) -> str:
        return self.sandbox.bootstrap_servers if listener == "PLAINTEXT" else self.sandbox.node.listeners[listener]

    def pem(self, name: str) -> str:
        return (self.folder / name).read_text()

    def trust(self) -> dict[str, str]:
        return {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(self.folder / "ca.pem")}

    def store(self, kind: str, name: str, password: str = keystores.PASSWORD) -> dict[str, str]:
        """Return the properties of a truststore or keystore that keytool wrote."""
        return {f"ssl_{kind}_location": str(self.folder / name), f"ssl_{kind}_password": password}

    def _trust_in_jaas(self) -> dict[str, str]:
        """Return the JAAS options with which a client trusts the token server."""
        return {name.replace("_", "."): value for name, value in self.trust().items()}

    def login(self, mechanism: str, password: str | None = None, user: str = "alice") -> dict[str, str]:
        """Return a login's client properties. For OAUTHBEARER, JAAS contains id and secret, as before Kafka 4.1."""
        if mechanism == "OAUTHBEARER":
            options = {"clientId": "app", "clientSecret": password or SECRETS["client"], "scope": "kafka"}
            options |= self._trust_in_jaas()
            return {
                "sasl_mechanism": mechanism,
                "sasl_oauthbearer_token_endpoint_url": self.tokens,
                "sasl_login_callback_handler_class": f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
                "sasl_jaas_config": jaas("oauthbearer.OAuthBearerLoginModule", **options),
            }
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        secret = password or SECRETS[user if mechanism == "PLAIN" else mechanism]
        return {"sasl_mechanism": mechanism, "sasl_jaas_config": jaas(module, username=user, password=secret)}

    def modes(self) -> dict[str, tuple[str, dict[str, str]]]:
        """Return the modes (protocol and login) by name; for each the listener's name and the client's properties."""
        inline = self.pem("client.pem")
        at = inline.index("-----BEGIN CERTIFICATE")
        own = {"ssl_keystore_type": "PEM"}
        credentials = {
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauthbearer_token_endpoint_url": self.tokens,
            "sasl_login_callback_handler_class": f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl_oauthbearer_jwt_retriever_class": f"{MODULES}.oauthbearer.ClientCredentialsJwtRetriever",
            "sasl_oauthbearer_client_credentials_client_id": "app",
            "sasl_oauthbearer_client_credentials_client_secret": SECRETS["client"],
            "sasl_oauthbearer_scope": "kafka",
            "sasl_jaas_config": jaas("oauthbearer.OAuthBearerLoginModule", **self._trust_in_jaas()),
        }
        modes = {
            "PLAINTEXT": ("PLAINTEXT", {}),
            "SSL": ("SSL", self.trust()),
            "mutual TLS, files": (
                "MTLS",
                {**self.trust(), **own, "ssl_keystore_location": str(self.folder / "client.pem")},
            ),
            "mutual TLS, inline": (
                "MTLS",
                {
                    "ssl_truststore_type": "PEM",
                    "ssl_truststore_certificates": self.pem("ca.pem"),
                    **own,
                    "ssl_keystore_key": inline[:at],
                    "ssl_keystore_certificate_chain": inline[at:],
                },
            ),
        }
        stores = {
            "JKS": {**self.store("truststore", "trust.jks"), **self.store("keystore", "client.jks")},
            "PKCS12": {**self.store("truststore", "trusted.jks"), **self.store("keystore", "client.p12")},
        }
        stores["JKS"]["ssl_key_password"] = SECRETS["key of JKS"]
        stores["PKCS12"]["ssl_keystore_type"] = "PKCS12"
        modes |= {f"mutual TLS, {kind}": ("MTLS", properties) for kind, properties in stores.items()}
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"):
            modes[f"SASL_PLAINTEXT {mechanism}"] = ("SASL_PLAINTEXT", self.login(mechanism))
            login = credentials if mechanism == "OAUTHBEARER" else self.login(mechanism)
            modes[f"SASL_SSL {mechanism}"] = ("SASL_SSL", {**self.trust(), **login})
        return {
            name: (listener, {"security_protocol": LISTENERS.get(listener, listener), **properties})
            for name, (listener, properties) in modes.items()
        }


# All run with ``--long``; the first eight cover each protocol, mechanism and way to name a certificate.
MODES = [
    *("PLAINTEXT", "SSL", "mutual TLS, inline", "mutual TLS, JKS"),
    *("SASL_PLAINTEXT SCRAM-SHA-256", "SASL_SSL PLAIN", "SASL_SSL SCRAM-SHA-512", "SASL_SSL OAUTHBEARER"),
    *(pytest.param(mode, marks=pytest.mark.long) for mode in (
        *("mutual TLS, files", "mutual TLS, PKCS12", "SASL_PLAINTEXT PLAIN", "SASL_PLAINTEXT SCRAM-SHA-512"),
        *("SASL_PLAINTEXT OAUTHBEARER", "SASL_SSL SCRAM-SHA-256"),
    )),
]  # fmt: skip


@contextmanager
def start_secured(kafka_jars, java, folder: Path) -> Iterator[Secured]:
    """Run a broker with a listener for each security protocol, for the length of a ``with`` block.

    All users may do everything, except ``User:least``, who may do only what ACLs allow.
    """
    _make_certificates(folder)
    keystores.write_keystores(java, folder)
    signing_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (folder / "jwks.json").write_text(json.dumps({"keys": [public(signing_key)]}))
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice;User:client;User:app",
        "ssl.principal.mapping.rules": "RULE:.*CN=(client).*/$1/",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.mtls.ssl.client.auth": "required",
        "sasl.oauthbearer.jwks.endpoint.url": (folder / "jwks.json").as_uri(),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    }
    users = {"user_alice": SECRETS["alice"], "user_least": SECRETS["least"]}
    for listener in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{listener}"
        settings |= {
            f"{prefix}.plain.sasl.jaas.config": jaas("plain.PlainLoginModule", **users),
            f"{prefix}.scram-sha-256.sasl.jaas.config": jaas("scram.ScramLoginModule"),
            f"{prefix}.scram-sha-512.sasl.jaas.config": jaas("scram.ScramLoginModule"),
            f"{prefix}.oauthbearer.sasl.jaas.config": jaas(
                "oauthbearer.OAuthBearerLoginModule", unsecuredLoginStringClaim_sub="broker"
            ),
            f"{prefix}.oauthbearer.connections.max.reauth.ms": "3600000",  # a session ends with its token
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": (
                f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
        }
    scram = [
        f"{mechanism}=[name=alice,password={SECRETS[mechanism]}]" for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    ]
    with token_server(signing_key, folder) as tokens, ExitStack() as running:
        with pytest.MonkeyPatch.context() as patch:  # for this one process only
            patch.setenv("JDK_JAVA_OPTIONS", f"{ALLOWED_URLS}={(folder / 'jwks.json').as_uri()}")
            sandbox = running.enter_context(
                start_sandbox(kafka_jars, java=java, settings=settings, listeners=LISTENERS, scram_credentials=scram)
            )
        yield Secured(sandbox=sandbox, folder=folder, tokens=tokens.url, server=tokens)


def _make_certificates(folder: Path) -> None:
    """Write the certificates of the broker and its clients as PEM files.

    - ca.pem: the trusted authority. other.pem: an authority that is not trusted.
    - server.pem: the broker's certificate, valid for 127.0.0.1 only.
    - client.pem: the client's certificate, issued by an intermediate authority, and its key. locked.pem: the same with
      an encrypted key.
    """
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    other.cert_pem.write_to_path(folder / "other.pem")
    client = authority.create_child_ca().issue_cert("client.example", common_name="client")
    for name, leaf, password in (
        ("server.pem", authority.issue_cert("127.0.0.1"), None),
        ("client.pem", client, None),
        ("locked.pem", client, SECRETS["key"]),
    ):
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        (folder / name).write_bytes(pem + b"".join(each.bytes() for each in leaf.cert_chain_pems))
