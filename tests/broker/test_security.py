"""Logins on every kind of listener, with properties files that Kafka's tools also read, and errors in properties."""

from __future__ import annotations

import base64
import itertools
import re
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from migrate_groups.kafka import child
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.credentials.client_properties import understand
from migrate_groups.kafka.credentials.properties import parse_properties
from migrate_groups.kafka.records import KafkaRecords
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import broker_world, until
from tests.support.hand_over import HandOver
from tests.support.processes import children_of, gone
from tests.support.secured import ALLOWED_URLS, MODES, SECRETS, Secured, properties_text
from tests.support.versions import NEEDS_SCRAM, NEEDS_TOOL

pytestmark = NEEDS_SCRAM

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
NOW = ("--guard", "0s", "--yes")


@pytest.fixture
def client_properties(here):
    """A function that writes client properties to a file, and returns its path."""

    def write(properties):
        file = here.folder / "client.properties"
        file.write_text(properties_text(**properties))
        return file

    return write


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=NEEDS_TOOL) if mode == "SASL_SSL OAUTHBEARER" else mode for mode in MODES]
)
def test_both_clients_and_kafkas_tool_read_the_same_properties_file(
    secured, here, secured_topic, client_properties, mode, monkeypatch, caplog, capfd
):
    """With one properties file, kafka-python writes an offset, confluent-kafka reads it back, and Kafka's tool shows
    it.

    No output, log or file shows a secret.
    """
    caplog.set_level("DEBUG")
    listener, properties = secured.modes()[mode]
    file, address = client_properties(properties), secured.address(listener)
    (here.folder / "offsets.csv").write_text(f"{secured_topic},0,7\n")
    group = f"group of {mode}"
    code, out, err = here.outcome(
        *("apply", "offsets.csv", "--no-source-group", "--to-group", group, "--second-client", "required", *NOW),
        *("--bootstrap-server", address, "--command-config", file),
    )
    assert code == 0, err
    assert "1 confirmed" in out
    assert "warning" not in err
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"{ALLOWED_URLS}={secured.tokens}")
    described = secured.sandbox.run_tool(
        TOOL, "--describe", "--group", group, "--command-config", str(file), bootstrap_server=address
    )
    assert re.search(rf" {secured_topic} +0 +7 +10 +3 ", described.stdout), described.stdout + described.stderr
    hidden = set(SECRETS.values())
    written = [path.read_text() for path in here.folder.iterdir() if path != file]
    all_that_was_said = "".join([out, err, caplog.text, *capfd.readouterr(), *written])
    assert not [secret for secret in hidden if secret in all_that_was_said]


@pytest.mark.parametrize("mode", MODES)
def test_no_log_of_verbose_has_a_secret(secured, hand_over, client_properties, mode):
    """`list`, `snapshot` and `migrate` work with each kind of login, and their logs show no secret.

    ``-vv`` logs the requests and messages of kafka-python and confluent-kafka, without any password, key or token, even
    if encoded.
    """
    listener, properties = secured.modes()[mode]
    file = client_properties(properties)
    said = hand_over.run("-vv", "--bootstrap-server", secured.address(listener), "--command-config", file)
    group = hand_over.target
    assert re.search(rf"^  \d\.\d{{3}} s  OffsetCommit {group}: 1 partition to broker \d$", said, re.M)
    assert f" s  OffsetFetch {group}: 1 partition from the second client" in said
    assert re.search(r"^  kafka-python: .*Connected$", said, re.M)
    assert re.search(r"^  librdkafka: .*Connected", said, re.M)
    encoded = {base64.b64encode(secret.encode()).decode() for secret in SECRETS.values()}
    keys = {line for line in secured.pem("client.pem").split("-----")[2].split() if line}
    token = {"eyJ"}  # a JSON Web Token begins with it
    unescaped = {"w#o:r"}  # the part of alice's password that no escape changes
    secrets = {*SECRETS.values(), *encoded, *keys, *token, *unescaped, "PRIVATE KEY", "jaas"}
    assert not [secret for secret in secrets if secret in said]


