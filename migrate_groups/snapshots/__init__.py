"""The table of committed offsets, and pure functions on it: select, split, regroup, rewind."""
