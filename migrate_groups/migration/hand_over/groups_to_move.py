"""The groups of a fleet: which groups the names and globs of its spec match, and what their new groups are called."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from migrate_groups.errors import InvalidInput, Refused, UsageError
from migrate_groups.files.runs import plan_json
from migrate_groups.files.runs.run_dir import RunDir, plan_of_group
from migrate_groups.files.split_toml import GroupsFile, SplitFile
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.offsets_topic import OWN_GROUPS
from migrate_groups.model.renames import Rename, new_names
from migrate_groups.planning.plan import Plan
from migrate_groups.text import counted, did_you_mean, named, some

Reviewed = tuple[str, Plan]
"""The name of the file of a reviewed plan, and the plan."""


class FoundGroups(NamedTuple):
    """The groups of a fleet.

    splits: by which each group hands over all its topics, by the group's name, in the order of the spec. left_out: why
    groups that the spec matches are not in ``splits``, by their name. reviewed: the reviewed plans of the groups in
    ``splits``, by the group's name; empty if no plan was reviewed.
    """

    splits: Mapping[str, SplitFile]
    left_out: Mapping[str, str]
    reviewed: Mapping[str, Reviewed]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeGroups:
    """The groups of a spec file that hand over all their topics, each to one new group.

    - file: the spec file.
    - renames: rules that come before those of the spec.
    - reviewed: the folder of the reviewed plans; None: no plan was reviewed.
    """

    file: GroupsFile
    renames: Sequence[Rename] = ()
    reviewed: Path | None = None

    def find(self, reader: GroupReader, *, elsewhere: bool, run: RunDir | None = None) -> FoundGroups:
        """Return the groups, each once, in the order of the spec.

        reader: the reader of the source groups. elsewhere: whether the new groups are on another cluster. run: the
        folder of an earlier run: a glob matches the groups that it was to hand over, even if they no longer exist.

        Raises `InvalidInput` if a glob of the spec matches no group, if a group needs another name and gets none, or if
        a reviewed plan is invalid. Raises `UsageError` if a rule names an unknown group, or gives several groups one
        name. Raises `Refused` if no group was reviewed; `ClusterUnavailable` and `NotAuthorized`.
        """
        paths = sorted(self.reviewed.glob("*.json")) if self.reviewed else []
        plans = {path: plan_json.load(path).plan for path in paths}
        once = {change.source_group for plan in plans.values() for change in plan.changes if change.source_group}
        once |= {plan.translation.group for plan in plans.values() if plan.translation}
        # Without the groups of this tool: a probe group (`migration.barrier`) may be left on the source cluster.
        listed = sorted({each.group for each in reader.list_groups() if not each.group.startswith(OWN_GROUPS)})
        once |= {*run.not_begun(others_than=listed)} if run else set()
        found = _excluded(_find(reader.principal, listed, self.file.groups, once), self.file.exclude)
        targets = self._targets(found)
        left_out: dict[str, str] = {}
        if not elsewhere:
            # A re-run finds the new groups of groups that were handed over before.
            by_glob = set(found) - set(self.file.groups)
            new = {target: group for group, target in targets.items() if target != group}
            left_out = {
                each: f"it is the new group of {new[each]}" for each in found if each in new and each in by_glob
            }
            for each in by_glob - left_out.keys():
                if old := self._deleted(each):
                    left_out[each] = f"it has the name of the new group of {old}: name it in groups if it is another"
            _check_other_names({each: target for each, target in targets.items() if each not in left_out})
        reviewed: dict[str, Reviewed] = {}
        if self.reviewed is not None:
            files = {group: plan_of_group(self.reviewed, group) for group in targets}
            reviewed = {group: (str(path), plans[path]) for group, path in files.items() if path in plans}
            without = [group for group in targets if group not in reviewed]
            left_out |= dict.fromkeys(without, f"{self.reviewed} has no plan of it, so it was not reviewed")
        splits = {
            group: self.file.of_group(group, target) for group, target in targets.items() if group not in left_out
        }
        if not splits:
            raise Refused(f"no group is left: {some([f'{each} ({why})' for each, why in left_out.items()])}")
        return FoundGroups(splits, left_out, reviewed)

    def _deleted(self, group: str) -> str | None:
        """Return the group of the spec, perhaps deleted since it was handed over, whose new group has this name."""
        rules = [*self.renames, *self.file.renames]
        for old in [name for rule in rules if (name := replace(rule, old=rule.new, new=rule.old).name(group))]:
            matched = any(fnmatch.fnmatchcase(old, each) for each in self.file.groups)
            if old != group and matched and new_names(rules, [old])[0] == {old: group}:
                return old
        return None

    def _targets(self, groups: Sequence[str]) -> dict[str, str]:
        """Return the name of each group's new group."""
        rules = [*self.renames, *self.file.renames]
        names, unknown = new_names(rules, groups)
        if unknown:
            raise UsageError(
                f"{rules[0].option}: {named('group', unknown)} not among the groups of the spec: {some(groups)}"
            )
        targets = {group: names.get(group, group) for group in groups}
        sharing: dict[str, list[str]] = defaultdict(list)
        for group, target in targets.items():
            sharing[target].append(group)
        for target, sources in sharing.items():
            if len(sources) > 1:
                raise UsageError(
                    f"{(rules[0].option if rules else 'rename')} would give {target!r} the offsets of "
                    f"{counted(len(sources), 'group')} ({some(sources)}): give each group a name of its own"
                )
        return targets


def _check_other_names(targets: Mapping[str, str]) -> None:
    """Raise `InvalidInput` if a new group on the same cluster has the name of a group of the fleet."""
    same = [group for group, target in targets.items() if target == group]
    if same:
        raise InvalidInput(
            f"{named('group', same)} would keep the name on the same cluster: give other names, for instance with "
            'rename = ["*=new.*"] in the spec, or pass --to-bootstrap-server for another cluster'
        )
    both = [f"{target} (of {group})" for group, target in targets.items() if target in targets]
    if both:
        raise InvalidInput(
            f"{named('new group', both)} also in groups: hand over one after the other, with two specs, or exclude one"
        )


def _excluded(groups: Sequence[str], exclude: Sequence[str]) -> list[str]:
    return [group for group in groups if not any(group == each or fnmatch.fnmatchcase(group, each) for each in exclude)]


def _find(principal: str, listed: Sequence[str], patterns: Sequence[str], once: Collection[str]) -> list[str]:
    """Return the names of the groups that match the patterns, each once, in the order of the patterns.

    listed: the groups that ``principal`` may describe. patterns: globs, and names of groups. A name is returned even if
    the group does not exist. once: more names that globs can match, even if these groups no longer exist. Raises
    `InvalidInput` if a glob matches no group.
    """
    found: dict[str, None] = {}
    useless = []
    for pattern in patterns:
        if pattern in listed or not _is_glob(pattern):
            matches = [pattern]
        else:
            matches = fnmatch.filter(sorted({*listed, *once}), pattern)
        found |= dict.fromkeys(matches)
        useless += [] if matches else [pattern]
    if useless:
        advice = did_you_mean(useless, listed) or "correct or remove it"
        raise InvalidInput(f"no group that {principal} may describe matches {named('the glob', useless)}: {advice}")
    return list(found)


def _is_glob(pattern: str) -> bool:
    return any(each in pattern for each in "*?[")
