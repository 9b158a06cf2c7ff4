"""The files of one migration: plan, receipt, a copy of the log of ``__consumer_offsets``, and log end offsets."""
