"""What Kafka says, as values. No input or output."""
