"""Adapters that implement `migration.ports` with kafka-python and confluent-kafka; credentials of both clients."""
