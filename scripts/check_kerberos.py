#!/usr/bin/env python3
"""Log in with Kerberos to a real broker, with tickets of a real KDC: from a keytab, and from a ticket cache.

It is no part of the suite, because it needs what pip does not install: the extra "kerberos" with Kerberos' headers, and
MIT's KDC (Debian: libkrb5-dev, krb5-kdc, krb5-admin-server, krb5-user). Run it as scripts/check_kerberos.py.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java
from tests.support.broker_world import broker_world, wait_for_coordinators

REALM, SERVICE, CLIENT = "TEST.EXAMPLE", "kafka/127.0.0.1", "ops"
MODULE = "com.sun.security.auth.module.Krb5LoginModule"


@contextmanager
def kdc(folder: Path) -> Iterator[dict[str, str]]:
    """Run a KDC with a service and a client, and write their keytabs; yield the environment for its clients."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "krb5.conf").write_text(
        f"[libdefaults]\n default_realm = {REALM}\n rdns = false\n dns_canonicalize_hostname = false\n"
        f" dns_lookup_kdc = false\n udp_preference_limit = 1\n"
        f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
    )
    (folder / "kdc.conf").write_text(
        f'[kdcdefaults]\n kdc_listen = ""\n kdc_tcp_listen = 127.0.0.1:{port}\n[realms]\n {REALM} = {{\n'
        f"  database_name = {folder}/principal\n  key_stash_file = {folder}/stash\n  acl_file = {folder}/acl\n }}\n"
        f"[logging]\n kdc = FILE:{folder}/kdc.log\n"
    )
    environment = os.environ | {
        "KRB5_CONFIG": str(folder / "krb5.conf"),
        "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
        "PATH": f"{os.environ['PATH']}:/usr/sbin",
    }

    def run(*command: str) -> None:
        subprocess.run(command, env=environment, check=True, capture_output=True)

    run("kdb5_util", "create", "-s", "-P", "hidden-master", "-r", REALM)
    for principal, keytab in ((SERVICE, "kafka.keytab"), (CLIENT, "ops.keytab")):
        run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        run("kadmin.local", "-q", f"ktadd -k {folder / keytab} {principal}")
    process = subprocess.Popen(["krb5kdc", "-n"], env=environment, stdout=subprocess.DEVNULL)
    try:
        while True:  # the KDC is ready once it gives a ticket
            cache = ["kinit", "-k", "-t", str(folder / "ops.keytab"), "-c", str(folder / "cache"), CLIENT]
            if subprocess.run(cache, env=environment, capture_output=True, check=False).returncode == 0:
                break
            if process.poll() is not None:
                sys.exit(f"the KDC ended: {(folder / 'kdc.log').read_text()}")
            time.sleep(0.1)
        yield environment
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Run `list`, `snapshot`, `apply` and `describe` with each kind of ticket, and print what they say."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with kdc(folder) as environment:
            os.environ["JDK_JAVA_OPTIONS"] = f"-Djava.security.krb5.conf={folder}/krb5.conf"
            os.environ["KRB5_CONFIG"] = str(folder / "krb5.conf")
            prefix = "listener.name.sasl_plaintext"
            keytab = f'useKeyTab=true storeKey=true keyTab="{folder}/kafka.keytab" principal="{SERVICE}@{REALM}"'
            settings = {
                "sasl.enabled.mechanisms": "GSSAPI",
                f"{prefix}.sasl.kerberos.service.name": "kafka",
                f"{prefix}.gssapi.sasl.jaas.config": f"{MODULE} required {keytab};",
            }
            java = find_java(os.environ)
            listeners = {"SASL_PLAINTEXT": "SASL_PLAINTEXT"}
            jars = fetch_jars(java=java, cache=user_cache())
            with start_sandbox(jars, java=java, settings=settings, listeners=listeners) as sandbox:
                check(folder, sandbox.bootstrap_servers, sandbox.node.listeners["SASL_PLAINTEXT"], environment)


def check(folder: Path, plain: str, address: str, environment: dict[str, str]) -> None:
    """Run the commands on the broker's listener for Kerberos."""
    wait_for_coordinators(plain)
    with broker_world(plain) as world:
        topic = world.create_topic()
        world.produce(topic, 0, 10)
    (folder / "offsets.csv").write_text(f"{topic},0,7\n")
    ways = {
        "keytab": f'useKeyTab=true keyTab="{folder}/ops.keytab" principal="{CLIENT}@{REALM}"',
        "cache": f'useTicketCache=true ticketCache="{folder}/cache"',
        "wrong": f'useKeyTab=true keyTab="{folder}/kafka.keytab" principal="{CLIENT}@{REALM}"',
    }
    for way, options in ways.items():
        file = folder / f"{way}.properties"
        file.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
            f"sasl.jaas.config={MODULE} required {options};\n"
        )
        apply = ["apply", "offsets.csv", "--to-group", f"g-{way}", "--guard", "0s", "--yes"]
        commands = [
            ["list"],
            [*apply, "--second-client", "required"],
            apply,
            ["snapshot", "--group", f"g-{way}", "-o", f"{way}.csv"],
        ]
        for command in commands[: 1 if way == "wrong" else None]:
            program = [sys.executable, "-m", "migrate_groups", *command, "--bootstrap-server", address]
            done = subprocess.run(
                [*program, "--command-config", str(file)],
                cwd=folder,
                env=environment | {"PYTHONPATH": os.pathsep.join(map(str, filter(None, sys.path)))},
                capture_output=True,
                text=True,
                check=False,
            )
            print(f"== {way}: {' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
