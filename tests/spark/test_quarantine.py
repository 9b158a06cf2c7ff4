from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import migrate_groups.spark.reconciliation.quarantine
from migrate_groups.errors import InvalidInput
from migrate_groups.spark.reconciliation.job import run_reconcile
from migrate_groups.spark.reconciliation.snapshots import SNAPSHOT

CsvFile = Callable[..., str]
HEADER = "group,source_group,topic,partition,offset,log_end_offset"
GOOD = ("new,big,t,0,10,15", "new,big,t,1,20,25", "new,big,t,2,30,35")


def quarantined(folder: Path) -> list[dict[str, str]]:
    """Return the rows in a quarantine folder."""
    rows = []
    for part in sorted(folder.glob("*.csv")):
        with part.open(encoding="utf-8", newline="") as file:
            rows += [*csv.DictReader(file)]
    return rows


def test_bad_rows_are_quarantined_and_counted(spark: SparkSession, csv_file: CsvFile, tmp_path: Path) -> None:
    """For each bad row, the quarantine folder has the side (BEFORE or AFTER), file, line, cell, and what was expected.

    The bad rows are counted. A hint says that the verdict is about the other rows only.
    """
    bad = ("new,big,t,3,NA,1", "new,big,t,4,1,x", "new,big,t,5", '"a\nb",big,t t,6,1,1', "new,big,t,7,NA,1")
    before = csv_file(HEADER, *GOOD[:2], *bad, GOOD[2], name="be fore+é.csv")
    after = csv_file(HEADER, *(row.replace("big", "") for row in GOOD[:2]), "new,,t,2,-1,35", name="after.csv")
    aside = tmp_path / "aside"
    found = run_reconcile(spark, [before], [after], quarantine=aside)
    assert (found.clean, found.quarantined) == (False, 6)
    assert (found.totals.counts["exact"], found.totals.counts["missing"], found.totals.partitions) == (2, 1, 3)
    assert found.hints[0] == (
        f"set aside in {aside}: 6 invalid rows (BEFORE 5, AFTER 1); the verdict is about the other rows only"
    )
    rows = quarantined(aside)
    # Two lines have the same wrong cell: both rows get the number of the first line.
    places = [(row["side"], row["file"], row["line"], row["column"], row["value"]) for row in rows]
    assert sorted(places) == [
        ("AFTER", after, "4", "offset", "-1"),
        ("BEFORE", before, "4", "offset", "NA"),
        ("BEFORE", before, "4", "offset", "NA"),
        ("BEFORE", before, "5", "log_end_offset", "x"),
        ("BEFORE", before, "6", "", "new,big,t,5"),
        ("BEFORE", before, "7", "topic", "t t"),
    ]
    expected = {(row["column"], row["value"]): row["expected"] for row in rows}
    assert expected["", "new,big,t,5"] == "a row of 6 cells"
    assert expected["topic", "t t"] == "a topic: letters, digits, '.', '_' and '-'"
    read = next(json.loads(row["row"]) for row in rows if row["value"] == "t t")
    assert (read["group"], read["partition"]) == ("a\nb", 6)


def test_bad_row_without_a_quarantine_folder_is_an_error(spark: SparkSession, csv_file: CsvFile) -> None:
    """Without a quarantine folder, reconcile fails with an error about the first bad row, and returns no verdict."""
    before, after = csv_file(HEADER, *GOOD), csv_file(HEADER, *GOOD, "new,,t,3,NA,1", name="after.csv")
    with pytest.raises(InvalidInput, match=r"after\.csv, line 5: offset is 'NA'"):
        run_reconcile(spark, [before], [after])


def test_good_rows_leave_an_empty_quarantine(spark: SparkSession, csv_file: CsvFile, tmp_path: Path) -> None:
    """Without bad rows, the number of bad rows is 0, and no hint is about them.

    The quarantine folder then has the file ``_SUCCESS`` and no rows.
    """
    before, after = csv_file(HEADER, *GOOD), csv_file(HEADER, *GOOD, name="after.csv")
    found = run_reconcile(spark, [before], [after], quarantine=tmp_path / "aside")
    assert (found.clean, found.quarantined, found.totals.partitions) == (True, 0, 3)
    assert [hint for hint in found.hints if "set aside" in hint] == []
    assert quarantined(tmp_path / "aside") == []
    assert (tmp_path / "aside" / "_SUCCESS").exists()


def test_bad_parquet_row_has_no_line_number(
    spark: SparkSession, csv_file: CsvFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad row has no line number in a Parquet file, or in a CSV file after `MAX_LINES` other invalid cells."""
    kinds = {"timestamp": pa.timestamp("us", tz="UTC"), "int": pa.int32(), "bigint": pa.int64()}
    schema = pa.schema([(field.name, kinds.get(field.dataType.simpleString(), pa.string())) for field in SNAPSHOT])
    row = {"group": "new", "topic": "t", "partition": 0, "offset": -3, "metadata": ""}
    after = str(tmp_path / "after.parquet")
    pq.write_table(pa.Table.from_pylist([row, row | {"offset": 10}], schema), after)
    aside = tmp_path / "aside"
    run_reconcile(spark, [csv_file(HEADER, *GOOD)], [after], quarantine=aside)
    [wrong] = quarantined(aside)
    assert (wrong["file"], wrong["line"], wrong["column"], wrong["value"]) == (after, "", "offset", "-3")
    monkeypatch.setattr(migrate_groups.spark.reconciliation.quarantine, "MAX_LINES", 1)
    before = csv_file(HEADER, *GOOD, "new,big,t,3,NA,1", "new,big,t,4,NO,1", name="bad.csv")
    run_reconcile(spark, [before], [csv_file(HEADER, *GOOD)], quarantine=tmp_path / "more")
    assert sorted(bool(row["line"]) for row in quarantined(tmp_path / "more")) == [False, True]


def test_existing_quarantine_folder_is_refused(spark: SparkSession, csv_file: CsvFile, tmp_path: Path) -> None:
    """An existing quarantine folder is refused before anything is read.

    If the job fails after it has written a new quarantine folder, the rows in the folder stay.
    """
    bad = csv_file(HEADER, "new,big,t,0,NA,1")
    with pytest.raises(InvalidInput, match="exists already"):
        run_reconcile(spark, [bad], [bad], quarantine=tmp_path)
    with pytest.raises(InvalidInput, match="BEFORE has no rows"):
        run_reconcile(spark, [bad], [csv_file(HEADER, *GOOD, name="after.csv")], quarantine=tmp_path / "aside")
    assert len(quarantined(tmp_path / "aside")) == 1
