"""A real throwaway Kafka (KRaft) on this machine."""
