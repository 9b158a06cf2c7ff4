"""Log in to a real broker with tokens of AWS MSK IAM. A validator in the broker checks their signatures.

The validator, tests/data/SigV4Validator.java, needs javac. Without javac these tests are skipped.
"""

from __future__ import annotations

import subprocess
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.login_check import DATA, LISTENER, LoginCheck, login_check

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "hidden-secret",
    "AWS_EC2_METADATA_DISABLED": "true",
}
IAM = "software.amazon.msk.auth.iam.IAM"
WAYS = {
    "AWS_MSK_IAM": f'sasl.mechanism=AWS_MSK_IAM\nsasl.jaas.config={IAM}LoginModule required awsRegion="eu-central-1";',
    "OAUTHBEARER": (
        f"sasl.mechanism=OAUTHBEARER\nsasl.login.callback.handler.class={IAM}OAuthBearerLoginCallbackHandler\n"
        f'sasl.jaas.config={MODULE} required awsRegion="eu-central-1";'
    ),
}
TOKEN_SECONDS = 8  # in place of 15 minutes, so that tokens expire during a wait
BRIEF = (
    "import aws_msk_iam_sasl_signer.MSKAuthTokenProvider as signer, migrate_groups.cli.app as app; "
    f"signer.DEFAULT_TOKEN_EXPIRY_SECONDS = {TOKEN_SECONDS}; app.main()"
)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def on(java, kafka_jars, tmp_path_factory) -> Iterator[LoginCheck]:
    """A broker that checks the signatures of tokens."""
    folder = tmp_path_factory.mktemp("msk")
    compiler = java.executable.with_name("javac")
    if not compiler.exists():
        pytest.skip(f"there is no {compiler}")
    validator = DATA / "SigV4Validator.java"
    subprocess.run([compiler, "-cp", kafka_jars.classpath, "-d", folder, validator], check=True)
    with zipfile.ZipFile(folder / "validator.jar", "w") as archive:
        for each in folder.glob("*.class"):
            archive.write(each, each.name)
    jars = replace(kafka_jars, jars=(*kafka_jars.jars, folder / "validator.jar"), archives=folder)
    settings = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{LISTENER}.oauthbearer.sasl.jaas.config": (
            f'{MODULE} required unsecuredLoginStringClaim_sub="broker" secret="{KEYS["AWS_SECRET_ACCESS_KEY"]}";'
        ),
        f"{LISTENER}.oauthbearer.sasl.server.callback.handler.class": "SigV4Validator",
        f"{LISTENER}.oauthbearer.connections.max.reauth.ms": "3600000",  # a session ends with its token
    }
    with login_check(jars, java, settings, folder) as connected:
        yield connected


@pytest.mark.parametrize("way", WAYS)
def test_both_clients_log_in_and_no_output_has_the_secret(on, way):
    """`list`, `snapshot` and `migrate` work with each form of login that AWS documents, with both clients.

    With ``-vv`` no output has the secret key.
    """
    said = on.hand_over(on.cli(way, WAYS[way], KEYS)).run("-vv")
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in said


def test_a_wait_outlives_its_tokens(on):
    """``migrate --wait`` can wait for longer than three tokens are valid."""
    brief = on.cli("brief", WAYS["AWS_MSK_IAM"], KEYS)
    brief.program = ("-c", BRIEF)
    over = time.monotonic() + 3 * TOKEN_SECONDS
    on.hand_over(brief).wait_until(lambda: time.monotonic() > over)


def test_a_wrong_key_is_refused(on):
    """A token that is signed with a wrong key is exit code 5."""
    wrong = KEYS | {"AWS_SECRET_ACCESS_KEY": "wrong"}
    assert "login" in on.cli("wrong", WAYS["AWS_MSK_IAM"], wrong).fails("list", code=5)
