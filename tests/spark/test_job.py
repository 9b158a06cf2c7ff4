from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual, assertSchemaEqual

from migrate_groups.errors import InvalidInput
from migrate_groups.spark.reconciliation.job import main, run_reconcile
from migrate_groups.spark.reconciliation.mapping import SplitMapping
from migrate_groups.spark.reconciliation.reconcile import STATUSES, count_column

CsvFile = Callable[..., str]
HEADER = "cluster_id,group,source_group,topic,partition,offset,log_start_offset,log_end_offset"


@pytest.fixture
def split(csv_file: CsvFile) -> str:
    """A snapshot as the command ``split`` writes it, with the offsets that were handed over."""
    rows = ("c,00123,big,007,0,10,0,15", "c,00123,big,007,1,20,0,25", "c,search,big,catalog,0,5,0,5")
    return csv_file(HEADER, *rows, name="split.csv")


@pytest.fixture
def after(csv_file: CsvFile) -> str:
    """A snapshot after a hand-over without a problem."""
    rows = ("c,00123,,007,0,10,0,15", "c,00123,,007,1,20,0,30", "c,search,,catalog,0,5,0,5")
    return csv_file(HEADER, *rows, name="after.csv")


@pytest.fixture
def broken(csv_file: CsvFile) -> str:
    """A snapshot after a hand-over: one committed offset is too low, and one is missing."""
    return csv_file(HEADER, "c,00123,,007,0,9,0,15", "c,search,,catalog,0,5,0,5", name="broken.csv")


def test_job_writes_both_tables_as_parquet_and_csv(
    spark: SparkSession, split: str, broken: str, tmp_path: Path
) -> None:
    """The verdicts and the summary are written as Parquet and CSV, with equal rows and the documented schema."""
    out = tmp_path / "out"
    found = run_reconcile(spark, [split], [broken], out=out)
    assert not found.clean
    assert sorted(path.name for path in out.iterdir()) == [
        "group_topic_summary.csv",
        "group_topic_summary.parquet",
        "partition_verdict.csv",
        "partition_verdict.parquet",
    ]
    verdicts = spark.read.parquet(str(out / "partition_verdict.parquet"))
    text = "cluster_id string, group string, source_group string, topic string, partition int, status string"
    numbers = (
        "before_offset, after_offset, before_log_start, before_log_end, after_log_start, after_log_end, "
        "lag_before, lag_after, produced, consumed"
    ).replace(",", " bigint,")
    schema = spark.createDataFrame([], f"{text}, {numbers} bigint, reason string").schema
    assertSchemaEqual(verdicts.schema, schema)
    assert {(row.group, row.topic, row.partition, row.status) for row in verdicts.collect()} == {
        ("00123", "007", 0, "behind"),
        ("00123", "007", 1, "missing"),
        ("search", "catalog", 0, "exact"),
    }
    read = spark.read.schema(schema).csv(str(out / "partition_verdict.csv"), header=True, escape='"')
    assertDataFrameEqual(read, verdicts)
    summary = spark.read.parquet(str(out / "group_topic_summary.parquet"))
    counts = " bigint, ".join(count_column(status) for status in STATUSES)
    assertSchemaEqual(
        summary.schema,
        spark.createDataFrame(
            [],
            f"cluster_id string, group string, topic string, worst string, partitions bigint, {counts} bigint, "
            "lag_before bigint, lag_after bigint, produced bigint, consumed bigint",
        ).schema,
    )
    [part] = (out / "group_topic_summary.csv").glob("*.csv")
    with part.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [(row["group"], row["topic"], row["worst"]) for row in rows] == [
        ("00123", "007", "missing"),
        ("search", "catalog", "exact"),
    ]
    assert (rows[0]["behind"], rows[0]["lag_before"], rows[0]["lag_after"]) == ("1", "10", "6")


