"""The history of groups as a table, an HTML page and a JSON document, and log end offsets at past times."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from migrate_groups.cli.json_output import print_document
from migrate_groups.errors import ClusterUnavailable
from migrate_groups.files.runs.copied_log import save_log_ends
from migrate_groups.migration.events import Events
from migrate_groups.migration.offsets_topic.copied import copy_with_ends, current_log_ends, log_ends
from migrate_groups.migration.ports import LogClients
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.show import history as shown
from migrate_groups.snapshots.times import milliseconds_of
from migrate_groups.spark.offsets_topic.evidence import Evidence
from migrate_groups.spark.offsets_topic.history_job import GroupHistory, History, Reset
from tests.support.clock import FakeClock
from tests.support.drawn import on_a_terminal
from tests.support.in_memory import InMemoryCluster
from tests.support.reconciliations import moments
from tests.support.rows import NOON

BILLING = GroupHistory("billing", 2, 6, 1200, 3, 1, NOON, NOON + timedelta(hours=7), 5_000, 12, 40)
BACK = Reset("billing", ["invoices"], 3, 1_204, NOON + timedelta(seconds=30, milliseconds=7))
LOG = Path("the logs")
FOUND = History(
    groups=(BILLING, BILLING._replace(group="[idle]", last_lag=None, most_lag=None)),
    resets=(BACK,),
    found=3,
    first=NOON,
    last=NOON + timedelta(hours=8),
    timeline=(*moments(5000, None, 12, group="billing"), *moments(1, 2, group="billing", topic="invoices")),
    evidence=(Evidence(7, 0, 100, 55, 3, 2, 40, 0, 0, False),),
)


def test_every_view_says_what_compaction_hides():
    """If the log was compacted, the table and the HTML page say how much was removed; otherwise neither mentions it."""
    gone = "Compaction has removed 40 of the 100 offsets of the log"
    whole = replace(FOUND, evidence=(FOUND.evidence[0]._replace(missing=0),))
    assert gone in " ".join(on_a_terminal(shown.result(FOUND, LOG)).split())
    assert gone in " ".join(shown.page(FOUND, LOG).replace("&#39;", "'").split())
    assert "Compaction" not in on_a_terminal(shown.result(whole, LOG)) + shown.page(whole, LOG)


def test_a_group_that_went_back_gets_the_command_for_its_offsets_before():
    """If a group went back, the table and the page have the command for its offsets before; else neither does.

    The page has one for each of the 20 largest resets, and says how many others there were.
    """
    command = "migrate-groups snapshot billing --log 'the logs' --at 2026-11-20T12:00:30.007Z -o then.csv"
    for resets, times in (((BACK,), 2), ((), 0), ((BACK, *[BACK._replace(group="other")] * 22), 2)):
        found = replace(FOUND, resets=resets)
        assert " ".join(on_a_terminal(shown.result(found, LOG)).split()).count(command) == min(times, 1)
        page = " ".join(shown.page(found, LOG).replace("&#39;", "'").split())
        assert page.count(command) == times
        assert ("… and 3 more resets, which went back less" in page) is (len(resets) == 23)


def test_curves_mark_the_moment_before_a_reset():
    """A line marks the moment before a reset in the curves of its group and of the topics that went back.

    The description for screen readers counts the resets.
    """
    other = (*FOUND.timeline, *moments(4, 4, group="billing", topic="orders"))
    begun, ended = other[0].taken_at, max(each.taken_at for each in other)
    found = replace(FOUND, timeline=other, resets=(BACK._replace(before=begun + (ended - begun) / 4),))
    page = shown.page(found, LOG)
    assert page.count('<path class="marked" d="M150.0 0V120"/>') == page.count('; 1 reset"') == 2
    assert page.count("<figure>") == 3


def test_the_table_has_one_line_per_group():
    """The table shows each group in one line, an unknown number as a dash, and how many groups are not shown."""
    lines = on_a_terminal(shown.result(FOUND, LOG)).splitlines()
    times = ["2026-11-20", "12:00", "2026-11-20", "19:00"]
    assert lines[1].split() == ["billing", "2", "6", "1,200", "3", "1", *times, "5,000", "12", "40"]
    assert lines[2].split()[0] == "[idle]"
    assert lines[2].split()[-3:] == ["-", "-", "40"]
    assert lines[3] == "… and 1 more group"


def test_the_page_has_a_curve_for_each_group_and_topic():
    """The HTML page has one lag curve for each group and topic, escapes names, and refers to no web address."""
    found = replace(FOUND, groups=(BILLING._replace(group="<b>"),), resets=(BACK._replace(group="<b>"),))
    page = shown.page(found, LOG)
    assert page.count("<figure>") == 2
    assert 'aria-label="Lag at 3 moments: first 5,000, highest 5,000, last 12"' in page
    assert "<code>&lt;b&gt;</code>" in page
    assert "<b>" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_document_is_json(capsysbinary):
    """The JSON document of the history names its schema and version, and shows times in UTC."""
    print_document(shown.result(FOUND, LOG).document)
    document = json.loads(capsysbinary.readouterr().out)
    assert (document["schema"], document["schema_version"]) == ("migrate-groups/history", 1)
    assert document["groups"][0]["first_commit_at"] == "2026-11-20T12:00:00Z"
    assert document["groups"][1]["last_lag"] is None
    assert len(document["timeline"]) == 5


def test_a_partition_of_the_offsets_topic_without_a_leader_is_no_answer(tmp_path):
    """If a partition of ``__consumer_offsets`` has no leader, nothing is copied, and the error names the partition."""
    made: Any = InMemoryCluster()
    made.create_topic(OFFSETS_TOPIC, 2)
    made.lose_leader(OFFSETS_TOPIC, 1)
    with pytest.raises(ClusterUnavailable, match="__consumer_offsets has no leader for partition 1; try again"):
        copy_with_ends(LogClients(made, made), None, tmp_path / "log", FakeClock(), Events())


def test_log_end_offsets_at_times_in_the_past(tmp_path):
    """The log end offset at a time is the offset of the first record with this timestamp or a later one.

    It is null if earlier records may have been deleted. Partitions without a leader and deleted topics are left out.
    """
    made = InMemoryCluster()
    made.create_topic("t", 4)
    for hour in (1, 2, 3):
        for partition in (0, 1):
            made.produce("t", partition, 10, timestamp=milliseconds_of(NOON + timedelta(hours=hour)))
    made.delete_records("t", 1, 10)
    made.lose_leader("t", 3)
    asked = [NOON + timedelta(hours=hours) for hours in (1, 2, 2.5, 9)]
    told = []
    partitions = [*(TopicPartition("t", number) for number in (0, 1, 2, 3)), TopicPartition("gone", 0)]
    last = current_log_ends(made)
    made.produce("t", 0, 5, timestamp=milliseconds_of(NOON + timedelta(hours=8)))
    found = list(log_ends(made, partitions, asked, last, lambda done, total: told.append((done, total))))
    ends = {number: [end.log_end_offset for end in found if end.partition == number] for number in (0, 1, 2, 3)}
    assert ends == {0: [0, 10, 20, 30], 1: [None, None, 20, 30], 2: [0, 0, 0, 0], 3: []}
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    save_log_ends(found, tmp_path / "ends.parquet")
    table = pq.read_table(tmp_path / "ends.parquet")
    assert [tuple(row.values()) for row in table.to_pylist()] == [tuple(each) for each in found]
