from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from migrate_groups.spark.class_data import ClassData, class_data
from tests.spark.test_session import in_a_new_process

# Spark's JVM without a session, which takes a third of the time.
START = """
from migrate_groups.spark.session import _class_data, _start_jvm
gateway = _start_jvm({}, QUICK_START, _class_data(Path("archives")))
print(gateway.jvm.Math.abs(-3))
"""
COUNT = "session = local_session(small=True, archives=Path('archives'))\nprint(session.range(3).count())"
USED = """
from pyspark import SparkContext
pid = SparkContext._gateway.proc.pid
print(any(".jsa" in line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "archives" in line))
"""


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in ("PATH", "JAVA_HOME")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which an earlier process has left a class-data archive (JEP 350) of Spark's classes."""
    made = tmp_path_factory.mktemp("spaces in the path")
    done = in_a_new_process(made, START, **environment())
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)
    return made


def test_second_process_uses_the_archive_of_the_first(folder: Path) -> None:
    """The first process that starts Spark leaves one complete class-data archive and no other file.

    The second process uses this archive.
    """
    assert [*folder.iterdir()] == [folder / "archives"]
    [archive] = (folder / "archives").iterdir()
    assert archive.suffix == ".jsa"
    assert archive.stat().st_size > 10_000_000
    done = in_a_new_process(folder, COUNT + USED, **environment())
    assert (done.stdout, done.stderr, done.returncode) == ("3\nTrue\n", "", 0)


@pytest.mark.parametrize("damage", [pytest.param("cut short", marks=pytest.mark.long), "garbled"])
def test_damaged_archive_is_ignored(folder: Path, damage: str) -> None:
    """If the class-data archive is damaged, Java ignores it and prints nothing, and Spark works."""
    [archive] = (folder / "archives").glob("*.jsa")
    whole = archive.read_bytes()
    half = len(whole) // 2
    broken = whole[:half] if damage == "cut short" else whole[:half] + bytes(100_000) + whole[half + 100_000 :]
    assert broken != whole
    archive.chmod(0o644)
    archive.write_bytes(broken)
    done = in_a_new_process(folder, START, **environment())
    archive.write_bytes(whole)
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)


@pytest.mark.parametrize("option", [pytest.param("", marks=pytest.mark.long), "-NoSuchOption"])
def test_spark_starts_if_java_makes_no_archive(tmp_path: Path, option: str) -> None:
    """Spark starts even if Java makes no class-data archive, or does not know the option that makes one.

    An empty file is left in place of the archive, so that no later process tries again.
    """
    instead = f"import migrate_groups.spark.class_data as c\nc.ClassData.options = property(lambda _: {option!r})\n"
    done = in_a_new_process(tmp_path, instead + START, **environment())
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)
    [archive] = (tmp_path / "archives").iterdir()
    assert archive.stat().st_size == 0


def test_failed_archive_is_not_tried_again(tmp_path: Path) -> None:
    """If a JVM ends without writing its class-data archive, an empty file is left, and later JVMs do not try again."""
    asked = class_data(tmp_path, java=tmp_path, spark=tmp_path)
    assert asked is not None
    assert "ArchiveClassesAtExit" in asked.options
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as jvm:
        asked._keep(jvm)
    [archive] = tmp_path.iterdir()
    assert (archive, archive.stat().st_size, asked.options) == (asked.archive, 0, "")


def written(asked: ClassData, content: bytes) -> None:
    """Write ``content`` to the file where a JVM with ``asked.options`` would write its class-data archive."""
    Path(asked.options.strip('"').removeprefix("-XX:ArchiveClassesAtExit=")).write_bytes(content)


def test_processes_that_start_together_leave_one_complete_archive(tmp_path: Path) -> None:
    """If several processes start together, the file of the first one to end becomes the class-data archive.

    Each process writes its own file. The files of killed processes are deleted.
    """
    ours = Path(__file__)  # any file whose modification time stays
    first, killed = (class_data(tmp_path, java=ours, spark=ours) for _ in range(2))
    assert first is not None
    assert killed is not None
    written(first, b"first")
    written(killed, b"half")
    second = class_data(tmp_path, java=ours, spark=ours)
    assert second is not None
    for each in (first, second):
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as jvm:
            each._keep(jvm)
    [archive] = tmp_path.iterdir()
    assert (archive, archive.read_bytes()) == (first.archive, b"first")


def test_archive_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    """If the folder for class-data archives cannot be made, no archive is made, and no error is raised."""
    (tmp_path / "file").write_text("")
    assert class_data(tmp_path / "file", java=tmp_path, spark=tmp_path) is None


def test_replaced_java_gets_a_new_archive(tmp_path: Path) -> None:
    """If Java is replaced at the same path, a new class-data archive is made."""
    (tmp_path / "java").write_text("")
    first = class_data(tmp_path, java=tmp_path / "java", spark=tmp_path)
    same = class_data(tmp_path, java=tmp_path / "java", spark=tmp_path)
    os.utime(tmp_path / "java", (0, 0))
    other = class_data(tmp_path, java=tmp_path / "java", spark=tmp_path)
    assert first is not None
    assert same is not None
    assert other is not None
    assert (same.archive == first.archive, other.archive == first.archive) == (True, False)
