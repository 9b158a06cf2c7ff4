"""The Kafka versions that this project is tested with, and the version that is downloaded by default."""

VERSIONS = ("2.8.2", "3.9.1", "4.1.1", "4.2.1", "4.3.0")
DEFAULT_VERSION = VERSIONS[-1]
DOWNLOAD_MB = 43  # all jars together; other versions have about the same size
MIRROR_MAKER_MB = 33  # the jars that MirrorMaker 2 needs
