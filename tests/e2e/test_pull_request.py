"""The pull-request workflow from the README: its shell lines run on a real broker as GitHub runs them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

from migrate_groups.cli.connect import Connection, open_reader
from migrate_groups.migration.ports import GroupReader, GroupWriter
from migrate_groups.model.partitions import TopicPartition
from tests.support import forked_command, forks
from tests.support.broker_world import broker_world
from tests.support.cli import Cli

ROOT = Path(__file__).parents[2]
_SECONDS = 120


def section() -> str:
    found = re.search(r"^## Reviewed in a pull request$(.*?)^## ", (ROOT / "README.md").read_text(), re.M | re.S)
    assert found
    return found.group(1)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", section(), re.M | re.S)


class Step(NamedTuple):
    """A step of a workflow with shell lines. ``always``: it runs also after a failed step."""

    lines: str
    always: bool


def steps() -> list[Step]:
    """Return the steps of the README's workflow that run shell lines, in order."""
    (workflow,) = blocks("yaml")
    found = []
    for item in re.split(r"^ {6}- ", workflow.partition("    steps:\n")[2], flags=re.M)[1:]:
        step = textwrap.dedent(f"        {item}")
        block, line = re.search(r"^run: \|\n((?:  .*\n)+)", step, re.M), re.search(r"^run: (?!\|)(.+)$", step, re.M)
        if shell := block or line:
            found.append(Step(textwrap.dedent(shell.group(1)), "if: ${{ !cancelled() }}" in step))
    return found


class Runner:
    """A machine that runs workflows, with migrate-groups, and with a gh and a pip that only record their calls."""

    def __init__(self, folder: Path, bootstrap_servers: str) -> None:
        self.folder, tools = folder / "checkout", folder / "tools"
        self._asked = folder / "asked"
        for made in (self.folder, tools, self._asked):
            made.mkdir()
        record = f"""#!{sys.executable}
import json, pathlib, sys
asked = pathlib.Path({str(self._asked)!r})
files = [pathlib.Path(each) for each in sys.argv[1:] if each.endswith(".md")]
call = {{"arguments": sys.argv, "body": "".join(each.read_text() for each in files)}}
(asked / f"{{len(list(asked.iterdir())):03}}").write_text(json.dumps(call))
"""
        command = [sys.executable, "-IS", forked_command.__file__, forks.address(), "migrate_groups"]
        run = f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n'
        for name, script in (("migrate-groups", run), ("gh", record), ("pip", record)):
            (tools / name).write_text(script)
            (tools / name).chmod(0o755)
        self._environment = Cli(folder, bootstrap_servers).environment | {"PULL_REQUEST": "7", "RUN": "99"}
        self._environment["PATH"] = f"{tools}:{self._environment['PATH']}"

    def shell(self, lines: str) -> tuple[int, str]:
        """Run lines as GitHub runs those of a step; return the exit code and the output."""
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", lines]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        return done.returncode, done.stdout + done.stderr

    def workflow(self) -> tuple[int, str]:
        """Run the README's workflow; return the exit code of the first step that fails, and the output of all steps."""
        code, said = 0, ""
        for step in steps():
            if code == 0 or step.always:
                ended, output = self.shell(step.lines)
                code, said = code or ended, said + output
        return code, said

    def asked(self, tool: str) -> list[tuple[list[str], str]]:
        """Return the arguments of each call of a tool, with the text of its Markdown files."""
        calls = [json.loads(path.read_text()) for path in sorted(self._asked.iterdir())]
        return [(call["arguments"][1:], call["body"]) for call in calls if Path(call["arguments"][0]).name == tool]


@pytest.fixture
def world(bootstrap_servers):
    """Deeds of other clients on the broker."""
    with broker_world(bootstrap_servers) as deeds:
        yield deeds


@pytest.fixture
def runner(bootstrap_servers, tmp_path) -> Runner:
    """A runner that reaches the broker."""
    return Runner(tmp_path, bootstrap_servers)


class Review:
    """A group with committed offsets for two topics, and a checkout with a split.toml for two target groups."""

    def __init__(self, runner: Runner, world) -> None:
        self.world, self.old = world, world.name("big")
        self.pay, self.find = (world.create_topic(2, topic=world.name(what)) for what in ("pay", "find"))
        for topic in (self.pay, self.find):
            for partition in (0, 1):
                world.produce(topic, partition, 10)
                world.commit(self.old, TopicPartition(topic, partition), 4)
        (runner.folder / "split.toml").write_text(
            f"""
            source = "{self.old}"
            [[target]]
            group = "{self.old}-billing"
            topics = ["{self.pay}"]
            [[target]]
            group = "{self.old}-search"
            topics = ["{self.find}"]
            [options]
            settle = "0s"
            guard = "0s"
            """
        )

    def committed(self) -> dict[TopicPartition, int]:
        """Return the committed offsets of the target groups."""
        return self.world.committed(f"{self.old}-billing") | self.world.committed(f"{self.old}-search")


@pytest.fixture
def review(runner, world) -> Review:
    """The group and the checkout that the pull request is about."""
    return Review(runner, world)


CUT_OVER, AS_REVIEWED = range(2)


