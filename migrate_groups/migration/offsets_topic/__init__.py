"""What commands do with the log of ``__consumer_offsets``: copy it, and judge it with Spark."""
