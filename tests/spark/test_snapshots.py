from __future__ import annotations

import csv
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import structs
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType
from pyspark.testing import assertDataFrameEqual, assertSchemaEqual

from migrate_groups.errors import InvalidInput
from migrate_groups.files.snapshots import any_format
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.spark.failures import readable_failures
from migrate_groups.spark.files import write_csv
from migrate_groups.spark.reconciliation import snapshots
from migrate_groups.spark.reconciliation.quarantine import set_aside
from migrate_groups.spark.reconciliation.snapshots import OLDEST_UNCONSUMED, SNAPSHOT, examined, read_snapshots
from migrate_groups.text import MISQUOTED
from tests.support.rows import row
from tests.support.snapshot_corpus import BAD, GOOD

HEADER = ",".join(SNAPSHOT.names)
FULL = 'c,2026-11-20T23:27:08.123456Z,00123,,Empty,classic,007,tid,2,41,5,"a ""b"",\nc",10,60'
FULL_ROW = Row(
    cluster_id="c",
    taken_at=datetime(2026, 11, 20, 23, 27, 8, 123456, tzinfo=UTC),
    group="00123",
    source_group=None,
    group_state="Empty",
    group_type="classic",
    topic="007",
    topic_id="tid",
    partition=2,
    offset=41,
    leader_epoch=5,
    metadata='a "b",\nc',
    log_start_offset=10,
    log_end_offset=60,
)
ARROW = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("taken_at", pa.timestamp("us", tz="UTC")),
        ("group", pa.string()),
        ("source_group", pa.string()),
        ("group_state", pa.string()),
        ("group_type", pa.string()),
        pa.field("topic", pa.string(), nullable=False),
        ("topic_id", pa.string()),
        pa.field("partition", pa.int32(), nullable=False),
        ("offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("metadata", pa.string()),
        ("log_start_offset", pa.int64()),
        ("log_end_offset", pa.int64()),
    ]
)
CsvFile = Callable[..., str]
LITERAL_NAMES = ["be[f]ore*.csv", "2026-11-20T23:27.csv", "be fore#?.csv", "bef%20öre.csv"]


def rows_of(spark: SparkSession, *paths: str) -> list[Row]:
    with readable_failures():
        return read_snapshots(spark, paths).collect()


def test_csv_row_is_read_unchanged(spark: SparkSession, csv_file: CsvFile) -> None:
    """In a CSV file, names of digits are read as text; microseconds and line ends in quoted cells are kept."""
    found = read_snapshots(spark, [csv_file(HEADER, FULL)])
    assertSchemaEqual(found.schema, SNAPSHOT)
    assertDataFrameEqual(found, spark.createDataFrame([FULL_ROW], SNAPSHOT))


def test_empty_cell_is_null_except_in_metadata(spark: SparkSession, csv_file: CsvFile) -> None:
    """An empty CSV cell is read as null, quoted or not; empty metadata is read as an empty string."""
    [row] = rows_of(spark, csv_file(HEADER, ',,"",,,,t,,0,,"",,,'))
    assert row.metadata == ""
    assert [name for name in SNAPSHOT.names if row[name] is not None] == ["topic", "partition", "metadata"]


def test_columns_are_matched_by_name(spark: SparkSession, csv_file: CsvFile) -> None:
    """The columns of a CSV file may be in any order, and nullable columns may be missing."""
    [row] = rows_of(spark, csv_file("offset,partition,group,topic", "7,1,g,t"))
    assert (row.group, row.topic, row.partition, row.offset, row.taken_at, row.metadata) == ("g", "t", 1, 7, None, "")


def test_file_of_kafkas_export_is_read(spark: SparkSession, csv_file: CsvFile) -> None:
    """A file of kafka-consumer-groups --export is read without a header."""
    [row] = rows_of(spark, csv_file("00123,t,0,5"))
    assert (row.group, row.topic, row.partition, row.offset) == ("00123", "t", 0, 5)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("topic,partition,ofset", "unknown column 'ofset'"),
        ("topic,partition,Offset", "unknown column 'Offset'"),
        ("topic,topic,partition", "'topic' appears twice"),
        ("topic,partition,", "unknown column ''"),
        ("topic,offset", "'partition' is missing"),
        ("group,partition", "'topic' is missing"),
        ("topic;partition", "unknown column 'topic;partition'"),
    ],
)
def test_wrong_columns_are_refused(spark: SparkSession, csv_file: CsvFile, header: str, message: str) -> None:
    """A CSV header with a wrong or missing column is refused. The error names the file and the column."""
    path = csv_file(header, "t,0,1")
    with pytest.raises(InvalidInput) as error:
        read_snapshots(spark, [path])
    assert path in str(error.value)
    assert message in str(error.value)


