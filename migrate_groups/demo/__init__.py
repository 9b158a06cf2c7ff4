"""The demo: a migration from start to end on a sandbox, with real clients."""
