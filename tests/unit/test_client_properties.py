"""client.properties: it is read as Java reads it, and the clients get their security settings from it."""

from __future__ import annotations

import os
import re
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
import typer.main
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from hypothesis import given
from hypothesis import strategies as st

from migrate_groups.cli import environment
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.registry import command_line
from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.kafka.credentials.client_properties import ClientProperties, understand
from migrate_groups.kafka.credentials.grants import ClientSecret
from migrate_groups.kafka.credentials.jaas import parse_jaas
from migrate_groups.kafka.credentials.oauth import OAuth
from migrate_groups.kafka.credentials.properties import parse_properties, similar_property
from migrate_groups.kafka.credentials.security import Password, Security
from migrate_groups.kafka.credentials.tls import Tls
from migrate_groups.kafka.credentials.tokens import TokenServer
from tests.support.cli import CliHere

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHB = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SECRET = "hidden-7"
LIST = ("list", "--bootstrap-server", "127.0.0.1:1", "--command-config")
WORD = "hidden7"  # a secret that the JAAS parser takes for a class name


def parsed(text: str):
    return understand(parse_properties(text, "test"))


def test_properties_are_read_as_java_reads_them():
    """Comments, three separators, spaces, continued lines and escapes are read as in Java.

    Of two equal keys the last wins.
    """
    text = "# a\n! b\n one : 1\ntwo 2\nthree=a\\\n   b\nfour=\\u00e4\\t\\=\nfive=x \nfive=y\nsix\n"
    assert parse_properties(text, "f") == {
        **{"one": "1", "two": "2", "three": "ab", "four": "ä\t=", "five": "y", "six": ""}
    }


def test_an_incomplete_unicode_escape_is_refused():
    r"""A ``\u`` without four hexadecimal digits is refused, as in Java."""
    with pytest.raises(InvalidInput, match=r"f: a \\u is not followed"):
        parse_properties("a=\\u12", "f")


@given(st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])))
def test_any_password_survives_properties_and_jaas_escapes(password):
    """A password survives the escapes of the properties file and then those of JAAS."""
    jaas = f'{PLAIN} required username="u" password="{escaped(password)}";'
    properties = "sasl.jaas.config=" + "".join(f"\\u{ord(each):04x}" for each in jaas)
    read = parse_properties(properties, "f")["sasl.jaas.config"]
    assert parse_jaas(read).options == {"username": "u", "password": password}


def escaped(text: str) -> str:
    signs = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
    return "".join(signs.get(each, each) for each in text)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{PLAIN} required;", {}),
        (f"{PLAIN} REQUIRED a=b c='d e' ;", {"a": "b", "c": "d e"}),
        (f"{PLAIN} required /* a=b; */ a = \"b\" // c\n;", {"a": "b"}),
        (f'{PLAIN} required a="\\101\\7\\x\\t\\400";', {"a": "A\ax\t 0"}),
        (f'{PLAIN} required a="=;";', {"a": "=;"}),
    ],
)  # fmt: skip
def test_jaas_is_read_as_java_reads_it(text, options):
    """In ``sasl.jaas.config``, quotes, comments and octal escapes are read as in Java.

    ``=`` and ``;`` within quotes are plain text.
    """
    assert parse_jaas(text).options == options


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is not valid; expected login module"),
        (f'{PLAIN} required password="{SECRET}"', "; at the end"),
        (f'{PLAIN} password="{SECRET}";', "is not valid; expected login module"),
        (f"{PLAIN} required password={SECRET}!;", "from character 83 on"),
        (f'{PLAIN} required password="{SECRET};', "close an open quote"),
        (f"{PLAIN} required password {SECRET};", "is not name="),
        (f"{PLAIN} required a={SECRET}; {PLAIN} required b=c;", "a second login module"),
    ],
)
def test_invalid_jaas_is_refused_without_showing_its_secrets(text, complaint):
    """If ``sasl.jaas.config`` is not valid, the error says what is wrong, and does not show the secret in it."""
    with pytest.raises(InvalidInput, match=complaint) as refusal:
        parse_jaas(text)
    assert SECRET not in str(refusal.value)


