"""The Python API that `import migrate_groups` offers (docs/python.md)."""
