"""Read truststores and keystores in the formats JKS, PKCS #12 and PEM."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cryptography.x509 import Certificate

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials import jks, pem, pkcs12
from migrate_groups.kafka.credentials.der import Damaged, WrongPassword

_JCEKS = b"\xce\xce\xce\xce"


# The content of a file shows its format, not its name: since Java 9 many files named .jks are PKCS #12.
class Store(NamedTuple):
    """A truststore or keystore. of_location, of_password: the properties that give the file's path and password."""

    location: str
    content: bytes
    password: str | None
    of_location: str
    of_password: str

    def trusted(self) -> str:
        """Return the certificates to trust from this truststore, as PEM.

        Raises `InvalidInput` if the truststore can't be read, has no certificate, or is PKCS #12 with a private key.
        """
        if pem.is_pem(self.content):
            return pem.certificates(self._text(), self.of_location)
        with self._errors():
            if self._is_jks():
                # If a truststore has a private key, Java trusts the key's own certificate, not the rest of its chain.
                entries = jks.entries(self.content, self.password)
                return self._pem(pem.from_der(each for entry in entries for each in entry.certificates[:1]))
            number_of_keys, store = pkcs12.load(self.content, self.password)
            if number_of_keys:
                raise self._unusable(
                    "has a private key, so that it does not tell which of its certificates to trust: export these with "
                    f"keytool -exportcert -rfc -keystore {shlex.quote(self.location)} -alias …, and use the PEM file"
                )
            return self._pem(each.certificate for each in store.additional_certs)

    def own(self, key_password: str | None) -> tuple[str, str]:
        """Return the certificate chain and the private key of this keystore, both as PEM.

        Without ``key_password``, the keystore's password is used. A key of a PEM file may be returned encrypted. Raises
        `InvalidInput` if the keystore can't be read, or has no certificate, no private key, or several private keys.
        """
        if pem.is_pem(self.content):
            return pem.certificates(self._text(), self.of_location), pem.private_key(self._text(), self.of_location)
        if self.password is None:
            raise self._unusable(f"needs a password: set {self.of_password}")
        with self._errors():
            if self._is_jks():
                keys = [each for each in jks.entries(self.content, self.password) if each.encrypted_key is not None]
                self._check_number(len(keys))
                key = self._decrypted(keys[0], key_password or self.password)
                return self._pem(pem.from_der(keys[0].certificates)), key
            number_of_keys, store = pkcs12.load(self.content, self.password)
            self._check_number(number_of_keys)
            if store.key is None or store.cert is None:
                raise Damaged
            chain = pem.chain(store.cert.certificate, [each.certificate for each in store.additional_certs])
            return self._pem(chain), pem.plain_key(store.key)

    def _text(self) -> str:
        return self.content.decode(errors="replace")

    def _is_jks(self) -> bool:
        if self.content.startswith(jks.MAGIC):
            return True
        if not pkcs12.is_pkcs12(self.content):
            kind = "JCEKS" if self.content.startswith(_JCEKS) else "neither JKS, PKCS12 nor PEM"
            raise self._unusable(f"is {kind}: {to_pkcs12(self.location)}")
        return False

    def _decrypted(self, entry: jks.Entry, password: str) -> str:
        try:
            return pem.plain_key(pem.key_from_der(jks.decrypted(entry.encrypted_key or b"", password)))
        except WrongPassword:
            raise self._unusable("has a private key with another password: check ssl.key.password") from None

    def _pem(self, certificates: Iterable[Certificate]) -> str:
        written = pem.written(certificates)
        if not written:
            raise self._unusable("has no certificate: add one with keytool -importcert")
        return written

    def _check_number(self, keys: int) -> None:
        if keys != 1:
            number = "no private key" if keys == 0 else f"{keys} private keys, and no property says which one to use"
            copy = f"keytool -importkeystore -srckeystore {shlex.quote(self.location)} -srcalias … -destkeystore …"
            raise self._unusable(f"has {number}: copy one to a store of its own with {copy}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the errors of reading a store into `InvalidInput`, with what to do."""
        try:
            yield
        except WrongPassword:
            if self.password is None:
                raise self._unusable(f"needs a password: set {self.of_password}") from None
            reason = f"can't be opened: check {self.of_password}, and that the file is whole"
            raise self._unusable(reason) from None
        except Damaged:
            raise self._unusable("is damaged: copy it again, and try it with keytool -list -keystore") from None

    def _unusable(self, reason: str) -> InvalidInput:
        return InvalidInput(f"{self.of_location} {self.location} {reason}")


def to_pkcs12(location: str) -> str:
    """Return the advice for a store whose type is not supported: the command that converts it to PKCS #12."""
    return (
        f"convert it with keytool -importkeystore -srckeystore {shlex.quote(location)} -srcstoretype … "
        "-destkeystore … -deststoretype PKCS12"
    )
