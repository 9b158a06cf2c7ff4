"""Commits that wait for a replica, on the in-memory cluster: every command that writes reads them, or is refused."""

from __future__ import annotations

import pytest

from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, OWN_GROUPS, log_partition, probe_group
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from tests.support.connected import APPLY, MIGRATE, PARTITION, Connected
from tests.support.in_memory import OFFSETS_PARTITIONS

RUN = "split.toml.run"
AWAY = ("rollback", RUN, "--yes"), ("delete-offsets", RUN, "--yes"), ("hand-back", RUN, "--wait", "0s", "--yes")
DELETE = ("delete-offsets", "--group", "old", "--topic", "t", "--settle", "0s", "--yes")
PROBE = probe_group(log_partition("old", OFFSETS_PARTITIONS), OFFSETS_PARTITIONS)


def probes(cli: Connected) -> list[str]:
    return [each.group for each in cli.cluster.list_groups() if each.group.startswith(f"{OWN_GROUPS}barrier.")]


def commit_unreplicated(cli: Connected, group: str, offset: int, *, past_timeout: bool = False) -> None:
    cli.cluster.hang_follower(past_timeout=past_timeout)
    cli.cluster.commit(group, PARTITION, offset)


@pytest.mark.parametrize("partitions", [1, 4, 50])
def test_the_probe_group_is_on_the_wanted_partition(partitions):
    """A probe group's commits go to the partition of ``__consumer_offsets`` that is in its name.

    All names have the documented prefix.
    """
    for number in range(partitions):
        name = probe_group(number, partitions)
        assert log_partition(name, partitions) == number
        assert name.startswith(f"migrate-groups.barrier.{number}-")


def test_migrate_hands_over_a_commit_that_waits_for_a_replica(cli):
    """A commit was accepted and is not readable yet: `migrate` waits for it, and hands it over. No probe is left."""
    commit_unreplicated(cli, "old", 8)
    cli(*MIGRATE)
    assert cli.offset("new") == 8
    assert probes(cli) == []


@pytest.mark.parametrize("command", [APPLY, DELETE])
def test_a_commit_that_waited_for_a_replica_is_seen(cli, command):
    """`apply` of a file and ``delete-offsets --group`` are refused, because the group has committed meanwhile."""
    commit_unreplicated(cli, "old", 8)
    assert "not moved: " in cli.fails(*command, code=3)
    assert (cli.offset("old"), cli.offset("new")) == (8, None)
    assert probes(cli) == []


@pytest.mark.parametrize("command", AWAY[:2])
def test_a_way_back_sees_a_commit_that_waited_for_a_replica(cli, command):
    """`rollback` and `delete-offsets` are refused if a group has committed, even if the commit waited."""
    cli(*MIGRATE)
    commit_unreplicated(cli, "new" if command[0] == "rollback" else "old", 8)
    cli.fails(*command, code=3)
    assert probes(cli) == []


def test_hand_back_takes_a_commit_that_waited_for_a_replica(cli):
    """`hand-back` sets the source group to the offset that the target group committed last, even if it waited."""
    cli(*MIGRATE)
    commit_unreplicated(cli, "new", 8)
    cli(*AWAY[2])
    assert cli.offset("old") == 8


@pytest.mark.parametrize("command", [MIGRATE, APPLY, DELETE])
def test_a_commit_that_waits_past_the_timeout_is_a_refusal(cli, command):
    """If the probe gets no answer within the time-out, nothing is written. The same command again sees the commit."""
    commit_unreplicated(cli, "old", 8, past_timeout=True)
    refusal = cli.fails(*command, code=3)
    assert "barrier: no answer to the commit to " in refusal
    assert f"{PROBE} (COORDINATOR_NOT_AVAILABLE)" in refusal
    assert "nothing was written" in refusal
    cli.cluster.follower_goes_on()
    assert (cli.offset("old"), cli.offset("new")) == (8, None)
    code, *_ = cli.outcome(*command)
    assert code == (0 if command is MIGRATE else 3 if command is APPLY else 0)
    assert cli.offset("new") == (8 if command is MIGRATE else None)


@pytest.mark.parametrize("command", AWAY)
def test_a_way_back_is_refused_while_the_probe_has_no_answer(cli, command):
    """`rollback`, `delete-offsets` and `hand-back` write nothing if the probe gets no answer within the time-out."""
    cli(*MIGRATE)
    cli.cluster.hang_follower(past_timeout=True)
    assert "barrier: no answer" in cli.fails(*command, code=3)
    assert (cli.offset("old"), cli.offset("new")) == (5, 5)


def hide_offsets_topic(cli: Connected) -> None:
    cli.cluster.delete_topic(OFFSETS_TOPIC)


def deny_the_probe(cli: Connected) -> None:
    cli.cluster.deny(Resource(ResourceType.GROUP, PROBE), Operation.READ)


@pytest.mark.parametrize(
    ("deny", "reason"),
    [
        (hide_offsets_topic, "may not describe Topic '__consumer_offsets'"),
        (deny_the_probe, f"lacks Read on Group '{PROBE}'"),
    ],
)
def test_without_the_barrier_settle_must_be_ten_seconds(cli, deny, reason):
    """If the tool may not commit to a probe group, or can't know its name, a short ``--settle`` is refused.

    With ``--settle 10s`` the plan warns, also in a dry run.
    """
    deny(cli)
    refusal = cli.fails(*MIGRATE, code=3)
    assert reason in refusal
    assert "pass --settle 10s" in refusal
    said = cli("migrate", "split.toml", "--settle", "10s", "--dry-run").stdout
    assert any(line.startswith("warn") and "barrier" in line and reason in line for line in said.splitlines())


def test_a_probe_that_can_not_be_deleted_is_a_warning(cli):
    """Without Delete on the probe group, the plan warns that the group stays, and the hand-over is done."""
    cli.cluster.deny(Resource(ResourceType.GROUP, PROBE), Operation.DELETE)
    said = cli(*MIGRATE).stdout
    assert f"lacks Delete on Group '{PROBE}'" in said
    assert cli.offset("new") == 5


def test_a_probe_that_a_killed_run_left_is_deleted_by_the_next(cli):
    """A probe group that is left does no harm, and the next run with the same source group deletes it."""
    cli.cluster.commit(PROBE, PARTITION, 0)
    cli(*MIGRATE)
    assert probes(cli) == []


def test_a_dry_run_commits_no_probe(cli, monkeypatch):
    """A dry run shows the check ``barrier``, and commits to no group."""
    monkeypatch.setattr(cli.cluster, "commit_probes", None)
    assert PROBE in cli("migrate", "split.toml", "--dry-run").stdout
    assert probes(cli) == []
