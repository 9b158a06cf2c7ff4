"""The files of a run: plan, receipt, a copy of the log of ``__consumer_offsets``, and its log end offsets (fence)."""
