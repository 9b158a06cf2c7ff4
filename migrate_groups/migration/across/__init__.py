"""Find the places of groups in the copies that a mirror has written to another cluster, and compare two clusters."""
