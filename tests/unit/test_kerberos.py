"""Kerberos: how Java's JAAS entry and librdkafka's properties are read, and messages about the second client.

The login itself needs a KDC and is checked by tests/broker/test_kerberos_login.py.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import NoReturn

import pytest
from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl import SASL_MECHANISMS

from migrate_groups.errors import ClusterUnavailable, MissingDependency
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.credentials.client_properties import understand
from migrate_groups.kafka.credentials.kerberos import Kerberos
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.checks.facts import Facts
from migrate_groups.planning.checks.written import second_client
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.survey import ClusterFacts, Survey

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
GSSAPI = {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}


@pytest.fixture
def installed(monkeypatch):
    """Pretend that the extra ``kerberos`` is installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: SimpleNamespace() if name == "gssapi" else find(name, *more)
    )


@pytest.mark.parametrize(
    ("properties", "login"),
    [
        (
            {"sasl.jaas.config": f'{MODULE} required useKeyTab=true storeKey=true keyTab="/k" principal="me@R";'}
            | {"sasl.kerberos.service.name": "broker"},
            Kerberos(service="broker", client="me@R", keytab="/k"),
        ),
        (
            {"sasl.jaas.config": f'{MODULE} required useTicketCache=true ticketCache="/c" serviceName="s";'},
            Kerberos(service="s", ticket_cache="/c"),
        ),
        ({"sasl.jaas.config": f"{MODULE} required useTicketCache=true renewTGT=true;"}, Kerberos(service="kafka")),
        (
            {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "me@R", "sasl.kerberos.kinit.cmd": "kinit"},
            Kerberos(service="kafka", client="me@R", keytab="/k"),
        ),
    ],
)
def test_jaas_and_librdkafkas_properties_are_understood(installed, properties, login):
    """Keytab, principal, ticket cache and service name are read from Java's JAAS entry or librdkafka's properties.

    If neither a keytab nor a ticket cache is named, the default ticket cache is used.
    """
    found = understand(GSSAPI | properties)
    assert (found.security.login, found.not_used) == (login, ())


def test_without_the_extra_the_first_command_names_it(monkeypatch):
    """If the extra ``kerberos`` is not installed, the error says what to install: libkrb5-dev, gssapi and the extra."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None)
    with pytest.raises(MissingDependency, match=r"libkrb5-dev.*pip install 'gssapi.*the extra kerberos"):
        understand(GSSAPI)


class GSSError(Exception):
    """An error in place of gssapi's, because gssapi need not be installed for these tests."""


def failing(*_: object, **named: object) -> NoReturn:
    raise GSSError("Major (1): Ticket\nexpired")


class Context:
    """A fake security context whose ticket expires once the broker has answered."""

    complete = False

    def __init__(self, **_: object) -> None:
        pass

    def step(self, token: bytes | None) -> bytes:
        return b"first" if token is None else failing()


@pytest.fixture
def gssapi(monkeypatch) -> SimpleNamespace:
    """Replace the module gssapi by a fake one, register the Kerberos login with kafka-python, and return the module."""
    name = SimpleNamespace(canonicalize=lambda _: None)
    module = SimpleNamespace(
        Name=lambda *_: name,
        Credentials=lambda **_: None,
        SecurityContext=Context,
        NameType=SimpleNamespace(kerberos_principal=1, hostbased_service=2),
        MechType=SimpleNamespace(kerberos=3),
        exceptions=SimpleNamespace(GSSError=GSSError),
    )
    monkeypatch.setitem(sys.modules, "gssapi", module)
    Kerberos(service="kafka").kafka_python()
    return module


@pytest.mark.parametrize("where", ["Credentials", "SecurityContext"])
@pytest.mark.parametrize(
    ("login", "cure"),
    [
        (Kerberos(service="kafka", client="me@R", keytab="/k"), "check the keytab and its principal"),
        (Kerberos(service="kafka", ticket_cache="/c"), "run kinit"),
    ],
)
def test_a_missing_or_expired_ticket_is_one_line_with_the_cure(monkeypatch, gssapi, where, login, cure):
    """If there is no valid ticket, the login fails with gssapi's reason in one line.

    With a keytab the advice is to check the keytab; with a ticket cache it is to run kinit.
    """
    monkeypatch.setattr(gssapi, where, failing)
    with pytest.raises(SaslAuthenticationFailedError) as refused:
        SASL_MECHANISMS["GSSAPI"](sasl_kerberos_name=login, host="broker")
    assert str(refused.value).endswith(f"no valid Kerberos ticket (Major (1): Ticket expired): {cure}")


def test_a_ticket_that_expires_during_a_login_is_one_line(gssapi):
    """If the ticket expires after the broker's first answer, the login fails with gssapi's reason in one line."""
    mechanism = SASL_MECHANISMS["GSSAPI"](sasl_kerberos_name=Kerberos(service="kafka"), host="broker")
    assert mechanism.auth_bytes() == b"first"
    with pytest.raises(SaslAuthenticationFailedError, match=r"Major \(1\): Ticket expired$"):
        mechanism.receive(b"answer")
    assert mechanism.auth_details() == "Authenticated to kafka@broker via SASL / GSSAPI"


def test_the_second_client_is_not_asked():
    """If the login is Kerberos, the second client (confluent-kafka) returns an error with the reason.

    It starts no process.
    """
    security = replace(understand({}).security, login=Kerberos(service="kafka"))
    second = SecondClient(ClientConfig(bootstrap_servers="h:1", security=security))
    answer = second.committed({"g": [TopicPartition("t", 0)]})["g"]
    assert isinstance(answer, ClusterUnavailable)
    assert str(answer) == "the second client can't log in: confluent-kafka's wheel has no GSSAPI (Kerberos)"
    assert second._child is None


@pytest.mark.parametrize(
    ("mode", "verdict", "said"),
    [
        ("required", Verdict.REFUSE, r"has no GSSAPI \(Kerberos\), so it can't read back: pass --second-client none"),
        ("auto", Verdict.WARN, r"has no GSSAPI \(Kerberos\): kafka-python alone reads back"),
    ],
)
def test_a_plan_says_once_that_the_second_client_cant_log_in(mode, verdict, said):
    """If the login is Kerberos, ``--second-client required`` is refused by the check.

    With ``--second-client auto`` the check warns.
    """
    security = replace(understand({}).security, login=Kerberos(service="kafka"))
    known = ClusterFacts(principal="User:a", permissions={}, second_client_lacks=security.second_client_lacks)
    facts = Facts(survey=Survey(cluster_id="c", cluster_facts=known), options=WriteOptions(second_client=mode))
    found = second_client(facts)
    assert found is not None
    assert found[0] is verdict
    assert re.search(said, found[1])
    assert second_client(replace(facts, options=WriteOptions(second_client="none"))) is None
