"""Write offsets to target groups: `migrate` waits for the source group to stop; `apply` writes given offsets."""
