"""The use cases on a cluster, step by step, and the interfaces that they use (`ports`)."""
