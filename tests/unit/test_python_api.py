"""The Python API on the in-memory cluster: a wrong argument is refused with one line that names the argument."""

from __future__ import annotations

import math
import sys
import tomllib
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import migrate_groups as mg
from migrate_groups.files import split_toml
from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.migration.offsets_topic.copied import LogWithEnds
from migrate_groups.migration.offsets_topic.costs import CostsRequest
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.snapshots.times import milliseconds_of
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.rows import NOON

NOW = milliseconds_of(NOON)
OPTIONS = mg.WriteOptions(settle=0, guard=0.001)


@pytest.fixture
def made() -> InMemoryCluster:
    """An in-memory cluster whose group ``old`` has committed offset 5 in two partitions.

    Each partition has one record for each of the last ten seconds.
    """
    cluster = InMemoryCluster()
    cluster.create_topic("t", 2)
    for partition in (0, 1):
        for seconds in range(10, 0, -1):
            cluster.produce("t", partition, 1, timestamp=NOW - 1000 * seconds)
        cluster.commit("old", TopicPartition("t", partition), 5)
    return cluster


@pytest.fixture
def cluster(made, monkeypatch) -> mg.Cluster:
    """The in-memory cluster, wrapped as `migrate_groups.connect` returns a cluster."""
    monkeypatch.setattr("migrate_groups.api.reading.open_reader", lambda _: nullcontext(made))
    monkeypatch.setattr("migrate_groups.api.reading.open_writer", lambda _: nullcontext(Clients(made, made)))
    return mg.connect("h:1", clock=FakeClock())


def split(**changes: Any) -> mg.Split:
    return mg.Split(**{"source": "old", "targets": {"new": ["t"]}, **changes})


@pytest.mark.parametrize(
    ("moment", "complaint"),
    [
        (1_795_175_000, r"ToTime is 1795175000, which is 1970-01-21T\S+ in milliseconds: .* pass 1795175000000"),
        (NOW + 1, "ToTime is .*, which is in the future: it is now 2026-11-20T12:00:00Z"),
        (-1, "ToTime is -1, which is before 1970"),
    ],
)
def test_a_time_has_the_checks_of_the_command(cluster, moment, complaint):
    """A rewind to a time in seconds instead of milliseconds, in the future or before 1970 is refused.

    A valid time gives the offset of the first record at or after it, or the log end.
    """
    taken = cluster.snapshot("old")
    with pytest.raises(mg.UsageError, match=complaint):
        cluster.rewind(taken, mg.ToTime(moment))
    assert [row.offset for row in cluster.rewind(taken, mg.ToTime(NOW - 3000))] == [7, 7]
    assert [row.offset for row in cluster.rewind(taken, mg.ToTime(NOW))] == [10, 10]


@pytest.mark.parametrize("kind", [mg.ToTime, mg.ToOffset, mg.ShiftBy])
@pytest.mark.parametrize("number", [5.5, 5.0, True, "5", None, datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)])
def test_a_rewind_takes_only_whole_numbers(kind, number):
    """`ToTime`, `ToOffset` and `ShiftBy` refuse every value that is not a whole number; a fraction is not cut off."""
    with pytest.raises(mg.UsageError, match=rf"^{kind.__name__} is .*; expected a whole number"):
        kind(number)


def test_a_negative_offset_is_refused():
    """`ToOffset` refuses a negative offset. `ShiftBy` accepts a negative number, which goes back."""
    with pytest.raises(mg.UsageError, match="ToOffset is -1; expected a whole number, 0 or more"):
        mg.ToOffset(-1)
    assert mg.ShiftBy(-1).offsets == -1


def test_a_target_of_another_type_is_refused(cluster):
    """A rewind refuses a target that is a text, a number, or a class such as `ToEarliest` instead of an instance."""
    for wrong in (mg.ToEarliest, "earliest", 5):
        with pytest.raises(mg.UsageError, match=r"target is .*; expected one such as ToEarliest\(\) or ToOffset\(42\)"):
            cluster.rewind(cluster.snapshot("old"), wrong)


