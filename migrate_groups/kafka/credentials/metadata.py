"""Get SASL OAUTHBEARER tokens from the metadata server of a machine in Azure or Google Cloud."""

from __future__ import annotations

import base64
import json
import urllib.request
from dataclasses import dataclass

from migrate_groups.kafka.credentials.oauth import NoToken, Token, now
from migrate_groups.kafka.credentials.tokens import open_url, said_no, token_in

AZURE = "http://169.254.169.254/metadata/identity/oauth2/token"
_WHERE = "the metadata server of this machine"
_GOOGLE = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default"


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureMetadata:
    """The source of the tokens of a managed identity of Azure.

    url: the address of the metadata server, including the query (resource, api-version).
    """

    url: str
    principal = "Azure's managed identity"

    def fetch(self) -> Token:
        """Return a new OAuth token. Raises `NoToken`, with the reason, if none can be obtained."""
        return token_in(*_asked(self.url, {"Metadata": "true"}), _WHERE)


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
        access, seconds = token_in(*_asked(f"{_GOOGLE}/token", headers), _WHERE)
        status, account = _asked(f"{_GOOGLE}/email", headers)
        if status != 200:
            raise NoToken(f"{_WHERE} did not name the service account: HTTP {status}")
        at = int(now())
        claims = {"exp": at + int(seconds or 0), "iat": at, "scope": "kafka", "sub": account.decode().strip()}
        parts = (json.dumps({"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}), json.dumps(claims), access)
        return Token(".".join(base64.urlsafe_b64encode(each.encode()).decode().rstrip("=") for each in parts), seconds)


def _asked(url: str, headers: dict[str, str]) -> tuple[int, bytes]:
    # A metadata server asks for no secret, because only this machine can reach it. So no proxy is used.
    with said_no(_WHERE):
        return open_url(urllib.request.Request(url, headers=headers), urllib.request.ProxyHandler({}))  # noqa: S310
