"""Plan, comment and question say who must stop, which topics stay, and for how long no group consumes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import typer

from migrate_groups.cli.person import Person
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from tests.support.connected import MIGRATE, Connected
from tests.support.in_memory import InMemoryCluster

STAY = '[stay]\ntopics = ["audit.log"]\n'
SPEC = 'source = "old"\n[[target]]\ngroup = "new"\ntopics = ["t"]\n'


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    return Connected(tmp_path, monkeypatch)


def join(cluster: InMemoryCluster, name: str, *topics: str, client_id: str | None = None) -> None:
    client_id = name if client_id is None else client_id
    member = Member(member_id=name, client_id=client_id, host="/h", subscription=frozenset(topics))
    cluster.join("old", member)


def keep_audit_log(cli: Connected, options: str = "") -> None:
    """Let topic ``audit.log`` stay with the group ``old``."""
    cli.cluster.create_topic("audit.log", 1)
    cli.cluster.commit("old", TopicPartition("audit.log", 0), 0)
    (cli.folder / "split.toml").write_text(f"{SPEC}{STAY}[options]\n{options}")


def notes(cli: Connected, *options: str) -> list[str]:
    """Return the lines that the plan has before its table."""
    shown = cli("migrate", "split.toml", "--dry-run", *options).stdout.splitlines()
    return shown[: next(number for number, line in enumerate(shown) if line.startswith("group "))]


def test_all_members_of_a_group_that_keeps_nothing_must_stop(cli):
    """Without [stay], every member must stop, whatever topics it has; members with the same client id are counted."""
    join(cli.cluster, "m1", "t", client_id="billing")
    join(cli.cluster, "m2", "t", client_id="billing")
    join(cli.cluster, "m3", client_id="")
    assert notes(cli)[0] == "stop billing (2 members), m3"


def test_members_that_stay_are_named(cli):
    """With [stay], the plan names the topics that stay, who must stop, and who may stay."""
    keep_audit_log(cli)
    for name, topics in (("billing-1", ["t"]), ("billing-2", ["t"]), ("audit-1", ["audit.log"])):
        join(cli.cluster, name, *topics)
    stays, who, how_long = notes(cli)
    assert stays == "stays with old: audit.log, whose members keep running"
    assert who == "stop billing-1, billing-2; audit-1 may stay"
    assert how_long.endswith("applications take to stop and start; old rebalances meanwhile")


def test_a_member_with_topics_of_both_kinds_may_start_again(cli):
    """A member with a moved and a staying topic must stop, and may start again without the moved topics."""
    keep_audit_log(cli)
    join(cli.cluster, "app", "t", "audit.log")
    assert notes(cli)[:2] == [
        "stays with old: audit.log",
        "stop app; app may start again with only the topics that stay",
    ]


def test_a_member_with_a_regular_expression_for_both_may_start_again(cli):
    """A regular expression that matches a moved and a staying topic counts like a subscription to both."""
    keep_audit_log(cli)
    member = Member(member_id="app", client_id="app", host="/h", subscription_regex="^(t|audit.*)")
    cli.cluster.join("old", member, group_type="consumer")
    assert notes(cli)[1] == "stop app; app may start again with only the topics that stay"


def test_members_that_have_left_the_moved_topics_are_done(cli):
    """If no member has a moved topic any more, no member has to stop."""
    keep_audit_log(cli)
    join(cli.cluster, "audit-1", "audit.log")
    assert notes(cli)[1] == "no member has to stop; audit-1 may stay"


def test_a_rebalance_does_not_show_who_must_stop(cli, monkeypatch):
    """If topics stay with a group that is rebalancing, the plan says that it is not known which member must stop."""
    keep_audit_log(cli)
    join(cli.cluster, "audit-1", "audit.log")
    describe = cli.cluster.describe_group
    state = {"old": "PreparingRebalance"}
    monkeypatch.setattr(
        cli.cluster,
        "describe_group",
        lambda group: replace(found := describe(group), state=state.get(group, found.state)),
    )
    assert notes(cli)[1] == "old is PreparingRebalance: it does not show yet which of its members must stop: audit-1"


def test_a_group_without_members_may_have_consumers_that_do_not_show(cli):
    """A group without members may still have consumers without membership, which assign themselves partitions."""
    assert notes(cli)[0] == "old has no members; a consumer that uses assign() does not show, and must stop too"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "about 11 s (10 s to settle, 1 s to read, check, write and read back 1 partition"),
        (("--guard", "5m"), "about 11 s (10 s to settle, 1 s to read, check, write and read back 1 partition"),
        (("--settle", "0s"), "about 1 s (1 s to read, check, write and read back 1 partition"),
        (("--hold",), "about 11 s (10 s to settle, 1 s to read, check, write and read back 1 partition"),
    ],
)
def test_the_plan_says_for_how_long_no_group_consumes(cli, options, expected):
    """No group consumes during settle, reading and writing. A hold and the guard add no time."""
    (cli.folder / "split.toml").write_text(SPEC)
    assert f"the moved topics are not consumed for {expected}" in notes(cli, *options)[-1]


def test_many_partitions_take_longer(cli):
    """Reading and writing counts as one second for every 10,000 partitions, rounded up."""
    cli.cluster.create_topic("t", 10_001)
    for number in range(10_001):
        cli.cluster.commit("old", TopicPartition("t", number), 0)
    assert "2 s to read, check, write and read back 10,001 partitions" in notes(cli)[-1]


def test_the_comment_of_a_pull_request_says_the_same(cli):
    """The Markdown has the same lines as the terminal, with names escaped. The JSON of the plan does not have them."""
    join(cli.cluster, "m", "t", client_id="*b*@x")
    shown = cli("migrate", "split.toml", "--dry-run", "--format", "markdown").stdout
    assert "- stop \\*b\\*@&#8203;x\n- the moved topics are not consumed for about 1 s" in shown
    assert "not consumed" not in cli("migrate", "split.toml", "--dry-run", "--format", "json").stdout


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """The questions that were asked. The answer to each is no."""
    questions: list[str] = []
    monkeypatch.setattr(Person, "check_can_be_asked", lambda _: None)
    monkeypatch.setattr(typer, "confirm", lambda text, **_: questions.append(text))
    return questions


def test_the_question_says_who_must_stop_and_that_it_waits(cli, asked):
    """The members to stop are named on stderr before the question, because stdout may be a file."""
    keep_audit_log(cli)
    join(cli.cluster, "billing-1", "t")
    join(cli.cluster, "evil\n\x1b[2J", "audit.log")
    said = cli(*MIGRATE[:-1], code=3).stderr
    assert "stays with old: audit.log, whose members keep running\n" in said
    assert "stop billing-1; evil\\n\\x1b[2J may stay\n" in said
    assert asked == ["Wait up to 10 min for them, then write 1 offset?"]


@pytest.mark.parametrize(
    ("settle", "question"),
    [("10s", "Wait 10 s for the group to settle, then write 1 offset?"), ("0s", "Write 1 offset?")],
)
def test_the_question_about_a_group_without_members(cli, asked, settle, question):
    """If no member has to stop, the question names the settle time, if there is one."""
    cli(*MIGRATE[:-1], "--settle", settle, code=3)
    assert asked == [question]


def test_apply_asks_as_it_did(cli, asked):
    """A write without a wait only asks whether to write."""
    cli("apply", "split.csv", "--settle", "0s", code=3)
    assert asked == ["Write 1 offset in new?"]


def test_without_a_member_to_stop_nobody_is_told_to_stop_one(cli):
    """If members have only staying topics, the plan says that no member has to stop, and nobody is told to stop one."""
    keep_audit_log(cli)
    join(cli.cluster, "audit-1", "audit.log")
    said = cli(*MIGRATE, "--settle", "0s", "--guard", "1ms")
    assert "no member has to stop; audit-1 may stay" in said.stdout
    assert "stop consuming" not in said.stderr
