"""The wheel and the sdist of a release: what they contain, and that they can be installed and run."""

from __future__ import annotations

import email
import json
import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

import migrate_groups

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RELEASE = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "release.py")))
VERSION = f"migrate-groups {migrate_groups.__version__}"
_SECONDS = 500


class Packages(NamedTuple):
    """The files that a release publishes."""

    wheel: Path
    sdist: Path


def run(*arguments: str | Path, folder: Path, **environment: str | Path) -> str:
    """Run a program outside of the checkout, check that it succeeds, and return its stdout."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MIGRATE_GROUPS_"))}
    variables = clean | {name: str(value) for name, value in environment.items()}
    done = subprocess.run(arguments, cwd=folder, env=variables, capture_output=True, text=True, timeout=_SECONDS)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def error(*arguments: str | Path, folder: Path) -> str:
    """Run a program, check that it fails, and return its output."""
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=_SECONDS)
    assert done.returncode != 0
    return done.stdout + done.stderr


def build(source: Path, *kinds: str, to: Path) -> None:
    """Build packages of ``source`` with this environment's build backend, so that no network is needed."""
    targets = [word for kind in kinds for word in ("-t", kind)]
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", to, *targets], cwd=source, check=True)


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Packages:
    """The packages, built from the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, "wheel", "sdist", to=folder)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Packages(wheel, sdist)


@pytest.fixture
def environment(tmp_path) -> Path:
    """The ``bin`` folder of a new virtual environment with pip."""
    venv.create(tmp_path / "environment", with_pip=True)
    return tmp_path / "environment" / "bin"


def files_of(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def sources(*folders: str) -> set[str]:
    """Return the paths of the files in these folders of the checkout, without compiled Python files."""
    found = {path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()}
    return {str(path) for path in found if "__pycache__" not in path.parts and path.suffix != ".pyc"}


def test_the_wheel_has_the_package_and_nothing_else(packages):
    """The wheel has every file of the package, such as templates and py.typed, and no tests."""
    own = {name for name in files_of(packages.wheel) if ".dist-info/" not in name}
    assert own == sources("migrate_groups")
    assert {"migrate_groups/py.typed", "migrate_groups/show/templates/report.html"} <= own


def test_the_metadata_of_the_wheel(packages):
    """The wheel's metadata has the name, the license, the dependencies and the command.

    It has no URL until the project has an address.
    """
    files = files_of(packages.wheel)
    [metadata] = [email.message_from_bytes(text) for name, text in files.items() if name.endswith("/METADATA")]
    assert (metadata["Name"], metadata["Version"]) == ("migrate-groups", migrate_groups.__version__)
    assert (metadata["License-Expression"], metadata["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    needed = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert len(needed) == len(PROJECT["dependencies"])
    [commands] = [text.decode() for name, text in files.items() if name.endswith("/entry_points.txt")]
    assert commands == "[console_scripts]\nmigrate-groups = migrate_groups.cli.app:main\n"
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in files)
    assert metadata.get_all("Project-URL", []) == []


def test_the_sdist_has_the_tests_and_builds_the_same_wheel(packages, tmp_path):
    """The sdist has the checkout's sources, tests and docs.

    A wheel that is built from the sdist equals the published wheel.
    """
    with tarfile.open(packages.sdist) as opened:
        opened.extractall(tmp_path)  # noqa: S202  our own; before Python 3.11.4 there is no filter
    [source] = tmp_path.iterdir()
    there = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    assert sources("migrate_groups", "tests", "scripts", "docs") <= there
    build(source, "wheel", to=tmp_path / "again")
    [again] = (tmp_path / "again").iterdir()
    assert (again.name, files_of(again)) == (packages.wheel.name, files_of(packages.wheel))


def test_the_installed_wheel_runs(packages, tmp_path):
    """After the wheel is installed, the command and the import work without the checkout.

    The dependencies are those of this environment, so that no network is needed.
    """
    venv.create(tmp_path / "environment", with_pip=False)
    there = tmp_path / "environment" / "bin"
    pip = (sys.executable, "-m", "pip", "--python", there / "python")
    run(*pip, "install", "--no-deps", "--no-index", packages.wheel, folder=tmp_path)
    ours = os.pathsep.join(path for path in sys.path if path.endswith("-packages"))
    assert run(there / "migrate-groups", "--version", folder=tmp_path, PYTHONPATH=ours).strip() == VERSION
    assert "Migrate Kafka consumer groups" in run(there / "migrate-groups", "--help", folder=tmp_path, PYTHONPATH=ours)
    home = run(
        there / "python",
        "-c",
        "import migrate_groups; print(migrate_groups.__file__)",
        folder=tmp_path,
        PYTHONPATH=ours,
    )
    assert Path(home.strip()).is_relative_to(tmp_path)
    assert Path(home.strip()).with_name("py.typed").exists()


@pytest.mark.long
def test_pip_installs_the_wheel_with_its_dependencies(packages, environment, tmp_path):
    """After pip has installed the wheel and its dependencies, the command and the import work.

    Without the extra ``spark``, ``reconcile`` fails and prints the pip command that installs it.
    """
    run(environment / "python", "-m", "pip", "install", packages.wheel, folder=tmp_path)
    assert run(environment / "migrate-groups", "--version", folder=tmp_path).strip() == VERSION
    code = "import migrate_groups as m; [getattr(m, name) for name in m.__all__]; import migrate_groups.kafka.writer"
    run(environment / "python", "-c", code, folder=tmp_path)
    said = error(environment / "migrate-groups", "reconcile", "a.csv", "b.csv", folder=tmp_path)
    assert "is not installed: run pip install" in said


@pytest.mark.long
def test_types_reach_a_program_that_uses_the_package(packages, environment, tmp_path):
    """A type checker finds the types of the installed package: a wrong argument in a user's program is an error."""
    run(environment / "python", "-m", "pip", "install", packages.wheel, "mypy", folder=tmp_path)
    (tmp_path / "right.py").write_text("import migrate_groups\nmigrate_groups.connect('localhost:9092').close()\n")
    (tmp_path / "wrong.py").write_text("import migrate_groups\nmigrate_groups.connect(9092)\n")
    assert "Success" in run(environment / "mypy", "--strict", "right.py", folder=tmp_path)
    assert 'error: Argument 1 to "connect"' in error(environment / "mypy", "--strict", "wrong.py", folder=tmp_path)


