"""``scripts/release.py``: what it refuses, the formula, and the checksums. `tests/e2e/test_packages.py` runs it."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

import migrate_groups

ROOT = Path(__file__).parents[2]
RELEASE = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "release.py")))
VERSION = migrate_groups.__version__
CHANGELOG = f"# Changelog\n\n## [{VERSION}] - 2026-11-28\n\n### Added\n\n- All.\n\n## [0.0.1] - 2026-01-01\n\n- Less.\n"


def git(folder: Path, *arguments: str) -> None:
    person = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *person, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--allow-empty", "--message", "a commit")


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A small checkout that can be released."""
    folder = tmp_path / "checkout"
    (folder / "migrate_groups").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    (folder / "migrate_groups" / "__init__.py").write_text(f'__version__ = "{VERSION}"\n')
    (folder / "CHANGELOG.md").write_text(CHANGELOG)
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def test_a_clean_checkout_with_its_changes_and_date_can_be_released(checkout):
    """A committed checkout whose CHANGELOG begins with version and date has no problem, also once it is tagged."""
    assert RELEASE.problems(checkout) == []
    git(checkout, "tag", f"v{VERSION}")
    assert RELEASE.problems(checkout) == []


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (f"[{VERSION}] - 2026-11-28", "[Unreleased]", "CHANGELOG.md begins with '[Unreleased]': expected '["),
        ("2026-11-28", "2026-11-31", "and the date of the release"),
        (f"[{VERSION}]", "[9.9.9]", "CHANGELOG.md begins with '[9.9.9] - 2026-11-28': expected '["),
        ("- All.\n", "", "has no change: say what is new"),
    ],
)
def test_a_changelog_without_the_version_is_refused(checkout, before, after, problem):
    """The CHANGELOG must begin with the version, a date that exists, and a change."""
    (checkout / "CHANGELOG.md").write_text(CHANGELOG.replace(before, after))
    commit(checkout)
    [found] = RELEASE.problems(checkout)
    assert problem in found


def test_a_version_in_two_places_is_refused(checkout):
    """pyproject.toml must take the version from the package."""
    text = (checkout / "pyproject.toml").read_text().replace('dynamic = ["version"]', 'version = "1.2.3"')
    (checkout / "pyproject.toml").write_text(text)
    commit(checkout)
    [found] = RELEASE.problems(checkout)
    assert found.startswith("pyproject.toml: the version is not dynamic")


def test_what_is_not_committed_or_already_tagged_is_refused(checkout):
    """A file that is not committed is refused, and a version whose tag is on another commit."""
    git(checkout, "tag", f"v{VERSION}")
    commit(checkout)
    (checkout / "new.txt").touch()
    changed, tagged = RELEASE.problems(checkout)
    assert changed == "1 files are not committed, such as new.txt: commit or remove them"
    assert tagged == f"the tag v{VERSION} is on another commit: set a new version"


def test_the_formula_installs_the_sdist(tmp_path):
    """The formula has the sdist's address and checksum, and each ``do`` or ``def`` has its end.

    With a Ruby on the PATH, that Ruby parses it.
    """
    sdist = tmp_path / "a.tar.gz"
    sdist.write_bytes(b"abc")
    text = RELEASE.formula(ROOT, sdist, "https://example.org/a.tar.gz")
    assert '  url "https://example.org/a.tar.gz"\n' in text
    assert '  sha256 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"\n' in text
    assert 'shell_output("#{bin}/migrate-groups --version")' in text
    lines = [line.strip() for line in text.splitlines()]
    opened = [line for line in lines if line.startswith(("class ", "def ")) or line.endswith(" do")]
    assert len(opened) == lines.count("end") == 3
    if ruby := shutil.which("ruby"):
        subprocess.run([ruby, "-c"], input=text, text=True, check=True, capture_output=True)


def test_sha256sum_reads_the_checksums(tmp_path):
    """Each line has the checksum of a file and its name, as ``sha256sum`` prints them, sorted by name."""
    for name in ("b", "a"):
        (tmp_path / name).write_text("abc")
    sum_ = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert RELEASE.checksums(tmp_path.iterdir()) == f"{sum_}  a\n{sum_}  b\n"
