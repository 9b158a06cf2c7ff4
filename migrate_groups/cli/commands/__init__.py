"""The commands, one module a group of them."""
