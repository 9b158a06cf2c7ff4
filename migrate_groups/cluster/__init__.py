"""Everything that talks to Kafka."""
