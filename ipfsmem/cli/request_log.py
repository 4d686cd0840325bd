"""`--verbose` and IPFSMEM_LOG: requests to providers, on standard error or in a file, without secrets and texts of memories."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from typing import Final, TextIO

from ipfsmem.errors import ConfigError

#: The logger of providers, which omits the secrets that they know. Other loggers may quote texts.
_LOGGER: Final = "ipfsmem.providers"
#: A query may have signatures and search words.
_QUERY: Final = re.compile(r"(https?://[^\s?#]*)[?#]\S*?(?=:?\s|$)")


@contextlib.contextmanager
def request_log(verbose: bool) -> Iterator[None]:
    """Log requests during the block: on standard error if `verbose`, and to the file in IPFSMEM_LOG. Raises ConfigError if that
    cannot be written."""
    file = os.environ.get("IPFSMEM_LOG")
    with contextlib.ExitStack() as opened:
        streams = [sys.stderr] if verbose else []
        if file:
            streams.append(opened.enter_context(_open(file)))
        opened.enter_context(_logged(streams))
        yield


def _open(file: str) -> TextIO:
    from ipfsmem.config import expanded
    from ipfsmem.device.atomic_files import open_regular, reason

    try:
        return os.fdopen(
            open_regular(expanded(file), os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a", encoding="utf-8"
        )
    except OSError as error:
        raise ConfigError(
            f"the log {file}, set in IPFSMEM_LOG, cannot be written: {reason(error)}",
            hint="Name a file in a folder that exists, or unset IPFSMEM_LOG.",
        ) from None


@contextlib.contextmanager
def _logged(streams: list[TextIO]) -> Iterator[None]:
    import logging
    from datetime import UTC, datetime

    from ipfsmem.cli.printing import clean

    class Line(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            # Without the traceback of an error, which may quote sent data.
            text = _QUERY.sub(r"\1?...", record.getMessage())
            at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
            return clean(f"{at.removesuffix('+00:00')}Z {text}")

    class Lines(logging.StreamHandler[TextIO]):
        def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - as logging names it
            """Ignore a full disk or a closed terminal."""

    logger = logging.getLogger(_LOGGER)
    level, handlers = logger.level, [Lines(stream) for stream in streams]
    for handler in handlers:
        handler.setFormatter(Line())
        logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.setLevel(level)
        for handler in handlers:
            logger.removeHandler(handler)