WRONG_CELLS = [
    ("taken_at", "2026-11-20 23:27:08", "a UTC time"),
    ("taken_at", "2026-13-20T23:27:08Z", "a UTC time"),
    ("taken_at", "2026-11-20T23:27:08.1234567Z", "a UTC time"),
    ("offset", "-1", "a whole number"),
    ("offset", "1.0", "a whole number"),
    ("offset", " 12", "a whole number"),
    ("offset", "NA", "a whole number"),
    ("offset", "9223372036854775808", "a whole number"),
    ("leader_epoch", "2147483648", "a whole number"),
    ("log_end_offset", "-5", "a whole number"),
    ("partition", "a", "a whole number"),
    ("partition", "", "a partition"),
    ("topic", "", "a topic"),
    ("topic", "a b", "a topic: letters, digits, '.', '_' and '-'"),
]
WRONG_LENGTHS = ["t", "t,1", "t,1,2,3"]
WRONG_IN_PARQUET = [("topic", None, "a topic"), ("partition", -1, "a whole number"), ("offset", -1, "a whole number")]
WRONG_IN_PARQUET += [("partition", None, "a partition")]


def csv_with(path: Path, **changes: str) -> str:
    """Write a CSV file with ``changes`` on line 4 only, and return its path.

    Line 1 is a header, lines 2 and 3 have the same valid row, and line 4 has this row with ``changes``.
    """
    good = FULL_ROW.asDict() | {"taken_at": "2026-11-20T23:27:08Z"}
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([good, good.values(), (good | changes).values()])
    return str(path)


def parquet_with(path: Path, column: str, value: object) -> str:
    """Write a Parquet file with one row that has ``value`` in ``column``, and return the path."""
    path.parent.mkdir(exist_ok=True)
    nullable = pa.schema([field.with_nullable(True) for field in ARROW])
    return parquet(path, pa.table(arrow_row(**{column: value}), schema=nullable))


def test_every_bad_row_is_quarantined_with_its_place_and_expectation(
    spark: SparkSession, csv_file: CsvFile, tmp_path: Path
) -> None:
    """The one bad row of each file is quarantined with file, line, column, value, and what was expected.

    The files have wrong cells and row lengths in CSV, wrong cells in Parquet, bytes that are not UTF-8, a missing
    offset in a file without a header, and names with special characters.
    """
    planted: dict[str, tuple[str, str, str, str]] = {}  # by file: line, column, value, and how the expectation begins
    for number, (column, value, expected) in enumerate(WRONG_CELLS):
        path = csv_with(tmp_path / "cells" / f"{number}.csv", **{column: value})
        planted[path] = "4", column, value, expected
    for number, row_ in enumerate(WRONG_LENGTHS):
        path = csv_file("topic,partition,offset", "t,0,1", row_, name=f"lengths/{number}.csv")
        planted[path] = "3", "", row_, "a row of 3 cells"
    for number, (column, cell, expected) in enumerate(WRONG_IN_PARQUET):
        path = parquet_with(tmp_path / "parquet" / f"{number}.parquet", column, cell)
        planted[path] = "", column, "" if cell is None else str(cell), expected
    names = [csv_file("topic,partition,offset", "t,0,x", name=name) for name in LITERAL_NAMES]
    planted |= dict.fromkeys(names, ("2", "offset", "x", "a whole number"))
    headless = csv_file("g,t,0,5", "g,t,1,", name="headless.csv")
    planted[headless] = "", "offset", "", "an offset"
    binary = csv_file("group,topic,partition", name="binary.csv")
    Path(binary).write_bytes(Path(binary).read_bytes() + b"g\xff,t,0\n")
    planted[binary] = "2", "group", "g\ufffd", "text in UTF-8"

    folders = [str(tmp_path / name) for name in ("cells", "lengths", "parquet")]
    rows = examined(spark, [*folders, *names, headless, binary])
    assert set_aside(rows, rows.limit(0), str(tmp_path / "aside")) == (len(planted), 0)
    found: dict[str, dict[str, str]] = {}
    for part in (tmp_path / "aside").glob("*.csv"):
        with part.open(encoding="utf-8", newline="") as file:
            found |= {cells["file"]: cells for cells in csv.DictReader(file)}
    assert {path: tuple(found[path][name] for name in ("line", "column", "value")) for path in found} == {
        path: (line, column, value) for path, (line, column, value, _) in planted.items()
    }
    expected_at = {path: (found[path]["expected"], expected) for path, (*_, expected) in planted.items()}
    assert {path: pair for path, pair in expected_at.items() if not pair[0].startswith(pair[1])} == {}


