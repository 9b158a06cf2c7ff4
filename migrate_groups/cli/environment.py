"""The client properties of the environment: no child process inherits them, because they may have secrets."""

from __future__ import annotations

import os
from contextvars import ContextVar

PROPERTIES = "MIGRATE_GROUPS_PROPERTIES"
properties: ContextVar[str] = ContextVar(PROPERTIES, default="")


def take_properties() -> None:
    """Remove the properties from this process's environment, and keep them in ``properties``."""
    properties.set(os.environ.pop(PROPERTIES, ""))
