"""One hierarchy of errors. Each owns the exit code of the command that it ends.

The message of an error is one line for a person: what happened, and what to do. The library raises, ``cli/`` prints
the message on stderr and exits; nothing else turns an error into an exit code.
"""

from __future__ import annotations

EXIT_CHANGES = 10
"""No error: the exit code of a dry run that was asked whether there is something to write, and found it."""


class MigrateGroupsError(Exception):
    """What every error of this package derives from; itself only for the unexpected (exit 1)."""

    exit_code = 1


class UsageError(MigrateGroupsError):
    """Options that contradict each other, are missing, or don't fit what is there. Nothing was written."""

    exit_code = 2


class InvalidInput(MigrateGroupsError):
    """An input file or a spec that can't be used. Nothing was written."""

    exit_code = 2


class Refused(MigrateGroupsError):
    """A check refused, a wait ran out, or the answer was no. Nothing was written."""

    exit_code = 3


class GroupNotFound(Refused):
    """A group that was asked for does not exist on the cluster."""


class PendingCommits(Refused):
    """A transaction that is still open has committed offsets: nobody knows yet where the group stands."""


class PartlyApplied(MigrateGroupsError):
    """Some partitions were not written, or nobody can tell; the receipt says which."""

    exit_code = 4


class ClusterUnavailable(MigrateGroupsError):
    """The cluster can't be reached, did not answer in time, or is not set up for the request."""

    exit_code = 5


class NotAuthorized(ClusterUnavailable):
    """The cluster refused this principal."""


class HandOverBroken(MigrateGroupsError):
    """Reconcile or audit found a gap, a replay or a missing partition."""

    exit_code = 6


class Undetermined(MigrateGroupsError):
    """The evidence is not enough to tell."""

    exit_code = 7


class MissingDependency(MigrateGroupsError):
    """Something that this command needs is not installed (what the extra ``spark`` has, or Java)."""

    exit_code = 2


INSTALL_SPARK = "run pip install 'jinja2>=3.1' 'platformdirs>=4' 'pyspark>=4.0,<5'"
"""How the extra ``spark`` is had, wherever this package came from."""
