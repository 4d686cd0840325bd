"""Where the build of the page lies in the package, and what to do where it was not built. Nothing is read here."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.errors import NotFoundError

#: The page of `ipfsmem ui`; below it the page that needs no server of ours, and the one that `export --html` fills.
BUILT: Final = Path(__file__).parent.parent / "page"
STATIC: Final = "static"
RESCUE: Final = "rescue"


def not_built_error() -> NotFoundError:
    """What says that, and how it is built."""
    return NotFoundError(
        "the page is not built here",
        hint="In the folder web/ of a clone: npm ci && npm run page. What pip installs has it.",
    )
