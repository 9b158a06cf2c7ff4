"""What is read of a cluster: groups, offsets, logs, permissions."""
