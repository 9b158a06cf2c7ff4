"""Find the offset of a record in the copy of its partition that a mirror has written to another cluster.

Pure: this room knows no Kafka. It compares two sequences of fingerprints.
"""
