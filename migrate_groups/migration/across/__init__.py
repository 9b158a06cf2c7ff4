"""Translate committed offsets to the copies that a mirror has written to another cluster, and compare two clusters."""
