"""The result of ``doctor``: what a cluster offers, what this tool can do there, and a trial if there was one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from migrate_groups.model.apis import Api
from migrate_groups.model.permissions import Operation, Resource
from migrate_groups.planning.examination import PURPOSES, YES, Capability, Examination, span
from migrate_groups.planning.trial import Step, Trial
from migrate_groups.show.documents import Document, Part, of_row, row_of
from migrate_groups.show.result import NAME, OFFSET, SECONDS, TEXT, WORD, Column, Line, Result, Table
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted

_CAPABILITIES: list[Column[Capability]] = [
    Column("CAPABILITY", TEXT, lambda row: row.what, "what"),
    Column("HERE", WORD, lambda row: row.answer, "answer"),
    Column("REASON", TEXT, lambda row: row.reason, "reason"),
]
_APIS: list[Column[Api]] = [
    Column("API", WORD, lambda api: api.name, "name"),
    Column("KEY", OFFSET, lambda api: api.key, "key"),
    Column("OFFERED", WORD, lambda api: span(api.offered) if api.offered else "not offered"),
    Column("", OFFSET, lambda api: api.offered and api.offered[0], "lowest_offered", int | None),
    Column("", OFFSET, lambda api: api.offered and api.offered[1], "highest_offered", int | None),
    Column("USED", OFFSET, lambda api: api.used, "used", int | None),
]


class _Permission(NamedTuple):
    """The operations that the principal may perform on a resource; None if the brokers do not return them."""

    resource: Resource
    operations: frozenset[Operation] | None


_PERMISSIONS: list[Column[_Permission]] = [
    Column("RESOURCE", NAME, lambda row: str(row.resource), "resource"),
    Column("MAY", WORD, lambda row: _operations(row)),
    Column(
        "", WORD, lambda row: None if row.operations is None else sorted(row.operations), "may", Sequence[str] | None
    ),
    Column("FOR", TEXT, lambda row: PURPOSES[row.resource], "purpose"),
]
_STEPS: list[Column[Step]] = [
    Column("STEP", TEXT, lambda step: step.what, "what"),
    Column("TIME", SECONDS, lambda step: round(step.seconds, 3), "seconds"),
    Column("OUTCOME", WORD, lambda step: step.outcome, "outcome"),
    Column("REMARK", TEXT, lambda step: step.remark, "remark"),
]


@row_of(_CAPABILITIES)
class DoctorCapability:
    """Something that this tool does. answer: ``yes``, ``no``, ``partly`` or ``not known``. reason: why not ``yes``."""


@row_of(_APIS)
class DoctorApi:
    """An API of Kafka's protocol that this tool uses, with the versions that the brokers offer; null if they do not.

    used: the version that this tool sends; null if it can't.
    """


@row_of(_PERMISSIONS)
class DoctorPermission:
    """What the principal may do with a group or topic; ``may`` is null if the brokers do not return it."""


@row_of(_STEPS)
class DoctorStep:
    """A step of the trial. outcome: ``done``, ``refused`` or ``failed``. remark: what was seen, or the error."""


class DoctorTrial(Part, frozen=True, kw_only=True):
    """The trial of ``--write``. topic, groups: the names of what was made. left: what could not be deleted."""

    topic: str
    groups: Sequence[str]
    steps: Sequence[DoctorStep]
    left: Sequence[str]


class DoctorDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/doctor"):
    """What a cluster offers, and what this tool can do there. It has no secret. Errors may have addresses.

    brokers: their ids. versions: those of this tool and of both clients, by name. second_client: why the second client
    can't read back; null if it can. retention_minutes: ``offsets.retention.minutes``; null if not known. trial: null
    without ``--write``.
    """

    versions: Mapping[str, str]
    principal: str
    cluster_id: str
    brokers: Sequence[int]
    second_client: str | None
    retention_minutes: int | None
    capabilities: Sequence[DoctorCapability]
    apis: Sequence[DoctorApi]
    permissions: Sequence[DoctorPermission]
    trial: DoctorTrial | None


def doctor(found: Examination, trial: Trial | None, versions: Mapping[str, str]) -> Result:
    """Return what `doctor` found. trial: None without ``--write``. versions: those of tool and clients, by name."""
    permissions = [_Permission(resource, operations) for resource, operations in found.permissions.items()]
    minutes = None if found.retention is None else int(found.retention.total_seconds()) // 60
    kept = "a time that is not known" if found.retention is None else span_in_words(found.retention)
    document = DoctorDocument(
        versions=versions,
        principal=found.principal,
        cluster_id=found.cluster_id,
        brokers=found.brokers,
        second_client=found.second_client or None,
        retention_minutes=minutes,
        capabilities=[of_row(DoctorCapability, _CAPABILITIES, each) for each in found.capabilities],
        apis=[of_row(DoctorApi, _APIS, each) for each in found.offers.apis],
        permissions=[of_row(DoctorPermission, _PERMISSIONS, each) for each in permissions],
        trial=None if trial is None else _trial(trial),
    )
    lines = [
        f"cluster {found.cluster_id}, {counted(len(found.brokers), 'broker')} ({', '.join(map(str, found.brokers))})",
        f"principal {found.principal}",
        ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"committed offsets are kept for {kept}",
    ]
    steps = [] if trial is None else [Table(columns=_STEPS, rows=trial.steps, thing="step", title="Trial")]
    return Result(
        document=document,
        kind="doctor",
        title=f"Cluster {found.cluster_id}",
        parts=[
            *map(Line, lines),
            Table(columns=_CAPABILITIES, rows=found.capabilities, thing="capability"),
            Table(columns=_APIS, rows=found.offers.apis, thing="API"),
            Table(columns=_PERMISSIONS, rows=permissions, thing="permission"),
            *steps,
            Line(_summary(found)),
        ],
    )


def _operations(row: _Permission) -> str | None:
    return None if row.operations is None else ", ".join(sorted(row.operations)) or "nothing"


def _trial(trial: Trial) -> DoctorTrial:
    return DoctorTrial(
        topic=trial.topic,
        groups=trial.groups,
        steps=[of_row(DoctorStep, _STEPS, each) for each in trial.steps],
        left=trial.left,
    )


def _summary(found: Examination) -> str:
    lacking = [each.what for each in found.capabilities if each.answer != YES]
    if not lacking:
        return "all that this tool does is possible here, as far as the brokers show it"
    return f"limited here: {'; '.join(lacking)}"
