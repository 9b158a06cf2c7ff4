"""Kafka's groups, topics, partitions and offsets as values. Nothing here reads or writes."""
