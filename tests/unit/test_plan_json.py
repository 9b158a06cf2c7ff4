"""Plans and receipts as files: a saved file is loaded unchanged, and an edited or foreign file is refused."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import unicodedata
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate_groups.arguments import LONGEST
from migrate_groups.errors import InvalidInput
from migrate_groups.files.runs import plan_json, receipt_json
from migrate_groups.mirrors.position import Counts, Method, Position, Status
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.change import Change, Outcome, sorted_changes
from migrate_groups.planning.check import Check, Verdict
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.planning.translation import TranslatedOffset, Translation
from migrate_groups.planning.written_by import WrittenBy
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.rows import NOON, row

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAME = TEXT.filter(bool)
TOPIC = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)
INT32, INT64 = st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)
SECONDS = st.integers(0, 1000) | st.floats(0, LONGEST)
OPTIONS = st.builds(
    WriteOptions,
    **{field.name: ... for field in fields(WriteOptions)}
    | {"settle": SECONDS, "guard": SECONDS, "accept_reread": st.integers(0, 1000)}
    | {"trust_copy": st.lists(TOPIC, max_size=3).map(tuple)},
)
COMMITTED = st.none() | st.builds(CommittedOffset, offset=INT64, leader_epoch=st.none() | INT32, metadata=TEXT)
SAVED = {
    "group": NAME,
    "topic": TOPIC,
    "partition": INT32,
    "before": COMMITTED,
    "after": COMMITTED,
}
# Only the committed offset of a source group is saved.
OF_SOURCE = {"source_group": NAME, "wanted": COMMITTED}
CHANGE = st.builds(Change, source_group=st.none(), **SAVED) | st.builds(Change, **OF_SOURCE, **SAVED)
OUTCOME = {"outcome": st.sampled_from(Outcome), "attempts": INT32, "error": TEXT}
FINGERPRINT = st.none() | st.binary(min_size=16, max_size=16)
POSITION = st.builds(
    Position,
    status=st.sampled_from(Status),
    offset=st.none() | INT64,
    reread=INT64,
    counts=st.builds(Counts, again=st.none(), skipped=st.none(), copies=INT64, aborted=INT64),
    reason=TEXT,
    method=st.sampled_from(Method),
    compared=INT64,
    as_of=st.none() | INT64,
    before=FINGERPRINT,
    after=FINGERPRINT,
)
TRANSLATED = st.builds(
    lambda topic, number, copy, **known: TranslatedOffset(
        source=TopicPartition(topic, number), copy=TopicPartition(copy, number) if copy else None, **known
    ),
    topic=TOPIC,
    number=INT32,
    copy=st.none() | TOPIC,
    offset=INT64,
    committed=st.none() | INT64,
    position=POSITION,
)
TRANSLATION = st.none() | st.builds(
    Translation, cluster_id=TEXT, group=NAME, partitions=st.lists(TRANSLATED, max_size=3).map(tuple)
)
PLAN = st.builds(
    Plan,
    cluster_id=TEXT,
    options=OPTIONS,
    changes=st.lists(CHANGE, max_size=4, unique_by=lambda each: each.order).map(sorted_changes),
    checks=st.lists(st.builds(Check, name=NAME, verdict=st.sampled_from(Verdict), reason=TEXT), max_size=3).map(tuple),
    translation=TRANSLATION,
)
MOMENT = st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))
ROWS = st.lists(
    st.builds(
        Row,
        cluster_id=st.none() | NAME,
        taken_at=st.none() | MOMENT,
        group=NAME,
        source_group=st.none() | NAME,
        group_state=st.none() | NAME,
        group_type=st.none() | NAME,
        topic=TOPIC,
        topic_id=st.none() | NAME,
        partition=INT32,
        offset=st.none() | INT64,
        leader_epoch=st.none() | INT32,
        oldest_unconsumed_at=st.none(),  # because a plan does not save it
        metadata=TEXT,
        log_start_offset=st.none() | INT64,
        log_end_offset=st.none() | INT64,
    ),
    max_size=4,
    unique_by=lambda each: (each.group, each.topic, each.partition),
)
WRITTEN = st.builds(Change, source_group=st.none(), **SAVED, **OUTCOME) | st.builds(
    Change, **OF_SOURCE, **SAVED, **OUTCOME
)
EXECUTION = st.builds(
    Execution,
    verb=st.sampled_from(Verb),
    cluster_id=TEXT,
    options=OPTIONS,
    intent=TEXT,
    content=TEXT,
    started_at=MOMENT,
    changes=st.lists(WRITTEN, max_size=4).map(tuple),
    topic_ids=st.dictionaries(TOPIC, NAME, max_size=2),
    translation=TRANSLATION,
    moved=st.lists(TEXT, max_size=2).map(tuple),
    not_watched=st.lists(TEXT, max_size=2).map(tuple),
    remarks=st.lists(TEXT, max_size=2).map(tuple),
    by=st.builds(WrittenBy, operator=TEXT, version=TEXT, reference=TEXT),
)
RECEIPT = st.lists(EXECUTION, max_size=3).map(
    lambda executions: Receipt(
        tuple(replace(execution, number=number) for number, execution in enumerate(executions, start=1))
    )
)


@given(plan=PLAN, rows=ROWS)
def test_a_plan_loads_back_as_it_was_saved(plan, rows):
    """A saved plan, with any names and offsets up to 2^63 - 1, loads as an equal plan with the same hashes.

    Saved again, the plan gives the same bytes.
    """
    saved = plan_json.to_bytes(plan, SnapshotTable.of_rows(rows).rows())
    loaded = plan_json.read(saved, "plan.json")
    assert (loaded.plan, loaded.rows) == (plan, SnapshotTable.of_rows(rows))
    assert (loaded.plan.intent, loaded.plan.content) == (plan.intent, plan.content)
    assert plan_json.to_bytes(loaded.plan, loaded.rows.rows()) == saved


@given(plan=PLAN)
@settings(max_examples=5)
def test_a_plan_keeps_no_time_lag(plan):
    """A saved plan does not contain the time lags of its snapshot."""
    rows = SnapshotTable.of_rows([row(group="new")])
    timed = rows.with_oldest_unconsumed([NOON])
    assert plan_json.to_bytes(plan, timed.rows()) == plan_json.to_bytes(plan, rows.rows())


@given(receipt=RECEIPT)
def test_a_receipt_loads_back_as_it_was_saved(receipt):
    """A saved receipt loads as an equal receipt, with its options and the offsets from before the write."""
    assert receipt_json.read(receipt_json.to_bytes(receipt), "r.json") == receipt


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("read", [plan_json.read, receipt_json.read])
@given(data=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_load_or_are_invalid_input(read, data):
    """Arbitrary bytes are either loaded as a plan or receipt, or refused with a one-line error and exit code 2."""
    try:
        read(data, "x.json")
    except InvalidInput as error:
        assert error.exit_code == 2
        assert "\n" not in str(error)


@pytest.mark.parametrize("read", [plan_json.read, receipt_json.read])
@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b'{"schema":"\xff"}', b'{"a":' + b"[" * 100_000, b"{" * 100_000, b'{"\x00":1}', b"\xef\xbb\xbf{}"],
    ids=["empty", "not text", "not UTF-8", "deep list", "deep object", "control character", "byte order mark"],
)
def test_invalid_json_is_invalid_input(read, data):
    """A file that is not valid JSON is refused as an invalid plan or receipt."""
    with pytest.raises(InvalidInput, match=r"x\.json is not a valid (plan|receipt): "):
        read(data, "x.json")


def a_plan() -> tuple[Plan, SnapshotTable]:
    change = Change(
        source_group="old", group="new", topic="t", partition=0, before=None, after=CommittedOffset(offset=5)
    )
    check = Check(name="stopped", verdict=Verdict.PASS, reason="nobody is there")
    plan = Plan(cluster_id="in-memory", options=WriteOptions(), changes=(change,), checks=(check,))
    return plan, SnapshotTable.of_rows([row(group="new", source_group="old")])


def plan_text() -> str:
    plan, rows = a_plan()
    return plan_json.to_bytes(plan, rows.rows()).decode()


def receipt_text() -> str:
    return receipt_json.to_bytes(Receipt((Execution.of(a_plan()[0], NOON),))).decode()


READ = {plan_text: plan_json.read, receipt_text: receipt_json.read}
VERSIONS = {plan_text: plan_json.SCHEMA_VERSION, receipt_text: receipt_json.SCHEMA_VERSION}


def sealed(text: str) -> bytes:
    """Return the document with its checksum recomputed, as a forger could."""
    found = json.loads(text)["checksum"]
    empty = text.replace(found, "", 1)
    return text.replace(found, hashlib.sha256(empty.encode()).hexdigest(), 1).encode()


@pytest.mark.parametrize("text", READ)
@pytest.mark.parametrize(
    ("old", "new"),
    [('"offset":5', '"offset":6'), ('"group":"new"', '"group":"other"'), ('"settle":10.0', '"settle":0.0')],
)
def test_an_edited_file_is_refused(text, old, new):
    """If an offset, a group or an option was changed by hand, the plan or receipt is refused as edited."""
    assert old in text()
    with pytest.raises(InvalidInput, match=r"x\.json was edited after it was written"):
        READ[text](text().replace(old, new).encode(), "x.json")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"taken_at":"2026-11-20T12', '"taken_at":"2026-11-20T11'),
        ('"reason":"nobody is there"', '"reason":"trust me"'),
        ('"verdict": "pass"', '"verdict": "warn"'),
    ],
)
def test_an_edited_row_or_check_is_refused(old, new):
    """If a row or a check of a plan file was changed, the file is refused as edited.

    The checksum of the file covers these parts, although the plan's hashes do not.
    """
    assert old in plan_text()
    with pytest.raises(InvalidInput, match="was edited"):
        plan_json.read(plan_text().replace(old, new).encode(), "x.json")


@pytest.mark.parametrize("text", READ)
@pytest.mark.parametrize("rewritten", ["10", "1e1", "10.00"])
def test_another_spelling_of_a_number_is_no_edit(text, rewritten):
    """If a tool such as jq has rewritten the number 10.0 as 10, the plan or receipt is loaded as before."""
    found = text().replace('"settle":10.0', f'"settle":{rewritten}')
    assert rewritten in found
    assert READ[text](found.encode(), "x.json") == READ[text](text().encode(), "x.json")


@pytest.mark.parametrize("text", READ)
@pytest.mark.parametrize(
    ("key", "value", "other"),
    [
        ("schema", '"migrate-groups/', '"other"'),
        ("intent", '"', '"x"'),
        ("settle", "10.0", "0.0"),
        ("offset", "5", "6"),
    ],
)
def test_a_duplicate_key_is_refused(text, key, value, other):
    """A plan or receipt with a duplicate key is refused, whatever its line ends.

    A reviewer might read the value that the loader ignores.
    """
    found = re.search(rf'"{key}": ?{value}', text())
    assert found
    doubled = text().replace(found[0], f'"{key}":{other},{found[0]}', 1)
    for layout in (doubled, doubled.replace("\n", "\r\n")):
        with pytest.raises(InvalidInput, match=rf"x\.json was edited .*: repeated key {key};"):
            READ[text](layout.encode(), "x.json")


@pytest.mark.parametrize("field", ["intent", "content", "verdict"])
def test_hashes_and_verdict_must_match_the_content(field):
    """A plan whose hash or verdict does not fit its content is refused, even if the file's checksum is correct."""
    text = plan_text()
    value = json.loads(text)[field]
    other = "warn" if field == "verdict" else value[::-1]
    with pytest.raises(InvalidInput, match="its hashes differ"):
        plan_json.read(sealed(text.replace(f'"{field}": "{value}"', f'"{field}": "{other}"')), "x.json")