@pytest.mark.parametrize("kind", ["a cell", "a row of another length", "a cell in Parquet"])
def test_a_bad_row_stops_the_job(spark: SparkSession, csv_file: CsvFile, tmp_path: Path, kind: str) -> None:
    """If a snapshot has a bad row, the job fails with an error that names file, column, value, and what was expected.

    For CSV the error also has the line. The file's name is unchanged, even with special characters.
    """
    match kind:
        case "a cell":
            path = csv_with(tmp_path / "be[f]ore%20ö*.csv", topic="")
            expected = f"{path}, line 4: topic is empty, expected a topic"
        case "a row of another length":
            path = csv_file("topic,partition,offset", "t,0,1", "t,1")
            expected = f"{path}, line 3: expected a row of 3 cells"
        case _:
            path = parquet_with(tmp_path / "s.parquet", "offset", -1)
            expected = f"{path}: offset is '-1', expected a whole number from 0 to {2**63 - 1}"
    with pytest.raises(InvalidInput) as error:
        rows_of(spark, path)
    assert str(error.value) == expected


def test_bad_cell_in_an_unused_column_stops_the_job(spark: SparkSession, csv_file: CsvFile) -> None:
    """A bad cell stops a job even if the job uses other columns or rows."""
    path = csv_file("topic,partition,leader_epoch", "t,0,x")
    with pytest.raises(InvalidInput, match="leader_epoch is 'x'"), readable_failures():
        read_snapshots(spark, [path]).where("topic <> 't'").groupBy("topic").count().collect()


def test_row_of_wrong_length_stops_a_job_that_selects_few_columns(spark: SparkSession, csv_file: CsvFile) -> None:
    """A CSV row with too few cells stops even a job that selects few columns.

    Spark's own reader would not count the cells.
    """
    path = csv_file("topic,partition,cluster_id,group_state,metadata", "t,0,c,Empty,", "t,1")
    with pytest.raises(InvalidInput, match="line 3: expected a row of 5 cells"), readable_failures():
        read_snapshots(spark, [path]).select("topic").collect()


@pytest.mark.parametrize("row", ['t,0,"1', 't,1,"1"2', '"o"ld,1,2', 'o"ld,1,2', '"t" ,1,2'])
def test_wrong_quote_is_refused_with_its_line(spark: SparkSession, csv_file: CsvFile, row: str) -> None:
    """A misplaced quotation mark in a CSV file is refused, because Spark would misread a name or the rest of the file.

    The error has the line number.
    """
    path = csv_file("topic,partition,offset", "t,5,1", row, "t,6,2")
    with pytest.raises(InvalidInput) as refused:
        read_snapshots(spark, [path])
    assert str(refused.value).startswith(f"{path}, line 3: a quote that is not CSV: a cell is quoted whole")


