"""Snapshots on disk: CSV and Parquet."""
