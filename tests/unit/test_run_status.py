"""``status``: what a run has done, and what each command may do next."""

from __future__ import annotations

import json
import shutil

import pytest

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.partitions import TopicPartition
from tests.support.connected import APPLY, MIGRATE, PARTITION, SPEC, Connected
from tests.support.in_memory import InMemoryCluster

RUN = "split.toml.run"
DELETE = ("delete-offsets", RUN, "--yes")


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    return Connected(tmp_path, monkeypatch)


def asked(cli: Connected, run: str = RUN) -> tuple[list[str], str]:
    """Return what `status` says: the answers for migrate and each way back, and what to do next."""
    found = json.loads(cli("status", run, "--format", "json").stdout)
    return [each["answer"] for each in found["commands"]], found["next"]


def started(cli: Connected) -> None:
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 7)


def taken_back(cli: Connected) -> None:
    started(cli)
    cli("hand-back", RUN, "--wait", "0s", "--yes")


def cleaned(cli: Connected) -> None:
    started(cli)
    cli(*DELETE)


def rolled_back(cli: Connected) -> None:
    cli(*MIGRATE)
    cli("rollback", RUN, "--yes")


@pytest.mark.parametrize(
    ("steps", "answers", "step"),
    [
        (
            lambda cli: cli(*MIGRATE),
            "allowed allowed allowed allowed",
            "start the new groups, not the old one; to undo",
        ),
        (started, "done refused allowed allowed", "the new groups have started, and the old one must"),
        (
            rolled_back,
            "allowed done refused refused",
            "the old applications may run, not the new ones; to hand over again: migrate-groups",
        ),
        (
            taken_back,
            "allowed refused done refused",
            "the old applications may run, not the new ones; to hand over again: migrate-groups",
        ),
        (cleaned, "refused refused allowed done", f"nothing; to undo the run: migrate-groups hand-back {RUN}"),
    ],
)
def test_answers_in_each_state_of_a_run(cli, steps, answers, step):
    """`status` says for each command whether it may run now, and what to do next, in each state of a run."""
    steps(cli)
    found, said = asked(cli)
    assert " ".join(found) == answers
    assert said.startswith(step)


def test_a_refused_deletion_is_not_the_next_step(cli):
    """If a new group was set back below an offset that it was given, `status` does not name `delete-offsets` next."""
    second = TopicPartition("t", 1)
    cli.cluster.add_partitions("t", 2)
    cli.cluster.produce("t", 1, 10)
    cli.cluster.commit("old", second, 4)
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 9)
    assert "a day later" in asked(cli)[1]
    cli.cluster.commit("new", second, 2)
    found, said = asked(cli)
    assert found == ["done", "refused", "refused", "refused"]
    assert said.endswith("prove the run with reconcile")


def test_a_partition_that_was_added_before_the_start(cli):
    """If a partition was added before the new groups start, `status` says to run the command again first.

    Otherwise auto.offset.reset would decide where they start in it.
    """
    cli(*MIGRATE)
    cli.cluster.add_partitions("t", 2)
    step = cli("status", "split.toml.run").stdout.partition("next: ")[2]
    again = "migrate-groups migrate split.toml again, which sets where they start in t-1, added since"
    assert step.startswith(f"before the new groups start, run {again}; to undo before they commit")
    cli(*MIGRATE)
    assert cli("status", "split.toml.run").stdout.partition("next: ")[2].startswith("start the new groups")


def other_run(cli: Connected, source: str, target: str) -> None:
    """Hand the topic over by another run."""
    text = SPEC.replace('source = "old"', f'source = "{source}"').replace('group = "new"', f'group = "{target}"')
    (cli.folder / "other.toml").write_text(text)
    cli("migrate", "other.toml", "--yes")


def test_a_group_that_was_given_topics_and_went_on_may_hand_them_over_again(cli):
    """`status` allows a hand-over again if the group before has committed beyond the first hand-over."""
    other_run(cli, "old", "new")
    (cli.folder / "on.toml").write_text(
        SPEC.replace('source = "old"', 'source = "new"').replace('group = "new"', 'group = "old"')
    )
    cli("migrate", "on.toml", "--yes")
    cli.cluster.commit("old", PARTITION, 8)
    cli("hand-back", "on.toml.run", "--wait", "0s", "--yes")
    found, said = asked(cli, "on.toml.run")
    assert found[0] == "allowed", said
    cli("migrate", "on.toml", "--yes")


@pytest.mark.parametrize(
    ("steps", "source", "target"),
    [
        (lambda cli: cli(*MIGRATE), "new", "old"),
        (lambda cli: cli(*MIGRATE), "new", "other"),
        (rolled_back, "old", "other"),
        (taken_back, "old", "other"),
    ],
)
def test_no_group_is_to_be_started_after_another_run_has_handed_its_topics_over(cli, steps, source, target):
    """`status` names the other run as the next thing to know, and says of no group that it may be started."""
    steps(cli)
    other_run(cli, source, target)
    found, said = asked(cli)
    assert found[0] == "refused"
    assert said.startswith(f"journal: t-0 handed over from '{source}' to '{target}' on 20")


