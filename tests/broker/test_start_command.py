"""``migrate --start-command COMMAND`` on a real broker: the command starts the new applications."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import running, waiting
from tests.support.old_group import Old

# Consumes a topic in a group to the end of both partitions, prints each record, and commits.
APPLICATION = """
import sys
from confluent_kafka import Consumer, KafkaError

servers, group, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "error",
                     "enable.auto.commit": False, "enable.partition.eof": True})
consumer.subscribe([topic])
values, ended = [], set()
while len(ended) < 2:
    message = consumer.poll(30)
    if message.error() is None:
        values.append(message.value().decode())
    elif message.error().code() == KafkaError._PARTITION_EOF:
        ended.add(message.partition())
    else:
        sys.exit(str(message.error()))
consumer.commit(asynchronous=False)
consumer.close()
open(f"{topic}.values", "w").write("\\n".join(values))
print(f"{group} consumed {len(values)}")
"""


def command(cli, servers: str, *applications: tuple[str, str]) -> str:
    """Return a command that runs an application for each (group, topic), one after the other."""
    (cli.folder / "application.py").write_text(APPLICATION)
    lines = [shlex.join([sys.executable, "application.py", servers, *each]) for each in applications]
    script = cli.folder / "start.sh"
    script.write_text("\n".join(["#!/bin/sh -e", *lines, ""]))
    script.chmod(0o755)
    return "./start.sh"


def test_it_starts_real_consumers_which_process_every_record_once(cli, world, bootstrap_servers):
    """If the ``--start-command`` starts a consumer in each target group, old and new consumers process each record
    once.
    """
    old = Old(cli, world)
    consumer = world.join(old.group, old.pay, old.find)
    start = command(cli, bootstrap_servers, (old.pay_group, old.pay), (old.find_group, old.find))
    with waiting(cli, "migrate", "split.toml", "--yes", "--wait", "60s", "--start-command", start) as said:
        values = world.consume(consumer, 6)
        consumer.commit(asynchronous=False)
        world.leave(consumer)
    assert "4 confirmed" in said.out
    assert f"{old.pay_group} consumed " in said.err
    assert f"{old.pay_group} consumed " not in said.out
    for topic in (old.pay, old.find):
        values += Path(cli.folder / f"{topic}.values").read_text().splitlines()
    left = [(partition, number) for partition in (0, 1) for number in range(4 + partition, 10)]
    assert sorted(values) == sorted(f"{topic}-{at}-{number}" for topic in (old.pay, old.find) for at, number in left)


# Consumes 3 records, prints and commits them, and stays a member until SIGTERM. Then it leaves the group.
OLD_APPLICATION = """
import signal, sys
from confluent_kafka import Consumer

servers, group, *topics = sys.argv[1:]
left, ended = 3, []
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False})
consumer.subscribe(topics)
while not ended:
    message = consumer.poll(0.1)
    if message is not None and message.error() is None:
        consumer.commit(message, asynchronous=False)
        print(message.value().decode(), flush=True)
        left -= 1
        if not left:
            consumer.pause(consumer.assignment())
consumer.close()
"""


def test_a_cut_over_without_a_person(cli, world, bootstrap_servers):
    """With ``--stop-command`` and ``--start-command``, `migrate` stops the old application and starts the new ones.

    Together they process each record once.
    """
    old = Old(cli, world)
    command_line = [sys.executable, "-c", OLD_APPLICATION, bootstrap_servers, old.group, old.pay, old.find]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, text=True) as application:
        try:
            assert application.stdout is not None
            values = [application.stdout.readline().strip() for _ in range(3)]
            start = command(cli, bootstrap_servers, (old.pay_group, old.pay), (old.find_group, old.find))
            commands = ("--stop-command", f"kill {application.pid}", "--start-command", start)
            done = cli("migrate", "split.toml", "--yes", "--settle", "1s", "--guard", "1s", *commands)
            values += application.stdout.read().split()
        finally:
            application.kill()
    assert "stopping the old applications: kill" in done.stderr
    for topic in (old.pay, old.find):
        values += Path(cli.folder / f"{topic}.values").read_text().splitlines()
    left = [(partition, number) for partition in (0, 1) for number in range(4 + partition, 10)]
    assert sorted(values) == sorted(f"{topic}-{at}-{number}" for topic in (old.pay, old.find) for at, number in left)


def test_a_command_that_fails_is_exit_4_and_the_offsets_stay(cli, world, bootstrap_servers):
    """If the ``--start-command`` fails, `migrate` ends with exit code 4, and the offsets already written stay.

    A re-run with a command that works completes the migration.
    """
    old = Old(cli, world)
    expected = old.offsets(old.pay)
    error = cli.fails(
        "migrate", "split.toml", "--yes", "--start-command", f"{sys.executable} no-such-script.py", code=4
    )
    assert "ended with exit code 2; the offsets are written and read back" in error
    assert world.committed(old.pay_group) == expected
    cli("migrate", "split.toml", "--yes", "--start-command", command(cli, bootstrap_servers, (old.pay_group, old.pay)))
    assert set(world.committed(old.pay_group).values()) == {10}
    assert "and started since" in cli("migrate", "split.toml", "--yes", "--start-command", "false").stderr


PAIRS = ("HUP INT", "INT TERM", "TERM INT", "INT INT")


@pytest.mark.parametrize("pairs", [PAIRS, pytest.param(PAIRS * 25, marks=pytest.mark.long)], ids=len)
def test_two_signals_from_it(cli, world, pairs):
    """If the ``--start-command`` sends two signals to `migrate`, the exit code is 130.

    The message says that all offsets are written.
    """
    old = Old(cli, world)
    for number, pair in enumerate(pairs):
        kill = "; ".join(f"kill -{each} $PPID" for each in pair.split())
        run = ("--run-dir", f"{number}.run", "--copy", "--rename", f"{old.pay_group}={world.name('new')}")
        done = cli(
            "migrate", "split.toml", "--yes", *run, "--start-command", f"sh -c '{kill}'", "--guard", "60s", code=130
        )
        assert done.stderr.splitlines()[-1] == (
            "interrupted; all offsets are written and read back; --start-command may still be running; "
            f"{number}.run/receipt.json lists what was written: run the same command again to resume"
        )


def test_no_other_command_writes_while_it_runs(cli, world):
    """While the ``--start-command`` still runs after the watch of the old group, `rollback` is refused.

    After its end `rollback` succeeds.
    """
    old = Old(cli, world)
    os.mkfifo(cli.folder / "fifo")
    command = ("migrate", "split.toml", "--yes", "--guard", "0s", "--run-dir", "run", "--start-command", "cat fifo")
    with running(cli, *command) as process:
        assert any("waiting up to 60 s for --start-command to end" in line for line in process.stderr)
        refused = cli.start("rollback", "run", "--yes")
        _, why = refused.communicate(timeout=60)
        (cli.folder / "fifo").write_text("go on")
        _, err = process.communicate(timeout=60)
    assert (refused.returncode, process.returncode) == (3, 0), err
    assert "another run uses run/receipt.json" in why
    cli("rollback", "run", "--yes")
    assert world.committed(old.pay_group) == {}
