#!/usr/bin/env python3
"""Log in to a real broker with tokens of AWS MSK IAM, whose signatures the broker's validator computes itself.

It is no part of the suite, because it needs javac: the validator is tests/data/SigV4Validator.java.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java
from tests.support.broker_world import broker_world, wait_for_coordinators

VALIDATOR = Path(__file__).parents[1] / "tests/data/SigV4Validator.java"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LISTENER = "listener.name.sasl_plaintext"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "hidden-secret"}


def main() -> None:
    """Run `list` and `apply` with the right key, and `list` with a wrong one; print what they say."""
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
        }
        listeners = {"SASL_PLAINTEXT": "SASL_PLAINTEXT"}
        with start_sandbox(jars, java=java, settings=settings, listeners=listeners) as sandbox:
            check(folder, sandbox.bootstrap_servers, sandbox.node.listeners["SASL_PLAINTEXT"])


def check(folder: Path, plain: str, address: str) -> None:
    """Run the commands on the broker's listener."""
    wait_for_coordinators(plain)
    with broker_world(plain) as world:
        topic = world.create_topic()
        world.produce(topic, 0, 10)
    (folder / "offsets.csv").write_text(f"{topic},0,7\n")
    (folder / "client.properties").write_text(
        f"bootstrap.servers={address}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=AWS_MSK_IAM\n"
        'sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required awsRegion="eu-central-1";\n'
    )
    apply = ["apply", "offsets.csv", "--to-group", "g", "--guard", "0s", "--yes", "--second-client", "required"]
    path = os.pathsep.join(filter(None, sys.path))
    for command, keys in ((["list"], KEYS), (apply, KEYS), (["list"], KEYS | {"AWS_SECRET_ACCESS_KEY": "wrong"})):
        done = subprocess.run(
            [sys.executable, "-m", "migrate_groups", *command, "--command-config", "client.properties"],
            cwd=folder,
            env=os.environ | keys | {"PYTHONPATH": path, "AWS_EC2_METADATA_DISABLED": "true"},
            capture_output=True,
            text=True,
            check=False,
        )
        print(f"== {' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
