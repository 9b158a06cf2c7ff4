"""Python's fork server imports this module, which loads all that commands use (`forked`)."""

from __future__ import annotations

from tests.support import forked

forked.load()
