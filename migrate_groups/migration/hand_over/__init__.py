"""The two hand-overs: the whole cut-over in one process, and offsets of a file."""