def test_an_unknown_past_end_is_refused(cluster):
    """A rewind refuses a ``past_end`` other than end, skip and fail, whatever its target is."""
    wrong: Any = "bogus"
    for target in (mg.ToTime(NOW), mg.ToEarliest()):
        with pytest.raises(mg.UsageError, match="past_end is 'bogus'; expected one of end, skip, fail"):
            cluster.rewind(cluster.snapshot("old"), target, past_end=wrong)


@pytest.mark.parametrize("seconds", [math.nan, -1, math.inf, 25 * 86400, "10s", True, None])
def test_seconds_are_a_number_of_at_most_24_days(cluster, tmp_path, seconds):
    """``timeout``, ``wait``, ``settle`` and ``guard`` are refused if not a number, negative or over 24 days."""
    calls = {
        "timeout": lambda: mg.connect("h:1", timeout=seconds),
        "wait": lambda: cluster.migrate(split(), run_dir=tmp_path / "run", options=OPTIONS, wait=seconds),
        "settle": lambda: mg.WriteOptions(settle=seconds),
        "guard": lambda: mg.WriteOptions(guard=seconds),
    }
    for name, call in calls.items():
        with pytest.raises(mg.UsageError, match=rf"^{name} is .*; expected a number of seconds from 0 to 24 days"):
            call()
    cluster.migrate(split(), run_dir=tmp_path / "run", options=OPTIONS)
    with pytest.raises(mg.UsageError, match=r"^wait is "):
        cluster.hand_back(tmp_path / "run", wait=seconds)


def test_a_watch_may_have_no_time_limit(cluster, made):
    """The ``timeout`` of `Cluster.watch` may be infinite; a negative number or NaN is refused."""
    for partition in (0, 1):
        made.commit("old", TopicPartition("t", partition), 10)
    assert cluster.watch("old", timeout=math.inf).reached
    for seconds in (math.nan, -1):
        with pytest.raises(mg.UsageError, match=r"^timeout is "):
            cluster.watch("old", timeout=seconds)


@pytest.mark.parametrize("seconds", [0, 0.0001])
def test_a_time_out_in_which_no_broker_can_answer_is_refused(seconds):
    """`connect` refuses a ``timeout`` below one millisecond, in which no broker can answer."""
    with pytest.raises(mg.UsageError, match=r"timeout is .* s, in which no broker can answer"):
        mg.connect("h:1", timeout=seconds)


def test_a_split_becomes_a_spec_file_with_the_same_names(tmp_path):
    """A spec file written from a `Split` gives the same names when loaded, even with emoji, quotes or line feeds."""
    names: dict[str, Any] = {
        "source": "old 😀",
        "targets": {'new "𐍈"\n\x7f': ["t", "a.*"]},
        "stay": ["é*"],
        "fan_out": True,
    }
    (tmp_path / "spec.toml").write_text(mg.Split(**names).to_toml())
    assert split_toml.load(tmp_path / "spec.toml").spec == mg.Split(**names).spec


def test_the_spec_file_of_a_run_can_be_read(cluster, made, tmp_path):
    """The ``spec.toml`` that a run saves is valid TOML, even if groups' names contain emoji."""
    for partition in (0, 1):
        made.commit("old 😀", TopicPartition("t", partition), 5)
    wanted = split(source="old 😀", targets={"new 😀": ["t"]})
    cluster.migrate(wanted, run_dir=tmp_path / "run", options=OPTIONS)
    assert split_toml.load(tmp_path / "run" / "spec.toml").spec == wanted.spec
    assert tomllib.loads((tmp_path / "run" / "spec.toml").read_text())["source"] == "old 😀"


def test_a_pattern_that_is_not_utf_8_is_refused():
    """A topic pattern that can't be encoded in UTF-8 is refused, and the error shows the pattern."""
    with pytest.raises(mg.InvalidInput, match=r"topic pattern '\\ud800' is not UTF-8"):
        split(targets={"new": ["\ud800"]}).to_toml()


