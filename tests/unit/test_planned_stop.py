"""What plan and confirmation prompt say about members to stop, topics that stay, and how long no group consumes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import typer

from migrate_groups.cli.terminal import Terminal
from migrate_groups.files.runs import receipt_json
from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.planned_stop import PlannedStop
from migrate_groups.planning.receipt import Receipt
from migrate_groups.snapshots.times import parse_duration
from tests.support.connected import APPLY, MIGRATE, Connected
from tests.support.in_memory import InMemoryCluster

STAY = '[stay]\ntopics = ["audit.log"]\n'
SPEC = 'source = "old"\n[[target]]\ngroup = "new"\ntopics = ["t"]\n'


def join(cluster: InMemoryCluster, name: str, *topics: str, client_id: str | None = None) -> None:
    client_id = name if client_id is None else client_id
    member = Member(member_id=name, client_id=client_id, host="/h", subscription=frozenset(topics))
    cluster.join("old", member)


def keep_audit_log(cli: Connected, options: str = "") -> None:
    """Let topic ``audit.log`` stay with the group ``old``. options: the lines of ``[options]`` in the spec."""
    cli.cluster.create_topic("audit.log", 1)
    cli.cluster.commit("old", TopicPartition("audit.log", 0), 0)
    (cli.folder / "split.toml").write_text(f"{SPEC}{STAY}[options]\n{options}")


def notes(cli: Connected, *options: str) -> list[str]:
    """Return the lines that a dry run of `migrate` prints above its table of offsets."""
    shown = cli("migrate", "split.toml", "--dry-run", *options).stdout.splitlines()
    return shown[: next(number for number, line in enumerate(shown) if line.startswith("group "))]


def test_all_members_of_a_group_that_keeps_nothing_must_stop(cli):
    """If no topic stays with the old group, the plan says that all its members must stop, whatever topics they have.

    Members with the same client id are shown once, with their number.
    """
    join(cli.cluster, "m1", "t", client_id="billing")
    join(cli.cluster, "m2", "t", client_id="billing")
    join(cli.cluster, "m3", client_id="")
    assert notes(cli)[0] == "stop billing (2 members), m3"


def test_members_that_stay_are_named(cli):
    """If topics stay with the old group, the plan names these topics, the members to stop, and those that may stay."""
    keep_audit_log(cli)
    for name, topics in (("billing-1", ["t"]), ("billing-2", ["t"]), ("audit-1", ["audit.log"])):
        join(cli.cluster, name, *topics)
    stays, who, how_long = notes(cli)
    assert stays == "stays with old: audit.log, whose members keep running"
    assert who == "stop billing-1, billing-2; audit-1 may stay"
    assert "until the members that stay have rejoined" in how_long


def test_a_member_with_topics_of_both_kinds_may_start_again(cli):
    """If a member has both a moved topic and one that stays, the plan says that the member must stop.

    It adds that the member may start again with only the topics that stay.
    """
    keep_audit_log(cli)
    join(cli.cluster, "app", "t", "audit.log")
    assert notes(cli)[:2] == [
        "stays with old: audit.log",
        "stop app; app may start again after START, with only the topics that stay",
    ]


def test_a_member_with_a_regular_expression_for_both_may_start_again(cli):
    """If a member's regular expression matches a moved topic and one that stays, the plan says that it must stop.

    The member may start again with only the topics that stay, like a member that subscribes to both by name.
    """
    keep_audit_log(cli)
    member = Member(member_id="app", client_id="app", host="/h", subscription_regex="^(t|audit.*)")
    cli.cluster.join("old", member, group_type="consumer")
    assert notes(cli)[1] == "stop app; app may start again after START, with only the topics that stay"


def test_members_that_have_left_the_moved_topics_are_done(cli):
    """If no member of the old group has a moved topic any more, the plan says that no member has to stop."""
    keep_audit_log(cli)
    join(cli.cluster, "audit-1", "audit.log")
    assert notes(cli)[1] == "no member has to stop; audit-1 may stay"


def test_a_rebalance_does_not_show_who_must_stop(cli, monkeypatch):
    """If topics stay with a group that is rebalancing, the plan says that the members to stop are not known yet."""
    keep_audit_log(cli)
    join(cli.cluster, "audit-1", "audit.log")
    describe = cli.cluster.description
    state = {"old": "PreparingRebalance"}
    monkeypatch.setattr(
        cli.cluster,
        "description",
        lambda group: replace(found := describe(group), state=state.get(group, found.state)),
    )
    assert notes(cli)[1] == "old is PreparingRebalance: it does not show yet which of its members must stop: audit-1"


def test_a_group_without_members_may_have_consumers_that_do_not_show(cli):
    """If the old group has no members, the plan says that consumers which use ``assign()`` must stop too.

    Brokers do not show these consumers.
    """
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
    """The plan says how long no group consumes the moved topics: during ``--settle``, reading and writing.

    ``--hold`` and ``--guard`` do not add to this time.
    """
    (cli.folder / "split.toml").write_text(SPEC)
    assert f"the moved topics are not consumed for {expected}" in notes(cli, *options)[-1]


def test_many_partitions_take_longer(cli):
    """The plan estimates one second of reading and writing for every 10,000 partitions, rounded up."""
    cli.cluster.create_topic("t", 10_001)
    for number in range(10_001):
        cli.cluster.commit("old", TopicPartition("t", number), 0)
    assert "2 s to read, check, write and read back 10,001 partitions" in notes(cli)[-1]


@pytest.mark.parametrize(
    ("round_trip", "settle", "expected"),
    [(0.1, "10s", "1 s"), (0.3, "10s", "3 s"), (1.0, "10s", "9 s"), (0.1, "0s", "3 s")],
)
def test_a_far_cluster_takes_longer(cli, monkeypatch, round_trip, settle, expected):
    """The plan adds eight round trips, as they were measured on the connection, to the time of reading and writing.

    Without ``--settle`` it adds 21.
    """
    monkeypatch.setattr(cli.cluster, "round_trip", lambda: round_trip)
    (cli.folder / "split.toml").write_text(SPEC)
    assert f"{expected} to read, check, write and read back 1 partition" in notes(cli, "--settle", settle)[-1]


@pytest.mark.parametrize(
    ("staying", "expected"),
    [
        (["classic"], 2),
        (["classic"] * 9, 3),
        (["consumer"], 2),
        (["consumer"] * 2, 3),
        (["consumer", "classic"], 4),
        ([], 0),
    ],
)
@pytest.mark.parametrize("stopping", ["classic", "consumer"])
def test_members_that_stay_rejoin_first(cli, staying, stopping, expected):
    """If members stay, the plan adds when the last of them is expected to have rejoined, by its group protocol.

    If no member has to stop, nothing is added.
    """
    keep_audit_log(cli)
    for number, group_type in enumerate(staying):
        name = f"audit-{number}"
        member = Member(member_id=name, client_id=name, host="/h", subscription=frozenset({"audit.log"}))
        cli.cluster.join("old", member, group_type=group_type)
    assert "rejoined" not in notes(cli)[-1]
    member = Member(member_id="m", client_id="m", host="/h", subscription=frozenset({"t"}))
    cli.cluster.join("old", member, group_type=stopping)
    step = f"{expected} s until the members that stay have rejoined, 10 s to settle, "
    assert (step in notes(cli)[-1]) == bool(expected)
    assert f"about {11 + expected} s" in notes(cli)[-1]


@pytest.mark.parametrize(
    ("settle", "lag", "expected"), [(10.0, 8.0, None), (2.0, 0.4, None), (2.0, 7.5, 6.0), (0.0, 3600.0, 10.0)]
)
def test_the_mirror_delivers_while_the_group_settles(settle, lag, expected):
    """What a mirror is behind counts beyond ``settle``, up to what it may be behind when the group is asked to stop."""
    source = GroupDescription(group="g", state="Empty", group_type="classic")
    stop = PlannedStop(
        source=source, moved=None, stay=(), partitions=1, settle=settle, wait=1.0, resumed=False, mirror_lag=lag
    )
    assert stop.parts.get("for the mirror") == expected


def test_the_comment_of_a_pull_request_says_the_same(cli):
    """``--format markdown`` shows who must stop and for how long, as the terminal does, with names escaped.

    ``--format json`` does not contain these lines.
    """
    join(cli.cluster, "m", "t", client_id="*b*@x")
    shown = cli("migrate", "split.toml", "--dry-run", "--format", "markdown").stdout
    assert "- stop \\*b\\*@&#8203;x\n- the moved topics are not consumed for about 1 s" in shown
    assert "not consumed" not in cli("migrate", "split.toml", "--dry-run", "--format", "json").stdout


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """A list of the confirmation prompts that were shown. Each prompt gets the answer no."""
    questions: list[str] = []
    monkeypatch.setattr(Terminal, "check_can_be_asked", lambda _: None)
    monkeypatch.setattr(typer, "confirm", lambda text, **_: questions.append(text))
    return questions


def test_the_question_says_who_must_stop_and_that_it_waits(cli, asked):
    """Before the confirmation prompt, `migrate` names on stderr the topics that stay and the members to stop.

    It uses stderr because stdout may be a file. The prompt says how long it waits for these members.
    """
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
    """If no member has to stop, the confirmation prompt of `migrate` names the time ``--settle``, unless it is 0."""
    cli(*MIGRATE[:-1], "--settle", settle, code=3)
    assert asked == [question]


def test_apply_asks_as_it_did(cli, asked):
    """The confirmation prompt of `apply`, which waits for no member, only asks whether to write the offsets."""
    cli("apply", "split.csv", "--settle", "0s", code=3)
    assert asked == ["Write 1 offset in new?"]


def test_without_a_member_to_stop_nobody_is_told_to_stop_one(cli):
    """If all members have only topics that stay, `migrate` says that no member has to stop.

    It does not ask to stop consuming.
    """
    keep_audit_log(cli)
    join(cli.cluster, "audit-1", "audit.log")
    said = cli(*MIGRATE, "--settle", "0s", "--guard", "1ms")
    assert "no member has to stop; audit-1 may stay" in said.stdout
    assert "stop consuming" not in said.stderr


@pytest.mark.parametrize(
    ("settle", "guard", "sentence"),
    [
        (
            "10s",
            "30s",
            "the old applications may start about 11 s after the rollback begins (10 s to settle, 1 s to read, check, "
            "write and read back 1 partition); the watch of 30 s comes later, and they need not wait for it",
        ),
        (
            "0s",
            "0s",
            "the old applications may start about 1 s after the rollback begins (1 s to read, check, write and read "
            "back 1 partition)",
        ),
    ],
)
def test_a_dry_run_of_rollback_says_when_the_old_applications_may_start(cli, settle, guard, sentence):
    """The plan of a rollback has the times of the run's settle, of the write and of the watch, before the offsets."""
    cli(*MIGRATE)
    receipt = cli.folder / "split.toml.run" / "receipt.json"
    (execution,) = receipt_json.load(receipt).executions
    options = replace(execution.options, settle=parse_duration(settle, ""), guard=parse_duration(guard, ""))
    receipt.write_bytes(receipt_json.to_bytes(Receipt((replace(execution, options=options),))))
    assert cli("rollback", "split.toml.run", "--dry-run").stdout.splitlines()[0] == sentence


def test_a_rollback_that_is_refused_forecasts_no_start(cli):
    """If a new group has committed, so that the rollback is refused, its plan does not say when to start."""
    cli(*MIGRATE)
    cli.cluster.commit("new", TopicPartition("t", 0), 9)
    refused = cli("rollback", "split.toml.run", "--dry-run", code=3)
    assert "not committed since" in refused.stdout
    assert "may start" not in refused.stdout + refused.stderr


def test_a_rollback_without_an_old_group_forecasts_no_start(cli):
    """If a run wrote offsets that no group handed over, no application waits for its rollback."""
    cli("rewind", "--group", "old", "--topic", "t", "--to-earliest", "-o", "replay.csv")
    cli(*APPLY[:1], "replay.csv", "--to-group", "new", "--no-source-group", *APPLY[2:])
    result = cli("rollback", "receipt.json", "--dry-run")
    assert result.returncode == 0
    assert "may start" not in result.stdout + result.stderr
