"""Rows that a Spark job returned, as objects of a JSON document.

msgspec would write a named tuple as a list. The jobs do not return Structs, because Spark's executors have no msgspec.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_type_hints

import msgspec


def object_type(kind: Any) -> type[msgspec.Struct]:
    """Return the type of an object with the fields of a named tuple, and with its docstring."""
    return msgspec.defstruct(
        kind.__name__, [*get_type_hints(kind).items()], namespace={"__doc__": kind.__doc__}, frozen=True
    )


def objects(kind: type[msgspec.Struct], rows: Iterable[Any]) -> tuple[Any, ...]:
    """Return named tuples as objects of the type that `object_type` made of them."""
    return tuple(kind(*row) for row in rows)
