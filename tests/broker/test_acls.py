"""The least permissions of each command: with them it works; without any one of them it fails and names it.

The broker has an authorizer, and denies everything that no ACL allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import confluent_kafka
import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.spark.offsets_topic.audit_job import Audit
from tests.support.broker_world import BrokerWorld, broker_world, until
from tests.support.cli import CliHere
from tests.support.secured import Secured, properties_text
from tests.support.versions import NEEDS_KIP_848, NEEDS_SCRAM

pytestmark = NEEDS_SCRAM

WHO = "User:least"
NOW = ("--settle", "0s", "--guard", "0s", "--yes")
LOOK = ("Describe on the group", "Describe on its topics")
WRITE = ("Describe on the old group", "Read on the topics", "Read on the new groups")
# The permissions of each command as the README lists them.
LEAST = {
    "snapshot": LOOK,
    "describe": LOOK,
    "verify": LOOK,
    "apply": WRITE,
    "migrate": WRITE,
    "migrate --hold": ("Read on the old group", *WRITE[1:]),
    "rollback": ("Read on the old group", "Read on the topics", "Delete on the new groups"),
    "hand-back": ("Describe on the new groups", "Read on the topics", "Read on the old group"),
    "delete-offsets": ("Describe on the new groups", "Read on the topics", "Delete on the old group"),
    "rewind": LOOK,
    "watch": LOOK,
    "delete": ("Delete on the group",),
    "audit": ("Read on the offsets topic",),
}
CLEAN = Audit(
    old={},
    new={},
    rewinds=0,
    summary=(),
    doubtful=(),
    late_commits=(),
    deletions=(),
    evidence=(),
    malformed=(),
    problems=0,
    undetermined=0,
)
_ANYTHING = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
Needed = tuple[str, str, str]  # operation, type, name


class Scene:
    """A source group that has committed offset 4 of ten records, and the permissions of the principal."""

    def __init__(self, secured: Secured, world: BrokerWorld, here: CliHere) -> None:
        self.world, self.here = world, here
        self.topic, self.old = world.create_topic(), world.name("old")
        self.new = f"{self.old}-new"
        self.partition = TopicPartition(self.topic, 0)
        world.produce(self.topic, 0, 10)
        world.commit(self.old, self.partition, 4)
        (here.folder / "split.toml").write_text(
            f'source = "{self.old}"\n[[target]]\ngroup = "{self.new}"\ntopics = ["{self.topic}"]\n'
        )
        login = {"security_protocol": "SASL_PLAINTEXT"} | secured.login("PLAIN", user="least")
        (here.folder / "client.properties").write_text(properties_text(**login))
        self._least = (
            *("--bootstrap-server", secured.address("SASL_PLAINTEXT"), "--command-config", "client.properties"),
            *("--timeout", "20s"),
        )
        self._all = ("--bootstrap-server", secured.address("PLAINTEXT"))
        self._admin = KafkaAdminClient(bootstrap_servers=secured.address("PLAINTEXT"))

    def close(self) -> None:
        self._admin.close()

    def needed(self, command: str) -> list[Needed]:
        """Return the permissions that the command needs, with the names of this scene."""
        names = {
            **dict.fromkeys(["the group", "the old group"], ("Group", self.old)),
            **dict.fromkeys(["its topics", "the topics"], ("Topic", self.topic)),
            "the new groups": ("Group", self.new),
            "the offsets topic": ("Topic", OFFSETS_TOPIC),
        }
        return [(operation, *names[role]) for operation, _, role in (each.partition(" on ") for each in LEAST[command])]

    def prepare(self, command: str) -> None:
        """Run the steps before the command, with all permissions."""
        if command in ("snapshot", "describe", "rewind", "watch"):
            member = self.world.join(self.old, self.topic)  # so that the command must describe the topic
            if command == "watch":
                end = confluent_kafka.TopicPartition(self.topic, 0, 10)
                member.commit(offsets=[end], asynchronous=False)
        elif command == "apply":
            self.run_with_all("snapshot", self.old, "-o", "before.csv")
            self.run_with_all("split", "before.csv", "--spec", "split.toml", "-o", "split.csv", connects=False)
        elif command in ("rollback", "hand-back", "delete-offsets", "audit"):
            self.run_with_all("migrate", "split.toml", *NOW)

    def arguments(self, command: str) -> tuple[str, ...]:
        """Return the arguments of the command."""
        return {
            "snapshot": ("snapshot", self.old, "-o", "taken.csv", "--force"),
            "describe": ("describe", self.old),
            "verify": ("verify", self.old, "--topic", self.topic, "--settle", "0s"),
            "apply": ("apply", "split.csv", *NOW),
            "migrate": ("migrate", "split.toml", *NOW),
            "migrate --hold": ("migrate", "split.toml", "--hold", *NOW),
            "rollback": ("rollback", "split.toml.run", "--yes"),
            "hand-back": ("hand-back", "split.toml.run", "--wait", "0s", "--yes"),
            "delete-offsets": ("delete-offsets", "split.toml.run", "--yes"),
            "rewind": ("rewind", "--group", self.old, "--shift-by", "-1", "-o", "rewound.csv", "--force"),
            "watch": ("watch", self.old, "--timeout", "0s"),
            "delete": ("delete", self.old, "--yes"),
            "audit": ("audit", "split.toml.run"),
        }[command]

    def run_with_all(self, *arguments: str, connects: bool = True) -> None:
        code, _, err = self.here.outcome(*arguments, *(self._all if connects else ()))
        assert code == 0, err

    def run(self, *arguments: str) -> tuple[int, str, str]:
        return self.here.outcome(*arguments, *self._least)

    def allow(self, needed: Iterable[Needed]) -> None:
        """Allow the principal these operations and no others; return once the broker applies them."""
        about = ACLFilter(WHO, "*", ACLOperation.ANY, ACLPermissionType.ALLOW, _ANYTHING)
        self._admin.delete_acls([about])
        until(lambda: not self._admin.describe_acls(about)[0])
        acls = [
            ACL(
                principal=WHO,
                host="*",
                operation=ACLOperation[operation.upper()],
                permission_type=ACLPermissionType.ALLOW,
                resource_pattern=ResourcePattern(ResourceType[kind.upper()], name),
            )
            for operation, kind, name in needed
        ]
        if acls:
            assert not self._admin.create_acls(acls)["failed"]
        until(lambda: len(self._admin.describe_acls(about)[0]) == len(acls))

    def stands(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Return the committed offsets of the source group and of the target group."""
        return self.world.committed(self.old), self.world.committed(self.new)


