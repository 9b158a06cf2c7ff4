"""The whole story, told on a sandbox with real clients."""