def test_a_file_without_security_settings_is_plaintext():
    """A file without security settings gives a PLAINTEXT connection, as with Kafka's tools."""
    found = parsed("bootstrap.servers = a:1,b:2\n")
    assert (found.bootstrap_servers, found.security, found.not_used) == ("a:1,b:2", Security(), ())
    assert found.security.kafka_python() == {"security_protocol": "PLAINTEXT"}
    assert found.security.principal == "User:ANONYMOUS"


def test_unused_properties_are_named_except_tuning_settings():
    """Properties that are unknown, of another protocol or unused in JAAS are named as not used.

    Harmless tuning settings, such as ``retries``, are not named.
    """
    text = (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nssl.truststore.location=/x\nssl.provider=p\nfoo=1\n"
        f'sasl.jaas.config={PLAIN} required username="u" password="p" refresh="no";\n'
        "auto.offset.reset=latest\nretries=3\nclient.id=x\nrequest.timeout.ms=1\n"
    )
    assert parsed(text).not_used == (
        *("foo", "refresh in sasl.jaas.config", "request.timeout.ms", "ssl.provider", "ssl.truststore.location"),
    )
    assert parsed(f'sasl.jaas.config={PLAIN} required username="u" password="p";').not_used == ("sasl.jaas.config",)


OAUTH_TEXT = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=https://t/x\n"
)


def test_client_credentials_in_jaas_or_in_properties():
    """OAuth credentials in JAAS (KIP-768) or in properties (KIP-1139) give the same settings, scope and extensions."""
    in_jaas = (
        f'{OAUTH_TEXT}sasl.jaas.config={OAUTHB} required clientId="c" clientSecret="s" scope="x y" extension_a="b";\n'
    )
    of_their_own = (
        f"{OAUTH_TEXT}sasl.oauthbearer.client.credentials.client.id=c\nsasl.oauthbearer.scope=x y\n"
        f"sasl.oauthbearer.client.credentials.client.secret=s\nsasl.jaas.config={OAUTHB} required extension_a=b;\n"
    )
    assert parsed(in_jaas) == parsed(of_their_own)
    assert parsed(in_jaas).not_used == ()
    server = TokenServer(endpoint="https://t/x", grant=ClientSecret(client_id="c", secret="s"), scope="x y")
    assert parsed(in_jaas).security.login == OAuth(source=server, extensions={"a": "b"})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("security.protocol=TLS", "security.protocol is TLS; expected one of PLAINTEXT, SSL"),
        ("security.protocol=SASL_SSL", "sasl.mechanism is not set: set it to one of PLAIN"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "PLAIN needs a user name and a password"),
        (
            f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={SCRAM} required password=x;",
            "sasl.jaas.config is for SCRAM-SHA-256, but sasl.mechanism is PLAIN: use .*PlainLoginModule",
        ),
        (
            f"security.protocol=SASL_SSL\nsasl.mechansim=SCRAM-SHA-256\nsasl.jaas.config={SCRAM} required password=x;",
            "sasl.mechanism is not set, and sasl.jaas.config is for SCRAM-SHA-256: set sasl.mechanism",
        ),
        (
            "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER",
            "needs a token server or a token file: set sasl.oauthbearer.token.endpoint.url",
        ),
        (OAUTH_TEXT, "set sasl.oauthbearer.client.credentials.client.id and sasl.*client.secret"),
        (
            "security.protocol=SSL\nssl.truststore.location=/no/such",
            "ssl.truststore.location can't be read \\(No such file",
        ),
        ("security.protocol=SSL\nssl.truststore.certificates=x", "ssl.truststore.certificates has no certificate"),
        ("security.protocol=SSL\nssl.keystore.key=x", "ssl.keystore.certificate.chain has no certificate"),
        ("security.protocol=SSL\nssl.endpoint.identification.algorithm=x", "is neither https nor empty"),
    ],
)
def test_unusable_properties_are_refused_by_name(text, complaint):
    """If a property is missing or its value is unusable, the error names the property and says what is wrong."""
    with pytest.raises(InvalidInput, match=complaint):
        parsed(text)


