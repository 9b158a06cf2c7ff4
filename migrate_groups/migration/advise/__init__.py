"""Say which applications share a group, and which split would separate them."""
