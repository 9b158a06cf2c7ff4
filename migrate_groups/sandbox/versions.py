"""The Kafka version that the sandbox fetches by default."""

DEFAULT_VERSION = "4.1.0"
DOWNLOAD_MB = 43  # all jars together; other versions have about the same size
