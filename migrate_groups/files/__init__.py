"""Everything that touches a disk."""
