"""``audit`` on the in-memory cluster: what it refuses before it reads any record, and how it shows its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from migrate_groups.cli.connect import Connection
from migrate_groups.errors import HandOverBroken, NotAuthorized, Undetermined, UsageError
from migrate_groups.files.runs import receipt_json
from migrate_groups.migration.offsets_topic import audit
from migrate_groups.migration.ports import LogClients
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, StopCheckpoint
from migrate_groups.model.topics import TopicDescription
from migrate_groups.show import audit as views
from migrate_groups.spark.local_rows import MAX_ROWS
from migrate_groups.spark.offsets_topic.audit_result import Audit, Deletion, Malformed, Partition
from migrate_groups.spark.offsets_topic.evidence import Evidence
from tests.support.connected import MIGRATE, PARTITION, SPEC, Connected
from tests.support.documents import parsed
from tests.support.drawn import on_a_terminal
from tests.support.in_memory import InMemoryCluster

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
PROVEN = Audit(
    summary=(),
    doubtful=(),
    late_commits=(),
    deletions=(),
    evidence=(),
    malformed=(),
    rewinds=0,
    problems=0,
    undetermined=0,
    old={"stopped": 2},
    new={"starts-at-snapshot": 2},
)


class OtherCluster(InMemoryCluster):
    """A cluster whose id differs from the cluster id in the receipt."""

    def cluster_id(self) -> str:
        return "another"


class ClusterWithHiddenTopic(InMemoryCluster):
    """A cluster with a topic ``hidden`` that the client may not describe."""

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        if topics is not None and "hidden" in topics:
            raise NotAuthorized("Describe on topic hidden")
        return super().describe_topics(topics)


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    """The command line after a migration.

    ``audit`` can reach the cluster, but gets no reader of ``__consumer_offsets``.
    """
    made = Connected(tmp_path, monkeypatch)
    made.cluster.create_topic(OFFSETS_TOPIC, 50)
    made(*MIGRATE)

    no_reader: Any = None

    @contextmanager
    def open_offsets_topic(_):
        yield LogClients(made.cluster, no_reader)

    monkeypatch.setattr(Connection, "open_offsets_topic", open_offsets_topic)
    return made


def test_a_receipt_of_another_cluster_is_refused(cli):
    """If the receipt is of another cluster, ``audit`` ends with exit code 2, and the error names both cluster ids."""
    ours, cli.cluster = cli.cluster.cluster_id(), OtherCluster()
    refusal = cli.fails("audit", "split.toml.run", code=2)
    assert refusal == f"error: this is cluster another; the receipt is of cluster {ours}"


def test_an_offsets_topic_with_another_partition_count_is_exit_7(cli):
    """If ``__consumer_offsets`` has another partition count than at the migration, ``audit`` ends with exit code 7.

    The error shows both counts.
    """
    cli.cluster.delete_topic(OFFSETS_TOPIC)
    cli.cluster.create_topic(OFFSETS_TOPIC, 25)
    assert f"{OFFSETS_TOPIC} had 50 partitions, and has 25" in cli.fails("audit", "split.toml.run", code=7)


def test_a_stop_checkpoint_of_a_later_run_is_refused(cli):
    """If ``stop_checkpoints.parquet`` is a later run's, ``audit`` ends with exit code 2.

    With the log end offsets of the later run, a late commit of the source group would look like an earlier commit.
    """
    cli.cluster.commit("old", PARTITION, 7)
    (cli.folder / "later.toml").write_text(SPEC.replace('"new"', '"newer"'))
    cli("migrate", "later.toml", "--yes", "--copy")
    ours, later = (cli.folder / f"{name}.toml.run" / "stop_checkpoints.parquet" for name in ("split", "later"))
    kept = ours.read_bytes()
    ours.write_bytes(later.read_bytes())
    refusal = cli.fails("audit", "split.toml.run", code=2)
    assert refusal == (
        "error: split.toml.run/stop_checkpoints.parquet is not of the run that receipt.json records: restore the file "
        "of this run, because nothing else can take its place"
    )
    ours.write_bytes(kept)


def test_a_misspelt_group_without_membership_is_answered_with_the_nearest_name():
    """If a group of ``--without-membership`` is not of the run, the error asks for the nearest name of the run."""
    with pytest.raises(UsageError, match="'biling' is not one of the new groups of this run: did you mean billing"):
        audit._vouched({"billing", "search"}, ["biling"])


def test_stop_checkpoints_with_different_partition_counts_are_undetermined():
    """If ``__consumer_offsets`` got more partitions between two runs, the audit's verdict is undetermined.

    The groups may then be in other partitions of this topic.
    """
    checkpoints = {
        group: StopCheckpoint(cluster_id="c", taken_at=NOON, ends=dict.fromkeys(range(count), 0))
        for group, count in (("new", 50), ("old", 60))
    }
    with pytest.raises(Undetermined, match="had 50 partitions at one cut-over and 60 at another"):
        audit._side(("this", "the receipt is of"), checkpoints)


def test_a_partition_without_a_leader_at_the_cut_over_is_undetermined():
    """If a group's partition of ``__consumer_offsets`` had no leader at the cut-over, the verdict is undetermined.

    It is not known from which offset of this partition to judge the group's commits.
    """
    checkpoint = StopCheckpoint(cluster_id="c", taken_at=NOON, ends=dict.fromkeys(range(1)))
    with pytest.raises(Undetermined, match=f"{OFFSETS_TOPIC}-0, which holds group 'old', had no leader"):
        audit._side(("this", "the receipt is of"), {"old": checkpoint})


@pytest.mark.parametrize(("rows", "rest"), [(60, "… and 10 more"), (MAX_ROWS, "… and at least 950 more")])
def test_counts_beyond_the_longest_list_are_said(rows, rest):
    """If ``audit`` finds more rows than a list shows, the last line says how many more; from 1,000 rows on, "at least".

    The number of malformed records counts all of them.
    """
    read = Evidence(3, 0, 9, 0, 0, 0, 0, malformed=1500, held_back=0, whole=False)
    deletions = (Deletion("new", "t", 0, NOON),) * rows
    malformed = (Malformed(3, 0, "too short"),) * MAX_ROWS
    shown = on_a_terminal(views.result(replace(PROVEN, deletions=deletions, evidence=(read,), malformed=malformed)))
    assert "1,500 records can't be decoded; the first: partition 3, offset 0: too short" in shown
    assert rest in shown


@pytest.mark.parametrize(
    ("new", "code", "said"),
    [
        ({"no-commit-yet": 2}, 7, "error: not proven yet: no new group has committed since the hand-over: start the"),
        ({"no-commit-yet": 2, "not-in-snapshot": 1}, 7, "error: not proven yet: no new group has committed since"),
        ({"not-in-snapshot": 1}, 7, "error: not proven yet: no new group has committed since the hand-over: start"),
        ({"no-commit-yet": 1, "starts-at-snapshot": 1}, 0, "not proven yet for 1 partition without a commit"),
        ({"starts-at-snapshot": 2}, 0, "every new group began at the offsets handed over\n"),
        ({"starts-at-snapshot": 2, "not-in-snapshot": 1}, 0, "; not judged: 1 partition not handed over, but consumed"),
    ],
)
def test_an_audit_without_a_problem_ends_with_its_verdict(cli, monkeypatch, new, code, said):
    """While no new group has committed for a partition that was handed over to it, ``audit`` ends with exit code 7.

    Once one of them has committed, the exit code is 0. The advice to delete offsets comes once all of them have. Of a
    partition that was not handed over, the old group is not judged, and the verdict says so.
    """
    found = replace(PROVEN, new=new)
    monkeypatch.setattr(audit, "_copy", lambda *_: None)
    monkeypatch.setattr(audit, "_judged", lambda *_: found)
    shown = cli("audit", "split.toml.run", code=code)
    assert said in shown.stderr
    assert ("delete-offsets" in shown.stderr) == (code == 0 and "no-commit-yet" not in new)


def test_the_result_of_an_audit_says_who_handed_over(cli, monkeypatch):
    """The result of ``audit`` has who handed over, with the version and the reference, as text and in its document."""
    cli("rollback", "split.toml.run", "--yes")
    cli(*MIGRATE, "--reference", "CHG-7")
    monkeypatch.setattr(audit, "_copy", lambda *_: None)
    monkeypatch.setattr(audit, "_judged", lambda *_: PROVEN)
    by = receipt_json.load(cli.folder / "split.toml.run" / "receipt.json").executions[-1].by
    assert str(by).endswith(", reference CHG-7")
    assert cli("audit", "split.toml.run").stdout.endswith(f"handed over by {by}\n")
    assert parsed(cli("audit", "split.toml.run", "--format", "json").stdout)["handed_over_by"] == str(by)


def test_check_of_an_audit_raises_what_the_command_ends_with():
    """`Audit.check` raises nothing if the hand-over is proven. A problem counts more than an undetermined partition."""
    PROVEN.check()
    with pytest.raises(HandOverBroken, match=r"^1 partition committed late, started elsewhere or went back$"):
        replace(PROVEN, problems=1, undetermined=2).check()
    with pytest.raises(
        Undetermined, match=r"^the log does not tell of 2 partitions: see the evidence and the reasons$"
    ):
        replace(PROVEN, undetermined=2).check()


def test_an_audit_that_judged_no_source_group_is_exit_7(cli, monkeypatch):
    """If no partition has a source group that could be judged, ``audit`` proves nothing, and ends with exit code 7."""
    found = replace(PROVEN, old={"stopped": 0})
    monkeypatch.setattr(audit, "_copy", lambda *_: None)
    monkeypatch.setattr(audit, "_judged", lambda *_: found)
    refusal = cli.fails("audit", "split.toml.run", code=7)
    assert refusal == "error: not proven: this run has no partition of which an old group could be judged"


def test_the_old_group_of_a_copy_is_not_judged(cli, monkeypatch):
    """After ``migrate --copy`` the old group may go on, so ``audit`` judges the new groups only, and says so.

    It does not advise to delete the old group's offsets.
    """
    cli("rollback", "split.toml.run", "--yes")
    cli(*MIGRATE, "--copy")
    sources: list[object] = []

    def judged(handed_over, *_):
        sources.extend(row[0] for row in handed_over)
        return replace(PROVEN, old={"stopped": 0})

    monkeypatch.setattr(audit, "_copy", lambda *_: None)
    monkeypatch.setattr(audit, "_judged", judged)
    said = cli("audit", "split.toml.run").stderr
    assert sources == [None]
    assert said == (
        "proven: every new group began at the offsets handed over; not judged: the old group, which may go on "
        "(--copy)\n"
    )


@pytest.mark.parametrize(
    ("source", "target", "judged"), [("new", "third", ["old", None]), ("new", "old", [None, None])]
)
def test_what_another_run_has_handed_on_is_no_problem_of_the_first(cli, monkeypatch, source, target, judged):
    """After A → B and B → C, what became of B's offsets is not held against the first run, and C is named.

    After A → B and B → A, neither are A's later commits. A problem of other partitions still is.
    """
    spec = SPEC.replace('source = "old"', f'source = "{source}"').replace('group = "new"', f'group = "{target}"')
    (cli.folder / "second.toml").write_text(spec)
    cli("migrate", "second.toml", "--yes")
    rows: list[tuple[object, ...]] = []

    def judge(handed_over, *_):
        rows.extend(handed_over)
        return replace(PROVEN, problems=1) if len(rows) == 1 else PROVEN

    monkeypatch.setattr(audit, "_copy", lambda *_: None)
    monkeypatch.setattr(audit, "_judged", judge)
    said = cli("audit", "split.toml.run").stderr
    assert f"; not judged, because of what other runs did since: t-0 handed over from '{source}' to '{target}'" in said
    before, after = rows
    assert [before[0], before[7]] == ["old", 5]
    assert [after[0], after[7]] == judged
    rows.clear()
    earlier = Partition("old", "new", "t", 0, 5, 5, "stopped", 0, "earlier", 3, 8, 0, None)

    def broken(handed_over, *_):
        rows.extend(handed_over)
        return replace(PROVEN, problems=1, doubtful=(earlier,))

    monkeypatch.setattr(audit, "_judged", broken)
    assert "1 partition committed late, started elsewhere" in cli.fails("audit", "split.toml.run", code=6)
    assert [row[7] for row in rows] == [5, 5]  # a start below the offset handed over is judged all the same


def test_audit_asks_whether_topics_were_recreated(cli):
    """The ids of topics are read again for the audit. A topic that is gone, or may not be described, has no id."""
    now = cli.cluster.describe_topics(["t"])["t"].topic_id
    assert audit._current_topic_ids(cli.cluster, {"t", "gone"}) == {"t": now}
    other = ClusterWithHiddenTopic()
    other.create_topic("t", 1)
    assert [*audit._current_topic_ids(other, {"t", "hidden"})] == ["t"]
