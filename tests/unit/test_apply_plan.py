"""``apply`` with a saved and reviewed plan, on the command line, against the in-memory cluster."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from migrate_groups.cli.connect import Connection
from migrate_groups.files.runs import plan_json, receipt_json
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.migration.ports import GroupReader, GroupWriter, OffsetsReader
from migrate_groups.model.groups import Member
from migrate_groups.planning.change import Outcome
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.connected import Connected
from tests.support.in_memory import InMemoryCluster
from tests.support.planning import handed_over
from tests.support.stopped import FIRST, SECOND

NOW = ("--settle", "0s", "--guard", "0s")
DRY = ("apply", "split.csv", "--dry-run", *NOW)
SAVE = (*DRY, "--plan-out", "plan.json")
APPLY = ("apply", "plan.json", "--yes")


def methods(port: type) -> set[str]:
    return {name for name in dir(port) if not name.startswith("_")} - set(dir(object))


READS = methods(GroupReader) | methods(OffsetsReader)
WRITES = methods(GroupWriter) - READS


class ReadOnly:
    """A cluster that offers only the methods of `GroupReader` and `OffsetsReader`."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self.principal, self.second_client_lacks = cluster.principal, cluster.second_client_lacks
        for name in READS:
            setattr(self, name, getattr(cluster, name))


class Shell(Connected):
    """The command line on an in-memory cluster, with a reader that can't write.

    The group ``old`` has committed offsets 3 and 4 in two partitions of ten records each. The file split.csv hands
    these offsets over to the group ``new``.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        self.monkeypatch, self.stderr = monkeypatch, ""
        self.cluster.add_partitions("t", 2)
        self.cluster.produce("t", 1, 10)
        for partition, offset in ((FIRST, 3), (SECOND, 4)):
            self.cluster.commit("old", partition, offset)
        tables.save(handed_over(self.cluster, "old", "new"), folder / "split.csv", replace=True)
        monkeypatch.setattr(Connection, "open_reader", lambda _: nullcontext(ReadOnly(self.cluster)))

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run a command and check its exit code; return its stdout, or its stderr if it failed."""
        done = self(*arguments, code=code)
        self.stderr = done.stderr
        return done.stdout if code in (0, 10) else done.stderr

    def committed_offsets(self, group: str) -> list[int | None]:
        found = self.cluster.offsets(group)
        return [None if committed is None else committed.offset for committed in (found.get(FIRST), found.get(SECOND))]


@pytest.fixture
def shell(monkeypatch, tmp_path):
    return Shell(tmp_path, monkeypatch)


def test_a_dry_run_gets_a_reader_without_write_methods(shell):
    """A dry run of ``apply`` works with a reader that has no method that writes; kafka-python's reader has none."""
    assert {"alter_offsets", "delete_offsets"} <= WRITES
    assert not WRITES & methods(KafkaPythonReader)
    shell.monkeypatch.setattr(Connection, "open_writer", None)
    shell.run(*SAVE)
    shell.run("apply", "plan.json", "--dry-run")
    assert shell.committed_offsets("new") == [None, None]


def test_a_saved_plan_equals_the_json_output_and_is_reproducible(shell):
    """The file of ``--plan-out``, the output of ``--format json`` and that of a second dry run are the same bytes.

    They contain schema, version, hashes and rows of the plan.
    """
    shown = shell.run(*SAVE, "--format", "json")
    saved = (shell.folder / "plan.json").read_text()
    assert shown == saved == shell.run(*DRY, "--format", "json")
    document = json.loads(saved)
    assert (document["schema"], document["schema_version"]) == ("migrate-groups/plan", 6)
    assert [(change["partition"], change["after"]["offset"]) for change in document["changes"]] == [(0, 3), (1, 4)]
    loaded = plan_json.load(shell.folder / "plan.json")
    assert loaded.rows == tables.load(shell.folder / "split.csv")
    assert (loaded.plan.intent, loaded.plan.content) == (document["intent"], document["content"])


