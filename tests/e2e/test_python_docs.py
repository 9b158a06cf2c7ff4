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
    """A stopped group on two topics of two partitions.

    Returns the real names of the group and of the topics, by their names in docs/python.md.
    """
    names = {name: world.name(name) for name in ("orders", "payments", "search")}
    for topic in ("payments", "search"):
        world.create_topic(2, topic=names[topic])
    world.leave(world.join(names["orders"], names["payments"], names["search"]))
    for topic in ("payments", "search"):
        for partition in (0, 1):
            world.produce(names[topic], partition, 10)
            world.commit(names["orders"], TopicPartition(names[topic], partition), 4 + partition)
    return names


def test_examples_run_one_after_another(orders, world, bootstrap_servers, spark, tmp_path, monkeypatch, capsys):
    """The examples of docs/python.md run one after another and print what is expected.

    They do a confirmed hand-over, reconcile, audit, history, costs, rollback, and a replay group.
    """
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    said = []
    for example in EXAMPLES:
        code = example.replace("localhost:9092", bootstrap_servers)
        # Spark stays in the folder in which it was started.
        for of_spark in ("orders.run", "audit-log", "offsets-log", "history", "costs"):
            code = code.replace(f'Path("{of_spark}")', f'Path("{tmp_path}/{of_spark}")')
        for name, own in orders.items():
            code = re.sub(rf"(?<=[\"]){name}(?=[\"*-])", own, code)
        exec(compile(code, "docs/python.md", "exec"), scope)  # noqa: S102
        said.append(capsys.readouterr().out)
    scope["cluster"].close()
    assert said[0] == "4\n"
    assert said[1].startswith(f"{orders['orders']} Empty 11 ()\n")
    assert f"{orders['search']} 1 5 10 5\n" in said[1]
    assert said[1].endswith("\n4 2\n")
    assert "pass stopped no member is on the moved topics" in said[2]
    assert said[3].startswith("START THE NEW APPLICATIONS NOW\n")
    assert said[3].count(" confirmed\n") == 4
    assert said[4] == "True 0\n4 4 0\n"
    assert said[5] == f"{orders['orders']} 4 0 22\n{orders['orders']} 0.0 nothing to do: one application\n4 []\n"
    assert said[6] == "Counter({<Outcome.CONFIRMED: 'confirmed'>: 4})\n"
    assert set(world.committed(f"{orders['orders']}-replay").values()) == {0}
    assert len(EXAMPLES) == 8


def test_api_refuses_a_live_group_and_writes_nothing(orders, world, bootstrap_servers, tmp_path):
    """Like the command ``apply``, the Python API refuses a live source group and a stale plan, and writes nothing."""
    taken_over = f"{orders['orders']}-new"
    with migrate_groups.connect(bootstrap_servers, timeout=20) as cluster:
        taken = cluster.snapshot(orders["orders"])
        options = migrate_groups.WriteOptions(settle=0.0, guard=0.0)
        given = taken.given_to(taken_over)
        reviewed = migrate_groups.PlannedWrite(cluster.plan(given, options=options), given)
        reviewed.write(tmp_path / "plan.json")
        member = world.join(orders["orders"], orders["payments"])
        with pytest.raises(migrate_groups.Refused, match=r"stopped: .* has 1 member assigned"):
            cluster.apply(given, receipt=tmp_path / "r.json", options=options)
        world.leave(member)
        world.commit(orders["orders"], TopicPartition(orders["search"], 0), 7)
        with pytest.raises(migrate_groups.Refused, match="the plan is stale"):
            cluster.apply(migrate_groups.PlannedWrite.read(tmp_path / "plan.json"), receipt=tmp_path / "r.json")
    assert world.committed(taken_over) == {}


def test_a_cluster_that_nobody_closed_ends_with_the_interpreter(orders, bootstrap_servers, tmp_path):
    """Connections that a program did not close are closed when the program ends.

    The exit code is 0, and stderr is empty.
    """
    code = (
        "import sys, pathlib, migrate_groups as mg\n"
        "cluster = mg.connect(sys.argv[1], timeout=20)\n"
        "taken, options = cluster.snapshot(sys.argv[2]), mg.WriteOptions(settle=0, guard=0)\n"
        "cluster.apply(taken, to_groups=[sys.argv[2] + '-new'], receipt=pathlib.Path(sys.argv[3]), options=options)\n"
    )
    arguments = [bootstrap_servers, orders["orders"], str(tmp_path / "receipt.json")]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_import_loads_no_large_dependency():
    """The import of the package loads no large dependency. An unknown name in the package raises AttributeError."""
    code = (
        "import sys, migrate_groups as m\n"
        "heavy = {'kafka', 'confluent_kafka', 'pyarrow', 'pyspark', 'msgspec', 'typer', 'rich'} & {*sys.modules}\n"
        "assert not heavy, heavy\nassert m.Refused.exit_code == 3\nassert not hasattr(m, 'nothing')\n"
        "assert {'connect', 'Snapshot', 'reconcile'} <= {*dir(m)}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_every_name_in_all_can_be_imported():
    """Each name in the package's ``__all__`` can be imported."""
    assert all(getattr(migrate_groups, name) is not None for name in migrate_groups.__all__)
