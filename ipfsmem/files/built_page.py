"""Return the path of the built page in the package, and the error if it was not built."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.errors import NotFoundError

#: The page of `ipfsmem ui`; below it, the static page without a server, and the template of `export --html`.
BUILT: Final = Path(__file__).parent.parent / "page"
STATIC: Final = "static"
RESCUE: Final = "rescue"


def not_built_error() -> NotFoundError:
    """Return the error with the command that builds it."""
    return NotFoundError(
        "the page is not built in this checkout",
        hint="In the folder web/ of a clone: npm ci && npm run page. The package from pip includes the page.",
    )
