"""The recipes of docs/automate.md: the files in docs/recipes are valid, and the script does what `migrate` needs."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer.main
import yaml

from migrate_groups.cli.registry import command_line
from migrate_groups.model.groups import Member
from tests.support.pages import PAGES, ROOT, commands

RECIPES = ROOT / "docs" / "recipes"
# Keeps the replicas of each Deployment in a file of this name, as a cluster does. The Deployment "away" is none.
KUBECTL = """#!/bin/sh
set -eu
[ "$3" != away ] || exit 1
case "$1" in
get) cat "$KUBE/$3" ;;
scale) echo "${4#--replicas=}" >"$KUBE/$3" ;;
esac
"""


class Deployments:
    """Deployments and their replicas, which the script of the recipe scales with a ``kubectl`` of this test."""

    def __init__(self, folder: Path, **replicas: int) -> None:
        self.run_dir, self._kube, programs = (folder / name for name in ("run", "kube", "programs"))
        for each in (self.run_dir, self._kube, programs):
            each.mkdir()
        (programs / "kubectl").write_text(KUBECTL)
        (programs / "kubectl").chmod(0o755)
        self.script = RECIPES / "scale.sh"
        self.environment = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "KUBE": str(self._kube),
            "MIGRATE_GROUPS_RUN_DIR": str(self.run_dir),
        }
        for name, number in replicas.items():
            (self._kube / name).write_text(f"{number}\n")

    def scale(self, *words: str) -> int:
        """Run the script as `migrate` does, and return its exit code."""
        command = ["sh", str(self.script), *words]
        return subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, check=False).returncode

    def replicas(self, *names: str) -> list[int]:
        return [int((self._kube / name).read_text()) for name in names]


def test_the_script_stops_and_starts_deployments(tmp_path):
    """The old Deployments get 0 replicas, the new ones those of the command line."""
    made = Deployments(tmp_path, big=3, more=2, billing=0, search=0)
    assert made.scale("stop", "big", "more") == 0
    assert made.replicas("big", "more") == [0, 0]
    assert made.scale("start", "billing=3", "search=2") == 0
    assert made.replicas("billing", "search") == [3, 2]


def test_the_script_starts_the_old_deployments_again_after_a_repeated_stop(tmp_path):
    """After a stop that ran twice, as in a re-run, the old Deployments get the replicas from before the first stop."""
    made = Deployments(tmp_path, big=3, more=2)
    assert [made.scale("stop", "big", "more"), made.scale("stop", "big", "more")] == [0, 0]
    assert made.scale("restart", "big", "more") == 0
    assert made.replicas("big", "more") == [3, 2]


def test_a_failed_stop_fails_the_command_and_can_be_taken_back(tmp_path):
    """If a Deployment can't be stopped, the script fails; a restart starts those that were stopped."""
    made = Deployments(tmp_path, big=3)
    assert made.scale("stop", "big", "away") != 0
    assert made.replicas("big") == [0]
    assert made.scale("restart", "big", "away") == 0
    assert made.replicas("big") == [3]
    assert made.scale("stopp", "big") == 2


def test_migrate_calls_the_script(cli, tmp_path):
    """`migrate` stops and starts Deployments with the script; if the write is refused, it starts the old ones again."""
    made = Deployments(tmp_path, big=3, billing=0)
    cli.environment |= {name: made.environment[name] for name in ("PATH", "KUBE")}
    command = ("migrate", "split.toml", "--yes", "--stop-command", f"sh {made.script} stop big")
    cli.cluster.join("old", Member(member_id="m", client_id="app", host="/h", subscription=frozenset("t")))
    refused = cli(*command, "--restart-command", f"sh {made.script} restart big", "--wait", "1s", code=3).stderr
    assert "not stopped" in refused
    assert "--restart-command has started the old applications again" in refused
    assert made.replicas("big") == [3]
    cli.cluster.leave("old", "m")
    cli(*command, "--start-command", f"sh {made.script} start billing=2")
    assert made.replicas("big", "billing") == [0, 2]


def option_names() -> set[str]:
    migrate = typer.main.get_group(command_line()).commands["migrate"]
    return {option for each in migrate.params for option in each.opts}