@pytest.mark.parametrize(
    ("program", "client", "ask"),
    [
        ("second_client_process", SecondClient, lambda it, at: it.committed({"nobody": [at]})["nobody"]),
        ("records_process", KafkaRecords, lambda it, at: it.read({at: range(10)}, committed_only=False)),
    ],
)
def test_no_secret_is_in_the_process_list(secured, secured_topic, monkeypatch, program, client, ask):
    """The arguments and the environment of a confluent-kafka process contain no secret; its settings come through a
    pipe.
    """
    monkeypatch.setattr(child, "subprocess", subprocess)  # a cold start: its command line is read
    _, properties = secured.modes()["SASL_PLAINTEXT PLAIN"]
    security = understand(parse_properties(properties_text(**properties), "test")).security
    config = ClientConfig(bootstrap_servers=secured.address("SASL_PLAINTEXT"), timeout=20, security=security)
    with closing(client(config)) as asked:
        assert len(ask(asked, TopicPartition(secured_topic, 0))) == 1
        process = Path(f"/proc/{asked._child._process.pid}")
        assert program.encode() in (process / "cmdline").read_bytes()
        assert re.search(r"^Max core file size +0 +0 ", (process / "limits").read_text(), re.M)  # no core file
        assert SECRETS["alice"].encode() not in (process / "cmdline").read_bytes() + (process / "environ").read_bytes()


def test_a_killed_command_leaves_no_secret_behind(secured, cli, secured_topic):
    """A command that is killed in its first TLS handshake leaves no temporary file, and has shown no secret."""
    (cli.folder / "client.properties").write_text(properties_text(**secured.modes()["mutual TLS, JKS"][1]))
    (cli.folder / "offsets.csv").write_text(f"{secured_topic},0,7\n")
    cli.environment["TMPDIR"] = str(cli.folder / "temporary")
    (cli.folder / "temporary").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        process = cli.cold.start(
            *(
                "apply",
                "offsets.csv",
                "--no-source-group",
                "--to-group",
                "killed",
                *NOW,
                "-vv",
                "--bootstrap-server",
                address,
            ),
            *("--command-config", "client.properties"),
        )
        server.settimeout(60)
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1)  # the client has loaded its key, and begins the handshake
            pids = (process.pid, *children_of(process.pid))
            shown = b"".join(
                Path(f"/proc/{pid}/{name}").read_bytes() for pid in pids for name in ("cmdline", "environ")
            )
            process.kill()
            shown += "".join(process.communicate()).encode()
    assert b"second_client_process" in shown
    left = [path for path in cli.folder.rglob("*") if path.is_file() and path.name != "client.properties"]
    assert not [path for path in left if path.parent.name == "temporary"]
    shown += b"".join(path.read_bytes() for path in left)
    assert not [secret for secret in (*SECRETS.values(), "PRIVATE KEY") if secret.encode() in shown]


def all_secrets(cli, secured: Secured) -> None:
    """Configure ``cli`` with the passwords of truststore and keystore in a file, and an OAuth client's secret in the
    environment.
    """
    stores = secured.modes()["mutual TLS, JKS"][1] | {"security_protocol": "SASL_SSL"}
    (cli.folder / "client.properties").write_text(properties_text(**stores))
    cli.environment |= {
        "MIGRATE_GROUPS_PROPERTIES": properties_text(**secured.login("OAUTHBEARER")),
        "MIGRATE_GROUPS_BOOTSTRAP_SERVER": secured.address("SASL_SSL"),
        "MIGRATE_GROUPS_COMMAND_CONFIG": "client.properties",
        "TMPDIR": str(cli.folder / "temporary"),
    }
    (cli.folder / "temporary").mkdir()


def written_by(cli) -> bytes:
    """Return the content of all files in the command's folder, except the properties file."""
    assert not [*(cli.folder / "temporary").iterdir()]
    files = [path for path in cli.folder.rglob("*") if path.is_file() and path.name != "client.properties"]
    return b"".join(path.read_bytes() for path in files)


def assert_no_secret(shown: bytes) -> None:
    hidden = [*SECRETS.values(), "PRIVATE KEY", "eyJhbGci"]
    assert not [secret for secret in hidden if secret.encode() in shown]


LONG = pytest.mark.long


