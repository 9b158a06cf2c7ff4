"""The permissions that the plan checks before a write, and that the broker enforces at the write."""

from __future__ import annotations

from contextlib import closing

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
)
from kafka.admin import ResourceType as AclResourceType

from migrate_groups.errors import NotAuthorized
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.offsets_topic import KafkaOffsetsTopic
from migrate_groups.migration.delete_groups import what_would_go
from migrate_groups.migration.make_plan import make_plan
from migrate_groups.migration.rewind import rewind, rows_of_topics
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.options import WriteOptions
from migrate_groups.sandbox.broker import Sandbox
from migrate_groups.snapshots.rewind_to import ToTime
from migrate_groups.snapshots.selection import TopicPattern
from tests.support.broker_world import broker_world, until
from tests.support.cli import Cli, CliHere
from tests.support.clock import FakeClock
from tests.support.planning import check, connected, handed_over, old_group, plan_of, refusing
from tests.support.specs import split_spec
from tests.support.versions import NEEDS_AUTHORIZER

pytestmark = NEEDS_AUTHORIZER


@pytest.fixture(scope="module")
def clients(guarded_sandbox: Sandbox):
    """A `BrokerWorld` on a broker with an authorizer, the tool's client, and an `Admin` for ACLs."""
    address = guarded_sandbox.bootstrap_servers
    with broker_world(address) as world, connected(address) as client, closing(Admin(world)) as admin:
        yield world, client, admin


@pytest.fixture
def guarded(clients):
    """`clients`, on a broker that has no ACLs when the test starts."""
    yield clients
    clients[2].delete_all()


class Admin:
    """Adds and deletes ACLs on the broker with an authorizer."""

    def __init__(self, world) -> None:
        self._client = KafkaAdminClient(bootstrap_servers=world.bootstrap_servers)

    def close(self) -> None:
        self._client.close()

    def delete_all(self) -> None:
        """Delete every ACL, and wait until the broker applies the deletion."""
        anything = ResourcePatternFilter(AclResourceType.ANY, None, ACLResourcePatternType.ANY)
        about = ACLFilter(None, "*", ACLOperation.ANY, ACLPermissionType.ANY, anything)
        self._client.delete_acls([about])
        until(lambda: not self._client.describe_acls(about)[0])

    def allow(self, kind: str, name: str, *operations: str, but: str | None = None) -> None:
        """Allow all principals only these operations on a resource, and wait until the broker applies the new ACLs.

        but: an operation to deny.
        """
        resource = ResourcePattern(AclResourceType[kind], name)
        rules = [("User:*", operation, "ALLOW") for operation in operations] or [("User:nobody", "ALL", "ALLOW")]
        rules += [("User:*", but, "DENY")] if but else []
        made = self._client.create_acls(
            [
                ACL(
                    principal=who,
                    host="*",
                    operation=ACLOperation[operation],
                    permission_type=ACLPermissionType[permission],
                    resource_pattern=resource,
                )
                for who, operation, permission in rules
            ]
        )
        assert not made["failed"], made
        about = ACLFilter(
            principal=None,
            host="*",
            operation=ACLOperation.ANY,
            permission_type=ACLPermissionType.ANY,
            resource_pattern=resource,
        )
        until(lambda: len(self._client.describe_acls(about)[0]) == len(rules))


def test_the_least_permissions_are_enough(guarded):
    """With Read on both groups and the topic, and Delete on the target group, the check ``permission`` passes.

    The broker accepts the write, and the deletion that a rollback makes.
    """
    world, writer, admin = guarded
    partition, old = old_group(world)
    new = f"{old}-new"
    admin.allow("GROUP", old, "READ")
    admin.allow("TOPIC", partition.topic, "READ")
    admin.allow("GROUP", new, "READ", "DELETE")
    plan = plan_of(writer, old, new)
    assert check(plan, "permission").verdict is Verdict.PASS
    assert write(writer, new, partition) == "written"
    assert delete(writer, new, partition) == "written"


def write(writer, group: str, partition: TopicPartition) -> str:
    (answer,) = writer.alter_offsets({group: {partition: CommittedOffset(offset=4)}})[group].values()
    return answer.error or answer.answer


def delete(writer, group: str, partition: TopicPartition) -> str:
    (answer,) = writer.delete_offsets({group: [partition]})[group].values()
    return answer.error or answer.answer


@pytest.mark.parametrize("kind", ["Group", "Topic"])
def test_missing_read_is_refused_before_the_write(guarded, kind):
    """If a principal has Describe but not Read on a target group or a topic, the check refuses the hand-over.

    The broker would refuse the write, too.
    """
    world, writer, admin = guarded
    partition, old = old_group(world)
    new = f"{old}-new"
    name = new if kind == "Group" else partition.topic
    admin.allow(kind.upper(), name, "DESCRIBE")
    plan = plan_of(writer, old, new)
    assert f"lacks Read on {kind} '{name}';" in check(plan, "permission").reason
    assert refusing(plan) == ["permission"]
    assert write(writer, new, partition) == f"{kind.upper()}_AUTHORIZATION_FAILED"


