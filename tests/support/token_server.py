"""An OAuth token server over TLS, which checks the clients' credentials and signs JSON Web Tokens."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

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
        signed = ".".join(_base64(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "test"}, claims))
        signature = self._signing_key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64(signature)}"

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
        signed, _, signature = assertion.rpartition(".")
        try:
            self._client.verify(_bytes(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return False
        claims = json.loads(_bytes(signed.partition(".")[2]))
        return claims["aud"] == AUDIENCE and claims["sub"] == "app" and claims["nbf"] <= time.time() < claims["exp"]


def public(key: rsa.RSAPrivateKey) -> dict[str, str]:
    """Return the public part of a key as a JSON Web Key."""
    numbers = key.public_key().public_numbers()
    n, e = (_base64(number.to_bytes((number.bit_length() + 7) // 8)) for number in (numbers.n, numbers.e))
    return {"kty": "RSA", "kid": "test", "alg": "RS256", "use": "sig", "n": n, "e": e}


@contextmanager
def token_server(signing_key: rsa.RSAPrivateKey, folder: Path) -> Iterator[TokenServer]:
    """Run an OAuth token server for the length of a ``with`` block.

    The server uses the certificate server.pem in ``folder``, and writes the key with which clients sign assertions to
    assertion.pem.
    """
    tokens = TokenServer(signing_key, folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"tokens": tokens})) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        tokens.url = f"https://127.0.0.1:{server.server_port}/token"
        try:
            yield tokens
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def metadata_server(answers: dict[str, str]) -> Iterator[tuple[str, list[tuple[str, Message]]]]:
    """Run a fake metadata server of a cloud. Yield its URL, and the path and headers of each request so far.

    answers: the answer for each path.
    """
    asked: list[tuple[str, Message]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers))
            answer = answers.get(self.path.partition("?")[0])
            body = (answer or json.dumps({"error": "invalid_request"})).encode()
            self.send_response(200 if answer else 400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    tokens: TokenServer

    def do_POST(self) -> None:
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        status, content = self.tokens.answer(form, self.headers["Authorization"])
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if 300 <= status < 400:
            self.send_header("Location", self.tokens.url)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
