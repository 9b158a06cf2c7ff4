"""Which Kafka the sandbox fetches."""

DEFAULT_VERSION = "4.1.0"
DOWNLOAD_MB = 43  # all its jars together; other versions are of about the same size