@pytest.mark.parametrize("text", READ)
@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"offset":5', '"offset":-1', ">= 0"),
        ('"offset":5', '"offset":5.0', "Expected `int`"),
        ('"offset":5', '"offset":"5"', "Expected `int"),
        ('"offset":5', '"offset":9223372036854775808', "9223372036854775807"),
        ('"partition":0', '"partition":true', "Expected `int`"),
        ('"group":"new"', '"group":""', "length >= 1"),
        ('"group":"new"', '"grup":"new"', "unknown field `grup`"),
        ('"topic":"t",', "", "missing required field `topic`"),
        ('"topic":"t"', '"topic":"a/b"', "matching regex"),
        ('"metadata":""', '"metadata":"","x":1', "unknown field `x`"),
        ('"action":"create"', '"action":"conjure"', "Invalid enum value 'conjure'"),
        ('"restore":false', '"restore":0', "Expected `bool`, got `int` - at `$."),
        ('"restore":false', '"reset":false', "unknown field `reset` - at `$."),
        ('"settle":10.0', '"settle":-1.0', "settle is -1"),
        ('"second_client":"auto"', '"second_client":"me"', "Invalid enum value 'me'"),
        ('"schema": "migrate-groups/', '"schema": "other/', "is 'other/"),
    ],
)
def test_a_malformed_document_is_refused(text, old, new, complaint):
    """A plan or receipt with a wrong type, value, field or version is refused, even if its checksum is correct.

    The error is one line and names the fault.
    """
    assert old in text()
    with pytest.raises(InvalidInput) as raised:
        READ[text](sealed(text().replace(old, new)), "x.json")
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("text", "version"), VERSIONS.items())
@pytest.mark.parametrize("other", ["newer", "older", "text"])
def test_a_document_of_another_version_is_refused(text, version, other):
    """A plan or receipt of a newer or older version is refused with what to do, and one whose version is no number."""
    value, complaint = {
        "newer": (version + 1, "install the version that wrote the file"),
        "older": (1, f"schema version 1, but this version of migrate-groups reads {version}"),
        "text": (f'"{version}"', "Expected `int`"),
    }[other]
    test_a_malformed_document_is_refused(text, f'"schema_version": {version}', f'"schema_version": {value}', complaint)


