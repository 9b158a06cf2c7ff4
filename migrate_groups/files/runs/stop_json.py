"""Save what the command of ``migrate --stop-command`` has to stop, as a JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from migrate_groups.files.safe_write import write_whole
from migrate_groups.model.groups import Member
from migrate_groups.planning.planned_stop import PlannedStop


class StoppingMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member that must stop. goes_on: whether it may start again with only the topics that stay."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    goes_on: bool


class StopDocument(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="migrate-groups/stop"):
    """What ``--stop-command`` has to stop.

    group: the old group. topics: the topics that no member may consume any more; null: all. members: those that must
    stop, as the brokers show them; a consumer that uses ``assign()`` is not among them.
    """

    schema_version: int = 1
    group: str
    topics: Sequence[str] | None
    members: Sequence[StoppingMember]


def save(stop: PlannedStop, path: Path) -> None:
    """Save what has to stop. A file that exists is replaced. Raises `InvalidInput` if the file can't be written."""
    goes_on = {member.member_id for member in stop.must_go_on}
    document = StopDocument(
        group=stop.source.group,
        topics=None if stop.moved is None else sorted(stop.moved),
        members=[_stopping(member, goes_on=member.member_id in goes_on) for member in stop.must_stop],
    )
    write_whole(path, lambda file: file.write(msgspec.json.encode(document) + b"\n"), replace=True)


def _stopping(member: Member, *, goes_on: bool) -> StoppingMember:
    return StoppingMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.host,
        goes_on=goes_on,
    )
