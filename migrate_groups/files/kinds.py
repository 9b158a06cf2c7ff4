"""Detect that a user passed a file of the wrong kind, and make the error message that says so."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import NamedTuple

from migrate_groups.errors import InvalidInput

SNAPSHOT, SPEC, PLAN, RECEIPT = "a snapshot", "a split spec", "a plan", "a receipt"


class _Kind(NamedTuple):
    """A kind of file that a user may pass by mistake.

    sign: a regular expression that is found in the first 4,096 bytes of such a file. advice: what to do with such a
    file, for the error message.
    """

    name: str
    sign: bytes
    advice: str


_KINDS = (
    _Kind(
        SNAPSHOT,
        rb"\APAR1|\A(?=.*\btopic\b)(?=.*\bpartition\b)[^;\t\n]+\n",
        "pass it to apply, split, filter, rewind or export",
    ),
    _Kind(
        PLAN,
        rb'"schema":\s*"migrate-groups/plan"',
        "pass it to apply as a .json file or on stdin (-), or to migrate --approved",
    ),
    _Kind(
        RECEIPT, rb'"schema":\s*"migrate-groups/receipt"', "pass it to status, rollback, hand-back or delete-offsets"
    ),
    _Kind(
        "the output of kafka-consumer-groups --describe",
        rb"\bCURRENT-OFFSET\b",
        "take a snapshot with migrate-groups snapshot GROUP -o before.csv",
    ),
    _Kind("a CSV file with semicolons or tabs", rb"\A[^, ;\t\n]*[;\t][^, ;\t\n]*[;\t]", "save it with commas"),
    _Kind("a spreadsheet", rb"\APK\x03\x04", "save it as CSV with commas"),
    _Kind(SPEC, rb"(?m)^[ \t]*(source[ \t]*=|\[\[target\]\])", "pass it to migrate, or to split --spec"),
    _Kind(
        "a file of client properties",
        rb"(?m)^[ \t]*(bootstrap\.servers|metadata\.broker\.list|security\.protocol)[ \t]*[=:]",
        "pass it as --command-config",
    ),
)
_BEGINNING = 4096
# What to pass instead of a file of this kind, where a receipt is expected. {name} is the name of the file, {receipts}
# the receipts beside it.
_RECEIPTS = {
    SNAPSHOT: "pass the receipt of its write{receipts}, or the run directory of migrate",
    SPEC: "pass its run directory, {name}.run",
    PLAN: "pass the receipt of its write, or the run directory of migrate",
}


def beginning_of(path: Path) -> bytes:
    """Return the first 4,096 bytes of a file; empty if the file can't be read."""
    try:
        with path.open("rb") as file:
            return file.read(_BEGINNING)
    except OSError:
        return b""


def mistaken(data: bytes, name: str, expected: str) -> InvalidInput | None:
    """Return an error if a file is known to be of another kind than ``expected``; otherwise None.

    data: the bytes of the file. name: its name, for the error. expected: the name of a kind of file, such as ``a
    receipt``.
    """
    beginning = bytes(data[:_BEGINNING])
    kind = next((each for each in _KINDS if re.search(each.sign, beginning)), None)
    if kind is None or kind.name == expected:
        return None
    instead = _RECEIPTS.get(kind.name) if expected == RECEIPT else None
    if kind.name == SPEC and not instead and Path(f"{name}.run").is_dir():
        instead = f"{kind.advice}; its run directory is {{name}}.run"
    advice = (instead or kind.advice).format(name=name, receipts=_receipts_of(Path(name)))
    return InvalidInput(f"{name} is {kind.name}, not {expected}: {advice}")


def _receipts_of(path: Path) -> str:
    """Return text for an error message: up to three receipts beside a file, or ``(there is none beside it)``."""
    found = sorted(path.parent.glob(f"{glob.escape(path.name)}*.receipt.json"))
    return f", {' or '.join(map(str, found[:3]))}" if found else " (there is none beside it)"
