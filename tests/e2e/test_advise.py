"""``advise`` on a group that several applications share, compared with what the clients' callbacks saw."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.migration.advise import propose
from migrate_groups.spark.offsets_topic import advice_job
from tests.support.cli import CliHere
from tests.support.split_sharing import GROUP, near, split


@pytest.mark.long
def test_a_split_is_measured_as_the_clients_saw_it(spark, java, kafka_jars, tmp_path):
    """Three applications share a group; then each gets its own group.

    The seconds that ``advise`` measures from the offsets topic nearly equal those that the clients' callbacks measured.
    Its predictions depend on how busy the machine is, so only scripts/check_advise.py checks them.
    """
    restarts = 2
    topics, before, after, costs, found = split(
        CliHere(tmp_path, ""), java, kafka_jars, protocol="eager", restarts=restarts, delay=1000
    )
    subscribed = pq.read_table(tmp_path / "out" / "before" / "advice.parquet").to_pylist()
    assert {row["application"]: row["topics"] for row in subscribed} == topics
    assert {name: each["groups"] for name, each in found.items()} == {name: [f"{GROUP}-{name}"] for name in topics}
    assert found["billing"]["restarts_before"] == found["billing"]["restarts"] == restarts
    for name in topics:
        assert near(found[name]["measured"], after[name]), name
    assert near(found["billing"]["outage_before"], before["billing"])
    assert near(found["shop"]["waited_before"], before["shop"])
    assert found["web"]["waited_before"] >= before["web"] - 0.5
    assert "billing" in costs["groups"][0]["predicted"]
    figures = {each["application"]: each for each in costs["groups"][0]["applications"]}
    assert {name: (each["keeps_up"] is None, each["idle"]) for name, each in figures.items()} == dict.fromkeys(
        topics, (False, 0)
    )
    whole = (tmp_path / "costs" / "advice.html").read_text()
    parts = ["Members and topics", "Seconds without an owner", "Lag over time", "[[target]]", "generation 1"]
    assert [part for part in parts if part not in whole] == []
    assert f"`{GROUP}`" in (tmp_path / "costs" / "advice.md").read_text()
    page = (tmp_path / "out" / "after.html").read_text()
    assert all(f"<code>{GROUP}-{name}</code>" in page for name in topics)


def test_a_group_without_records_of_members_is_undetermined(here, world):
    """If a group never had members, ``advise --log`` ends with exit code 7, because the log has no record of members.

    If an option is missing or contradicts another one, the exit code is 2.
    """
    group = world.name("simple")
    world.commit_all(group, {})
    assert "no record of the members" in here.fails("advise", group, "--log", "log", "--report", "out", code=7)
    assert "needs --report DIR" in here.fails("advise", group, "--log", "log", code=2)
    assert "--report and --since go with --log" in here.fails("advise", group, "--since", "7d", code=2)


def test_finished_tables_stay_if_a_page_can_not_be_written(here, world, tmp_path, monkeypatch):
    """If the cluster is lost after ``advise --log`` has written its tables, the tables stay, and stderr says so.

    If the cluster is lost before, no folder stays.
    """
    group, topic = world.name("big"), world.create_topic()
    world.join(group, topic)

    def lost(*_: object) -> None:
        raise ClusterUnavailable("no broker answers")

    asked = "advise", group, "--log", "log", "--report"
    with monkeypatch.context() as patch:
        patch.setattr(propose, "suggestions", lost)
        stderr = here(*asked, tmp_path / "out", code=ClusterUnavailable.exit_code).stderr
        patch.setattr(advice_job, "write_costs", lost)
        here.fails(*asked, tmp_path / "none", code=ClusterUnavailable.exit_code)
    assert f"tables written to {tmp_path / 'out'}: they are complete, and stay\n" in stderr
    assert pq.read_table(tmp_path / "out" / "advice.parquet").num_rows == 1
    assert not (tmp_path / "none").exists()
