"""List the files that Spark reads for a path, and refuse snapshot files that Spark would skip silently."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from migrate_groups.errors import InvalidInput
from migrate_groups.spark.failures import local_file, readable_failures, shown
from migrate_groups.text import some

KINDS = (".csv", ".parquet")
"""The suffixes of the files that can be read."""

_CHOICE = re.compile(r"\{([^{}]*)\}")


def files_of(spark: SparkSession, path: str, location: str) -> list[str]:
    """Return the URIs of the files that Spark reads for a path.

    location: the path in the form for Spark (`snapshots.spark_path`).

    Raises `InvalidInput` if there is no file, a file is empty, or Spark would skip a local .csv or .parquet file
    because a name begins with ``_`` or ``.``.
    """
    with readable_failures(path):
        files = spark.read.text(location, recursiveFileLookup=True).inputFiles()
        read = {_one_name(file) for file in map(local_file, files) if file}
        # Skipped files are found on this machine only, because in other file systems only Spark lists files.
        left_out = [str(file) for file in _there(path) if file.suffix in KINDS and _one_name(file) not in read]
        empty = [file for file in read if Path(file).stat().st_size == 0] if read else _empty(spark, location)
    it = "it" if len(left_out or empty) == 1 else "them"
    if left_out and files:
        raise InvalidInput(f"{some(left_out)}: Spark skips names that begin with '_' or '.': rename or remove {it}")
    if not files:
        raise InvalidInput(
            f"{path} has no file to read: pass another path (Spark skips names that begin with '_' or '.')"
        )
    if empty:
        raise InvalidInput(f"{some(empty)}: 0 bytes long: write {it} again, or remove {it}")
    return files


def literal(uri: str) -> str:
    """Return a path or a file's URI with glob characters escaped, so that Spark does not take it for a glob."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", uri)


def _one_name(file: Path) -> str:
    return os.path.normpath(file.absolute())


def _there(path: str) -> Iterator[Path]:
    """Yield all files on this machine that match a path: a file, a folder, or a glob in Hadoop's syntax."""
    roots = [Path(path)] if Path(path).exists() else [root for each in _choices(path) for root in _matches(each)]
    for root in roots:
        if root.is_file():
            yield root
        for folder, _, names in os.walk(root, followlinks=True):
            yield from (Path(folder, name) for name in names)


def _choices(path: str) -> Iterator[str]:
    """Yield one path for each alternative in a path such as ``folder/{a,b}.csv``."""
    if found := _CHOICE.search(path):
        for choice in found[1].split(","):
            yield from _choices(path[: found.start()] + choice + path[found.end() :])
    else:
        yield path


def _matches(path: str) -> Iterator[Path]:
    pattern = Path(path).absolute()
    return Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)).replace("[^", "[!"))


def _empty(spark: SparkSession, location: str) -> list[str]:
    """Return a list with the URI of one file of 0 bytes below a remote path, or an empty list if no file is empty."""
    found = spark.read.format("binaryFile").option("recursiveFileLookup", True).load(location).where("length = 0")
    return [shown(row["path"]) for row in found.select("path").limit(1).collect()]