@pytest.mark.parametrize(
    "end",
    [
        signal.SIGTERM,
        *(pytest.param(each, marks=LONG) for each in (signal.SIGINT, signal.SIGHUP, signal.SIGKILL)),
    ],
)
def test_a_command_that_is_ended_while_it_waits_leaves_no_secret_behind(secured, cli, secured_topic, end, request):
    """If a signal ends `migrate` while it waits for the stop, its logs and files contain no secret.

    The arguments and the environment of its child processes contain none either. No process may write a core file.
    """
    all_secrets(cli, secured)
    cores, most = resource.getrlimit(resource.RLIMIT_CORE)
    request.addfinalizer(lambda: resource.setrlimit(resource.RLIMIT_CORE, (cores, most)))
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    with broker_world(secured.sandbox.bootstrap_servers) as world:
        hand_over = HandOver(cli, world, secured_topic)
        member = world.join(hand_over.source, secured_topic)
        process = cli.cold.start("migrate", "split.toml", "--yes", "--wait", "5m", "-vv", "--plan-out", "plan.json")
        said: list[str] = []
        reading = threading.Thread(target=said.extend, args=(process.stderr,))
        reading.start()
        look = f"DescribeGroups {hand_over.source} from"
        until(lambda: sum(look in line for line in said) > 1 and children_of(process.pid))  # it waits for the stop
        children = children_of(process.pid)
        shown = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        for pid, name in itertools.product(children, ("cmdline", "environ")):
            shown += Path(f"/proc/{pid}/{name}").read_bytes()
        for each in (process.pid, *children):
            assert re.search(r"^Max core file size +0 ", Path(f"/proc/{each}/limits").read_text(), re.M)
        process.send_signal(end)
        reading.join(60)
        out, _ = process.communicate(timeout=60)
        until(lambda: all(map(gone, children)))
        world.leave(member)
    # Python ends by SIGINT, which is 130 in a shell, too, if the interrupt came while a module was imported.
    assert process.returncode in ((-end,) if end == signal.SIGKILL else (130, -signal.SIGINT))
    assert b"second_client_process" in shown
    assert any("kafka-python: " in line for line in said)
    assert_no_secret(shown + written_by(cli) + "".join([out, *said]).encode())


@pytest.mark.parametrize("side", ["source", "target"])
def test_compare_shows_no_secret(secured, cli, world, side):
    """If the settings of the source or the target cluster contain secrets, the logs, output and files of `compare` do
    not.
    """
    all_secrets(cli, secured)
    if side == "target":
        for name in ("PROPERTIES", "BOOTSTRAP_SERVER", "COMMAND_CONFIG"):
            cli.environment[f"MIGRATE_GROUPS_TO_{name}"] = cli.environment.pop(f"MIGRATE_GROUPS_{name}")
    other = "MIGRATE_GROUPS_BOOTSTRAP_SERVER" if side == "target" else "MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER"
    cli.environment[other] = world.bootstrap_servers
    with broker_world(secured.sandbox.bootstrap_servers) as secret:
        topic, group, now = world.name("topic"), world.name("group"), int(time.time() * 1000)
        for each in (world, secret):
            each.create_topic(1, topic=topic)
            each.produce_in_order(topic, 0, [(str(number), now + number) for number in range(10)])
            each.commit(group, TopicPartition(topic, 0), 7)
        done = cli("compare", group, "-vv", "--format", "json", "-o", "translated.csv")
    assert '"status":"exact"' in done.stdout.replace(" ", "")
    assert re.search("^  librdkafka: .*Connected", done.stderr, re.M)
    assert_no_secret(written_by(cli) + (done.stdout + done.stderr).encode())


def test_a_traceback_has_no_secret(secured, cli):
    """If a bug ends a command with a traceback, the traceback contains no secret, not even as the value of a
    variable.
    """
    all_secrets(cli, secured)
    bug = "import migrate_groups.kafka.connection as c, migrate_groups.cli.app as a; c.tenacity = None; a.main()"
    cli.program = ("-c", bug)
    done = cli("list", "-vv", code=1)
    assert "Traceback" in done.stderr
    assert_no_secret(written_by(cli) + (done.stdout + done.stderr).encode())


