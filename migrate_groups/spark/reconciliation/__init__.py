"""The Spark job behind the command reconcile, which compares committed offsets and lag before and after a migration.

BEFORE and AFTER are the snapshots from before and from after the migration.
"""
