"""AWS MSK IAM: tokens for SASL OAUTHBEARER, signed with AWS credentials. This module needs the extra ``msk``."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass, field
from typing import Any

from migrate_groups.errors import INSTALL_MSK, MissingDependency
from migrate_groups.kafka.credentials.oauth import NoToken, OAuth, Token, now
from migrate_groups.kafka.credentials.properties import Properties

# MSK accepts these tokens on the listener on which Java clients use the mechanism AWS_MSK_IAM, which neither Python
# client has.
_BROKER = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?:\d+$")


def region_of(bootstrap_servers: str) -> str:
    """Return the AWS region in the host name of an MSK broker; empty if no host name has one.

    bootstrap_servers: ``host:port``, separated by commas.
    """
    hosts = (each.strip() for each in bootstrap_servers.split(","))
    return next((found[1] for host in hosts if (found := _BROKER.search(host))), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """An AWS role that the login assumes, with the options that Java's IAMLoginModule has for it."""

    arn: str
    session_name: str = "migrate-groups"
    external_id: str = ""
    sts_region: str = ""
    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MskIam:
    """The source of tokens for AWS MSK that are signed with AWS credentials.

    The credentials are those of ``role``, else those of ``profile``, else those that the AWS SDK finds. An empty
    ``region`` means the region of the AWS configuration.
    """

    region: str
    profile: str | None = None
    role: Role | None = None
    principal = "the IAM principal"

    def fetch(self) -> Token:
        """Return a new OAuth token, valid for 15 minutes. Raises `NoToken`, with the reason, if there is none."""
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
        from botocore.credentials import CredentialProvider
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.session import Session

        class Provider(CredentialProvider):  # type: ignore[misc]  # botocore has no types
            def load(provider) -> Any:  # noqa: N805  `self` is the settings'
                return self._credentials(session)

        try:
            session = Session(profile=self.profile)
            region = self.region or session.get_config_variable("region")
            if not region:
                raise NoToken('the AWS region is not known: add awsRegion="…" to sasl.jaas.config')
            token, expires = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(region, Provider())
        except (BotoCoreError, ClientError, ValueError) as error:
            raise NoToken(f"AWS gave no credentials: {' '.join(str(error).split())}") from error
        return Token(token, expires / 1000 - now())

    def _credentials(self, session: Any) -> Any:
        if self.role is None:
            found = session.get_credentials()
            if found is None:
                raise NoToken(
                    "there are no AWS credentials: add awsProfileName to sasl.jaas.config, or set AWS_PROFILE"
                )
            return found.get_frozen_credentials()
        from botocore.credentials import Credentials

        role = self.role
        keys = {
            "region_name": role.sts_region or self.region or None,
            "aws_access_key_id": role.access_key or None,
            "aws_secret_access_key": role.secret_key or None,
            "aws_session_token": role.session_token or None,
        }
        external = {"ExternalId": role.external_id} if role.external_id else {}
        answer = session.create_client("sts", **keys).assume_role(
            RoleArn=role.arn, RoleSessionName=role.session_name, **external
        )["Credentials"]
        return Credentials(answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"])


def msk_iam(properties: Properties, options: Properties, bootstrap_servers: str) -> OAuth:
    """Return the login with AWS MSK tokens that the JAAS options of Java's aws-msk-iam-auth describe.

    properties: the client properties. options: the JAAS options. bootstrap_servers: the host names contain the region.
    Raises `MissingDependency` if the extra ``msk`` is not installed.
    """
    if importlib.util.find_spec("aws_msk_iam_sasl_signer") is None:
        raise MissingDependency(f"AWS MSK IAM needs a package that is not installed: {INSTALL_MSK}")
    for key in ("sasl.client.callback.handler.class", "sasl.login.callback.handler.class"):
        properties.take(key)
    for option in ("awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs"):
        options.take(option)
    region = options.take("awsRegion") or region_of(bootstrap_servers)
    role = Role(
        arn=options.take("awsRoleArn"),
        session_name=options.take("awsRoleSessionName") or "migrate-groups",
        external_id=options.take("awsRoleExternalId"),
        sts_region=options.take("awsStsRegion"),
        access_key=options.take("awsRoleAccessKeyId"),
        secret_key=options.take("awsRoleSecretAccessKey"),
        session_token=options.take("awsRoleSessionToken"),
    )
    profile = options.take("awsProfileName") or None
    return OAuth(source=MskIam(region=region, profile=profile, role=role if role.arn else None))
