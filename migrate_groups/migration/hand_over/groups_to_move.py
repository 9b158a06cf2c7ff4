"""Find the consumer groups to move to another cluster, from the names and globs in a spec."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Sequence

from migrate_groups.errors import InvalidInput
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.offsets_topic import OWN_GROUPS
from migrate_groups.text import did_you_mean, named


def find_groups(reader: GroupReader, patterns: Sequence[str], reviewed: Collection[str] = ()) -> list[str]:
    """Return the names of the groups that match the patterns, each once, in the order of the patterns.

    patterns: globs, and names of groups. A name is returned even if the group does not exist. Globs do not match the
    groups of this tool. reviewed: more names that globs can match, even if these groups no longer exist.

    Raises `InvalidInput` if a glob matches no group; `ClusterUnavailable` and `NotAuthorized`.
    """
    # A probe group (`migration.barrier`) may be left on the source cluster. No application uses it.
    listed = sorted({each.group for each in reader.list_groups() if not each.group.startswith(OWN_GROUPS)})
    found: dict[str, None] = {}
    useless = []
    for pattern in patterns:
        if pattern in listed or not _is_glob(pattern):
            matches = [pattern]
        else:
            matches = fnmatch.filter(sorted({*listed, *reviewed}), pattern)
        found |= dict.fromkeys(matches)
        useless += [] if matches else [pattern]
    if useless:
        advice = did_you_mean(useless, listed) or "correct or remove it"
        raise InvalidInput(
            f"no group that {reader.principal} may describe matches {named('the glob', useless)}: {advice}"
        )
    return list(found)


def _is_glob(pattern: str) -> bool:
    return any(each in pattern for each in "*?[")
