"""A fleet: a spec names whole groups, each of which is handed over by itself, beside the others."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import migrate_groups as mg
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.fleet import FleetCommand
from migrate_groups.cli.target_cluster import Copies
from migrate_groups.files.runs.compared import compared
from migrate_groups.files.runs.run_dir import RunDir, file_name
from migrate_groups.migration.clusters import Mirror
from migrate_groups.migration.hand_over import cut_over, migrate
from migrate_groups.migration.hand_over import fleet as work_of_fleet
from migrate_groups.migration.hand_over.fleet import Part
from migrate_groups.migration.ports import Clients, Side
from migrate_groups.migration.ways_back import go_back
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.groups import Member
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.cli import CliHere
from tests.support.clock import FakeClock
from tests.support.documents import parsed
from tests.support.in_memory import InMemoryCluster, InMemoryRecords

OPTIONS = '[options]\nsettle = "0s"\nguard = "0s"\n'
TO = ("--to-bootstrap-server", "b:9092")
MOVE = ("migrate", "groups.toml", *TO, "--yes")
DRY = ("migrate", "groups.toml", *TO, "--dry-run")
ORDERS = TopicPartition("orders", 0)


class Groups(CliHere):
    """The command line with two in-memory clusters, between which topic ``orders`` is mirrored."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder)
        self.source, self.target = InMemoryCluster("source"), InMemoryCluster("target")
        for cluster in (self.source, self.target):
            cluster.create_topic("orders", 1)
        for timestamp in range(50):
            self.source.produce("orders", 0, 1, timestamp=timestamp)
        copied = self.source.records(ORDERS, range(5, 50), committed_only=False)
        self.target.append_copies("orders", 0, copied)
        here, there = (Side(each, InMemoryRecords(each)) for each in (self.source, self.target))

        def open_mirror(*_: object, writes: bool = False) -> object:
            writer = self.source if writes else None
            return nullcontext(Mirror(here._replace(writer=writer), there))

        @contextmanager
        def open_writer(_):
            yield Clients(self.target, self.target)

        monkeypatch.setattr(Copies, "open_mirror", open_mirror)
        monkeypatch.setattr(Connection, "open_reader", lambda _: nullcontext(self.target))
        monkeypatch.setattr(Connection, "open_writer", open_writer)

    def spec(self, *patterns: str, options: str = OPTIONS) -> None:
        listed = ", ".join(f"'{each}'" for each in patterns)
        (self.folder / "groups.toml").write_text(f"groups = [{listed}]\n{options}", encoding="utf-8")

    def commit(self, **offsets: int) -> None:
        for group, offset in offsets.items():
            self.source.commit(group, ORDERS, offset)

    def there(self, group: str) -> int | None:
        found = self.target.offsets(group).get(ORDERS)
        return None if found is None else found.offset

    def rows(self, out: str) -> dict[str, list[str]]:
        """Return the rows of the printed table of verdicts, by group: verdict, offsets, and the reason."""
        heading, *lines = out[out.rindex("group  ") :].splitlines()
        rows = [row for line in lines if len(row := line.split()) > 3 and row[1] not in ("group:", "groups:", "is")]
        return {row[0]: [*row[2:4], *row[4 + ("outage" in heading) :]] for row in rows}


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Groups:
    return Groups(tmp_path, monkeypatch)


def test_each_group_moves_under_its_name(cli):
    """On another cluster, groups keep their names. Each gets a run directory with spec, plan and receipt."""
    cli.commit(stock=20, **{"search-us": 30, "search-eu": 40, "other": 45})
    cli.spec("stock", "search-*", "search-eu")
    done = cli(*MOVE)
    assert cli.rows(done.stdout) == {"stock": ["moved", "1"], "search-eu": ["moved", "1"], "search-us": ["moved", "1"]}
    assert sorted(line for line in done.stderr.splitlines() if "START" in line) == [
        f"{group}: written and read back: START THE NEW GROUPS NOW" for group in ("search-eu", "search-us", "stock")
    ]
    assert [cli.there(group) for group in ("stock", "search-us", "search-eu", "other")] == [15, 25, 35, None]
    runs = [RunDir(cli.folder / "groups.toml.run").of_group(group) for group in ("stock", "search-us")]
    assert all(run.receipt.exists() and run.plan.exists() and run.spec.exists() for run in runs)


def test_a_glob_does_not_match_the_groups_of_this_tool(cli):
    """A probe group that a killed command has left is not moved, because no application uses it."""
    cli.commit(stock=20, **{"migrate-groups.barrier.17-3": 0})
    cli.spec("*")
    assert cli.rows(cli(*MOVE).stdout) == {"stock": ["moved", "1"]}


def test_a_group_that_is_refused_does_not_stop_the_others(cli):
    """If groups are refused, the other groups are moved, and the exit code is 3.

    A re-run moves the remaining groups, and shows which of the moved groups have started.
    """
    cli.commit(billing=3, stock=20, search=30)
    cli.spec("billing", "none", "stock", "search")
    status, out, err = cli.outcome(*MOVE)
    assert status == 3
    rows = cli.rows(out)
    assert [rows[group][0] for group in ("billing", "none", "stock", "search")] == [
        *("refused", "refused"),
        *("moved", "moved"),
    ]
    assert "group 'none' does not exist on this cluster" in out
    last = "error: 2 of 4 groups not done: billing (refused), none (refused): see the reasons in the table"
    assert err.splitlines()[-1].startswith(last)
    assert cli.there("billing") is None
    cli.commit(billing=25)
    cli.target.commit("stock", ORDERS, 16)
    cli.spec("billing", "stock", "search")
    rows = cli.rows(cli(*MOVE).stdout)
    assert rows == {"billing": ["moved", "1"], "stock": ["started", "0"], "search": ["moved", "1"]}
    assert [cli.there(group) for group in ("billing", "stock", "search")] == [20, 16, 25]


