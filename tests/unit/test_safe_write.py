"""How files are written: only regular files are replaced, and an unusable path gives a one-line error."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from migrate_groups.errors import InvalidInput
from migrate_groups.files import safe_write
from migrate_groups.files.runs import stop_checkpoint_parquet
from migrate_groups.files.runs.run_dir import RunDir, receipt_in
from migrate_groups.files.safe_write import check_writable, write_whole
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.cli import CliHere
from tests.support.rows import row


def write(path: Path) -> None:
    write_whole(path, lambda file: file.write(b"ours"), replace=True)


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "link to a folder"])
def test_links_and_pipes_are_never_replaced(tmp_path, kind):
    """If the path of an output file is a link or a pipe, it is never replaced, not even with ``replace=True``."""
    (tmp_path / "theirs").write_bytes(b"theirs")
    path = tmp_path / "out"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to({"link": "theirs", "dangling": "nowhere", "link to a folder": "."}[kind])
    before = path.lstat()
    for replace in (False, True):
        with pytest.raises(InvalidInput, match=r"is a link, a device or a pipe|is a folder"):
            check_writable(path, replace=replace)
    with pytest.raises(InvalidInput, match=r"is a link, a device or a pipe|is a folder"):
        write(path)
    assert path.lstat() == before
    assert (tmp_path / "theirs").read_bytes() == b"theirs"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_device_is_never_replaced(tmp_path, monkeypatch):
    """A device such as /dev/null is never replaced by an output file.

    As root in a container, a rename over the device would succeed.
    """
    if not Path("/dev/null").is_char_device():  # checked first, because the write below must never reach a regular file
        pytest.fail("this machine has no /dev/null")
    monkeypatch.setattr(safe_write, "secrets", None)  # so that a write that begins fails
    with pytest.raises(InvalidInput, match="/dev/null is a link, a device or a pipe"):
        write(Path("/dev/null"))


def test_a_parent_folder_may_be_a_link(tmp_path):
    """A file is written even if a folder above it is a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link" / "out")
    assert (tmp_path / "real" / "out").read_bytes() == b"ours"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_replaced_file_keeps_its_mode(tmp_path, mode):
    """A replaced file keeps its mode, so that a private receipt stays private."""
    (tmp_path / "out").write_bytes(b"before")
    (tmp_path / "out").chmod(mode)
    write(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"ours"
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == mode


def test_only_temporary_files_of_killed_processes_are_deleted(tmp_path):
    """A write deletes temporary files that killed processes left in its folder, but no file that a process has open."""
    killed = "import os, sys; sys.path[:0] = {!r}\nfrom pathlib import Path\n{}"
    program = (
        "from migrate_groups.files.safe_write import write_whole\n"
        "write_whole(Path('never'), lambda file: (file.write(b'half'), os.kill(os.getpid(), 9)))\n"
    )
    subprocess.run([sys.executable, "-c", killed.format(sys.path, program)], cwd=tmp_path, check=False)
    (left,) = tmp_path.iterdir()
    assert left.suffix == ".tmp"

    def nested(file):
        (other,) = set(tmp_path.glob(".*.tmp")) - {left}
        write(tmp_path / "inner")
        assert other.exists()
        file.write(b"outer")

    write_whole(tmp_path / "outer", nested)
    assert {path.name for path in tmp_path.iterdir()} == {"inner", "outer"}
    assert (tmp_path / "outer").read_bytes() == b"outer"


LONG = "x" * 252


@pytest.mark.parametrize(
    "arguments",
    [
        ["filter", "good.csv", "-o", f"{LONG}.csv"],
        ["export", "good.csv", "-o", f"{LONG}.csv"],
        ["filter", f"{LONG}.csv", "-o", "out.csv"],
        ["apply", "good.csv", "--to-group", "n", "--yes", "--receipt", f"{LONG}.json"],
        ["apply", f"{'x' * 245}.csv", "--to-group", "n", "--yes"],
        ["apply", "good.csv", "--to-group", "n", "--dry-run", "--plan-out", f"{LONG}.json"],
        ["rollback", f"{LONG}.json", "--yes"],
        ["reconcile", f"{LONG}.json"],
        ["reconcile", "good.csv", f"{LONG}.csv"],
        ["reconcile", f"{LONG}.csv", "good.csv"],
        ["audit", f"{LONG}.json"],
        ["migrate", "good.toml", "--run-dir", f"{LONG}.json", "--dry-run"],
    ],
    ids=lambda arguments: " ".join(each[:12] for each in arguments),
)
def test_a_name_that_is_too_long_is_exit_2(tmp_path, arguments):
    """If a file name is longer than 255 bytes, the command prints a one-line error and ends with exit code 2.

    It makes no file.
    """
    cli = CliHere(tmp_path, "nowhere:1")
    for name in ("good.csv", f"{'x' * 245}.csv"):
        tables.save(SnapshotTable.of_rows([row()]), tmp_path / name)
    (tmp_path / "good.toml").write_text('source = "g"\n[[target]]\ngroup = "a"\ntopics = ["x"]\n')
    names = sorted(tmp_path.iterdir())
    assert "File name too long" in cli.fails(*arguments, code=2)
    assert sorted(tmp_path.iterdir()) == names


def test_a_folder_without_search_permission_is_an_error(tmp_path, monkeypatch):
    """A path in a folder without search permission is refused, because its files would look missing."""
    observe = Path.stat

    def refuse(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path.parent.name == "closed":
            raise PermissionError(13, "Permission denied")
        return observe(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", refuse)
    closed = tmp_path / "closed"
    closed.mkdir()
    for look in (lambda: check_writable(closed / "s.csv", replace=False), lambda: receipt_in(closed)):
        with pytest.raises(InvalidInput, match=r"can't be used: Permission denied"):
            look()


@pytest.mark.parametrize(
    "name", ["spec.toml", "before.parquet", "split.parquet", "plan.json", "offsets.csv", "after.parquet"]
)
def test_files_in_a_folder_without_a_receipt_are_not_replaced(tmp_path, name):
    """A folder that contains a file with a name that runs use, but no receipt, is refused as run directory."""
    (tmp_path / name).write_bytes(b"theirs")
    with pytest.raises(InvalidInput, match=f"has {name} but no receipt.*--run-dir"):
        RunDir(tmp_path).make()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_files_beside_a_receipt_may_be_replaced(tmp_path):
    """If a folder contains a receipt, its files with names that runs use belong to a run, and may be replaced."""
    for name in ("receipt.json", "plan.json", "offsets.csv"):
        (tmp_path / name).write_bytes(b"ours")
    RunDir(tmp_path).make()


def test_a_run_that_was_killed_before_its_receipt_is_resumed(tmp_path):
    """A folder that contains only ``stop_checkpoints.parquet``, from a killed run, is accepted as run directory.

    If ``stop_checkpoints.parquet`` is damaged, it is refused.
    """
    run = RunDir(tmp_path)
    stop_checkpoint_parquet.save({}, run.checkpoint)
    run.make()
    run.checkpoint.write_bytes(b"wood")
    with pytest.raises(InvalidInput, match=r"stop_checkpoints\.parquet is not a complete Parquet file"):
        run.make()


def test_a_folder_with_the_name_of_a_run_file_is_refused_before_the_run(tmp_path):
    """If a run directory contains a folder with the name of a run's file, it is refused before the run begins."""
    (tmp_path / "receipt.json").touch()
    (tmp_path / "after.parquet").mkdir()
    with pytest.raises(InvalidInput, match=r"after\.parquet is a folder"):
        RunDir(tmp_path).make()


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    """If another process makes the file while it is written, the other file stays, and the write is refused."""
    target = tmp_path / "out"
    with pytest.raises(InvalidInput, match="out exists already; choose another name"):
        write_whole(target, lambda file: (file.write(b"ours"), target.write_bytes(b"theirs")))
    assert target.read_bytes() == b"theirs"
    assert [*tmp_path.iterdir()] == [target]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK])
def test_a_file_system_without_hard_links(tmp_path, monkeypatch, number):
    """On a file system without hard links, a new file is written whole, and an existing file is not replaced."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    target = tmp_path / "out"
    write_whole(target, lambda file: file.write(b"ours"))
    assert target.read_bytes() == b"ours"
    other = tmp_path / "other"
    with pytest.raises(InvalidInput, match="other exists already"):
        write_whole(other, lambda file: (file.write(b"ours"), other.write_bytes(b"theirs")))
    assert other.read_bytes() == b"theirs"
    assert {*tmp_path.iterdir()} == {target, other}


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_can_not_sync_folders(tmp_path, monkeypatch, number):
    """On a file system that has no fsync for folders, as some network file systems, a file is written all the same."""
    refuse_folders(monkeypatch, number)
    write(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"ours"


def test_a_folder_that_fails_to_sync(tmp_path, monkeypatch):
    """If only the fsync of the folder fails, the error says that the file is written, but may be lost in a crash."""
    refuse_folders(monkeypatch, errno.EIO)
    with pytest.raises(InvalidInput, match=r"out is written, but .* can't be synced to the disk: Input/output error"):
        write(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"ours"


def refuse_folders(monkeypatch, number: int) -> None:
    """Let fsync fail with this error for folders."""
    fsync = os.fsync

    def fail(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
