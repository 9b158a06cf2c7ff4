"""OAuth grants: how a client proves its identity to a token server (RFC 6749, RFC 7523)."""

from __future__ import annotations

import base64
import json
import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate_groups.kafka.credentials.oauth import NoToken, now

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

ALGORITHMS = ("RS256", "ES256")
_URN = "urn:ietf:params:oauth"
_KEY_FILE = "sasl.oauthbearer.assertion.private.key.file"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionFile:
    """A file that contains an assertion (a JSON Web Token), which another program renews."""

    path: str

    def text(self) -> str:
        """Return the content of the file. Raises `NoToken` if the file can't be read."""
        return _read(self.path, "sasl.oauthbearer.assertion.file").strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedAssertion:
    """A JSON Web Token that this process signs. Each call of `text` makes a new one.

    key_file: a private key in PEM. claims: the claims ``aud``, ``iss`` and ``sub``. lifetime: seconds from now to the
    claim ``exp``. back_dated: seconds from the claim ``nbf`` to now. with_id: whether to add the claim ``jti``.
    template: a JSON file with the objects ``header`` and ``payload``, whose values are added.
    """

    key_file: str
    passphrase: str | None = field(default=None, repr=False)
    algorithm: str = "RS256"
    claims: Mapping[str, str] = field(default_factory=dict)
    lifetime: int = 300
    back_dated: int = 60
    with_id: bool = False
    template: str | None = None

    def text(self) -> str:
        """Return a newly signed JSON Web Token.

        Raises `NoToken` if a file can't be read, or if the key does not fit the algorithm.
        """
        import jwt
        from jwt.utils import base64url_encode

        of_file = self._of_template()
        at = int(now())
        own = {"iat": at, "exp": at + self.lifetime, "nbf": at - self.back_dated}
        own_id = {"jti": str(uuid.uuid4())} if self.with_id else {}
        # As in Kafka, the file's values take precedence over the properties, and computed values over the file's.
        header = of_file["header"] | {"alg": self.algorithm, "typ": "JWT"}
        payload = {**self.claims, **of_file["payload"], **own, **own_id}
        algorithm = jwt.get_algorithm_by_name(self.algorithm)
        try:
            key = algorithm.prepare_key(self._key())
        except (jwt.InvalidKeyError, TypeError) as error:
            raise NoToken(
                f"{_KEY_FILE} has no key for {self.algorithm}: set sasl.oauthbearer.assertion.algorithm"
            ) from error
        # Not with jwt.encode, because it refuses some templates that Kafka accepts, and warns of short keys on stderr.
        signed = b".".join(base64url_encode(json.dumps(part).encode()) for part in (header, payload))
        return b".".join((signed, base64url_encode(algorithm.sign(signed, key)))).decode()

    def _of_template(self) -> dict[str, dict[str, Any]]:
        if self.template is None:
            return {"header": {}, "payload": {}}
        name = "sasl.oauthbearer.assertion.template.file"
        try:
            content = json.loads(_read(self.template, name))
            return {part: dict(content.get(part) or {}) for part in ("header", "payload")}
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise NoToken(f"{name} is not JSON with the objects header and payload") from error

    def _key(self) -> PrivateKeyTypes:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        passphrase = self.passphrase.encode() if self.passphrase else None
        try:
            return load_pem_private_key(_read(self.key_file, _KEY_FILE).encode(), passphrase)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise NoToken(f"{_KEY_FILE} has no PEM key, or the passphrase is wrong") from error


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

    @property
    def authorization(self) -> str:
        """The HTTP header ``Authorization`` of the request to the token server."""
        pair = [self.client_id, self.secret]
        if self.url_encoded:
            pair = list(map(urllib.parse.quote_plus, pair))
        return f"Basic {base64.b64encode(':'.join(pair).encode()).decode()}"

    @property
    def principal(self) -> str:
        """A description of the client's principal, such as ``the principal of OAuth client my-app``."""
        return f"the principal of OAuth client {self.client_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAssertion:
    """The OAuth grant ``client_credentials`` of a client that proves its identity with a signed JSON Web Token.

    Sources: RFC 7523, 2.2; KIP-1258.
    """

    authorization = ""
    assertion: AssertionFile | SignedAssertion
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

    @property
    def principal(self) -> str:
        """A description of the client's principal, such as ``the principal of OAuth client my-app``."""
        return f"the principal of OAuth client {self.client_id}" if self.client_id else "the OAuth client's principal"


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtBearer:
    """The OAuth grant ``jwt-bearer``: a signed JSON Web Token is exchanged for an access token (RFC 7523; KIP-1139)."""

    authorization = ""
    principal = "the principal of the OAuth assertion"
    assertion: AssertionFile | SignedAssertion

    def form(self) -> dict[str, str]:
        """Return the form fields for the token server. Raises `NoToken` if the JWT can't be read or signed."""
        return {"grant_type": f"{_URN}:grant-type:jwt-bearer", "assertion": self.assertion.text()}


def _read(path: str, name: str) -> str:
    """Return the content of a file. name: the property that names the file, for the error."""
    try:
        return Path(path).read_text()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise NoToken(f"{name} can't be read ({reason})") from error