def test_the_most_serious_exit_code_wins(cli):
    """If a moved group commits on the source again, the exit code is 4, even if another group is refused.

    The remaining group is moved all the same.
    """
    cli.commit(billing=20, stock=3, search=30)
    cli.spec("billing", "stock", "search")
    cli(*MOVE, code=3)
    cli.target.commit("billing", ORDERS, 16)
    cli.commit(billing=21)
    status, out, err = cli.outcome(*MOVE)
    assert status == 4
    rows = cli.rows(out)
    assert [rows[group][0] for group in ("billing", "stock", "search")] == ["incomplete", "refused", "moved"]
    assert "not done: billing (incomplete), stock (refused)" in err.splitlines()[-1]


def test_a_commit_that_waits_for_a_replica_is_handed_over(cli):
    """A group's commit on the source cluster waits for a replica: the move waits for it, and hands it over."""
    cli.commit(billing=20)
    cli.spec("billing")
    cli.source.hang_follower()
    cli.commit(billing=30)
    cli(*MOVE)
    assert cli.there("billing") == 25
    assert [each.group for each in cli.source.list_groups()] == ["billing", journal_group("billing")]


def test_a_dry_run_shows_every_plan_and_writes_nothing(cli):
    """A dry run of several groups shows the verdict of each group's plan, and writes nothing.

    A comment also has each partition, folded. With ``--detailed-exitcode`` it ends with exit code 10 if no group is
    refused.
    """
    cli.commit(billing=20, stock=30)
    cli.spec("billing", "stock")
    done = cli(*DRY, "--detailed-exitcode", code=10)
    assert cli.rows(done.stdout) == {"billing": ["pass", "1"], "stock": ["pass", "1"]}
    comment = cli(*DRY, "--format", "markdown").stdout
    assert comment.count("<details>") == 2
    assert "orders-0 at 20" in comment
    assert "orders-0 at 30" in comment
    assert (cli.there("billing"), (cli.folder / "groups.toml.run").exists()) == (None, False)
    cli.commit(stock=3)
    assert "1 of 2 groups would not be handed over: stock (refused)" in cli(*DRY, code=3).stderr


def test_a_comment_has_a_line_for_each_of_hundreds_of_groups(cli):
    """A comment on hundreds of groups has totals, refusals first, and a line for each group, before it cuts details."""
    for cluster in (cli.source, cli.target):
        cluster.create_topic("many", 20)
    for number in range(300):
        for partition in range(1 if number == 150 else 20):
            cli.target.commit(f"g{number:03}", TopicPartition("many", partition), 0)
    fleet(cli)
    comment = cli("migrate", "groups.toml", "--dry-run", "--format", "markdown", code=3).stdout
    assert len(comment.encode()) <= 64_000
    rows = [line for line in comment.splitlines() if line.startswith("| `g")]
    assert len(rows) == 300
    assert rows[0].startswith("| `g150` | `new.g150` | refused |")
    assert 20 <= comment.count("<details>") < 300
    assert "| total | 300 | 1 | 299 | 5,980 |" in comment


def test_only_what_was_reviewed_is_moved(cli):
    """With ``--approved``, a group is refused if it was deleted, or has committed in a new topic.

    A group that a glob matches since then is named and left out. The other groups are moved.
    """
    cli.commit(**{"a-1": 20, "a-2": 30, "a-3": 40})
    cli.spec("a-*")
    cli(*DRY, "--plan-out", "plans")
    assert sorted(path.name for path in (cli.folder / "plans").iterdir()) == ["a-1.json", "a-2.json", "a-3.json"]
    assert "exists already" in cli(*DRY, "--plan-out", "plans", code=2).stderr
    cli.commit(**{"a-1": 22, "a-4": 10})
    cli.source.create_topic("more", 1)
    cli.target.create_topic("more", 1)
    cli.source.commit("a-2", TopicPartition("more", 0), 0)
    cli.source.delete_group("a-3")
    status, out, err = cli.outcome(*MOVE, "--approved", "plans")
    assert status == 3
    rows = cli.rows(out)
    assert [rows[f"a-{number}"][0] for number in range(1, 4)] == ["moved", "refused", "refused"]
    assert "a-4 is left out: plans has no plan of it, so it was not reviewed" in err
    assert "group 'a-3' does not exist" in err
    assert "the plan differs from plans/a-2.json" in err
    assert [cli.there(f"a-{number}") for number in range(1, 5)] == [17, None, None, None]


@pytest.mark.parametrize(
    ("patterns", "options", "reason"),
    [
        (("bill*", "search-*"), (), "matches the glob search-*: correct or remove it"),
        (("billin?x",), (), "did you mean billing?"),
        (("billing",), ("--format", "csv"), "--format csv shows one plan"),
        (("billing",), ("--approved", "plan.json"), "name the folder of --plan-out"),
        (("billing",), ("--rename", "st*=other*"), "group st* not among the groups of the spec: billing"),
        (("billing",), ("--rename", "billing=*"), "write one * on both sides, or none"),
        (("billing",), ("--rename", "billing"), "--rename is 'billing'; expected OLD=NEW, such as"),
        (("billing",), ("--rename", "stock=other"), "group stock not among the groups of the spec: billing"),
        (("billing", "stock"), ("--rename", "billing=x", "--rename", "stock=x"), "give 'x' the offsets of 2 groups"),
        (("billing", "stock"), ("--rename", "billing=stock"), "would give 'stock' the offsets of 2 groups"),
        ((), (), "groups has no name, or an empty one"),
        (("billing", ""), (), "groups has no name, or an empty one"),
    ],
)
def test_what_cannot_work_is_refused_before_any_group(cli, patterns, options, reason):
    """If the spec or an option is unusable, `migrate` prints a one-line error and ends with exit code 2.

    No group is moved.
    """
    cli.commit(billing=20)
    cli.spec(*patterns)
    assert reason in cli.fails(*MOVE, *options, code=2)
    assert cli.there("billing") is None