@pytest.mark.parametrize("text", READ)
def test_a_truncated_file_is_refused(text):
    """A truncated plan or receipt is refused as not valid."""
    whole = text().encode()
    for end in range(0, len(whole) - 2, 37):
        with pytest.raises(InvalidInput, match=r"^x\.json is not a valid (plan|receipt): "):
            READ[text](whole[:end], "x.json")


@pytest.mark.parametrize("text", READ)
def test_a_change_of_white_space_is_accepted(text):
    """A plan or receipt with other line ends or another JSON layout is accepted, and not taken for edited."""
    expected = READ[text](text().encode(), "x.json")
    for same in (text().replace("\n", "\r\n"), json.dumps(json.loads(text()), indent=4)):
        assert READ[text](same.encode(), "x.json") == expected


def test_a_duplicate_partition_is_refused():
    """A plan with two rows for one partition of a group is refused, even if the file's checksum is correct."""
    text = plan_text()
    (line,) = [line for line in text.splitlines() if '"taken_at"' in line]
    with pytest.raises(InvalidInput, match=r"x\.json: several rows for t-0 of group 'new'"):
        plan_json.read(sealed(text.replace(line, f"{line},\n{line}")), "x.json")


def test_each_loader_refuses_other_files_by_name(tmp_path: Path):
    """A plan file is not loaded as a receipt; the error says that it is a plan.

    A missing file and a folder are refused too.
    """
    path = tmp_path / "plan.json"
    path.write_text(plan_text())
    assert plan_json.load(path).plan == a_plan()[0]
    with pytest.raises(InvalidInput, match=r"plan\.json is a plan, not a receipt: pass the receipt"):
        receipt_json.load(path)
    with pytest.raises(InvalidInput, match="does not exist: check the path"):
        plan_json.load(tmp_path / "missing.json")
    with pytest.raises(InvalidInput, match="is a folder: name a file in it"):
        receipt_json.load(tmp_path)