def test_spec_or_split_file_maps_the_source_group(
    spark: SparkSession, csv_file: CsvFile, after: str, split: str
) -> None:
    """With a spec or a split file, the source group's rows in BEFORE are compared with target groups' rows in AFTER.

    Without either, the job is refused, because BEFORE and AFTER have no group in common.
    """
    rows = ("c,big,,007,0,10,0,15", "c,big,,007,1,20,0,25", "c,big,,catalog,0,5,0,5", "c,big,,legacy,0,5,0,5")
    before = csv_file(HEADER, *rows, name="before.csv")
    for how in (SplitMapping("big", lambda _: {"00123": ["007"], "search": ["catalog"]}), split):
        found = run_reconcile(spark, [before], [after], split=how)
        assert (found.clean, found.totals.partitions, found.totals.produced) == (True, 3, 5)
    with pytest.raises(InvalidInput, match="BEFORE and AFTER have no group in common"):
        run_reconcile(spark, [before], [after])


def test_existing_output_folder_is_refused_before_the_job(spark: SparkSession, split: str, tmp_path: Path) -> None:
    """An existing output folder is refused before any input is read."""
    out = tmp_path / "o[u]t"
    out.mkdir()
    bad = tmp_path / "bad.csv"
    bad.write_text("topic,partition\nt,x\n")
    with pytest.raises(InvalidInput, match="exists already: pass another folder, or remove it"):
        run_reconcile(spark, [split], [str(bad)], out=out)
    assert not [*out.iterdir()]