@pytest.mark.parametrize("given", ["file", "inline"])
def test_both_clients_read_an_encrypted_key(secured, here, secured_topic, client_properties, given):
    """With ssl.key.password, kafka-python and confluent-kafka read an encrypted key, in a file or in the property
    itself.

    Kafka's tool on Java 17 can't read this key.
    """
    pem = secured.pem("locked.pem")
    at = pem.index("-----BEGIN CERTIFICATE")
    inline = {"ssl_keystore_key": pem[:at], "ssl_keystore_certificate_chain": pem[at:]}
    key = inline if given == "inline" else {"ssl_keystore_location": str(secured.folder / "locked.pem")}
    file = client_properties(tls(secured, ssl_keystore_type="PEM", ssl_key_password=SECRETS["key"], **key))
    (here.folder / "offsets.csv").write_text(f"{secured_topic},0,7\n")
    code, out, err = here.outcome(
        *(
            "apply",
            "offsets.csv",
            "--no-source-group",
            "--to-group",
            f"locked {given}",
            "--second-client",
            "required",
            *NOW,
        ),
        *("--bootstrap-server", secured.address("MTLS"), "--command-config", file),
    )
    assert (code, "1 confirmed" in out) == (0, True), err


def tls(secured: Secured, **properties: str) -> dict[str, str]:
    return {"security_protocol": "SSL"} | secured.trust() | properties


def sasl(secured: Secured, mechanism: str, password: str | None = None, **properties: str) -> dict[str, str]:
    return {"security_protocol": "SASL_PLAINTEXT"} | secured.login(mechanism, password) | properties


def sasl_ssl(secured: Secured, mechanism: str, password: str | None = None) -> dict[str, str]:
    return sasl(secured, mechanism, password) | {"security_protocol": "SASL_SSL"} | secured.trust()