def test_whole_groups_on_one_cluster_need_other_names(cli):
    """On one cluster, a group that would keep its name is refused, and so is the spec of a fleet by `split`.

    A spec that both splits a group and names whole groups is refused, too.
    """
    cli.commit(billing=20)
    cli.target.commit("billing", ORDERS, 20)
    cli.spec("billing")
    assert "pass --to-bootstrap-server" in cli.fails("migrate", "groups.toml", "--yes", code=2)
    cli("snapshot", "billing", "-o", "s.csv")
    line = cli.fails("split", "s.csv", "--spec", "groups.toml", "-o", "t.csv", code=2)
    assert "names whole groups, which are not split: pass it to migrate" in line
    cli.spec("billing", options='source = "billing"\n')
    assert "write two files" in cli.fails(*MOVE, code=2)


def test_the_run_directory_of_a_split_is_not_used(cli):
    """A move of whole groups is refused in the run directory of a split.

    A run directory that the move itself created is removed if nothing was written.
    """
    cli.commit(billing=3)
    cli.spec("billing")
    cli(*MOVE, code=3)
    assert not (cli.folder / "groups.toml.run").exists()
    (cli.folder / "other.run").mkdir()
    (cli.folder / "other.run" / "receipt.json").touch()
    assert "is the run directory of one split" in cli.fails(*MOVE, "--run-dir", "other.run", code=2)


def test_a_way_back_of_one_group_and_of_all(cli):
    """`rollback` takes the run directory of one group, or the folder of all: then the others are undone side by side.

    `status` of the folder fails as that of each run.
    """
    cli.commit(billing=20, stock=30, search=40)
    cli.spec("billing", "stock", "search")
    cli(*MOVE)
    cli("rollback", "groups.toml.run/billing", "--yes")
    assert [cli.there(group) for group in ("billing", "stock", "search")] == [None, 25, 35]
    dry = cli("rollback", "groups.toml.run", "--dry-run")
    assert cli.rows(dry.stdout)["billing"] == ["done", "0"]
    assert "3 groups: 1 done, 2 not known, 2 offsets" in dry.stdout  # without the old cluster, the claims there
    done = cli("rollback", "groups.toml.run", "--yes")
    assert "3 groups: 1 done, 2 rolled back, 2 offsets" in done.stdout
    assert [cli.there(group) for group in ("billing", "stock", "search")] == [None, None, None]
    status, out, err = cli.outcome("status", "groups.toml.run")
    assert (status, out.count("pass --to-bootstrap-server")) == (2, 3)
    assert "3 of 3 runs not known: see the errors in the table" in err


def test_a_run_that_is_refused_does_not_stop_the_way_back_of_the_others(cli):
    """If a new group has started, `rollback` of the folder refuses its run by name, and undoes the others."""
    cli.target.commit("orders", ORDERS, 20)
    cli.target.commit("stock", ORDERS, 30)
    fleet(cli)
    cli(*HERE)
    cli.target.commit("new.stock", ORDERS, 35)
    status, out, err = cli.outcome("rollback", "groups.toml.run", "--yes")
    assert status == 3
    assert cli.rows(out)["stock"][0] == "refused"
    assert "use hand-back" in " ".join(cli.rows(out)["stock"])
    assert "1 of 2 groups not done: stock (refused)" in err
    assert (cli.there("new.orders"), cli.there("new.stock")) == (None, 35)
    runs = parsed(cli("status", "groups.toml.run", "--format", "json").stdout)["runs"]
    assert [(each["run"], each["state"]) for each in runs] == [("orders", "1 undone"), ("stock", "1 handed over")]
    cli.target.commit("new.orders", ORDERS, 20)
    cli("hand-back", "groups.toml.run/stock", "--yes", "--wait", "0s")
    assert cli.there("stock") == 35


def test_reconcile_takes_the_runs_of_a_fleet(cli):
    """`reconcile` of the folder compares the snapshots of all runs, and passes over none."""
    cli.target.commit("orders", ORDERS, 20)
    cli.target.commit("stock", ORDERS, 30)
    fleet(cli)
    cli(*HERE)
    folder = cli.folder / "groups.toml.run"
    found = compared([str(folder)], [], has_spec=False)
    assert found.before == [str(folder / group / "split.parquet") for group in ("orders", "stock")]
    assert found.after == [str(folder / group / "after.parquet") for group in ("orders", "stock")]
    cli("rollback", str(folder / "stock"), "--yes")
    with pytest.raises(mg.Refused, match=r"no hand-over to judge: new\.stock"):
        compared([str(folder)], [], has_spec=False)


def test_a_rehearsal_under_other_names(cli):
    """``--rename billing=rehearsal`` moves group ``billing`` to group ``rehearsal`` on the target cluster."""
    cli.commit(billing=20, stock=30)
    cli.spec("billing", "stock")
    cli(*MOVE, "--rename", "billing=rehearsal")
    assert [cli.there(group) for group in ("billing", "rehearsal", "stock")] == [None, 15, 25]


def test_a_star_renames_several_groups(cli):
    """``--rename '*=stage-*'`` gives each group another name on the target cluster; an earlier rule comes first."""
    cli.commit(billing=20, stock=30)
    cli.spec("billing", "stock")
    cli(*MOVE, "--rename", "billing=rehearsal", "--rename", "*=stage-*")
    assert [cli.there(group) for group in ("billing", "rehearsal", "stock", "stage-stock")] == [None, 15, None, 25]


