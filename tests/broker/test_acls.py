"""The least permissions of each command: the command works with all of them, and fails if any one of them is missing.

The broker has an authorizer, and denies everything that no ACL allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
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

from migrate_groups.cli.registry import GROUPS
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.credentials.client_properties import understand
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, OWN_GROUPS
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Operation, Resource
from migrate_groups.model.permissions import ResourceType as Kind
from migrate_groups.planning.trial import THROWAWAY
from migrate_groups.spark.offsets_topic.audit_result import Audit
from tests.support.broker_world import BrokerWorld, broker_world, until
from tests.support.cli import CliHere
from tests.support.mirror import records, write
from tests.support.secured import SECRETS, Secured, properties_text
from tests.support.versions import NEEDS_KIP_848, NEEDS_SCRAM

pytestmark = NEEDS_SCRAM

ROOT = Path(__file__).parents[2]
PRINCIPAL = "User:least"
NOW = ("--settle", "0s", "--guard", "0s", "--yes")
DESCRIBE = ("Describe on the group", "Describe on all its topics")
WRITE = ("Describe on the old group", "Read on the moved topics", "Read on the new groups")
# The permissions of each command as docs/permissions.md lists them.
LEAST = {
    "snapshot": DESCRIBE,
    "describe": DESCRIBE,
    "verify": DESCRIBE,
    "apply": WRITE,
    "migrate": WRITE,
    "migrate --hold": ("Read on the old group", *WRITE[1:]),
    "rollback": ("Read on the old group", "Read on the moved topics", "Delete on the new groups"),
    "hand-back": ("Describe on the new groups", "Read on the moved topics", "Read on the old group"),
    "delete-offsets": ("Describe on the new groups", "Read on the moved topics", "Delete on the old group"),
    "delete-offsets --group": ("Delete on the group", "Read on the moved topics"),
    "rewind --group": DESCRIBE,
    "watch": DESCRIBE,
    "delete-group": ("Delete on the group",),
    "audit": ("Read on the offsets topic",),
}
# With a settle under 10 s, commands that write need these too (docs/permissions.md#probe-groups).
PROBES = [
    ("Read", "Group", f"{OWN_GROUPS}*"),
    ("Delete", "Group", f"{OWN_GROUPS}*"),
    ("Describe", "Topic", OFFSETS_TOPIC),
]
READERS = {"snapshot", "describe", "verify", "status", "rewind --group", "watch", "delete-group", "audit"}
CLEAN = Audit(
    old={"stopped": 1},
    new={"starts-at-snapshot": 1},
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
    """A source group that has committed offset 4 of a partition with ten records, and the ACLs of the principal under
    test.
    """

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
        self._login = secured.login("PLAIN", user="least")
        self._address = secured.address("SASL_PLAINTEXT")
        self.all = ("--bootstrap-server", secured.address("PLAINTEXT"))
        self._admin = KafkaAdminClient(bootstrap_servers=secured.address("PLAINTEXT"))

    def close(self) -> None:
        self._admin.close()

    def needed(self, command: str) -> list[Needed]:
        """Return the least permissions of the command, with the names of this scene's groups and topic."""
        names = {
            **dict.fromkeys(["the group", "the old group"], ("Group", self.old)),
            **dict.fromkeys(["all its topics", "the moved topics"], ("Topic", self.topic)),
            "the new groups": ("Group", self.new),
            "the offsets topic": ("Topic", OFFSETS_TOPIC),
        }
        return [(operation, *names[role]) for operation, _, role in (each.partition(" on ") for each in LEAST[command])]

    def prepare(self, command: str) -> None:
        """Run the steps that must precede the command, for example `migrate` before `rollback`, with all
        permissions.
        """
        if command in ("snapshot", "describe", "rewind --group", "watch"):
            member = self.world.join(self.old, self.topic)  # so that the command must describe the topic
            if command == "watch":
                end = confluent_kafka.TopicPartition(self.topic, 0, 10)
                member.commit(offsets=[end], asynchronous=False)
        elif command == "apply":
            self.run_with_all("snapshot", self.old, "-o", "before.csv")
            self.run_with_all("split", "before.csv", "--spec", "split.toml", "-o", "split.csv", connects=False)
        elif command in ("status", "rollback", "hand-back", "delete-offsets", "audit"):
            self.run_with_all("migrate", "split.toml", *NOW)

    def arguments(self, command: str) -> tuple[str, ...]:
        """Return the arguments with which the test runs the command."""
        return {
            "snapshot": ("snapshot", self.old, "-o", "taken.csv", "--force"),
            "describe": ("describe", self.old),
            "verify": ("verify", self.old, "--topic", self.topic, "--settle", "0s"),
            "status": ("status", "split.toml.run"),
            "apply": ("apply", "split.csv", *NOW),
            "migrate": ("migrate", "split.toml", *NOW),
            "migrate --hold": ("migrate", "split.toml", "--hold", *NOW),
            "rollback": ("rollback", "split.toml.run", "--yes"),
            "hand-back": ("hand-back", "split.toml.run", "--wait", "0s", "--yes"),
            "delete-offsets": ("delete-offsets", "split.toml.run", "--yes"),
            "delete-offsets --group": (
                *("delete-offsets", "--group", self.old, "--topic", self.topic),
                *("--settle", "0s", "--yes"),
            ),
            "rewind --group": ("rewind", "--group", self.old, "--shift-by", "-1", "-o", "rewound.csv", "--force"),
            "watch": ("watch", self.old, "--wait", "0s"),
            "delete-group": ("delete-group", self.old, "--yes"),
            "audit": ("audit", "split.toml.run"),
        }[command]

    def run_with_all(self, *arguments: str, connects: bool = True) -> None:
        code, _, err = self.here.outcome(*arguments, *(self.all if connects else ()))
        assert code == 0, err

    def run(self, *arguments: str) -> tuple[int, str, str]:
        return self.here.outcome(*arguments, *self._least)

    def allow(self, needed: Iterable[Needed]) -> None:
        """Allow the principal exactly these operations, and wait until the broker applies them."""
        about = ACLFilter(PRINCIPAL, "*", ACLOperation.ANY, ACLPermissionType.ALLOW, _ANYTHING)
        self._admin.delete_acls([about])
        until(lambda: not self._admin.describe_acls(about)[0])
        acls = [
            ACL(
                principal=PRINCIPAL,
                host="*",
                operation=ACLOperation[operation.upper()],
                permission_type=ACLPermissionType.ALLOW,
                resource_pattern=_pattern(ResourceType[kind.upper()], name),
            )
            for operation, kind, name in needed
        ]
        if acls:
            assert not self._admin.create_acls(acls)["failed"]
        until(lambda: len(self._admin.describe_acls(about)[0]) == len(acls))

    def allow_application(self, entries: Iterable[tuple[str, str, str, str, str]]) -> None:
        """Give the principal exactly these ACLs, also those that deny (`APPLICATIONS`)."""
        about = ACLFilter(PRINCIPAL, None, ACLOperation.ANY, ACLPermissionType.ANY, _ANYTHING)
        self._admin.delete_acls([about])
        until(lambda: not self._admin.describe_acls(about)[0])
        acls = []
        for operation, kind, pattern, permission, host in entries:
            name = pattern.format(new=self.new, old=self.old, topic=self.topic, start=self.topic[:-2])
            acls.append(
                ACL(
                    principal=PRINCIPAL,
                    host=host,
                    operation=ACLOperation[operation.upper()],
                    permission_type=ACLPermissionType[permission],
                    resource_pattern=_pattern(ResourceType[kind.upper()], name),
                )
            )
        assert not self._admin.create_acls(acls)["failed"]
        until(lambda: len(self._admin.describe_acls(about)[0]) == len(acls))

    def permissions(self, resources: Iterable[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """Return what the brokers let the principal do with these groups and topics (KIP-430)."""
        properties = {"security_protocol": "SASL_PLAINTEXT"} | self._login
        told = understand({name.replace("_", "."): value for name, value in properties.items()}, self._address)
        config = ClientConfig(bootstrap_servers=self._address, timeout=20, security=told.security)
        with closing(KafkaPythonReader(config)) as reader:
            return reader.permissions([*resources])

    def committed_offsets(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Return the committed offsets of the source group and of the target group."""
        return self.world.committed(self.old), self.world.committed(self.new)


def _pattern(kind: ResourceType, name: str) -> ResourcePattern:
    """Return the pattern for a name, for a prefix (``prefix*``), or for all names (``*``)."""
    if len(name) > 1 and name.endswith("*"):
        return ResourcePattern(kind, name[:-1], ACLResourcePatternType.PREFIXED)
    return ResourcePattern(kind, name)


@pytest.fixture
def scene(secured: Secured, here: CliHere):
    """A source group, its topic and a spec that hands the group over; all names are unique."""
    with (
        broker_world(secured.sandbox.bootstrap_servers) as world,
        closing(Scene(secured, world, here)) as scene,
    ):
        yield scene


@NEEDS_KIP_848
def test_error_names_a_kip_848_group_with_a_hidden_topic(scene):
    """If a principal lacks Describe on a topic assigned to a KIP-848 member, the error names only the member's group.

    The broker does not tell the name of such a topic. If a member subscribes to a topic that is not assigned to it, the
    error names the topic.
    """
    group, topic = scene.world.name("kip-848"), scene.world.create_topic()
    scene.world.join(group, topic, **{"group.protocol": "consumer"})
    scene.allow([("Describe", "Group", group)])
    code, _, err = scene.run("describe", group)
    assert (code, f"{PRINCIPAL} lacks Describe on a topic of group '{group}'" in err) == (5, True), err
    scene.allow([("Describe", "Group", group), ("Describe", "Topic", topic)])
    assert scene.run("describe", group)[0] == 0
    hidden = scene.world.name("hidden")
    scene.world.consumer(group, hidden, **{"group.protocol": "consumer"})
    until(lambda: f"{PRINCIPAL} lacks Describe on Topic '{hidden}'" in scene.run("describe", group)[2])


@NEEDS_KIP_848
def test_what_is_hidden_is_said_in_the_list(scene):
    """If the principal may not describe all groups and topics, `list` warns that groups may be left out.

    If it may not describe a group's topic, the group's line names the missing permission.
    """
    world, hidden, topic = scene.world, scene.world.name("hidden"), scene.world.create_topic()
    group = world.name("kip-848")
    world.commit(hidden, scene.partition, 0)
    world.join(scene.old, topic)
    world.join(group, topic, **{"group.protocol": "consumer"})
    seen = [("Describe", "Group", name) for name in (scene.old, group)] + [("Describe", "Topic", scene.topic)]
    scene.allow(seen)
    code, out, err = scene.run("list")
    assert (code, hidden in out) == (0, False)
    assert f"warning: {PRINCIPAL} may not describe every group: one that is hidden from it is left out here\n" in err
    assert f"warning: {PRINCIPAL} may not describe every topic: " in err
    assert re.search(
        rf"^{scene.old} +Stable +classic +1 +2 +6 +{PRINCIPAL} lacks Describe on Topic {topic}$", out, re.M
    )
    assert re.search(
        rf"^{group} +Stable +consumer +- +0 +- +not authorized: {PRINCIPAL} lacks Describe on a topic", out, re.M
    )
    code, out, _ = scene.run("describe", "--all-groups")
    assert (code, f"total lag 6 in 1 partition; {PRINCIPAL} lacks Describe on Topic {topic}\n" in out) == (0, True)
    code, _, err = scene.run("list", "--topic", topic)
    assert (code, f"{PRINCIPAL} lacks Describe on Topic '{topic}'" in err) == (5, True)
    scene.allow([*seen, ("Describe", "Topic", topic), ("Describe", "Group", "*"), ("Describe", "Topic", "*")])
    code, out, err = scene.run("list", "--topic", topic)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "2 groups, 2 members, 1 topic, total lag -, not known for 2 partitions"


# ACLs of the application: operation, type, name (as in `_pattern`), permission, host. {new}, {old}, {topic}: of
# the scene; {start}: of the name of its topic.
READ = ("Read", "Group", "{new}", "ALLOW", "*"), ("Read", "Topic", "{topic}", "ALLOW", "*")
APPLICATIONS = {
    "both": READ,
    "no group": READ[1:],
    "no topic": READ[:1],
    "neither": (("Read", "Group", "another", "ALLOW", "*"),),
    "prefix": (("Read", "Group", "{old}*", "ALLOW", "*"), READ[1]),
    "part of the name": (("Read", "Group", "{old}", "ALLOW", "*"), READ[1]),
    "all names": (("Read", "Group", "*", "ALLOW", "*"), ("All", "Topic", "*", "ALLOW", "*")),
    "Describe": (("Describe", "Group", "{new}", "ALLOW", "*"), READ[1]),
    "DENY": (*READ, ("Read", "Group", "{new}", "DENY", "*")),
    "DENY by prefix": (*READ, ("All", "Topic", "{start}*", "DENY", "*")),
    "DENY of Delete": (*READ, ("Delete", "Group", "{new}", "DENY", "*")),
    "DENY of Describe": (*READ, ("Describe", "Group", "{new}", "DENY", "*")),
}


@pytest.mark.parametrize("case", APPLICATIONS)
def test_the_check_of_the_application_is_what_the_authorizer_decides(scene, case):
    """``migrate --app-principal`` passes if Kafka's authorizer lets the application read its group and its topics.

    Otherwise it refuses, in a dry run and before the stop, and names what is missing.
    """
    scene.allow_application(APPLICATIONS[case])
    resources = [Resource(Kind.GROUP, scene.new), Resource(Kind.TOPIC, scene.topic)]
    may = all(Operation.READ in (found or ()) for found in scene.permissions(resources).values())
    code, out, err = scene.here.outcome(
        *("migrate", "split.toml", "--dry-run", "--app-principal", PRINCIPAL, *scene.all)
    )
    assert (code == 0) == may, err
    assert ("\npass     application " in out) == may
    assert ("error: application: User:least " in err) != may


def test_the_application_on_one_host(scene):
    """If ACLs allow the application to read from one host, the check warns, and names the host."""
    scene.allow_application([(*READ[0][:4], "10.0.0.7"), READ[1]])
    code, out, err = scene.here.outcome(
        *("migrate", "split.toml", "--dry-run", "--app-principal", f"{scene.new}={PRINCIPAL}", *scene.all)
    )
    assert code == 0, err
    assert (
        f"warn     application       {PRINCIPAL} may read only from 10.0.0.7 Group '{scene.new}': check the hosts"
        in out
    )


def test_acls_that_may_not_be_read(scene):
    """Without Describe on the cluster, the check of the application is not known, and does not stop the write."""
    scene.allow([*PROBES, *scene.needed("migrate")])
    code, out, err = scene.run("migrate", "split.toml", "--app-principal", PRINCIPAL, *NOW)
    assert code == 0, err
    assert "ACLs can't be read without Describe on Cluster: make sure that User:least may read the new groups" in out


@pytest.mark.parametrize("command", LEAST)
def test_least_permissions_are_enough_and_each_is_needed(scene, command, monkeypatch):
    """With its least permissions a command works. If one is missing, it writes nothing, and its error names the
    permission.

    Describe in place of Read or Delete is not enough. `audit` is tested only up to the reading of the offsets topic,
    because its Spark job connects to no broker.
    """
    monkeypatch.setattr("migrate_groups.migration.offsets_topic.audit._judged", lambda *_: CLEAN)
    scene.prepare(command)
    least, before = scene.needed(command), scene.committed_offsets()
    probes = [] if command in READERS else PROBES
    for lacking in least:
        operation, kind, name = lacking
        rest = [*probes, *(each for each in least if each != lacking)]
        for instead in [[], [("Describe", kind, name)]] if operation != "Describe" else [[]]:
            scene.allow(rest + instead)
            code, _, err = scene.run(*scene.arguments(command))
            alone = command in ("delete-group", "audit")  # these have no plan, and ask for Describe first
            named = "Describe" if alone and not instead else operation
            assert code == (3 if instead and not alone else 5), err
            assert re.search(
                rf"^error: .*{PRINCIPAL} lacks [^;]*\b{named}( and \w+)? on {kind} '{name}'", err, re.MULTILINE
            ), err
            assert scene.committed_offsets() == before
    scene.allow([*probes, *least])
    code, _, err = scene.run(*scene.arguments(command))
    assert code == 0, err


def test_apply_of_a_group_needs_the_permissions_of_apply(scene):
    """``apply --from-group`` works with the least permissions of `apply`. If one is missing, nothing is written.

    Without Describe on the topic, the error can't name the topic, because neither a file nor a member names it.
    """
    arguments = ("apply", "--from-group", scene.old, "--to-group", scene.new, *NOW)
    least, before = scene.needed("apply"), scene.committed_offsets()
    for lacking in least:
        operation, kind, name = lacking
        rest = [*PROBES, *(each for each in least if each != lacking)]
        scene.allow(rest)
        code, _, err = scene.run(*arguments)
        if kind == "Topic":
            found = f"group '{scene.old}' has no committed offset on a topic that {PRINCIPAL} may describe"
        else:
            found = f"{PRINCIPAL} lacks"
        assert (code, found in err) == (3 if kind == "Topic" else 5, True), err
        if operation != "Describe":
            scene.allow([*rest, ("Describe", kind, name)])
            code, _, err = scene.run(*arguments)
            assert (code, f"lacks {operation} on {kind} '{name}'" in err) == (3, True), err
        assert scene.committed_offsets() == before
    scene.allow([*PROBES, *least])
    code, _, err = scene.run(*arguments)
    assert code == 0, err


def test_the_barrier_needs_its_permissions_or_a_long_settle(scene):
    """Without Describe on the offsets topic or Read on the probe group, ``--settle 0s`` is refused, and 10 s is not.

    Without Delete, the hand-over is done, and the tool says that the probe group is left.
    """
    least = scene.needed("migrate")
    read, _, describe = PROBES
    for allowed, lacking in (
        ([read], rf"{PRINCIPAL} may not describe Topic '{OFFSETS_TOPIC}'"),
        ([describe], rf"{PRINCIPAL} lacks Read on Group '{OWN_GROUPS}barrier\.\d-\d+'"),
    ):
        scene.allow([*least, *allowed])
        code, _, err = scene.run("migrate", "split.toml", *NOW)
        assert (code, bool(re.search(rf"^error: barrier: {lacking}.* --settle 10s", err, re.M))) == (3, True), err
        assert scene.committed_offsets()[1] == {}
        code, out, _ = scene.run("migrate", "split.toml", "--dry-run")
        assert (code, bool(re.search(rf"^warn +barrier +{lacking}", out, re.M))) == (0, True), out
    scene.allow([*least, read, describe])
    code, out, err = scene.run("migrate", "split.toml", *NOW)
    assert code == 0, err
    assert f"lacks Delete on Group '{OWN_GROUPS}barrier." in out
    assert re.search(rf"^group {OWN_GROUPS}barrier\.\d-\d+ may be left \(GROUP_AUTHORIZATION_FAILED\)", err, re.M), err


ACLS = re.findall(
    r"^acl --operation (\w+) +--(\w+) (\S+)( --resource-pattern-type prefixed)?",
    (ROOT / "docs" / "permissions.md").read_text(),
    re.MULTILINE,
)


@pytest.fixture
def readme(scene, monkeypatch) -> Iterator[Scene]:
    """The README's group, topics and spec. Afterwards they are deleted, with all that the commands have made."""
    monkeypatch.setattr("migrate_groups.migration.offsets_topic.audit._judged", lambda *_: CLEAN)
    for name in ("invoices", "payments.card", "search.clicks", "mail.sent"):
        scene.world.produce(scene.world.create_topic(topic=name), 0, 10)
        scene.world.commit("big-group", TopicPartition(name, 0), 4)
    spec = re.search(r"<<'END'\n(.*?)END\n", (ROOT / "README.md").read_text(), re.DOTALL)
    assert spec
    Path("split.toml").write_text(spec[1])
    before = scene.world.groups()
    yield scene
    for group in (scene.world.groups() - before) | {"big-group"}:
        scene.world.delete_group(group)
    for name in ("invoices", "payments.card", "search.clicks", "mail.sent"):
        scene.world.delete_topic(name)


def run_the_readme(scene: Scene, acls: Iterable[tuple[str, str, str, str]]) -> list[tuple[int, str]]:
    """Run the README's split, undo it, audit it and delete offsets. Return the exit code and the output of each step.

    acls: all that the principal may do, as the page has it.
    """
    scene.allow((operation, kind, f"{name}*" if prefixed else name) for operation, kind, name, prefixed in acls)
    migrate = ("migrate", "split.toml", *NOW)
    steps = (
        ("migrate", "split.toml", "--dry-run"),
        migrate,
        ("rollback", "split.toml.run", "--yes"),
        migrate,
        ("hand-back", "split.toml.run", "--wait", "0s", "--yes"),
        migrate,
        ("audit", "split.toml.run"),
        ("delete-offsets", "split.toml.run", "--yes"),
    )
    ends = [scene.run(*step) for step in steps]
    return [(code, out + err) for code, out, err in ends]


def test_the_acls_on_the_page_are_enough_for_the_split_of_the_readme(readme):
    """With the ACLs of docs/permissions.md alone, a principal can run the README's split, undo it, audit it, and delete
    the source group's offsets.
    """
    ends = run_the_readme(readme, ACLS)
    assert [code for code, _ in ends] == [0] * 8, ends
    assert f"{PRINCIPAL} has all permissions for the write and for a rollback" in ends[0][1]
    assert readme.world.committed("billing") == {TopicPartition(topic, 0): 4 for topic in ("invoices", "payments.card")}
    assert readme.world.committed("big-group") == {
        TopicPartition(topic, 0): 4 for topic in ("search.clicks", "mail.sent")
    }


@pytest.mark.long
@pytest.mark.parametrize("without", ACLS, ids=lambda acl: " ".join(acl[:3]))
def test_each_acl_on_the_page_is_needed(readme, without):
    """Without one of these ACLs, a step of the README's split fails or warns, and names the permission.

    If all topics that a pattern matches are hidden, it names the pattern.
    """
    ends = run_the_readme(readme, [each for each in ACLS if each != without])
    operation, kind, name, _ = without
    named = rf"{PRINCIPAL} (lacks [^;]*\b{operation}\b[^;]* on|may not describe) {kind.title()} '{re.escape(name)}"
    pattern = rf"no topic of the group matches {re.escape(name)}\* .*{PRINCIPAL} may not describe every topic"
    assert re.search(f"{named}|{pattern}", "\n".join(said for _, said in ends)), ends


def test_dry_run_names_missing_permissions(scene):
    """With Describe alone, ``migrate --dry-run`` ends with exit code 3 and names each missing permission.

    With the least permissions of `migrate`, the dry run passes, and warns that a rollback needs more permissions.
    """
    scene.allow(("Describe", kind, name) for _, kind, name in scene.needed("migrate"))
    before = scene.committed_offsets()
    code, out, _ = scene.run("migrate", "split.toml", "--dry-run")
    assert code == 3
    assert f"{PRINCIPAL} lacks Read on Group '{scene.new}', Read on Topic '{scene.topic}'; grant" in out
    scene.allow(scene.needed("migrate"))
    code, out, _ = scene.run("migrate", "split.toml", "--dry-run")
    assert code == 0
    assert re.search(rf"^warn +permission +{PRINCIPAL} lacks Delete on Group '{scene.new}', Read on", out, re.M)
    assert f"Read on Group '{scene.old}', so a rollback would be refused" in out
    assert scene.committed_offsets() == before


def test_plan_says_that_topics_may_be_hidden(scene):
    """If the principal may not describe all topics, hidden topics are `not known` in the plan.

    Permissions on ``__consumer_offsets`` alone do not change that. The source group has no members, and the spec
    selects topics by a pattern.
    """
    hidden = scene.world.create_topic()
    scene.world.commit(scene.old, TopicPartition(hidden, 0), 0)
    spec = Path("split.toml")
    spec.write_text(spec.read_text().replace(scene.topic, "topic-*"))
    scene.allow([*scene.needed("migrate"), ("Read", "Topic", OFFSETS_TOPIC)])
    code, out, _ = scene.run("migrate", "split.toml", "--dry-run")
    assert code == 0
    assert hidden not in out
    warned = f"{PRINCIPAL} may not describe every topic, so topics with commits but no member of {scene.old}"
    assert re.search(rf"^not known +hidden topics +{warned}", out, re.M)
    code, out, err = scene.run("snapshot", scene.old, "-o", "-")
    assert (code, hidden in out) == (0, False)
    assert f"warning: {PRINCIPAL} may not describe every topic" in err
    scene.allow([*scene.needed("migrate"), ("Describe", "Topic", "*")])
    code, out, _ = scene.run("migrate", "split.toml", "--dry-run")
    assert f"lacks Read on Topic '{hidden}'" in out
    assert re.search("^pass +hidden topics ", out, re.M)


def test_error_for_a_pattern_that_matches_only_hidden_topics_names_the_permissions(scene):
    """If a pattern matches only topics that the principal may not describe, the error names Describe and Read.

    The source group has no members, so no answer of the brokers mentions the topics.
    """
    hidden = scene.world.create_topic(topic=scene.world.name("payments.card"))
    scene.world.commit(scene.old, TopicPartition(hidden, 0), 0)
    spec = Path("split.toml")
    spec.write_text(spec.read_text() + '\n[[target]]\ngroup = "payments"\ntopics = ["payments.*"]\n')
    scene.allow([*scene.needed("migrate"), ("Read", "Group", "payments")])
    code, _, err = scene.run("migrate", "split.toml", "--dry-run")
    assert code == 2
    assert (
        "no topic of the group matches payments.* (payments): correct or remove the pattern; User:least may not "
        "describe every topic" in err
    )
    scene.allow([*scene.needed("migrate"), ("Read", "Group", "payments"), ("Read", "Topic", hidden)])
    assert scene.run("migrate", "split.toml", "--dry-run")[0] == 0


def test_error_names_a_hidden_topic_of_a_member_or_of_the_spec(scene):
    """If the spec or a member names a topic that the principal may not describe, the error names the topic and
    Describe.
    """
    hidden = scene.world.create_topic()
    spec = Path("split.toml")
    spec.write_text(spec.read_text() + f'\n[stay]\ntopics = ["{hidden}"]\n')
    scene.allow(scene.needed("migrate"))
    assert f"{PRINCIPAL} lacks Describe on Topic '{hidden}'" in scene.run("migrate", "split.toml", "--dry-run")[2]
    spec.write_text(spec.read_text().replace(hidden, "topic-*"))
    scene.world.join(scene.old, hidden, scene.topic)
    assert f"{PRINCIPAL} lacks Describe on Topic '{hidden}'" in scene.run("migrate", "split.toml", "--dry-run")[2]


def test_the_page_lists_the_least_permissions():
    """The table in docs/permissions.md has a row for each command, with exactly the permissions that these
    tests grant.
    """
    table = (ROOT / "docs" / "permissions.md").read_text().split("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", table, re.MULTILINE)
    stated = {name: tuple(needs.split("; ")) for names, needs in rows for name in re.findall("`([^`]+)`", names)}
    proved = LEAST | {"apply --from-group": LEAST["apply"]}
    assert {name: needs for name, needs in stated.items() if name in proved} == proved
    assert {name.split()[0] for name in stated} == {command for commands in GROUPS.values() for command in commands}


# What `doctor --write` needs, beside `PROBES`.
TRIAL = [
    *((operation, "Topic", f"{THROWAWAY}*") for operation in ("Create", "Write", "Read", "Delete")),
    *((operation, "Group", f"{THROWAWAY}*") for operation in ("Read", "Delete")),
]


def test_doctor_without_any_permission_says_what_is_limited(scene):
    """Without any permission, `doctor` ends with exit code 0, says what is limited, and shows no password."""
    scene.allow([])
    code, out, err = scene.run("doctor")
    assert code == 0, err
    assert re.search(rf"^list, advise +partly +{PRINCIPAL} may not know that no group is hidden from it$", out, re.M)
    assert re.search(rf"^barrier .* no +{PRINCIPAL} lacks .*Read on Group '{OWN_GROUPS}doctor'", out, re.M)
    assert re.search(
        rf"^audit, .* no +not authorized: {PRINCIPAL} lacks Describe on Topic '{OFFSETS_TOPIC}'", out, re.M
    )
    assert re.search(r"^read back with a second client +yes$", out, re.M)
    assert SECRETS["least"] not in out + err


def test_doctor_writes_with_its_least_permissions(scene):
    """With its least permissions, ``doctor --write`` does each step. Without Create, it makes nothing: exit code 5.

    Without Delete on the topic or on the groups, the error names what is left: exit code 4.
    """
    run = ("doctor", "--write", "--settle", "0s", "--yes")
    scene.allow([*PROBES, *TRIAL])
    code, out, err = scene.run(*run)
    assert code == 0, out + err
    assert not re.search(r" (refused|failed) ", out)
    create, *_, delete_topic = TRIAL[:4]
    scene.allow([*PROBES, *(each for each in TRIAL if each != create)])
    code, out, err = scene.run(*run)
    assert (code, f"{PRINCIPAL} lacks Create on Topic '{THROWAWAY}" in err) == (5, True), err
    for lacking in (delete_topic, TRIAL[-1]):
        scene.allow([*PROBES, *(each for each in TRIAL if each != lacking)])
        code, out, err = scene.run(*run)
        assert code == 4, err
        left = {name for name in scene.world.topics() | scene.world.groups() if THROWAWAY in name}
        assert left
        assert {name for name in left if f"{lacking[1].lower()} {name} (" not in err} == set()
        for topic in left & scene.world.topics():
            scene.world.delete_topic(topic)
        for group in left - scene.world.topics():
            scene.world.delete_group(group)


@pytest.mark.parametrize("side", ["source", "target"])
def test_compare_with_the_least_permissions_on_one_cluster(scene, secured, bootstrap_servers, side):
    """`compare` works with Describe on the group and Read on the topic; if one is missing, the error names it.

    The other of the two clusters has no authorizer. Without any permission on the topic, no error can name the topic:
    on the source the group seems to have no committed offset, and on the target the topic seems to be missing.
    """
    login = {"security_protocol": "SASL_SSL"} | secured.trust() | secured.login("PLAIN", user="least")
    (scene.here.folder / "client.properties").write_text(properties_text(**login))
    group, topic = ("Describe", "Group", scene.old), ("Read", "Topic", scene.topic)
    guarded = (secured.address("SASL_SSL"), "client.properties")
    to = "to-" if side == "target" else ""
    arguments = ["compare", scene.old, f"--{to}bootstrap-server", guarded[0], f"--{to}command-config", guarded[1]]
    with broker_world(bootstrap_servers) as other:
        other.create_topic(topic=scene.topic)
        copied = records(scene.world.bootstrap_servers, scene.topic, 0)
        write(bootstrap_servers, scene.topic, copied)
        other.commit(scene.old, scene.partition, 4)
        arguments += [f"--{'' if to else 'to-'}bootstrap-server", bootstrap_servers]

        def outcome(*allowed: Needed) -> tuple[int, str]:
            scene.allow(allowed)
            code, out, err = scene.here.outcome(*arguments)
            return code, out + err

        code, said = outcome(group, topic)
        assert (code, "1 exact" in said) == (0, True), said
        lacks = f"error: not authorized: {PRINCIPAL} on the {side} cluster lacks"
        assert outcome(topic)[1].startswith(f"{lacks} Describe on Group '{scene.old}'")
        code, said = outcome(group, ("Describe", "Topic", scene.topic))
        assert (code, f"{lacks} Read on Topic '{scene.topic}'" in said) == (5, True), said
        hidden = {
            "source": (3, "no committed offset on the source, on a topic that"),
            "target": (7, "no such partition on the target, or no Describe on its topic"),
        }
        code, said = outcome(group)
        assert (code, hidden[side][1] in said) == (hidden[side][0], True), said