@pytest.mark.parametrize("wrong", ["t*", b"t*", None, 5, [5], ["t", None]])
def test_a_text_in_place_of_a_list_is_refused(cluster, tmp_path, wrong):
    """An argument that must be a list of texts refuses a single text, and does not take it letter by letter.

    It also refuses bytes, numbers, None and lists with other values than texts. The error names the argument.
    """
    taken = cluster.snapshot("old")
    calls = {
        "topics": lambda: cluster.list(topics=wrong),
        "states": lambda: cluster.list(states=wrong),
        "topics of filter": lambda: taken.filter(topics=wrong),
        "groups": lambda: taken.filter(groups=wrong),
        "targets of 'new'": lambda: taken.split(split(targets={"new": wrong})),
        "stay": lambda: cluster.plan_migrate(split(stay=wrong), run_dir=tmp_path / "run"),
        "to_groups": lambda: cluster.plan(taken, to_groups=wrong),
    }
    for name, call in calls.items():
        expected = rf"^{name.removesuffix(' of filter')} is .*; expected a list of texts"
        with pytest.raises(mg.UsageError, match=expected):
            call()


def test_the_error_for_a_text_shows_the_list():
    """If a text is given in place of a list, the error shows the list to pass, such as ``['inv*']``."""
    with pytest.raises(mg.UsageError) as raised:
        _ = split(targets={"new": "inv*"}).spec
    assert str(raised.value) == "targets of 'new' is 'inv*'; expected a list of texts, such as ['inv*']"


def test_an_empty_range_of_partitions_matches_nothing(cluster):
    """An empty range of partitions, such as ``range(0)``, is refused, because no partition matches it."""
    taken = cluster.snapshot("old")
    for empty in (range(0), range(5, 3)):
        with pytest.raises(mg.InvalidInput, match=r"no partition matches range\(.*\): choose from partitions 0, 1"):
            taken.filter(partitions=[range(1), empty])
    assert [row.partition for row in taken.filter(partitions=[range(1, 2)])] == [1]


@pytest.mark.parametrize("wrong", [range(2), range(0), [1], "1", "", None, 1])
def test_partitions_are_a_list_of_ranges(cluster, wrong):
    """``partitions`` of `filter` must be a list of ranges: a single range, a number or a text is refused."""
    with pytest.raises(mg.UsageError, match=r"^partitions is .*; expected a list of ranges, such as \[range\(3, 6\)\]"):
        cluster.snapshot("old").filter(partitions=wrong)


@pytest.mark.parametrize("name", ["any_kind", "restore"])
@pytest.mark.parametrize("wrong", ["false", 1, None])
def test_an_option_that_is_true_or_false_takes_nothing_else(name, wrong):
    """`WriteOptions` refuses every value of ``any_kind`` and ``restore`` except True and False.

    Python would take the text ``"false"`` for true.
    """
    with pytest.raises(mg.UsageError, match=f"{name} is {wrong!r}; expected True or False"):
        mg.WriteOptions(**{name: wrong})


def test_fan_out_is_true_or_false():
    """`Split` refuses the text ``"false"`` for ``fan_out``, because Python would take it for true.

    Records would then be processed twice.
    """
    with pytest.raises(mg.UsageError, match="fan_out is 'false'; expected True or False"):
        _ = split(fan_out="false").spec


@pytest.mark.parametrize("wrong", [-1, 1.5, "5", True])
def test_the_records_to_read_again_are_a_whole_number(wrong):
    """``accept_reread`` of `WriteOptions` is refused if it is not a whole number of 0 or more."""
    with pytest.raises(mg.UsageError, match=r"accept_reread is .*; expected a whole number, 0 or more"):
        mg.WriteOptions(accept_reread=wrong)


def test_reconcile_of_a_missing_run_says_that_it_does_not_exist(tmp_path, monkeypatch):
    """If the run directory does not exist, the error of `reconcile` names its path.

    If the spec of this run exists, the error also says that `migrate` with this spec makes the run directory.
    """
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mg.InvalidInput, match=r"nope\.run does not exist: check the path"):
        mg.reconcile(Path("nope.run"))
    Path("split.toml").touch()
    with pytest.raises(mg.InvalidInput, match=r"split\.toml\.run does not exist: migrate split\.toml makes it"):
        mg.reconcile(Path("split.toml.run"))


