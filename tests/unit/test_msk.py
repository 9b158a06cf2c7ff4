"""AWS MSK IAM: tokens equal those of AWS's Java library, and its options are understood."""

from __future__ import annotations

import base64
import importlib.util
import json
import urllib.parse
from datetime import UTC, datetime
from pathlib import Path

import botocore.auth
import botocore.session
import pytest

from migrate_groups.errors import MissingDependency
from migrate_groups.kafka.credentials.client_properties import understand
from migrate_groups.kafka.credentials.msk import MskIam, Role, region_of
from migrate_groups.kafka.credentials.oauth import NoToken, OAuth
from tests.support.cli import CliHere

RECORDED = json.loads((Path(__file__).parents[1] / "data/msk_token.json").read_text())
IAM = "software.amazon.msk.auth.iam"
BROKER = "b-1.demo.abc123.c2.kafka.us-east-1.amazonaws.com:9098"


@pytest.fixture(autouse=True)
def aws(monkeypatch, tmp_path):
    """Set the credentials of the recorded token, and hide this machine's AWS configuration."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in RECORDED["environment"].items():
        if name != "AWS_REGION":
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def query(token: str) -> dict[str, str]:
    """Return the host and the parameters of the signed URL in a token, without the parameter that names the library."""
    url = urllib.parse.urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    return {name: value for name, value in urllib.parse.parse_qsl(url.query) if name != "User-Agent"} | {
        "host": url.netloc
    }


def test_a_token_equals_that_of_awss_library_for_java(monkeypatch):
    """For the same time and keys, a token equals that of AWS's Java library.

    The token in tests/data was made with that library, aws-msk-iam-auth.
    """
    expected = query(RECORDED["token"])
    at = datetime.strptime(expected["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda remove_tzinfo=True: at.replace(tzinfo=None))
    assert query(MskIam(region="eu-central-1").fetch().value) == expected


def source(**properties: str) -> MskIam:
    given = {"security.protocol": "SASL_SSL", "bootstrap.servers": BROKER, **properties}
    found = understand({name.replace("_", "."): value for name, value in given.items()})
    assert found.not_used == ()
    assert isinstance(found.security.login, OAuth)
    assert found.security.login.mechanism == "OAUTHBEARER"
    assert isinstance(found.security.login.source, MskIam)
    return found.security.login.source


def test_both_forms_of_awss_documentation_are_understood():
    """The mechanism AWS_MSK_IAM, and OAUTHBEARER with AWS's class, are both understood, with all their options.

    Both log in with OAUTHBEARER.
    """
    role = 'awsRoleArn="arn:aws:iam::1:role/r" awsRoleSessionName="s" awsRoleExternalId="e" awsStsRegion="eu-west-1"'
    assert source(
        sasl_mechanism="AWS_MSK_IAM",
        sasl_jaas_config=f'{IAM}.IAMLoginModule required awsProfileName="ops" awsDebugCreds="true" {role};',
        sasl_client_callback_handler_class=f"{IAM}.IAMClientCallbackHandler",
    ) == MskIam(
        region="us-east-1",
        profile="ops",
        role=Role(arn="arn:aws:iam::1:role/r", session_name="s", external_id="e", sts_region="eu-west-1"),
    )
    assert source(
        sasl_mechanism="OAUTHBEARER",
        sasl_jaas_config="org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
        sasl_login_callback_handler_class=f"{IAM}.IAMOAuthBearerLoginCallbackHandler",
    ) == MskIam(region="us-east-1")


@pytest.mark.parametrize(
    ("servers", "region"),
    [
        (f"localhost:1,{BROKER}", "us-east-1"),
        ("boot-x1.c1.kafka-serverless.eu-west-1.amazonaws.com:9098", "eu-west-1"),
        ("b-2-public.demo.x.c3.kafka.cn-north-1.amazonaws.com.cn:9198", "cn-north-1"),
        ("kafka.example.com:9098", ""),
    ],
)
def test_the_region_is_in_the_name_of_a_broker(servers, region):
    """The AWS region is taken from the names of MSK brokers, also serverless, public and in China.

    Other names give no region.
    """
    assert region_of(servers) == region


def test_a_missing_region_or_missing_credentials_are_named(monkeypatch):
    """If the AWS region or credentials are missing, the error names the option to add, or shows AWS's reason."""
    with pytest.raises(NoToken, match=r'region is not known: add awsRegion="…" to sasl\.jaas\.config'):
        MskIam(region="").fetch()
    for name in RECORDED["environment"]:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NoToken, match="there are no AWS credentials: add awsProfileName"):
        MskIam(region="eu-central-1").fetch()
    with pytest.raises(NoToken, match=r"AWS gave no credentials: The config profile \(no-such\) could not be found"):
        MskIam(region="eu-central-1", profile="no-such").fetch()


def test_a_role_is_assumed_with_its_session_name_and_external_id(monkeypatch):
    """If a role is configured, it is assumed with its session name and external id, and its keys sign the token."""
    asked = {}

    class Sts:
        def assume_role(self, **arguments):
            asked.update(arguments)
            return {"Credentials": {"AccessKeyId": "ROLE", "SecretAccessKey": "s", "SessionToken": "t"}}

    def create_client(session, service, **settings):
        asked.update(service=service, region=settings["region_name"])
        return Sts()

    monkeypatch.setattr(botocore.session.Session, "create_client", create_client)
    role = Role(arn="arn", session_name="name", external_id="id", sts_region="eu-west-1")
    token = MskIam(region="eu-central-1", role=role).fetch().value
    assert query(token)["X-Amz-Credential"].startswith("ROLE/")
    assert asked == {
        **{"service": "sts", "region": "eu-west-1"},
        **{"RoleArn": "arn", "RoleSessionName": "name", "ExternalId": "id"},
    }


def test_without_the_extra_the_first_command_names_it(monkeypatch, tmp_path):
    """If the extra ``msk`` is not installed, the error is one line with the pip command that installs it."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name.startswith("aws_msk") else find(name, *more)
    )
    with pytest.raises(MissingDependency, match=r"pip install 'aws-msk-iam.*the extra msk"):
        source(sasl_mechanism="AWS_MSK_IAM")
    (tmp_path / "f").write_text("security.protocol=SASL_SSL\nsasl.mechanism=AWS_MSK_IAM\n")
    refused = CliHere(tmp_path).fails("list", "--command-config", "f", "--bootstrap-server", BROKER, code=2)
    assert refused.endswith("run pip install 'aws-msk-iam-sasl-signer-python>=1.0.2,<2' (the extra msk)")
