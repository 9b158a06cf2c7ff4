"""Decode JSON into a class, from any thread."""

from __future__ import annotations

import threading
from typing import TypeVar

import msgspec

T = TypeVar("T")

# msgspec 0.22 prepares a class while it decodes the first JSON into it, and crashes (SIGSEGV) if two threads
# do so at once. It holds Python's lock while it decodes, so that this lock costs nothing.
_LOCK = threading.Lock()


def decode(data: bytes | str, kind: type[T]) -> T:
    """Return the object of class ``kind`` that the text describes. Raises the errors of ``msgspec.json.decode``."""
    with _LOCK:
        return msgspec.json.decode(data, type=kind)
