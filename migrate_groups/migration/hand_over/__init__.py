"""The two hand-overs: `migrate`, the whole cut-over in one process, and `apply`, which writes offsets from a file."""
