"""Damaged truststores and keystores. tests/broker/test_stores.py has whole ones, which keytool wrote."""

from __future__ import annotations

import base64
import struct

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificate

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials.client_properties import understand
from migrate_groups.kafka.credentials.der import children, fields


def read(kind: str, location: object, password: str = "") -> None:
    named = {"location": str(location), "password": password}
    understand({"security.protocol": "SSL"} | {f"ssl.{kind}.{name}": value for name, value in named.items()})


@pytest.mark.parametrize("kind", ["PEM", "JKS", "PKCS12"])
def test_a_certificate_of_an_unknown_version_is_refused(tmp_path, kind):
    """If a truststore has a certificate with an unknown version, the error says so, or that the store is damaged."""
    certificate = load_pem_x509_certificate(trustme.CA().cert_pem.bytes())
    version, unknown = b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x64"
    damaged = certificate.public_bytes(Encoding.DER).replace(version, unknown)
    entry = struct.pack(">IHQ7sI", 2, 0, 0, b"\0\5X.509", len(damaged)) + damaged
    store = serialize_key_and_certificates(None, None, None, [certificate], NoEncryption()).replace(version, unknown)
    (content,) = fields(store, 0x30)
    content = content[: -2 - len(children(content)[2][1])]  # without its MAC
    stores = {
        "PEM": b"-----BEGIN CERTIFICATE-----\n%b\n-----END CERTIFICATE-----\n" % base64.b64encode(damaged),
        "JKS": struct.pack(">3I", 0xFEEDFEED, 2, 1) + entry + bytes(20),
        "PKCS12": b"\x30\x82" + len(content).to_bytes(2) + content,
    }
    (tmp_path / "store").write_bytes(stores[kind])
    complaint = "has a certificate that can't be read .*100 is not a valid" if kind == "PEM" else "is damaged: copy it"
    with pytest.raises(InvalidInput, match=complaint):
        read("truststore", tmp_path / "store")


def test_a_store_that_asks_for_minutes_of_computing_is_refused(tmp_path):
    """If one of the iteration counts in a PKCS #12 store is above 5,000,000, the store is damaged, as in Java.

    There is one for the key, one for the certificates, and one for the MAC.
    """
    leaf = trustme.CA().issue_cert("client.example")
    key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
    certificate = load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    rounds = PrivateFormat.PKCS12.encryption_builder().kdf_rounds(100_000)
    store = serialize_key_and_certificates(b"me", key, certificate, None, rounds.build(b"p"))  # type: ignore[arg-type]
    (tmp_path / "store").write_bytes(store)
    read("keystore", tmp_path / "store", "p")
    count, too_many = b"\x02\x03" + (100_000).to_bytes(3), b"\x02\x03" + (5_000_001).to_bytes(3)
    certificates, own = store.partition(count)[0], store.rpartition(count)[0]
    assert len(certificates) < len(own)
    (content,) = fields(store, 0x30)
    mac = children(content)[2][1]
    assert mac.endswith(b"\x02\x02\x08\x00")
    changed = mac[:-4] + too_many
    content = content[: -2 - len(mac)] + b"\x30" + bytes([len(changed)]) + changed
    mutants = [before + too_many + store[len(before) + len(count) :] for before in (certificates, own)]
    for mutant in (*mutants, b"\x30\x82" + len(content).to_bytes(2) + content):
        (tmp_path / "store").write_bytes(mutant)
        with pytest.raises(InvalidInput, match="is damaged: copy it"):
            read("keystore", tmp_path / "store", "p")
