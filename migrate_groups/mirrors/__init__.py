"""Translate committed offsets to a mirror's copies of partitions, by comparing hashes of records.

Nothing here reads from Kafka.
"""