STRAY = f'security.protocol=SASL_SSL\nsasl.jaas.config={PLAIN} required username="u" password="{SECRET}";'


@pytest.mark.parametrize(
    "key", ["sasl.mechanism", "security.protocol", "ssl.truststore.location", "bootstrap.servers", "group.id", "x"]
)
def test_a_stray_backslash_shows_no_secret(key):
    """If a backslash joins the next line to a value, the error names the value's key and does not show the value."""
    with pytest.raises(InvalidInput, match=f"the value of {key} contains another property") as refusal:
        parsed(f"{key}=PLAIN\\\n  {STRAY}")
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"security.protocol={SECRET}", "security.protocol is an unknown value; expected one of PLAINTEXT"),
        (f"security.protocol=SASL_SSL\nsasl.mechanism={SECRET}", "sasl.mechanism is an unknown value; supported"),
        (
            f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={WORD} required a=b;",
            "is for another mechanism, but sasl.mechanism is PLAIN",
        ),
        (f"security.protocol=SSL\nssl.truststore.location={SECRET}", "location can't be read \\(No such file"),
        (f"security.protocol=SSL\nssl.keystore.location={SECRET}", "location can't be read \\(No such file"),
        ("security.protocol=SSL\nssl.keystore.location=\\u0000", "location can't be read \\(not a file name"),
        (f"security.protocol=SSL\nssl.endpoint.identification.algorithm={SECRET}", "is neither https nor empty"),
        (
            f"{OAUTH_TEXT}sasl.oauthbearer.token.endpoint.url={SECRET}",
            "needs a token server or a token file: set sasl.oauthbearer.token.endpoint.url",
        ),
        (
            f"{OAUTH_TEXT}sasl.oauthbearer.token.endpoint.url=https://[{SECRET}",
            "needs a token server or a token file: set sasl.oauthbearer.token.endpoint.url",
        ),
    ],
)
def test_an_error_quotes_no_value_that_may_be_a_secret(text, complaint):
    """If a wrong value of a property may be a secret, the error does not quote it."""
    with pytest.raises(InvalidInput, match=complaint) as refusal:
        parsed(text)
    assert SECRET not in str(refusal.value)
    assert WORD not in str(refusal.value)


def test_a_wrong_address_is_quoted_only_from_the_command_line():
    """An error quotes a wrong broker address from the command line, except one with an @, but none from a property."""
    with pytest.raises(InvalidInput, match=r"bootstrap\.servers is not host:port") as refusal:
        connection(None, f"bootstrap.servers={SECRET}", server=None).config()
    assert SECRET not in str(refusal.value)
    with pytest.raises(UsageError, match="not a bootstrap server: 'here'"):
        connection(server="here").config()
    with pytest.raises(UsageError, match="a bootstrap server has an @: pass host:port") as error:
        connection(server=f"user:{SECRET}@broker:9092").config()
    assert SECRET not in str(error.value)


@pytest.fixture(scope="module")
def pem():
    """Three PEM texts: an authority's certificate, a client's certificate chain, and the client's encrypted key."""
    authority = trustme.CA()
    leaf = authority.create_child_ca().issue_cert("client.example")
    key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(SECRET.encode()))
    chain = "".join(each.bytes().decode() for each in leaf.cert_chain_pems)
    return authority.cert_pem.bytes().decode(), chain, locked.decode()


@pytest.mark.parametrize("line_end", ["\\n", " \\\n", "\\n\\\n  "])
def test_line_ends_of_pem_in_properties_are_restored(pem, line_end):
    r"""If PEM in a property has ``\n`` for line ends, or continued lines, the clients get it with real line ends."""
    ca, chain, key = (each.strip().replace("\n", line_end) for each in pem)
    tls = parsed(
        f"security.protocol=SSL\nssl.truststore.certificates={ca}\nssl.keystore.certificate.chain={chain}\n"
        f"ssl.keystore.key={key}\nssl.key.password={SECRET}\n"
    ).security.tls
    assert tls == Tls(trusted=pem[0], certificates=pem[1], key=pem[2], key_password=SECRET)


