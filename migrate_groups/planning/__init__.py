"""The plan of a write of offsets, its checks, and the receipt: the record of the writes.

Nothing here reads a cluster or a file.
"""
