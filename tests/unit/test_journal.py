"""The receipt's file: kept before the first request, or nothing is written; lost later, it is exit 4."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs

from migrate_groups.cli.writing import Journal, finish
from migrate_groups.cluster.ports import CommittedOffset
from migrate_groups.errors import InvalidInput, PartlyApplied, UsageError
from migrate_groups.files import receipt_json
from migrate_groups.plan.options import WriteOptions
from migrate_groups.plan.plan import Change, Plan
from migrate_groups.plan.receipt import HAND_OVER, Deed, Outcome, Purpose, Receipt
from tests.support.rows import NOON


def plan(cluster: str = "c") -> Plan:
    return Plan(cluster_id=cluster, options=WriteOptions(), changes=(), checks=())


RECEIPT = Receipt.of(plan(), NOON)


def test_a_receipt_that_cannot_be_kept_before_the_first_request_stops_everything(tmp_path):
    """The first record fails: nothing was written yet, so it is an error about a file."""
    journal = Journal(tmp_path / "r.json", HAND_OVER)
    shutil.rmtree(tmp_path)
    with pytest.raises(InvalidInput, match="no folder"):
        journal.record(RECEIPT)


def test_a_receipt_that_is_lost_later_is_partly_applied(tmp_path):
    """Once requests were sent the work is brought to its end, and the command fails with exit 4."""
    journal = Journal(tmp_path / "r.json", HAND_OVER)
    journal.record(RECEIPT)
    shutil.rmtree(tmp_path)
    journal.record(RECEIPT)  # it says nothing new, and need not be written
    assert not journal.failure
    journal.record(RECEIPT.remarked("later"))
    with pytest.raises(PartlyApplied, match="receipt could not be kept"):
        finish(RECEIPT, journal)


def test_another_migrations_receipt_is_left_alone(tmp_path):
    """The file of another intent is refused, the same one is resumed."""
    journal = Journal(tmp_path / "r.json", HAND_OVER)
    assert journal.earlier(plan()) is None
    journal.record(RECEIPT)
    assert journal.earlier(plan()) == RECEIPT
    with pytest.raises(UsageError, match="another migration"):
        journal.earlier(plan("elsewhere"))


def test_a_way_back_from_an_earlier_write_is_put_aside(tmp_path):
    """A rollback that answered another run is over: its receipt is kept under another name, and not resumed."""
    path = tmp_path / "receipt.rollback.json"
    first = Journal(path, Purpose(deed=Deed.ROLLBACK, answers=NOON))
    first.record(Receipt.of(plan(), NOON, first.purpose))
    assert first.earlier(plan()) is not None
    second = Journal(path, Purpose(deed=Deed.ROLLBACK, answers=NOON + timedelta(hours=1)))
    assert second.earlier(plan("elsewhere")) is None
    second.record(Receipt.of(plan(), NOON, second.purpose))
    assert second.read().purpose == second.purpose
    (aside,) = tmp_path.glob("receipt.rollback.until-*.json")
    assert receipt_json.load(aside).purpose == first.purpose


def test_the_receipt_of_another_deed_is_refused(tmp_path):
    """A migration does not take a rollback's receipt for its own."""
    journal = Journal(tmp_path / "r.json", HAND_OVER)
    journal.record(Receipt.of(plan(), NOON, Purpose(deed=Deed.ROLLBACK, answers=NOON)))
    with pytest.raises(UsageError, match="the receipt of a rollback"):
        journal.read()


def test_the_way_out_of_exit_4_works_as_printed(tmp_path):
    """What to run again, and what rollback would do, with the path quoted for a shell."""
    journal = Journal(tmp_path / "a b" / "r.json", HAND_OVER, dry_run=True)
    receipt = Receipt.of(made_and_moved(), NOON).with_source_moved(["source group 'old' committed"])
    moved = replace(
        receipt, entries=tuple(structs.replace(each, outcome=Outcome.CONFIRMED) for each in receipt.entries)
    )
    with pytest.raises(PartlyApplied) as raised:
        finish(moved, journal)
    assert f"rollback '{journal.path}', which deletes 2 offsets and restores 1 offset" in str(raised.value)


def made_and_moved() -> Plan:
    """Two offsets that are created, one that is moved, one that is unchanged."""
    places = ((None, 5), (None, 6), (1, 7), (8, 8))
    changes = (
        Change(
            source_group="old",
            group="new",
            topic="t",
            partition=number,
            before=None if before is None else CommittedOffset(offset=before),
            after=CommittedOffset(offset=after),
        )
        for number, (before, after) in enumerate(places)
    )
    return replace(plan(), changes=tuple(changes))


def test_a_receipt_whose_name_no_file_can_have_is_an_error_about_a_file(tmp_path):
    """A dry run only looks whether there is one, and a way back puts an older one aside under a longer name."""
    with pytest.raises(InvalidInput, match="too long"):
        Journal(tmp_path / f"{'x' * 256}.json", HAND_OVER, dry_run=True).read()
    path = tmp_path / f"{'x' * 240}.json"
    earlier, later = (Purpose(deed=Deed.ROLLBACK, answers=NOON + timedelta(days=day)) for day in (0, 1))
    Journal(path, earlier).record(replace(RECEIPT, purpose=earlier))
    journal = Journal(path, later)
    assert journal.read() is None
    with pytest.raises(InvalidInput, match="can't be put aside as"):
        journal.record(replace(RECEIPT, purpose=later))
