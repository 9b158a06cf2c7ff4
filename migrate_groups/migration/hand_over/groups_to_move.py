"""The consumer groups to move whole to another cluster, from the names and globs in a spec."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from migrate_groups.errors import InvalidInput, Refused, UsageError
from migrate_groups.files.runs import plan_json
from migrate_groups.files.runs.run_dir import plan_of_group
from migrate_groups.files.split_toml import GroupsFile, SplitFile
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.offsets_topic import OWN_GROUPS
from migrate_groups.model.renames import new_names
from migrate_groups.text import counted, did_you_mean, named, some


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeGroups:
    """The consumer groups of a spec file that move to another cluster with all their topics.

    - file: the spec file.
    - names: the new name on the target cluster of each group that is renamed, by its old name, as `new_names` takes it.
    - reviewed: the folder of the reviewed plans; None: no plan was reviewed.
    """

    file: GroupsFile
    names: Mapping[str, str] = field(default_factory=dict)
    reviewed: Path | None = None

    def find(self, reader: GroupReader) -> list[str]:
        """Return the names of the groups, each once, in the order of the spec.

        reader: the reader of the source groups. Raises `InvalidInput` if a glob of the spec matches no group, or if a
        reviewed plan is invalid. Raises `UsageError` if ``names`` has an unknown group, or gives several groups one
        name. Raises `ClusterUnavailable` and `NotAuthorized`.
        """
        plans = [plan_json.load(path).plan for path in sorted(self.reviewed.glob("*.json"))] if self.reviewed else []
        reviewed = {each.translation.group for each in plans if each.translation is not None}
        found = _find(reader, self.file.groups, reviewed)
        names, unknown = new_names(self.names, found)
        if unknown:
            raise UsageError(f"--rename: {named('group', unknown)} not among the groups of the spec: {some(found)}")
        movers: dict[str, list[str]] = defaultdict(list)
        for group in found:
            movers[names.get(group, group)].append(group)
        if merged := {target: groups for target, groups in movers.items() if len(groups) > 1}:
            target, groups = next(iter(merged.items()))
            raise UsageError(
                f"--rename would give {target!r} the offsets of {counted(len(groups), 'group')} ({some(groups)}): give "
                "each group a name of its own"
            )
        return found

    def of_group(self, group: str) -> SplitFile:
        """Return the split by which all topics of a group go to its target group."""
        file = self.file.of_group(group)
        if names := new_names(self.names, [group])[0]:
            file = replace(file, spec=file.spec.renamed(names))
        return file

    def reviewed_plan(self, group: str) -> Path | None:
        """Return the file of a group's reviewed plan; None if no plan was reviewed.

        Raises `Refused` if the file does not exist.
        """
        if self.reviewed is None:
            return None
        plan = plan_of_group(self.reviewed, group)
        if not plan.exists():
            raise Refused(
                f"{plan} does not exist, so the move of group {group!r} was not reviewed: have new plans reviewed"
            )
        return plan


def _find(reader: GroupReader, patterns: Sequence[str], reviewed: Collection[str]) -> list[str]:
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
