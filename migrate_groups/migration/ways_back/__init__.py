"""Commands after a hand-over: undo it (rollback), give topics back (hand-back), delete the source group's offsets."""
