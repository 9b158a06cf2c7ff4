"""Build and check what a release publishes, in ``dist/VERSION``. Publish nothing.

Usage: ``python3 scripts/release.py``, in a clean checkout of the commit to release. CONTRIBUTING.md has the steps
before and after. It refuses unless:

- ``__version__``, pyproject.toml and the CHANGELOG agree on the version, and the CHANGELOG has its date
- everything is committed, and no other commit has the tag of this version
- two builds of the commit have the same bytes, and ``twine check --strict`` accepts them

Then it writes the wheel, the sdist, an SBOM of what the wheel installs, the Homebrew formula, and the checksums.
The first run downloads its tools to the user's cache. Exit 1 if something is refused.
"""

from __future__ import annotations

import argparse
import filecmp
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("twine==7.0.0", "cyclonedx-bom==7.5.0", "hatchling")  # hatchling's version is that of constraints.txt
FORMULA = """\
class MigrateGroups < Formula
  desc "{description}"
  url "{url}"
  sha256 "{sha256}"
  license "{license}"

  depends_on "python@3.13"

  # Dependencies are wheels in the versions of the release's tests, because some take an hour to build.
  def install
    system "python3.13", "-m", "venv", libexec
    system libexec/"bin/python", "-m", "pip", "install", "--constraint", "scripts/constraints.txt", "."
    bin.install_symlink libexec/"bin/migrate-groups"
  end

  test do
    assert_match "migrate-groups #{{version}}", shell_output("#{{bin}}/migrate-groups --version")
  end
end
"""


def version_of(root: Path) -> str:
    """Return ``__version__`` of the package."""
    text = (root / "migrate_groups" / "__init__.py").read_text()
    [found] = re.findall(r'^__version__ = "([^"]+)"$', text, re.M)
    return str(found)


def problems(root: Path) -> list[str]:
    """Return why this checkout can't be released: one line for each reason, with what to do."""
    version = version_of(root)
    return [*_version_problems(root, version), *_git_problems(root, version)]


def _version_problems(root: Path, version: str) -> Iterable[str]:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    if "version" not in project.get("dynamic", ()):
        yield "pyproject.toml: the version is not dynamic: list it in dynamic, so that it is __version__"
    sections = re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", (root / "CHANGELOG.md").read_text(), re.M)
    title, changes = sections[0] if sections else ("", "")
    found = re.fullmatch(rf"\[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)", title)
    if not found or not _is_date(found[1]):
        yield f"CHANGELOG.md begins with {title!r}: expected '[{version}] - ' and the date of the release"
    elif not re.search(r"^- ", changes, re.M):
        yield f"CHANGELOG.md: {version} has no change: say what is new"


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _git_problems(root: Path, version: str) -> Iterable[str]:
    if changed := _git(root, "status", "--porcelain").splitlines():
        yield f"{len(changed)} files are not committed, such as {changed[0][3:]}: commit or remove them"
    tagged = _git(root, "tag", "--list", f"v{version}") and _git(root, "rev-list", "-n", "1", f"v{version}")
    if tagged and tagged != _git(root, "rev-parse", "HEAD"):
        yield f"the tag v{version} is on another commit: set a new version"


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.rstrip()


def build_twice(root: Path, to: Path, python: Path | str) -> list[Path]:
    """Build the commit ``HEAD`` of ``root`` twice, in two folders, and return the sdist and the wheel in ``to``.

    python: an interpreter with hatchling. Times in the packages are those of the commit. Ends this process if the
    builds differ.
    """
    environment = os.environ | {"SOURCE_DATE_EPOCH": _git(root, "log", "-1", "--format=%ct")}
    with tempfile.TemporaryDirectory() as folder:
        first, second = (_built(root, Path(folder, each), python, environment) for each in ("first", "second/folder"))
        different = [each.name for each in first.iterdir() if not _same(each, second / each.name)]
        if different or len([*first.iterdir()]) != len([*second.iterdir()]):
            _refuse([f"two builds differ: {', '.join(different)}"])
        return sorted(Path(shutil.copy(each, to)) for each in first.iterdir())


