"""The files that a path stands for: each is read, or refused. Spark passes over some of them without a word."""

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
"""How the names of the files end that are read."""

_CHOICE = re.compile(r"\{([^{}]*)\}")


def files_of(spark: SparkSession, path: str, location: str) -> list[str]:
    """Return the files, as URIs, of a path that Spark takes as this location.

    Raises `InvalidInput` where there is none, or one of `KINDS` that Spark would leave out: it has 0 bytes, or its name
    or that of a folder begins with ``_`` or ``.`` (on this machine: elsewhere only Spark looks).
    """
    with readable_failures(path):
        files = spark.read.text(location, recursiveFileLookup=True).inputFiles()
        read = {_one_name(file) for file in map(local_file, files) if file}
        left_out = [str(file) for file in _there(path) if file.suffix in KINDS and _one_name(file) not in read]
        empty = [file for file in read if Path(file).stat().st_size == 0] if read else _empty(spark, location)
    if left_out and files:
        raise InvalidInput(f"{some(left_out)}: Spark passes over names that begin with '_' or '.': rename or remove it")
    if not files:
        raise InvalidInput(f"{path}: nothing to read here; Spark passes over names that begin with '_' or '.'")
    if empty:
        raise InvalidInput(f"{some(empty)}: an empty file: write it again, or remove it")
    return files


def literal(uri: str) -> str:
    """A file's URI, or a path, as Spark takes it by its literal name, even if that looks like a glob."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", uri)


def _one_name(file: Path) -> str:
    return os.path.normpath(file.absolute())


def _there(path: str) -> Iterator[Path]:
    """All files on this machine of a file, a folder or a glob as Hadoop has them."""
    roots = [Path(path)] if Path(path).exists() else [root for each in _choices(path) for root in _matches(each)]
    for root in roots:
        if root.is_file():
            yield root
        for folder, _, names in os.walk(root, followlinks=True):
            yield from (Path(folder, name) for name in names)


def _choices(path: str) -> Iterator[str]:
    """Every path that one with ``{a,b}`` stands for."""
    if found := _CHOICE.search(path):
        for choice in found[1].split(","):
            yield from _choices(path[: found.start()] + choice + path[found.end() :])
    else:
        yield path


def _matches(path: str) -> Iterator[Path]:
    pattern = Path(path).absolute()
    return Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)).replace("[^", "[!"))


def _empty(spark: SparkSession, location: str) -> list[str]:
    """One of them elsewhere, if there is any."""
    found = spark.read.format("binaryFile").option("recursiveFileLookup", True).load(location).where("length = 0")
    return [shown(row["path"]) for row in found.select("path").limit(1).collect()]
