"""The log of __consumer_offsets, decoded: the jobs behind audit."""
