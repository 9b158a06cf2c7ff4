"""Client properties from environment variables, and the names of options whose values come from variables.

The client properties are removed from the environment, so that child processes don't get the secrets in them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

PROPERTIES = "MIGRATE_GROUPS_PROPERTIES"
TARGET_PROPERTIES = "MIGRATE_GROUPS_TO_PROPERTIES"
"""The variable with the properties of the target cluster, for commands that connect to two clusters."""

properties: ContextVar[Mapping[str, str]] = ContextVar("properties", default=MappingProxyType({}))
"""The values of `PROPERTIES` and `TARGET_PROPERTIES`, by the variable's name, as far as they were set."""

from_variables: ContextVar[frozenset[str]] = ContextVar("from_variables", default=frozenset())
"""The names of the command's parameters, such as ``bootstrap_server``, whose values come from environment variables."""


def take_properties() -> None:
    """Move ``MIGRATE_GROUPS_PROPERTIES`` and ``MIGRATE_GROUPS_TO_PROPERTIES`` from the environment to `properties`.

    `properties` is a context variable with the texts of these variables, by name.
    """
    names = (PROPERTIES, TARGET_PROPERTIES)
    properties.set({name: text for name in names if (text := os.environ.pop(name, ""))})
