#!/usr/bin/env python3
"""Log in to a real broker with tokens of AWS MSK IAM. A validator in the broker checks their signatures.

The script is not part of the test suite, because it needs javac for the validator, tests/data/SigV4Validator.java.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java
from tests.support.login_check import LISTENER, LoginCheck, login_check

VALIDATOR = Path(__file__).parents[1] / "tests/data/SigV4Validator.java"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "hidden-secret"}
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


def main() -> None:
    """Run a hand-over with each form of login that AWS documents, wait until tokens expire, and try a wrong key."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    java = find_java(os.environ)
    jars = fetch_jars(java=java, cache=user_cache())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compiler = str(java.executable.with_name("javac"))
        subprocess.run([compiler, "-cp", jars.classpath, "-d", str(folder), str(VALIDATOR)], check=True)
        with zipfile.ZipFile(folder / "validator.jar", "w") as archive:
            for each in folder.glob("*.class"):
                archive.write(each, each.name)
        jars = replace(jars, jars=(*jars.jars, folder / "validator.jar"), archives=folder)
        settings = {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{LISTENER}.oauthbearer.sasl.jaas.config": (
                f'{MODULE} required unsecuredLoginStringClaim_sub="broker" secret="{KEYS["AWS_SECRET_ACCESS_KEY"]}";'
            ),
            f"{LISTENER}.oauthbearer.sasl.server.callback.handler.class": "SigV4Validator",
            f"{LISTENER}.oauthbearer.connections.max.reauth.ms": "3600000",  # a session ends with its token
        }
        with login_check(jars, java, settings, folder) as on:
            check(on)


def check(on: LoginCheck) -> None:
    """Run ``list``, ``snapshot`` and ``migrate`` with each form of login. Raise AssertionError if a command fails."""
    environment = KEYS | {"AWS_EC2_METADATA_DISABLED": "true"}
    for way, properties in WAYS.items():
        said = on.hand_over(on.cli(way, properties, environment)).run("-vv")
        assert KEYS["AWS_SECRET_ACCESS_KEY"] not in said  # noqa: S101
        print(f"{way}: list, snapshot and migrate work with both clients")
    brief = on.cli("brief", WAYS["AWS_MSK_IAM"], environment)
    brief.program = ("-c", BRIEF)
    over = time.monotonic() + 3 * TOKEN_SECONDS
    on.hand_over(brief).wait_until(lambda: time.monotonic() > over)
    print("a wait outlives its tokens")
    wrong = environment | {"AWS_SECRET_ACCESS_KEY": "wrong"}
    print("wrong key:", on.cli("wrong", WAYS["AWS_MSK_IAM"], wrong).fails("list", code=5))


if __name__ == "__main__":
    main()
