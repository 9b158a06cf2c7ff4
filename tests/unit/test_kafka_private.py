"""kafka-python's private names: missing ones are reported, and only kafka/private.py uses them."""

from __future__ import annotations

import ast

from kafka import KafkaAdminClient

from migrate_groups.kafka import private
from tests.support.sources import modules


def test_the_installed_version_has_every_private_part():
    """The installed kafka-python has every private name that this package uses."""
    assert private.lacking() == []


def test_a_missing_private_part_is_named_with_its_reason():
    """If kafka-python lacks a private name, `lacking` returns this name with the reason for its use."""
    assert private.lacking({KafkaAdminClient: {"_gone": "it did something"}}) == [
        "KafkaAdminClient._gone: it did something"
    ]


def test_private_parts_are_used_in_one_module_only():
    """Only the module ``kafka/private.py`` uses the private names of kafka-python that it lists in ``USED``."""
    names = {name for of_class in private.USED.values() for name in of_class}
    found = {
        str(path): node.attr
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in names
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    }
    assert set(found) <= {"kafka/private.py"}
