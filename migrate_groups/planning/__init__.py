"""Decisions, checks, plans, and the receipt as the record of a run. Pure: nothing here reads the cluster or a file."""
