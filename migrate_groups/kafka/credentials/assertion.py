"""Make assertions: signed JSON Web Tokens that prove a client's identity to an OAuth token server (RFC 7523)."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from migrate_groups.kafka.credentials.oauth import NoToken, now

ALGORITHMS = ("RS256", "ES256")


class Assertion(Protocol):
    """A source of assertions: JSON Web Tokens that prove the client's identity to an OAuth token server."""

    def text(self) -> str:
        """Return a JSON Web Token. Raises `NoToken` if a file can't be read or the key can't be used."""


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
        of_file = self._of_template()
        at = int(now())
        own = {"iat": at, "exp": at + self.lifetime, "nbf": at - self.back_dated}
        own_id = {"jti": str(uuid.uuid4())} if self.with_id else {}
        # As in Kafka, the file's values take precedence over the properties, and computed values over the file's.
        header = of_file["header"] | {"alg": self.algorithm, "typ": "JWT"}
        payload = {**self.claims, **of_file["payload"], **own, **own_id}
        signed = f"{_encoded(header)}.{_encoded(payload)}"
        return f"{signed}.{_base64(self._signature(signed.encode()))}"

    def _of_template(self) -> dict[str, dict[str, Any]]:
        if self.template is None:
            return {"header": {}, "payload": {}}
        name = "sasl.oauthbearer.assertion.template.file"
        try:
            content = json.loads(_read(self.template, name))
            return {part: dict(content.get(part) or {}) for part in ("header", "payload")}
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise NoToken(f"{name} is not JSON with the objects header and payload") from error

    def _signature(self, content: bytes) -> bytes:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

        name = "sasl.oauthbearer.assertion.private.key.file"
        passphrase = self.passphrase.encode() if self.passphrase else None
        try:
            key = serialization.load_pem_private_key(_read(self.key_file, name).encode(), passphrase)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise NoToken(f"{name} has no PEM key, or the passphrase is wrong") from error
        if self.algorithm == "RS256" and isinstance(key, rsa.RSAPrivateKey):
            return key.sign(content, padding.PKCS1v15(), hashes.SHA256())
        if self.algorithm == "ES256" and isinstance(key, ec.EllipticCurvePrivateKey) and key.key_size == 256:
            r, s = utils.decode_dss_signature(key.sign(content, ec.ECDSA(hashes.SHA256())))
            return r.to_bytes(32) + s.to_bytes(32)
        raise NoToken(f"{name} has no key for {self.algorithm}: set sasl.oauthbearer.assertion.algorithm")


def _read(path: str, name: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise NoToken(f"{name} can't be read ({reason})") from error


def _encoded(part: Mapping[str, Any]) -> str:
    return _base64(json.dumps(part).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
