"""Log requests of providers that do not speak HTTP, for `--verbose` and IPFSMEM_LOG. Names of files there are no secrets."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

_log = logging.getLogger("ipfsmem.providers")


@dataclass
class Outcome:
    """How a request ended, in a few words."""

    text: str = "done"


@contextlib.contextmanager
def logged(where: str, what: str) -> Iterator[Outcome]:
    """Log one request with its outcome and duration. `where`: the provider's name; `what`: a verb and its object."""
    began, outcome = time.monotonic(), Outcome()
    try:
        yield outcome
    except FileNotFoundError:
        outcome.text = "absent"
        raise
    except BaseException:
        outcome.text = "failed"
        raise
    finally:
        _log.debug("%s %s: %s in %.0f ms", where, what, outcome.text, (time.monotonic() - began) * 1000)
