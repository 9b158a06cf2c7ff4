"""Kafka's data as values, without input or output."""