def test_a_running_group_waits_for_the_mirror_and_the_next_one_follows(cli):
    """Before ``--stop-command``, a group that runs waits for the mirror, and is refused at the end of ``--wait``.

    Another group, which has stopped at an offset that is mirrored, is moved.
    """
    cli.commit(running=30, stopped=20)
    cli.source.join("running", Member(member_id="m", client_id="app", host="/h", subscription=frozenset({"orders"})))
    cli.source.produce("orders", 0, 1, timestamp=51)
    cli.spec("running", "stopped")
    status, out, err = cli.outcome(*MOVE, "--wait", "1s", "--stop-command", "true")
    assert status == 3
    rows = cli.rows(out)
    assert (rows["running"][0], rows["stopped"][0]) == ("refused", "moved")
    assert "1 partition behind: orders-0 (1 record)" in " ".join(rows["running"])
    assert "running: stopping the old applications" not in err
    assert (cli.there("running"), cli.there("stopped")) == (None, 15)


def test_a_group_without_offsets_is_refused(cli):
    """A group without committed offsets and members is refused, and the error names it. Other groups are moved."""
    cli.commit(billing=20)
    member = Member(member_id="m", client_id="app", host="/h", subscription=frozenset())
    cli.source.join("empty", member)
    cli.source.leave("empty", "m")
    cli.spec("*")
    out = cli(*MOVE, code=3).stdout
    assert cli.rows(out)["billing"] == ["moved", "1"]
    assert "group 'empty' has no committed offset, assignment or subscription" in out


NAMES = ("a/b", "..", ".", "a b", "é", "a\nb", "receipt.json", "a%2Fb", "x" * 300, "x" * 301, "A*?[", "-rf", "~")


def test_odd_names_are_folders_below_the_run(cli):
    """Whatever its name, each group is moved, and has a separate folder directly below the folder of the run."""
    run = RunDir(Path("run"))
    folders = [run.of_group(name).folder for name in NAMES]
    assert len({str(each).lower() for each in folders}) == len(NAMES)
    assert all(each.parent == run.folder and len(each.name) < 240 for each in folders)
    assert file_name("billing_2.eu-1") == "billing_2.eu-1"
    for name in NAMES:
        cli.source.commit(name, ORDERS, 20)
    cli.spec("*")
    cli(*MOVE)
    assert {cli.there(name) for name in NAMES} == {15}
    assert len(list((cli.folder / "groups.toml.run").glob("*/receipt.json"))) == len(NAMES)


def test_one_document_for_all_groups(cli):
    """``--format json`` prints one JSON document with the verdicts of all groups, even if a group is refused.

    Failures come first. Messages go to stderr.
    """
    cli.commit(billing=20, stock=3)
    cli.spec("billing", "stock")
    for command in (DRY, MOVE):
        document = parsed(cli(*command, "--format", "json", code=3).stdout)
        second, first = document["groups"]
        assert document["dry_run"] is (command is DRY)
        assert (first["group"], first["exit_code"], first["offsets"], first["reason"]) == ("billing", 0, 1, None)
        assert (second["verdict"], second["exit_code"], second["offsets"]) == ("refused", 3, None)
        assert "orders-0" in second["reason"]
        assert first["run_dir"] == "groups.toml.run/billing"


def test_an_interrupt_says_what_is_done(cli, monkeypatch):
    """If Ctrl-C interrupts a move of several groups, the last line names the interrupted group and the moved groups.

    The moved groups have the event ``done``, also those that ended after the interrupt.
    """
    cli.commit(billing=20, stock=30)
    cli.spec("billing", "stock")
    wait = cut_over.CutOver.wait_for_stop

    def interrupted(self):
        if self._source == "stock":
            raise KeyboardInterrupt
        wait(self)

    monkeypatch.setattr(cut_over.CutOver, "wait_for_stop", interrupted)
    status, _, err = cli.outcome(*MOVE, "--events", "events.jsonl")
    assert status == 130
    events = [parsed(line) for line in (cli.folder / "events.jsonl").read_text().splitlines()]
    done = [(each["run"], each["exit_code"]) for each in events if each["event"] == "done"]
    assert done == [("groups.toml.run/billing", 0), (None, 130)]
    assert err.splitlines()[-1] == (
        "interrupted; group stock: nothing was written to the cluster; the old applications may go on, or start again, "
        "unless a new one has run; "
        "done before: billing"
    )
    assert (cli.there("billing"), cli.there("stock")) == (15, None)


def test_an_interrupt_after_the_last_group_says_what_is_done(cli, monkeypatch):
    """If Ctrl-C comes after the last group, the last line names the moved and the incomplete groups.

    It does not say that nothing was written.
    """
    cli.commit(billing=20, stock=30)
    cli.spec("billing", "stock")
    written = cli.target.alter

    @contextmanager
    def closing(_):
        yield Clients(cli.target, cli.target)
        raise KeyboardInterrupt

    def alter(group, offsets):
        if group == "stock":
            return dict.fromkeys(offsets, WriteAnswer(answer=Answer.REFUSED, error="INVALID_COMMIT_OFFSET_SIZE"))
        return written(group, offsets)

    monkeypatch.setattr(cli.target, "alter", alter)
    monkeypatch.setattr(Connection, "open_writer", closing)
    status, _, err = cli.outcome(*MOVE)
    assert (status, err.splitlines()[-1]) == (130, "interrupted; done before: billing; incomplete: stock")


