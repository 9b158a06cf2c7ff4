"""Read the properties of SASL OAUTHBEARER: those of Kafka (KIP-768, KIP-1139, KIP-1258) and those of librdkafka."""

from __future__ import annotations

import urllib.parse
import urllib.request

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials import pem
from migrate_groups.kafka.credentials.assertion import ALGORITHMS, Assertion, AssertionFile, SignedAssertion
from migrate_groups.kafka.credentials.given import Given
from migrate_groups.kafka.credentials.metadata import AZURE, AzureMetadata, GoogleMetadata
from migrate_groups.kafka.credentials.oauth import OAuth, TokenSource
from migrate_groups.kafka.credentials.tls_properties import read_file
from migrate_groups.kafka.credentials.tls_properties import trusted as trusted_in
from migrate_groups.kafka.credentials.tokens import ClientAssertion, ClientSecret, JwtBearer, TokenFile, TokenServer

_KAFKA = "org.apache.kafka.common.security.oauthbearer"
_HANDLERS = {"", f"{_KAFKA}.OAuthBearerLoginCallbackHandler", f"{_KAFKA}.secured.OAuthBearerLoginCallbackHandler"}
_GOOGLES_HANDLER = "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler"
_RETRIEVERS = {
    "": "",
    f"{_KAFKA}.DefaultJwtRetriever": "",
    f"{_KAFKA}.ClientCredentialsJwtRetriever": "client_credentials",
    f"{_KAFKA}.JwtBearerJwtRetriever": "jwt-bearer",
    f"{_KAFKA}.FileJwtRetriever": "file",
}
_GRANTS = {
    "": "",
    "client_credentials": "client_credentials",
    "urn:ietf:params:oauth:grant-type:jwt-bearer": "jwt-bearer",
}
_METADATA = "sasl.oauthbearer.metadata.authentication.type"
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_CREDENTIALS = "sasl.oauthbearer.client.credentials"
_ASSERTION = "sasl.oauthbearer.assertion"


def oauth(given: Given, options: Given) -> OAuth:
    """Return the login that these client properties and JAAS options describe. Raises `InvalidInput`."""
    extensions = options.take_all("extension_") | _pairs(given.take("sasl.oauthbearer.extensions"))
    handler = given.take("sasl.login.callback.handler.class")
    if handler == _GOOGLES_HANDLER:
        return OAuth(source=GoogleMetadata(), extensions=extensions)
    if handler not in _HANDLERS:
        raise InvalidInput(
            "sasl.login.callback.handler.class is a Java class that can't run here: remove it, and set "
            f"{_ENDPOINT} with a client id and secret, or file:///… of a file that has the token; "
            f"or for a managed identity of Azure {_METADATA}=azure_imds and "
            "sasl.oauthbearer.config=query=api-version=2018-02-01&resource=https://NAMESPACE.servicebus.windows.net"
        )
    if given.take("sasl.oauthbearer.method", "oidc") != "oidc":
        raise InvalidInput(f"sasl.oauthbearer.method is not oidc: set it to oidc, and {_ENDPOINT}")
    if metadata := given.take(_METADATA):
        return OAuth(source=_azure(given, metadata), extensions=extensions)
    return OAuth(source=_source(given, options), extensions=extensions)


def _azure(given: Given, authentication_type: str) -> AzureMetadata:
    """Return the token source of an Azure managed identity, from librdkafka's properties. Raises `InvalidInput`."""
    if authentication_type != "azure_imds":
        raise InvalidInput(f"{_METADATA} is not supported; supported is azure_imds")
    query = _pairs(given.take("sasl.oauthbearer.config")).get("query", "")
    endpoint = given.take(_ENDPOINT)
    if not query and not endpoint:
        raise InvalidInput(
            f"{_METADATA} needs a query: set sasl.oauthbearer.config to query=api-version=2018-02-01&resource=…"
        )
    if endpoint and not endpoint.startswith(("https://", "http://")):
        raise InvalidInput(f"{_ENDPOINT} is not an http or https URL: correct it")
    return AzureMetadata(url=f"{endpoint or AZURE}{'?' * bool(query)}{query}")


