"""The checks before a write: one module for each subject."""