def test_a_snapshot_is_shown_in_one_short_line(made):
    """The text of a snapshot says how many rows of which groups it has, in one line, whatever the names are."""
    snapshot = mg.Snapshot.of_rows(take_snapshot(made, ["old"], FakeClock()).rows())
    assert str(snapshot) == repr(snapshot) == "<Snapshot: 2 rows of group old>"
    assert repr(snapshot.table) == "<SnapshotTable: 2 rows of group old>"
    assert str(mg.Snapshot.of_rows([])) == "<Snapshot: 0 rows of no group>"
    odd = "a\u202e\n" + "x" * 1000
    made.commit(odd, TopicPartition("t", 0), 1)
    long = str(mg.Snapshot.of_rows(take_snapshot(made, ["old", odd], FakeClock()).rows()))
    assert long.startswith(r"<Snapshot: 4 rows of groups a\u202e\nxxx")
    assert len(long) < 300


def test_advice_is_that_of_the_command(cluster, made):
    """`Cluster.advise` names the applications that share a group, and `propose_split` returns a spec file for a split.

    The split covers the group's topics, so that it can be planned. A group without members can't be split.
    """
    made.create_topic("u", 1)
    for topic in ("t", "u"):
        made.join("big", Member(member_id=topic, client_id=topic, host="/h", subscription=frozenset({topic})))
    assert [(each.status.group, each.finding) for each in cluster.advise()] == [("big", "shared"), ("old", "not known")]
    spec = tomllib.loads(cluster.propose_split("big"))
    assert [(each["group"], each["topics"]) for each in spec["target"]] == [("big-t", ["t"]), ("big-u", ["u"])]
    with pytest.raises(mg.Undetermined, match="group 'old' can't be advised: not known: it has no members"):
        cluster.propose_split("old")
    with pytest.raises(mg.GroupNotFound):
        cluster.advise("gone")


@pytest.mark.parametrize("wrong", [60, 0.5, "1h", timedelta(0), timedelta(hours=-1)])
def test_a_time_span_is_a_positive_timedelta(cluster, tmp_path, wrong):
    """``every`` and ``since`` are refused if not a timedelta, or not positive. Nothing is copied."""
    folders = {"log": tmp_path / "log", "output": tmp_path / "out"}
    calls = {
        "every": lambda: cluster.history(every=wrong, **folders),
        "since": lambda: cluster.costs(since=wrong, **folders),
    }
    for name, call in calls.items():
        with pytest.raises(mg.UsageError, match=rf"^{name} is .*; expected a positive timedelta"):
            call()
    with pytest.raises(mg.UsageError, match=r"^since is "):
        cluster.costs_after(tmp_path / "run", since=wrong, **folders)
    assert list(tmp_path.iterdir()) == []


def test_calls_that_need_spark_say_so_before_they_copy_the_log(cluster, tmp_path, monkeypatch):
    """Without PySpark, calls that need it raise `MissingDependency` before they copy anything or read a run."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    folders = {"log": tmp_path / "log", "output": tmp_path / "out"}
    for call in (
        lambda: cluster.history(**folders),
        lambda: cluster.costs(**folders),
        lambda: cluster.costs_after(tmp_path / "run", **folders),
        lambda: cluster.audit(tmp_path / "run"),
        lambda: mg.reconcile(tmp_path / "run"),
    ):
        with pytest.raises(mg.MissingDependency, match="Spark is not installed: run pip install"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_a_span_that_begins_before_1970_is_refused(tmp_path):
    """Costs since a time before 1970 are refused with one line, however long the time span is."""
    copied = LogWithEnds(CopiedLog.load(tmp_path / "log", "c"), NOON, {})
    for days in (30_000, 999_999_999):
        asked = CostsRequest(None, tmp_path / "log", tmp_path / "out", timedelta(days=days))
        with pytest.raises(mg.UsageError, match=r"^--since is .* before 1970"):
            asked.begin(copied)
    asked = CostsRequest(None, tmp_path / "log", tmp_path / "out", timedelta(days=1))
    assert asked.begin(copied) == NOON - timedelta(days=1)


def test_the_status_of_a_run_names_the_calls(cluster, tmp_path):
    """`status` says what to do next, with the methods of the API in place of command lines."""
    run = tmp_path / "run"
    cluster.migrate(split(), run_dir=run, options=OPTIONS)
    found = cluster.status(run)
    assert [each.answer for each in found.commands] == ["allowed"] * 4
    assert found.next == f"start the new groups, not the old one; to undo before they commit: rollback({str(run)!r})"
