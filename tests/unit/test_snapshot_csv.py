"""Snapshot files: a saved snapshot loads back unchanged. The error for a malformed file says what is wrong where."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_groups.errors import InvalidInput, MigrateGroupsError
from migrate_groups.files import split_toml
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.files.snapshots import reset_csv
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import COLUMNS, SnapshotTable, concatenate
from tests.support.rows import NOON, row
from tests.support.snapshot_corpus import BAD, GOOD

HEADER = ",".join(COLUMNS)
LINE = "c,2026-11-20T01:02:03Z,g,,Empty,classic,t,id,0,5,0,,0,9"


def load(text: str | bytes) -> SnapshotTable:
    return tables.load(Path("-"), stream=io.BytesIO(text if isinstance(text, bytes) else text.encode()))


def test_a_device_is_refused():
    """A device is refused as a snapshot file, because it may have no end."""
    with pytest.raises(InvalidInput, match="/dev/zero is a device, which may have no end: name a file, or - for stdin"):
        tables.load(Path("/dev/zero"))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.lists(
    st.sampled_from(["\0", "\\", "\\u00", "u", "00", "5c", "'", "=", "\n", '"', ","]), max_size=8
).map("".join)
NAME = TEXT.filter(bool)
OFFSET = st.integers(0, 2**63 - 1)
MOMENT = st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))
ROWS = st.lists(
    st.builds(
        Row,
        cluster_id=st.none() | NAME,
        taken_at=st.none() | MOMENT,
        group=st.none() | NAME,
        source_group=st.none() | NAME,
        group_state=st.none() | NAME,
        group_type=st.none() | NAME,
        topic=st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True),
        topic_id=st.none() | NAME,
        partition=st.integers(0, 2**31 - 1),
        offset=st.none() | OFFSET,
        leader_epoch=st.none() | st.integers(0, 2**31 - 1),
        metadata=TEXT,
        log_start_offset=st.none() | OFFSET,
        log_end_offset=st.none() | OFFSET,
        oldest_unconsumed_at=st.none() | MOMENT,
    ),
    max_size=5,
    unique_by=lambda each: (each.group, each.topic, each.partition),
)


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_file_of_the_corpus_is_refused(text):
    """Each bad file of tests/support/snapshot_corpus.py is refused.

    tests/spark/test_snapshots.py requires the same of the reader in Spark.
    """
    with pytest.raises(InvalidInput):
        load(text)


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_a_good_file_of_the_corpus_is_read(text):
    """Every row of each good file of tests/support/snapshot_corpus.py is loaded."""
    assert len(load(text)) == len(text.replace('"g\nh"', "g").splitlines()) - ("topic" in text)


def test_a_reset_file_may_have_a_header():
    """A CSV file for kafka-consumer-groups may begin with a header: topic, partition, offset."""
    assert load("topic,partition,offset\nt,0,1\n") == load("t,0,1\n")


@given(rows=ROWS)
def test_csv_and_parquet_load_back_what_was_saved(rows):
    """A snapshot saved as CSV or Parquet loads back equal.

    Names may contain quotes, NULs and newlines, and offsets may be as high as 2^63 - 1.
    """
    snapshot = SnapshotTable.of_rows(rows)
    assert load(tables.to_csv(snapshot)) == snapshot
    parquet = io.BytesIO()
    tables.write_parquet(snapshot, parquet)
    assert load(parquet.getvalue()) == snapshot


@given(data=st.binary(max_size=200) | st.text(alphabet='tg,0159"\n\r #-x', max_size=60).map(str.encode))
def test_any_bytes_load_or_are_invalid_input(data):
    """Arbitrary bytes are loaded as a snapshot, or refused with a one-line error and exit code 2."""
    try:
        load(data)
    except MigrateGroupsError as error:
        assert error.exit_code == 2
        assert "\n" not in str(error)


@given(data=st.binary(max_size=200) | st.text(alphabet='[]="target.group\nsource,{} ', max_size=80).map(str.encode))
def test_any_bytes_as_spec_load_or_are_invalid_input(data, tmp_path_factory):
    """Arbitrary bytes are loaded as the TOML spec of a split, or refused with exit code 2."""
    path = tmp_path_factory.mktemp("spec") / "split.toml"
    path.write_bytes(data)
    try:
        split_toml.load(path)
    except MigrateGroupsError as error:
        assert error.exit_code == 2


def test_nullable_columns_may_be_missing():
    """If a CSV snapshot lacks nullable columns, it is loaded, and their values are null."""
    (only,) = load("cluster_id,taken_at,group_state,group_type,topic,partition,metadata\nc,,,,t,3,note\n").rows()
    assert (only.topic, only.partition, only.metadata) == ("t", 3, "note")
    assert (only.group, only.offset, only.log_end_offset) == (None, None, None)


def test_columns_may_be_in_any_order():
    """The columns of a CSV snapshot may be in any order, because the header names them."""
    header, line = ",".join(reversed(COLUMNS)), ",".join(reversed(LINE.split(",")))
    assert load(f"{header}\n{line}\n") == load(f"{HEADER}\n{LINE}\n")


def test_names_that_look_like_numbers_stay_text():
    """Group 00123 and topic 007 keep their zeros when a CSV file is read; NA is a group name, not null."""
    text = f"{HEADER}\n{LINE.replace(',g,', ',00123,').replace(',t,', ',007,')}\n{LINE.replace(',g,', ',NA,')}\n"
    assert {(each.group, each.topic) for each in load(text).rows()} == {("00123", "007"), ("NA", "t")}


def test_an_empty_table_and_crlf_line_ends_are_read():
    """A CSV file with only a header is loaded as an empty snapshot. Lines may end in CRLF."""
    assert len(load(f"{HEADER}\n")) == 0
    assert load(f"{HEADER}\r\n{LINE}\r\n") == load(f"{HEADER}\n{LINE}\n")


@pytest.mark.parametrize(
    "name",
    [
        "=HYPERLINK(1)",
        "+1",
        "-1",
        "@sum",
        "\t=1",
        "'=1",
        "''-",
        '=1,"2"',
        "\uff1d1+1",
        "\uff0b1",
        "\uff0d1",
        "\uff20x",
        "'\uff1d1",
    ],
)
def test_a_saved_cell_that_looks_like_a_formula_gets_an_apostrophe(name):
    """If a spreadsheet would compute a cell as a formula, an apostrophe is saved before the cell.

    When the file is loaded, the apostrophe is removed again.
    """
    snapshot = SnapshotTable.of_rows([row(group=name, metadata=name, topic="-t"), row(group="'plain", topic="-t")])
    data = tables.to_csv(snapshot)
    cells = [cell for line in csv.reader(io.StringIO(data.decode(), newline="")) for cell in line]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20") and cell]
    assert "'" + name in cells
    assert load(data) == snapshot


def test_a_nul_in_metadata_is_escaped():
    """A NUL in metadata, which confluent-kafka appends, is escaped in CSV; text that looks like an escape is kept.

    Source: docs/kafka-behaviour.md#confluent-kafka
    """
    snapshot = SnapshotTable.of_rows([row(metadata="note\0"), row(partition=1, metadata=r"{'é': '\u00e9\u0000'}")])
    data = tables.to_csv(snapshot)
    assert b"\0" not in data
    assert rb"note\u0000" in data
    assert load(data) == snapshot


def test_a_cell_that_looks_like_a_formula_loads_unchanged():
    """If a file contains a cell such as ``=g``, the cell is loaded unchanged.

    A file for Kafka's own tool gets no apostrophe before such a cell.
    """
    (only,) = load(f"{HEADER}\n{LINE.replace(',g,', ',=g,')}\n").rows()
    assert only.group == "=g"
    (only,) = load("'=g,-t,0,5\n").rows()
    assert (only.group, only.topic) == ("'=g", "-t")
    assert reset_csv.to_bytes(SnapshotTable.of_rows([row(group="=g"), row(group="h")]))[0].startswith(b"=g,")


@pytest.mark.parametrize("name", ["a\nb", "a\0b"])
def test_a_group_that_kafkas_tool_cannot_read_is_not_exported(name):
    """If Kafka's own tool can't read a group's name, no file with several groups is written for the tool.

    A file of this group alone is written, without the group's name.
    """
    both = SnapshotTable.of_rows([row(group=name), row(group="plain")])
    with pytest.raises(InvalidInput, match="with a line feed or a NUL in the name") as raised:
        reset_csv.to_bytes(both)
    assert name in str(raised.value)
    assert reset_csv.to_bytes(both.keep({"group": [name]}))[0] == b"t,0,5\n"


def test_a_wrong_cell_after_an_added_apostrophe_has_its_own_line():
    """The error for a wrong cell names the right line, even if an earlier line contains an added apostrophe."""
    with pytest.raises(InvalidInput, match="line 3: partition is 'x'"):
        load(f"{HEADER}\n{LINE.replace(',t,', chr(44) + chr(39) + '-t,')}\n{LINE.replace(',0,5,', ',x,5,')}\n")


def changed(column: str, cell: str) -> str:
    cells = LINE.split(",")
    cells[COLUMNS.index(column)] = cell
    return f"{HEADER}\n{LINE.replace(',t,', ',a,')}\n{','.join(cells)}\n"


def test_quoted_cells_are_read():
    """A CSV file may have quoted and empty cells, doubled quotes, and commas within quotes, with LF and CRLF."""
    for cell in ('"old"', '"o""ld"', '"""old"""', '"o\\nl,d"', '"\'"'):
        name = cell[1:-1].replace('""', '"')
        assert name in load(changed("group", cell)).groups()
        assert name in load(f"{HEADER}\r\n{LINE.replace(',g,', f',{cell},')}\r\n").groups()
    assert load(changed("metadata", '""')).table["metadata"].to_pylist() == ["", ""]


@pytest.mark.parametrize("text", ['t,1,"1"2', '"o"ld,1,2', 'o"ld,1,2', '"t,1,2'])
def test_a_misquoted_reset_file_is_refused(text):
    """A file for Kafka's own tool, which has no header, is refused if a cell is wrongly quoted."""
    with pytest.raises(InvalidInput, match="line 2: a quote that is not CSV"):
        load(f"t,0,1\n{text}\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        (f"{HEADER}\n{LINE}", "does not end in a newline"),
        (f"\ufeff{HEADER}\n{LINE}\n", "byte order mark"),
        (f"{HEADER}\n{LINE}\n".encode("utf-16"), "is UTF-16; save it as UTF-8"),
        (f"{HEADER}\n{LINE}\n".encode() + b"\xff\n", "line 3: not UTF-8"),
        (f"{HEADER}\n{LINE[:-4]}\n", "line 2: 12 columns; expected 14"),
        (f"{HEADER}\n{LINE}\n\n", "line 3: 0 columns; expected 14"),
        (f"{HEADER},extra\n{LINE},1\n", "line 1: unknown column extra"),
        (f"{HEADER.replace('metadata', 'offset')}\n{LINE}\n", "line 1: repeated column offset"),
        (f"{HEADER},offset\n{LINE},5\n", "repeated column offset"),
        (f"{HEADER}\n{LINE}\n{LINE}\n", "several rows for t-0 of group 'g'"),
        (changed("offset", "-1"), "line 3: offset is '-1'; expected a whole number"),
        (changed("offset", "0x10"), "line 3: offset is '0x10'"),
        (changed("offset", " 12"), "line 3: offset is ' 12'"),
        (changed("offset", "1.2E+09"), "line 3: offset is '1.2E+09'"),
        (changed("offset", "5.0"), "line 3: offset is '5.0'"),
        (changed("offset", "NA"), "line 3: offset is 'NA'"),
        (changed("offset", "9223372036854775808"), "line 3: offset is '9223372036854775808'"),
        (changed("partition", ""), "line 3: partition is empty"),
        (changed("partition", "2147483648"), "line 3: partition is '2147483648'"),
        (changed("topic", ""), "line 3: topic is empty"),
        (changed("topic", "a b"), "line 3: topic is 'a b'"),
        (changed("taken_at", "2026-11-20 01:02:03"), "line 3: taken_at is"),
        (changed("taken_at", "2026-02-30T01:02:03Z"), "line 3: taken_at is"),
        (
            changed("taken_at", "0000-01-01T00:00:00Z"),
            "line 3: taken_at is '0000-01-01T00:00:00Z'; expected a UTC time",
        ),
        (changed("metadata", '"open'), "line 3: a quote that is not CSV"),
        (changed("offset", '"1"2'), "line 3: a quote that is not CSV"),
        (changed("group", '"o"ld'), "line 3: a quote that is not CSV"),
        (changed("group", 'o"ld'), "line 3: a quote that is not CSV"),
        (changed("group", '"old" '), "line 3: a quote that is not CSV"),
        (changed("group", ' "old"'), "line 3: a quote that is not CSV"),
        (changed("metadata", '"a""'), "line 3: a quote that is not CSV"),
    ],
)
def test_malformed_csv_is_refused_with_its_line(text, complaint):
    """If a CSV file has a malformed cell or column, the error names the line and what was expected there."""
    with pytest.raises(InvalidInput) as raised:
        load(text)
    assert complaint in str(raised.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("t,1\n", "2 columns; expected"),
        ("t,0,5\nt,1\n", "line 2: 2 columns; expected 3"),
        ("t,0,\n", "line 1: offset is empty"),
        ("t,0,5\nt,0,6\n", "several rows for t-0"),
        ("t,0,5\n\nt,1,5\n", "line 2: 0 columns"),
        ("t,0,5\n\n\n", "line 2: 0 columns"),
        ("t,0,5\ng,t,0,5\n", "line 2: 4 columns; expected 3"),
        ("# comment\nt,0,5\n", "line 1: 1 column;"),
        ("t;0;5\n", "is a CSV file with semicolons"),
        ("t, 0,5\n", "line 1: partition is ' 0'"),
        ("t,0,1.5\n", "line 1: offset is '1.5'"),
        ("t,0,-1\n", "line 1: offset is '-1'"),
        (",t,0,1\n", "line 1: group is empty"),
    ],
)
def test_reset_file_that_kafkas_tool_would_misread_is_refused(text, complaint):
    """In a file for Kafka's own tool, malformed and duplicate rows are refused.

    So is a truncated row, which Kafka's tool reads as offset 0.
    """
    with pytest.raises(InvalidInput) as raised:
        load(text)
    assert complaint in str(raised.value)


