"""Access to Kafka with kafka-python and confluent-kafka."""