@pytest.mark.parametrize("name", ["o[1]{a}\\*?", "2026-11-20T12:00"])
def test_output_folder_may_have_special_characters(
    spark: SparkSession, split: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Characters of a glob or a URI in an output folder's name are taken literally."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "12:00").touch()
    out = name if ":" in name else tmp_path / name  # Spark keeps to the folder that it was started in
    assert run_reconcile(spark, [split], [after], out=out, quarantine="q:1").clean
    assert {path.name for path in tmp_path.iterdir()} == {"12:00", "after.csv", "split.csv", name, "q:1"}
    assert len([*(tmp_path / name).iterdir()]) == 4
    assert (tmp_path / "q:1" / "_SUCCESS").exists()


@pytest.mark.parametrize(("out", "quarantine"), [("x", "x"), ("x", "x/y"), ("x/y", "x")])
def test_overlapping_output_and_quarantine_folders_are_refused(
    spark: SparkSession, split: str, after: str, tmp_path: Path, out: str, quarantine: str
) -> None:
    """If the output folder and the quarantine folder are equal, or one contains the other, nothing is written.

    The error asks for separate folders.
    """
    with pytest.raises(InvalidInput, match="contain each other: pass separate folders"):
        run_reconcile(spark, [split], [after], out=tmp_path / out, quarantine=tmp_path / quarantine)
    assert not (tmp_path / "x").exists()


def test_each_side_may_be_several_files(spark: SparkSession, csv_file: CsvFile, split: str, tmp_path: Path) -> None:
    """BEFORE and AFTER may each be several files, folders and globs.

    If a group has snapshots of more than two times, reconcile also returns and writes its lag over time.
    """
    timed = f"taken_at,{HEADER}"
    for hour in (1, 2):
        row = f"2026-11-2{hour}T12:00:00Z,c,search,,catalog,0,{4 + hour},0,{10 + hour}"
        csv_file(timed, row, name=f"days/{hour}.csv")
    row = "2026-11-20T12:00:00Z,c,00123,,007"
    more = csv_file(timed, f"{row},0,10,0,15", f"{row},1,20,0,25", name="more/billing.csv")
    out = tmp_path / "out"
    found = run_reconcile(spark, [split], [str(tmp_path / "days" / "[12].csv"), str(tmp_path / "more")], out=out)
    assert (found.totals.counts["exact"], found.totals.counts["ahead"]) == (2, 1)
    assert found.timeline == ()
    assert not (out / "lag_timeline.parquet").exists()

    csv_file(timed, "2026-11-23T12:00:00Z,c,search,,catalog,0,9,0,14", name="days/3.csv")
    out = tmp_path / "history"
    found = run_reconcile(spark, [split], [str(tmp_path / "days"), more], out=out)
    lags = [(point.topic, point.taken_at.day, point.lag) for point in found.timeline if point.group == "search"]
    assert lags == [(topic, 20 + day, lag) for topic in (None, "catalog") for day, lag in ((1, 6), (2, 6), (3, 5))]
    timeline = spark.read.parquet(str(out / "lag_timeline.parquet"))
    assert timeline.count() == 4
    read = spark.read.schema(timeline.schema).csv(str(out / "lag_timeline.csv"), header=True, escape='"')
    assertDataFrameEqual(read, timeline)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("c,00123,,007,1,9,0,1x", r"bad\.csv, line 3: log_end_offset is '1x'"),
        ("c,00123,,007,0,8,0,15", "AFTER has two offsets at the same moment for 007-0 of group 00123"),
    ],
)
def test_bad_row_leaves_no_output(
    spark: SparkSession, split: str, csv_file: CsvFile, tmp_path: Path, row: str, message: str
) -> None:
    """A bad row leaves no output, whether the job finds the row before it writes or while it writes."""
    bad = csv_file(HEADER, "c,00123,,007,0,9,0,15", row, name="bad.csv")
    with pytest.raises(InvalidInput, match=message):
        run_reconcile(spark, [split], [bad], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_after_older_than_before_and_shared_files_are_refused(
    spark: SparkSession, csv_file: CsvFile, tmp_path: Path
) -> None:
    """A snapshot AFTER that is older than BEFORE is refused, and so is a file that is passed as both.

    Equal times and rows without a time are accepted.
    """
    timed = HEADER.replace("cluster_id", "taken_at,cluster_id")
    row = "c,a,big,t,0,10,0,15"
    early = csv_file(timed, f"2026-11-20T12:00:00Z,{row}", name="early.csv")
    late = csv_file(timed, f"2026-11-20T12:00:01.5Z,{row}", name="late.csv")
    older = (
        r"AFTER, taken at 2026-11-20T12:00:00Z, is older than BEFORE, taken at 2026-11-20T12:00:01\.500000Z: swap them"
    )
    with pytest.raises(InvalidInput, match=older):
        run_reconcile(spark, [late], [early], out=tmp_path / "out")
    for again in (late, str(tmp_path / "." / ".." / tmp_path.name / "late.csv")):
        with pytest.raises(InvalidInput, match=r"late\.csv is both BEFORE and AFTER: take a snapshot"):
            run_reconcile(spark, [early, late], [again])
    assert run_reconcile(spark, [early], [late]).clean
    assert run_reconcile(spark, [early], [csv_file(timed, f"2026-11-20T12:00:00Z,{row}", name="same.csv")]).clean
    assert run_reconcile(spark, [late], [csv_file(HEADER, row, name="untimed.csv")]).clean
    assert not (tmp_path / "out").exists()


def test_unwritable_output_path_is_a_one_line_error(spark: SparkSession, split: str, after: str) -> None:
    """If the output path cannot be written, reconcile fails with a one-line error."""
    for out in (Path(split) / "out", Path("/proc/out")):
        with pytest.raises(InvalidInput, match="can't be written") as error:
            run_reconcile(spark, [split], [after], out=out)
        assert "\n" not in str(error.value)


def test_main_returns_an_exit_code_and_prints_one_line(
    spark: SparkSession, split: str, after: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The `main` of reconcile's job returns 0 with totals and hints on stdout, or 2 with the reason on stderr."""
    out, err = io.StringIO(), io.StringIO()
    missing = str(tmp_path / "missing.csv")
    assert main([missing, after], out, err) == 2
    assert (out.getvalue(), err.getvalue()) == ("", f"error: {missing}: no such file or folder: check the path\n")
    before = tmp_path / "before.csv"
    before.write_text(Path(split).read_text().replace("00123,big", "big,").replace("search,big", "big,"))
    assert main([str(before), after, "--split", split], out, err) == 0
    assert json.loads(out.getvalue())["partitions"] == 3
    (tmp_path / "bad.csv").write_text(f"{HEADER}\nc,00123,big,007,0,x,0,1\n")
    more = ["--before", str(tmp_path / "bad.csv"), "--after", after, "--quarantine", str(tmp_path / "aside")]
    out, err = io.StringIO(), io.StringIO()
    assert main([split, after, *more], out, err) == 0
    document = json.loads(out.getvalue())
    assert document["quarantined"] == 1
    assert document["hints"][0].startswith(f"set aside in {tmp_path / 'aside'}: 1 invalid row (")
    assert err.getvalue() == ""
    assert capsys.readouterr() == ("", "")
