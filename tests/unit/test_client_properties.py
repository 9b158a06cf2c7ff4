"""client.properties, read as Java reads it, and the settings that each client gets from it."""

from __future__ import annotations

import ssl
import stat
import tempfile
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

from migrate_groups.cli.connect import Connection
from migrate_groups.cli.registry import command_line
from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.kafka.credentials.client_properties import parse_properties, understand
from migrate_groups.kafka.credentials.jaas import parse_jaas
from migrate_groups.kafka.credentials.security import Security, Tls

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SECRET = "hidden-7"
WORD = "hidden7"  # a secret that the JAAS parser takes for a class name


def told(text: str):
    return understand(parse_properties(text, "test"))


def test_properties_are_read_as_java_reads_them():
    """Comments, three separators, spaces, continued lines and escapes are read; the last of two equal keys counts."""
    text = "# a\n! b\n one : 1\ntwo 2\nthree=a\\\n   b\nfour=\\u00e4\\t\\=\nfive=x \nfive=y\nsix\n"
    assert parse_properties(text, "f") == {
        **{"one": "1", "two": "2", "three": "ab", "four": "ä\t=", "five": "y", "six": ""}
    }


def test_a_file_that_is_no_properties_file_is_refused():
    r"""A ``\u`` without four hex digits is refused; Java throws on it, too."""
    with pytest.raises(InvalidInput, match=r"f: a \\u is not followed"):
        parse_properties("a=\\u12", "f")


@given(st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])))
def test_any_password_survives_both_escapes(password):
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
    """Both kinds of quotes, comments and octal escapes are read; ``=`` and ``;`` within quotes are plain text."""
    assert parse_jaas(text).options == options


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is not: login module"),
        (f'{PLAIN} required password="{SECRET}"', "; at its end"),
        (f'{PLAIN} password="{SECRET}";', "is not: login module"),
        (f"{PLAIN} required password={SECRET}!;", "from its character 83 on"),
        (f'{PLAIN} required password="{SECRET};', "a quote that does not end"),
        (f"{PLAIN} required password {SECRET};", "is not name="),
        (f"{PLAIN} required a={SECRET}; {PLAIN} required b=c;", "a second login module"),
    ],
)
def test_jaas_that_can_not_be_read_is_refused_without_its_secrets(text, complaint):
    """The error says what was expected and where, and quotes nothing of the value."""
    with pytest.raises(InvalidInput, match=complaint) as refusal:
        parse_jaas(text)
    assert SECRET not in str(refusal.value)


def test_nothing_is_plaintext():
    """A file without security settings gives a PLAINTEXT connection, as with Kafka's tools."""
    found = told("bootstrap.servers = a:1,b:2\n")
    assert (found.bootstrap_servers, found.security, found.not_used) == ("a:1,b:2", Security(), ())
    assert found.security.kafka_python() == {"security_protocol": "PLAINTEXT"}
    assert found.security.principal == "User:ANONYMOUS"


def test_what_means_nothing_here_is_named_and_what_only_tunes_is_not():
    """Unknown keys, those of another protocol and unused JAAS parts are named; settings that only tune are not."""
    text = (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nssl.truststore.location=/x\nssl.provider=p\nfoo=1\n"
        f'sasl.jaas.config={PLAIN} required username="u" password="p" refresh="no";\n'
        "auto.offset.reset=latest\nretries=3\nclient.id=x\nrequest.timeout.ms=1\n"
    )
    assert told(text).not_used == (
        *("foo", "refresh in sasl.jaas.config", "request.timeout.ms", "ssl.provider", "ssl.truststore.location"),
    )
    assert told(f'sasl.jaas.config={PLAIN} required username="u" password="p";').not_used == ("sasl.jaas.config",)


OAUTH_TEXT = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=https://t/x\n"
)


