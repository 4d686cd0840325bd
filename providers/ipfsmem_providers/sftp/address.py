"""The address of a folder at an SSH server: parsed, and refused where the `ssh` program would do more than connect.

    [user@]host[:port]/path      below the home folder of the user
    [user@]host[:port]//path     an absolute path

`host` may be an alias of ~/.ssh/config. The address never contains a password.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ipfsmem.errors import ConfigError

EXAMPLES: Final = "For instance sftp:me@nas.example/memory, below the home folder there, or sftp:me@nas.example:2222//srv/memory."
_HOST: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]"
_USER: Final = r"[A-Za-z0-9_][A-Za-z0-9._+-]*"
_ADDRESS: Final = re.compile(rf"(?:({_USER})@)?({_HOST})(?::([1-9][0-9]{{0,4}}))?/(/?)([^/].*)")
_NO_PATH: Final = re.compile("[\"'`\\\\?#]")


class SftpAddress(NamedTuple):
    """One folder at one server."""

    user: str  #: "" for the one that ssh chooses
    host: str  #: without brackets
    port: int  #: 0 for the one that ssh chooses
    path: str  #: without a slash at its end; relative to the home folder, or absolute

    @property
    def shown(self) -> str:
        """Return the address as a spec without `sftp:`; it has no secrets."""
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"{user}{self._bracketed}{port}/{self.path}"

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def parse(rest: str) -> SftpAddress:
    """Parse the part of a spec after `sftp:`. Raises ConfigError, without repeating a password."""
    text = rest.strip()
    match = _ADDRESS.fullmatch(text) if text.isprintable() else None
    if match is None:
        before_path = text.partition("/")[0]
        if "@" in before_path and ":" in before_path.rpartition("@")[0]:
            raise ConfigError(
                "the address of the SFTP folder holds a password: it would be shown and stored",
                hint="Leave it out: ssh logs in with a key.",
            )
        raise _unusable("not the address of a folder")
    user, host, port, absolute, path = match.groups()
    names = [name for name in path.split("/") if name]
    if not names or {".", ".."} & set(names) or names[0].startswith("~") or _NO_PATH.search(path):
        raise _unusable("an address with an unusable path")
    if int(port or 0) > 65535:
        raise _unusable("an address with an unusable port")
    return SftpAddress(user or "", host.strip("[]"), int(port or 0), absolute + "/".join(names))


def _unusable(what: str) -> ConfigError:
    return ConfigError(f"the text after sftp: is {what}", hint=EXAMPLES)
