"""The two hand-overs: `migrate`, which also waits for the source group to stop, and `apply`, which writes offsets."""
