"""Check that the second client, confluent-kafka, can read the offsets back."""

from __future__ import annotations

from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import Facts
from migrate_groups.planning.checks.rule import Rule, Scope


def second_client(facts: Facts) -> Judgement | None:
    """Say that confluent-kafka is to read the offsets back and can't log in. None if it can, or if it is not to.

    The check refuses if the option ``second_client`` is "required", and warns if it is "auto".
    """
    lacks, mode = facts.survey.cluster_facts.second_client_lacks, facts.options.second_client
    if not lacks or mode == "none":
        return None
    if mode == "required":
        return Verdict.REFUSE, f"{lacks}, so it can't read back: pass --second-client none"
    return Verdict.WARN, f"{lacks}: kafka-python alone reads back"


RULES = (Rule(name="second client", scopes=(Scope.HAND_OVER, Scope.HAND_BACK, Scope.TARGET), judge=second_client),)