def test_the_python_api_moves_the_groups_of_a_spec(cli, monkeypatch):
    """`whole_groups` returns the groups of names and globs with the spec's options, and `migrate` moves each of them.

    A group that is renamed gets its new name on the target cluster.
    """
    cli.commit(stock=20, **{"search-us": 30, "search-eu": 40, "other": 45})
    cli.spec("stock", "search-*")
    monkeypatch.setattr("migrate_groups.api.reading.open_reader", lambda _: nullcontext(cli.source))
    monkeypatch.setattr(
        "migrate_groups.api.reading.open_writer", lambda _: nullcontext(Clients(cli.target, cli.target))
    )
    source, target = mg.connect("a:9092"), mg.connect("b:9092")
    here, there = (Side(each, InMemoryRecords(each)) for each in (cli.source, cli.target))
    mirror = Mirror(here._replace(writer=cli.source), there)
    monkeypatch.setattr(source, "_mirror_to", lambda to, *, writes: mirror)
    moves = source.whole_groups(cli.folder / "groups.toml", names={"stock": "stock-2"}, to=target)
    assert list(moves) == ["stock", "search-eu", "search-us"]
    for group, move in moves.items():
        assert move.options.settle == 0
        done = source.migrate(move, to=target, run_dir=cli.folder / f"{group}.run")
        assert done is not None
    assert [cli.there(each) for each in ("stock", "stock-2", "search-eu", "search-us")] == [None, 15, 35, 25]


@pytest.mark.parametrize(
    ("names", "error"),
    [({"other": "x"}, "group other not among the groups of the spec"), ({"a": "b"}, "would give 'b' the offsets of 2")],
)
def test_the_python_api_refuses_wrong_names(cli, monkeypatch, names, error):
    """`whole_groups` refuses a new name for a group that the spec does not have, and one name for two groups."""
    cli.spec("a", "b")
    monkeypatch.setattr("migrate_groups.api.reading.open_reader", lambda _: nullcontext(cli.source))
    with pytest.raises(mg.UsageError, match=error):
        mg.connect("a:9092").whole_groups(cli.folder / "groups.toml", names=names)


def test_the_python_api_refuses_the_spec_of_a_split(cli):
    """`whole_groups` refuses a spec that splits one group."""
    path = cli.folder / "split.toml"
    path.write_text('source = "a"\n[[target]]\ngroup = "b"\ntopics = ["*"]\n', encoding="utf-8")
    with pytest.raises(mg.InvalidInput, match="splits one group"):
        mg.connect("a:9092").whole_groups(path)


def test_each_group_has_its_events(cli):
    """With ``--events``, each group has its own events, and the last event is that of the command."""
    cli.commit(one=20, two=30)
    cli.spec("one", "two")
    cli.target.commit("two", ORDERS, 40)
    cli(*MOVE, "--events", "events.jsonl", code=3)
    found = [parsed(line) for line in (cli.folder / "events.jsonl").read_text().splitlines()]
    of_group = {
        group: [each["event"] for each in found if each["run"] == f"groups.toml.run/{group}"]
        for group in ("one", "two")
    }
    whole = ["planned", "waiting", "stopped", "written", "START", "moved", "done"]
    assert of_group == {"one": whole, "two": ["planned", "done"]}
    ends = [(each["run"], *each["source_groups"], each["exit_code"]) for each in found if each["event"] == "done"]
    assert ends == [("groups.toml.run/two", "two", 3), ("groups.toml.run/one", "one", 0), (None, 3)]
    assert found[-1]["event"] == "done"


HERE = ("migrate", "groups.toml", "--yes")


def fleet(cli: Groups, *, renames: str = '"*=new.*"', exclude: str = "", limits: str = "") -> None:
    """Write a spec for all groups of one cluster."""
    (cli.folder / "groups.toml").write_text(
        f"groups = ['*']\nrename = [{renames}]\nexclude = [{exclude}]\n[fleet]\n{limits}\n{OPTIONS}", encoding="utf-8"
    )


def test_a_fleet_on_one_cluster(cli):
    """On one cluster, each group is handed over to the group that the rules of the spec name, unless it is excluded."""
    for group, offset in {"orders": 20, "stock": 30, "test-orders": 10}.items():
        cli.target.commit(group, ORDERS, offset)
    fleet(cli, renames='"stock=warehouse", "*=eu.*"', exclude='"test-*"')
    done = cli(*HERE)
    assert cli.rows(done.stdout) == {"orders": ["moved", "1"], "stock": ["moved", "1"]}
    assert [cli.there(group) for group in ("eu.orders", "warehouse", "eu.test-orders")] == [20, 30, None]
    assert "2 groups: 2 moved, 2 offsets" in done.stdout


def test_a_fleet_of_share_groups(cli):
    """With ``type = "share"`` each group of a fleet is handed over to a new share group."""
    for group, offset in {"orders": 20, "stock": 30}.items():
        cli.target.commit(group, ORDERS, offset)
    fleet(cli)
    spec = cli.folder / "groups.toml"
    spec.write_text(f'type = "share"\n{spec.read_text("utf-8")}', "utf-8")
    assert "share groups: no exact way back once a member joins new.orders" in cli(*HERE[:2], "--dry-run").stdout
    assert cli.rows(cli(*HERE).stdout) == {"orders": ["moved", "1"], "stock": ["moved", "1"]}
    kinds = {each.group: each.group_type for each in cli.target.list_groups() if each.group.startswith("new.")}
    assert kinds == {"new.orders": "share", "new.stock": "share"}
    assert [cli.there(group) for group in ("new.orders", "new.stock")] == [20, 30]


