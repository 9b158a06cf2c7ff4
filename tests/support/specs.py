"""The text of split specs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence


def split_spec(
    source: str, targets: Mapping[str, str | Sequence[str]], *, stay: Sequence[str] = (), **options: str
) -> str:
    """Return the TOML of a spec. Its settle and guard are 0 s if ``options`` does not set them.

    targets: the topics of each target group. stay: the topics that stay with the source group.
    """
    lines = [f"source = {json.dumps(source)}"]
    for group, topics in targets.items():
        named = [topics] if isinstance(topics, str) else [*topics]
        lines += ["[[target]]", f"group = {json.dumps(group)}", f"topics = {json.dumps(named)}"]
    lines += ["[stay]", f"topics = {json.dumps([*stay])}"] if stay else []
    given = {"settle": "0s", "guard": "0s"} | options
    return "\n".join([*lines, "[options]", *(f"{name} = {json.dumps(value)}" for name, value in given.items()), ""])
