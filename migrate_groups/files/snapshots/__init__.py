"""Load and save snapshots of committed offsets, as CSV or Parquet."""
