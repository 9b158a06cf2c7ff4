"""Kafka's schemas of protocol messages that kafka-python lacks, as in the jars of kafka-clients 4.1.0 to 4.3.0."""
