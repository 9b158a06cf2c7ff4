"""A plan as a comment on a pull request: a summary that a person reads first, then every partition, folded by group.

GitHub takes 65,536 characters. A plan that needs more is cut, with counts and the name of the file that has it all.
"""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from migrate_groups.plan.plan import Action, Change, Check, Plan, Verdict
from migrate_groups.show import changes as in_words
from migrate_groups.text import counted, one_line

# In bytes, which characters never exceed, however they are counted; the rest is for a line that a workflow adds.
_MOST_BYTES = 64_000
_MEANING = {
    Verdict.PASS: "every check passes",
    Verdict.WARN: "no check refuses",
    Verdict.PENDING: "no check refuses; what is pending must hold at the write",
    Verdict.REFUSE: "refused: nothing can be written",
}


class _Size(NamedTuple):
    """How much is shown: rows of a table and groups, characters of a name or a reason."""

    rows: int
    characters: int


_SIZES = tuple(
    _Size(rows, characters)
    for rows, characters in (
        (1_000_000, 2_000),
        (1_000, 1_000),
        (700, 600),
        (500, 500),
        (300, 300),
        (200, 250),
        (100, 200),
        (50, 150),
        (20, 100),
        (10, 60),
    )
)


def plan(plan: Plan, plan_file: str | None = None) -> str:
    """Return the plan as GitHub's Markdown, at most 64,000 bytes; ``plan_file`` is where all of it is saved."""
    return next(text for size in _SIZES if len((text := _render(plan, plan_file, size)).encode()) <= _MOST_BYTES)


def _render(plan: Plan, plan_file: str | None, size: _Size) -> str:
    groups: dict[str, list[Change]] = defaultdict(list)
    for change in plan.changes:
        groups[change.group].append(change)
    cut = size is not _SIZES[0]
    blocks = [
        f"### Consumer groups: {in_words.tally(plan.changes)}",
        f"**{plan.verdict}**: {_MEANING[plan.verdict]}. Cluster {_code(plan.cluster_id, size)}.",
        *([_where_all_is(plan_file, size)] if cut else []),
        _hand_overs(plan.changes, size),
        _attention(plan.checks, size),
        _folded(f"{counted(len(plan.checks), 'check')}: {_verdicts(plan.checks)}", _checks(plan.checks, size)),
        *(_group(group, of_group, size) for group, of_group in list(groups.items())[: size.rows]),
        _more(len(groups) - size.rows, "group"),
        f"intent {_code(plan.intent, _SIZES[0])}<br>content {_code(plan.content, _SIZES[0])}",
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _where_all_is(plan_file: str | None, size: _Size) -> str:
    if plan_file:
        return f"**Cut to fit a comment**: {_code(plan_file, size)} has every partition."
    return "**Cut to fit a comment**: `--plan-out plan.json` saves every partition."


def _hand_overs(changes: Sequence[Change], size: _Size) -> str:
    counts: dict[tuple[str | None, str], Counter[Action]] = defaultdict(Counter)
    topics: dict[tuple[str | None, str], set[str]] = defaultdict(set)
    for change in changes:
        pair = change.source_group, change.group
        counts[pair][change.action] += 1
        topics[pair].add(change.topic)
    rows = (
        (
            _code(source, size) if source is not None else "(set)",
            _code(group, size),
            f"{len(topics[source, group]):,}",
            *(f"{counts[source, group][action]:,}" for action in Action),
        )
        for source, group in counts
    )
    header = ("from", "to", "topics >", *(f"{action} >" for action in Action))
    return _table(header, rows, len(counts), size, "hand-over")


def _attention(checks: Sequence[Check], size: _Size) -> str:
    worst_first = sorted(checks, key=lambda check: list(Verdict).index(check.verdict), reverse=True)
    return "\n".join(
        f"- **{check.verdict}** {_prose(check.name, size)}: {_prose(check.reason, size)}"
        for check in worst_first
        if check.verdict is not Verdict.PASS
    )


def _checks(checks: Sequence[Check], size: _Size) -> str:
    rows = ((check.verdict, _prose(check.name, size), _prose(check.reason, size)) for check in checks)
    return _table(("verdict", "check", "reason"), rows, len(checks), size, "check")


def _verdicts(checks: Sequence[Check]) -> str:
    counts = Counter(check.verdict for check in checks)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def _group(group: str, changes: Sequence[Change], size: _Size) -> str:
    # Raw HTML up to the next empty line: Markdown means nothing in it, and nobody is mentioned within <code>.
    summary = f"<code>{html.escape(_cut(group, size))}</code>: {in_words.tally(changes)}"
    rows = ((_code(change.topic, size), str(change.partition), *in_words.cells(change)) for change in changes)
    header = ("topic", "partition >", "before >", "after >", "change")
    return _folded(summary, _table(header, rows, len(changes), size, "partition"))


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], number: int, size: _Size, thing: str) -> str:
    """Return a table; a column whose name ends in ``>`` is aligned to the right."""
    sides = ["--:" if name.endswith(">") else ":--" for name in header]
    shown = (row for _, row in zip(range(size.rows), rows, strict=False))
    lines = "\n".join(_lines([[name.removesuffix(" >") for name in header], sides, *shown]))
    more = _more(number - size.rows, thing)
    return f"{lines}\n\n{more}" if more else lines


def _lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    # Within a table a pipe is escaped wherever it stands, in code as well (GFM).
    return ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def _more(rest: int, thing: str) -> str:
    return f"… and {counted(rest, thing)} more" if rest > 0 else ""


def _code(text: str, size: _Size) -> str:
    """Return a name as code, in which GitHub sees no Markdown, HTML, mention or reference."""
    text = _cut(text, size)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _prose(text: str, size: _Size) -> str:
    """Return a sentence, in which foreign names stand, as text: no Markdown, HTML, link, mention or reference."""
    escaped = re.sub(r"([\\`*_\[\]<>&~$]|(?<=www)\.|:(?=//))", r"\\\1", _cut(text, size))
    # An escape would not do: who is mentioned is looked for in what has been rendered.
    return re.sub("([@#])", r"\1&#8203;", escaped)


def _cut(text: str, size: _Size) -> str:
    text = one_line(text)
    return text if len(text) <= size.characters else text[: size.characters - 1] + "…"
