"""report.html and translated_offsets.parquet of ``compare``: what they show, and that names can't break them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow.parquet as pq

from migrate_groups.files import translated_offsets_parquet
from migrate_groups.migration.across.compare import Comparison
from migrate_groups.mirrors.position import Counts, Method, Position, Status, undetermined
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.translation import TranslatedOffset
from migrate_groups.show.comparison import page, rows

HOSTILE = 'web"><script>\n'
EXACT = Position(status=Status.EXACT, offset=1010, method=Method.WALK, compared=20, as_of=2000, before=b"\x01" * 16)


def translated(position: Position, partition: int = 0) -> TranslatedOffset:
    copy = None if position.method is Method.NONE else TopicPartition("eu.orders", partition)
    return TranslatedOffset(
        source=TopicPartition("orders", partition), offset=10, committed=10, copy=copy, there=10, position=position
    )


def comparison(**groups: list[TranslatedOffset]) -> Comparison:
    return Comparison(
        source_cluster="here",
        target_cluster=HOSTILE,
        taken_at=datetime(2026, 11, 23, tzinfo=UTC),
        groups=groups,
        topic_ids={},
    )


def test_the_page_of_a_group_that_would_continue_at_its_translated_offsets():
    """If a group would continue on the target where it stopped on the source, the page's title begins with "Same"."""
    text = page(comparison(g=[translated(EXACT)]))
    assert "<title>Same: every partition continues on the target where it stopped on the source</title>" in text
    assert '<header class="clean">' in text


def test_the_page_shows_what_would_be_read_again_and_what_is_not_known():
    """If records would be read again, the page shows their number in its totals, in a bar and in the table.

    Partitions that need attention come first in the table.
    """
    again = replace(EXACT, offset=7, counts=Counts(again=1234, skipped=0))
    unknown = undetermined("no such partition on the target, or no Describe on its topic")
    text = page(comparison(g=[translated(EXACT), translated(again, partition=1)], h=[translated(unknown)]))
    assert "<h1>" in text
    assert "1 partition would not continue on the target where the group stopped on the source" in text
    assert text.count("1,234") == 2  # in the totals and in a bar
    assert "not known" in text
    table = text[text.index("<tbody>") :]
    assert table.index("1234") < table.index("no such partition") < table.index("1010")


def test_names_are_escaped():
    """Names of groups and clusters appear in report.html as escaped text on one line; the page loads no other file."""
    text = page(comparison(**{HOSTILE: [translated(EXACT)]}))
    assert "<script>" not in text
    assert HOSTILE not in text
    assert "http" not in text.replace("http-equiv", "")


def test_a_page_of_many_partitions_is_cut():
    """report.html shows at most 500 partitions and 50 topics, and says which file contains the rest."""
    text = page(comparison(**{f"g{number:04}": [translated(EXACT)] for number in range(600)}))
    assert "550 more topics in translated_offsets.parquet" in text
    assert "100 more partitions in translated_offsets.parquet" in text


def test_the_table_has_the_evidence_of_each_partition(tmp_path):
    """The Parquet file has a row for each partition, with clusters, offsets, status, reason and fingerprints."""
    offsets = [translated(EXACT), translated(undetermined("a transactional commit is pending"))]
    translated_offsets_parquet.save(rows(comparison(g=offsets)), tmp_path / "translated_offsets.parquet")
    first, second = pq.read_table(tmp_path / "translated_offsets.parquet").to_pylist()
    assert first == {
        "source_cluster": "here",
        "target_cluster": HOSTILE,
        "taken_at": datetime(2026, 11, 23, tzinfo=UTC),
        "group": "g",
        "topic": "orders",
        "partition": 0,
        "committed_offset": 10,
        "target_topic": "eu.orders",
        "translated_offset": 1010,
        "reread_at_most": 0,
        "target_committed_offset": 10,
        "read_again": None,
        "skipped": None,
        "copies": 0,
        "aborted": 0,
        "status": "exact",
        "reason": "",
        "method": "walk",
        "compared": 20,
        "mirrored_to": 2000,
        "fingerprint_before": "01" * 16,
        "fingerprint_after": None,
    }
    assert (second["target_topic"], second["mirrored_to"], second["method"]) == (None, None, "")
    assert [*first] == translated_offsets_parquet.SCHEMA.names
