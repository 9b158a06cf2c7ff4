"""The user and the host of this process, and the version of this tool, for the record of a write."""

from __future__ import annotations

import os
import platform
import pwd

from migrate_groups import __version__
from migrate_groups.errors import UsageError
from migrate_groups.planning.written_by import WrittenBy

_LONGEST = 200


def written_by(reference: str = "") -> WrittenBy:
    """Return who writes: the user of this process and this machine, and ``reference``.

    reference: why offsets are written, such as the number of a change ticket; empty if not said. Raises `UsageError` if
    it is longer than 200 characters or has unprintable ones.
    """
    if len(reference) > _LONGEST or not reference.isprintable():
        raise UsageError(f"the reference is longer than {_LONGEST} characters, or not one printable line: shorten it")
    return WrittenBy(operator=_operator(), version=__version__, reference=reference)


def _operator() -> str:
    user = os.geteuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:  # a container may run as a user without a name
        name = str(user)
    return f"{name}@{platform.node()}"
