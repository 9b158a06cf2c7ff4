"""The use cases on a cluster, step by step, and what they need of it (ports)."""
