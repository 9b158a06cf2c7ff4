"""Write tables as CSV for people. Text that a spreadsheet would take for a formula gets a leading ``'``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import StringType

from migrate_groups.text import FORMULA


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