def _source(given: Given, options: Given) -> TokenSource:
    endpoint = given.take(_ENDPOINT)
    grant = _one_of(given, "sasl.oauthbearer.jwt.retriever.class", _RETRIEVERS)
    grant = grant or _one_of(given, "sasl.oauthbearer.grant.type", _GRANTS)
    scope = given.take("sasl.oauthbearer.scope") or options.take("scope") or None
    trusted = _trusted_for_tokens(given, options)
    if endpoint.startswith("file:") and grant in ("", "file"):
        return TokenFile(path=urllib.request.url2pathname(urllib.parse.urlsplit(endpoint).path))
    if not endpoint.startswith(("https://", "http://")) or grant == "file":
        raise InvalidInput(
            f"OAUTHBEARER needs a token server or a token file: set {_ENDPOINT} to an http, https or file URL"
        )
    client_id = given.take(f"{_CREDENTIALS}.client.id") or options.take("clientId")
    return TokenServer(
        endpoint=endpoint,
        grant=JwtBearer(assertion=_needed(given)) if grant == "jwt-bearer" else _client(given, options, client_id),
        scope=scope,
        trusted=trusted,
    )


def _client(given: Given, options: Given, client_id: str) -> ClientSecret | ClientAssertion:
    """Return how the client proves its identity to the token server: with a signed JSON Web Token or with a secret.

    If both are configured, the JSON Web Token is used, as in Kafka 4.3.
    """
    secret = given.take(f"{_CREDENTIALS}.client.secret") or options.take("clientSecret")
    url_encoded = _flag(given, "sasl.oauthbearer.header.urlencode")
    if assertion := _assertion(given):
        return ClientAssertion(assertion=assertion, client_id=client_id)
    if not client_id or not secret:
        raise InvalidInput(
            f"OAUTHBEARER needs a client id and a client secret: set {_CREDENTIALS}.client.id and "
            f"{_CREDENTIALS}.client.secret, or clientId and clientSecret in sasl.jaas.config"
        )
    return ClientSecret(client_id=client_id, secret=secret, url_encoded=url_encoded)


def _needed(given: Given) -> Assertion:
    if assertion := _assertion(given):
        return assertion
    raise InvalidInput(
        f"the grant jwt-bearer needs an assertion: set {_ASSERTION}.private.key.file or {_ASSERTION}.file"
    )


def _assertion(given: Given) -> Assertion | None:
    algorithm = given.take(f"{_ASSERTION}.algorithm", ALGORITHMS[0])
    if algorithm not in ALGORITHMS:
        raise InvalidInput(f"{_ASSERTION}.algorithm is not supported: use one of {', '.join(ALGORITHMS)}")
    signed = SignedAssertion(
        key_file=given.take(f"{_ASSERTION}.private.key.file"),
        passphrase=given.take(f"{_ASSERTION}.private.key.passphrase") or None,
        algorithm=algorithm,
        claims={each: value for each in ("aud", "iss", "sub") if (value := given.take(f"{_ASSERTION}.claim.{each}"))},
        lifetime=_seconds(given, f"{_ASSERTION}.claim.exp.seconds", 300),
        back_dated=_seconds(given, f"{_ASSERTION}.claim.nbf.seconds", 60),
        with_id=_flag(given, f"{_ASSERTION}.claim.jti.include"),
        template=given.take(f"{_ASSERTION}.template.file") or None,
    )
    if file := given.take(f"{_ASSERTION}.file"):
        return AssertionFile(path=file)
    return signed if signed.key_file else None


def _trusted_for_tokens(given: Given, options: Given) -> str | None:
    """Return the certificates (PEM) to trust for the token server; None: those that this machine trusts.

    given: client properties, with librdkafka's ``https.ca.pem`` or ``https.ca.location``. options: JAAS options, with
    Kafka's ``ssl.truststore.location``.
    """
    if inline := given.take("https.ca.pem"):
        return pem.certificates(inline, "https.ca.pem")
    if location := given.take("https.ca.location"):
        return pem.certificates(read_file(location, "https.ca.location").decode(errors="replace"), "https.ca.location")
    return trusted_in(options)


def _pairs(text: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in text.split(",") if each.strip()]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise InvalidInput("sasl.oauthbearer.extensions or .config is not name=value,name=value: correct it")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _one_of(given: Given, key: str, known: dict[str, str]) -> str:
    value = given.take(key)
    if value not in known:
        raise InvalidInput(f"{key} is not supported; supported are {', '.join(filter(None, known))}")
    return known[value]


def _flag(given: Given, key: str) -> bool:
    value = given.take(key, "false").lower()
    if value not in ("true", "false"):
        raise InvalidInput(f"{key} is neither true nor false: correct it")
    return value == "true"


def _seconds(given: Given, key: str, default: int) -> int:
    value = given.take(key, str(default))
    if not value.isdecimal():
        raise InvalidInput(f"{key} is not a number of seconds: correct it")
    return int(value)
