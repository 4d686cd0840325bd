"""The address of a folder at a remote of rclone. Pure.

REMOTE:path/of/folder      REMOTE is a name that `rclone listremotes` prints
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ipfsmem.errors import ConfigError

EXAMPLES: Final = "For instance rclone:drive:memory; `rclone listremotes` prints the names of remotes."
#: A name of a remote. Without `,` and a leading `:`, behind which rclone reads options, and so passwords.
_REMOTE: Final = re.compile(r"[A-Za-z0-9_.+@](?:[A-Za-z0-9_.+@ -]*[A-Za-z0-9_.+@-])?")
#: Brackets end a path in the URLs of rclone.
_UNUSABLE: Final = re.compile(r"[\x00-\x1f\x7f\\\[\]\ufffd]")


class RcloneAddress(NamedTuple):
    """One folder at one remote."""

    remote: str
    path: str  #: without a slash at its end

    @property
    def shown(self) -> str:
        """Return the address as rclone writes it; it has no secrets."""
        return f"{self.remote}:{self.path}"


def parse(rest: str) -> RcloneAddress:
    """Parse the part of a spec after `rclone:`. Raises ConfigError, without repeating options."""
    remote, mark, path = rest.strip().partition(":")
    if (not remote and mark) or "," in remote:
        raise ConfigError(
            "the address after rclone: holds options of a remote, perhaps a password: it would be shown and stored",
            hint=f"Give the remote a name: rclone config. {EXAMPLES}",
        )
    parts = [part for part in path.split("/") if part]
    if not mark or not _REMOTE.fullmatch(remote) or _UNUSABLE.search(path) or {".", ".."} & {*parts}:
        raise ConfigError("the text after rclone: is not the address of a folder", hint=EXAMPLES)
    return RcloneAddress(remote, f"{'/' if path.startswith('/') else ''}{'/'.join(parts)}")
