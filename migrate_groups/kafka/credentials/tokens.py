"""Get SASL OAUTHBEARER tokens from an OAuth token server (RFC 6749, RFC 7523) or from a file."""

from __future__ import annotations

import base64
import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from migrate_groups.kafka.credentials.assertion import Assertion
from migrate_groups.kafka.credentials.oauth import NoToken, Token, now

_SECONDS = 10.0
_MOST_BYTES = 2**20
"""The longest answer of a token server, and the longest token file, that is read."""
_URN = "urn:ietf:params:oauth"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecret:
    """The OAuth grant ``client_credentials`` of a client that proves its identity with a secret (RFC 6749, 2.3.1).

    url_encoded: whether client id and secret are URL-encoded in the HTTP header, as the RFC demands and few servers
    expect.
    """

    client_id: str
    secret: str = field(repr=False)
    url_encoded: bool = False

    def form(self) -> dict[str, str]:
        """Return the fields of the request to the token server."""
        return {"grant_type": "client_credentials"}

    def headers(self) -> dict[str, str]:
        """Return the HTTP headers of the request to the token server."""
        pair = [self.client_id, self.secret]
        if self.url_encoded:
            pair = list(map(urllib.parse.quote_plus, pair))
        return {"Authorization": f"Basic {base64.b64encode(':'.join(pair).encode()).decode()}"}

    @property
    def principal(self) -> str:
        """A description of the client's principal, such as ``the principal of OAuth client my-app``."""
        return f"the principal of OAuth client {self.client_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAssertion:
    """The OAuth grant ``client_credentials`` of a client that proves its identity with a signed JSON Web Token.

    Sources: RFC 7523, 2.2; KIP-1258.
    """

    assertion: Assertion
    client_id: str = ""

    def form(self) -> dict[str, str]:
        """Return the form fields for the token server. Raises `NoToken` if the JWT can't be read or signed."""
        client = {"client_id": self.client_id} if self.client_id else {}
        return {
            "grant_type": "client_credentials",
            "client_assertion_type": f"{_URN}:client-assertion-type:jwt-bearer",
            "client_assertion": self.assertion.text(),
            **client,
        }

    def headers(self) -> dict[str, str]:
        """Return the HTTP headers of the request to the token server."""
        return {}

    @property
    def principal(self) -> str:
        """A description of the client's principal, such as ``the principal of OAuth client my-app``."""
        return f"the principal of OAuth client {self.client_id}" if self.client_id else "the OAuth client's principal"


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtBearer:
    """The OAuth grant ``jwt-bearer``: a signed JSON Web Token is exchanged for an access token (RFC 7523; KIP-1139)."""

    assertion: Assertion
    principal = "the principal of the OAuth assertion"

    def form(self) -> dict[str, str]:
        """Return the form fields for the token server. Raises `NoToken` if the JWT can't be read or signed."""
        return {"grant_type": f"{_URN}:grant-type:jwt-bearer", "assertion": self.assertion.text()}

    def headers(self) -> dict[str, str]:
        """Return the HTTP headers of the request to the token server."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenServer:
    """An OAuth token server, and the grant with which a token is requested.

    trusted: the certificates to trust, as PEM; None: those that this machine trusts. The environment variables
    ``https_proxy``, ``http_proxy`` and ``no_proxy`` are used.
    """

    endpoint: str
    grant: ClientSecret | ClientAssertion | JwtBearer
    scope: str | None = None
    trusted: str | None = field(default=None, repr=False)

    @property
    def principal(self) -> str:
        """A description of the client's principal, such as ``the principal of OAuth client my-app``."""
        return self.grant.principal

    def fetch(self) -> Token:
        """Return a new OAuth token. Raises `NoToken`, with the reason, if none can be obtained."""
        import ssl

        where = f"the token server {urllib.parse.urlsplit(self.endpoint).hostname}"
        form = self.grant.form() | ({"scope": self.scope} if self.scope else {})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        with said_no(where):
            context = ssl.create_default_context(cadata=self.trusted)
            request = urllib.request.Request(  # noqa: S310  http(s) only
                self.endpoint, urllib.parse.urlencode(form).encode(), headers | self.grant.headers()
            )
            status, content = open_url(request, urllib.request.HTTPSHandler(context=context))
        return token_in(status, content, where)


@contextmanager
def said_no(where: str) -> Iterator[None]:
    """Turn an error of the connection to a server into `NoToken`. where: names the server in the message."""
    try:
        yield
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise NoToken(f"{where} gave no token: {' '.join(str(reason).split())}") from error


def open_url(request: urllib.request.Request, handler: urllib.request.BaseHandler) -> tuple[int, bytes]:
    """Send a request without following redirects. Return the HTTP status and the content of the answer.

    Raises `ValueError` if the answer is longer than 1 MiB; ``OSError`` or ``HTTPException`` if there is none.
    """
    try:
        with urllib.request.build_opener(handler, _NoRedirects).open(request, timeout=_SECONDS) as response:
            return response.status, _bounded(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _bounded(error)


def _bounded(stream: IO[bytes]) -> bytes:
    content = stream.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError("the answer is longer than 1 MiB")
    return content


def token_in(status: int, content: bytes, where: str) -> Token:
    """Return the token in a token server's answer. Raises `NoToken`, with the server's error, if there is none.

    where: names the server in the message.
    """
    try:
        answer = json.loads(content)
        if status == http.HTTPStatus.OK:
            return Token(str(answer["access_token"]), float(answer.get("expires_in", 0)))
        said = str(answer.get("error", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        said = "without an access_token" if status == http.HTTPStatus.OK else ""
    raise NoToken(f"{where} gave no token: HTTP {status} {said}".rstrip())


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, because that would send the client's secret to another server."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFile:
    """A file that contains an OAuth token, which another program renews. It is read again for each connection."""

    path: str
    principal = "the principal of the OAuth token file"

    def fetch(self) -> Token:
        """Return the token in the file. Raises `NoToken` if the file can't be read or has no valid token."""
        try:
            with Path(self.path).open("rb") as file:
                token = _bounded(file).decode("ascii").strip()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a token"
            raise NoToken(f"the token file can't be read ({reason})") from error
        seconds = _seconds_left(token)
        if not token or (seconds is not None and seconds <= 0):
            raise NoToken(f"the token file {'has an expired token' if token else 'is empty'}")
        # Without a lifetime the token is used once, because the file may get a newer one long before this one expires.
        return Token(token, None)


def _seconds_left(token: str) -> float | None:
    """Return the seconds until a JSON Web Token expires; None if the text has no expiry."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"]) - now()
    except (IndexError, KeyError, TypeError, ValueError):
        return None
