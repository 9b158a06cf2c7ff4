"""The files of one migration, such as the plan, the receipt, and a copy of ``__consumer_offsets``."""
