"""Migrate Kafka consumer groups: no record skipped, none processed twice."""

__version__ = "0.1.0"