@pytest.fixture
def scene(secured: Secured, here: CliHere):
    """A scene with unique names."""
    with (
        broker_world(secured.sandbox.bootstrap_servers) as world,
        closing(Scene(secured, world, here)) as scene,
    ):
        yield scene


@NEEDS_KIP_848
def test_a_topic_of_a_kip_848_group_can_not_hide_either(scene):
    """Without Describe on the topic of a KIP-848 group, Kafka does not name it: the error names the group."""
    group, topic = scene.world.name("kip-848"), scene.world.create_topic()
    scene.world.join(group, topic, **{"group.protocol": "consumer"})
    scene.allow([("Describe", "Group", group)])
    code, _, err = scene.run("describe", group)
    assert (code, f"{WHO} lacks Describe on a topic of group '{group}'" in err) == (5, True), err
    scene.allow([("Describe", "Group", group), ("Describe", "Topic", topic)])
    assert scene.run("describe", group)[0] == 0


@pytest.mark.parametrize("command", LEAST)
def test_the_least_is_enough_and_each_of_it_is_needed(scene, command, monkeypatch):
    """With the least permissions the command works. Without any one of them nothing is written, and the error names it.

    Where a permission is more than Describe, Describe alone is not enough either: a check refuses. For audit, only the
    reading of the log is tested, because Spark then asks no broker.
    """
    monkeypatch.setattr("migrate_groups.cli.commands.audit._prove", lambda *_: CLEAN)
    scene.prepare(command)
    least, before = scene.needed(command), scene.stands()
    for lacking in least:
        operation, kind, name = lacking
        rest = [each for each in least if each != lacking]
        for instead in [[], [("Describe", kind, name)]] if operation != "Describe" else [[]]:
            scene.allow(rest + instead)
            code, _, err = scene.run(*scene.arguments(command))
            alone = command in ("delete", "audit")  # these have no plan, and ask for Describe first
            named = "Describe" if alone and not instead else operation
            assert code == (3 if instead and not alone else 5), err
            assert re.search(
                rf"^error: .*{WHO} lacks [^;]*\b{named}( and \w+)? on {kind} '{name}'", err, re.MULTILINE
            ), err
            assert scene.stands() == before
    scene.allow(least)
    code, _, err = scene.run(*scene.arguments(command))
    assert code == 0, err