def test_wrong_quote_in_a_remote_file_stops_the_job(
    spark: SparkSession, csv_file: CsvFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misplaced quotation mark in a CSV file that is not local stops the job. The error has no line number."""
    monkeypatch.setattr(snapshots, "local_file", lambda uri: None)
    path = csv_file("group,topic,partition,offset", '"o"ld,t,1,2')
    with pytest.raises(InvalidInput) as refused:
        rows_of(spark, path)
    assert str(refused.value) == f"{path}: {MISQUOTED}"


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("before.csv", None, r"before\.csv: no such file or folder"),
        # The last number may lack digits.
        ("before.csv", b"topic,partition,offset\nt,0,123", "cut short"),
        # As by the reader without Spark, `files.snapshots`.
        ("before.csv", b"\xef\xbb\xbftopic,partition\nt,0\n", r"before\.csv: it starts with a byte order mark"),
        # The extension decides the format.
        *((name, b"topic,partition\n", r"pass \.csv files or \.parquet files") for name in ("b.txt", "b", "b.json")),
        # Spark takes the name for hidden, and would leave out the file's rows.
        ("_before.csv", b"topic,partition\nt,0\n", "has no file to read"),
    ],
)
def test_a_file_that_is_no_snapshot_is_refused(
    spark: SparkSession, tmp_path: Path, name: str, content: bytes | None, complaint: str
) -> None:
    """A missing, truncated or hidden file is refused, and one with a byte order mark or another extension."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=complaint):
        read_snapshots(spark, [str(tmp_path / name)])


def test_an_empty_file_is_refused(spark: SparkSession, csv_file: CsvFile) -> None:
    """An empty CSV file is refused, even if it is beside another file in a folder."""
    empty = csv_file("topic,partition", "t,0", name="days/1.csv").replace("1.csv", "2.csv")
    Path(empty).touch()
    with pytest.raises(InvalidInput, match=f"{empty}: 0 bytes long"):
        read_snapshots(spark, [str(Path(empty).parent)])
    with pytest.raises(InvalidInput, match=r"snapshot\.csv: 0 bytes long"):
        read_snapshots(spark, [csv_file()])


@pytest.mark.parametrize(
    ("pattern", "hidden"),
    [("", "_b.csv"), ("", ".b.csv"), ("", "_old/b.csv"), ("*", "_b.csv"), ("*", "old/.b.csv"), ("{a,_b}*", "_b.csv")],
)
def test_hidden_snapshot_in_a_folder_or_glob_is_refused(
    spark: SparkSession, csv_file: CsvFile, tmp_path: Path, pattern: str, hidden: str
) -> None:
    """If a folder or glob contains a snapshot whose name Spark takes for hidden, the error names this file.

    Spark's own marker files are ignored.
    """
    csv_file("topic,partition", "t,0", name="days/a.csv")
    for name in ("_SUCCESS", "_committed_1", ".a.csv.crc"):
        (tmp_path / "days" / name).touch()
    path = str(tmp_path / "days" / pattern)
    assert len(rows_of(spark, path)) == 1
    left_out = csv_file("topic,partition", "t,1", name=f"days/{hidden}")
    with pytest.raises(InvalidInput, match="Spark skips names") as error:
        read_snapshots(spark, [path])
    assert str(error.value).startswith(f"{left_out}: ")


def test_other_special_characters_in_a_name_are_literal(spark: SparkSession, csv_file: CsvFile) -> None:
    """Characters of a glob or a URI in the name of an existing file are taken literally."""
    paths = [csv_file("topic,partition", f"t,{number}", name=name) for number, name in enumerate(LITERAL_NAMES)]
    assert sorted(row.partition for row in rows_of(spark, *paths)) == [*range(len(paths))]


def test_a_folder_or_a_glob_is_read_as_one_table(spark: SparkSession, csv_file: CsvFile, tmp_path: Path) -> None:
    """The CSV files of a folder and its subfolders are read as one table.

    Files that are passed separately may have different columns.
    """
    csv_file("topic,partition", "t,0", name="days/1.csv")
    csv_file("topic,partition", "t,1", name="days/day=2/2.csv")
    other = csv_file("partition,topic,offset", "2,t,5", name="other.csv")
    assert {row.partition for row in rows_of(spark, str(tmp_path / "days"), other)} == {0, 1, 2}
    assert {row.partition for row in rows_of(spark, str(tmp_path / "days" / "*.csv"))} == {0}


def test_a_folder_with_different_headers_is_refused(spark: SparkSession, csv_file: CsvFile, tmp_path: Path) -> None:
    """A folder of CSV files with different headers is refused, because Spark assigns columns by position."""
    csv_file("topic,partition,offset", "t,1,2", name="days/1.csv")
    csv_file("topic,offset,partition", "t,2,1", name="days/2.csv")
    with pytest.raises(InvalidInput, match="header differs"):
        rows_of(spark, str(tmp_path / "days"))


def arrow_row(**changes: object) -> dict[str, list[object]]:
    return {name: [value] for name, value in (FULL_ROW.asDict() | changes).items()}


def parquet(path: Path, table: pa.Table) -> str:
    pq.write_table(table, path)
    return str(path)


def test_parquet_and_csv_rows_are_equal(spark: SparkSession, tmp_path: Path, csv_file: CsvFile) -> None:
    """A row in a Parquet file from pyarrow is read like the same row in a CSV."""
    table = pa.table(arrow_row(), schema=ARROW)
    found = read_snapshots(spark, [parquet(tmp_path / "s.parquet", table)])
    assertSchemaEqual(found.schema, SNAPSHOT)
    assertDataFrameEqual(found, read_snapshots(spark, [csv_file(HEADER, FULL)]))


def test_time_lag_column_is_optional(spark: SparkSession, tmp_path: Path, csv_file: CsvFile) -> None:
    """Files with and without the time lag column, oldest_unconsumed_at, are read as one table.

    An invalid cell of the column stops the read.
    """
    moment = datetime(2026, 11, 20, 20, 0, 0, 5000, tzinfo=UTC)
    with_time = StructType([*SNAPSHOT, OLDEST_UNCONSUMED])
    expected = spark.createDataFrame([(*FULL_ROW, moment)], with_time)
    in_csv = csv_file(f"{HEADER},oldest_unconsumed_at", f"{FULL},2026-11-20T20:00:00.005Z")
    assertDataFrameEqual(read_snapshots(spark, [in_csv]), expected)
    column = pa.array([moment], pa.timestamp("us", tz="UTC"))
    table = pa.table(arrow_row(), schema=ARROW).append_column("oldest_unconsumed_at", column)
    found = read_snapshots(spark, [parquet(tmp_path / "s.parquet", table), csv_file(HEADER, FULL, name="plain.csv")])
    assertSchemaEqual(found.schema, with_time)
    assert sorted(row.oldest_unconsumed_at is None for row in found.collect()) == [False, True]
    with pytest.raises(InvalidInput, match="oldest_unconsumed_at is 'soon', expected a UTC time"):
        rows_of(spark, csv_file(f"{HEADER},oldest_unconsumed_at", f"{FULL},soon", name="bad.csv"))


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        ("partition", pa.int64(), "'partition' is bigint, expected int"),
        ("taken_at", pa.timestamp("us"), "'taken_at' is timestamp_ntz, expected timestamp"),
        ("group", pa.int32(), "'group' is int, expected string"),
    ],
)
def test_a_parquet_column_of_another_type_is_refused(
    spark: SparkSession, tmp_path: Path, column: str, kind: pa.DataType, message: str
) -> None:
    """A Parquet column whose type is not the expected one is refused. It is not cast."""
    schema = ARROW.set(ARROW.get_field_index(column), pa.field(column, kind))
    values = arrow_row(group=123) if column == "group" else arrow_row()
    with pytest.raises(InvalidInput, match=message):
        read_snapshots(spark, [parquet(tmp_path / "s.parquet", pa.table(values, schema=schema))])