def _same(one: Path, other: Path) -> bool:
    return other.exists() and filecmp.cmp(one, other, shallow=False)


def _built(root: Path, source: Path, python: Path | str, environment: Mapping[str, str]) -> Path:
    source.mkdir(parents=True)
    archive = source.with_suffix(".tar")
    _git(root, "archive", "--output", str(archive), "HEAD")
    with tarfile.open(archive) as opened:
        opened.extractall(source)  # noqa: S202  our own commit; before Python 3.11.4 there is no filter
    for path in source.rglob("*"):
        os.utime(path)  # so that the two builds differ if the packages keep times of files
    built = source.with_name(f"{source.name}-built")
    command = [str(python), "-m", "hatchling", "build", "-d", str(built), "-t", "sdist", "-t", "wheel"]
    subprocess.run(command, cwd=source, env=environment, check=True, stderr=subprocess.DEVNULL)
    return built


def formula(root: Path, sdist: Path, url: str) -> str:
    """Return the Homebrew formula that installs the sdist from ``url``."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    values = {name: project[name] for name in ("description", "license")}
    return FORMULA.format(**values, url=url, sha256=_sha256(sdist))


def checksums(files: Iterable[Path]) -> str:
    """Return the lines of SHA256SUMS, which ``sha256sum --check`` reads."""
    return "".join(f"{_sha256(each)}  {each.name}\n" for each in sorted(files))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _environment(folder: Path, *packages: str) -> Path:
    """Return the Python of a virtual environment in ``folder`` that has these packages, in pinned versions."""
    python, done = folder / "bin" / "python", folder / "complete"
    wanted = f"{sys.version} {packages} {_sha256(ROOT / 'scripts' / 'constraints.txt')}"
    if not done.exists() or done.read_text() != wanted:
        venv.create(folder, clear=True, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--constraint", str(ROOT / "scripts" / "constraints.txt"), *packages], check=True)
        done.write_text(wanted)
    return python


def _write_sbom(tools: Path, wheel: Path, version: str, path: Path) -> None:
    """Write a CycloneDX SBOM of an environment with the wheel and its dependencies, and without pip."""
    with tempfile.TemporaryDirectory() as folder:
        python = _environment(Path(folder), str(wheel))
        subprocess.run(
            [str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools"],
            check=True,
            stderr=subprocess.DEVNULL,  # setuptools is there on Python 3.11 only
        )
        options = ["--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible", "--output-file", str(path)]
        subprocess.run([str(tools), "-m", "cyclonedx_py", "environment", *options, str(python)], check=True)
    document = json.loads(path.read_text())
    document["metadata"]["component"]["version"] = version  # pyproject.toml does not have it
    path.write_text(json.dumps(document, indent=2) + "\n")


def _refuse(reasons: Iterable[str]) -> NoReturn:
    sys.exit("\n".join(f"error: {each}" for each in reasons))


def main() -> None:
    """Build what the command line asks for, or exit with the reasons why not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sdist-url", metavar="URL", help="where the formula finds the sdist; default: in dist/VERSION"
    )
    options = parser.parse_args()
    if reasons := problems(ROOT):
        _refuse(reasons)
    version = version_of(ROOT)
    to = ROOT / "dist" / version
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    tools = _environment(cache / "migrate-groups" / "release-tools", *TOOLS)
    wheel, sdist = build_twice(ROOT, to, tools)
    subprocess.run([str(tools), "-m", "twine", "check", "--strict", str(wheel), str(sdist)], check=True)
    _write_sbom(tools, wheel, version, to / f"migrate_groups-{version}.cdx.json")
    (to / "migrate-groups.rb").write_text(formula(ROOT, sdist, options.sdist_url or sdist.as_uri()))
    (to / "SHA256SUMS").write_text(checksums(to.iterdir()))
    print((to / "SHA256SUMS").read_text(), end="")
    print(f"{to.relative_to(ROOT)} is ready, nothing is published. Next: CONTRIBUTING.md, A release, step 4")


if __name__ == "__main__":
    main()
