"""Fetch SASL OAUTHBEARER tokens for kafka-python with the client credentials grant (RFC 6749, 4.4).

librdkafka fetches its own tokens.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
import urllib.parse

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from migrate_groups.kafka.credentials.oauth import ClientCredentials

_SECONDS = 10.0
_FRESH_SECONDS = 30.0  # a token that expires sooner is not used for a new connection


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Returns the same token until it is about to expire, then fetches a new one."""

    def __init__(self, credentials: ClientCredentials) -> None:
        super().__init__()
        self._credentials = credentials
        self._token = ""
        self._fresh_until = 0.0

    def token(self) -> str:
        """Return a valid token. Raises `SaslAuthenticationFailedError` with the token server's reason."""
        if time.monotonic() >= self._fresh_until:
            self._token, seconds = _fetch(self._credentials)
            self._fresh_until = time.monotonic() + seconds - _FRESH_SECONDS
        return self._token

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions that are sent with each token (KIP-342)."""
        return dict(self._credentials.extensions)


def _fetch(credentials: ClientCredentials) -> tuple[str, float]:
    """Return a token and its lifetime in seconds. Raises `SaslAuthenticationFailedError`."""
    where = f"the token server {urllib.parse.urlsplit(credentials.endpoint).hostname}"
    try:
        status, content = _post(credentials)
    except (OSError, http.client.HTTPException) as error:
        raise SaslAuthenticationFailedError(f"{where} gave no token: {error}") from error
    try:
        answer = json.loads(content)
        if status == http.HTTPStatus.OK:
            return str(answer["access_token"]), float(answer.get("expires_in", 0))
        said = str(answer.get("error", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        said = "an answer without a token" if status == http.HTTPStatus.OK else ""
    raise SaslAuthenticationFailedError(f"{where} gave no token: {status} {said}".rstrip())


def _post(credentials: ClientCredentials) -> tuple[int, bytes]:
    url = urllib.parse.urlsplit(credentials.endpoint)
    connection: http.client.HTTPConnection
    if url.scheme == "https":
        context = ssl.create_default_context(cadata=credentials.trusted)
        connection = http.client.HTTPSConnection(url.hostname or "", url.port, timeout=_SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=_SECONDS)
    fields = {"grant_type": "client_credentials"} | ({"scope": credentials.scope} if credentials.scope else {})
    basic = base64.b64encode(f"{credentials.client_id}:{credentials.client_secret}".encode()).decode()
    try:
        connection.request(
            "POST",
            urllib.parse.urlunsplit(("", "", url.path or "/", url.query, "")),
            body=urllib.parse.urlencode(fields),
            headers={
                "Authorization": f"Basic {basic}",
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "application/json",
            },
        )
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
