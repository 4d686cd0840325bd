"""URIs of memories as resources: `memory://<scope>/<key>`, `memory:///<key>` in the default scope, and without a key the index.

Pure functions on text.
"""

from __future__ import annotations

from ipfsmem.bundle.keys import check_key, check_scope
from ipfsmem.errors import NotFoundError

_PREFIX = "memory://"
#: The resource templates that clients list.
TEMPLATES = (
    ("memory:///{key}", "A memory", "A memory of the default scope."),
    ("memory://{scope}/{key}", "A memory of a scope", "A memory of a named scope, such as a project."),
)


def address(scope: str, key: str = "") -> str:
    """Return the URI of a memory, or of the index of a scope."""
    return f"{_PREFIX}{scope}/{key}"


def parts(uri: str) -> tuple[str, str]:
    """Return scope and key of a URI; the key is empty for the index. Raises NotFoundError for any other URI, KeyNameError."""
    scope, slash, key = uri.removeprefix(_PREFIX).partition("/")
    if not uri.startswith(_PREFIX) or not slash:
        raise NotFoundError(
            f"not the address of a memory: {uri[:120]!a}",
            hint="An address is memory:///KEY or memory://SCOPE/KEY, and without a key the index.",
        )
    return (check_scope(scope) if scope else ""), (check_key(key) if key else "")