def test_a_fleet_again_leaves_its_new_groups_out(cli):
    """If a glob also matches the new groups of an earlier run, they are named and left out."""
    cli.target.commit("orders", ORDERS, 20)
    fleet(cli)
    cli(*HERE)
    done = cli(*HERE)
    assert "new.orders is left out: it is the new group of orders" in done.stdout
    assert cli.rows(done.stdout) == {"orders": ["moved", "1"]}
    assert [each.group for each in cli.target.list_groups() if each.group.startswith("new.new")] == []


def test_a_fleet_again_after_its_groups_were_deleted(cli):
    """The new group of a deleted group is named and left out, unless the spec names it."""
    cli.target.commit("orders", ORDERS, 20)
    fleet(cli)
    cli(*HERE)
    cli.target.delete_group("orders")
    cli.target.commit("stock", ORDERS, 20)
    done = cli(*HERE)
    assert "new.orders is left out: it has the name of the new group of orders: name it in groups" in done.stdout
    assert cli.rows(done.stdout) == {"stock": ["moved", "1"]}
    (cli.folder / "groups.toml").write_text(f"groups = ['new.orders']\nrename = ['*=new.*']\n{OPTIONS}", "utf-8")
    assert cli.rows(cli(*HERE).stdout) == {"new.orders": ["moved", "1"]}


def test_a_group_that_was_deleted_before_its_hand_over_is_refused(cli):
    """If a group of a fleet did not stop in time, and was deleted since, the same command refuses it by name.

    It does not advise to hand over its last known offsets, because the group ran when they were read.
    """
    cli.target.commit("orders", ORDERS, 20)
    cli.target.commit("stock", ORDERS, 30)
    member = running(cli, "stock")
    fleet(cli)
    cli(*HERE, "--wait", "1s", code=3)
    cli.target.leave("stock", member.member_id)
    cli.target.delete_group("stock")
    status, out, err = cli.outcome(*HERE)
    assert (status, cli.rows(out)["stock"][0]) == (3, "refused")
    assert "group 'stock' has no committed offset any more: 1 committed offset expired or deleted" in err
    assert "the group still ran when they were read, so it is not known where it stopped" in err


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ('groups = ["orders"]', "group orders would keep the name on the same cluster"),
        ('groups = ["orders", "stock"]\nrename = ["orders=stock", "stock=x"]', "new group stock (of orders) also in"),
        ('groups = ["orders"]\nexclude = ["o*"]', "no group is left"),
        ('groups = ["orders"]\nrename = ["*=x.*"]\n[fleet]\nmax_stopped = 0', "max_stopped is 0; expected a whole"),
        ('groups = ["orders"]\nrename = ["*=x.*"]\n[fleet]\nmost = 1', "unknown key most in [fleet]"),
        ('groups = ["orders"]\nrename = "*=x.*"', "rename is not a list of names"),
        ('type = "classic"\ngroups = ["orders"]', "type of the new groups is 'classic': write type = \"share\""),
    ],
)
def test_a_fleet_that_cannot_work_is_refused(cli, spec, reason):
    """A spec of a fleet with wrong names or limits is refused in one line, and nothing is written."""
    cli.target.commit("orders", ORDERS, 20)
    cli.target.commit("stock", ORDERS, 20)
    (cli.folder / "groups.toml").write_text(spec, encoding="utf-8")
    status, _, err = cli.outcome(*HERE)
    assert (status in (2, 3), reason in err) == (True, True)
    assert {each.group for each in cli.target.list_groups()} == {"orders", "stock"}


def running(cli: Groups, group: str) -> Member:
    """Let a member of the group consume topic ``orders``."""
    member = Member(
        member_id=group, client_id="app", host="/h", subscription=frozenset({"orders"}), assignment=frozenset({ORDERS})
    )
    cli.target.join(group, member)
    return member


def test_each_group_is_handed_over_when_it_has_stopped(cli):
    """A group that still runs does not keep the others waiting. At the end of ``--wait`` it is refused by name."""
    cli.target.commit("orders", ORDERS, 20)
    cli.target.commit("stock", ORDERS, 30)
    running(cli, "stock")
    fleet(cli)
    status, out, err = cli.outcome(*HERE, "--wait", "1s")
    assert status == 3
    assert cli.rows(out)["orders"] == ["moved", "1"]
    assert cli.rows(out)["stock"][0] == "refused"
    assert "stock → new.stock: error: not stopped after 1 s: group 'stock' is Stable with 1 member (app" in err
    assert "wait longer with --wait; nothing was written" in err
    assert (cli.there("new.orders"), cli.there("new.stock")) == (20, None)


def test_status_and_reconcile_name_the_groups_that_are_not_handed_over(cli):
    """A group of a fleet that is refused before its write has a line in `status`, and a remark in `reconcile`."""
    for group in ("orders", "stock"):
        cli.target.commit(group, ORDERS, 20)
    running(cli, "stock")
    fleet(cli)
    assert cli.outcome(*HERE, "--wait", "1s")[0] == 3
    said = cli("status", "groups.toml.run").stdout
    [line] = [line.split() for line in said.splitlines() if line.startswith("stock ")]
    assert " ".join(line) == "stock nothing handed over migrate-groups migrate groups.toml"
    assert "2 runs: 1 handed over, 1 nothing handed over" in said
    assert "next: migrate-groups migrate groups.toml" in cli("status", "groups.toml.run/stock").stdout
    found = compared([str(cli.folder / "groups.toml.run")], [], has_spec=False)
    assert "not handed over, so not compared: stock" in found.hints


