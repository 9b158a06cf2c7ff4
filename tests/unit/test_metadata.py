"""OAuth tokens from the metadata servers of Azure and Google Cloud: the requests, and the tokens for brokers."""

from __future__ import annotations

import base64
import json
import time

import pytest

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials import tokens
from migrate_groups.kafka.credentials.client_properties import understand
from migrate_groups.kafka.credentials.oauth import NoToken, OAuth
from migrate_groups.kafka.credentials.tokens import AzureMetadata, GoogleMetadata
from tests.support.token_server import metadata_server

OAUTH = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
AZURE = {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.metadata.authentication.type": "azure_imds"}
QUERY = "api-version=2018-02-01&resource=https://ns.servicebus.windows.net&client_id=1"
GOOGLE = {"sasl.login.callback.handler.class": "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler"}
TOKEN = json.dumps({"access_token": "secret", "expires_in": "3600", "token_type": "Bearer"})  # Azure's is a text


def login(**properties: str) -> OAuth:
    found = understand(OAUTH | properties)
    assert found.not_used == ()
    assert isinstance(found.security.login, OAuth)
    return found.security.login


@pytest.fixture(autouse=True)
def _a_proxy(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # a metadata server is never asked through a proxy


def test_azures_metadata_server_is_asked_with_the_query_of_librdkafka():
    """With `azure_imds`, the token is requested from Azure's usual address or the configured one.

    The query is that of `sasl.oauthbearer.config`, unchanged.
    """
    config = {"sasl.oauthbearer.config": f"query={QUERY}"}
    assert login(**AZURE, **config).source == AzureMetadata(url=f"{tokens.AZURE}?{QUERY}")
    with metadata_server({"/token": TOKEN}) as (url, asked):
        held = login(**AZURE, **config, **{"sasl.oauthbearer.token.endpoint.url": f"{url}/token"})
        assert held.source.fetch() == ("secret", 3600.0)
    ((path, headers),) = asked
    assert (path, headers["Metadata"]) == (f"/token?{QUERY}", "true")


def test_googles_token_has_the_form_of_googles_class(monkeypatch):
    """The token for Google's brokers has the access token in place of its signature.

    Its payload names the machine's service account.
    """
    account = "/default/email"
    with metadata_server({"/default/token": TOKEN, account: "ops@project.iam.gserviceaccount.com\n"}) as (url, asked):
        monkeypatch.setattr(tokens, "_GOOGLE", f"{url}/default")
        before = int(time.time())
        token, seconds = login(**GOOGLE).source.fetch()
    header, payload, access = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split("."))
    claims = json.loads(payload)
    assert (json.loads(header), access, seconds) == ({"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}, b"secret", 3600.0)
    assert (claims["scope"], claims["sub"]) == ("kafka", "ops@project.iam.gserviceaccount.com")
    assert before <= claims["iat"] <= claims["exp"] - 3600 <= time.time()
    assert [headers["Metadata-Flavor"] for _, headers in asked] == ["Google", "Google"]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({}, "the metadata server of this machine gave no token: HTTP 400 invalid_request"),
        ({"/token": "{}"}, "gave no token: HTTP 200 without an access_token"),
        ({"/token": "[" * 100_000}, "gave no token: HTTP 200 without an access_token"),
        ({"/token": TOKEN}, "did not name the service account: HTTP 400"),
        ({"/token": " " * 2**20 + TOKEN}, "gave no token: the answer is longer than 1 MiB"),
    ],
)
def test_a_metadata_server_that_gives_no_token_is_an_error(monkeypatch, answers, said):
    """If the metadata server gives no token, the error shows the server's reason.

    If no server answers, as outside of the cloud, the error says that the connection was refused.
    """
    with metadata_server(answers) as (url, _):
        monkeypatch.setattr(tokens, "_GOOGLE", url)
        with pytest.raises(NoToken, match=said):
            GoogleMetadata().fetch()
    with pytest.raises(NoToken, match=r"the metadata server of this machine gave no token: .*refused"):
        GoogleMetadata().fetch()


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        (AZURE, r"needs a query: set sasl\.oauthbearer\.config to query="),
        (AZURE | {"sasl.oauthbearer.token.endpoint.url": "file:///x"}, "not an http or https URL"),
        (AZURE | {"sasl.oauthbearer.metadata.authentication.type": "aws_iam"}, "supported is azure_imds"),
        (AZURE | {"sasl.oauthbearer.config": "query"}, "is not name=value"),
        (
            {"sasl.login.callback.handler.class": "com.azure.Any"},
            "managed identity of Azure .*=azure_imds and .*query=",
        ),
    ],
)
def test_what_is_missing_or_not_supported_is_named(properties, said):
    """If a property is missing or not supported, the error says what to set.

    For an unknown Java class it shows the lines to write instead.
    """
    with pytest.raises(InvalidInput, match=said):
        understand(OAUTH | properties)
