"""What ``reconcile`` must find, computed by DuckDB: generated snapshots with every status, and the verdicts as SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

STATUSES = ("missing", "below-log-start", "behind", "unexpected", "ahead", "no-commit", "exact")
SUMS = ("lag_before", "lag_after", "produced", "consumed")

# A group has 1,000 partitions: 50 topics of 20. Each kind of defect has one row in 1,000; three in ten are ahead.
_ROWS = """
    SELECT 'bench-cluster' AS cluster_id, make_timestamptz(1795176000123456) AS taken_at,
        'new-' || i // 1000 AS "group", 'old-' || i // 10000 AS source_group,
        'Empty' AS group_state, 'classic' AS group_type,
        'topic-' || i // 20 % 50 AS topic, 'topic-id-' || i // 20 % 50 AS topic_id, (i % 20)::INT AS "partition",
        CASE WHEN fate NOT IN (4, 5) THEN 1000 + hash(i) % 1000000000 END::BIGINT AS "offset",
        7::INT AS leader_epoch, '' AS metadata, (hash(i) % 1000)::BIGINT AS log_start_offset,
        (1000 + hash(i) % 1000000000 + hash(i + 1) % 5000)::BIGINT AS log_end_offset, fate
    FROM (SELECT i, hash(i, 'fate') % 1000 AS fate FROM range({rows}) AS numbers(i))"""
_BEFORE = "SELECT * EXCLUDE (fate) FROM ({rows})"
_AFTER = """
    SELECT * EXCLUDE (fate) REPLACE (
        NULL::VARCHAR AS source_group,
        CASE fate WHEN 3 THEN 'recreated' ELSE topic_id END AS topic_id,
        CASE WHEN fate = 1 THEN "offset" - 1 WHEN fate = 4 THEN 5000 WHEN fate < 700 THEN "offset"
            ELSE "offset" + fate::BIGINT END AS "offset",
        CASE fate WHEN 2 THEN "offset" + 9 ELSE log_start_offset END AS log_start_offset,
        log_end_offset + fate::BIGINT AS log_end_offset)
    FROM ({rows}) WHERE fate <> 0"""
_AS_CSV = """
    SELECT * REPLACE (strftime(taken_at AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ') AS taken_at) FROM ({rows})"""

# The verdicts of migrate_groups/spark/reconciliation/reconcile.py as SQL; the latest row of each side counts.
_VERDICTS = """
    WITH sides AS (
        SELECT *, 'before' AS side FROM {before}
        UNION ALL BY NAME
        SELECT *, 'after' AS side FROM {after} WHERE "group" IN (SELECT "group" FROM {before})
    ), pairs AS (
        SELECT cluster_id, "group", topic, "partition",
            max_by(row, taken_at) FILTER (side = 'before') AS before,
            max_by(row, taken_at) FILTER (side = 'after') AS after
        FROM (
            SELECT *, struct_pack("offset", log_start_offset, log_end_offset, topic_id, source_group) AS row FROM sides
        )
        GROUP BY ALL
    ), compared AS (
        SELECT *, coalesce(before.topic_id <> after.topic_id, false) AS recreated,
            before.offset AS before_offset, after.offset AS after_offset
        FROM pairs
    )
    SELECT cluster_id, "group", before.source_group AS source_group, topic, "partition",
        CASE WHEN after_offset < after.log_start_offset THEN 'below-log-start'
            WHEN before_offset IS NULL AND after_offset IS NULL THEN 'no-commit'
            WHEN after_offset IS NULL THEN 'missing'
            WHEN before_offset IS NULL OR recreated THEN 'unexpected'
            WHEN after_offset < before_offset THEN 'behind'
            WHEN after_offset > before_offset THEN 'ahead' ELSE 'exact' END AS status,
        before_offset, after_offset,
        before.log_end_offset - before_offset AS lag_before, after.log_end_offset - after_offset AS lag_after,
        CASE WHEN NOT recreated THEN after.log_end_offset - before.log_end_offset END AS produced,
        CASE WHEN NOT recreated THEN after_offset - before_offset END AS consumed
    FROM compared"""
VERDICT_COLUMNS = (
    'cluster_id, "group", source_group, topic, "partition", status, before_offset, after_offset, '
    "lag_before, lag_after, produced, consumed"
)
_CSV_TYPES = {
    **dict.fromkeys(["cluster_id", "group", "source_group", "group_state", "group_type"], "VARCHAR"),
    **dict.fromkeys(["topic", "topic_id", "metadata"], "VARCHAR"),
    **dict.fromkeys(["offset", "log_start_offset", "log_end_offset"], "BIGINT"),
    **dict.fromkeys(["partition", "leader_epoch"], "INTEGER"),
    "taken_at": "TIMESTAMPTZ",
}


def generate(rows: int, folder: Path, *, kind: str) -> tuple[Path, Path]:
    """Write a split file and a snapshot taken after it; return their paths. ``kind`` is csv or parquet."""
    made = []
    everything = _ROWS.format(rows=rows)
    for name, query in (("before", _BEFORE), ("after", _AFTER)):
        made.append(folder / f"{name}.{kind}")
        save(query.format(rows=everything), made[-1])
    return made[0], made[1]


def save(query: str, path: Path) -> None:
    """Write the rows of a query, which has the columns of a snapshot, as CSV or as Parquet."""
    options = "FORMAT parquet"
    if path.suffix == ".csv":
        query, options = _AS_CSV.format(rows=query), "FORMAT csv, HEADER"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path}' ({options})")


def verdicts(before: Path, after: Path) -> str:
    """Return the query that computes the expected ``partition_verdict``."""
    return _VERDICTS.format(before=table(before), after=table(after))


def totals(before: Path, after: Path, memory: str = "80%") -> dict[str, int]:
    """Return the query's totals: the number of partitions, their number by status, and the sums of the columns `SUMS`.

    DuckDB uses at most ``memory``, and writes the rest to the folder of ``before``.
    """
    counts = ", ".join(f"count(*) FILTER (status = '{status}')" for status in STATUSES)
    sums = ", ".join(f"sum({name})" for name in SUMS)
    with duckdb.connect() as connection:
        connection.execute(f"SET temp_directory = '{before.parent}'; SET memory_limit = '{memory}'")
        found = connection.execute(f"SELECT count(*), {counts}, {sums} FROM ({verdicts(before, after)})").fetchone()
    return dict(zip(("partitions", *STATUSES, *SUMS), map(int, found or ()), strict=True))


def fingerprint(rows: str) -> tuple[Any, ...]:
    """Return the row count and two sums over the hash of each row: equal for equal tables in any order."""
    with duckdb.connect() as connection:
        query = f"SELECT count(*), sum(h), bit_xor(h) FROM (SELECT hash({VERDICT_COLUMNS}) AS h FROM ({rows}))"
        found = connection.execute(query).fetchone()
    return found or ()


def table(path: Path) -> str:
    """Return the table of a snapshot file, for the FROM of a query."""
    if path.suffix == ".csv":
        return f"read_csv('{path}', header = true, types = {_CSV_TYPES})"
    return f"read_parquet('{path}')"


def flat(found: dict[str, Any]) -> dict[str, int]:
    """Return the totals of ``reconcile --format json``, or of its job, as `totals` returns those of DuckDB."""
    return {key: found["counts"].get(key, found.get(key)) for key in ("partitions", *STATUSES, *SUMS)}
