"""The files of a run: plan, receipt, baseline, fence."""
