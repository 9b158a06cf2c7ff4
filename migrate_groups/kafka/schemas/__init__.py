"""Kafka's own schemas of messages that kafka-python lacks, as they are in the jars of kafka-clients 4.1.0 to 4.3.0."""
