"""Read the properties of SASL OAUTHBEARER: those of Kafka (KIP-768, KIP-1139, KIP-1258) and those of librdkafka."""

from __future__ import annotations

import urllib.parse
import urllib.request

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials.grants import (
    ALGORITHMS,
    AssertionFile,
    ClientAssertion,
    ClientSecret,
    JwtBearer,
    SignedAssertion,
)
from migrate_groups.kafka.credentials.oauth import OAuth, TokenSource
from migrate_groups.kafka.credentials.properties import Properties
from migrate_groups.kafka.credentials.tls import read_text, trusted_in
from migrate_groups.kafka.credentials.tokens import AZURE, AzureMetadata, GoogleMetadata, TokenFile, TokenServer

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


def oauth(properties: Properties, options: Properties) -> OAuth:
    """Return the login that these client properties and JAAS options describe. Raises `InvalidInput`."""
    extensions = options.take_all("extension_") | _pairs(properties.take("sasl.oauthbearer.extensions"))
    handler = properties.take("sasl.login.callback.handler.class")
    if handler == _GOOGLES_HANDLER:
        return OAuth(source=GoogleMetadata(), extensions=extensions)
    if handler not in _HANDLERS:
        raise InvalidInput(
            "sasl.login.callback.handler.class is a Java class that can't run here: remove it, and set "
            f"{_ENDPOINT} with a client id and secret, or file:///… of a file that has the token; "
            f"or for a managed identity of Azure {_METADATA}=azure_imds and "
            "sasl.oauthbearer.config=query=api-version=2018-02-01&resource=https://NAMESPACE.servicebus.windows.net"
        )
    if properties.take("sasl.oauthbearer.method", "oidc") != "oidc":
        raise InvalidInput(f"sasl.oauthbearer.method is not oidc: set it to oidc, and {_ENDPOINT}")
    if metadata := properties.take(_METADATA):
        return OAuth(source=_azure(properties, metadata), extensions=extensions)
    return OAuth(source=_source(properties, options), extensions=extensions)


def _azure(properties: Properties, authentication_type: str) -> AzureMetadata:
    """Return the token source of an Azure managed identity, from librdkafka's properties. Raises `InvalidInput`."""
    if authentication_type != "azure_imds":
        raise InvalidInput(f"{_METADATA} is not supported; supported is azure_imds")
    query = _pairs(properties.take("sasl.oauthbearer.config")).get("query", "")
    endpoint = properties.take(_ENDPOINT)
    if not query and not endpoint:
        raise InvalidInput(
            f"{_METADATA} needs a query: set sasl.oauthbearer.config to query=api-version=2018-02-01&resource=…"
        )
    if endpoint and not endpoint.startswith(("https://", "http://")):
        raise InvalidInput(f"{_ENDPOINT} is not an http or https URL: correct it")
    return AzureMetadata(url=f"{endpoint or AZURE}{'?' * bool(query)}{query}")


def _source(properties: Properties, options: Properties) -> TokenSource:
    endpoint = properties.take(_ENDPOINT)
    grant = _one_of(properties, "sasl.oauthbearer.jwt.retriever.class", _RETRIEVERS)
    grant = grant or _one_of(properties, "sasl.oauthbearer.grant.type", _GRANTS)
    scope = properties.take("sasl.oauthbearer.scope") or options.take("scope") or None
    trusted = _trusted_for_tokens(properties, options)
    path = _path(endpoint)
    if endpoint.startswith("file:") and path is not None and grant in ("", "file"):
        return TokenFile(path=urllib.request.url2pathname(path))
    if not endpoint.startswith(("https://", "http://")) or path is None or grant == "file":
        raise InvalidInput(
            f"OAUTHBEARER needs a token server or a token file: set {_ENDPOINT} to an http, https or file URL"
        )
    return TokenServer(endpoint=endpoint, grant=_grant(grant, properties, options), scope=scope, trusted=trusted)


def _path(url: str) -> str | None:
    """Return the path in a URL; None if the text is not a URL."""
    try:
        return urllib.parse.urlsplit(url).path
    except ValueError:
        return None