def test_a_saved_plan_has_one_line_per_partition():
    """Each list of a saved plan has one line for each partition, with the action in words.

    So a Git diff is readable.
    """
    plan, rows = a_plan()
    lines = plan_json.to_bytes(plan, rows.rows()).decode().splitlines()
    assert len([line for line in lines if '"partition":0' in line]) == 2
    assert any(line.startswith('  {"action":"create","source_group":"old","group":"new"') for line in lines)


def test_unprintable_characters_are_escaped():
    """A plan and a receipt have no raw control or bidirectional character of a name, and keep the exact name."""
    controls = [chr(code) for code in range(sys.maxunicode) if unicodedata.category(chr(code)) in ("Cc", "Zl", "Zp")]
    marks = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    directions = [chr(code) for code in range(sys.maxunicode) if unicodedata.bidirectional(chr(code)) in marks]
    name = f"é漢😀{''.join(controls)}\N{RIGHT-TO-LEFT OVERRIDE}gpj{''.join(directions)}\u200e\u200f\u061c\ufeff"
    change = Change(source_group=None, group=name, topic="t", partition=0, before=None, after=CommittedOffset(offset=1))
    plan = Plan(cluster_id=name, options=WriteOptions(), changes=(change,), checks=())
    receipt = Receipt((Execution.of(plan, NOON),))
    for content in (plan_json.to_bytes(plan, []), receipt_json.to_bytes(receipt)):
        text = content.decode()
        assert not {*controls, *directions, *"\u200e\u200f\u061c\ufeff"} & {*text} - {"\n"}
        assert "é漢😀" in text
    assert plan_json.read(plan_json.to_bytes(plan, []), "plan.json").plan == plan