def test_rows_of_a_reset_file_have_no_source_group_cluster_or_time():
    """Rows of a file for Kafka's own tool are loaded without source group, cluster and time.

    An empty last line is ignored.
    """
    three, four = load("t,0,5\n\n"), load("g,t,0,5\r\ng,u,1,6\r\n")
    assert [(each.group, each.topic, each.partition, each.offset) for each in three.rows()] == [(None, "t", 0, 5)]
    assert [(each.group, each.topic, each.partition, each.offset) for each in four.rows()] == [
        ("g", "t", 0, 5),
        ("g", "u", 1, 6),
    ]
    assert {(each.source_group, each.cluster_id, each.taken_at) for each in four.rows()} == {(None, None, None)}


def test_a_first_row_with_a_number_is_no_header():
    """In a file for Kafka's own tool, a row of group ``partition`` and topic ``topic`` is data, not a header."""
    (row,) = load("partition,topic,0,5\n").rows()
    assert (row.group, row.topic, row.partition, row.offset) == ("partition", "topic", 0, 5)


def test_parquet_with_a_flipped_bit_is_refused_or_loads_equal():
    """A Parquet file with one flipped bit is refused or loads equal, whichever byte is damaged."""
    snapshot = SnapshotTable.of_rows([row(partition=number, offset=1000 + 7 * number) for number in range(20)])
    written = io.BytesIO()
    tables.write_parquet(snapshot, written)
    whole = written.getvalue()
    refused = 0
    for at in range(len(whole)):
        damaged = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        try:
            assert load(damaged) == snapshot, at
        except InvalidInput:
            refused += 1
    assert refused > len(whole) // 4


