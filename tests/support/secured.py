"""A broker with every kind of listener and an authorizer, a client.properties for each mode, and a token server."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from migrate_groups.sandbox.broker import Sandbox, start_sandbox

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
    "client": "client-hidden-5",
}


def jaas(module: str, **options: str) -> str:
    """Return a JAAS entry, escaped as JAAS requires."""
    quoted = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in options.items()}
    return " ".join([f"{MODULES}.{module}", "required", *(f'{name}="{value}"' for name, value in quoted.items())]) + ";"


def properties_text(**properties: str) -> str:
    """Return a properties file, escaped as the format requires; a ``_`` in a name becomes a dot."""
    escaped = {
        name.replace("_", "."): value.replace("\\", "\\\\").replace("\n", "\\n") for name, value in properties.items()
    }
    return "".join(f"{name}={value}\n" for name, value in escaped.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """The broker; ``folder`` contains the certificates, ``tokens`` is the URL of the token server."""

    sandbox: Sandbox
    folder: Path
    tokens: str

    def address(self, listener: str) -> str:
        return self.sandbox.bootstrap_servers if listener == "PLAINTEXT" else self.sandbox.node.listeners[listener]

    def pem(self, name: str) -> str:
        return (self.folder / name).read_text()

    def trust(self) -> dict[str, str]:
        return {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(self.folder / "ca.pem")}

    def _trust_in_jaas(self) -> dict[str, str]:
        """Return the options for trusting the token server: they stand in JAAS, separate from those for the broker."""
        return {name.replace("_", "."): value for name, value in self.trust().items()}

    def login(self, mechanism: str, password: str | None = None, user: str = "alice") -> dict[str, str]:
        """Return the properties of a login; for OAUTHBEARER in the form of Kafka before 4.1."""
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
        """Return every mode with its listener and the client's properties."""
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
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"):
            modes[f"SASL_PLAINTEXT {mechanism}"] = ("SASL_PLAINTEXT", self.login(mechanism))
            login = credentials if mechanism == "OAUTHBEARER" else self.login(mechanism)
            modes[f"SASL_SSL {mechanism}"] = ("SASL_SSL", {**self.trust(), **login})
        return {
            name: (listener, {"security_protocol": LISTENERS.get(listener, listener), **properties})
            for name, (listener, properties) in modes.items()
        }


MODES = [
    *("PLAINTEXT", "SSL", "mutual TLS, files", "mutual TLS, inline"),
    *(f"{protocol} {mechanism}" for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for mechanism in
      ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")),
]  # fmt: skip


@contextmanager
def start_secured(kafka_jars, java, folder: Path) -> Iterator[Secured]:
    """Start the broker. Its users may do everything, except ``User:least``, who may do only what ACLs allow."""
    _make_certificates(folder)
    signing_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (folder / "jwks.json").write_text(json.dumps({"keys": [_public(signing_key)]}))
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
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": (
                f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
        }
    scram = [
        f"{mechanism}=[name=alice,password={SECRETS[mechanism]}]" for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    ]
    with _token_server(signing_key, folder / "server.pem") as tokens, ExitStack() as running:
        with pytest.MonkeyPatch.context() as patch:  # for this one process only
            patch.setenv("JDK_JAVA_OPTIONS", f"{ALLOWED_URLS}={(folder / 'jwks.json').as_uri()}")
            sandbox = running.enter_context(
                start_sandbox(kafka_jars, java=java, settings=settings, listeners=LISTENERS, scram_credentials=scram)
            )
        yield Secured(sandbox=sandbox, folder=folder, tokens=tokens)


def _make_certificates(folder: Path) -> None:
    """Write the certificates as PEM files.

    - ca.pem, and other.pem, an authority that is not trusted;
    - server.pem, valid for 127.0.0.1 only;
    - client.pem, issued by an intermediate authority, and locked.pem, the same with an encrypted key.
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


class _Tokens(BaseHTTPRequestHandler):
    """Gives a token to a client that sends the right secret."""

    signing_key: rsa.RSAPrivateKey

    def do_POST(self) -> None:
        basic = base64.b64encode(f"app:{SECRETS['client']}".encode()).decode()
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.headers["Authorization"] != f"Basic {basic}" or body != "grant_type=client_credentials&scope=kafka":
            self._answer(401, {"error": "invalid_client"})
            return
        now = int(time.time())
        claims = {"sub": "app", "iat": now, "exp": now + 3600, "scope": "kafka"}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "test"}, claims))
        signature = self.signing_key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        token = f"{signed}.{_base64(signature)}"
        self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600})

    def _answer(self, status: int, content: dict[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _public(key: rsa.RSAPrivateKey) -> dict[str, str]:
    """Return the public key as a JSON Web Key."""
    numbers = key.public_key().public_numbers()
    n, e = (_base64(number.to_bytes((number.bit_length() + 7) // 8)) for number in (numbers.n, numbers.e))
    return {"kty": "RSA", "kid": "test", "alg": "RS256", "use": "sig", "n": n, "e": e}


@contextmanager
def _token_server(signing_key: rsa.RSAPrivateKey, certificate: Path) -> Iterator[str]:
    handler = type("Tokens", (_Tokens,), {"signing_key": signing_key})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}/token"
        finally:
            server.shutdown()
            thread.join()
