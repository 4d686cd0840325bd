"""Derive scope tokens of projects and canonical names of git remotes (format section 5.1).

Devices that know the same remote derive the same token independently. Names omit credentials, ports and anything else
that does not identify the repository. No repository is read and no program is run.
"""

from __future__ import annotations

import re
from hashlib import sha256

from ipfsmem.errors import UsageError
from ipfsmem.lazy_pattern import lazy_pattern

_DOMAIN = b"ipfsmem/v1/scope\0"
_SLUG = 40
_OTHER = lazy_pattern(r"[^a-z0-9_-]+")
_URL = lazy_pattern(r"([a-z][a-z0-9+.-]*)://([^/?#]*)([^?#]*)", re.IGNORECASE)
_SCP = lazy_pattern(r"(?:[^@/:\s]+@)?([^@/:\s]+):(?!//)([^?#\s]*)")
_HOST = lazy_pattern(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+")
_PART = lazy_pattern(r"[^/\s?#@:\x00-\x1f\x7f-\x9f]+")
_SCHEMES = frozenset(["https", "http", "ssh", "git", "git+ssh", "git+https"])


def remote_name(url: str) -> str | None:
    """Return `host/path` of a remote's address, lower case, without user, password, port, query and `.git`.

    None if the address does not identify a repository: a file, a host without a dot, an address without a path.
    """
    url = url.strip()
    if match := _URL.match(url):
        scheme, authority, path = match.groups()
        if scheme.lower() not in _SCHEMES:
            return None
        host = authority.rpartition("@")[2]
        host = re.sub(r":[0-9]*\Z", "", host)
    elif match := _SCP.fullmatch(url):
        host, path = match.groups()
    else:
        return None
    host = host.lower().rstrip(".")
    parts = [part for part in path.lower().split("/") if part]
    if parts:
        parts[-1] = parts[-1].removesuffix(".git")
    if _HOST.fullmatch(host) is None or not parts or not all(_PART.fullmatch(part) for part in parts):
        return None
    return "/".join([host, *parts])


def scope_token(vault_tag: bytes, remote: str, path: str = "", *, name: str = "") -> str:
    """Return the scope token of a project in a sealed vault: a slug of its name, and 12 digits that only members can
    compute.

    `remote`: the result of `remote_name`, or the project's id (32 hex digits) if it has no remote. `path`: the part
    of a monorepo, else "". `name`: the name of a project without a remote.
    """
    if len(vault_tag) != 16:
        raise UsageError(f"a vault tag has 16 bytes, this has {len(vault_tag)}")
    parts = b"".join(len(text.encode()).to_bytes(2, "big") + text.encode() for text in (remote, path))
    digest = sha256(_DOMAIN + vault_tag + parts).hexdigest()
    return f"{slug(name or remote.rpartition('/')[2])}-{digest[:12]}"


def random_token(name: str, random: bytes) -> str:
    """Return the token of a project in plain mode, where digits must not depend on the remote, or without remote and
    id.

    `random`: 6 random bytes.
    """
    if len(random) != 6:
        raise UsageError(f"the end of a token is made of 6 bytes, not {len(random)}")
    return f"{slug(name)}-{random.hex()}"


def slug(name: str) -> str:
    """Return the readable prefix of a token: at most 40 characters of a name, in lower case, with `_` for invalid
    ones."""
    return _OTHER.sub("_", name.lower()).lstrip("_-").rstrip("_")[:_SLUG] or "x"
