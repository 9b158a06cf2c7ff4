"""SASL OAUTHBEARER over TLS, with kafka-python and confluent-kafka: each way to get a token, and tokens that expire."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.credentials.client_properties import understand
from migrate_groups.kafka.credentials.oauth import NoToken, OAuth
from migrate_groups.kafka.credentials.properties import parse_properties
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.migration.reading.requests import read_committed
from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import broker_world
from tests.support.hand_over import HandOver
from tests.support.http_server import Handler, serving
from tests.support.secured import ALLOWED_URLS, MODULES, SECRETS, Secured, jaas, properties_text
from tests.support.token_server import AUDIENCE, metadata_server
from tests.support.versions import NEEDS_CLIENT_ASSERTION, NEEDS_SCRAM, NEEDS_TOOL

pytestmark = NEEDS_SCRAM
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
OAUTH = f"{MODULES}.oauthbearer"


def of_kafka(secured: Secured, **properties: str) -> dict[str, str]:
    """Return login properties as Kafka's tools need them; the JAAS options name the truststore for the token server."""
    store = {"location": str(secured.folder / "trust.jks"), "password": SECRETS["store"]}
    options = {f"ssl.truststore.{name}": value for name, value in store.items()}
    return {
        "security_protocol": "SASL_SSL",
        **secured.trust(),
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_login_callback_handler_class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
        "sasl_oauthbearer_token_endpoint_url": secured.tokens,
        "sasl_oauthbearer_scope": "kafka",
        "sasl_jaas_config": jaas("oauthbearer.OAuthBearerLoginModule", **options),
    } | properties


def assertion(secured: Secured, retriever: str) -> dict[str, str]:
    return of_kafka(
        secured,
        sasl_oauthbearer_jwt_retriever_class=f"{OAUTH}.{retriever}",
        sasl_oauthbearer_assertion_private_key_file=str(secured.folder / "assertion.pem"),
        sasl_oauthbearer_assertion_claim_aud=AUDIENCE,
        sasl_oauthbearer_assertion_claim_sub="app",
        sasl_oauthbearer_assertion_claim_iss="app",
        sasl_oauthbearer_assertion_claim_jti_include="true",
    )


def token_file(secured: Secured) -> dict[str, str]:
    file = secured.folder / "token"
    file.write_text(secured.server.token(3600))
    return of_kafka(secured, sasl_oauthbearer_token_endpoint_url=file.as_uri())


def of_librdkafka(secured: Secured) -> dict[str, str]:
    return {
        "metadata_broker_list": secured.address("SASL_SSL"),
        "security_protocol": "sasl_ssl",
        "ssl_ca_location": str(secured.folder / "ca.pem"),
        "sasl_mechanisms": "OAUTHBEARER",
        "sasl_oauthbearer_method": "oidc",
        "sasl_oauthbearer_grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "sasl_oauthbearer_token_endpoint_url": secured.tokens,
        "sasl_oauthbearer_scope": "kafka",
        "sasl_oauthbearer_extensions": "logicalCluster=lkc-1,identityPoolId=pool-2",
        "sasl_oauthbearer_assertion_private_key_file": str(secured.folder / "assertion.pem"),
        "sasl_oauthbearer_assertion_claim_aud": AUDIENCE,
        "sasl_oauthbearer_assertion_claim_sub": "app",
        "https_ca_location": str(secured.folder / "ca.pem"),
    }


WAYS = {
    "client assertion": lambda it: assertion(it, "ClientCredentialsJwtRetriever"),
    "jwt-bearer": lambda it: assertion(it, "JwtBearerJwtRetriever"),
    "token file": token_file,
    "librdkafka": of_librdkafka,
}
OF_THE_TOOL = (pytest.param("client assertion", marks=NEEDS_CLIENT_ASSERTION), "jwt-bearer", "token file")


@pytest.mark.parametrize("way", WAYS)
def test_both_clients_log_in_with_a_token(secured: Secured, here, hand_over, way, capfd):
    """`list`, `snapshot` and `migrate` work with a token from a server or a file, and their output shows no secret."""
    file = here.folder / "client.properties"
    file.write_text(properties_text(**WAYS[way](secured)))
    said = hand_over.run("-vv", "--bootstrap-server", secured.address("SASL_SSL"), "--command-config", file)
    assert "warning" not in said
    written = [path.read_text() for path in here.folder.rglob("*.*") if path.suffix in (".json", ".csv", ".toml")]
    shown = "".join([said, *capfd.readouterr(), *written])
    assert not [secret for secret in (*SECRETS.values(), "eyJ", "PRIVATE KEY") if secret in shown]


