"""The jobs behind audit and history, which decode the log of ``__consumer_offsets``."""
