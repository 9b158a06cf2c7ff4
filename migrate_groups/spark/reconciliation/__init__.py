"""Lag before and after, compared: the job behind reconcile."""
