"""Make JSON documents, or objects in them, of the columns of a table, and of named tuples that Spark jobs return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_type_hints

import msgspec

from migrate_groups.show.result import Column

T = TypeVar("T", bound=msgspec.Struct)
S = TypeVar("S")


def of_columns(kind: type[T], columns: Iterable[Column[S]], row: S, **more: object) -> T:
    """Return an object of a JSON document with the values of a row. more: fields that no column has."""
    return kind(**{column.field: column.value(row) for column in columns if column.field}, **more)


def object_type(kind: Any) -> type[msgspec.Struct]:
    """Return a msgspec class with the name, the fields and the docstring of the named tuple class ``kind``."""
    # msgspec would write a named tuple as a JSON list. Spark's executors have no msgspec, so jobs return named tuples.
    return msgspec.defstruct(
        kind.__name__, [*get_type_hints(kind).items()], namespace={"__doc__": kind.__doc__}, frozen=True
    )


def filled(kind: type[T], found: object, **more: object) -> T:
    """Return a document whose fields are the attributes of ``found`` with the same names. more: other fields."""
    names = [name for name in kind.__struct_fields__ if hasattr(found, name)]
    return msgspec.convert(_plain({name: getattr(found, name) for name in names} | more), kind)


def _plain(value: Any) -> Any:
    """Return a value with objects in place of named tuples."""
    if isinstance(value, tuple | list):
        parts = [_plain(each) for each in value]
        return dict(zip(value._fields, parts, strict=True)) if hasattr(value, "_fields") else parts
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value
