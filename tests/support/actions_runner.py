"""Run the steps of action.yml as a runner of GitHub Actions does, with a fake `gh` that stores the comments."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.support.cli import Cli

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
BOT = "github-actions[bot]"
_SECONDS = 500

_GH = """#!{python}
import json, os, pathlib, shutil, sys
folder, arguments = pathlib.Path({folder!r}), sys.argv[1:]
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps([arguments, dict(os.environ)]) + "\\n")
if arguments[:2] == ["run", "download"]:
    shutil.copytree(folder / "artifact", arguments[6] if arguments[5:6] == ["-D"] else ".", dirs_exist_ok=True)
    sys.exit()
store = folder / "comments"
comments = json.loads(store.read_text())
if arguments == ["api", "--paginate", "--jq", ".[]", "repos/acme/groups/issues/7/comments?per_page=100"]:
    print(*map(json.dumps, comments), sep="\\n")
    sys.exit()
api, silent, field, body, method, verb, path = arguments
assert (api, silent, field, method) == ("api", "--silent", "--field", "--method"), arguments
text = pathlib.Path(body.removeprefix("body=@")).read_text()
if (verb, path) == ("POST", "repos/acme/groups/issues/7/comments"):
    comments.append({{"id": 100 + len(comments), "user": {{"login": {bot!r}}}, "body": text}})
else:
    issue, _, number = path.rpartition("/")
    assert (verb, issue) == ("PATCH", "repos/acme/groups/issues/comments"), arguments
    [comment] = [each for each in comments if each["id"] == int(number)]
    comment["body"] = text
store.write_text(json.dumps(comments))
"""
# A fake `python -m venv`. In the environment that it makes, Python is that of the test, pip only records its calls, and
# the command is forked.
_PYTHON = """#!/bin/sh
[ "$1 $2 $3" = "-I -m venv" ] || exit 99
mkdir -p "$4/bin"
cp {tools}/migrate-groups "$4/bin"
cp {tools}/python "$4/bin"
"""
# Without -I, because the test's Python finds this checkout's package through PYTHONPATH.
_PYTHON_THERE = """#!/bin/sh
[ "$1" = -I ] || exit 99
shift
[ "$1 $2" != "-m pip" ] || {{ echo "$@" >> {folder}/pip; exit 0; }}
exec {python} "$@"
"""


class Ran(NamedTuple):
    """The result of running action.yml once: exit code, log, outputs, and the summary of the job."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str


