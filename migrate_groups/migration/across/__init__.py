"""From one cluster to another one that has a mirror's copies of its topics: find places, and compare."""
