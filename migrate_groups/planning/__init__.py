"""What to write to each partition, the checks, the plan, and the receipt (the record of a run).

Pure: nothing here reads the cluster or a file.
"""