def test_a_file_of_kcat_or_confluent_kafka_is_understood(pem, tmp_path):
    """The properties of librdkafka for login, certificates and key give the same settings as Kafka's properties."""
    for name, text in zip(("ca.pem", "chain.pem", "key.pem"), pem, strict=True):
        (tmp_path / name).write_text(text)
    understood = parsed(
        "metadata.broker.list=h:1\nsecurity.protocol=sasl_ssl\nsasl.mechanisms=SCRAM-SHA-512\nsasl.username=u\n"
        f"sasl.password={SECRET}\nssl.ca.location={tmp_path}/ca.pem\nssl.certificate.location={tmp_path}/chain.pem\n"
        f"ssl.key.location={tmp_path}/key.pem\nssl.key.password={SECRET}\nenable.ssl.certificate.verification=true\n"
        "ssl.endpoint.identification.algorithm=none\n"
    )
    assert understood == ClientProperties(
        bootstrap_servers="h:1",
        security=Security(
            tls=Tls(trusted=pem[0], certificates=pem[1], key=pem[2], key_password=SECRET, check_host_name=False),
            login=Password(mechanism="SCRAM-SHA-512", username="u", password=SECRET),
        ),
        not_used=(),
    )


def test_inline_pem_and_oauth_of_librdkafka_are_understood(pem):
    """The properties of librdkafka for inline PEM and for an OAuth client give the same settings as Kafka's."""
    ca, chain, key = (each.strip().replace("\n", "\\n") for each in pem)
    understood = parsed(
        f"security.protocol=SASL_SSL\nssl.ca.pem={ca}\nssl.certificate.pem={chain}\nssl.key.pem={key}\n"
        "sasl.mechanisms=OAUTHBEARER\nsasl.oauthbearer.method=oidc\nsasl.oauthbearer.client.id=me\n"
        f"sasl.oauthbearer.client.secret={SECRET}\nsasl.oauthbearer.token.endpoint.url=https://h/token\n"
    )
    assert understood.security.tls == Tls(trusted=pem[0], certificates=pem[1], key=pem[2])
    server = TokenServer(endpoint="https://h/token", grant=ClientSecret(client_id="me", secret=SECRET))
    assert understood.security.login == OAuth(source=server)
    assert understood.not_used == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "security.protocol=SASL_SSL\nsasl.mechanisms=SCRAM-SHA-1",
            r"^sasl\.mechanisms is SCRAM-SHA-1; supported are PLAIN",
        ),
        ("sasl.mechanisms=PLAIN\nsasl.mechanism=GSSAPI", "sasl.mechanisms and sasl.mechanism are the same property"),
        ("security.protocol=SSL\nssl.ca.location=/no/ca", r"^ssl\.ca\.location can't be read \(No such file"),
        (
            "security.protocol=SSL\nssl.certificate.location=/no/chain",
            "only one of ssl.certificate.location and",
        ),
        (f"security.protocol=SSL\nssl.key.location={SECRET}", "only one of ssl.certificate.location and"),
        (
            f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.password={SECRET}",
            "or set sasl.username",
        ),
    ],
)
def test_mistakes_in_librdkafkas_properties_are_named_as_they_are_written(text, complaint):
    """An error about a property of librdkafka spells the property's name as the file does, and shows no secret."""
    with pytest.raises(InvalidInput, match=complaint) as refusal:
        parsed(text)
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("sasl.mechansm", "did you mean sasl.mechanism or sasl.mechanisms?"),
        ("security.protcol", "did you mean security.protocol?"),
        ("bootstrap_servers", "did you mean bootstrap.servers?"),
        ("spring.kafka.properties.sasl.mechanism", "did you mean sasl.mechanism?"),
        ("admin.ssl.truststore.location", "did you mean ssl.truststore.location?"),
        ("sasl.mechanism", ""),
        ("ssl.keystore.password", ""),
        ("ssl.truststore.password", ""),
        ("serviceName in sasl.jaas.config", ""),
    ],
)
def test_a_slip_in_the_name_of_a_property(key, meant):
    """For a mistyped name of a property, "did you mean" suggests the right name. A right name gets no suggestion."""
    assert similar_property(key) == meant