def test_no_group_is_begun_after_too_many_failures(cli):
    """After ``max_failures`` groups that were begun and failed, the other groups are not begun."""
    for number in range(4):
        cli.target.commit(f"g{number}", ORDERS, 20)
    fleet(cli, limits="max_stopped = 1\nmax_failures = 2")
    status, out, _ = cli.outcome(*HERE, "--stop-command", "false")
    assert status == 3
    reasons = [" ".join(row[2:]) for row in cli.rows(out).values()]
    assert sum("--stop-command: false ended with exit code 1" in each for each in reasons) == 2
    assert sum("not begun, because 2 groups failed" in each for each in reasons) == 2


def test_so_many_groups_are_stopped_at_once(cli):
    """Where ``--stop-command`` stops the groups, at most ``max_stopped`` are between their stop and their START."""
    program = cli.folder / "stop.sh"
    program.write_text(
        '#!/bin/sh\nmkdir -p stopped; touch "stopped/$MIGRATE_GROUPS_GROUP"; ls stopped | wc -l >> counts\n', "utf-8"
    )
    start = cli.folder / "start.sh"
    start.write_text('#!/bin/sh\nrm "stopped/$(basename "$MIGRATE_GROUPS_RUN_DIR")"\n', encoding="utf-8")
    for each in (program, start):
        each.chmod(0o755)
    for number in range(6):
        cli.target.commit(f"g{number}", ORDERS, 20)
    fleet(cli, limits="max_stopped = 2")
    cli(*HERE, "--stop-command", str(program), "--start-command", str(start))
    counts = [int(line) for line in (cli.folder / "counts").read_text().split()]
    assert len(counts) == 6
    # A start command may still run when the next group is stopped.
    assert max(counts) <= 3


def test_a_topic_that_a_member_brought_since_the_plan_is_refused(cli, monkeypatch):
    """A topic that the plan does not have, and of which a member was seen during the wait, refuses the group."""
    cli.target.create_topic("more", 1)
    cli.target.commit("orders", ORDERS, 20)
    fleet(cli)
    describe, hand_over = cli.target.describe_groups, FleetCommand._handed_over
    seen = []

    def leaves_after_a_reading(groups):
        found = describe(groups)
        if "orders" in groups and cli.target.description("orders").members:
            seen.append("orders")
            cli.target.leave("orders", "m")
        return found

    def joined(self, *arguments):
        member = Member(member_id="m", client_id="app", host="/h", subscription=frozenset({"orders", "more"}))
        cli.target.join("orders", member)
        monkeypatch.setattr(cli.target, "describe_groups", leaves_after_a_reading)
        return hand_over(self, *arguments)

    monkeypatch.setattr(FleetCommand, "_handed_over", joined)
    status, out, _ = cli.outcome(*HERE)
    assert seen == ["orders"]
    assert (status, cli.rows(out)["orders"][0]) == (3, "refused")
    assert "more" in " ".join(cli.rows(out)["orders"])
    assert cli.there("new.orders") is None


def test_the_outage_begins_with_the_last_reading_in_which_the_group_ran(cli, monkeypatch):
    """If a group stops right after the plan, its outage is measured from the reading of the plan."""
    cli.target.commit("orders", ORDERS, 20)
    running(cli, "orders")
    fleet(cli)
    hand_over = FleetCommand._handed_over

    def stopped(self, *arguments):
        cli.target.leave("orders", "orders")
        return hand_over(self, *arguments)

    monkeypatch.setattr(FleetCommand, "_handed_over", stopped)
    document = parsed(cli(*HERE, "--format", "json").stdout)
    assert document["groups"][0]["outage"] >= 0


def test_a_page_has_the_outcome_of_each_group(cli):
    """At the end ``fleet.html`` in the run directory has verdicts, outages, and what is left."""
    cli.target.commit("orders", ORDERS, 20)
    cli.target.commit("stock", ORDERS, 30)
    cli.target.commit("new.stock", ORDERS, 30)
    running(cli, "orders")
    fleet(cli)
    hand_over = FleetCommand._handed_over

    def stopped(self, *arguments):
        cli.target.leave("orders", "orders")
        return hand_over(self, *arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FleetCommand, "_handed_over", stopped)
        _, _, err = cli.outcome(*HERE)
    page = (cli.folder / "groups.toml.run" / "fleet.html").read_text(encoding="utf-8")
    for each in ("<code>new.orders</code>", "Longest outages", "<code>migrate-groups audit groups.toml.run</code>"):
        assert each in page
    assert "groups.toml.run/fleet.html has the outcome of each group" in err
    (cli.folder / "groups.toml.run" / "fleet.html").unlink()
    (cli.folder / "groups.toml.run" / "fleet.html").mkdir()
    assert "warning: " in cli(*HERE).stderr


def test_a_failed_start_command_makes_its_group_incomplete(cli):
    """If ``--start-command`` fails for a group, its verdict is ``incomplete``, and the exit code is 4, not 0."""
    for group in ("orders", "stock"):
        cli.target.commit(group, ORDERS, 20)
    fleet(cli)
    start = cli.folder / "start.sh"
    start.write_text('#!/bin/sh\ntest "$(basename "$MIGRATE_GROUPS_RUN_DIR")" = stock\n', encoding="utf-8")
    start.chmod(0o755)
    status, out, err = cli.outcome(*HERE, "--start-command", str(start))
    assert (status, cli.rows(out)["orders"][0], cli.rows(out)["stock"][0]) == (4, "incomplete", "moved")
    assert f"orders → new.orders: error: --start-command: {start} ended with exit code 1; the offsets are" in err


