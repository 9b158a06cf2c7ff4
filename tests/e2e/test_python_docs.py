"""The examples of the Python API in docs/python.md, on a real broker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import migrate_groups
from migrate_groups.model.partitions import TopicPartition

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)


@pytest.fixture
def orders(world) -> dict[str, str]:
    """A stopped group on two topics of two partitions; its unique names are mapped from the names in the docs."""
    names = {name: world.name(name) for name in ("orders", "payments", "search")}
    for topic in ("payments", "search"):
        world.create_topic(2, topic=names[topic])
        for partition in (0, 1):
            world.produce(names[topic], partition, 10)
            world.commit(names["orders"], TopicPartition(names[topic], partition), 4 + partition)
    return names


def test_the_examples_run_one_after_the_other(orders, world, bootstrap_servers, tmp_path, monkeypatch, capsys):
    """Each block continues the previous ones: a confirmed hand-over, its rollback, and a replay group."""
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    said = []
    for example in EXAMPLES:
        code = example.replace("localhost:9092", bootstrap_servers)
        for name, own in orders.items():
            code = re.sub(rf"(?<=[\"]){name}(?=[\"*-])", own, code)
        exec(compile(code, "docs/python.md", "exec"), scope)  # noqa: S102
        said.append(capsys.readouterr().out)
    scope["cluster"].close()
    assert f"{orders['orders']} Empty classic" in said[1]
    assert f"{orders['search']} 1 5 5\n" in said[2]
    assert said[3] == "4 2\n"
    assert "pass stopped no member has the moved topics" in said[4]
    assert said[5].count(" confirmed\n") == 4
    assert said[6] == "Counter({<Outcome.CONFIRMED: 'confirmed'>: 4})\n"
    assert set(world.committed(f"{orders['orders']}-replay").values()) == {0}
    assert len(EXAMPLES) == 8


def test_a_group_that_lives_is_refused_with_nothing_written(orders, world, bootstrap_servers, tmp_path):
    """The API makes the same checks as the command: it refuses a member of the source group, and a stale plan."""
    taken_over = f"{orders['orders']}-new"
    with migrate_groups.connect(bootstrap_servers, timeout=20) as cluster:
        taken = cluster.snapshot(orders["orders"])
        options = migrate_groups.WriteOptions(settle=0.0, guard=0.0)
        given = taken.given_to(taken_over)
        reviewed = migrate_groups.PlannedWrite(cluster.plan(given, options=options), given)
        reviewed.write(tmp_path / "plan.json")
        member = world.join(orders["orders"], orders["payments"])
        with pytest.raises(migrate_groups.Refused, match=r"stopped: .* 1 member still assigned"):
            cluster.apply(given, receipt=tmp_path / "r.json", options=options)
        world.leave(member)
        world.commit(orders["orders"], TopicPartition(orders["search"], 0), 7)
        with pytest.raises(migrate_groups.Refused, match="the plan is stale"):
            cluster.apply(migrate_groups.PlannedWrite.read(tmp_path / "plan.json"), receipt=tmp_path / "r.json")
    assert world.committed(taken_over) == {}


def test_the_import_loads_nothing_heavy():
    """The import loads no large dependency; an unknown name is an AttributeError."""
    code = (
        "import sys, migrate_groups as m\n"
        "heavy = {'kafka', 'confluent_kafka', 'pyarrow', 'pyspark', 'msgspec', 'typer', 'rich'} & {*sys.modules}\n"
        "assert not heavy, heavy\nassert m.Refused.exit_code == 3\nassert not hasattr(m, 'nothing')\n"
        "assert {'connect', 'Snapshot', 'reconcile'} <= {*dir(m)}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_every_offered_name_is_there():
    """Each name of ``__all__`` can be imported."""
    assert all(getattr(migrate_groups, name) is not None for name in migrate_groups.__all__)
