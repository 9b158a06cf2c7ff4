"""Find the names that a mirror gives to topics on the target cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from migrate_groups.errors import InvalidInput
from migrate_groups.model.renames import Rename
from migrate_groups.text import some


def names_of_copies(
    topics: Collection[str], there: Collection[str], renames: Sequence[Rename] = ()
) -> Mapping[str, str]:
    """Return the names on the target cluster, by names on the source cluster. A topic without a copy is absent.

    The first rule of ``renames`` that applies gives the name. If no rule applies, the name is one that MirrorMaker 2
    gives: the same name (IdentityReplicationPolicy), or a cluster alias, a dot and the name (DefaultReplicationPolicy).

    there: the names of all topics on the target cluster. Raises `InvalidInput` if a topic has several possible copies,
    or if two topics have the same copy.
    """
    found: dict[str, str] = {}
    for topic in sorted(topics):
        rule = next((name for each in renames if (name := each.name(topic)) is not None), None)
        if rule is not None:
            possible = [rule] if rule in there else []
        else:
            possible = sorted(name for name in there if name == topic or _is_prefixed(name, topic))
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
