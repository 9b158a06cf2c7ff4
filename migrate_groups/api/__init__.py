"""What `import migrate_groups` offers: docs/python.md shows it."""
