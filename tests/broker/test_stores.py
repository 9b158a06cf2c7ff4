"""Truststores and keystores that keytool wrote: what the tool reads from them, and errors of unusable stores."""

from __future__ import annotations

import random
import re

import pytest

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials.client_properties import understand
from migrate_groups.kafka.credentials.tls import Tls
from tests.support.keystores import KEY_PASSWORD, PASSWORD
from tests.support.secured import SECRETS, Secured, properties_text

TRUSTSTORES = {"trust.jks": ["ca", "other"], "trusted.jks": ["ca"], "legacy.p12": ["ca"], "open.p12": ["ca"]}
KEYSTORES = ("client.jks", "client.p12", "both.jks", "made.p12")


def read(**properties: str) -> Tls:
    """Return the TLS settings that these properties give. A ``_`` in a name stands for a dot."""
    dotted = {name.replace("_", "."): value for name, value in properties.items()}
    found = understand({"security.protocol": "SSL"} | dotted).security.tls
    assert found is not None
    return found


def certificates(pem: str) -> list[str]:
    return re.findall(r"-----BEGIN CERTIFICATE.*?END CERTIFICATE-----\n", pem, re.DOTALL)


@pytest.mark.parametrize("name", TRUSTSTORES)
@pytest.mark.parametrize("password", [PASSWORD, ""])
def test_a_truststore_of_keytool_has_the_certificates_that_were_added(secured: Secured, name, password):
    """All trusted certificates are read from JKS and PKCS #12 stores, also from stores that an older Java wrote.

    Without a password, JKS is read unverified, as Java does, and PKCS #12 only if it was written without a password.
    """
    if not password and name in ("trusted.jks", "legacy.p12"):
        with pytest.raises(InvalidInput, match=r"needs a password: set ssl\.truststore\.password"):
            read(**secured.store("truststore", name, password))
        return
    trusted = read(**secured.store("truststore", name, password)).trusted
    assert trusted is not None
    assert sorted(certificates(trusted)) == sorted(secured.pem(f"{each}.pem") for each in TRUSTSTORES[name])


@pytest.mark.parametrize("name", KEYSTORES)
def test_a_keystore_of_keytool_has_the_key_and_its_chain_in_order(secured: Secured, name):
    """The client's key and its certificate chain, in order, are read from PKCS #12 and JKS keystores.

    In the JKS keystores the key has another password than the store.
    """
    password = {"ssl_key_password": KEY_PASSWORD} if name.endswith("jks") else {}
    tls = read(**secured.store("keystore", name), **password)
    chain = certificates(secured.pem("client.pem"))
    assert certificates(tls.certificates or "")[: len(chain)] == chain
    assert tls.key == secured.pem("client.pem").partition("-----BEGIN CERTIFICATE")[0]
    tls.context()


def test_java_trusts_the_certificate_of_a_key_in_a_truststore_but_not_its_chain(secured: Secured):
    """If a JKS truststore contains a private key, the first certificate of its chain is trusted, but not the rest, as
    in Java.
    """
    tls = read(**secured.store("truststore", "both.jks"))
    expected = [secured.pem("ca.pem"), certificates(secured.pem("client.pem"))[0]]
    assert sorted(certificates(tls.trusted or "")) == sorted(expected)


