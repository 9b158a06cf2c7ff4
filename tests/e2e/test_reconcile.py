"""``reconcile`` on the command line, with real snapshots of a real hand-over."""

from __future__ import annotations

import re
import signal
import sys
import time

import pytest

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.cli import CliHere, running
from tests.support.connected import Connected
from tests.support.documents import parsed
from tests.support.processes import children_of, gone

NOW = ("--settle", "0s", "--guard", "0s", "--yes")


def test_reconcile_passes_a_hand_over_and_finds_a_rewind(tmp_path, world, cli, here):
    """After a correct hand-over, ``reconcile`` ends with exit code 0; after a rewind of the target group, with 6."""
    topic, group = world.create_topic(2), world.name("00123")
    new = f"{group}-new"
    for partition in (0, 1):
        world.produce(topic, partition, 10)
        world.commit(group, TopicPartition(topic, partition), 4)
    (tmp_path / "split.toml").write_text(f"source = '{group}'\n[[target]]\ngroup = '{new}'\ntopics = ['*']\n")
    cli("snapshot", group, "-o", "before.csv")
    cli("split", "before.csv", "--spec", "split.toml", "-o", "split.parquet")
    cli("apply", "split.parquet", *NOW)
    cli("snapshot", new, "-o", "after.csv")

    done = here("reconcile", "split.parquet", "after.csv", "-o", tmp_path / "tables")
    assert "2 exact" in done.stdout
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {
        *(f"{name}.{kind}" for name in ("partition_verdict", "group_topic_summary") for kind in ("csv", "parquet")),
        "report.md",
        "report.html",
    }
    assert "### Reconciled: 2 partitions (2 exact)" in (tmp_path / "tables" / "report.md").read_text()
    assert f"<code>{new}</code>" in (tmp_path / "tables" / "report.html").read_text()
    assert "exists already" in here.fails("reconcile", "split.parquet", "after.csv", "-o", tmp_path / "tables", code=2)

    world.commit(new, TopicPartition(topic, 1), 2)
    cli("snapshot", new, "-o", "later.parquet")
    found = here("reconcile", "before.csv", "later.parquet", "--spec", "split.toml", "--format", "json", code=6)
    document = parsed(found.stdout)
    assert not document["clean"]
    assert (document["totals"]["counts"]["exact"], document["totals"]["counts"]["behind"]) == (1, 1)
    assert (document["worst"][0]["topic"], document["worst"][0]["partition"]) == (topic, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which processes a process has started")
def test_sigterm_while_spark_starts_leaves_no_jvm(tmp_path, monkeypatch):
    """If ``reconcile`` gets SIGTERM while Spark starts, it prints one line and ends with exit code 130.

    It also ends the JVM, which PySpark alone would leave running.
    """
    cli = Connected(tmp_path, monkeypatch)
    with running(cli, "reconcile", "split.csv", "split.csv") as process:
        children = until(lambda: children_of(process.pid))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=90)
    assert (process.returncode, err.splitlines()[1:]) == (130, ["interrupted; nothing was written to the cluster"])
    until(lambda: all(map(gone, children)))


