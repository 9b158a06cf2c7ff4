"""Who wrote offsets, with which version of this tool, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBy:
    """Who wrote offsets, with which version of this tool, and why. Receipts keep it for each write.

    - operator: user and host, such as ``alice@bastion``; empty if not known.
    - version: the version of this tool; empty if not known.
    - reference: what the user passed, such as the number of a change ticket; empty if nothing.
    """

    operator: str = ""
    version: str = ""
    reference: str = ""

    def __str__(self) -> str:
        """Return this as text, such as ``alice@bastion, migrate-groups 0.1.0, reference CHG-7``."""
        parts = (self.operator, f"migrate-groups {self.version}", f"reference {self.reference}" * bool(self.reference))
        return ", ".join(filter(None, parts))


NOT_KNOWN = WrittenBy()
"""The value of a write whose operator is not known."""
