"""An OAuth token server over TLS, which checks the clients' credentials and signs JSON Web Tokens."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from jwt.algorithms import RSAAlgorithm

from tests.support.http_server import Handler, serving

CLIENT_SECRET = "client-hidden-5"
AUDIENCE = "https://tokens.example"
_URN = "urn:ietf:params:oauth"


class TokenServer:
    """The state of an OAuth token server, and the requests that it has answered with a token.

    lifetime: the seconds for which a token is valid. failing: the HTTP status of each answer; None: the server answers
    with a token.
    """

    def __init__(self, signing_key: rsa.RSAPrivateKey, folder: Path) -> None:
        self.url = ""
        self.lifetime = 3600
        self.failing: int | None = None
        self.requests: list[dict[str, str]] = []
        self._signing_key = signing_key
        client_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._client = client_key.public_key()
        pem = client_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (folder / "assertion.pem").write_bytes(pem)

    def token(self, lifetime: int) -> str:
        """Return a signed token. lifetime: the seconds until it expires."""
        now = int(time.time())
        claims = {"sub": "app", "iat": now, "exp": now + lifetime, "scope": "kafka"}
        return jwt.encode(claims, self._signing_key, "RS256", {"kid": "test"})

    def answer(self, form: dict[str, str], authorization: str | None) -> tuple[int, dict[str, object]]:
        """Return the HTTP status and the content of the answer to a request."""
        if self.failing:
            return self.failing, {"error": "temporarily_unavailable"}
        if not self._is_known(form, authorization):
            return 401, {"error": "invalid_client"}
        self.requests.append(form)
        return 200, {"access_token": self.token(self.lifetime), "token_type": "Bearer", "expires_in": self.lifetime}

    def _is_known(self, form: dict[str, str], authorization: str | None) -> bool:
        if form.get("scope") != "kafka":
            return False
        if form["grant_type"] == f"{_URN}:grant-type:jwt-bearer":
            return self._is_signed(form["assertion"])
        if form["grant_type"] != "client_credentials":
            return False
        if form.get("client_assertion_type") == f"{_URN}:client-assertion-type:jwt-bearer":
            return self._is_signed(form["client_assertion"])
        return authorization == f"Basic {base64.b64encode(f'app:{CLIENT_SECRET}'.encode()).decode()}"

    def _is_signed(self, assertion: str) -> bool:
        try:
            jwt.decode(
                assertion,
                self._client,
                ["RS256"],
                {"require": ["aud", "sub", "nbf", "exp"]},
                audience=AUDIENCE,
                subject="app",
            )
        except jwt.InvalidTokenError:
            return False
        return True


def public(key: rsa.RSAPrivateKey) -> dict[str, str]:
    """Return the public part of a key as a JSON Web Key."""
    return RSAAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": "test", "alg": "RS256", "use": "sig"}


@contextmanager
def token_server(signing_key: rsa.RSAPrivateKey, folder: Path) -> Iterator[TokenServer]:
    """Run an OAuth token server for the length of a ``with`` block.

    The server uses the certificate server.pem in ``folder``, and writes the key with which clients sign assertions to
    assertion.pem.
    """
    tokens = TokenServer(signing_key, folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    with serving(type("OfTokens", (_Handler,), {"tokens": tokens}), context) as url:
        tokens.url = f"{url}/token"
        yield tokens


@contextmanager
def metadata_server(answers: dict[str, str]) -> Iterator[tuple[str, list[tuple[str, Message]]]]:
    """Run a fake metadata server of a cloud. Yield its URL, and the path and headers of each request so far.

    answers: the answer for each path.
    """
    asked: list[tuple[str, Message]] = []

    class Metadata(Handler):
        def do_GET(self) -> None:  # noqa: N802 (the name that http.server calls)
            asked.append((self.path, self.headers))
            answer = answers.get(self.path.partition("?")[0])
            self.send(200 if answer else 400, (answer or json.dumps({"error": "invalid_request"})).encode())

    with serving(Metadata) as url:
        yield url, asked


class _Handler(Handler):
    tokens: TokenServer

    def do_POST(self) -> None:  # noqa: N802 (the name that http.server calls)
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        status, content = self.tokens.answer(form, self.headers["Authorization"])
        redirect = {"Location": self.tokens.url} if 300 <= status < 400 else {}
        self.send(status, json.dumps(content).encode(), Content_Type="application/json", **redirect)
