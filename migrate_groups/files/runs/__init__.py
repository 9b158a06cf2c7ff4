"""The files of a run: plan, receipt, run directory, fence, and the copied log of ``__consumer_offsets``."""
