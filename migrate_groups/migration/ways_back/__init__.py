"""Rollback, hand-back and the clean-up after a hand-over."""
