#!/usr/bin/env python3
"""Log in with Kerberos to a real broker, with tickets of a real KDC: from a keytab, and from a ticket cache.

The script is not part of the test suite, because it needs system packages: Kerberos' headers for the extra "kerberos",
and MIT's KDC (Debian: libkrb5-dev, krb5-kdc, krb5-admin-server, krb5-user).
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java
from tests.support.hand_over import HandOver
from tests.support.login_check import LISTENER, LoginCheck, login_check

REALM, SERVICE, CLIENT = "TEST.EXAMPLE", "kafka/127.0.0.1", "ops"
BRIEF, TICKET_SECONDS = "brief", 8  # a principal whose tickets expire while `migrate` waits
MODULE = "com.sun.security.auth.module.Krb5LoginModule"


@contextmanager
def kdc(folder: Path) -> Iterator[dict[str, str]]:
    """Run a KDC with a service and two clients for the length of a ``with`` block, and write their keytabs.

    Yields the environment variables for processes that use this KDC.
    """
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
    for principal, keytab in ((SERVICE, "kafka.keytab"), (CLIENT, "ops.keytab"), (BRIEF, "brief.keytab")):
        life = f"-maxlife {TICKET_SECONDS}seconds" if principal == BRIEF else ""
        run("kadmin.local", "-q", f"addprinc -randkey {life} {principal}")
        run("kadmin.local", "-q", f"ktadd -k {folder / keytab} {principal}")
    process = subprocess.Popen(["krb5kdc", "-n"], env=environment, stdout=subprocess.DEVNULL)
    try:
        while True:  # until the KDC gives a ticket
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
    """Run a hand-over with each kind of ticket, wait until tickets expire, and try a wrong keytab."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with kdc(folder) as environment:
            os.environ["JDK_JAVA_OPTIONS"] = f"-Djava.security.krb5.conf={folder}/krb5.conf"
            keytab = f'useKeyTab=true storeKey=true keyTab="{folder}/kafka.keytab" principal="{SERVICE}@{REALM}"'
            settings = {
                "sasl.enabled.mechanisms": "GSSAPI",
                f"{LISTENER}.sasl.kerberos.service.name": "kafka",
                f"{LISTENER}.gssapi.sasl.jaas.config": f"{MODULE} required {keytab};",
                f"{LISTENER}.gssapi.connections.max.reauth.ms": "3000",
            }
            java = find_java(os.environ)
            with login_check(fetch_jars(java=java, cache=user_cache()), java, settings, folder) as on:
                check(on, folder, environment)


def check(on: LoginCheck, folder: Path, environment: dict[str, str]) -> None:
    """Run ``list``, ``snapshot`` and ``migrate`` with each kind of ticket. Raise AssertionError if a command fails."""

    def properties(options: str) -> str:
        return f"sasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\nsasl.jaas.config={MODULE} required {options};"

    ways = {
        "keytab": f'useKeyTab=true keyTab="{folder}/ops.keytab" principal="{CLIENT}@{REALM}"',
        "ticket cache": f'useTicketCache=true ticketCache="{folder}/cache"',
    }
    for way, options in ways.items():
        hand_over = on.hand_over(on.cli(way, properties(options), environment))
        print(f"{way}:", hand_over.refused(second_client="required", code=3).splitlines()[-1])
        assert "confirmed by one client only" in hand_over.run(second_client="auto")  # noqa: S101
        print(f"{way}: list, snapshot and migrate work with kafka-python")
    check_expiry(on, folder, environment, properties)
    wrong = properties(f'useKeyTab=true keyTab="{folder}/kafka.keytab" principal="{CLIENT}@{REALM}"')
    print("another's keytab:", on.cli("wrong", wrong, environment).fails("list", code=5))


def check_expiry(on: LoginCheck, folder: Path, environment: dict[str, str], properties: Callable[[str], str]) -> None:
    """Check that ``migrate`` can wait longer than a ticket is valid. The broker asks for a new login every 3 s."""

    def kinit() -> None:
        cache = ["kinit", "-k", "-t", str(folder / "brief.keytab"), "-c", str(folder / "brief"), BRIEF]
        subprocess.run(cache, env=environment, check=True)

    def has_ended(*, renewed: bool) -> bool:
        """Wait a little, get a new ticket if ``renewed``, and return whether two ticket lifetimes have passed."""
        time.sleep(TICKET_SECONDS / 4)
        if renewed:
            kinit()
        return time.monotonic() > began + 2 * TICKET_SECONDS

    def hand_over(way: str, options: str) -> HandOver:
        return on.hand_over(on.cli(way, properties(options), environment))

    keytab = f'useKeyTab=true keyTab="{folder}/brief.keytab" principal="{BRIEF}@{REALM}"'
    cache = f'useTicketCache=true ticketCache="{folder}/brief"'
    began = time.monotonic()
    hand_over("brief keytab", keytab).wait_until(lambda: has_ended(renewed=False), second_client="auto")
    print("keytab: a wait outlives its tickets")
    kinit()
    began = time.monotonic()
    hand_over("brief cache", cache).wait_until(lambda: has_ended(renewed=True), second_client="auto")
    print("ticket cache that kinit renews: a wait outlives its tickets")
    print("ticket cache:", hand_over("expired cache", cache).wait_in_vain(code=5))


if __name__ == "__main__":
    main()