REFUSED = r"login as User:alice \(%s\) failed: Authentication failed.*; check --command-config"
UNTRUSTED = "can't be trusted: unable to get local issuer certificate; check ssl.truststore"
NO_TOKEN = (
    r"login as the principal of OAuth client app \(OAUTHBEARER\) failed: the token server 127.0.0.1 gave no token: "
)
# Wrong configurations: the listener, the client's properties, and the error.
WRONG: dict[str, tuple[str, Callable[[Secured], dict[str, str]], str]] = {
    "password": ("SASL_SSL", lambda it: sasl_ssl(it, "PLAIN", "wrong-hidden"), REFUSED % "PLAIN"),
    "password, SCRAM": (
        "SASL_PLAINTEXT",
        lambda it: sasl(it, "SCRAM-SHA-512", "wrong-hidden"),
        REFUSED % "SCRAM-SHA-512",
    ),
    "client secret": (
        "SASL_SSL",
        lambda it: sasl_ssl(it, "OAUTHBEARER", "wrong-hidden"),
        NO_TOKEN + "HTTP 401 invalid_client; check",
    ),
    "token server": (
        "SASL_PLAINTEXT",
        lambda it: sasl(it, "OAUTHBEARER", sasl_oauthbearer_token_endpoint_url="http://127.0.0.1:1/token"),
        NO_TOKEN + ".*refused",
    ),
    "token server's authority": (
        "SASL_PLAINTEXT",
        lambda it: (
            sasl(it, "OAUTHBEARER")
            | {"sasl_jaas_config": it.login("OAUTHBEARER")["sasl_jaas_config"].replace("ca.pem", "other.pem")}
        ),
        NO_TOKEN + ".*certificate verify failed",
    ),
    "authority": ("SSL", lambda it: tls(it, ssl_truststore_location=str(it.folder / "other.pem")), UNTRUSTED),
    "no authority": ("SSL", lambda it: {"security_protocol": "SSL"}, UNTRUSTED),
    "host name": ("SSL by name", tls, "Hostname mismatch, certificate is not valid for 'localhost'; check"),
    "plain client": ("SSL", lambda it: {}, "speaks TLS, but security.protocol is PLAINTEXT; check"),
    "plain client with SASL": (
        "SASL_SSL",
        lambda it: sasl(it, "PLAIN"),
        "speaks TLS, but security.protocol is SASL_PLAINTEXT; check",
    ),
    "TLS client": ("PLAINTEXT", tls, "does not speak TLS, but security.protocol is SSL; check"),
    "TLS client with SASL": (
        "SASL_PLAINTEXT",
        lambda it: sasl_ssl(it, "PLAIN"),
        "does not speak TLS, but security.protocol is SASL_SSL; check",
    ),
    "no login": (
        "SASL_PLAINTEXT",
        lambda it: {},
        r"requires SASL \(OAUTHBEARER, PLAIN, .*\), but security.protocol is",
    ),
    "no login, TLS": (
        "SASL_SSL",
        tls,
        r"requires SASL \(OAUTHBEARER, PLAIN, .*\), but security.protocol is SSL; check",
    ),
    "login": ("PLAINTEXT", lambda it: sasl(it, "PLAIN"), "does not use SASL, but security.protocol is"),
    "no client certificate": (
        "MTLS",
        tls,
        r"closed the TLS connection \(.*\): it refuses the certificate of ssl.keystore, or requires one",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_client_properties_are_a_one_line_error(secured, here, client_properties, case):
    """If client properties do not fit the listener, a command ends with exit code 5 and a one-line error, without a
    secret.

    It ends at once, not only at the timeout.
    """
    listener, properties, said = WRONG[case]
    address = secured.address(listener.removesuffix(" by name"))
    address = address.replace("127.0.0.1", "localhost") if listener.endswith(" by name") else address
    file = client_properties(properties(secured))
    # A time-out of a day, so that a command that waits for it fails by the test's time-out.
    code, out, err = here.outcome(
        "describe", "g", "--bootstrap-server", address, "--command-config", file, "--timeout", "1d"
    )
    assert (code, out) == (5, "")
    assert re.fullmatch(rf"error: .*{said}.*\n", err), err
    assert "hidden" not in err
    assert "timed out" not in err.lower()


@pytest.fixture
def hung():
    """The address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=20) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_hung_server_ends_at_the_timeout(here, hung, protocol):
    """If the bootstrap server accepts connections but never answers, a command ends with exit code 5 at the timeout.

    This holds in a TLS handshake, too.
    """
    options = ("--bootstrap-server", hung, "--property", f"security.protocol={protocol}", "--timeout", "1s")
    code, _, err = here.outcome("describe", "g", *options)
    assert code == 5
    assert (
        err == f"error: no bootstrap server can be reached ({hung}: no answer within 1 s); check --bootstrap-server\n"
    )


def test_hung_servers_leave_time_for_the_others(secured, here, hung):
    """If some bootstrap servers hang, a command finds the working one after them within the timeout.

    Each bootstrap server gets a share of the timeout.
    """
    servers = ",".join([hung, hung, "127.0.0.1:1", secured.address("PLAINTEXT")])
    code, _, err = here.outcome("describe", "no-such-group", "--bootstrap-server", servers, "--timeout", "8s")
    assert (code, "does not exist" in err) == (3, True), err


def test_user_name_with_comma_and_equals_sign_logs_in_with_scram(secured, here, secured_topic, client_properties):
    """A user whose name contains a comma and an equals sign can log in with SCRAM."""
    with broker_world(secured.sandbox.bootstrap_servers) as world:
        name = "a=b,c"
        world.create_scram_user(name, "scram,=hidden")
        world.commit("g-scram", TopicPartition(secured_topic, 0), 1)
    login = secured.login("SCRAM-SHA-256", "scram,=hidden", name)
    file = client_properties({"security_protocol": "SASL_PLAINTEXT"} | login)
    _, _, err = here.outcome(
        "describe", "g-scram", "--bootstrap-server", secured.address("SASL_PLAINTEXT"), "--command-config", file
    )
    assert f"not authorized: User:{name} lacks Describe on Group 'g-scram'" in err


@pytest.mark.parametrize("mode", MODES)
def test_no_secret_is_in_the_repr_of_a_configuration(secured, mode):
    """The repr of a client configuration, which a traceback or log may show, contains no password, key or
    other secret.
    """
    text = properties_text(**secured.modes()[mode][1])
    told = understand(parse_properties(text, "test"))
    shown = repr(ClientConfig(bootstrap_servers="a:1", security=told.security)) + repr(told)
    assert "hidden" not in shown
    assert SECRETS["alice"] not in shown
    assert "PRIVATE KEY" not in shown