def test_truncated_or_foreign_parquet_is_refused(tmp_path):
    """A truncated Parquet file is refused.

    So is a Parquet file with missing or unknown columns, wrong types or negative offsets.
    """
    path = tmp_path / "s.parquet"
    tables.save(SnapshotTable.of_rows([row()]), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInput, match="not a complete Parquet file"):
        tables.load(path)
    good = pq.read_table(io.BytesIO(whole))
    for table, complaint in (
        (good.drop_columns(["offset"]), "missing column offset"),
        (good.append_column("more", pa.array([1])), "unknown column more"),
        (good.set_column(9, "offset", pa.array([5.0])), "offset has type double"),
        (good.set_column(9, "offset", pa.array([-1])), "row 1: offset is '-1'; expected a whole number"),
    ):
        pq.write_table(table, path)
        with pytest.raises(InvalidInput, match=complaint):
            tables.load(path)


MICROSECONDS = pa.timestamp("us", tz="UTC")
BEYOND = pa.array([NOON, None], MICROSECONDS).cast(pa.int64()).fill_null(2**62).cast(MICROSECONDS)


@pytest.mark.parametrize(
    ("column", "values", "complaint"),
    [
        ("group", ["g", ""], "group is ''; expected a name"),
        ("source_group", [None, ""], "source_group is ''; expected a name"),
        ("topic", ["t", "a b"], "topic is 'a b'; expected a topic"),
        ("topic", ["t", "x" * 250], "expected a topic"),
        ("topic", ["t", None], "topic is None; expected a topic"),
        ("metadata", ["", None], "metadata is None; expected a text of at most 32,767 bytes"),
        ("partition", pa.array([0, -1], pa.int32()), "partition is '-1'; expected a whole number"),
        ("offset", [None, -1], "offset is '-1'; expected a whole number"),
        ("log_start_offset", [0, -1], "log_start_offset is '-1'; expected a whole number"),
        ("log_end_offset", [0, -1], "log_end_offset is '-1'; expected a whole number"),
        ("leader_epoch", pa.array([0, -1], pa.int32()), "leader_epoch is '-1'; expected a whole number"),
        ("taken_at", BEYOND, "taken_at is"),
        ("taken_at", pa.array([NOON, datetime(1, 1, 1, tzinfo=UTC)], MICROSECONDS), None),
    ],
)
def test_parquet_accepts_the_values_that_csv_accepts(tmp_path, column, values, complaint):
    """A Parquet file may contain exactly the values that CSV may contain.

    The error for any other value names its row.
    """
    path = tmp_path / "s.parquet"
    tables.save(SnapshotTable.of_rows([row(), row(partition=1)]), path)
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.column_names.index(column), column, pa.array(values)), path)
    if complaint is None:
        assert load(tables.to_csv(tables.load(path))) == tables.load(path)
        return
    with pytest.raises(InvalidInput) as raised:
        tables.load(path)
    assert f"{path}, row 2: " in str(raised.value)
    assert complaint in str(raised.value)


