"""Convert rows that a Spark job returned, which are named tuples, to objects of a JSON document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_type_hints

import msgspec


def object_type(kind: Any) -> type[msgspec.Struct]:
    """Return a msgspec class with the name, the fields and the docstring of the named tuple class ``kind``."""
    # msgspec would write a named tuple as a JSON list. Spark's executors have no msgspec, so jobs return named tuples.
    return msgspec.defstruct(
        kind.__name__, [*get_type_hints(kind).items()], namespace={"__doc__": kind.__doc__}, frozen=True
    )


def objects(kind: type[msgspec.Struct], rows: Iterable[Any]) -> tuple[Any, ...]:
    """Convert named tuples to objects of ``kind``, a class that `object_type` made."""
    return tuple(kind(*row) for row in rows)
