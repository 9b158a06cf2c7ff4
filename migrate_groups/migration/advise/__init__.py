"""Find the applications that share a consumer group, the cost of sharing, and how to give each a group of its own."""
