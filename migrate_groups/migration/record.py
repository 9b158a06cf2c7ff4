"""What the record of a run forbids."""

from __future__ import annotations

from migrate_groups.errors import Refused
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb


def refuse_by_record(receipt: Receipt, verb: Verb) -> None:
    """Raise `Refused` where the record of the run forbids this verb, naming each state with its partitions."""
    reasons = receipt.refusals(verb)
    if reasons:
        raise Refused(f"{'; '.join(reasons)}; nothing was written")
