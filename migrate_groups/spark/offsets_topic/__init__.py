"""The Spark jobs behind the commands audit, history and advise. They read the log of ``__consumer_offsets``."""
