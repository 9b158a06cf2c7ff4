"""Rules that give other names to groups or topics, such as ``orders=eu.orders`` or ``*=eu.*``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from migrate_groups.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A rule that gives a new name to one name, or to all names that a pattern with a star matches.

    A star stands for the same characters in both names. option: where the rule comes from, for the error. Raises
    `UsageError` if a name is empty, or if not both or neither of them have one star.
    """

    old: str
    new: str
    option: str

    def __post_init__(self) -> None:
        if not (self.old and self.new):
            raise _not_a_rename(self.option, f"{self.old}={self.new}")
        if [self.old.count("*"), self.new.count("*")] not in ([0, 0], [1, 1]):
            raise UsageError(f"{self.option} is '{self.old}={self.new}': write one * on both sides, or none")

    @staticmethod
    def parse(text: str, option: str) -> Rename:
        """Return the rule that ``OLD=NEW`` says. Raises `UsageError` if the text is malformed."""
        sides = text.split("=")
        if len(sides) != 2:
            raise _not_a_rename(option, text)
        return Rename(old=sides[0], new=sides[1], option=option)

    def name(self, name: str) -> str | None:
        """Return the new name that this rule gives to ``name``; None if the rule does not apply to it."""
        before, star, after = self.old.partition("*")
        if not star:
            return self.new if name == self.old else None
        if len(name) < len(before) + len(after) or not name.startswith(before) or not name.endswith(after):
            return None
        return self.new.replace("*", name[len(before) : len(name) - len(after)])


def new_names(rules: Sequence[Rename], names: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """Return the new name of each name to which a rule applies, and the old names of the rules that apply to none.

    The first rule that applies gives the name.
    """
    found: dict[str, str] = {}
    for name in names:
        new = next((new for rule in rules if (new := rule.name(name)) is not None), None)
        if new is not None:
            found[name] = new
    return found, [rule.old for rule in rules if not any(rule.name(name) is not None for name in names)]


def _not_a_rename(option: str, text: str) -> UsageError:
    return UsageError(f"{option} is {text!r}; expected OLD=NEW, such as orders=eu.orders or '*=eu.*'")