class Runner:
    """A fake runner of GitHub Actions, with a checkout and the comments of pull request 7 of acme/groups.

    real_python: whether the action makes a Python environment and installs the package, as on GitHub. If not, the
    action gets an environment with the Python and the modules of this test.
    """

    def __init__(self, folder: Path, *, real_python: bool = False) -> None:
        self.folder, self.workspace = folder, folder / "checkout"
        self._tools, self._temp, self._event = folder / "tools", folder / "temp of the runner", folder / "event.json"
        for made in (self.workspace, self._tools, self._temp):
            made.mkdir()
        self.push("1a2b3c4")
        self.comments = []
        (folder / "calls").touch()
        command = [sys.executable, "-m", "migrate_groups"]
        there = _PYTHON_THERE.format(folder=shlex.quote(str(folder)), python=shlex.quote(sys.executable))
        self._tool("gh", _GH.format(python=sys.executable, folder=str(folder), bot=BOT))
        self._tool("migrate-groups", f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        self._tool("python", there)
        fake = _PYTHON.format(tools=shlex.quote(str(self._tools)))
        self._tool("python3", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n' if real_python else fake)
        self._environment = Cli(folder).environment | {
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_EVENT_PATH": str(self._event),
            "GITHUB_REPOSITORY": "acme/groups",
            "GITHUB_RUN_ID": "99",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self._temp),
            "RUN": "99",
        }
        self._environment["PATH"] = f"{self._tools}:{self._environment['PATH']}"

    def push(self, commit: str) -> None:
        """Make ``commit`` the last commit of the pull request."""
        self._event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": commit}}}))

    @property
    def comments(self) -> list[dict[str, Any]]:
        """The comments of the pull request, as GitHub's API returns them."""
        return json.loads((self.folder / "comments").read_text())

    @comments.setter
    def comments(self, comments: list[dict[str, Any]]) -> None:
        (self.folder / "comments").write_text(json.dumps(comments))

    @property
    def bodies(self) -> list[str]:
        """The texts of the comments."""
        return [comment["body"] for comment in self.comments]

    def upload(self, plan: str) -> None:
        """Store a plan, or the folder of a fleet's plans, as the artifact that ``gh run download`` fetches."""
        artifact = self.folder / "artifact"
        shutil.rmtree(artifact, ignore_errors=True)
        if Path(plan).is_dir():
            shutil.copytree(plan, artifact)  # an artifact of a folder has the files in it
        else:
            artifact.mkdir()
            shutil.copy(plan, artifact)

    def contexts(self, **more: Any) -> dict[str, Any]:
        """Return GitHub's contexts by name, such as ``github`` for ``${{ github.sha }}``. more: further contexts."""
        event = json.loads(self._event.read_text())
        github = {"event": event, "sha": "of the merge", "token": "the job's token", "ref": "refs/pull/7/merge"}
        return {"github": github, "!cancelled()": True, **more}

    def action(self, inputs: Mapping[str, str]) -> Ran:
        """Run the steps of action.yml with these inputs."""
        assert inputs.keys() <= ACTION["inputs"].keys()
        defaults = {name: about.get("default", "") for name, about in ACTION["inputs"].items()}
        contexts = self.contexts(inputs=defaults | dict(inputs), steps={})
        code, log, summary = 0, "", ""
        for step in ACTION["runs"]["steps"]:
            if code or not evaluate(step.get("if", "true"), contexts | {"true": True}):
                continue
            assert step["shell"] == "bash"
            files = {name: self.folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV")}
            for file in files.values():
                file.write_text("")
            environment = {name: filled(value, contexts) for name, value in step.get("env", {}).items()}
            where = self.workspace / filled(step.get("working-directory", "."), contexts)
            code, said = self.shell(step["run"], where, environment | {name: str(at) for name, at in files.items()})
            log, summary = log + said, summary + files["GITHUB_STEP_SUMMARY"].read_text()
            assert files["GITHUB_ENV"].read_text() == ""
            pairs = [line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines()]
            contexts["steps"][step.get("id", step["name"])] = {"outputs": dict(pairs)}
        outputs = {name: filled(about["value"], contexts) for name, about in ACTION["outputs"].items()}
        return Ran(code, log, outputs, summary)

    def shell(self, lines: str, where: Path | None = None, more: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run a script as GitHub runs a step with ``shell: bash``; return the exit code and the log.

        where: the working directory; None: the checkout. more: additional environment variables.
        """
        script = self.folder / "script.sh"
        script.write_text(lines)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
            cwd=where or self.workspace,
            env=self._environment | dict(more or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
        )
        return done.returncode, done.stdout

    def gh_calls(self) -> list[tuple[list[str], dict[str, str]]]:
        """Return the arguments and the environment of each call of gh."""
        return [tuple(json.loads(line)) for line in (self.folder / "calls").read_text().splitlines()]

    def _tool(self, name: str, text: str) -> None:
        (self._tools / name).write_text(text)
        (self._tools / name).chmod(0o755)


def filled(text: str, contexts: Mapping[str, Any]) -> str:
    """Return ``text`` with each expression ``${{ ... }}`` replaced by its value, as GitHub does it."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda found: str(_value(found[1], contexts)), text)


def evaluate(condition: str, contexts: Mapping[str, Any]) -> bool:
    """Return whether the condition of a step's ``if`` is true."""
    return bool(_value(condition.removeprefix("${{").removesuffix("}}"), contexts))


def _value(expression: str, contexts: Mapping[str, Any]) -> Any:
    """Return the value of an expression of names, quoted texts, ``||``, ``&&``, ``==`` and ``!=``, without brackets."""
    for operator in ("||", "&&", "==", "!="):
        left, found, right = expression.partition(operator)
        if found:
            one, other = _value(left, contexts), _value(right, contexts)
            return {"||": one or other, "&&": one and other, "==": one == other, "!=": one != other}[operator]
    first, *names = expression.strip().split(".")
    if first.startswith("'"):
        return first.strip("'")
    value = contexts[first]
    for name in names:
        value = value.get(name, "") if isinstance(value, dict) else ""
    return value