def test_both_clients_log_in_with_a_token_of_azures_metadata_server(secured: Secured, here, hand_over):
    """A hand-over works with librdkafka's ``azure_imds``, on a fake metadata server, without any configured secret."""
    token = json.dumps({"access_token": secured.server.token(3600), "expires_in": "3600"})
    properties = {name: value for name, value in of_librdkafka(secured).items() if "oauthbearer" not in name} | {
        "sasl_oauthbearer_method": "oidc",
        "sasl_oauthbearer_metadata_authentication_type": "azure_imds",
        "sasl_oauthbearer_config": "query=resource=kafka",
    }
    del properties["https_ca_location"]
    with metadata_server({"/token": token}) as (url, _):
        properties["sasl_oauthbearer_token_endpoint_url"] = f"{url}/token"
        (here.folder / "client.properties").write_text(properties_text(**properties))
        assert "warning" not in hand_over.run("--command-config", "client.properties")


@pytest.mark.long
@NEEDS_TOOL
@pytest.mark.parametrize("way", OF_THE_TOOL)
def test_kafkas_tool_reads_the_same_file(secured: Secured, tmp_path, secured_topic, way, monkeypatch):
    """Kafka's own tool logs in with the same properties file, and sends the same token request as this tool."""
    before = len(secured.server.requests)
    file = tmp_path / "client.properties"
    file.write_text(properties_text(**WAYS[way](secured)))
    with broker_world(secured.sandbox.bootstrap_servers) as world:
        world.commit(f"tool {way}", TopicPartition(secured_topic, 0), 7)
    allowed = f"{secured.tokens},{(secured.folder / 'token').as_uri()}"
    files = f"{ALLOWED_URLS.replace('urls', 'files')}={secured.folder / 'assertion.pem'},{secured.folder / 'token'}"
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"{ALLOWED_URLS}={allowed} {files}")
    address = secured.address("SASL_SSL")
    arguments = ("--describe", "--group", f"tool {way}", "--command-config", str(file))
    described = secured.sandbox.run_tool(TOOL, *arguments, bootstrap_server=address)
    assert re.search(rf" {secured_topic} +0 +7 +10 +3 ", described.stdout), described.stdout + described.stderr
    if way != "token file":
        login(WAYS[way](secured)).token()
        of_java, ours = map(content_of, secured.server.requests[before:])
        assert ours == of_java


def content_of(form: dict[str, str]) -> dict[str, object]:
    """Return a token request with its assertion decoded.

    Its times are relative to ``iat``, and its random identifier is replaced.
    """
    (name,) = {"assertion", "client_assertion"} & form.keys()
    header, claims = (json.loads(urlsafe_b64decode(part + "==")) for part in form[name].split(".")[:2])
    times = {each: claims.pop(each) - claims["iat"] for each in ("exp", "nbf")}
    return form | {name: [header, claims | times | {"iat": "now", "jti": "an identifier"}, claims.keys()]}


def login(properties: dict[str, str]) -> OAuth:
    found = understand(parse_properties(properties_text(**properties), "test")).security.login
    assert isinstance(found, OAuth)
    return found


def test_a_token_file_is_read_anew_for_each_connection(secured: Secured):
    """If another program renews the token in a token file, as in Kubernetes, the next connection uses the new token.

    An expired token is refused.
    """
    held = login(token_file(secured))
    file = secured.folder / "token"
    newer = secured.server.token(7200)
    file.write_text(f"{newer}\n")
    assert held.token() == newer
    assert held.confluent()["oauth_cb"][0] == newer
    file.write_text(secured.server.token(-1))
    with pytest.raises(NoToken, match="the token file has an expired token"):
        login(of_kafka(secured, sasl_oauthbearer_token_endpoint_url=file.as_uri())).token()


def test_confluents_extensions_go_to_both_clients(secured: Secured):
    """The SASL extensions of a Confluent Cloud identity pool reach kafka-python and confluent-kafka.

    They are read from JAAS options or from librdkafka's property.
    """
    expected = {"logicalCluster": "lkc-1", "identityPoolId": "pool-2"}
    options = {f"extension_{name}": value for name, value in expected.items()}
    in_jaas = jaas("oauthbearer.OAuthBearerLoginModule", clientId="app", clientSecret=SECRETS["client"], **options)
    trust = {"https_ca_location": str(secured.folder / "ca.pem")}
    for held in (login(of_kafka(secured, sasl_jaas_config=in_jaas, **trust)), login(of_librdkafka(secured))):
        assert held.confluent()["oauth_cb"][3] == expected
        assert held.kafka_python()["sasl_oauth_token_provider"].extensions() == expected


