"""Truststores and keystores of every kind, written by keytool."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificates

from migrate_groups.sandbox.java import Java

PASSWORD = "store-hidden-6"
KEY_PASSWORD = "key-hidden-7"
_FAST = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
_UNPROTECTED = ("-J-Dkeystore.pkcs12.certProtectionAlgorithm=NONE", "-J-Dkeystore.pkcs12.macAlgorithm=NONE")


def write_keystores(java: Java, folder: Path) -> None:
    """Write truststores and keystores made from ca.pem, other.pem and client.pem, which are in ``folder``.

    - trust.jks: two certificates. trusted.jks: in spite of its name a PKCS #12 store, the default since Java 9.
    - legacy.p12: a store as Java before version 17 wrote it. open.p12: a store without a password.
    - client.jks: a key with its own password. client.p12: the same key. both.jks: the key and a trusted certificate.
    - two.jks, two.p12: two keys. client.jceks: a type that is not supported.
    """
    tool = Keytool(java, folder)
    client = (folder / "client.pem").read_bytes()
    leaf, *issuers = load_pem_x509_certificates(client)
    key = load_pem_private_key(client, None)
    assert not isinstance(key, str)
    (folder / "made.p12").write_bytes(
        serialize_key_and_certificates(b"me", key, leaf, issuers, BestAvailableEncryption(PASSWORD.encode()))  # type: ignore[arg-type]
    )
    tool.add_certificate("trust.jks", "other", "-storetype", "JKS")
    tool.add_certificate("trust.jks", "ca")
    tool.add_certificate("trusted.jks", "ca", "-storetype", "PKCS12")
    tool.add_certificate("legacy.p12", "ca", "-J-Dkeystore.pkcs12.legacy")
    tool.add_certificate("open.p12", "ca", *_UNPROTECTED)
    tool.add_key("client.jks", "JKS", "me", KEY_PASSWORD)
    tool.add_key("client.p12", "PKCS12", "me")
    tool.add_key("client.jceks", "JCEKS", "me")
    for copy, original in (("both.jks", "client.jks"), ("two.jks", "client.jks"), ("two.p12", "client.p12")):
        shutil.copy(folder / original, folder / copy)
    tool.add_certificate("both.jks", "ca")
    tool.add_key("two.jks", "JKS", "you", KEY_PASSWORD)
    tool.add_key("two.p12", "PKCS12", "you")


class Keytool:
    """Runs Java's keytool in a folder."""

    def __init__(self, java: Java, folder: Path) -> None:
        self._program, self._folder = str(java.executable.with_name("keytool")), folder

    def add_certificate(self, store: str, name: str, *options: str) -> None:
        """Add the certificate in ``NAME.pem`` to a store as a trusted certificate."""
        self._run("-importcert", "-noprompt", "-alias", name, "-file", f"{name}.pem", *_to(store), *options)

    def add_key(self, store: str, kind: str, name: str, key_password: str = PASSWORD) -> None:
        """Add the client's key and its certificate chain to a store. kind: the type of the store. name: the alias."""
        made = ("-srckeystore", "made.p12", "-srcstorepass", PASSWORD, "-srcalias", "me")
        into = ("-destkeystore", store, "-deststoretype", kind, "-deststorepass", PASSWORD, "-destalias", name)
        self._run("-importkeystore", "-noprompt", *made, *into, "-destkeypass", key_password)

    def _run(self, *arguments: str) -> None:
        command = [self._program, *_FAST, *arguments]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def _to(store: str) -> tuple[str, ...]:
    return "-keystore", store, "-storepass", PASSWORD