@pytest.mark.long
def test_pipx_and_uvx_run_the_wheel(packages, environment, tmp_path):
    """With pipx and with uvx, ``migrate-groups`` runs from the wheel without an installation."""
    run(environment / "python", "-m", "pip", "install", "pipx", "uv", folder=tmp_path)
    homes = {"PIPX_HOME": tmp_path / "pipx", "PIPX_BIN_DIR": tmp_path / "bin", "UV_CACHE_DIR": tmp_path / "uv"}
    for start in (("pipx", "run", "--spec"), ("uvx", "--from")):
        program, *options = start
        command = (environment / program, *options, packages.wheel, "migrate-groups", "--version")
        assert run(*command, folder=tmp_path, **homes).strip() == VERSION


@pytest.fixture
def clone(tmp_path) -> Path:
    """A clone of the checkout that can be released: its CHANGELOG begins with the version and a date."""
    folder = tmp_path / "clone"
    run("git", "clone", "--quiet", ROOT, folder, folder=tmp_path)
    changes = folder / "CHANGELOG.md"
    title = f"## [{migrate_groups.__version__}] - 2026-11-28"
    changes.write_text(re.sub(r"^## .*", title, changes.read_text(), count=1, flags=re.M))
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    run("git", "add", "--all", folder=folder)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    run("git", *who, "commit", "--allow-empty", "--message", "a commit", folder=folder)


def test_the_packages_are_those_of_the_commit(clone, tmp_path):
    """A release has only committed files, and two builds of it have the same bytes."""
    (clone / "migrate_groups" / "not_committed.py").touch()
    wheel, sdist = RELEASE.build_twice(clone, tmp_path, sys.executable)
    assert (wheel.suffix, sdist.suffix) == (".whl", ".gz")
    assert "migrate_groups/__init__.py" in files_of(wheel)
    assert "migrate_groups/not_committed.py" not in files_of(wheel)


def test_a_build_that_differs_from_another_one_is_refused(clone, tmp_path):
    """If two builds have different bytes, nothing is returned, and the message names the files."""
    (clone / "hatch_build.py").write_text(
        "import uuid\nfrom hatchling.metadata.plugin.interface import MetadataHookInterface\n\n\n"
        "class CustomMetadataHook(MetadataHookInterface):\n"
        "    def update(self, metadata):\n        metadata['description'] = uuid.uuid4().hex\n"
    )
    text = (
        (clone / "pyproject.toml").read_text().replace('dynamic = ["version"]', 'dynamic = ["version", "description"]')
    )
    text = re.sub(r"^description = .*\n", "", text, flags=re.M)
    (clone / "pyproject.toml").write_text(f"{text}\n[tool.hatch.metadata.hooks.custom]\n")
    commit(clone)
    with pytest.raises(SystemExit, match=r"error: two builds differ: .*whl"):
        RELEASE.build_twice(clone, tmp_path, sys.executable)


@pytest.mark.long
def test_the_release_command_makes_all_files(clone, packages, tmp_path):
    """``scripts/release.py`` writes packages, SBOM, formula and checksums, and the checksums are right.

    The SBOM has the version, and each dependency that the package declares, and neither pip nor an extra.
    """
    run(sys.executable, "scripts/release.py", folder=clone, XDG_CACHE_HOME=tmp_path)
    there = clone / "dist" / migrate_groups.__version__
    run("sha256sum", "--check", "--strict", "SHA256SUMS", folder=there)
    names = {each.name.rpartition(".")[2] for each in there.iterdir()}
    assert names == {"whl", "gz", "json", "rb", "SHA256SUMS"}
    [wheel], [sbom] = there.glob("*.whl"), there.glob("*.cdx.json")
    assert files_of(wheel).keys() == files_of(packages.wheel).keys()
    document = json.loads(sbom.read_text())
    assert document["metadata"]["component"]["version"] == migrate_groups.__version__
    found = {each["name"].lower() for each in document["components"]}
    assert {re.split("[<>=]", each)[0] for each in PROJECT["dependencies"]} <= found
    assert not {"pip", "pyspark"} & found