def test_a_plan_is_applied_as_it_was_reviewed(shell):
    """``apply`` writes a saved plan with the options of the plan, and keeps the receipt beside it.

    A re-run changes nothing.
    """
    shell.run(*SAVE, "--on-existing", "forward")
    assert "2 partitions: 2 confirmed" in shell.run(*APPLY)
    assert shell.committed_offsets("new") == [3, 4]
    (execution,) = receipt_json.load(shell.folder / "plan.json.receipt.json").executions
    plan = plan_json.load(shell.folder / "plan.json").plan
    assert (execution.options, execution.content, execution.intent) == (plan.options, plan.content, plan.intent)
    assert execution.options.on_existing == "forward"
    shell.run(*APPLY)
    assert shell.committed_offsets("new") == [3, 4]


def test_a_partly_written_plan_is_not_stale(shell):
    """If the target group already has one of the planned offsets, ``apply`` writes only the rest of the plan."""
    shell.run(*SAVE)
    shell.cluster.commit("new", FIRST, 3)
    shell.run(*APPLY)
    assert shell.committed_offsets("new") == [3, 4]
    (execution,) = receipt_json.load(shell.folder / "plan.json.receipt.json").executions
    assert [entry.outcome for entry in execution.changes] == [Outcome.UNCHANGED, Outcome.CONFIRMED]


@pytest.mark.parametrize(
    ("what", "drifted"),
    [
        (
            lambda cluster: cluster.commit("new", SECOND, 7),
            "the plan is stale: 1 partition changed since it was made: new t-1 (target group: no offset → 7)",
        ),
        (lambda cluster: cluster.commit("old", FIRST, 8), "new t-0 (source group old: 3 → 8)"),
        (lambda cluster: cluster.delete("old", [SECOND]), "new t-1 (source group old: 4 → no offset)"),
        (
            lambda cluster: cluster.delete_records("t", 0, 5),
            "new t-0 (3 is below the log start offset 5: 2 records deleted)",
        ),
        (
            lambda cluster: cluster.delete_records("t", 1, 5) or cluster.commit("new", FIRST, 9),
            "2 partitions changed since it was made: new t-0 (target group: no offset → 9), new t-1 (4 is below",
        ),
    ],
)
def test_a_stale_plan_is_refused_and_names_each_changed_partition(shell, what, drifted):
    """If an offset changed or records were deleted after the plan was made, ``apply`` ends with exit code 3.

    The error names each changed partition.
    """
    shell.run(*SAVE)
    what(shell.cluster)
    before = shell.committed_offsets("new")
    for command in (("apply", "plan.json", "--dry-run"), APPLY):
        assert drifted in shell.run(*command, code=3)
    assert shell.committed_offsets("new") == before


def test_a_recreated_topic_makes_a_plan_stale(shell):
    """If a topic was recreated after the plan was made, ``apply`` is refused; the error shows the log end offset."""
    shell.run(*SAVE)
    shell.cluster.delete_topic("t")
    shell.cluster.create_topic("t", 1)
    error = shell.run(*APPLY, code=3)
    assert "3 is beyond the log end offset 0" in error
    assert "the partition was deleted or has no leader" in error


def test_an_added_partition_makes_a_plan_stale(shell):
    """If a topic got a partition after the plan was made, ``apply`` is refused: its offset was not reviewed."""
    shell.run(*SAVE, "--on-uncommitted", "earliest")
    shell.cluster.delete_topic("t")
    shell.cluster.create_topic("t", 3)
    assert "new t-2 (not in the plan)" in shell.run(*APPLY, code=3)


def test_a_changed_log_start_offset_makes_a_plan_stale(shell):
    """With ``--on-uncommitted earliest``, ``apply`` is refused if a log start offset changed after the plan was made.

    It is also refused if the topic was deleted.
    """
    shell.cluster.create_topic("u", 1)
    rows = [*tables.load(shell.folder / "split.csv").rows()]
    tables.save(
        SnapshotTable.of_rows([*rows, structs.replace(rows[0], topic="u", topic_id="topic-id-2", offset=None)]),
        shell.folder / "split.csv",
        replace=True,
    )
    shell.run(*SAVE, "--on-uncommitted", "earliest")
    shell.cluster.produce("u", 0, 5)
    shell.cluster.delete_records("u", 0, 2)
    assert "new u-0 (offset to write: 0 → 2, 0 is below" in shell.run(*APPLY, code=3)
    shell.cluster.delete_topic("u")
    assert "new u-0 (no offset would be written now, the partition was deleted" in shell.run(*APPLY, code=3)