def check(words: Sequence[str]) -> dict[str, str]:
    """Check the words of a ``migrate`` command, and return its three commands by the name of their option."""
    options = [word.partition("=") for word in words if word.startswith("--")]
    assert {name for name, _, _ in options} <= option_names()
    assert "--yes" in words
    assert sum(word.startswith("--approved") for word in words) == 1
    given = {name: value or words[words.index(name) + 1] for name, _, value in options if name.endswith("-command")}
    assert set(given) == {"--stop-command", "--start-command", "--restart-command"}
    assert all(shlex.split(command) for command in given.values())
    return given


def test_the_job_calls_the_script_on_a_volume_that_stays():
    """The manifest is YAML; the Job may scale Deployments, and its run directory is on a claimed volume."""
    documents = list(yaml.safe_load_all((RECIPES / "job.yaml").read_text()))
    assert [each["kind"] for each in documents] == [
        *("ServiceAccount", "Role", "RoleBinding", "PersistentVolumeClaim", "Job")
    ]
    _, role, _, claim, job = documents
    assert {"deployments", "deployments/scale"} == {name for rule in role["rules"] for name in rule["resources"]}
    pod = job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    given = check(container["args"])
    assert [command.split()[:3] for command in given.values()] == [
        ["sh", "/plan/scale.sh", verb] for verb in ("stop", "start", "restart")
    ]
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    [run_dir] = [word.partition("=")[2] for word in container["args"] if word.startswith("--run-dir=")]
    [volume] = [each for each in pod["volumes"] if each["name"] == mounts[str(Path(run_dir).parent)]]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]


def test_the_commands_of_the_page_make_what_the_job_mounts():
    """The page makes the ConfigMap with each file that the Job calls, and the Secret with its variables."""
    *_, job = yaml.safe_load_all((RECIPES / "job.yaml").read_text())
    pod = job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    config, secret, *_ = [
        shlex.split(each) for each in commands(PAGES["docs/automate.md"].read_text()) if each.startswith("kubectl ")
    ]
    files = {each.removeprefix("--from-file=") for each in config if each.startswith("--from-file=")}
    assert files == set(re.findall(r"/plan/([\w.]+)", " ".join(container["args"])))
    [volume] = [each["configMap"]["name"] for each in pod["volumes"] if "configMap" in each]
    assert config[:4] == ["kubectl", "create", "configmap", volume]
    [source] = container["envFrom"]
    assert secret[:5] == ["kubectl", "create", "secret", "generic", source["secretRef"]["name"]]


def test_the_unit_runs_migrate(tmp_path):
    """The unit of systemd has one command of ``migrate``; systemd accepts it, if it is on this machine."""
    text = (RECIPES / "cut-over.service").read_text()
    unit = configparser.ConfigParser()
    unit.read_string(text.replace("\\\n", ""))
    program, verb, *words = shlex.split(unit["Service"]["ExecStart"])
    assert (Path(program).name, verb) == ("migrate-groups", "migrate")
    assert all(command.startswith("systemctl ") for command in check(words).values())


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not on this machine")
def test_systemd_accepts_the_unit(tmp_path):
    """``systemd-analyze verify`` finds nothing wrong with the unit but that the program is not installed."""
    path = tmp_path / "cut-over.service"
    text = (RECIPES / "cut-over.service").read_text()
    path.write_text(text.replace("/opt/migrate-groups/bin/migrate-groups", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert "cut-over.service" not in done.stderr, done.stderr


def test_the_playbook_takes_what_the_commands_pass():
    """The playbook is YAML, and its variables are those that the commands of ``migrate`` pass."""
    text = (RECIPES / "applications.yml").read_text()
    [play] = yaml.safe_load(text)
    assert [*play] == ["hosts", "tasks"]
    [line] = [each for each in commands(PAGES["docs/automate.md"].read_text()) if "ansible-playbook" in each]
    _, verb, *words = shlex.split(line)
    assert verb == "migrate"
    for command in check(words).values():
        program, file, *variables = shlex.split(command)
        assert (program, file) == ("ansible-playbook", "applications.yml")
        for variable in variables[1::2]:
            assert f"{{{{ {variable.partition('=')[0]} }}}}" in text
