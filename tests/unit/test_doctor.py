"""What `doctor` makes of the facts about a cluster, on the in-memory cluster."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrate_groups.errors import ClusterUnavailable, HandOverBroken, PartlyApplied
from migrate_groups.kafka import apis
from migrate_groups.migration.ports import LogClients
from migrate_groups.migration.reading.examine import examine
from migrate_groups.model.apis import Api, Offers
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, OWN_GROUPS
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.checks.permission import ANY_GROUP, ANY_TOPIC
from migrate_groups.planning.checks.source import PENDING_NOT_TOLD
from migrate_groups.planning.examination import Examination
from migrate_groups.planning.trial import Trial
from tests.support.in_memory import InMemoryCluster

OWN = Resource(ResourceType.GROUP, f"{OWN_GROUPS}doctor")


class NoLog:
    """A reader of ``__consumer_offsets`` that must not be asked, because the log is empty."""

    def replicas(self, numbers):
        raise AssertionError

    def read(self, positions, ends):
        raise AssertionError


def examined(cluster: InMemoryCluster, second=None) -> Examination:
    return examine(LogClients(cluster, NoLog()), second or cluster)


def answer(found: Examination, start: str) -> tuple[str, str]:
    [(answer, reason)] = [(each.answer, each.reason) for each in found.capabilities if each.what.startswith(start)]
    return answer, reason


def test_an_empty_offsets_topic_is_not_known_to_be_readable():
    """If ``__consumer_offsets`` has no record, it is not known whether it can be read. Everything else is possible."""
    found = examined(InMemoryCluster())
    assert answer(found, "audit") == ("not known", f"{OFFSETS_TOPIC} has no record yet")
    assert {each.answer for each in found.capabilities if not each.what.startswith("audit")} == {"yes"}


def test_a_missing_permission_limits_what_needs_it():
    """Without Describe on all groups, or Read on the tool's own groups, the capabilities that need it are limited."""
    cluster = InMemoryCluster()
    cluster.deny(ANY_GROUP, Operation.DESCRIBE)
    cluster.deny(OWN, Operation.READ)
    found = examined(cluster)
    assert answer(found, "list") == ("partly", "User:ANONYMOUS may not know that no group is hidden from it")
    refused, reason = answer(found, "barrier")
    assert (refused, f"lacks Read on {OWN}" in reason) == ("no", True)
    cluster.deny(ANY_TOPIC, Operation.DESCRIBE)
    assert answer(examined(cluster), "describe, snapshot")[0] == "partly"


def test_brokers_that_do_not_tell_pending_commits():
    """If the brokers can't tell whether a transactional commit is pending, the answer is no, with the reason."""
    cluster = InMemoryCluster()
    cluster.offered = cluster.offered._replace(tells_pending=False)
    assert answer(examined(cluster), "see pending") == ("no", PENDING_NOT_TOLD)


def test_a_second_client_that_fails_or_reaches_another_cluster_is_told():
    """The reason why the second client can't read back is told: its error, what it lacks, or another cluster."""

    class Failing:
        def cluster_id(self) -> str:
            raise ClusterUnavailable("it died")

    cluster = InMemoryCluster()
    assert answer(examined(cluster, Failing()), "read back") == ("no", "it died")
    assert "another cluster, b" in answer(examined(cluster, InMemoryCluster("b")), "read back")[1]
    cluster.second_client_lacks = "Kerberos"
    assert answer(examined(cluster), "read back") == ("no", "Kerberos")


def test_an_api_in_other_versions_only_is_told_with_them():
    """If the brokers offer an API only in versions that the tool does not speak, the reason names these versions."""
    cluster = InMemoryCluster()
    cluster.offered = Offers(apis=[Api("OffsetFetch", 9, (9, 10), None), Api("OffsetCommit", 8, None, None)])
    found = examined(cluster)
    wrong = "the brokers do not offer OffsetFetch in a version that this tool speaks (only 9 to 10)"
    assert answer(found, "describe, snapshot") == ("no", wrong)
    assert answer(found, "migrate, apply") == ("no", f"{wrong}; the brokers do not offer OffsetCommit")


def test_a_trial_raises_its_error_before_it_tells_what_is_left():
    """`Trial.check` raises the error of the trial; without one, an error that names what could not be deleted."""
    trial = Trial(topic="t", groups=["a"])
    trial.check()
    trial.left.append("topic t (no answer)")
    with pytest.raises(PartlyApplied, match=r"could not be deleted: topic t \(no answer\): delete it by hand"):
        trial.check()
    trial.error = HandOverBroken("skipped")
    with pytest.raises(HandOverBroken):
        trial.check()


def test_every_request_that_the_tool_sends_is_examined():
    """`doctor` examines each request class that a module of kafka/ imports from kafka-python, but those of trials."""
    package = Path(apis.__file__).parent
    trees = {path.name: ast.parse(path.read_text()) for path in package.glob("*.py") if path.name != "apis.py"}
    imported = {
        name.name.removesuffix("Request")
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kafka.protocol")
        for name in node.names
        if name.name.endswith("Request")
    }
    examined = {use.request.__name__.removesuffix("Request") for use in apis._USES}
    assert imported - examined == {"ApiVersions", "CreateTopics", "DeleteTopics", "Produce"}
