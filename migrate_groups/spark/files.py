"""The files that Spark reads and writes: their paths, the files below a path, and tables as CSV for people."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import StringType

from migrate_groups.errors import InvalidInput
from migrate_groups.spark.failures import local_file, readable_failures, shown
from migrate_groups.text import FORMULA, some

KINDS = (".csv", ".parquet")
"""The suffixes of the files that can be read."""

CHECKED = {"parquet.page.verify-checksum.enabled": "true"}
"""Options for reading Parquet. A page that does not match its checksum fails the job."""

_CHOICE = re.compile(r"\{([^{}]*)\}")


def files_of(spark: SparkSession, path: str, location: str) -> list[str]:
    """Return the URIs of the files that Spark reads for a path.

    location: the path in the form for Spark (`spark_path`).

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


def spark_path(path: str) -> str:
    """Return a path in the form for Spark's readers.

    An existing local path is made absolute, and its glob characters are escaped.
    """
    local = Path(path)
    return literal(str(local.absolute())) if local.exists() else path


def written_path(path: str) -> str:
    """Return a path in the form for Spark's writers. A local path with a colon becomes absolute."""
    # Spark would take the part before a colon for a URI scheme.
    return path if "://" in path or ":" not in path else str(Path(path).absolute())


def literal(uri: str) -> str:
    """Return a path or a file's URI with glob characters escaped, so that Spark does not take it for a glob."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", uri)


def write_csv(table: DataFrame, folder: str) -> None:
    """Write a table as CSV with a header to a new folder.

    Text that a spreadsheet would take for a formula gets a leading ``'``.
    """
    texts = [field.name for field in table.schema if isinstance(field.dataType, StringType)]
    guarded = table.withColumns({name: F.regexp_replace(F.col(f"`{name}`"), FORMULA, "'$1") for name in texts})
    write_whole_cells(guarded, folder)


def write_whole_cells(table: DataFrame, folder: str) -> None:
    """Write a table as CSV with a header to a new folder. Blanks at the beginning and end of cells are kept."""
    # By default Spark drops blanks at both ends of cells.
    table.write.csv(folder, header=True, escape='"', ignoreLeadingWhiteSpace=False, ignoreTrailingWhiteSpace=False)


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
