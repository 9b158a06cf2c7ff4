"""SASL OAUTHBEARER: how an assertion is signed, what is read from files, and which errors are shown."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, PublicFormat

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials.client_properties import understand
from migrate_groups.kafka.credentials.grants import AssertionFile, ClientSecret, JwtBearer, SignedAssertion
from migrate_groups.kafka.credentials.oauth import NoToken, OAuth
from migrate_groups.kafka.credentials.tokens import TokenFile, TokenServer

OAUTH = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://tokens.example",
}
JWT = "urn:ietf:params:oauth:grant-type:"
SECRET = "hidden-passphrase"


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    """A folder with an encrypted private key for RS256, one for ES256, one that fits neither, and a public key."""
    folder = tmp_path_factory.mktemp("keys")
    elliptic = ec.generate_private_key(ec.SECP256R1())
    made: dict[str, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey] = {
        "rsa": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "ec": elliptic,
        "large": ec.generate_private_key(ec.SECP384R1()),
    }
    for name, key in made.items():
        encryption = BestAvailableEncryption(SECRET.encode())
        (folder / name).write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    point = elliptic.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    (folder / "ec.pub").write_bytes(point)
    return folder


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def grant(**properties: str) -> object:
    found = understand(OAUTH | {name.replace("_", "."): value for name, value in properties.items()}).security.login
    assert isinstance(found, OAuth)
    assert isinstance(found.source, TokenServer)
    return found.source.grant


def test_es256_is_signed_with_both_numbers_in_32_bytes_each(keys):
    """An assertion for ES256 has a signature as RFC 7518 defines it: two numbers of 32 bytes each."""
    text = SignedAssertion(key_file=str(keys / "ec"), passphrase=SECRET, algorithm="ES256").text()
    signed, _, signature = text.rpartition(".")
    r, s = (int.from_bytes(each) for each in (decoded(signature)[:32], decoded(signature)[32:]))
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), (keys / "ec.pub").read_bytes())
    public.verify(utils.encode_dss_signature(r, s), signed.encode(), ec.ECDSA(SHA256()))
    assert json.loads(decoded(text.split(".")[0])) == {"alg": "ES256", "typ": "JWT"}


def test_a_template_adds_to_header_and_payload_and_replaces_properties(keys, tmp_path):
    """As in Kafka, values in the assertion template replace properties, and computed values replace the template's."""
    (tmp_path / "template").write_text('{"header": {"kid": "1", "alg": "none"}, "payload": {"sub": "t", "exp": 1}}')
    signed = SignedAssertion(
        key_file=str(keys / "rsa"), passphrase=SECRET, claims={"sub": "p"}, template=str(tmp_path / "template")
    )
    header, payload = (json.loads(decoded(part)) for part in signed.text().split(".")[:2])
    assert header == {"kid": "1", "alg": "RS256", "typ": "JWT"}
    assert (payload["sub"], payload["exp"]) == ("t", payload["iat"] + 300)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"passphrase": "wrong-hidden"}, "has no PEM key, or the passphrase is wrong"),
        ({"algorithm": "ES256"}, r"has no key for ES256: set sasl\.oauthbearer\.assertion\.algorithm"),
        ({"key_file": "large", "algorithm": "ES256"}, "has no key for ES256"),
        ({"key_file": "none"}, r"private\.key\.file can't be read \(No such file or directory\)"),
        ({"template": "rsa"}, "template.file is not JSON with the objects header and payload"),
        ({"template": "deep"}, "template.file is not JSON with the objects header and payload"),
    ],
)
def test_an_assertion_that_cant_be_signed_is_one_line_without_a_secret(keys, changes, said):
    """If a key, passphrase or template does not fit, the error says which of them, and contains no secret."""
    (keys / "deep").write_text("[" * 100_000)
    given = {"key_file": "rsa", "passphrase": SECRET} | changes
    paths = {name: str(keys / given[name]) for name in ("key_file", "template") if name in given}
    with pytest.raises(NoToken, match=said) as refused:
        SignedAssertion(**given | paths).text()
    assert "hidden" not in str(refused.value)


def test_an_assertion_or_a_token_in_a_file_is_read_anew(tmp_path):
    """An assertion or token file is read anew for each use, because other programs renew it.

    A missing, empty or binary file, and one above 1 MiB, is an error.
    """
    file = tmp_path / "file"
    file.write_text("first\n")
    held = grant(sasl_oauthbearer_assertion_file=str(file), sasl_oauthbearer_grant_type=f"{JWT}jwt-bearer")
    assert held == JwtBearer(assertion=AssertionFile(path=str(file)))
    assert isinstance(held, JwtBearer)
    assert held.form()["assertion"] == "first"
    file.write_text("second")
    assert held.form()["assertion"] == "second"
    assert TokenFile(path=str(file)).fetch() == ("second", None)
    no_token = r"can't be read \(it is not a token\)"
    for content, said in ((b"\xff", no_token), (b"x" * (2**20 + 1), no_token), (b"", "is empty")):
        file.write_bytes(content)
        with pytest.raises(NoToken, match=said):
            TokenFile(path=str(file)).fetch()
    file.unlink()
    with pytest.raises(NoToken, match=r"the token file can't be read \(No such file"):
        TokenFile(path=str(file)).fetch()


def test_a_client_secret_is_url_encoded_on_demand():
    """Client id and secret are URL-encoded only if ``sasl.oauthbearer.header.urlencode`` is true."""
    client = {"sasl_oauthbearer_client_credentials_client_id": "a:b"}
    secret = {"sasl_oauthbearer_client_credentials_client_secret": "s c/"}
    for flag, expected in (("false", b"a:b:s c/"), ("true", b"a%3Ab:s+c%2F")):
        held = grant(**client, **secret, sasl_oauthbearer_header_urlencode=flag)
        assert isinstance(held, ClientSecret)
        assert base64.b64decode(held.authorization.removeprefix("Basic ")) == expected


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"sasl.oauthbearer.method": "default"}, "method is not oidc: set it to oidc"),
        ({"sasl.oauthbearer.grant.type": f"{JWT}jwt-bearer"}, r"needs an assertion: set sasl\.oauthbearer\.assertion"),
        ({"sasl.oauthbearer.assertion.algorithm": "HS256"}, "algorithm is not supported: use one of RS256, ES256"),
        ({"sasl.oauthbearer.jwt.retriever.class": "mine"}, r"retriever\.class is not supported; supported are org"),
        ({"sasl.oauthbearer.header.urlencode": "yes"}, "is neither true nor false: correct it"),
        ({"sasl.oauthbearer.assertion.claim.exp.seconds": "5m"}, "is not a number of seconds: correct it"),
        ({"https.ca.pem": "none"}, r"https\.ca\.pem"),
    ],
)
def test_a_wrong_property_is_named(properties, said):
    """For each wrong property, the error names the property or what is missing, and does not show the client secret."""
    client = {f"sasl.oauthbearer.client.credentials.client.{name}": "hidden" for name in ("id", "secret")}
    with pytest.raises(InvalidInput, match=said) as refused:
        understand(OAUTH | client | properties)
    assert "hidden" not in str(refused.value)
