"""Compare committed offsets and lag before and after a hand-over: the job behind reconcile.

In these modules BEFORE and AFTER are the snapshots from before and from after the hand-over.
"""