def test_a_live_group_is_reviewed_and_cut_over_as_approved(runner, review, world):
    """The comment shows a pending plan that passes; the cut-over takes the approved intent and the last offsets."""
    member = world.join(review.old, review.pay, review.find)
    code, said = runner.workflow()
    assert code == 0, said
    assert [arguments for arguments, _ in runner.asked("pip")] == [["install", "./migrate_groups"]]
    [(arguments, comment)] = runner.asked("gh")
    assert arguments == ["pr", "comment", "7", "--body-file", "plan.md"]
    assert comment.startswith("### Consumer groups: 4 partitions (4 create)\n\n**pending**: ")
    assert f"| `{review.old}` | `{review.old}-billing` | 1 | 2 |" in comment
    assert f"| `{review.find}` | 1 | - | 4 | create |" in comment
    assert review.committed() == {}
    world.leave(member)
    world.commit(review.old, TopicPartition(review.pay, 1), 9)
    code, said = runner.shell(blocks("sh")[CUT_OVER])
    assert code == 0, said
    assert runner.asked("gh")[-1][0] == ["run", "download", "99", "-n", "plan"]
    assert review.committed() == world.committed(review.old)
    assert review.committed()[TopicPartition(review.pay, 1)] == 9


def test_a_stopped_group_is_applied_as_reviewed(runner, review, world):
    """The offsets that the pull request showed are written, and the receipt is next to the plan."""
    code, said = runner.workflow()
    assert code == 0, said
    plan = json.loads((runner.folder / "plan.json").read_text())
    code, said = runner.shell(blocks("sh")[AS_REVIEWED])
    assert code == 0, said
    assert {
        TopicPartition(change["topic"], change["partition"]): change["after"]["offset"] for change in plan["changes"]
    } == review.committed()
    receipt = json.loads((runner.folder / "plan.json.receipt.json").read_text())
    assert (receipt["executions"][0]["intent"], receipt["executions"][0]["content"]) == (
        plan["intent"],
        plan["content"],
    )
    assert {entry["outcome"] for entry in receipt["entries"]} == {"confirmed"}


def test_a_plan_that_went_stale_after_the_review_is_refused(runner, review, world):
    """After moved offsets, a changed target or deleted records the plan is refused by partition; nothing is written."""
    assert runner.workflow()[0] == 0
    world.commit(review.old, TopicPartition(review.pay, 0), 8)
    world.commit(f"{review.old}-billing", TopicPartition(review.pay, 1), 2)
    world.delete_records(review.find, 0, 6)
    code, said = runner.shell(blocks("sh")[AS_REVIEWED])
    assert code == 3
    assert "the plan is stale: 3 partitions changed since it was made" in said
    assert f"{review.pay}-0 (source {review.old} 4 → 8)" in said
    assert f"{review.pay}-1 (target nothing → 2)" in said
    assert f"{review.find}-0 (4 is below the log start offset 6: 2 records gone)" in said
    assert review.committed() == {TopicPartition(review.pay, 1): 2}


def test_a_refused_plan_fails_the_job_and_is_commented_all_the_same(runner, review, world):
    """A refused check is exit 3, and the comment names the check and the reason."""
    world.commit(f"{review.old}-search", TopicPartition(review.find, 0), 7)
    code, said = runner.workflow()
    assert code == 3, said
    [(_, comment)] = runner.asked("gh")
    assert "**refuse** existing offsets: 1 partition with another offset" in comment
    assert "refused: nothing can be written" in comment


def test_without_a_cluster_there_is_no_comment(tmp_path):
    """Without a cluster the job fails with the error, and there is no comment."""
    runner = Runner(tmp_path, "127.0.0.1:1")
    (runner.folder / "split.toml").write_text('source = "a"\n[[target]]\ngroup = "b"\ntopics = ["t"]\n')
    code, said = runner.workflow()
    assert (code, runner.asked("gh")) == (5, [])
    assert "127.0.0.1:1" in said


def test_a_plan_is_taken_from_a_pipe(runner, review):
    """``apply -`` takes a plan from stdin; the path of the receipt must be given then."""
    assert runner.workflow()[0] == 0
    code, said = runner.shell("migrate-groups apply - --yes < plan.json")
    assert (code, "--receipt" in said) == (2, True)
    code, said = runner.shell("migrate-groups apply - --yes --receipt r.json < plan.json")
    assert code == 0, said
    assert len(review.committed()) == 4


def test_a_dry_run_has_no_way_to_write(bootstrap_servers):
    """The reader of a dry run has every method of `GroupReader`, and no method that writes."""
    with open_reader(Connection(bootstrap_servers, None, None, "20s")) as reader:
        there = {name for name in dir(GroupWriter) if not name.startswith("_") and hasattr(reader, name)}
    assert there == {name for name in dir(GroupReader) if not name.startswith("_")}


def test_the_workflow_says_where_its_values_come_from():
    """The workflow sets every variable that the shell lines use, and inserts no text into the lines."""
    (workflow,) = blocks("yaml")
    lines = "".join(step.lines for step in steps())
    assert set(re.findall(r"\$(\w+)", lines)) == {"PULL_REQUEST"}
    assert {"PULL_REQUEST", "GH_TOKEN", "MIGRATE_GROUPS_BOOTSTRAP_SERVER"} <= set(
        re.findall(r"^ {6}(\w+): ", workflow, re.M)
    )
    assert "${{" not in lines
    assert [step.always for step in steps()] == [False, False, True]
