"""Make the part of a receipt's default file name that names the groups. A receipt records a write of offsets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from urllib.parse import quote

_MOST_OF_GROUPS = 80


def in_file_name(groups: Iterable[str]) -> str:
    """Return the names of groups as a part of a file name: quoted as in a URL, and joined by ``+``.

    More than 80 characters are cut, and a hash is appended.
    """
    names = "+".join(quote(group, safe="") for group in sorted(groups))
    if names.startswith("-"):  # otherwise a command would take the file's name for an option
        names = f"%2D{names[1:]}"
    if len(names) > _MOST_OF_GROUPS:  # because a file name has at most 255 bytes
        names = f"{names[:_MOST_OF_GROUPS]}-{hashlib.sha256(names.encode()).hexdigest()[:16]}"
    return names
