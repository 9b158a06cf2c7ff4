"""``history`` on the command line: lag over time, from a real broker's offsets topic."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime

import confluent_kafka
import pyarrow.parquet as pq

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.cli import CliHere
from tests.support.documents import parsed


def second_later() -> float:
    """Wait until shortly after the start of the next second, and return the time."""
    begun = math.ceil(time.time())
    until(lambda: time.time() > begun + 0.2)
    return time.time()


def test_history_shows_lag_over_time_without_a_snapshot(tmp_path, world, here):
    """``history --every 1s`` shows a group's lag at every full second, without any snapshot.

    A second run, without a group, extends the copied log (``--log``) and shows all groups.
    """
    topic, group = world.create_topic(2), world.name("history")
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    world.produce(topic, 0, 10)
    world.produce(topic, 1, 3)
    actions = {
        9: lambda: (world.commit(group, first, 4), world.commit(group, second, 0)),
        16: lambda: world.produce(topic, 0, 7),
        10: lambda: (world.commit(group, first, 5), world.commit(group, first, 10)),
        12: lambda: world.commit(group, first, 8),
    }
    phases = []
    for lag, act in actions.items():
        act()
        phases.append((time.time(), second_later(), lag))

    shown = here("history", group, "--every", "1s", "--log", "log", "-o", tmp_path / "one")
    assert f"{group} " in shown.stdout
    assert {path.name for path in (tmp_path / "one").iterdir()} == {"history.parquet", "history.html"}
    rows = pq.read_table(tmp_path / "one" / "history.parquet").to_pylist()
    assert {(row["group"], row["topic"], row["partitions"]) for row in rows} == {(group, topic, 2)}
    for begun, ended, lag in phases:
        between = [row["lag"] for row in rows if begun < row["taken_at"].timestamp() < ended]
        assert between == [lag]
    assert [sum(row[name] for row in rows) for name in ("commits", "rewinds", "deletions")] == [5, 1, 0]
    assert (rows[-1]["lag"], rows[-1]["produced"]) == (12, 0)
    assert {tuple(row["clients"]) for row in rows} == {()}
    page = (tmp_path / "one" / "history.html").read_text()
    assert page.count("<figure>") == 2
    assert page.count(f"<code>{group}</code>") > 2

    copied = {path.name for path in (tmp_path / "log").iterdir()}
    member = world.join(group, topic)
    member.commit(offsets=[confluent_kafka.TopicPartition(topic, 1, 3)], asynchronous=False)
    world.leave(member)
    every_group = here("history", "--log", "log", "-o", tmp_path / "all", "--format", "json")
    found = parsed(every_group.stdout)
    assert copied < {path.name for path in (tmp_path / "log").iterdir()}
    [of_group] = [each for each in found["groups"] if each["group"] == group]
    assert (of_group["commits"], of_group["last_lag"], of_group["missing"]) == (6, 9, 0)
    rows = pq.read_table(tmp_path / "all" / "history.parquet").to_pylist()
    assert [row["clients"] for row in rows if row["group"] == group][-1] == ["test-app/127.0.0.1"]
    assert datetime.fromisoformat(of_group["last_commit_at"]) <= datetime.now(UTC)


def test_history_checks_its_options_before_it_connects(tmp_path, bootstrap_servers):
    """If an option of ``history`` is missing or wrong, the exit code is 2, and no log is copied."""
    cli = CliHere(tmp_path, bootstrap_servers)
    (tmp_path / "there").mkdir()
    history = ("history", "--log", "log", "-o", "out")
    for arguments, complaint in (
        (("history", "-o", "out"), "missing option '--log'"),
        (("history", "--log", "log"), "missing option '--output'"),
        ((*history, ""), "a group name is empty"),
        ((*history, "--every", "60"), "--every is '60'"),
        ((*history[:-1], "there"), "there exists already: pass another folder"),
    ):
        assert complaint in cli.fails(*arguments, code=2)
    assert not (tmp_path / "log").exists()
