"""Settings of the property tests."""

from __future__ import annotations

from hypothesis import settings

# No test here is timed: a busy machine may take seconds for an example. The values at the borders are in the tests.
settings.register_profile("unit", deadline=None, max_examples=40)
settings.load_profile("unit")