def _grant(name: str, properties: Properties, options: Properties) -> ClientSecret | ClientAssertion | JwtBearer:
    """Return how the client proves its identity to the token server.

    name: one of `_GRANTS`. If both a signed JSON Web Token and a secret are configured, the former is used, as in Kafka
    4.3.
    """
    client_id = properties.take(f"{_CREDENTIALS}.client.id") or options.take("clientId")
    assertion = _assertion(properties)
    if name == "jwt-bearer":
        if assertion is None:
            raise InvalidInput(
                f"the grant jwt-bearer needs an assertion: set {_ASSERTION}.private.key.file or {_ASSERTION}.file"
            )
        return JwtBearer(assertion=assertion)
    secret = properties.take(f"{_CREDENTIALS}.client.secret") or options.take("clientSecret")
    url_encoded = _flag(properties, "sasl.oauthbearer.header.urlencode")
    if assertion:
        return ClientAssertion(assertion=assertion, client_id=client_id)
    if not client_id or not secret:
        raise InvalidInput(
            f"OAUTHBEARER needs a client id and a client secret: set {_CREDENTIALS}.client.id and "
            f"{_CREDENTIALS}.client.secret, or clientId and clientSecret in sasl.jaas.config"
        )
    return ClientSecret(client_id=client_id, secret=secret, url_encoded=url_encoded)


def _assertion(properties: Properties) -> AssertionFile | SignedAssertion | None:
    algorithm = properties.take(f"{_ASSERTION}.algorithm", ALGORITHMS[0])
    if algorithm not in ALGORITHMS:
        raise InvalidInput(f"{_ASSERTION}.algorithm is not supported: use one of {', '.join(ALGORITHMS)}")
    claims = {name: properties.take(f"{_ASSERTION}.claim.{name}") for name in ("aud", "iss", "sub")}
    signed = SignedAssertion(
        key_file=properties.take(f"{_ASSERTION}.private.key.file"),
        passphrase=properties.take(f"{_ASSERTION}.private.key.passphrase") or None,
        algorithm=algorithm,
        claims={name: value for name, value in claims.items() if value},
        lifetime=_seconds(properties, f"{_ASSERTION}.claim.exp.seconds", 300),
        back_dated=_seconds(properties, f"{_ASSERTION}.claim.nbf.seconds", 60),
        with_id=_flag(properties, f"{_ASSERTION}.claim.jti.include"),
        template=properties.take(f"{_ASSERTION}.template.file") or None,
    )
    if file := properties.take(f"{_ASSERTION}.file"):
        return AssertionFile(path=file)
    return signed if signed.key_file else None


def _trusted_for_tokens(properties: Properties, options: Properties) -> str | None:
    """Return the certificates (PEM) to trust for the token server; None: those that this machine trusts.

    properties: client properties, with librdkafka's ``https.ca.pem`` or ``https.ca.location``. options: JAAS options,
    with Kafka's ``ssl.truststore.location``.
    """
    inline, of_location = properties.take("https.ca.pem"), "https.ca.location"
    location = "" if inline else properties.take(of_location)
    if not inline and not location:
        return trusted_in(options)
    from migrate_groups.kafka.credentials import pem  # its import takes 30 ms

    if inline:
        return pem.certificates(inline, "https.ca.pem")
    return pem.certificates(read_text(location, of_location), of_location)


def _pairs(text: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in text.split(",") if each.strip()]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise InvalidInput("sasl.oauthbearer.extensions or .config is not name=value,name=value: correct it")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _one_of(properties: Properties, key: str, known: dict[str, str]) -> str:
    value = properties.take(key)
    if value not in known:
        raise InvalidInput(f"{key} is not supported; supported are {', '.join(filter(None, known))}")
    return known[value]


def _flag(properties: Properties, key: str) -> bool:
    value = properties.take(key, "false").lower()
    if value not in ("true", "false"):
        raise InvalidInput(f"{key} is neither true nor false: correct it")
    return value == "true"


def _seconds(properties: Properties, key: str, default: int) -> int:
    value = properties.take(key, str(default))
    if not value.isdecimal():
        raise InvalidInput(f"{key} is not a number of seconds: correct it")
    return int(value)
