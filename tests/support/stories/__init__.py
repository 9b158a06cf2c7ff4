"""Functions that type the pages of the docs, with the groups and the other clients that the pages assume."""
