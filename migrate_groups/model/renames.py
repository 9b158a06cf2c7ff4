"""Rules that give other names to groups or topics, such as ``orders=eu.orders``, and the names of mirrored topics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.text import some


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


def names_of_copies(
    topics: Collection[str], there: Collection[str], renames: Sequence[Rename] = ()
) -> Mapping[str, str]:
    """Return the names on the target cluster, by names on the source cluster. A topic without a copy is absent.

    The first rule of ``renames`` that applies gives the name. If no rule applies, the name is one that MirrorMaker 2
    gives: the same name (IdentityReplicationPolicy), or a cluster alias, a dot and the name (DefaultReplicationPolicy).

    there: the names of all topics on the target cluster. Raises `InvalidInput` if a topic has several possible copies,
    or if two topics have the same copy.
    """
    named, _ = new_names(renames, topics)
    found: dict[str, str] = {}
    for topic in sorted(topics):
        if (name := named.get(topic)) is not None:
            possible = [name] if name in there else []
        else:
            possible = sorted(each for each in there if each == topic or _is_prefixed(each, topic))
        if len(possible) > 1:
            raise InvalidInput(
                f"topic {topic!r} may be {some(possible)} on the target: say which one is the mirror's copy with "
                f"--rename-topic {topic}=COPY"
            )
        other = next((name for name in found if possible and found[name] == possible[0]), None)
        if other is not None:
            raise InvalidInput(
                f"topics {other!r} and {topic!r} have one copy, {possible[0]!r}: say each with --rename-topic"
            )
        if possible:
            found[topic] = possible[0]
    return found


def _is_prefixed(name: str, topic: str) -> bool:
    """Return whether a name is a cluster alias (without dots), a dot, and the topic's name: ``eu.orders``."""
    return name.endswith(f".{topic}") and "." not in name.removesuffix(f".{topic}")


def _not_a_rename(option: str, text: str) -> UsageError:
    return UsageError(f"{option} is {text!r}; expected OLD=NEW, such as orders=eu.orders or '*=eu.*'")
