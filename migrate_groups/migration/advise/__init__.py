"""Find the applications that share a consumer group, what sharing costs them, and a split that separates them."""