@pytest.mark.long
def test_a_wait_outlives_its_tokens(secured: Secured, cli, secured_topic, monkeypatch):
    """`migrate` completes although its tokens, valid for ten seconds, expire three times while it waits for
    the stop.
    """
    monkeypatch.setattr(secured.server, "lifetime", 10)
    (cli.folder / "client.properties").write_text(properties_text(**assertion(secured, "JwtBearerJwtRetriever")))
    cli.environment["MIGRATE_GROUPS_BOOTSTRAP_SERVER"] = secured.address("SASL_SSL")
    with broker_world(secured.sandbox.bootstrap_servers) as world:
        hand_over, before = HandOver(cli, world, secured_topic), len(secured.server.requests)
        hand_over.wait_until(
            lambda: len(secured.server.requests) >= before + 4, "--command-config", "client.properties"
        )


def test_a_read_back_ends_the_sleep_of_confluent_kafkas_constructor(secured: Secured, secured_topic):
    """With a token, confluent-kafka's constructor sleeps for a second; `SecondClient` ends this sleep earlier."""
    security = understand(parse_properties(properties_text(**token_file(secured)), "test")).security
    config = ClientConfig(bootstrap_servers=secured.address("SASL_SSL"), timeout=60, security=security)
    wanted, seconds = TopicPartition(secured_topic, 0), [1.0]
    with closing(SecondClient(config)) as second:
        while min(seconds) >= 1.0 and len(seconds) < 9:  # this machine may be busy, but hardly eight times in turn
            before = time.monotonic()
            assert read_committed(second, {"no-such-group": [wanted]})["no-such-group"] == {wanted: None}
            seconds.append(time.monotonic() - before)
    assert min(seconds) < 1.0


def test_a_token_is_renewed_early_and_kept_while_the_server_is_down(secured: Secured, monkeypatch):
    """A token is used for 80 % of its lifetime, and for the rest of its lifetime only if the token server fails."""
    monkeypatch.setattr(secured.server, "lifetime", 3600)
    held = login(assertion(secured, "JwtBearerJwtRetriever"))
    asked, now = len(secured.server.requests), time.monotonic()
    assert held.token() == held.token()
    assert len(secured.server.requests) == asked + 1
    assert now + 2880 <= held._held[0].fresh_until < now + 3000
    held._held[:] = [held._held[0]._replace(fresh_until=now)]
    first = held.token()
    assert len(secured.server.requests) == asked + 2
    monkeypatch.setattr(secured.server, "failing", 503)
    monkeypatch.setattr("migrate_groups.kafka.credentials.oauth._USED", 0.0)
    held._held[:] = [held._held[0]._replace(fresh_until=0.0)]
    assert held.token() == first
    held._held[:] = [held._held[0]._replace(valid_until=0.0)]
    with pytest.raises(NoToken, match="gave no token: HTTP 503 temporarily_unavailable"):
        held.token()


def test_a_redirect_is_not_followed(secured: Secured, monkeypatch):
    """If the token server answers with a redirect, the login fails, because the client's secret must not go to another
    server.
    """
    monkeypatch.setattr(secured.server, "failing", 307)
    with pytest.raises(NoToken, match="HTTP 307"):
        login(assertion(secured, "ClientCredentialsJwtRetriever")).token()


@contextmanager
def proxy() -> Iterator[tuple[str, list[str]]]:
    """Run an HTTP proxy that tunnels connections. Yield its URL, and the list of addresses that clients have
    requested.
    """
    asked: list[str] = []

    class Tunnel(Handler):
        def do_CONNECT(self) -> None:  # noqa: N802 (the name that http.server calls)
            asked.append(self.path)
            host, _, port = self.path.partition(":")
            with socket.create_connection((host, int(port))) as server:
                self.send_response(200)
                self.end_headers()
                back = threading.Thread(target=pump, args=(server, self.connection))
                back.start()
                pump(self.connection, server)
                back.join()

    def pump(source: socket.socket, target: socket.socket) -> None:
        while content := source.recv(4096):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)

    with serving(Tunnel) as url:
        yield url, asked


def test_the_token_server_is_reached_through_the_proxy_of_the_environment(secured: Secured, monkeypatch):
    """The token server is reached through the proxy in ``https_proxy``, except if ``no_proxy`` names the server."""
    held = login(assertion(secured, "JwtBearerJwtRetriever"))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with proxy() as (url, asked):
        monkeypatch.setenv("https_proxy", url)
        assert held.source.fetch().value
        assert asked == [secured.tokens.split("/")[2]]
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert held.source.fetch().value
    assert len(asked) == 1
