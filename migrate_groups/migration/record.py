"""Refuse a hand-over, rollback, hand-back or delete-offsets that the receipt of the run forbids."""

from __future__ import annotations

from migrate_groups.errors import Refused
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb


def refuse_by_record(receipt: Receipt, verb: Verb) -> None:
    """Raise `Refused` if the receipt of the run forbids this verb (hand-over, rollback, hand-back, delete-offsets).

    The message names the partitions, and why.
    """
    reasons = receipt.refusals(verb)
    if reasons:
        raise Refused(f"{'; '.join(reasons)}; nothing was written")