def test_reconcile_and_describe_show_the_time_lag(world, cli, here):
    """If the snapshots have time lags, ``reconcile`` shows the largest time lag before and the largest after.

    ``describe --time-lag`` shows the time lag of each partition.
    """
    topic, group = world.create_topic(2), world.name("aged")
    now = round(time.time() * 1000)
    for hours, partition in ((30, 0), (3, 0), (2, 0), (1, 1)):
        world.produce(topic, partition, 2, timestamp=now - 3_600_000 * hours)
    world.commit(group, TopicPartition(topic, 0), 3)
    world.commit(group, TopicPartition(topic, 1), 2)
    cli("snapshot", group, "--time-lag", "-o", "before.parquet")
    cli("split", "before.parquet", "--to", f"{group}-new=*", "-o", "split.csv")
    cli("apply", "split.csv", *NOW)
    world.commit(f"{group}-new", TopicPartition(topic, 0), 4)
    cli("snapshot", f"{group}-new", "--time-lag", "-o", "after.csv")
    shown = cli("describe", f"{group}-new", "--time-lag").stdout
    assert re.search(rf"{topic} +0 +4 +6 +2 +- +- +- +2 h", shown)
    assert re.search(rf"{topic} +1 +2 +2 +0 +- +- +- +-\n", shown)
    totals = parsed(here("reconcile", "split.csv", "after.csv", "--format", "json").stdout)["totals"]
    assert [totals[name] // 3600 for name in ("time_lag_before", "time_lag_after")] == [3, 2]
    exported = cli("export", "split.csv", "-o", "-").stdout
    assert exported == f"{topic},0,3\n{topic},1,2\n"


def test_reconcile_reads_the_snapshots_of_a_run_directory(tmp_path, world, cli, here):
    """``reconcile`` with a run directory reads its snapshots from before and after the write.

    A later snapshot can be given in place of the one from after the write.
    """
    topic, group = world.create_topic(3), world.name("big")
    new = f"{group}-new"
    for partition in (0, 1):
        world.produce(topic, partition, 10)
        world.commit(group, TopicPartition(topic, partition), 4)
    (tmp_path / "split.toml").write_text(
        f"source = '{group}'\n[[target]]\ngroup = '{new}'\ntopics = ['*']\n[options]\non_uncommitted = 'earliest'\n"
    )
    said = cli("migrate", "split.toml", *NOW).stderr
    assert "next: migrate-groups reconcile split.toml.run\n" in said
    document = parsed(here("reconcile", "split.toml.run", "--format", "json").stdout)
    assert document["clean"]
    assert (document["totals"]["counts"]["exact"], document["totals"]["lag_before"]) == (3, 12)
    assert (document["quarantined"], document["timeline"]) == (0, [])

    world.commit(new, TopicPartition(topic, 0), 7)
    world.commit(new, TopicPartition(topic, 2), 2)
    cli("snapshot", new, "-o", "later.csv")
    rows = (tmp_path / "later.csv").read_text()
    (tmp_path / "later.csv").write_text(rows.replace(f",{topic},", ",a b,", 1))
    aside = tmp_path / "aside"
    later = ("reconcile", "split.toml.run", "later.csv", "--after", "split.toml.run/after.parquet")
    found = parsed(here(*later, "--quarantine", aside, "--format", "json").stdout)
    assert (found["quarantined"], found["totals"]["counts"]["exact"], found["totals"]["counts"]["ahead"]) == (1, 2, 1)
    assert found["hints"][0].startswith(f"set aside in {aside}: 1 invalid row ")
    assert {point["group"] for point in found["timeline"]} == {new}

    assert "drop --spec" in here.fails("reconcile", "split.toml.run", "--spec", "split.toml", code=2)
    (tmp_path / "split.toml.run" / "after.parquet").unlink()
    assert f"snapshot {new} -o after.parquet" in here.fails("reconcile", "split.toml.run", code=2)


def test_missing_side_is_exit_2(tmp_path):
    """If ``reconcile`` gets no path, or a single one that is not a run directory, it ends with exit code 2."""
    cli = CliHere(tmp_path)
    for name in ("before.csv", "a.csv"):
        (tmp_path / name).touch()
    for arguments in ([], ["before.csv"], ["--before", "a.csv"], ["--after", "a.csv"]):
        assert "name both" in cli.fails("reconcile", *arguments, code=2)


def test_missing_and_malformed_files_are_exit_2(tmp_path, spark):
    """If a file is missing or is not a snapshot, ``reconcile`` ends with exit code 2 and one line that names it."""
    cli = CliHere(tmp_path)
    (tmp_path / "bad.csv").write_text("what,is,this\n1,2,3\n")
    assert "missing.csv" in cli.fails("reconcile", "missing.csv", "bad.csv", code=2)
    assert "bad.csv" in cli.fails("reconcile", "bad.csv", "bad.csv", code=2)
