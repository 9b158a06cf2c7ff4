"""The demo: a migration from start to end on a temporary Kafka cluster, with real clients."""
