"""The sources of OAuth tokens: a token server, a file, and the metadata servers of Azure and Google Cloud."""

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

from migrate_groups.kafka.credentials.grants import ClientAssertion, ClientSecret, JwtBearer
from migrate_groups.kafka.credentials.oauth import NoToken, Token, now

AZURE = "http://169.254.169.254/metadata/identity/oauth2/token"
_GOOGLE = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default"
_METADATA_SERVER = "the metadata server of this machine"
_SECONDS = 10.0
_MOST_BYTES = 2**20
"""The longest answer of a server, and the longest token file, that is read."""


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
        headers |= {"Authorization": self.grant.authorization} if self.grant.authorization else {}
        with _said_no(where):
            context = ssl.create_default_context(cadata=self.trusted)
            request = urllib.request.Request(  # noqa: S310  http(s) only
                self.endpoint, urllib.parse.urlencode(form).encode(), headers
            )
            status, content = _open_url(request, urllib.request.HTTPSHandler(context=context))
        return _token_in(status, content, where)


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureMetadata:
    """The source of the tokens of a managed identity of Azure.

    url: the address of the metadata server, including the query (resource, api-version).
    """

    url: str
    principal = "Azure's managed identity"

    def fetch(self) -> Token:
        """Return a new OAuth token. Raises `NoToken`, with the reason, if none can be obtained."""
        return _token_in(*_asked(self.url, {"Metadata": "true"}), _METADATA_SERVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoogleMetadata:
    """The source of the tokens of a Google Cloud machine's service account.

    A token is a JSON Web Token with Google's access token in place of the signature, as Google's
    ``GcpLoginCallbackHandler`` sends it.
    """

    principal = "the service account of this machine"

    def fetch(self) -> Token:
        """Return a new OAuth token. Raises `NoToken`, with the reason, if none can be obtained."""
        headers = {"Metadata-Flavor": "Google"}
        access, seconds = _token_in(*_asked(f"{_GOOGLE}/token", headers), _METADATA_SERVER)
        status, account = _asked(f"{_GOOGLE}/email", headers)
        if status != 200:
            raise NoToken(f"{_METADATA_SERVER} did not name the service account: HTTP {status}")
        at = int(now())
        claims = {
            "exp": at + int(seconds or 0),
            "iat": at,
            "scope": "kafka",
            "sub": account.decode(errors="replace").strip(),
        }
        parts = (json.dumps({"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}), json.dumps(claims), access)
        return Token(".".join(base64.urlsafe_b64encode(each.encode()).decode().rstrip("=") for each in parts), seconds)


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


@contextmanager
def _said_no(where: str) -> Iterator[None]:
    """Turn an error of the connection to a server into `NoToken`. where: names the server in the message."""
    try:
        yield
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise NoToken(f"{where} gave no token: {' '.join(str(reason).split())}") from error


def _open_url(request: urllib.request.Request, handler: urllib.request.BaseHandler) -> tuple[int, bytes]:
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


def _token_in(status: int, content: bytes, where: str) -> Token:
    """Return the token in a token server's answer. Raises `NoToken`, with the server's error, if there is none.

    where: names the server in the message.
    """
    try:
        answer = json.loads(content)
        if status == http.HTTPStatus.OK:
            return Token(str(answer["access_token"]), float(answer.get("expires_in", 0)))
        said = str(answer.get("error", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        said = "without an access_token" if status == http.HTTPStatus.OK else ""
    raise NoToken(f"{where} gave no token: HTTP {status} {said}".rstrip())


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, because that would send the client's secret to another server."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


def _asked(url: str, headers: dict[str, str]) -> tuple[int, bytes]:
    # A metadata server asks for no secret, because only this machine can reach it. So no proxy is used.
    with _said_no(_METADATA_SERVER):
        return _open_url(urllib.request.Request(url, headers=headers), urllib.request.ProxyHandler({}))  # noqa: S310


def _seconds_left(token: str) -> float | None:
    """Return the seconds until a JSON Web Token expires; None if the text has no expiry."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"]) - now()
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None