def test_parquet_columns_that_are_missing_or_unknown_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Missing and unknown Parquet columns are refused, because Spark would fill or ignore them."""
    table = pa.table(arrow_row(), schema=ARROW)
    with pytest.raises(InvalidInput, match="'offset' is missing, expected bigint"):
        read_snapshots(spark, [parquet(tmp_path / "a.parquet", table.drop_columns(["offset"]))])
    with pytest.raises(InvalidInput, match="'extra' is string, expected no column of this name"):
        read_snapshots(spark, [parquet(tmp_path / "b.parquet", table.append_column("extra", [["x"]]))])


def test_each_parquet_file_of_a_folder_has_all_columns(spark: SparkSession, tmp_path: Path) -> None:
    """The columns of every Parquet file in a folder are checked, not only those of the first."""
    table = pa.table(arrow_row(), schema=ARROW)
    (tmp_path / "days").mkdir()
    parquet(tmp_path / "days" / "a [1].parquet", table)
    timed = table.append_column("oldest_unconsumed_at", table["taken_at"])
    for bad in (table.drop_columns(["log_start_offset"]), timed):
        blamed, lacks = (
            parquet(tmp_path / "days" / "b é%20.parquet", bad),
            "'log_start_offset' is missing, expected bigint",
        )
        if bad is timed:
            blamed, lacks = f"{tmp_path}/days/a [1].parquet", "'oldest_unconsumed_at' is missing, expected timestamp"
        with pytest.raises(InvalidInput) as error:
            read_snapshots(spark, [str(tmp_path / "days")])
        assert str(error.value) == f"{blamed}: the column {lacks}"


def test_an_empty_topic_id_is_not_known(spark: SparkSession, tmp_path: Path) -> None:
    """An empty topic id in a Parquet file is read as null, so that it equals no other topic id."""
    (row,) = read_snapshots(spark, [parquet_with(tmp_path / "s.parquet", "topic_id", "")]).collect()
    assert row.topic_id is None


def test_a_damaged_parquet_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """The error for a damaged Parquet file is one line that names the file, without a Java stack trace."""
    path = tmp_path / "s.parquet"
    parquet(path, pa.table(arrow_row(), schema=ARROW))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InvalidInput) as error:
        read_snapshots(spark, [str(path)])
    assert str(error.value).startswith(f"{path}: can't be read: ")
    assert "\n" not in str(error.value)


def test_parquet_page_with_a_wrong_checksum_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A file with a flipped bit in an offset is refused, because the checksum of the Parquet page is wrong."""
    path, offset = tmp_path / "s.parquet", 0x0102030405060708
    tables.save(SnapshotTable.of_rows([row(offset=offset)]), path)
    whole = bytearray(path.read_bytes())
    whole[whole.index(offset.to_bytes(8, "little"))] ^= 1
    path.write_bytes(whole)
    with pytest.raises(InvalidInput) as error:
        rows_of(spark, str(path))
    assert str(error.value).startswith(f"{path}: can't be read: ")


