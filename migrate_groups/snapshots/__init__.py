"""The table of committed offsets and its pure verbs."""
