"""The steps of every command that writes offsets: ask the user, write, watch the groups that must have stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from msgspec import structs

from migrate_groups.clock import Clock
from migrate_groups.errors import ClusterUnavailable, Refused
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import guard, watched
from migrate_groups.migration.journal import Journal
from migrate_groups.migration.make_plan import refuse_forbidden
from migrate_groups.migration.ports import Clients, GroupReader, HeldGroup
from migrate_groups.migration.put_back import not_yet_known, other_groups, put_back
from migrate_groups.migration.reading.requests import committed_by_order
from migrate_groups.migration.write import write
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.change import Outcome
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted, named, some


def agree(plan: Plan, rows: Callable[[], Iterable[Row]], events: Events, *, provisional: bool = False) -> None:
    """Show the plan and, if there is something to write, ask the user whether to write it.

    provisional: the plan will be made again after the consumers have stopped. A check with the verdict ``pending`` does
    not forbid the write yet.

    Raises `Refused` if a check forbids the write, or if the user does not agree.
    """
    events.planned(plan, rows)
    refuse_forbidden(plan.refusals(at_the_write=not provisional))
    if (provisional or plan.to_write()) and not events.agrees(plan, provisional=provisional):
        raise Refused("the answer was no; nothing was written")


def settle(shown: Plan, clock: Clock, events: Events) -> None:
    """Wait for the seconds in the plan's option ``settle``, and tell the user.

    The caller then checks that no consumer has committed during the wait.
    """
    if shown.options.settle:
        events.doing(f"waiting {shown.options.settle:g} s to see that no consumer commits")
        clock.sleep(shown.options.settle)


def write_plan(
    clients: Clients, plan: Plan, file: ReceiptFile, clock: Clock, events: Events, journal: Journal
) -> Execution:
    """Claim the partitions of a plan, write its offsets, read them back, and return the record of the write.

    The receipt file is saved before the first request and after each step. journal: what runs have claimed before.
    Raises `Refused` if another run has claimed a partition; `InvalidInput` if the first save fails. Later failures are
    in the outcomes or in ``file.failure``.
    """
    verb = journal.facts.verb
    journal = journal.for_plan(plan, file.receipt)
    execution = file.receipt.begun(verb, plan, clock.now(), file.by)

    def record(latest: Execution) -> None:
        nonlocal execution
        execution = latest
        file.record(latest)
        events.writing(file.told_by)

    def record_open(latest: Execution) -> None:
        record(journal.not_released(latest))

    def sent() -> tuple[int, int]:
        return len(execution.changes) - execution.count()[Outcome.NOT_ATTEMPTED], len(execution.changes)

    others = other_groups(file.receipt, verb)
    with events.working(f"writing {counted(len(plan.changes), 'offset')} and reading them back", sent):
        # Before the claim: the run that a claim names must have a receipt, with which the run is resumed or undone.
        begun = execution  # kept, because `record_open` replaces `execution` by what it saves
        record_open(begun)
        unclaimed = journal.claim(clock.now())
        # Of a write that is resumed, an offset may be in place: then the partition is still handed over, and claimed.
        execution = begun.updated(
            change.refused(unclaimed[change.order], sent=change.outcome is Outcome.UNKNOWN)
            for change in begun.changes
            if change.order in unclaimed and not change.settled
        )
        execution = write(clients, execution, lambda latest: record_open(not_yet_known(latest, others)))
        execution = put_back(clients, execution, others, record_open)
        # Another run may hand over what this one could not claim, although the offset is in place.
        execution = execution.updated(
            change.unknown(unclaimed[change.order])
            for change in execution.changes
            if change.order in unclaimed and change.settled
        )
        if verb is not Verb.HAND_OVER:
            record(journal.settled(execution, file.receipt, clock.now()))
    if execution.is_whole:
        if verb is Verb.HAND_OVER:
            execution = replace(execution, outage=structs.replace(execution.outage, start_at=clock.now()))
        is_undone_copy = verb is Verb.ROLLBACK and execution.options.copy  # the source groups have never stopped for it
        sources = frozenset[str]() if is_undone_copy else file.receipt.source_groups
        events.read_back(verb, sources, wrote=bool(plan.to_write()))
    if verb is Verb.HAND_OVER:
        # Only now, because the new applications need not wait for it: until then, the claims say that the outcome is
        # not known.
        settled = journal.settled(execution, file.receipt, clock.now())
        if settled != execution:
            record(settled)
        else:
            file.record(execution)  # the time of START; the user has been told that the offsets are in place
    return execution


def watch_afterwards(
    clients: Clients, execution: Execution, file: ReceiptFile, clock: Clock, events: Events
) -> Execution:
    """After a write, watch the groups that must no longer consume, such as the source group of a migration.

    Returns the record of the write. Its ``moved`` has messages about groups that still consume, and its
    ``not_watched`` about groups that can't be read. Nothing is watched if the write was not successful. If the option
    ``guard`` is 0, a remark says that nothing was watched.
    """
    groups, seconds = sorted(watched(execution)), execution.options.guard
    # Otherwise the user has to act first.
    if not (execution.is_whole and groups):
        return execution
    if seconds:
        events.doing(
            f"watching {some(groups)} for {seconds:g} s: records of moved topics consumed there from now on are "
            "processed twice"
        )
        execution = guard(clients, execution, seconds, clock)
        if execution.verb is Verb.HAND_OVER:
            execution = with_added_partitions(clients, execution, file.receipt)
    else:
        execution = execution.remarked(
            f"not watched after the write (guard 0s), so it is not known whether a consumer comes back: {some(groups)}"
        )
    file.record(execution)
    return execution


def watch_after_hold(
    clients: Clients, held: HeldGroup, execution: Execution, file: ReceiptFile, clock: Clock, events: Events
) -> Execution:
    """Watch the source group for consumers after this tool has left the group; return the record of the write.

    Messages about consumers that joined or committed are added to the record (``moved``), and about partitions that
    were added to the topics (``added``). If this tool may not have been a member all the time, it does not watch, and
    adds a message about that.
    """
    # While this tool was a member, other consumers could not join or commit. They try again now, and process records
    # that were handed over (docs/evidence/reliability.md#settle-and-hold).
    execution = execution.with_moved([held.lost] if held.lost else [])
    seconds = execution.options.guard
    # Added partitions are looked for again at the end, and are no reason not to watch.
    execution = replace(execution, added=())
    if seconds and execution.is_whole:
        events.doing(f"{some(sorted(watched(execution)))} is no longer held: watching it for {seconds:g} s")
        execution = guard(clients, execution, seconds, clock)
    execution = with_added_partitions(clients, execution, file.receipt)
    file.record(execution)
    return execution


def with_added_partitions(clients: Clients, execution: Execution, receipt: Receipt) -> Execution:
    """Return the record of a hand-over with a message for added partitions without an offset of a target group.

    Such a partition was added to a topic after the hand-over was planned. ``auto.offset.reset`` decides where the group
    starts there. receipt: the record of the run.

    If the topics or the offsets can't be read, ``not_watched`` says so.
    """
    reader = clients.writer
    try:
        added = receipt.added(reader.describe_topics({change.topic for change in execution.changes}))
        committed = committed_by_order(reader, added)
        there = _added_elsewhere(clients.elsewhere, execution) if clients.elsewhere else []
    except (ClusterUnavailable, Refused) as error:
        return execution.with_not_watched(f"it is not known whether partitions were added since the write: {error}")
    missing = [f"{group} {topic}-{number}" for (group, topic, number) in added if not committed[group, topic, number]]
    found = [f"{named('partition', missing)} added since the write, without a committed offset"] if missing else []
    found += [f"{named('partition', there)} added on the old group's cluster since the write"] if there else []
    return replace(execution, added=tuple(found))


def _added_elsewhere(reader: GroupReader, execution: Execution) -> list[str]:
    """Return the partitions of a source group's topics, on its own cluster, that the write does not know."""
    translation = execution.translation
    if translation is None or execution.options.on_uncommitted == "leave":
        return []
    known = {each.source for each in translation.partitions}
    return [
        f"{name}-{number}"
        for name, topic in reader.describe_topics(translation.source_topics).items()
        for number in topic.partitions
        if TopicPartition(name, number) not in known
    ]
