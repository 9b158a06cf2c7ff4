"""Encode and decode JSON documents strictly. Each document is typed and versioned, and has a checksum of its content.

The same document always has the same bytes. A document in which a value was edited is refused. Changes of white space
or of the order of keys are accepted.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, TypeVar, get_type_hints

import msgspec

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.files.kinds import mistaken
from migrate_groups.planning import typed_json
from migrate_groups.planning.options import WriteOptions
from migrate_groups.text import one_line, some


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A JSON object with exactly the declared fields."""


class Document(Strict, frozen=True, kw_only=True):
    """A whole JSON file.

    schema, schema_version: its format. checksum: the SHA-256 of the same file with an empty checksum.
    """

    schema: str
    schema_version: int
    checksum: str = ""


OptionsJson = msgspec.defstruct(
    "OptionsJson",
    [*get_type_hints(WriteOptions).items()],
    bases=(Strict,),
    frozen=True,
    namespace={
        "__doc__": "The options of a write. settle, guard: in seconds. on_uncommitted, on_existing, on_out_of_range, "
        "on_removed, any_kind, copy: as in the spec. second_client, restore, accept_reread, trust_copy: options of the "
        "command line that the spec does not have."
    },
)
"""The options of a write, with the fields of `WriteOptions`.

The fields have types, so that ``10`` is decoded as ``10.0`` and the checksum stays the same: tools such as jq rewrite
numbers."""


class _Header(msgspec.Struct):
    schema: str
    schema_version: int


Kind = TypeVar("Kind", bound=Document)

_ENCODER = msgspec.json.Encoder()
_CHECKSUM = b',\n "checksum": "%s"'
# Controls, and characters that change the direction of a text or are invisible. It is a fixed list, because what Python
# calls printable depends on its version, and a plan must have the same bytes with each.
_UNPRINTABLE = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def decode(data: bytes, name: str, kind: type[Kind], schema: str, version: int) -> Kind:
    """Return the document in ``data``, the bytes of the JSON file ``name``.

    kind: the class of the document. Raises `InvalidInput` if the file is not a valid document of this class, schema and
    version, or if a value in it was edited.
    """
    thing = schema.rpartition("/")[2]
    try:
        header = typed_json.decode(data, _Header)
        if header.schema != schema:
            other = InvalidInput(f"{name} is {one_line(header.schema)[:60]!r}; expected {schema!r}")
            raise mistaken(data, name, f"a {thing}") or other
        if header.schema_version != version:
            raise InvalidInput(
                f"{name} has schema version {header.schema_version}, but this version of migrate-groups reads "
                f"{version}: install the version that wrote the file"
            )
        document = typed_json.decode(data, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        invalid = InvalidInput(f"{name} is not a valid {thing}: {one_line(str(error))}")
        raise mistaken(data, name, f"a {thing}") or invalid from error
    written, checksum = _sealed(msgspec.structs.replace(document, checksum=""))
    if document.checksum != checksum:
        raise InvalidInput(f"{name} was edited after it was written: its checksum differs; restore the original file")
    if data != written:
        # msgspec used the last value of a repeated key, while a reviewer may have read the first.
        _refuse_twice(data, name)
    return document


def options_json(options: WriteOptions) -> Any:
    """Return the options of a write as an `OptionsJson`, for a plan or a receipt."""
    return OptionsJson(**asdict(options))


def options(found: Any, name: str) -> WriteOptions:
    """Return the options of a write from their JSON object.

    found: an `OptionsJson`. name: the name of the file, for the error. Raises `InvalidInput` if an option is invalid.
    """
    try:
        return WriteOptions(**msgspec.structs.asdict(found))
    except UsageError as error:
        raise InvalidInput(f"{name}: options: {error}") from error


def encode(document: Document) -> bytes:
    """Return a document as the bytes of its file, with the checksum filled in."""
    return _sealed(document)[0]


def _sealed(document: Document) -> tuple[bytes, str]:
    """Return the bytes of a document's file, with the checksum filled in, and the checksum.

    document: its checksum must be empty.
    """
    pieces = [*_pieces(document)]
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    checksum = found.hexdigest()
    pieces[pieces.index(_CHECKSUM % b"")] = _CHECKSUM % checksum.encode()
    return b"".join(pieces), checksum


def _refuse_twice(data: bytes, name: str) -> None:
    """Raise `InvalidInput` if an object in a JSON file has a key twice."""

    def check(pairs: list[tuple[str, object]]) -> None:
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            twice = some({key for key in keys if keys.count(key) > 1})
            raise InvalidInput(
                f"{name} was edited after it was written: repeated key {one_line(twice)}; restore the original file"
            )

    json.loads(data, object_pairs_hook=check)


def _pieces(document: Document) -> Iterator[bytes]:
    before = b"{\n"
    for field in document.__struct_fields__:
        value = getattr(document, field)
        if isinstance(value, tuple) and value:
            # Each item of a list is on one line, so that a review shows which items changed.
            yield b'%s "%s": [\n  ' % (before, field.encode())
            # Each line feed separates two items, because JSON escapes the line feeds within an item.
            yield _printable(_ENCODER.encode_lines(value)).replace(b"\n", b",\n  ", len(value) - 1)
            yield b" ]"
        else:
            yield b'%s "%s": %s' % (before, field.encode(), _printable(_ENCODER.encode(value)))
        before = b",\n"
    yield b"\n}\n"


def _printable(content: bytes) -> bytes:
    r"""Return JSON with unprintable characters escaped (``\u202e``), which JSON itself allows in texts.

    Otherwise the name of a group could reverse the text of a terminal, or of a review of the file.
    """
    if content.isascii() and b"\x7f" not in content:
        return content
    return _UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], content.decode()).encode()
