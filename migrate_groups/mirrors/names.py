"""Find the names that a mirror gives to topics on the target cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.text import some


@dataclass(frozen=True, slots=True)
class Rename:
    """A rule for the names of topics: the name on the source cluster, ``=``, and the name on the target cluster.

    An example is ``*=eu.*``. A star stands for any characters, and for the same ones in both names. Raises `UsageError`
    if the text does not have exactly one ``=``, if a name is empty or has several stars, or if only one has a star.
    """

    text: str

    def __post_init__(self) -> None:
        sides = self.text.split("=")
        if len(sides) != 2 or not all(sides):
            raise UsageError(f"--rename-topic is {self.text!r}; expected such as orders=eu.orders or '*=eu.*'")
        if [side.count("*") for side in sides] not in ([0, 0], [1, 1]):
            raise UsageError(f"--rename-topic is {self.text!r}: write one * on both sides, or none")

    def name(self, topic: str) -> str | None:
        """Return the name of a topic on the target cluster; None if the rule does not apply to the topic.

        topic: its name on the source cluster.
        """
        source, target = self.text.split("=")
        before, star, after = source.partition("*")
        if not star:
            return target if topic == source else None
        if len(topic) < len(before) + len(after) or not topic.startswith(before) or not topic.endswith(after):
            return None
        return target.replace("*", topic[len(before) : len(topic) - len(after)])


@dataclass(frozen=True, slots=True)
class TopicNames:
    """Finds the names of topics on the target cluster.

    The first of ``rules`` that applies to a topic gives its name. If none applies, the name is that of a MirrorMaker 2
    policy: the same name (IdentityReplicationPolicy), or the alias of a cluster, a dot, and the name
    (DefaultReplicationPolicy).
    """

    rules: Sequence[Rename] = ()

    def of(self, topics: Collection[str], there: Collection[str]) -> Mapping[str, str]:
        """Return the names on the target cluster, by the names on the source cluster.

        A topic without a copy has no entry.

        topics: the names on the source cluster. there: the names of all topics on the target cluster. Raises
        `InvalidInput` if a topic has several possible copies, or if two topics have the same copy.
        """
        found: dict[str, str] = {}
        for topic in sorted(topics):
            rule = next((name for each in self.rules if (name := each.name(topic)) is not None), None)
            if rule is not None:
                possible = [rule] if rule in there else []
            else:
                possible = sorted(name for name in there if name == topic or _is_prefixed(name, topic))
            if len(possible) > 1:
                raise InvalidInput(
                    f"topic {topic!r} may be {some(possible)} on the target: say it with --rename-topic "
                    f"{topic}={possible[0]}"
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
    """Return whether a name is a prefix without a dot (the alias of a cluster), a dot, and the name of a topic."""
    return name.endswith(f".{topic}") and "." not in name.removesuffix(f".{topic}")
