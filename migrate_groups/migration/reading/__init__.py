"""Read groups, offsets, logs and permissions from a cluster."""
