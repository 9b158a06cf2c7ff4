"""Compare committed offsets and lag before and after a hand-over: the job behind reconcile."""
