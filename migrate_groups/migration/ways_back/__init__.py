"""Undo a hand-over (rollback), give the topics back to the source group (hand-back), or delete its offsets for them."""
