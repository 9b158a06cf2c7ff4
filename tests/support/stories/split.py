"""Type the pages that split the group ``big-group``, and pages that need only this group."""

from __future__ import annotations

import shlex
import shutil

import pytest

from migrate_groups.model.partitions import TopicPartition
from tests.support.kafka_tool import CONSUMER_GROUPS
from tests.support.pages import PAGES, blocks
from tests.support.reader import Reader, commits_as_member, committed

BILLING = {"invoices": [46, 60], "payments.card": [7, 8]}
SEARCH = {"search.clicks": [30, 40]}
BIG = BILLING | SEARCH
TOML, *_ = blocks(PAGES["docs/split-a-group.md"].read_text(), "toml")


def of_the_readme(reader: Reader) -> None:
    world = reader.starts()
    committed(world, "big-group", BIG | {"mail.sent": [3, 4]})

    def new_group_works() -> None:
        reader.type("migrate-groups migrate split.toml")  # because it was rolled back
        world.commit("billing", TopicPartition("invoices", 0), 50)

    reader.reads("README.md", before={"hand-back": new_group_works})


def step_by_step(reader: Reader) -> None:
    world = reader.starts()
    committed(world, "big-group", BIG)
    committed(world, "billing", BILLING)  # those of getting started
    committed(world, "search", SEARCH)
    committed(world, "old", {"orders": [5]})
    committed(world, "g", {"payments.card": [3, 4]})
    (reader.folder / "split.toml").write_text(TOML)
    tool = shlex.join([*reader.kafka[0].tool_command, CONSUMER_GROUPS])
    reader.type(f'kafka-consumer-groups() {{ {tool} "$@"; }}')

    def forget_the_split() -> None:
        reader.type("migrate-groups delete-group migrate-groups.journal.big-group")

    reader.reads("docs/split-a-group.md", before={"--fan-out": forget_the_split, "apply part.csv": forget_the_split})


def of_a_fleet(reader: Reader) -> None:
    """Type docs/fleets.md. The group ``orders-apac`` has no committed offset in one partition of ``items``."""
    world = reader.starts()
    world.create_topic(3, topic="items")
    for group in ("orders-eu", "orders-us", "billing"):
        committed(world, group, {f"{group}.sent": [3, 4, 5]})
    world.produce("items", 0, 5)
    committed(world, "orders-apac", {"items": [3, 0]})
    [fleet] = blocks(PAGES["docs/fleets.md"].read_text(), "toml")
    (reader.folder / "fleet.toml").write_text(fleet)
    reader.reads("docs/fleets.md", codes={"--dry-run": 3})


def in_production(reader: Reader) -> None:
    world = reader.starts()
    for group in ("big-group", "staging-big-group"):
        committed(world, group, BIG)
    (reader.folder / "split.toml").write_text(TOML)

    def new_groups_work() -> None:
        for group, topic in (("billing", "invoices"), ("search", "search.clicks")):
            commits_as_member(world, group, {topic: [BIG[topic][0] + 1]})

    reader.reads("docs/runbook.md", before={"audit": new_groups_work})


def in_json(reader: Reader) -> None:
    committed(reader.starts(), "big-group", BIG)
    (reader.folder / "split.toml").write_text(TOML)
    if not shutil.which("jq"):
        pytest.skip("jq is not installed")
    reader.reads("docs/reference/json.md")


def set_up(reader: Reader) -> None:
    committed(reader.starts(), "big-group", BIG)
    (reader.folder / "client.properties").write_text("security.protocol=PLAINTEXT\n")
    reader.names["FILE"] = "client.properties"
    reader.reads("docs/connecting.md")
    reader.type("export HOME=$PWD")  # because the completion of the shell is installed there
    reader.reads("docs/install.md")
    reader.reads("docs/sandbox.md")
    export = "migrate-groups export before.csv -o offsets.csv"
    reader.type("migrate-groups snapshot big-group -o good.csv")
    reader.type(f"sed '3s/,60,/,1.361E+03,/' good.csv > before.csv; {export}", code=2)
    reader.type(f"head -c -1 good.csv > before.csv; {export}", code=2)
    reader.type(f"(cat good.csv; sed -n 3p good.csv) > before.csv; {export}", code=2)
    reader.reads("docs/reference/files.md")
