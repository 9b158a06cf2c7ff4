"""The two ways to hand over: `migrate` waits for the source group to stop; `apply` writes offsets that it is given."""
