"""Adapters that implement `migration.ports`: kafka-python, the second client, credentials, logs of records."""