def test_a_dry_run_tells_before_the_cut_over(scene):
    """With Describe alone the dry run names every missing permission; with the least it passes. It never writes."""
    scene.allow(("Describe", kind, name) for _, kind, name in scene.needed("migrate"))
    before = scene.stands()
    code, out, _ = scene.run("migrate", "split.toml", "--dry-run")
    assert code == 3
    assert f"{WHO} lacks Read on Group '{scene.new}', Read on Topic '{scene.topic}'; grant" in out
    scene.allow(scene.needed("migrate"))
    code, out, _ = scene.run("migrate", "split.toml", "--dry-run")
    assert code == 0
    assert re.search(rf"^warn +permission +{WHO} lacks Delete on Group '{scene.new}', Read on", out, re.M)
    assert f"Read on Group '{scene.old}': a rollback would be refused" in out
    assert scene.stands() == before


def test_a_topic_that_a_glob_should_have_found_is_not_left_behind_silently(scene):
    """The plan warns that topics may be hidden if the group has no members and the spec names no topic."""
    hidden = scene.world.create_topic()
    scene.world.commit(scene.old, TopicPartition(hidden, 0), 0)
    spec = Path("split.toml")
    spec.write_text(spec.read_text().replace(scene.topic, "topic-*"))
    scene.allow(scene.needed("migrate"))
    code, out, _ = scene.run("migrate", "split.toml", "--dry-run")
    assert code == 0
    assert hidden not in out
    assert re.search(rf"^warn +hidden topics +{WHO} may not describe every topic: one that {scene.old} has", out, re.M)
    code, out, err = scene.run("snapshot", scene.old, "-o", "-")
    assert (code, hidden in out) == (0, False)
    assert f"warning: {WHO} may not describe every topic" in err
    scene.allow([*scene.needed("migrate"), ("Describe", "Topic", "*")])
    code, out, _ = scene.run("migrate", "split.toml", "--dry-run")
    assert f"lacks Read on Topic '{hidden}'" in out
    assert re.search("^pass +hidden topics ", out, re.M)


def test_a_topic_that_a_member_is_on_or_the_spec_names_can_not_hide(scene):
    """The error names a hidden topic that the spec names or a member consumes, and the missing permission."""
    hidden = scene.world.create_topic()
    spec = Path("split.toml")
    spec.write_text(spec.read_text() + f'\n[stay]\ntopics = ["{hidden}"]\n')
    scene.allow(scene.needed("migrate"))
    assert f"{WHO} lacks Describe on Topic '{hidden}'" in scene.run("migrate", "split.toml", "--dry-run")[2]
    spec.write_text(spec.read_text().replace(hidden, "topic-*"))
    scene.world.join(scene.old, hidden, scene.topic)
    assert f"{WHO} lacks Describe on Topic '{hidden}'" in scene.run("migrate", "split.toml", "--dry-run")[2]


def test_the_readme_states_the_least(scene):
    """The README's table lists exactly the permissions that these tests prove."""
    table = (Path(__file__).parents[2] / "README.md").read_text().split("## Permissions")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", table, re.MULTILINE)
    stated = {name: tuple(needs.split("; ")) for names, needs in rows for name in re.findall("`([^`]+)`", names)}
    assert stated == LEAST