UNUSABLE = {
    "JKS password": ("truststore", "trust.jks", "wrong-hidden", "can't be opened: check ssl.truststore.password"),
    "PKCS12 password": ("truststore", "trusted.jks", "wrong-hidden", "can't be opened: check ssl.truststore.password"),
    "keystore password": ("keystore", "client.p12", "wrong-hidden", "can't be opened: check ssl.keystore.password"),
    "no keystore password": ("keystore", "client.jks", "", "needs a password: set ssl.keystore.password"),
    "key password": ("keystore", "client.jks", PASSWORD, "private key with another password: check ssl.key.password"),
    "two keys, JKS": ("keystore", "two.jks", PASSWORD, "has 2 private keys, .*: copy one .* -srcalias"),
    "two keys, PKCS12": ("keystore", "two.p12", PASSWORD, "has 2 private keys, .*: copy one .* -srcalias"),
    "no key": ("keystore", "trust.jks", PASSWORD, "has no private key: copy one .* -srcalias"),
    "no key, PKCS12": ("keystore", "trusted.jks", PASSWORD, "has no private key: copy one .* -srcalias"),
    "key in truststore": ("truststore", "client.p12", PASSWORD, "has a private key, .*: export .* keytool -exportcert"),
    "JCEKS": ("keystore", "client.jceks", PASSWORD, "is JCEKS: convert it with keytool -importkeystore"),
    "text": ("truststore", "jwks.json", PASSWORD, "is neither JKS, PKCS12 nor PEM: convert it"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_unusable_store_is_one_line_with_the_cure(secured: Secured, here, case):
    """If a store can't be used, the command ends with exit code 2 and a one-line error.

    The error names the property and the file, and says what to do.
    """
    kind, name, password, said = UNUSABLE[case]
    file = here.folder / "client.properties"
    file.write_text(
        f"security.protocol=SSL\nssl.{kind}.location={secured.folder / name}\nssl.{kind}.password={password}\n"
    )
    code, out, err = here.outcome(
        "list", "--bootstrap-server", secured.address("MTLS"), "--command-config", file, "--timeout", "1d"
    )
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"error: ssl\.{kind}\.location {secured.folder / name} .*{said}.*\n", err), err
    assert "hidden" not in err


@pytest.mark.parametrize("kind", ["truststore", "keystore"])
@pytest.mark.parametrize("name", ["BCFKS", "JCEKS", "hidden-type"])
def test_a_store_type_that_is_not_supported_is_refused_by_name(secured: Secured, kind, name):
    """If a store type is BCFKS or JCEKS, the error names it, and the command that converts the store.

    An unknown type is refused, too, but not quoted.
    """
    store = secured.store(kind, "client.jceks") | {f"ssl_{kind}_type": name}
    named = "an unknown value" if name == "hidden-type" else name
    advice = "correct it" if name == "hidden-type" else "convert it with keytool -importkeystore"
    with pytest.raises(InvalidInput, match=rf"^ssl\.{kind}\.type is {named}; supported are JKS, PKCS12, PEM: {advice}"):
        read(**store)


def test_a_certificate_that_no_root_signed_is_trusted_if_it_is_in_the_truststore(secured: Secured, here):
    """If a truststore contains only the broker's own certificate, this is enough to connect, as in Java."""
    own = here.folder / "broker.pem"
    own.write_text(certificates(secured.pem("server.pem"))[0])
    file = here.folder / "client.properties"
    file.write_text(f"security.protocol=SSL\nssl.truststore.location={own}\n")
    assert here("list", "--bootstrap-server", secured.address("SSL"), "--command-config", file).returncode == 0


def mutants(content: bytes, number: int, seed: str) -> list[bytes]:
    """Return damaged copies of a store: cut off, or with changed, missing or repeated bytes."""
    chance = random.Random(seed)

    def damaged() -> bytes:
        at, to = sorted((chance.randrange(len(content)), chance.randrange(len(content))))
        match chance.randrange(5):
            case 0:
                return content[:at]
            case 1:
                return content[:at] + chance.randbytes(to - at) + content[to:]
            case 2:
                return content[:at] + content[to:]
            case 3:
                return content[:to] + content[at:]
            case _:
                changed = bytearray(content)
                for _ in range(chance.randrange(1, 4)):
                    changed[int(len(content) * chance.random() ** 3)] = chance.choice((0, 0x7F, 0x80, 0x84, 0xFF))
                return bytes(changed)

    return [damaged() for _ in range(number)]


@pytest.mark.parametrize("number", [6, pytest.param(200, marks=pytest.mark.long)])
def test_a_damaged_store_is_one_line_without_a_secret(secured: Secured, here, number):
    """With a damaged store, `list` works, or ends with exit code 2 or 5 and a one-line error. The output shows no
    secret.
    """
    damaged = here.folder / "damaged"
    for name in (*TRUSTSTORES, *KEYSTORES, "two.p12", "client.jceks"):
        kind, listener = ("truststore", "SSL") if name in TRUSTSTORES else ("keystore", "MTLS")
        key_password = KEY_PASSWORD if name.endswith("jks") else PASSWORD
        properties = {"security_protocol": "SSL", "ssl_key_password": key_password} | secured.trust()
        properties |= {f"ssl_{kind}_location": str(damaged), f"ssl_{kind}_password": PASSWORD}
        (here.folder / "client.properties").write_text(properties_text(**properties))
        for at, content in enumerate(mutants((secured.folder / name).read_bytes(), number, name)):
            damaged.write_bytes(content)
            code, out, err = here.outcome(
                *("list", "--bootstrap-server", secured.address(listener), "--timeout", "1d"),
                *("--command-config", "client.properties"),
            )
            assert code in (0, 2, 5), (name, at, err)
            assert re.fullmatch("error: .*\n" if code else "", err), (name, at, err)
            assert not [each for each in SECRETS.values() if each in out + err], (name, at)