def test_client_credentials_in_jaas_or_in_properties_of_their_own(tmp_path, monkeypatch):
    """Credentials in JAAS (KIP-768) and in properties (KIP-1139) give the same settings, with scope and extensions."""
    authorities = tmp_path / "authorities.pem"
    authorities.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(authorities))  # where OpenSSL looks for certificate authorities
    in_jaas = (
        f'{OAUTH_TEXT}sasl.jaas.config={OAUTH} required clientId="c" clientSecret="s" scope="x y" extension_a="b";\n'
    )
    of_their_own = (
        f"{OAUTH_TEXT}sasl.oauthbearer.client.credentials.client.id=c\nsasl.oauthbearer.scope=x y\n"
        f"sasl.oauthbearer.client.credentials.client.secret=s\nsasl.jaas.config={OAUTH} required extension_a=b;\n"
    )
    assert told(in_jaas) == told(of_their_own)
    assert told(in_jaas).not_used == ()
    assert told(in_jaas).security.confluent() == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "c",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.token.endpoint.url": "https://t/x",
        "sasl.oauthbearer.scope": "x y",
        "sasl.oauthbearer.extensions": "a=b",
        "https.ca.location": str(authorities),
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("security.protocol=TLS", "security.protocol is TLS; expected one of PLAINTEXT, SSL"),
        ("security.protocol=SASL_SSL", "sasl.mechanism is GSSAPI; taken here are PLAIN"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "PLAIN needs a username and a password"),
        (
            f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={SCRAM} required password=x;",
            "sasl.jaas.config is for SCRAM-SHA-256; PLAIN takes .*PlainLoginModule",
        ),
        ("security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER", "needs sasl.oauthbearer.token.endpoint.url"),
        (OAUTH_TEXT, "needs sasl.oauthbearer.client.credentials.client.id and .secret"),
        (
            "security.protocol=SSL\nssl.truststore.location=/no/such",
            "ssl.truststore.location can't be read: No such file",
        ),
        ("security.protocol=SSL\nssl.truststore.certificates=x", "ssl.truststore.certificates has no certificate"),
        ("security.protocol=SSL\nssl.keystore.key=x", "ssl.keystore.certificate.chain has no certificate"),
        ("security.protocol=SSL\nssl.endpoint.identification.algorithm=x", "is neither https nor empty"),
    ],
)
def test_what_can_not_be_used_is_refused(text, complaint):
    """The error names the property and what was expected."""
    with pytest.raises(InvalidInput, match=complaint):
        told(text)


STRAY = f'security.protocol=SASL_SSL\nsasl.jaas.config={PLAIN} required username="u" password="{SECRET}";'


@pytest.mark.parametrize(
    "key", ["sasl.mechanism", "security.protocol", "ssl.truststore.location", "bootstrap.servers", "group.id", "x"]
)
def test_a_stray_backslash_shows_no_secret(key):
    """A backslash that swallows the next line, jaas.config too, is refused by the key's name, without the value."""
    with pytest.raises(InvalidInput, match=f"the value of {key} has another property in it") as refusal:
        told(f"{key}=PLAIN\\\n  {STRAY}")
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"security.protocol={SECRET}", "security.protocol is something else; expected one of PLAINTEXT"),
        (f"security.protocol=SASL_SSL\nsasl.mechanism={SECRET}", "sasl.mechanism is something else; taken here"),
        (
            f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={WORD} required a=b;",
            "is for another mechanism; PLAIN takes",
        ),
        (f"security.protocol=SSL\nssl.truststore.location={SECRET}", "location can't be read: No such file"),
        (f"security.protocol=SSL\nssl.keystore.location={SECRET}", "location can't be read: No such file"),
        ("security.protocol=SSL\nssl.keystore.location=\\u0000", "location can't be read: that is no name"),
        (f"security.protocol=SSL\nssl.endpoint.identification.algorithm={SECRET}", "is neither https nor empty"),
        (f"{OAUTH_TEXT}sasl.oauthbearer.token.endpoint.url={SECRET}", "needs sasl.oauthbearer.token.endpoint.url"),
    ],
)
def test_no_value_is_said_that_may_be_a_secret(text, complaint):
    """A value is quoted only where it is a word that every Kafka user knows."""
    with pytest.raises(InvalidInput, match=complaint) as refusal:
        told(text)
    assert SECRET not in str(refusal.value)
    assert WORD not in str(refusal.value)


def test_an_address_from_the_properties_stays_unsaid():
    """A wrong address is quoted only if it is from the command line."""
    with pytest.raises(InvalidInput, match=r"bootstrap\.servers is not host:port") as refusal:
        connection(None, f"bootstrap.servers={SECRET}", server=None).config()
    assert SECRET not in str(refusal.value)
    with pytest.raises(UsageError, match="not a bootstrap server: 'here'"):
        connection(server="here").config()


@pytest.mark.parametrize(
    ("content", "kind", "command"),
    [
        (b"\xfe\xed\xfe\xed\0", "truststore", "keytool -list -rfc -keystore {0}/s.x > {0}/s.pem;"),
        (
            b"\xfe\xed\xfe\xed\0",
            "keystore",
            "keytool -importkeystore -srckeystore {0}/s.x -destkeystore {0}/s.p12 -deststoretype PKCS12 && "
            "openssl pkcs12 -in {0}/s.p12 -out {0}/s.pem;",
        ),
        (b"\x30\x82\0", "truststore", "keytool -list -rfc -keystore {0}/s.x > {0}/s.pem;"),
        (b"\x30\x82\0", "keystore", "openssl pkcs12 -in {0}/s.x -out {0}/s.pem;"),
    ],
)
def test_another_store_says_how_it_becomes_pem(tmp_path, content, kind, command):
    """For a JKS or PKCS12 store the error has the commands that convert it, with the file names filled in."""
    (tmp_path / "s.x").write_bytes(content)
    with pytest.raises(InvalidInput) as refusal:
        told(f"security.protocol=SSL\nssl.{kind}.location={tmp_path}/s.x\n")
    assert command.format(tmp_path) in str(refusal.value)
    assert f"ssl.{kind}.location={tmp_path}/s.pem" in str(refusal.value)


