"""Ways back, moves to another cluster and topic patterns: what compared nothing, or could not read, does not pass."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.compared import compared
from migrate_groups.migration.ways_back.rollback import plan_rollback
from migrate_groups.model.permissions import Operation
from migrate_groups.planning.checks.permission import ANY_TOPIC
from tests.support.connected import MIGRATE, PARTITION, Connected
from tests.support.move import Move

RUN = "split.toml.run"
MAY_BE_HIDDEN = "User:ANONYMOUS may not describe every topic, and hidden ones match no pattern"


def of_rollback(cli: Connected) -> dict[str, str]:
    """Return the verdict of each check of a rollback."""
    receipt = receipt_json.load(cli.folder / RUN / "receipt.json")
    return {check.name: str(check.verdict) for check in plan_rollback(cli.cluster, receipt).checks}


def test_a_rollback_does_not_know_whether_a_topic_without_an_id_is_the_same(cli, monkeypatch):
    """If the brokers return no topic ids, the check `topics` of a rollback says `not known`."""
    cli(*MIGRATE)
    assert of_rollback(cli)["topics"] == "pass"
    describe = cli.cluster.describe_topics
    monkeypatch.setattr(
        cli.cluster,
        "describe_topics",
        lambda topics: {name: replace(found, topic_id=None) for name, found in describe(topics).items()},
    )
    assert of_rollback(cli)["topics"] == "not known"


def test_a_rollback_does_not_know_whether_offsets_are_in_a_log_without_a_leader(cli):
    """If a partition has no leader, the check `in range` of a rollback says `not known`."""
    cli(*MIGRATE)
    assert of_rollback(cli)["in range"] == "pass"
    cli.cluster.lose_leader("t", 0)
    assert of_rollback(cli)["in range"] == "not known"


def test_a_rollback_does_not_know_permissions_that_brokers_do_not_report(cli, monkeypatch):
    """If the brokers report no permissions, the check `permission` of a rollback says `not known`."""
    cli(*MIGRATE)
    monkeypatch.setattr(cli.cluster, "permissions", dict.fromkeys)
    assert of_rollback(cli)["permission"] == "not known"


def test_checks_of_a_mirror_without_copies_do_not_apply(tmp_path):
    """If the target cluster has no copy of a topic, no check of the copies passes."""
    move = Move(tmp_path)
    move.commit(30, 10)
    move.target.delete_topic("eu.orders")
    found = {check.name: str(check.verdict) for check in move.plan().checks}
    of_target = ("target kind", "target permission", "targets", "existing offsets", "target in range", "retention")
    names = ("mirror", "partitions", "group sync", *of_target)
    assert {name: found[name] for name in names} == dict.fromkeys(names, "not applicable")
    assert found["translated offsets"] == "refuse"


@pytest.mark.parametrize(
    "command",
    [
        ("verify", "old", "--topic", "x.*", "--settle", "0s"),
        ("delete-offsets", "--group", "old", "--topic", "x.*", "--dry-run"),
        ("rewind", "--topic", "x.*", "--to-earliest", "-o", "replay.csv"),
        ("migrate", "split.toml", "--dry-run"),
    ],
)
def test_a_pattern_that_matches_nothing_says_that_topics_may_be_hidden(cli, command):
    """If a pattern matches no topic, and topics may be hidden from the principal, the error says so (exit code 2)."""
    spec = cli.folder / "split.toml"
    spec.write_text(spec.read_text().replace('"t"', '"x.*"'))
    assert MAY_BE_HIDDEN not in cli.fails(*command, code=2)
    cli.cluster.deny(ANY_TOPIC, Operation.DESCRIBE, Operation.READ, Operation.DELETE)
    assert MAY_BE_HIDDEN in cli.fails(*command, code=2)


def test_verify_says_that_hidden_topics_are_not_included(cli):
    """If topics may be hidden from the principal, the result of `verify` says that it does not include them."""
    command = ("verify", "old", "--settle", "0s")
    assert "not included" not in cli(*command).stdout
    cli.cluster.deny(ANY_TOPIC, Operation.DESCRIBE, Operation.READ, Operation.DELETE)
    assert "topics that are hidden from this principal are not included" in cli(*command).stdout
    assert json.loads(cli(*command, "--format", "json").stdout)["sees_every_topic"] is False


def test_a_receipt_of_one_client_never_says_confirmed(cli):
    """With ``--second-client none`` the receipt, the result and the JSON say `confirmed by one client`."""
    done = cli(*MIGRATE, "--second-client", "none")
    assert "1 partition: 1 confirmed by one client\n" in done.stdout
    assert '"confirmed"' not in (cli.folder / RUN / "receipt.json").read_text()
    assert cli.cluster.offsets("new").get(PARTITION) is not None


def test_a_dry_run_names_the_checks_that_are_not_known(cli):
    """The last line of a dry run names the checks that could not be judged. It passes all the same."""
    cli.cluster.keep_offsets(None)
    done = cli("migrate", "split.toml", "--dry-run")
    assert "dry run passed, 1 check not known: retention\n" in done.stderr


def test_reconcile_says_what_the_receipt_does_not_show(cli):
    """If the old group was not watched, or only one client read back, `reconcile` of the run says so.

    After a guard, with both clients, it has nothing to say but who handed over.
    """
    cli(*MIGRATE)
    assert compared([str(cli.folder / RUN)], [], has_spec=False).hints[:-1] == ()
    cli("rollback", RUN, "--yes")
    cli(*MIGRATE, "--guard", "0s", "--second-client", "none")
    assert compared([str(cli.folder / RUN)], [], has_spec=False).hints[:-1] == (
        "old was not watched after the write: audit shows whether it consumed again",
        "1 partition confirmed by one client only, as the receipt says",
    )


def test_watch_names_topics_whose_id_is_not_known(cli):
    """If the file has no topic id, `watch` says that it would not recognise a topic that was created again."""
    unknown = "no topic id of topic t: not known whether it was created again since\n"
    (cli.folder / "ends.csv").write_text("group,topic,partition,offset,log_end_offset\nold,t,0,5,5\n")
    assert unknown in cli("watch", "old", "--until", "ends.csv").stderr
    cli("snapshot", "old", "-o", "known.csv")
    cli.cluster.commit("old", PARTITION, 10)
    assert unknown not in cli("watch", "old", "--until", "known.csv").stderr
