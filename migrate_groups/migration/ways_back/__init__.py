"""Rollback, hand-back, and the deletion of source offsets after a hand-over."""