@pytest.fixture(scope="module")
def pem():
    """An authority's certificate, and a client's certificate chain and encrypted key."""
    authority = trustme.CA()
    leaf = authority.create_child_ca().issue_cert("client.example")
    key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(SECRET.encode()))
    chain = "".join(each.bytes().decode() for each in leaf.cert_chain_pems)
    return authority.cert_pem.bytes().decode(), chain, locked.decode()


@pytest.mark.parametrize("line_end", ["\\n", " \\\n", "\\n\\\n  "])
def test_pem_in_properties_may_have_lost_its_lines(pem, line_end):
    r"""PEM with ``\n`` for line ends, or in continued lines, gets its line ends back: both clients need them."""
    ca, chain, key = (each.strip().replace("\n", line_end) for each in pem)
    tls = told(
        f"security.protocol=SSL\nssl.truststore.certificates={ca}\nssl.keystore.certificate.chain={chain}\n"
        f"ssl.keystore.key={key}\nssl.key.password={SECRET}\n"
    ).security.tls
    assert tls == Tls(trusted=pem[0], certificates=pem[1], key=pem[2], key_password=SECRET)


def test_no_key_stays_on_a_disk(pem, tmp_path, monkeypatch):
    """Python reads a client key only from a file: that file has mode 600 and is deleted at once."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen = []
    load = ssl.SSLContext.load_cert_chain

    def spy(context, name, **arguments):
        seen.append(stat.S_IMODE(Path(name).stat().st_mode))
        load(context, name, **arguments)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", spy)
    Tls(certificates=pem[1], key=pem[2], key_password=SECRET).context()
    assert seen == [0o600]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("password", "complaint"), [(None, "is encrypted: say ssl.key.password"), ("no", "is ssl.key.password right")]
)
def test_a_key_that_stays_locked_is_refused(pem, password, complaint):
    """A missing or wrong key password is an error; OpenSSL would ask for it on the terminal."""
    with pytest.raises(InvalidInput, match=complaint):
        Tls(certificates=pem[1], key=pem[2], key_password=password).context()


def connection(file=None, *properties: str, server: str | None = "a:1") -> Connection:
    return Connection(server, file, list(properties), "60s")


def test_options_overrule_the_environment_which_overrules_the_file(tmp_path, monkeypatch, capfd):
    """Options win over the environment, the environment over the file; the file is read as ISO 8859-1, as Java does."""
    file = tmp_path / "client.properties"
    jaas = f'{PLAIN} required username="\xe4" password="{SECRET}";'
    file.write_bytes(
        f"bootstrap.servers=x:1\nsecurity.protocol=SSL\nsasl.mechanism=GSSAPI\na=1\n{jaas and ''}".encode()
    )
    monkeypatch.setenv("MIGRATE_GROUPS_PROPERTIES", f"sasl.mechanism=PLAIN\nsasl.jaas.config={jaas}")
    config = connection(file, "security.protocol=SASL_PLAINTEXT", server=None).config()
    assert config.bootstrap_servers == "x:1"
    assert (config.security.protocol, config.security.principal) == ("SASL_PLAINTEXT", "User:ä")
    warned = capfd.readouterr().err
    assert warned == f"warning: {file}: not used here, with security.protocol SASL_PLAINTEXT: a\n"
    assert connection(file, "security.protocol=PLAINTEXT").config().bootstrap_servers == "a:1"
    file.write_bytes(b"sasl.jaas.config=" + jaas.encode("latin-1"))
    monkeypatch.setenv("MIGRATE_GROUPS_PROPERTIES", "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN")
    assert connection(file).config().security.principal == "User:ä"


def test_a_secret_on_the_command_line_is_refused_unsaid(monkeypatch):
    """A secret in ``--property`` is refused, because the process list shows it; the error does not repeat it."""
    passphrase = "sasl.oauthbearer.assertion.private.key.passphrase"
    for key in ("sasl.jaas.config", "ssl.key.password", "ssl.keystore.key", "x.client.secret", passphrase):
        with pytest.raises(UsageError, match=f"--property {key} would show a secret in the process list") as refusal:
            connection(None, f"{key}={SECRET}").config()
        assert SECRET not in str(refusal.value)
    with pytest.raises(UsageError, match="is not KEY=VALUE") as refusal:
        connection(None, SECRET).config()
    assert SECRET not in str(refusal.value)


def test_every_command_that_connects_takes_them():
    """Every command with --bootstrap-server has --command-config, --property and --timeout."""
    options = {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in typer.main.get_group(command_line()).commands.items()
    }
    connecting = {name for name, known in options.items() if "--bootstrap-server" in known}
    assert "snapshot" in connecting
    wanted = {"--command-config", "--property", "--timeout"}
    assert {name: wanted - options[name] for name in connecting if wanted - options[name]} == {}
