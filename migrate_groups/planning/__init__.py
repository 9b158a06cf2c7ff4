"""Decide what to write to each partition, check it, and record it: the plan and the receipt (the record of a run).

Nothing here reads the cluster or a file.
"""
