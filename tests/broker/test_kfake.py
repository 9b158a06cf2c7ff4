"""The whole scenario on kfake, a broker of franz-go's tests that shares no code with Apache Kafka.

The program in tests/data/kfake runs it. It needs Go, which fetches kfake from the Go module proxy. Without Go these
tests are skipped. kfake has no ``__consumer_offsets``, so writes need ``--settle 10s``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.test_offers import the_whole_scenario
from tests.support.broker_world import BrokerWorld, broker_world
from tests.support.cli import CliHere
from tests.support.old_group import Old

SOURCE = Path(__file__).parents[1] / "data" / "kfake"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerWorld]:
    """Clients of a kfake, which has been built for these tests."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("kfake is not tested: there is no go on the PATH")
    program = tmp_path_factory.mktemp("kfake") / "kfake"
    subprocess.run([go, "build", "-o", program, "."], cwd=SOURCE, check=True)
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            with broker_world(process.stdout.readline().strip()) as found:
                yield found
        finally:
            process.terminate()


@pytest.fixture
def old(world, here: CliHere, monkeypatch) -> Old:
    monkeypatch.setitem(here.environment, "MIGRATE_GROUPS_BOOTSTRAP_SERVER", world.bootstrap_servers)
    return Old(here, world)


def test_kfake_takes_the_whole_scenario(here: CliHere, old: Old):
    """Each command does what it does with Apache Kafka. The dry run says what is not known, before the stop."""
    plan = the_whole_scenario(here, old, settle=("--settle", "10s"))
    assert re.search(r"not known +hidden topics .* audit can't prove this run later\n", plan)
    assert re.search(r"warn +barrier ", plan)
    assert re.search(r"not known +retention ", plan)


def test_kfake_refuses_a_write_without_settle(here: CliHere, old: Old):
    """Without ``__consumer_offsets`` there is no barrier, so ``--settle 0s`` is refused with what to do."""
    error = here.fails("migrate", "split.toml", "--settle", "0s", "--guard", "0s", "--yes", code=3)
    assert "pass --settle 10s to hand over without it; nothing was written" in error
    assert old.pay_group not in old.world.groups()


def test_kfake_with_a_living_consumer(here: CliHere, old: Old):
    """`migrate` waits while a consumer of the group lives. When it has left, its offsets are handed over."""
    expected, member = old.offsets(old.pay), old.world.join(old.group, old.pay, old.find)
    process = here.start("migrate", "split.toml", "--settle", "10s", "--guard", "0s", "--yes")
    assert any(f" s  {old.group} " in line for line in process.stderr)  # it waits
    old.world.leave(member)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert old.world.committed(old.pay_group) == expected