@pytest.mark.parametrize("memory", [True, False])
def test_a_private_key_is_in_no_file_that_has_a_name(pem, tmp_path, monkeypatch, memory):
    """A client key is passed to Python's ssl in a file without a name, so a killed process leaves no key behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if not memory:
        monkeypatch.delattr(os, "memfd_create")
    seen = []
    load = ssl.SSLContext.load_cert_chain

    def spy(context, certificates, key, password):
        seen.append((Path(certificates).read_text(), Path(key).read_text(), list(tmp_path.iterdir())))
        load(context, certificates, key, password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", spy)
    Tls(certificates=pem[1], key=pem[2], key_password=SECRET).context()
    assert seen == [(pem[1], pem[2], [])]


@pytest.mark.parametrize(
    ("password", "complaint"), [(None, "is encrypted: set ssl.key.password"), ("no", "check them and ssl.key.password")]
)
def test_a_missing_or_wrong_key_password_is_refused(pem, password, complaint):
    """If the password of an encrypted key is missing or wrong, an error names ``ssl.key.password``."""
    with pytest.raises(InvalidInput, match=complaint):
        Tls(certificates=pem[1], key=pem[2], key_password=password).context()


UNREACHED = (5, r"error: no bootstrap server can be reached \(127\.0\.0\.1:1: .*\n")
MARKED = (2, r"error: \S+ begins with a byte order mark, with which Java can't read it: save it without one\n")
# Contents of the file, and what `list` ends with.
HOSTILE: dict[str, tuple[bytes, tuple[int, str]]] = {
    "byte order mark": (b"\xef\xbb\xbfsecurity.protocol=PLAINTEXT\n", MARKED),
    "UTF-16": ("security.protocol=PLAINTEXT\n".encode("utf-16"), MARKED),
    "line ends of Windows": (
        b"security.protocol=SSL\r\nssl.truststore.location=/no/ca\r\n",
        (2, r"error: ssl\.truststore\.location can't be read \(No such file or directory\): .*\n"),
    ),
    "a key twice": (f"security.protocol={SECRET}\nsecurity.protocol=PLAINTEXT".encode(), UNREACHED),
    "continued lines": (b"security.\\\r\n \t protocol = \\\n  PLAIN\\\r TEXT\\", UNREACHED),
    "escapes": (b"security.protoco\\u006c=\\u0050LAINTEXT\\\n\n", UNREACHED),
    "a cut escape": (f"a={SECRET}\\u00".encode(), (2, r"error: .* is not followed by four hexadecimal digits: .*\n")),
    "half of a character": (
        f"security.protocol=SASL_SSL\nsasl.username={SECRET}\\ud800\n".encode(),
        (2, "error: the value of sasl.username is not UTF-8, or has half of a character: write it anew\n"),
    ),
    "an unknown protocol": (b"security.protocol=\\u0000\\n", (2, "error: security.protocol is an unknown value; .*\n")),
    "no text": (
        bytes(range(256)),
        (5, "warning: .*: not used here, .*\nerror: no bootstrap server can be reached .*\n"),
    ),
    "larger than any": (
        b"#" * 1_000_001,
        (2, "error: .* is larger than 1,000,000 bytes: name a client.properties file\n"),
    ),
    "a key of several lines": (
        f"ssl.keystore.key=-----BEGIN PRIVATE KEY-----\n{SECRET}+/x\nMII{WORD}\n-----END PRIVATE KEY-----".encode(),
        (5, r"warning: .*: a line that is not a property \(.*\), ssl\.keystore\.key\nerror: no bootstrap server .*\n"),
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_one_line_with_its_exit_code(tmp_path, case):
    """Whatever a client.properties file contains, ``list`` ends with a one-line error without a secret."""
    content, (expected, said) = HOSTILE[case]
    (tmp_path / "client.properties").write_bytes(content)
    code, out, err = CliHere(tmp_path).outcome(*LIST, "client.properties")
    assert (code, out) == (expected, "")
    assert re.fullmatch(said, err), err
    assert SECRET not in err
    assert WORD not in err


def test_what_is_no_file_is_one_line(tmp_path):
    """If ``--command-config`` names a folder or a device, a one-line error refuses it. A pipe is read to its end."""
    cli, pipe = CliHere(tmp_path), tmp_path / "pipe"
    assert cli.outcome(*LIST, ".") == (2, "", "error: . is a folder: name a file in it\n")
    assert "is a device" in cli.fails(*LIST, "/dev/zero", code=2)
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_text, args=("security.protocol=nonsense",))
    writing.start()
    assert "security.protocol is an unknown value" in cli.fails(*LIST, pipe, code=2)
    writing.join()


def connection(file=None, *properties: str, server: str | None = "a:1") -> Connection:
    return Connection(server, file, list(properties), "60s")


@pytest.fixture
def in_environment() -> Iterator[Callable[[str], object]]:
    """Return a function that replaces the client properties that the command line reads from the environment."""
    before = environment.properties.get()
    yield lambda text: environment.properties.set({environment.PROPERTIES: text})
    environment.properties.set(before)


def test_options_override_the_environment_and_the_environment_the_file(tmp_path, in_environment, capfd):
    """Options override properties from the environment, and these override the file. The file is read as ISO 8859-1."""
    file = tmp_path / "client.properties"
    jaas = f'{PLAIN} required username="\xe4" password="{SECRET}";'
    file.write_bytes(
        f"bootstrap.servers=x:1\nsecurity.protocol=SSL\nsasl.mechanism=GSSAPI\na=1\n{jaas and ''}".encode()
    )
    in_environment(f"sasl.mechanism=PLAIN\nsasl.jaas.config={jaas}")
    config = connection(file, "security.protocol=SASL_PLAINTEXT", server=None).config()
    assert config.bootstrap_servers == "x:1"
    assert (config.security.protocol, config.security.principal) == ("SASL_PLAINTEXT", "User:ä")
    warned = capfd.readouterr().err
    assert warned == f"warning: {file}: not used here, with security.protocol SASL_PLAINTEXT: a\n"
    assert connection(file, "security.protocol=PLAINTEXT").config().bootstrap_servers == "a:1"
    file.write_bytes(b"sasl.jaas.config=" + jaas.encode("latin-1"))
    in_environment("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN")
    assert connection(file).config().security.principal == "User:ä"


def test_a_property_of_librdkafka_that_means_nothing_here_is_named_with_what_to_do(tmp_path, capfd):
    """If a property of librdkafka has no equivalent in Kafka, a warning names it and gives the reason."""
    file = tmp_path / "kcat.conf"
    file.write_text("security.protocol=ssl\nenable.ssl.certificate.verification=false\nssl.crl.location=/x\n")
    assert connection(file).config().security.protocol == "SSL"
    assert capfd.readouterr().err == (
        f"warning: {file}: not used here, with security.protocol SSL: enable.ssl.certificate.verification "
        "(certificates are always verified; set ssl.ca.location to trust one), "
        "ssl.crl.location (revoked certificates are not looked up)\n"
    )


def test_a_secret_on_the_command_line_is_refused_and_not_repeated(monkeypatch):
    """A secret in ``--property`` is refused, because the process list would show it. The error does not repeat it."""
    passphrase = "sasl.oauthbearer.assertion.private.key.passphrase"
    for key in ("sasl.jaas.config", "sasl.password", "ssl.keystore.key", "ssl.key.pem", "x.client.secret", passphrase):
        with pytest.raises(UsageError, match=f"--property {key} would show a secret in the process list") as refusal:
            connection(None, f"{key}={SECRET}").config()
        assert SECRET not in str(refusal.value)
    with pytest.raises(UsageError, match="is not KEY=VALUE") as refusal:
        connection(None, SECRET).config()
    assert SECRET not in str(refusal.value)


def test_every_command_that_connects_has_the_connection_options():
    """Every command with ``--bootstrap-server`` also has ``--command-config``, ``--property`` and ``--timeout``."""
    options = {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in typer.main.get_group(command_line()).commands.items()
    }
    connecting = {name for name, known in options.items() if "--bootstrap-server" in known}
    assert "snapshot" in connecting
    wanted = {"--command-config", "--property", "--timeout"}
    assert {name: wanted - options[name] for name in connecting if wanted - options[name]} == {}
