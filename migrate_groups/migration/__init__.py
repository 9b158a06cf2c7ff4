"""The use cases that access a cluster (migrate, rollback, rewind ...), and the interfaces that they need (`ports`)."""
