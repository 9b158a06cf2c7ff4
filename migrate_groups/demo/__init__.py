"""The demos: migrations from start to end on one or two temporary Kafka clusters, with real clients."""
