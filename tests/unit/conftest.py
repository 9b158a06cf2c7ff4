"""Fixtures of the unit tests, and settings of the property tests (hypothesis)."""

from __future__ import annotations

import pytest
from hypothesis import settings

from migrate_groups.migration.across import logs
from tests.support.connected import Connected

# Examples have no deadline, because a busy machine may take seconds for one. Border values are in the tests themselves.
settings.register_profile("unit", deadline=None, max_examples=40)
settings.load_profile("unit")


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    """The command line on an in-memory cluster, where ``old`` has committed offset 5 in a log of 10 records."""
    return Connected(tmp_path, monkeypatch)


@pytest.fixture(params=["small windows", "large windows"])
def windows(request, monkeypatch):
    """Whether the first window of records is small, so that most logs are read in several rounds, or large."""
    window, growth = (3, 2) if request.param == "small windows" else (100, 16)
    monkeypatch.setattr(logs, "WINDOW", window)
    monkeypatch.setattr(logs, "_GROWTH", growth)
    return request.param
