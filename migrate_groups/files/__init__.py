"""Read and write files: snapshots, plans, receipts, run directories, split specs."""