def test_parquet_with_a_duplicate_column_or_invalid_text_is_refused(tmp_path):
    """A Parquet file with a duplicate column, or with text that is not UTF-8, is refused."""
    path = tmp_path / "s.parquet"
    tables.save(SnapshotTable.of_rows([row()]), path)
    good = pq.read_table(path)
    pq.write_table(good.append_column("offset", good["offset"]), path)
    with pytest.raises(InvalidInput, match="repeated column offset"):
        tables.load(path)
    text = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    pq.write_table(good.set_column(2, "group", text), path)
    with pytest.raises(InvalidInput, match=r"not a complete Parquet file: .*UTF8"):
        tables.load(path)


def test_time_lag_is_a_column_only_if_it_was_requested(tmp_path):
    """If time lags were requested, a snapshot has the column ``oldest_unconsumed_at``, even if all are null.

    Other snapshots do not have this column.
    """
    plain = SnapshotTable.of_rows([row()])
    for name in ("s.csv", "s.parquet"):
        tables.save(plain, tmp_path / name)
        assert tables.load(tmp_path / name).table.column_names == list(COLUMNS)
    for moments in ([NOON - timedelta(hours=3)], [None]):
        timed = plain.with_oldest_unconsumed(moments)
        for name in ("s.csv", "s.parquet"):
            tables.save(timed, tmp_path / name, replace=True)
            assert tables.load(tmp_path / name) == timed
    assert (tmp_path / "s.csv").read_text().splitlines()[0] == f"{HEADER},oldest_unconsumed_at"
    assert load(f"{HEADER},oldest_unconsumed_at\n{LINE},2026-11-20T01:02:03.5Z\n") != plain
    with pytest.raises(InvalidInput, match="oldest_unconsumed_at is 'yesterday'; expected a UTC time such as"):
        load(f"{HEADER},oldest_unconsumed_at\n{LINE},yesterday\n")