def test_several_files_are_one_table(spark: SparkSession, tmp_path: Path, csv_file: CsvFile) -> None:
    """CSV and Parquet files are read as one table if the path of each file is given."""
    path = parquet(tmp_path / "s.parquet", pa.table(arrow_row(), schema=ARROW))
    found: DataFrame = read_snapshots(spark, [path, csv_file("topic,partition", "t,0")])
    assert {row.topic for row in found.collect()} == {"007", "t"}


def test_metadata_that_our_writer_saved_is_read_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads metadata from CSV as `files.snapshots` saved it: NULs, quotes, backslashes, a leading apostrophe."""
    pieces = ["\0", "\\", "\\u00", "5cu00", "00", "'", "=", '"', "x"]
    texts = ["".join(each) for each in product(pieces, repeat=3)]
    ours = [row(partition=number, metadata=text) for number, text in enumerate(texts)]
    path = tmp_path / "s.csv"
    tables.save(SnapshotTable.of_rows(ours), path)
    found = {each.partition: each.metadata for each in rows_of(spark, str(path))}
    assert [found[number] for number in range(len(texts))] == texts


def test_apostrophe_against_spreadsheet_formulas_is_removed(
    spark: SparkSession, csv_file: CsvFile, tmp_path: Path
) -> None:
    """The CSV cell ``'=1`` is read as the group ``=1``: the apostrophe only protects it from spreadsheets.

    In output tables the cell has the apostrophe again.
    """
    names = {"'=1": "=1", "''+x": "'+x", "'plain": "'plain", "-bare": "-bare", "'\uff1d1": "\uff1d1"}
    file = csv_file(HEADER, *(f"c,,{cell},,,,'-t,,{number},5,,,0,9" for number, cell in enumerate(names)))
    read = read_snapshots(spark, [file])
    assert {(row.group, row.topic) for row in read.collect()} == {(name, "-t") for name in names.values()}
    headless = csv_file("'=g,t,0,5", name="export.csv")
    assert [row.group for row in rows_of(spark, headless)] == ["'=g"]
    write_csv(read.select("group").coalesce(1), str(tmp_path / "out"))
    (part,) = (tmp_path / "out").glob("*.csv")
    assert sorted(part.read_text().split()) == sorted(["group", "'=1", "''+x", "'plain", "'-bare", "'\uff1d1"])


def test_both_readers_accept_and_refuse_the_same_files(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's reader reads the same rows as `files.snapshots` from every good CSV file, and refuses every bad one."""
    for name, text in (GOOD | BAD).items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8", newline="")
    for name in GOOD:
        path = tmp_path / f"{name}.csv"
        found = read_snapshots(spark, [str(path)]).select(*SNAPSHOT.names).collect()
        ours = [structs.astuple(row)[: len(SNAPSHOT.names)] for row in any_format.load(path).rows()]
        theirs = [(*row[:1], row[1] and row[1].astimezone(UTC), *row[2:]) for row in found]
        assert sorted(theirs, key=str) == sorted(ours, key=str), name
    refused = set()
    for name in BAD:
        with suppress(InvalidInput), readable_failures():
            read_snapshots(spark, [str(tmp_path / f"{name}.csv")]).collect()
            continue
        refused.add(name)
    assert refused == set(BAD)
