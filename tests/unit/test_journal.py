"""The receipt's file: kept before the first request, or nothing is written; lost later, it is exit 4."""

from __future__ import annotations

import shutil

import pytest

from migrate_groups.cli.writing import Journal, finish
from migrate_groups.errors import InvalidInput, PartlyApplied, UsageError
from migrate_groups.plan.options import WriteOptions
from migrate_groups.plan.plan import Plan
from migrate_groups.plan.receipt import Receipt
from tests.support.rows import NOON


def plan(cluster: str = "c") -> Plan:
    return Plan(cluster_id=cluster, options=WriteOptions(), changes=(), checks=())


RECEIPT = Receipt.of(plan(), NOON)


def test_a_receipt_that_cannot_be_kept_before_the_first_request_stops_everything(tmp_path):
    """The first record fails: nothing was written yet, so it is an error about a file."""
    journal = Journal(tmp_path / "r.json")
    shutil.rmtree(tmp_path)
    with pytest.raises(InvalidInput, match="no folder"):
        journal.record(RECEIPT)


def test_a_receipt_that_is_lost_later_is_partly_applied(tmp_path):
    """Once requests were sent the work is brought to its end, and the command fails with exit 4."""
    journal = Journal(tmp_path / "r.json")
    journal.record(RECEIPT)
    shutil.rmtree(tmp_path)
    journal.record(RECEIPT)
    with pytest.raises(PartlyApplied, match="receipt could not be kept"):
        finish(RECEIPT, journal)


def test_another_migrations_receipt_is_left_alone(tmp_path):
    """The file of another intent is refused, the same one is resumed."""
    journal = Journal(tmp_path / "r.json")
    assert journal.earlier(plan()) is None
    journal.record(RECEIPT)
    assert journal.earlier(plan()) == RECEIPT
    with pytest.raises(UsageError, match="another migration"):
        journal.earlier(plan("elsewhere"))