def test_time_lag_stays_with_its_row():
    """A row keeps its time lag if its group is renamed, or if rows without a time lag are added to its table."""
    timed = SnapshotTable.of_rows([row()]).with_oldest_unconsumed([NOON - timedelta(hours=3)])
    [moved] = timed.replace(group=pa.scalar("new")).rows()
    assert (moved.group, moved.time_lag) == ("new", timedelta(hours=3))
    history = concatenate([timed, SnapshotTable.of_rows([row(taken_at=NOON + timedelta(days=1))])])
    assert [each.time_lag for each in history.rows()] == [timedelta(hours=3), None]


def test_duplicates_in_parquet_are_refused(tmp_path):
    """If a Parquet file has two rows for one partition of a group, it is refused, and the error names the partition."""
    path = tmp_path / "s.parquet"
    tables.save(SnapshotTable.of_rows([row()]), path)
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table, table]), path)
    with pytest.raises(InvalidInput, match="several rows for t-0 of group 'g'"):
        tables.load(path)


def test_a_failed_write_leaves_no_file(tmp_path):
    """If a snapshot can't be saved, no file is left. An existing file is replaced only with ``replace=True``."""
    path = tmp_path / "s.csv"
    tables.save(SnapshotTable.of_rows([row()]), path)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="exists already"):
        tables.save(SnapshotTable.of_rows([]), path)
    with pytest.raises(InvalidInput, match=r"folder .* does not exist"):
        tables.save(SnapshotTable.of_rows([]), tmp_path / "missing" / "s.csv")
    assert path.read_bytes() == before
    tables.save(SnapshotTable.of_rows([row(), row(partition=1)]), path, replace=True)
    assert len(tables.load(path)) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["s.csv"]