@pytest.mark.parametrize("phase", ["plan_migration", "migrate"])
def test_a_bug_in_one_group_does_not_stop_the_others(cli, monkeypatch, phase):
    """After an unexpected error, the other groups are moved. Its group has failed, and the exit code is 1."""
    for group in ("orders", "stock"):
        cli.target.commit(group, ORDERS, 20)
    fleet(cli)
    whole = getattr(migrate, phase)

    def fails_for_stock(first, wanted, *rest):
        if wanted.file.spec.source == "stock":
            raise KeyError("bug")
        return whole(first, wanted, *rest)

    seen: list[Any] = []
    monkeypatch.setattr(migrate, phase, fails_for_stock)
    monkeypatch.setattr("threading.excepthook", seen.append)
    status, out, err = cli.outcome(*HERE)
    assert (status, cli.rows(out)["orders"][0], cli.rows(out)["stock"][0]) == (1, "moved", "failed")
    assert "group 'stock': an unexpected failure: KeyError: 'bug'; please report it" in out
    assert "1 of 2 groups not done: stock (failed)" in err.splitlines()[-1]
    assert [each.exc_type for each in seen] == [KeyError]
    assert (cli.there("new.orders"), cli.there("new.stock")) == (20, None)


def test_a_cluster_that_does_not_answer_during_the_wait_does_not_stop_groups_at_work(cli, monkeypatch):
    """If the groups can't be described for a moment, the fleet asks again."""
    for group in ("orders", "stock"):
        cli.target.commit(group, ORDERS, 20)
    running(cli, "stock")
    fleet(cli)
    asked = []

    describe = cli.target.describe_groups

    def silent(groups):
        asked.append(groups)
        if len(asked) == 1:
            raise mg.ClusterUnavailable("no answer")
        if len(asked) == 2:
            cli.target.leave("stock", "stock")
        return describe(groups)

    hand_over = FleetCommand._handed_over

    def begun(self, *arguments):
        monkeypatch.setattr(cli.target, "describe_groups", silent)
        return hand_over(self, *arguments)

    monkeypatch.setattr(FleetCommand, "_handed_over", begun)
    assert {row[0] for row in cli.rows(cli(*HERE).stdout).values()} == {"moved"}
    assert asked[0] == ["orders", "stock"]


def test_an_interrupt_does_not_wait_for_a_stop_command(cli, monkeypatch):
    """If the command is interrupted while a ``--stop-command`` runs, it ends, and says what to start again."""
    for group in ("orders", "stock"):
        cli.target.commit(group, ORDERS, 20)
    fleet(cli)
    stop = cli.folder / "stop.sh"
    stop.write_text(
        '#!/bin/sh\ntest "$MIGRATE_GROUPS_GROUP" = orders && exit\ntouch begun\n'
        "for try in $(seq 100); do test -e go-on && exit; sleep 0.1; done; touch ended\n",
        encoding="utf-8",
    )
    stop.chmod(0o755)

    def interrupted(_):
        until((cli.folder / "begun").exists)
        raise KeyboardInterrupt

    monkeypatch.setattr(cut_over.CutOver, "wait_for_stop", interrupted)
    try:
        status, _, err = cli.outcome(*HERE, "--stop-command", str(stop))
        assert not (cli.folder / "ended").exists()
    finally:
        (cli.folder / "go-on").touch()
    assert status == 130
    again = "nothing was written to the cluster; --stop-command has run: start the old applications again"
    assert err.splitlines()[-1] == f"interrupted; group orders: {again}; group stock: {again}"


def moved(cli: Groups) -> Path:
    """Hand over the groups ``orders`` and ``stock``, and return the folder of the fleet."""
    cli.target.commit("orders", ORDERS, 20)
    cli.target.commit("stock", ORDERS, 30)
    fleet(cli)
    cli(*HERE)
    return cli.folder / "groups.toml.run"


def test_an_invalid_receipt_does_not_stop_the_way_back_of_the_others(cli):
    """If the receipt of one run is invalid, `rollback` of the folder says so, and undoes the others."""
    run = moved(cli)
    (run / "stock" / "receipt.json").write_text("{", encoding="utf-8")
    status, out, err = cli.outcome("rollback", "groups.toml.run", "--yes")
    assert (status, cli.rows(out)["orders"][0], cli.rows(out)["stock"][0]) == (2, "rolled", "invalid")
    assert "1 of 2 groups not done: stock (invalid)" in err
    assert (cli.there("new.orders"), cli.there("new.stock")) == (None, 30)


def test_an_interrupted_way_back_says_what_is_done(cli, monkeypatch):
    """If Ctrl-C interrupts a `rollback` of the folder, the last line does not say that nothing was written."""
    moved(cli)
    whole = go_back.go_back
    done: list[Any] = []

    def interrupted(clients, verb, file, *rest, **options):
        if file.path.parent.name == "stock":
            until(lambda: done)
            raise KeyboardInterrupt
        found = whole(clients, verb, file, *rest, **options)
        done.append(found)
        return found

    monkeypatch.setattr(go_back, "go_back", interrupted)
    status, _, err = cli.outcome("rollback", "groups.toml.run", "--yes")
    assert (status, err.splitlines()[-1]) == (130, "interrupted; done before: orders")
    assert (cli.there("new.orders"), cli.there("new.stock")) == (None, 30)


def test_no_more_groups_are_worked_on_at_once_than_asked(monkeypatch):
    """The work on the next group begins when that on another one has ended."""
    at_work, most = 0, 0

    class Counted(work_of_fleet._Threads):  # type: ignore[type-arg]
        def begin(self, part: Part[str]) -> None:
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            super().begin(part)

        def next_ended(self) -> Part[str]:
            nonlocal at_work
            at_work -= 1
            return super().next_ended()

    monkeypatch.setattr(work_of_fleet, "_Threads", Counted)
    done = work_of_fleet.work_on_each(
        [Part[str](name) for name in "abcdef"], lambda part, _: part.group, FakeClock(), most=2
    )
    assert [each.result for each in done] == [*"abcdef"]
    assert most == 2
