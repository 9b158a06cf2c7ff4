"""The Dockerfile, tested without a container engine: what it copies, as which user it runs, and its pip commands."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
_TEXT = (ROOT / "Dockerfile").read_text()
_SECONDS = 500


class Stage(NamedTuple):
    """A stage of the Dockerfile: its base, and its instructions as pairs of a keyword and its arguments."""

    base: str
    instructions: list[tuple[str, str]]

    def all_of(self, keyword: str) -> list[str]:
        """Return the arguments of each instruction with this keyword, such as ``COPY``."""
        return [arguments for word, arguments in self.instructions if word == keyword]


def stages() -> dict[str, Stage]:
    """Return the Dockerfile's stages by name, in the order of the file."""
    found: dict[str, Stage] = {}
    lines = re.sub(r"^#.*\n", "", _TEXT, flags=re.M).replace("\\\n", "").splitlines()
    for keyword, arguments in (line.split(maxsplit=1) for line in lines if line):
        if keyword == "FROM":
            base, as_, name = arguments.split()
            assert as_ == "AS"
            found[name] = Stage(base, [])
        else:
            found[name].instructions.append((keyword, arguments))
    return found


STAGES = stages()


def chain(name: str) -> list[tuple[str, str]]:
    """Return the instructions of a stage, preceded by those of the stages that it is based on."""
    stage = STAGES[name]
    return [*(chain(stage.base) if stage.base in STAGES else []), *stage.instructions]


def last(name: str, keyword: str) -> str:
    return [arguments for word, arguments in chain(name) if word == keyword][-1]


def copied() -> list[str]:
    """Return the paths that the Dockerfile copies from the checkout."""
    copies = [copy.split() for stage in STAGES.values() for copy in stage.all_of("COPY")]
    return [source for *sources, _ in copies if not sources[0].startswith("--from=") for source in sources]


def test_targets():
    """The Dockerfile has the targets `spark` and `cli`. `cli` is the default, because it is the last stage."""
    assert list(STAGES)[-1] == "cli"
    assert "spark" in STAGES


@pytest.mark.parametrize("target", ["cli", "spark"])
def test_an_image_runs_the_command_as_an_unprivileged_user(target):
    """An image runs `migrate-groups` as a user that it creates. Only earlier instructions run as root."""
    words = [word for word, _ in chain(target)]
    assert json.loads(last(target, "ENTRYPOINT")) == ["migrate-groups"]
    assert words[-1] == "USER"
    created = re.search(r"useradd --uid (\d+) --create-home (\S+)", " ".join(STAGES["base"].all_of("RUN")))
    assert created
    assert int(created[1]) > 0
    assert last(target, "USER") == created[2]


@pytest.mark.parametrize(("target", "built"), [("cli", "build"), ("spark", "build-spark")])
def test_an_image_has_the_environment_that_its_build_stage_made(target, built):
    """An image has its build stage's virtual environment at the same path, and the environment's programs on PATH."""
    assert STAGES[target].all_of("COPY") == [f"--from={built} /opt/migrate-groups /opt/migrate-groups"]
    assert "python -m venv /opt/migrate-groups" in [arguments for _, arguments in chain(built)]
    assert "PATH=/opt/migrate-groups/bin:$PATH" in STAGES["base"].all_of("ENV")


def test_only_spark_has_java():
    """The image of target `spark` has Java 17; the image of target `cli` has no Java."""
    assert "openjdk-17-jre-headless" in last("spark", "RUN")
    assert "jre" not in " ".join(arguments for _, arguments in chain("cli"))


def test_base_images_are_pinned_and_name_no_registry():
    """All stages use the same Python image as their base, with its full version, and without a registry's host name."""
    [image] = {stage.base for stage in STAGES.values()} - STAGES.keys()
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", image)
    python = re.findall(r"Python :: (3\.\d+)\"", (ROOT / "pyproject.toml").read_text())
    assert image.removeprefix("python:").rpartition(".")[0] in python
    assert "://" not in _TEXT


def test_what_is_copied_exists_and_nothing_else_is_sent():
    """Each path that the Dockerfile copies exists, and .dockerignore lets only these paths into the build."""
    assert [path for path in copied() if not (ROOT / path).exists()] == []
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    ignored, *rest = [line for line in lines if line and not line.startswith("#")]
    assert ignored == "*"
    assert sorted(copied()) == sorted(line.removeprefix("!") for line in rest if line.startswith("!"))
    assert fnmatch.filter([line for line in rest if not line.startswith("!")], "**/__pycache__") == rest[-1:]


@pytest.mark.long
@pytest.mark.parametrize(("stage", "works"), [("build", ["--version"]), ("build-spark", ["reconcile", "--help"])])
def test_the_pip_commands_make_an_environment_that_works(tmp_path, stage, works):
    """The pip commands of a build stage, run in another folder, make an environment in which the command works."""
    build, made = tmp_path / "build", tmp_path / "migrate-groups"
    build.mkdir()
    paths = {"/opt/migrate-groups": str(made), "/build": str(build), "python ": f"{sys.executable} "}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for keyword, arguments in chain(stage):
        for path, here in paths.items():
            arguments = re.sub(rf"(?<![\w/]){re.escape(path)}", here, arguments)
        if keyword == "ENV":
            environment |= dict(pair.split("=", 1) for pair in arguments.split())
            environment.pop("PIP_NO_CACHE_DIR", None)  # because PySpark takes minutes to fetch
        elif keyword == "RUN":
            subprocess.run(["sh", "-ec", arguments], cwd=build, env=environment, check=True, timeout=_SECONDS)
        elif keyword == "COPY":
            *sources, to = arguments.split()
            for source in map(ROOT.joinpath, sources):
                (shutil.copytree(source, build / to) if source.is_dir() else shutil.copy(source, build / to))
        else:
            assert (keyword, arguments) == ("WORKDIR", str(build))
    run = [made / "bin" / "migrate-groups", *works]
    subprocess.run(run, cwd=tmp_path, env=environment, check=True, timeout=_SECONDS)
    extra = subprocess.run([made / "bin" / "python", "-c", "import pyspark"], stderr=subprocess.DEVNULL, check=False)
    assert (extra.returncode == 0) == (stage == "build-spark")
