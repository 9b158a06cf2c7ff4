"""What must hold before a write: one module a subject."""
