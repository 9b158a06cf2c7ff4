"""What a run leaves on disk: plan, receipt, baseline, fence."""
