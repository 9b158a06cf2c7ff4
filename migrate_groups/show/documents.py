"""The classes of JSON documents, and how they are made.

The fields of a row are the columns of its table. A Spark job returns named tuples and dataclasses, and the document has
their fields. docs/reference/json.md shows the documents of all commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, reduce
from inspect import cleandoc
from operator import or_
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from migrate_groups.show.result import Column

T = TypeVar("T")
S = TypeVar("S")


class Document(msgspec.Struct, frozen=True, tag_field="schema"):
    """The base class of the JSON documents that commands print.

    ``schema`` is the name of the document. ``schema_version`` counts incompatible changes.
    """

    schema_version: Literal[1] = 1


class Part(msgspec.Struct, frozen=True):
    """The base class of objects within a JSON document."""


class Error(Part, frozen=True, kw_only=True):
    """The error with which a command failed.

    kind: the class of the error, such as Refused. exit_code: the exit code of the command. message: the message on
    stderr.
    """

    kind: str
    exit_code: int
    message: str


class ErrorDocument(Part, frozen=True, kw_only=True):
    """The document that a command prints in place of its usual document if it fails."""

    error: Error


def row_of(columns: Iterable[Column[Any]], **more: Any) -> Callable[[type[T]], type[T]]:
    """Return a decorator for an empty class, which gives the class a field for each column that names one.

    `of_row` makes an object of this class from a row of a table. more: the types of fields that no column has.
    """
    types = {column.field: column.type or column.kind.type for column in columns if column.field} | more

    def made(kind: type[T]) -> type[T]:
        # The class statement has the docstring, which is in the schema, and is what mypy and readers see.
        return msgspec.defstruct(  # type: ignore[return-value]
            kind.__name__, [*types.items()], bases=(Part,), namespace={"__doc__": kind.__doc__}, frozen=True
        )

    return made


def of_row(kind: type[T], columns: Iterable[Column[S]], row: S, **more: object) -> T:
    """Return an object of a JSON document with the values of a row. more: fields that no column has."""
    return kind(**{column.field: column.value(row) for column in columns if column.field}, **more)


def document_type(kind: type, *names: str) -> type[msgspec.Struct]:
    """Return the class of the JSON document of a Spark job's result, such as ``HistoryDocument`` for ``History``.

    names: the fields and properties of ``kind`` that are in the document, in this order.
    """
    about, types = [_about(kind)], get_type_hints(kind)
    for name in names:
        if isinstance(found := getattr(kind, name), property):
            text = found.__doc__ or ""
            about.append(f"- {name}: {text[:1].lower()}{text[1:]}")
            types |= {name: get_type_hints(found.fget)["return"]}
    return msgspec.defstruct(
        f"{kind.__name__}Document",
        [(name, _json_type(types[name])) for name in names],
        bases=(Document,),
        namespace={"__doc__": "\n".join(about)},
        tag=f"migrate-groups/{kind.__name__.lower()}",
        frozen=True,
        kw_only=True,
    )


@cache
def object_type(kind: Any) -> Any:
    """Return a msgspec class with the name, the fields and the docstring of a class of named tuples or a dataclass."""
    # msgspec would write a named tuple as a JSON list. Spark's executors have no msgspec, so jobs return named tuples.
    members = [(name, _json_type(of)) for name, of in get_type_hints(kind).items()]
    return msgspec.defstruct(kind.__name__, members, namespace={"__doc__": _about(kind)}, frozen=True)


def filled(kind: type[T], found: object) -> T:
    """Return a document whose fields are the attributes of ``found`` with the same names."""
    names = [name for name in kind.__struct_fields__ if hasattr(found, name)]  # type: ignore[attr-defined]
    return msgspec.convert(_plain({name: getattr(found, name) for name in names}), kind)


def _about(kind: type) -> str:
    """Return the docstring of a class as the description in a JSON schema."""
    return cleandoc(kind.__doc__ or "").replace("None", "null")


def _json_type(of: Any) -> Any:
    """Return a type in which classes of named tuples and dataclasses are replaced by those of `object_type`."""
    if hasattr(of, "_fields") or is_dataclass(of):
        return object_type(of)
    parts = [_json_type(each) for each in get_args(of)]
    if isinstance(of, UnionType):
        return reduce(or_, parts)
    return get_origin(of)[tuple(parts)] if parts else of


def _plain(value: Any) -> Any:
    """Return a value with mappings in place of named tuples and dataclasses."""
    if is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if hasattr(value, "_fields"):
        value = value._asdict()
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value
