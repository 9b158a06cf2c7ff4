"""The sandbox: a real Kafka cluster (KRaft) on this machine, which is deleted after use."""
