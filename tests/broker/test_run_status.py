"""``status`` on a real broker: it says what each command then does, and writes nothing."""

from __future__ import annotations

import json

from migrate_groups.model.partitions import TopicPartition
from tests.support.old_group import Old

NOW = ("--settle", "0s", "--guard", "0s", "--yes")
COMMANDS = ("migrate", "rollback", "hand-back", "delete-offsets")


def test_it_agrees_with_the_commands(here, world, bootstrap_servers, monkeypatch):
    """In each state of a run, `status` says ``refused`` or ``done`` exactly if the dry run of the command does."""
    monkeypatch.setitem(here.environment, "MIGRATE_GROUPS_BOOTSTRAP_SERVER", bootstrap_servers)
    old = Old(here, world)

    def check() -> list[str]:
        before = [world.committed(group) for group in (old.group, old.pay_group, old.find_group)]
        found = json.loads(here("status", "split.toml.run", "--format", "json").stdout)
        assert before == [world.committed(group) for group in (old.group, old.pay_group, old.find_group)]
        answers = {name: each["answer"] for name, each in zip(COMMANDS, found["commands"], strict=True)}
        for name in COMMANDS[1:]:
            code, out, err = here.outcome(name, "split.toml.run", "--dry-run")
            if code == 0:
                assert answers[name] == ("done" if "nothing was written" in err else "allowed"), (name, out, err)
            else:
                assert (code, answers[name]) == (3, "refused"), (name, err)
        return [*answers.values()]

    here("migrate", "split.toml", *NOW)
    assert check() == ["allowed"] * 4
    here("rollback", "split.toml.run", "--yes")
    assert check() == ["allowed", "done", "refused", "refused"]
    here("migrate", "split.toml", *NOW)
    consumer = world.join(old.pay_group, old.pay)
    assert check() == ["done", "refused", "allowed", "allowed"]
    world.consume(consumer, 2)
    consumer.commit(asynchronous=False)
    world.leave(consumer)
    assert check() == ["done", "refused", "allowed", "allowed"]
    here("delete-offsets", "split.toml.run", "--yes")
    assert check() == ["refused", "refused", "allowed", "done"]
    here("hand-back", "split.toml.run", "--wait", "0s", "--yes")
    assert check() == ["allowed", "refused", "done", "refused"]
    assert TopicPartition(old.pay, 0) in world.committed(old.group)
