"""``--app-principal``: whether the applications of the target groups may read, by the ACLs of their principals."""

from __future__ import annotations

import pytest

from migrate_groups.errors import UsageError
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Acl, Acls, Resource, ResourceType
from migrate_groups.planning.checks.application import Applications, AppPrincipal, application
from tests.support.connected import SPEC, Connected
from tests.support.documents import parsed

DRY = ("migrate", "split.toml", "--dry-run", "--app-principal")


def acl(name: str, operation: str = "Read", *, topic: bool = False, **changes: object) -> Acl:
    """An ACL that allows ``User:app`` to read a group, from everywhere."""
    given = {"is_prefix": False, "principal": "User:app", "host": "*", "is_allowed": True} | changes
    kind = ResourceType.TOPIC if topic else ResourceType.GROUP
    return Acl(type=kind, name=name, operation=operation, **given)  # type: ignore[arg-type]


GROUP, TOPIC = acl("new"), acl("t", topic=True)


@pytest.mark.parametrize(
    ("entries", "verdict", "reason"),
    [
        ([GROUP, TOPIC], "pass", "User:app may read the new groups and their topics"),
        ([GROUP], "refuse", "User:app has no ACL to read Topic 't': grant Read"),
        ([TOPIC], "refuse", "User:app has no ACL to read Group 'new': grant Read"),
        ([], "refuse", "User:app has no ACL to read Group 'new'; User:app has no ACL to read Topic 't'"),
        ([acl("n", is_prefix=True), acl("*", topic=True)], "pass", "may read"),
        ([acl("n"), TOPIC], "refuse", "has no ACL to read Group 'new'"),
        ([acl("new", "All"), acl("t", "All", topic=True)], "pass", "may read"),
        ([acl("new", "Describe"), TOPIC], "refuse", "has no ACL to read Group 'new'"),
        ([acl("new", principal="User:*"), TOPIC], "pass", "may read"),
        ([acl("new", principal="User:other"), TOPIC], "refuse", "has no ACL to read Group 'new'"),
        ([GROUP, TOPIC, acl("new", is_allowed=False)], "refuse", "is denied to read Group 'new'"),
        ([GROUP, TOPIC, acl("*", "All", is_allowed=False)], "refuse", "is denied to read Group 'new'"),
        ([GROUP, TOPIC, acl("new", "Describe", is_allowed=False)], "refuse", "is denied to read Group 'new'"),
        ([GROUP, TOPIC, acl("new", "Delete", is_allowed=False)], "pass", "may read"),
        ([GROUP, TOPIC, acl("t", is_allowed=False)], "pass", "may read"),
        ([acl("new", host="10.0.0.7"), TOPIC], "warn", "User:app may read only from 10.0.0.7 Group 'new': check the h"),
        (
            [GROUP, TOPIC, acl("new", host="10.0.0.7", is_allowed=False)],
            "warn",
            "may not read from 10.0.0.7 Group 'new'",
        ),
    ],
)
def test_acls_decide_as_in_kafka(entries, verdict, reason):
    """Names, prefixes and ``*`` count, and each operation that implies Read. A DENY counts more than an ALLOW."""
    needed = [Resource(ResourceType.GROUP, "new"), Resource(ResourceType.TOPIC, "t")]
    found = application(Applications(readers={"User:app": needed}, acls=Acls(entries)))
    assert found is not None
    assert found[0] == verdict
    assert reason in found[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("User:app", ("User:app", None)),
        ("User:CN=app,OU=x", ("User:CN=app,OU=x", None)),
        ("new=User:CN=app", ("User:CN=app", "new")),
        ("a=b=User:app", ("User:app", "a=b")),
    ],
)
def test_a_principal_may_name_its_group(text, expected):
    """The text is a principal, for all target groups, or a group and a principal. Both may have ``=`` in it."""
    assert AppPrincipal.parse(text) == expected


@pytest.mark.parametrize("text", ["", "app", "new=app", "User:", "=User:app", "User:*", "new=User:", "Group:x"])
def test_a_malformed_principal_is_refused(text):
    """A text without a user is refused with one line that shows the syntax."""
    with pytest.raises(UsageError, match="expected User:NAME, or GROUP=User:NAME"):
        AppPrincipal.parse(text)


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    made = Connected(tmp_path, monkeypatch)
    made.cluster.all_acls = Acls([GROUP, TOPIC])
    return made


def checks(cli: Connected, *principals: str, code: int = 0) -> dict[str, str]:
    words = [word for each in principals for word in ("--app-principal", each)]
    plan = parsed(cli("migrate", "split.toml", "--dry-run", "--format", "json", *words, code=code).stdout)
    return {check["name"]: check["verdict"] for check in plan["checks"]}


def test_the_plan_has_the_check_if_a_principal_is_given(cli):
    """The plan of ``migrate`` has the check only with the option. It is not known if the brokers keep no ACLs."""
    assert "application" not in checks(cli)
    assert checks(cli, "User:app")["application"] == "pass"
    assert checks(cli, "new=User:app")["application"] == "pass"
    cli.cluster.all_acls = Acls(unknown="the brokers keep no ACLs")
    assert checks(cli, "User:app")["application"] == "not known"


def test_migrate_is_refused_before_the_stop(cli):
    """If the application may not read, ``migrate`` is refused before it asks for the stop, and writes nothing."""
    said = cli("migrate", "split.toml", "--yes", "--app-principal", "User:mail", code=3).stderr
    assert "error: application: User:mail has no ACL to read Group 'new'; User:mail has no ACL to read Topic" in said
    assert "waiting" not in said
    assert cli.offset("new") is None


def test_a_principal_of_an_unknown_group_is_refused(cli):
    """A principal for a group that is none of the split's is refused, with the similar name."""
    error = cli.fails(*DRY, "nwe=User:app", code=2)
    assert error == "error: --app-principal is for 'nwe', which is no new group of the split: did you mean new?"


def test_each_group_has_its_own_principal(cli):
    """With a principal for each group, each is checked for its own group and topics only."""
    cli.cluster.create_topic("u", 1)
    cli.cluster.produce("u", 0, 10)
    cli.cluster.commit("old", TopicPartition("u", 0), 5)
    (cli.folder / "split.toml").write_text(SPEC.replace("[options]", '[[target]]\ngroup="b"\ntopics=["u"]\n[options]'))
    assert checks(cli, "new=User:app")["application"] == "pass"
    assert checks(cli, "new=User:app", "b=User:app", code=3)["application"] == "refuse"


def test_a_reviewed_plan_is_approved_with_and_without_the_option(cli):
    """The option is no part of what a reviewer approves, because it changes nothing that is written."""
    cli("migrate", "split.toml", "--dry-run", "--plan-out", "plan.json")
    cli("migrate", "split.toml", "--yes", "--approved", "plan.json", "--app-principal", "User:app")
    assert cli.offset("new") == 5


def test_whole_groups_have_one_principal(cli):
    """For a spec of whole groups, a principal of one group is refused, because the groups are not known yet."""
    (cli.folder / "groups.toml").write_text('groups = ["old"]\n')
    command = ("migrate", "groups.toml", "--dry-run", "--to-bootstrap-server", "h:1", "--app-principal", "old=User:app")
    error = cli.fails(*command, code=2)
    assert error == "error: --app-principal: for a fleet name the principal without a group"
