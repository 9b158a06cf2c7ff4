"""Settings of the property tests (hypothesis)."""

from __future__ import annotations

from hypothesis import settings

# Examples have no deadline, because a busy machine may take seconds for one. Border values are in the tests themselves.
settings.register_profile("unit", deadline=None, max_examples=40)
settings.load_profile("unit")
