"""The logs that ``--verbose`` shows on stderr: each request to the cluster, and the logs of both clients."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from migrate_groups.text import one_line

# At DEBUG kafka-python logs its configuration with the password, and the bytes of each login
# (docs/kafka-behaviour.md#kafka-python).
_KAFKA_PYTHON = logging.INFO


@contextmanager
def shown_logs(verbose: int) -> Iterator[None]:
    """Show logs on stderr during the block.

    verbose: 0 shows nothing. 1 shows each request to the cluster. 2 or more also shows the logs of kafka-python and
    librdkafka. No level shows a password, key or token.
    """
    with ExitStack() as shown:
        if verbose:
            level = logging.INFO if verbose == 1 else logging.DEBUG
            shown.enter_context(_shown("migrate_groups", level, "%(message)s"))
        if verbose > 1:
            shown.enter_context(_shown("kafka", _KAFKA_PYTHON, "kafka-python: %(message)s"))
        yield


@contextmanager
def _shown(name: str, level: int, line: str) -> Iterator[None]:
    logger, handler = logging.getLogger(name), _Stderr()
    handler.setFormatter(logging.Formatter(line))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)


class _Stderr(logging.Handler):
    """A log handler that writes each record as one line to stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        # `sys.stderr` is looked up for each record, because a progress bar replaces it for a while.
        sys.stderr.write(f"  {one_line(self.format(record))}\n")
