"""A receipt file is locked during a run, and nothing is written to the cluster before this file is saved."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from msgspec import structs

from migrate_groups.errors import InvalidInput, PartlyApplied, Refused, UsageError
from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.receipt_file import ReceiptFile, open_receipt
from migrate_groups.migration.clusters import one_cluster
from migrate_groups.migration.receipt_refusals import refuse_other_run
from migrate_groups.migration.write_result import WriteResult
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.change import Change, Outcome
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import NOTHING_WRITTEN, Receipt
from tests.support.in_memory import InMemoryCluster
from tests.support.rows import NOON


def plan(cluster: str = "c", *changes: Change) -> Plan:
    return Plan(cluster_id=cluster, options=WriteOptions(), changes=changes, checks=())


EXECUTION = Execution.of(plan(), NOON)
CHANGE = Change(source_group="old", group="new", topic="t", partition=0, before=None, after=CommittedOffset(offset=5))


def result_of(execution: Execution, file: ReceiptFile) -> WriteResult:
    assert file.path is not None
    return WriteResult(execution=execution, receipt=file.receipt, path=file.path, failure=file.failure)


def test_nothing_is_written_if_the_first_save_of_the_receipt_fails(tmp_path):
    """If the first save of the receipt fails, an error about the file is raised before anything is written to Kafka."""
    file = ReceiptFile(tmp_path / "r.json", NOTHING_WRITTEN)
    shutil.rmtree(tmp_path)
    with pytest.raises(InvalidInput, match=r"folder .* does not exist"):
        file.record(EXECUTION)


def test_a_later_save_of_the_receipt_that_fails_is_exit_4(tmp_path):
    """If a later save of the receipt fails, the write is finished, and the command ends with exit code 4."""
    file = ReceiptFile(tmp_path / "r.json", NOTHING_WRITTEN)
    file.record(EXECUTION)
    shutil.rmtree(tmp_path)
    file.record(EXECUTION)  # an unchanged receipt is not saved again
    assert not file.failure
    file.record(EXECUTION.remarked("later"))
    with pytest.raises(PartlyApplied, match="receipt could not be saved"):
        result_of(EXECUTION, file).check()


def test_a_lock_that_cannot_be_removed_does_not_hide_why_the_command_ended(tmp_path):
    """If the empty lock file can't be removed, the command's own error is still raised, and the lock is released."""
    run = tmp_path / "run"

    def command() -> None:
        with open_receipt(run / "r.json"):
            run.rename(tmp_path / "moved")
            run.touch()
            raise Refused("the reason")

    run.mkdir()
    with pytest.raises(Refused, match="the reason"):
        command()
    with open_receipt(tmp_path / "moved" / "r.json") as file:
        assert file.receipt.executions == ()


HERE = one_cluster(InMemoryCluster())


def test_the_receipt_of_another_migration_is_refused(tmp_path):
    """A run continues from the receipt of the same migration, and refuses the receipt of another migration."""
    with open_receipt(tmp_path / "r.json") as file:
        refuse_other_run(HERE, file, plan("c", CHANGE))
        file.record(Execution.of(plan("c", CHANGE), NOON))
        refuse_other_run(HERE, file, plan("c", CHANGE))
        with pytest.raises(UsageError, match="another migration"):
            refuse_other_run(HERE, file, plan("elsewhere", CHANGE))


def test_a_second_run_on_a_locked_receipt_is_refused(tmp_path):
    """While a run has locked the receipt, a second run is refused, but a dry run may read the receipt.

    After the first run, another run may use the receipt.
    """
    path = tmp_path / "r.json"
    with open_receipt(path) as file:
        file.record(EXECUTION)
        with pytest.raises(Refused, match="another run uses"), open_receipt(path):
            pass
        with open_receipt(path, read_only=True) as other:
            assert other.receipt == file.receipt == Receipt((EXECUTION,), run=file.receipt.run)
    with open_receipt(path) as later:
        assert later.receipt == file.receipt


def test_a_damaged_receipt_is_refused(tmp_path):
    """A damaged receipt is refused; the command does not treat the run as new."""
    path = tmp_path / "r.json"
    path.write_bytes(receipt_json.to_bytes(Receipt((EXECUTION,)))[:-5])
    with pytest.raises(InvalidInput, match="is not a valid receipt"), open_receipt(path):
        pass


def test_the_rollback_command_that_exit_4_prints_works(tmp_path):
    """If the old group committed during the watch after the write, the error prints the rollback command.

    It quotes the receipt's path for a shell, and says what the rollback would do.
    """
    file = ReceiptFile(tmp_path / "a b" / "r.json", NOTHING_WRITTEN)
    execution = Execution.of(made_and_moved(), NOON).with_moved(["group 'old' committed"])
    moved = replace(
        execution, changes=tuple(structs.replace(each, outcome=Outcome.CONFIRMED) for each in execution.changes)
    )
    with pytest.raises(PartlyApplied) as raised:
        result_of(moved, file).check()
    assert f"rollback '{file.path}', which deletes 2 offsets and restores 1 offset" in str(raised.value)


def made_and_moved() -> Plan:
    """Return a plan that creates two offsets, moves one, and leaves one unchanged."""
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


def test_a_receipt_name_that_is_too_long_is_invalid_input(tmp_path):
    """Even a dry run, which only reads the receipt, refuses a receipt whose file name is too long."""
    with pytest.raises(InvalidInput, match="too long"), open_receipt(tmp_path / f"{'x' * 256}.json", read_only=True):
        pass