def test_missing_delete_on_a_target_group_is_a_warning(guarded):
    """If a principal lacks Delete on a target group, the check only warns that a rollback could not delete the offsets.

    The broker accepts the write, and refuses the deletion.
    """
    world, writer, admin = guarded
    partition, old = old_group(world)
    new = f"{old}-new"
    admin.allow("GROUP", new, "READ")
    found = check(plan_of(writer, old, new), "permission")
    assert (found.verdict, f"lacks Delete on Group '{new}', so a rollback" in found.reason) == (Verdict.WARN, True)
    assert write(writer, new, partition) == "written"
    assert delete(writer, new, partition) == "GROUP_AUTHORIZATION_FAILED"


def test_one_error_names_all_missing_permissions(guarded):
    """If the tool lacks several permissions, among them Describe, no plan can be made, and one error names them all."""
    world, writer, admin = guarded
    partition, old = old_group(world)
    other, _ = old_group(world)
    world.commit(old, other, 4)
    new = f"{old}-new"
    named = handed_over(writer, old, new)
    admin.allow("GROUP", old)
    admin.allow("GROUP", new)
    admin.allow("TOPIC", partition.topic)
    admin.allow("TOPIC", other.topic, "DESCRIBE")
    with pytest.raises(NotAuthorized) as refusal:
        make_plan(writer, named, WriteOptions())
    for lack in (
        f"Describe on Group '{old}'",
        f"Describe and Read on Group '{new}'",
        f"Describe and Read on Topic '{partition.topic}'",
        f"Read on Topic '{other.topic}'",
    ):
        assert lack in str(refusal.value)


def test_rewind_needs_describe_and_finding_records_needs_read(guarded):
    """`rewind` of a topic needs only Describe. To find the first unread record, the tool needs Read on the topic.

    Without Read, the error names this step.
    """
    world, client, admin = guarded
    partition, _ = old_group(world)
    admin.allow("TOPIC", partition.topic, "DESCRIBE")
    rows = rows_of_topics(client, [TopicPattern(partition.topic)], FakeClock())
    assert [row.offset for row in rewind(client, rows, ToTime(0), FakeClock()).snapshot.rows()] == [0]
    with pytest.raises(NotAuthorized, match="while reading the first unread records"):
        client.first_records({partition: range(10)})


def test_missing_delete_on_a_group_is_refused_before_the_deletion(guarded):
    """If a principal lacks Delete on a group, the tool refuses the deletion before it starts, as the broker would."""
    world, client, admin = guarded
    _, group = old_group(world)
    admin.allow("GROUP", group, "READ")
    with pytest.raises(NotAuthorized, match=f"lacks Delete on Group '{group}'"):
        what_would_go(client, [group], FakeClock())
    assert client.delete_groups([group])[group].error == "GROUP_AUTHORIZATION_FAILED"


def test_short_retention_is_a_warning_and_unknown_retention_is_not_known(guarded):
    """If offsets are kept for less than a day, the check ``retention`` warns.

    Without DescribeConfigs on the cluster, the retention time is `not known`.
    """
    world, writer, admin = guarded
    _, old = old_group(world)
    found = check(plan_of(writer, old, f"{old}-new"), "retention")
    assert (found.verdict, "expire in 10 hours" in found.reason) == (Verdict.WARN, True)
    admin.allow("CLUSTER", "kafka-cluster", "ALL", but="DESCRIBE_CONFIGS")
    found = check(plan_of(writer, old, f"{old}-new"), "retention")
    assert found.verdict is Verdict.NOT_KNOWN
    assert found.reason.startswith("offsets.retention.minutes is not known")


def test_a_topic_whose_policy_is_hidden_may_be_compacted(guarded):
    """A topic on which the principal lacks DescribeConfigs counts as possibly compacted; other topics do not."""
    world, writer, admin = guarded
    hidden, plain = world.create_topic(), world.create_topic()
    assert writer.maybe_compacted_topics([hidden, plain]) == frozenset()
    admin.allow("TOPIC", hidden, "READ")
    assert writer.maybe_compacted_topics([hidden]) == {hidden}
    assert writer.maybe_compacted_topics([hidden, plain]) == {hidden}


def test_migrate_without_describe_on_the_offsets_topic_has_no_stop_checkpoint(guarded, tmp_path, monkeypatch):
    """Without Describe on ``__consumer_offsets``, `migrate` reports that its log end offsets can't be read and saved.

    `audit` then ends with exit code 7, because it needs these offsets.
    """
    world, _, admin = guarded
    partition, old = old_group(world)
    (tmp_path / "split.toml").write_text(split_spec(old, {f"{old}-new": partition.topic}))
    admin.allow("TOPIC", OFFSETS_TOPIC)
    cli = Cli(tmp_path, world.bootstrap_servers)
    assert "barrier: " in cli.fails("migrate", "split.toml", "--yes", code=3)
    # So that the test need not settle for 10 s.
    monkeypatch.setattr("migrate_groups.planning.checks.barrier._SHORTEST_SETTLE", 0.0)
    done = CliHere(tmp_path, world.bootstrap_servers)("migrate", "split.toml", "--yes")
    assert (
        "audit can't prove this cut-over later, because the log end offsets of __consumer_offsets can't be read"
        in done.stderr
    )
    assert "has no stop checkpoint" in cli.fails("audit", "split.toml.run", code=7)
    config = ClientConfig(bootstrap_servers=world.bootstrap_servers)
    with closing(KafkaOffsetsTopic(config)) as topic, pytest.raises(NotAuthorized, match="__consumer_offsets"):
        list(topic.read({0: 0}, {0: 1}))
