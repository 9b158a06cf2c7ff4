"""The least permissions for `migrate` to another cluster: it works with all of them, and if one is missing, names it.

The brokers deny everything that no ACL allows. Errors name the permission and the cluster on which it is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, OWN_GROUPS, journal_group
from tests.broker.test_acls import PRINCIPAL, PROBES, Needed, Scene
from tests.support.broker_world import BrokerWorld, broker_world, wait_for_coordinators
from tests.support.mirror import records, write
from tests.support.secured import Secured, properties_text, start_secured
from tests.support.versions import NEEDS_SCRAM

pytestmark = [NEEDS_SCRAM, pytest.mark.long]

MIGRATE = ("migrate", "split.toml", "--settle", "0s", "--guard", "0s", "--yes", "--timeout", "20s")
SIDES = ("source", "target")


@pytest.fixture
def scene(secured: Secured, here) -> Iterator[Scene]:
    """A group with committed offset 4 of ten records, a spec that hands it over, and the ACLs of the principal under
    test.
    """
    with broker_world(secured.sandbox.bootstrap_servers) as world, closing(Scene(secured, world, here)) as scene:
        yield scene


def least(scene: Scene, side: str) -> list[Needed]:
    """Return the permissions that docs/permissions.md lists for ``side``: the source or the target cluster."""
    group = ("Describe", "Group", scene.old) if side == "source" else ("Read", "Group", scene.new)
    return [group, ("Read", "Topic", scene.topic)]


def mirror_to(other: BrokerWorld, scene: Scene) -> None:
    """Copy the topic's records and the group's committed offset to another cluster."""
    other.create_topic(topic=scene.topic)
    write(other.bootstrap_servers, scene.topic, records(scene.world.bootstrap_servers, scene.topic, 0))
    other.commit(scene.old, scene.partition, 4)


def address(side: str, servers: str, config: str | None = None) -> list[str]:
    """Return the options for the connection to the cluster ``side``: ``source`` or ``target``."""
    to = "to-" if side == "target" else ""
    return [f"--{to}bootstrap-server", servers, *([f"--{to}command-config", config] if config else [])]


def outcome(scene: Scene, arguments: list[str], allowed: list[Needed]) -> tuple[int, str]:
    scene.allow([*allowed, *PROBES])
    code, out, err = scene.here.outcome(*MIGRATE, *arguments)
    return code, out + err


@pytest.mark.parametrize("side", SIDES)
def test_a_move_with_the_least_permissions_on_one_cluster(scene, secured, bootstrap_servers, side):
    """If `migrate` to another cluster lacks a permission on one of the clusters, it writes nothing, and the error names
    it.

    Describe in place of Read is not enough. Without any permission on the target's topic, the error says that the topic
    may not exist there. A rollback works with its own least permissions on the target.
    """
    arguments = address(side, secured.address("SASL_PLAINTEXT"), "client.properties")
    with broker_world(bootstrap_servers) as other:
        mirror_to(other, scene)
        arguments += address("source" if side == "target" else "target", bootstrap_servers)
        written_to = scene.world if side == "target" else other
        needed = least(scene, side)
        for lacking in needed:
            operation, kind, name = lacking
            rest = [each for each in needed if each != lacking]
            for instead in [[], [("Describe", kind, name)]] if operation != "Describe" else [[]]:
                code, said = outcome(scene, arguments, rest + instead)
                if (side, kind, instead) == ("target", "Topic", []):
                    assert (code, "no such partition on the target, or no Describe on its topic" in said) == (3, True)
                    continue
                assert code == (3 if instead and kind == "Group" else 5), said
                named = rf"{PRINCIPAL} on the {side} cluster lacks [^;]*\b{operation}( and \w+)? on {kind} '{name}'"
                assert re.search(f"^error: .*{named}", said, re.MULTILINE), said
                assert written_to.committed(scene.new) == {}
        code, said = outcome(scene, arguments, needed)
        assert code == 0, said
        assert written_to.committed(scene.new) == {scene.partition: 4}
        check_deletion(scene, other, side, arguments)
        if side == "target":
            scene.allow([("Delete", "Group", scene.new), ("Read", "Topic", scene.topic), *PROBES])
            code, out, err = scene.run("rollback", "split.toml.run", "--yes")
            assert (code, written_to.committed(scene.new)) == (0, {}), out + err


def check_barrier(scene: Scene, arguments: list[str]) -> None:
    """Check that without a permission for the probe groups on the source cluster, a settle under 10 s is refused.

    With 10 s the plan warns.
    """
    read, _, describe = PROBES
    for allowed, lacking in (
        ([read], rf"{PRINCIPAL} on the source cluster may not describe Topic '{OFFSETS_TOPIC}'"),
        ([describe], rf"{PRINCIPAL} on the source cluster lacks Read on Group '{OWN_GROUPS}barrier\.\d-\d+'"),
    ):
        scene.allow([*least(scene, "source"), *allowed])
        code, _, err = scene.here.outcome(*MIGRATE, *arguments)
        assert (code, bool(re.search(rf"^error: barrier: {lacking}.* --settle 10s", err, re.M))) == (3, True), err
        dry = ("--settle", "10s", "--dry-run")
        code, out, err = scene.here.outcome("migrate", "split.toml", *dry, *arguments)
        assert (code, bool(re.search(rf"^warn +barrier +{lacking}", out, re.M))) == (0, True), out + err


def check_deletion(scene: Scene, other: BrokerWorld, side: str, clusters: list[str]) -> None:
    """Run `delete-offsets` with its least permissions on one cluster, and check that it fails if any of them is
    missing.

    side: the cluster with an authorizer. For ``target`` this is a dry run, because the test then rolls the move back.
    """
    needed = [("Describe", "Group", scene.new), ("Describe", "Topic", scene.topic)]
    delete = ("delete-offsets", "split.toml.run", *clusters, "--timeout", "20s", "--dry-run")
    if side == "source":
        needed = [("Delete", "Group", scene.old), ("Read", "Topic", scene.topic)]
    for lacking in needed:
        scene.allow([*PROBES, *(each for each in needed if each != lacking)])
        code, out, err = scene.here.outcome(*delete)
        assert code in (3, 5), out + err
        assert re.search(rf"{PRINCIPAL}.* lacks .*{lacking[0]}.* on {lacking[1]} '{lacking[2]}'", err), err
    scene.allow([*PROBES, *needed])
    code, out, err = scene.here.outcome(*delete)
    assert code == 0, out + err
    if side == "source":
        code, out, err = scene.here.outcome(*delete[:-1], "--yes")
        assert (code, scene.world.committed(scene.old)) == (0, {}), out + err


@pytest.mark.parametrize("side", SIDES)
def test_error_names_an_unreachable_cluster(scene, secured, bootstrap_servers, side):
    """If one of two clusters can't be reached, or refuses the login, the error names this cluster and the option to
    check.
    """
    other = address("source" if side == "target" else "target", bootstrap_servers)
    to = "--to-" if side == "target" else "--"
    code, out, err = scene.here.outcome(*MIGRATE, *other, *address(side, "127.0.0.1:1"))
    assert (code, out) == (5, "")
    said = rf"error: no bootstrap server of the {side} cluster can be reached \(.*\); check {to}bootstrap-server\n"
    assert re.fullmatch(said, err), err
    config = scene.here.folder / "client.properties"
    config.write_text(config.read_text().replace("least-hidden-1", "wrong"))
    servers = secured.address("SASL_PLAINTEXT")
    code, out, err = scene.here.outcome(*MIGRATE, *other, *address(side, servers, "client.properties"))
    assert (code, out) == (5, "")
    said = rf"error: login as {PRINCIPAL} on the {side} cluster \(PLAIN\) failed: .*; check {to}command-config\n"
    assert re.fullmatch(said, err), err


def test_a_move_with_the_least_permissions_on_both_clusters(scene, secured, java, kafka_jars, tmp_path_factory):
    """With authorizers and TLS on both clusters, `migrate` to the other cluster works with the least permissions.

    If one is missing, the error names the permission and its cluster.
    """
    spec = (scene.here.folder / "split.toml").read_text()
    with start_secured(kafka_jars, java, tmp_path_factory.mktemp("other")) as other:
        wait_for_coordinators(other.sandbox.bootstrap_servers)
        with (
            broker_world(other.sandbox.bootstrap_servers) as world,
            closing(Scene(other, world, scene.here)) as there,
        ):
            mirror_to(world, scene)
            (scene.here.folder / "split.toml").write_text(spec)
            arguments = []
            for side, cluster in zip(SIDES, (secured, other), strict=True):
                login = {"security_protocol": "SASL_SSL"} | cluster.trust() | cluster.login("PLAIN", user="least")
                (scene.here.folder / side).write_text(properties_text(**login))
                arguments += address(side, cluster.address("SASL_SSL"), side)
            there.allow(least(scene, "target"))
            code, said = outcome(scene, arguments, least(scene, "source")[1:])
            assert (code, f"{PRINCIPAL} on the source cluster lacks Describe" in said) == (5, True), said
            there.allow([*least(scene, "target")[1:], *PROBES])
            code, said = outcome(scene, arguments, least(scene, "source"))
            assert (code, f"{PRINCIPAL} on the target cluster lacks Describe and Read" in said) == (5, True), said
            there.allow([*least(scene, "target"), *PROBES])
            check_barrier(scene, arguments)
            before = scene.world.groups()
            code, said = outcome(scene, arguments, least(scene, "source"))
            assert code == 0, said
            assert scene.world.groups() == before | {journal_group(scene.old)}
            assert world.committed(scene.new) == {scene.partition: 4}
