"""The groups that the pages of the docs assume, and what other clients do while the command lines are typed."""