def test_an_open_write_is_to_be_finished_first(cli, monkeypatch):
    """If the brokers did not answer a write, its command is to be run next. Only a rollback is allowed besides."""
    written = cli.cluster.alter_offsets

    def unanswered(offsets):
        unknown = WriteAnswer(answer=Answer.UNKNOWN, error="timeout")
        return {"new": dict.fromkeys(offsets["new"], unknown)} if "new" in offsets else written(offsets)

    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets", unanswered)
        cli(*MIGRATE, code=4)
    answers, step = asked(cli)
    assert answers == ["allowed", "allowed", "refused", "refused"]
    assert step == (
        "start no application, the write is not complete; finish it: migrate-groups migrate split.toml; or undo it: "
        f"migrate-groups rollback {RUN}"
    )


def test_a_partition_that_brokers_refused_is_named_with_the_reason(cli, monkeypatch):
    """If brokers refused a partition, what to do next names the partition, the reason and the command to run again."""
    no = WriteAnswer(answer=Answer.REFUSED, error="TOPIC_AUTHORIZATION_FAILED")
    written = cli.cluster.alter_offsets

    def refused(offsets):
        rest = {group: of_group for group, of_group in offsets.items() if group != "new"}
        return written(rest) | {group: dict.fromkeys(offsets[group], no) for group in offsets.keys() - rest.keys()}

    cli.cluster.create_topic("u", 1)
    cli.cluster.commit("old", TopicPartition("u", 0), 0)
    spec = (cli.folder / "split.toml").read_text()
    (cli.folder / "split.toml").write_text(f'{spec}[[target]]\ngroup = "other"\ntopics = ["u"]\n')
    with monkeypatch.context() as patched:
        patched.setattr(cli.cluster, "alter_offsets", refused)
        cli(*MIGRATE, code=4)
    assert asked(cli)[1] == (
        "start no application; not confirmed: new t-0 (TOPIC_AUTHORIZATION_FAILED): fix this, and run migrate-groups "
        f"migrate split.toml again; or undo it: migrate-groups rollback {RUN}"
    )


def test_on_another_cluster_every_command_is_refused(cli):
    """On another cluster than that of the run, each command is refused, and the next step is to name the right one."""
    cli(*MIGRATE)
    cli.cluster = InMemoryCluster("other")
    answers, step = asked(cli)
    assert answers == ["refused"] * 4
    assert step == "cluster: the receipt is from cluster in-memory, this is other: check --bootstrap-server"
    assert "(the cluster was in-memory, this is other)" in cli.fails(*MIGRATE, code=2)


def test_it_names_the_command_that_made_the_run(cli):
    """The command to hand over again is that of the spec beside the run directory, or of the file beside the receipt.

    If the spec is elsewhere, its name is SPEC, and the run directory is quoted for the shell.
    """
    rolled_back(cli)
    assert asked(cli)[1].endswith("migrate-groups migrate split.toml")
    shutil.copytree(cli.folder / RUN, cli.folder / "a copy")
    assert asked(cli, "a copy")[1].endswith("migrate-groups migrate SPEC --run-dir 'a copy'")


def test_the_command_of_a_receipt_whose_file_is_not_known(cli):
    """If no file has the name that the receipt's name begins with, the command to apply again names the receipt."""
    cli("apply", "split.csv", *APPLY[2:-2], "--receipt", "my.receipt.json")
    found = json.loads(cli("status", "my.receipt.json", "--format", "json").stdout)
    assert found["commands"][0]["command"] == "migrate-groups apply FILE --receipt my.receipt.json"


def test_the_status_of_a_receipt_of_apply(cli):
    """The receipt of `apply` has a status, too. Without a run directory, the lag at the stop is not known."""
    cli(*APPLY[:-2])
    found = json.loads(cli("status", "split.csv.receipt.json", "--format", "json").stdout)
    assert found["commands"][0]["command"] == "migrate-groups apply split.csv"
    assert found["lags"] == [{"group": "new", "topic": "t", "lag_at_stop": None, "lag": 5}]
    assert [write["outcomes"] for write in found["writes"]] == ["1 confirmed"]


def test_what_the_command_line_shows(cli):
    """The text shows the writes, the groups, the lag of each topic at the stop and now, and each command."""
    started(cli)
    shown = cli("status", RUN).stdout
    assert "1 confirmed" in shown
    assert "LAG-AT-STOP" in shown
    assert "outage not known: old was not seen running; no member or commit during the watch: new" in shown
    assert "refused  not committed since: new t-0: the group has committed since the hand-over" in shown
    assert "| `new` | `t` | 5 | 3 |" in cli("status", RUN, "--format", "markdown").stdout


def test_a_run_that_wrote_nothing(cli):
    """If no run has written anything yet, there is no receipt, and `status` says so with exit code 2."""
    assert "split.toml.run does not exist" in cli.fails("status", RUN, code=2)


def test_a_group_that_was_deleted_is_named(cli):
    """A group of the run that does not exist is named, and does not end the command."""
    rolled_back(cli)
    cli("delete-group", "new", "--yes")
    assert "does not exist: new" in cli("status", RUN).stdout


def test_a_cluster_that_does_not_answer_one_command(cli, monkeypatch):
    """If the brokers do not answer what one command needs, `status` says ``not known`` for this command."""
    cli(*MIGRATE)

    def silent(*_: object) -> None:
        raise ClusterUnavailable("the cluster did not answer")

    monkeypatch.setattr("migrate_groups.migration.ways_back.go_back.plan_rollback", silent)
    assert asked(cli)[0] == ["allowed", "not known", "allowed", "allowed"]
