"""The jobs behind audit, history and advise, which decode the log of ``__consumer_offsets``."""
