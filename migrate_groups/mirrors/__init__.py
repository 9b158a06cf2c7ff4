"""Find the offset of a record in the copy of its partition that a mirror has written to another cluster.

The functions here compare two sequences of fingerprints, which are hashes of records. They read nothing from Kafka.
"""
