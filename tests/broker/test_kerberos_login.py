"""Log in with Kerberos to a real broker, with tickets of a real KDC: from a keytab, and from a ticket cache.

The tests need Kerberos' headers for the extra ``kerberos``, and MIT's KDC (Debian: libkrb5-dev, krb5-kdc,
krb5-admin-server, krb5-user). Without them they are skipped.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.broker_world import until
from tests.support.hand_over import HandOver
from tests.support.login_check import LISTENER, LoginCheck, login_check

REALM, SERVICE, CLIENT = "TEST.EXAMPLE", "kafka/127.0.0.1", "ops"
BRIEF, TICKET_SECONDS = "brief", 8  # a principal whose tickets expire while `migrate` waits
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
PATH = f"{os.environ['PATH']}:/usr/sbin"

pytestmark = pytest.mark.long


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
        "PATH": PATH,
    }

    def run(*command: str) -> None:
        subprocess.run(command, env=environment, check=True, capture_output=True)

    run("kdb5_util", "create", "-s", "-P", "hidden-master", "-r", REALM)
    for principal, keytab in ((SERVICE, "kafka.keytab"), (CLIENT, "ops.keytab"), (BRIEF, "brief.keytab")):
        life = f"-maxlife {TICKET_SECONDS}seconds" if principal == BRIEF else ""
        run("kadmin.local", "-q", f"addprinc -randkey {life} {principal}")
        run("kadmin.local", "-q", f"ktadd -k {folder / keytab} {principal}")
    process = subprocess.Popen(["krb5kdc", "-n"], env=environment, stdout=subprocess.DEVNULL)
    ticket = ["kinit", "-k", "-t", str(folder / "ops.keytab"), "-c", str(folder / "cache"), CLIENT]

    def is_up() -> bool:
        assert process.poll() is None, (folder / "kdc.log").read_text()
        return subprocess.run(ticket, env=environment, capture_output=True, check=False).returncode == 0

    try:
        until(is_up)
        yield environment
    finally:
        process.terminate()
        process.wait()


class Kerberos:
    """A broker with Kerberos, and the KDC that it trusts. The broker asks for a new login every 3 s."""

    def __init__(self, on: LoginCheck, folder: Path, environment: dict[str, str]) -> None:
        self.on, self.folder, self.environment = on, folder, environment

    def keytab(self, name: str, principal: str) -> str:
        return f'useKeyTab=true keyTab="{self.folder}/{name}.keytab" principal="{principal}@{REALM}"'

    def cache(self, name: str) -> str:
        return f'useTicketCache=true ticketCache="{self.folder}/{name}"'

    def cli(self, way: str, options: str):
        properties = f"sasl.jaas.config={MODULE} required {options};"
        properties = f"sasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n{properties}"
        return self.on.cli(way, properties, self.environment)

    def hand_over(self, way: str, options: str) -> HandOver:
        return self.on.hand_over(self.cli(way, options))

    def kinit(self) -> None:
        """Get a ticket that is valid for a short time, into the cache ``brief``."""
        cache = ["kinit", "-k", "-t", str(self.folder / "brief.keytab"), "-c", str(self.folder / "brief"), BRIEF]
        subprocess.run(cache, env=self.environment, check=True)


@pytest.fixture(scope="module")
def kerberos(java, kafka_jars, tmp_path_factory) -> Iterator[Kerberos]:
    """A KDC, and a broker that it knows."""
    pytest.importorskip("gssapi", reason="the extra kerberos is not installed")
    if shutil.which("krb5kdc", path=PATH) is None:
        pytest.skip("MIT's KDC is not installed")
    folder = tmp_path_factory.mktemp("kerberos")
    with kdc(folder) as environment, pytest.MonkeyPatch.context() as patched:
        patched.setenv("JDK_JAVA_OPTIONS", f"-Djava.security.krb5.conf={folder}/krb5.conf")
        keytab = f'useKeyTab=true storeKey=true keyTab="{folder}/kafka.keytab" principal="{SERVICE}@{REALM}"'
        settings = {
            "sasl.enabled.mechanisms": "GSSAPI",
            f"{LISTENER}.sasl.kerberos.service.name": "kafka",
            f"{LISTENER}.gssapi.sasl.jaas.config": f"{MODULE} required {keytab};",
            f"{LISTENER}.gssapi.connections.max.reauth.ms": "3000",
        }
        with login_check(kafka_jars, java, settings, folder) as on:
            yield Kerberos(on, folder, environment)


@pytest.mark.parametrize("way", ["keytab", "ticket cache"])
def test_commands_log_in_without_the_second_client(kerberos, way):
    """With a keytab and with a ticket cache, `list`, `snapshot` and `migrate` work with kafka-python.

    The second client can't log in: ``--second-client required`` is exit code 3 and writes nothing.
    """
    options = kerberos.keytab("ops", CLIENT) if way == "keytab" else kerberos.cache("cache")
    hand_over = kerberos.hand_over(way, options)
    assert "second client" in hand_over.refused(second_client="required", code=3)
    assert "confirmed by one client only" in hand_over.run(second_client="auto")


def test_a_keytab_outlives_its_tickets(kerberos):
    """With a keytab, ``migrate --wait`` can wait for longer than two tickets are valid."""
    over = time.monotonic() + 2 * TICKET_SECONDS
    hand_over = kerberos.hand_over("brief keytab", kerberos.keytab("brief", BRIEF))
    hand_over.wait_until(lambda: time.monotonic() > over, second_client="auto")


def test_a_ticket_cache_that_is_renewed_outlives_its_tickets(kerberos):
    """With a ticket cache that kinit renews, ``migrate --wait`` can wait for longer than two tickets are valid.

    If it is not renewed, `migrate` ends with exit code 5 and writes nothing.
    """
    kerberos.kinit()
    renewed, over = time.monotonic(), time.monotonic() + 2 * TICKET_SECONDS

    def has_ended() -> bool:
        """Renew the ticket if a quarter of its lifetime has passed. Return whether two lifetimes have passed."""
        nonlocal renewed
        if time.monotonic() > renewed + TICKET_SECONDS / 4:
            kerberos.kinit()
            renewed = time.monotonic()
        return time.monotonic() > over

    kerberos.hand_over("brief cache", kerberos.cache("brief")).wait_until(has_ended, second_client="auto")
    said = kerberos.hand_over("expired cache", kerberos.cache("brief")).wait_in_vain(code=5)
    assert "no valid Kerberos ticket" in said


def test_a_keytab_of_another_principal_is_refused(kerberos):
    """If the keytab has no key of the principal, the command ends with exit code 5."""
    assert "login" in kerberos.cli("wrong", kerberos.keytab("kafka", CLIENT)).fails("list", code=5)
