"""The errors of this package, with the exit code that the command line returns for each class.

An error message is one line that says what happened and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

EXIT_CHANGES = 10
"""The exit code of a dry run with ``--detailed-exitcode`` if there are offsets to write. It is not an error."""


class MigrateGroupsError(Exception):
    """The base class of all errors of this package. An unexpected failure is raised as this class itself."""

    exit_code = 1


class UsageError(MigrateGroupsError):
    """An option or argument is wrong or missing, or contradicts another one. Nothing was written to the cluster.

    It is also raised if an option does not fit an input file or an earlier run.
    """

    exit_code = 2


class InvalidInput(MigrateGroupsError):
    """An input is invalid, or a file can't be read or written. Nothing was written to the cluster."""

    exit_code = 2


class Refused(MigrateGroupsError):
    """A check refused the write, a wait timed out, or the user answered no. Nothing was written to the cluster."""

    exit_code = 3


class GroupNotFound(Refused):
    """A requested group does not exist on the cluster.

    advice: the end of the message, which says what the user should do.
    """

    def __init__(
        self,
        group: str,
        advice: str = "check the name and --bootstrap-server, and try again if brokers have just restarted",
    ) -> None:
        super().__init__(f"group {group!r} does not exist on this cluster: {advice}")
        self.group = group


class ShareGroupStarted(Refused):
    """A share group has had members, so that its start offsets no longer show which records it has acknowledged."""

    def __init__(self, group: str) -> None:
        super().__init__(
            f"share group {group!r} has had members, so its start offsets do not show which records it has "
            "acknowledged (KIP-932), and there is no exact way back: to hand over again, name a new share group; to "
            "clean up, delete the old group's offsets with delete-offsets --group"
        )


class PendingCommits(Refused):
    """An open transaction has pending offset commits, so the committed offset of a group is not known yet."""


class PartlyApplied(MigrateGroupsError):
    """A write is incomplete or not confirmed, or records may be processed twice. The message gives the reason.

    - Some partitions were not written, or have an unknown outcome.
    - A file of the run, such as the receipt, could not be saved.
    - A group that must no longer consume the partitions still consumed them, or could not be watched.
    - A mirror between two clusters delivered records again, which the target groups would process twice.
    - The command that starts the target groups failed.
    """

    exit_code = 4


class ClusterUnavailable(MigrateGroupsError):
    """The cluster can't be reached, did not answer in time, or does not support the request."""

    exit_code = 5


class NotAuthorized(ClusterUnavailable):
    """The cluster refused the login of the client, or the client's principal lacks a permission."""


class HandOverBroken(MigrateGroupsError):
    """`reconcile`, `audit` or `demo` found that records were skipped or processed twice, or may have been."""

    exit_code = 6


class Undetermined(MigrateGroupsError):
    """`reconcile`, `audit`, `history` or `advise` has no result.

    The evidence is not enough, or the migration has not finished.
    """

    exit_code = 7


class MissingDependency(MigrateGroupsError):
    """Java or a Python package that the command needs is missing or can't be used. A pip extra installs the package."""

    exit_code = 2


INSTALL_SPARK = "run pip install 'platformdirs>=4' 'pyspark>=4.0,<5'"
"""The advice in messages if Spark is not installed.

It names the packages of the pip extra ``spark``, and not the extra, so that it is right however migrate-groups was
installed."""


INSTALL_MSK = "run pip install 'aws-msk-iam-sasl-signer-python>=1.0.2,<2' (the extra msk)"
"""The advice in messages if the package of the pip extra ``msk`` is not installed."""


INSTALL_KERBEROS = (
    "install the headers of Kerberos (libkrb5-dev, krb5-devel), and run "
    "pip install 'gssapi>=1.9,<2' (the extra kerberos)"
)
"""The advice in messages if the package of the pip extra ``kerberos`` is not installed.

It names the headers of Kerberos, because pip has to compile this package."""


def raise_first(answers: Mapping[str, T | MigrateGroupsError]) -> Mapping[str, T]:
    """Return the answers unchanged. If one of them is an error, raise the first error."""
    return without_errors(answers)[0]


def without_errors(
    answers: Mapping[str, T | MigrateGroupsError], *kinds: type[MigrateGroupsError]
) -> tuple[dict[str, T], dict[str, MigrateGroupsError]]:
    """Return the answers that are no errors, and the errors of these classes, each by group.

    Raises the first error that is of none of the classes.
    """
    found: dict[str, T] = {}
    failed: dict[str, MigrateGroupsError] = {}
    for group, answer in answers.items():
        if not isinstance(answer, MigrateGroupsError):
            found[group] = answer
        elif isinstance(answer, kinds):
            failed[group] = answer
        else:
            raise answer
    return found, failed


def was_interrupted(error: BaseException) -> bool:
    """Return whether an error was raised while a `KeyboardInterrupt` was handled, and hides the interrupt."""
    while error.__context__ is not None:
        error = error.__context__
        if isinstance(error, KeyboardInterrupt):
            return True
    return False