def test_commits_that_expired_after_the_review_are_restored_with_on_removed_restore(shell):
    """If a source commit expires after the review, a plan made with ``--on-removed restore`` is still written in
    full.
    """
    shell.run(*SAVE, "--on-removed", "restore")
    shell.cluster.delete("old", [FIRST])
    shell.run(*APPLY)
    assert shell.committed_offsets("new") == [3, 4]


def test_a_plan_of_another_cluster_is_refused(shell):
    """If a plan was made on another cluster, ``apply`` is refused with exit code 3."""
    shell.run(*SAVE)
    shell.cluster = InMemoryCluster("elsewhere")
    assert (
        "the plan is for cluster in-memory, this is elsewhere: check --bootstrap-server; nothing was written"
        in shell.run(*APPLY, code=3)
    )


def test_a_plan_of_a_live_group_is_written_once_the_group_has_stopped(shell):
    """While the source group has members, ``apply`` of its plan is refused. After the stop, the plan is written."""
    shell.cluster.join("old", Member(member_id="m", client_id="app", host="/h", assignment=frozenset([FIRST])))
    assert "pending" in shell.run(*SAVE)
    assert "stopped: " in shell.run(*APPLY, code=3)
    shell.cluster.leave("old", "m")
    shell.run(*APPLY)
    assert shell.committed_offsets("new") == [3, 4]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--on-existing", "overwrite"), "--on-existing overwrite contradicts plan.json, reviewed with refuse"),
        (("--on-uncommitted", "latest"), "--on-uncommitted"),
        (("--on-removed", "restore"), "--on-removed"),
        (("--restore",), "--restore"),
        (("--any-kind",), "--any-kind"),
        (("--to-group", "other"), "plan.json is a plan, which names its groups"),
        (("--fan-out",), "plan.json is a plan, which names its groups"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_option_that_contradicts_the_plan_is_refused(shell, options, complaint):
    """If an option of ``apply`` differs from the plan's value, it is refused with exit code 2.

    The same value is allowed.
    """
    shell.run(*SAVE)
    assert complaint in shell.run(*APPLY, *options, code=2)
    shell.run("apply", "plan.json", "--dry-run", *NOW, "--on-existing", "refuse")
    assert shell.committed_offsets("new") == [None, None]


def test_options_that_do_not_change_what_is_written_may_differ_from_the_plan(shell):
    """``apply`` takes another settle, guard and second client than the reviewed plan, and writes what was reviewed.

    If settle is shorter than reviewed, a line on stderr says so.
    """
    shell.run("apply", "split.csv", "--dry-run", "--settle", "5s", "--guard", "30s", "--plan-out", "plan.json")
    shell.run("apply", "plan.json", "--dry-run", "--settle", "6s")
    assert "was reviewed with" not in shell.stderr
    shell.run(*APPLY, *NOW, "--second-client", "none")
    assert (
        "settle is 0s, and plan.json was reviewed with 5s: an old consumer that commits less often than that is not "
        "seen before the write\n" in shell.stderr
    )
    assert shell.committed_offsets("new") == [3, 4]
    (execution,) = receipt_json.load(shell.folder / "plan.json.receipt.json").executions
    assert execution.intent == plan_json.load(shell.folder / "plan.json").plan.intent
    assert (execution.options.settle, execution.options.second_client) == (0, "none")


def test_a_receipt_to_stdout_is_refused(shell):
    """``apply --receipt -`` is refused, even in a dry run, because no run can be resumed from a receipt on stdout."""
    for command in (DRY, ("apply", "split.csv", *NOW, "--yes")):
        assert "--receipt -: the same command goes on" in shell.run(*command, "--receipt", "-", code=2)
    assert not (shell.folder / "-").exists()
    assert shell.committed_offsets("new") == [None, None]


def test_apply_refuses_uncommitted_latest(shell):
    """``apply`` refuses ``--on-uncommitted latest``.

    If a plan has this option, the error says to pass it to ``migrate``.
    """
    assert "--on-uncommitted latest is for migrate only" in shell.run(*DRY, "--on-uncommitted", "latest", code=2)
    shell.run(*SAVE)
    saved = plan_json.load(shell.folder / "plan.json")
    plan = replace(saved.plan, options=replace(saved.plan.options, on_uncommitted="latest"))
    (shell.folder / "plan.json").write_bytes(plan_json.to_bytes(plan, saved.rows.rows()))
    assert "which only migrate can do: pass the plan to migrate --approved" in shell.run(*APPLY, code=2)


def test_an_edited_plan_and_other_json_are_exit_2(shell):
    """``apply`` refuses an edited plan, and JSON that is not a plan, with exit code 2."""
    shell.run(*SAVE)
    path = shell.folder / "plan.json"
    path.write_text(path.read_text().replace('"offset":3', '"offset":9'))
    assert "plan.json was edited after it was written" in shell.run(*APPLY, code=2)
    (shell.folder / "other.json").write_text("{}")
    assert "other.json is not a valid plan" in shell.run("apply", "other.json", "--yes", code=2)


def test_a_plan_without_the_extension_json_is_refused(shell):
    """If a plan's file name does not end in .json, ``apply`` is refused, and the error says how to pass a plan."""
    shell.run(*SAVE)
    (shell.folder / "plan.json").rename(shell.folder / "plan.txt")
    assert shell.run("apply", "plan.txt", "--yes", code=2) == (
        "error: plan.txt is a plan, not a snapshot: pass it to apply as a .json file or on stdin (-), or to migrate "
        "--approved\n"
    )


def test_detailed_exitcode_distinguishes_changes_refusals_and_no_changes(shell):
    """With ``--dry-run --detailed-exitcode``, the exit code is 10 if offsets would change, and 0 if none would change.

    It is 3 if a check refuses the write, and 2 without ``--dry-run``.
    """
    shell.run(*DRY)
    shell.run(*DRY, "--detailed-exitcode", code=10)
    shell.cluster.commit("new", FIRST, 9)
    assert "existing offsets" in shell.run(*DRY, "--detailed-exitcode", code=3)
    shell.cluster.commit("new", FIRST, 3)
    shell.cluster.commit("new", SECOND, 4)
    shell.run(*DRY, "--detailed-exitcode")
    assert "goes with --dry-run" in shell.run("apply", "split.csv", "--yes", "--detailed-exitcode", code=2)


def test_a_refused_plan_is_shown_and_saved(shell):
    """If a check refuses the write, a dry run still shows the plan as Markdown, saves it, and ends with exit code 3."""
    shell.cluster.commit("new", FIRST, 9)
    shown = shell(*SAVE, "--format", "markdown", code=3).stdout
    assert "**refuse** existing offsets: 1 partition with another committed offset" in shown
    assert plan_json.load(shell.folder / "plan.json").plan.verdict == "refuse"


def test_plan_out_is_checked_before_the_cluster_is_contacted(shell):
    """``--plan-out`` is refused for a name without .json and for an existing file; ``--force`` replaces the file."""
    assert "expected a .json file" in shell.run(*DRY, "--plan-out", "plan.txt", code=2)
    shell.run(*SAVE)
    assert "plan.json exists already" in shell.run(*SAVE, code=2)
    shell.run(*SAVE, "--force")


@pytest.mark.parametrize("receipt", [("--receipt", "./plan.json"), ()])
def test_a_plan_and_a_receipt_in_one_file_are_refused(shell, receipt):
    """If ``--plan-out`` names the file of the receipt, ``apply`` is refused, because one would replace the other."""
    name = "plan.json" if receipt else "split.csv.receipt.json"
    error = shell.run("apply", "split.csv", "--yes", *NOW, "--plan-out", name, *receipt, code=2)
    assert error == f"error: --plan-out {name} is also the file of the receipt: name another file\n"
    assert not (shell.folder / name).exists()


def test_a_write_with_plan_out_saves_its_plan(shell):
    """``apply --plan-out`` without ``--dry-run`` saves the plan that was shown before the write."""
    shell.run("apply", "split.csv", *NOW, "--yes", "--plan-out", "plan.json")
    assert [change.action for change in plan_json.load(shell.folder / "plan.json").plan.changes] == ["create"] * 2
