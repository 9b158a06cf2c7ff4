"""All errors, in one hierarchy. Each class holds the exit code with which the command line ends.

An error's message is one line: what happened, and what to do. The library raises errors. Only ``cli/`` prints their
messages on stderr and turns them into exit codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

EXIT_CHANGES = 10
"""The exit code of a dry run with ``--detailed-exitcode`` if there are offsets to write. It is not an error."""


class MigrateGroupsError(Exception):
    """The base class of all errors of this package. It is raised itself only for unexpected failures."""

    exit_code = 1


class UsageError(MigrateGroupsError):
    """Options contradict each other, are missing, or don't fit the input or the record of the run.

    Nothing was written.
    """

    exit_code = 2


class InvalidInput(MigrateGroupsError):
    """An input file or a spec can't be used. Nothing was written."""

    exit_code = 2


class Refused(MigrateGroupsError):
    """A check refused the write, a wait ran out, or the user answered no. Nothing was written."""

    exit_code = 3


class GroupNotFound(Refused):
    """A requested group does not exist on the cluster. ``group`` is its name."""

    def __init__(
        self,
        group: str,
        advice: str = "check the name and --bootstrap-server, and try again if brokers have just restarted",
    ) -> None:
        super().__init__(f"group {group!r} does not exist on this cluster: {advice}")
        self.group = group


class PendingCommits(Refused):
    """An open transaction has pending offset commits, so that the group's committed offset is not known yet."""


class PartlyApplied(MigrateGroupsError):
    """A write is incomplete, not confirmed, or not safe, for one of these reasons.

    - Some partitions were not written, or have an unknown outcome.
    - A file of the run could not be written.
    - A group that must no longer consume the partitions still did, or could not be watched.
    - The command that starts the target groups failed.
    """

    exit_code = 4


class ClusterUnavailable(MigrateGroupsError):
    """The cluster can't be reached, did not answer in time, or does not support the request."""

    exit_code = 5


class NotAuthorized(ClusterUnavailable):
    """The cluster refused the login of this client, or its principal lacks a permission."""


class HandOverBroken(MigrateGroupsError):
    """The verdict of `reconcile` or `audit`: records were skipped or processed twice, or may have been."""

    exit_code = 6


class Undetermined(MigrateGroupsError):
    """`reconcile`, `audit` or `history` has no result: there is too little evidence, or the run has not finished."""

    exit_code = 7


class MissingDependency(MigrateGroupsError):
    """Something that this command needs is not installed: a package of an extra, or Java."""

    exit_code = 2


INSTALL_SPARK = "run pip install 'jinja2>=3.1' 'platformdirs>=4' 'pyspark>=4.0,<5'"
"""The advice in messages where Spark is missing. It lists the packages of the extra ``spark``, so that it holds however
this package was installed."""


INSTALL_MSK = "run pip install 'aws-msk-iam-sasl-signer-python>=1.0.2,<2' (the extra msk)"
"""The advice in messages where the extra ``msk`` is missing."""


INSTALL_KERBEROS = (
    "install the headers of Kerberos (libkrb5-dev, krb5-devel), and run "
    "pip install 'gssapi>=1.9,<2' (the extra kerberos)"
)
"""The advice in messages where the extra ``kerberos`` is missing, which comes as source only."""


def raise_first(answers: Mapping[str, T | MigrateGroupsError]) -> Mapping[str, T]:
    """Return the answers, by group, if none of them is an error; else raise the first error among the answers."""
    found: dict[str, T] = {}
    for group, answer in answers.items():
        if isinstance(answer, MigrateGroupsError):
            raise answer
        found[group] = answer
    return found
