"""The address of a folder at a WebDAV server. Pure.

    https://host[:port]/path/of/folder

`http://` sends the password and everything else in the clear: it is accepted for this machine, and elsewhere when the user
allows it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from yarl import URL

from ipfsmem.errors import ConfigError

NEXTCLOUD: Final = "https://HOST/remote.php/dav/files/USER/FOLDER"
EXAMPLES: Final = (
    f"For instance webdav:https://nas.example/memory; at Nextcloud and ownCloud webdav:{NEXTCLOUD}."
)
_NO_NAME: Final = re.compile(r"[\x00-\x1f\x7f/\\\ufffd]")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
#: Characters of a path that stay as they are.
_SAFE: Final = "!$&'()*+,-.:=@_~"


class DavAddress(NamedTuple):
    """One folder at one server."""

    origin: str  #: scheme, host and port, such as https://host:8443
    names: tuple[str, ...]  #: decoded names of the path; the last one is the folder

    @property
    def url(self) -> str:
        """Return the URL, encoded, without a slash at its end; it has no secrets."""
        return self.of()

    def of(self, *names: str, folder: bool = False) -> str:
        """Return the URL of something inside the folder; a folder's ends with a slash."""
        return self.above(0, *names, folder=folder)

    def above(self, levels: int, *names: str, folder: bool = False) -> str:
        """Return the URL of something in the folder that is `levels` above this one."""
        path = "/".join(quote(name, safe=_SAFE) for name in (*self.names[: len(self.names) - levels], *names))
        return f"{self.origin}/{path}{'/' if folder and path else ''}"


def parse(rest: str, *, allow_http: bool = False) -> DavAddress:
    """Parse the part of a spec after `webdav:`. Raises ConfigError, without repeating a password."""
    text = rest.strip()
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _unusable("not an address") from None
    if parts.scheme not in ("http", "https") or not host or not text.isprintable() or port == 0:
        raise _unusable("not an http or https address")
    if "@" in parts.netloc:
        raise ConfigError(
            "the address of the WebDAV folder holds a user name or a password: it would be shown and stored",
            hint="Leave it out, and set WEBDAV_USER and WEBDAV_PASSWORD.",
        )
    if "?" in text or "#" in text:
        raise _unusable("an address with a query or a fragment")
    names = tuple(unquote(name) for name in parts.path.split("/") if name)
    if not all(map(is_name, names)):
        raise _unusable("an address with an unusable path")
    if parts.scheme == "http" and not allow_http and host not in _LOOPBACK:
        raise ConfigError(
            "http:// sends the password in the clear",
            hint="Use https://. In a network that you trust: set WEBDAV_PLAIN_HTTP=allow.",
        )
    try:
        origin = str(URL.build(scheme=parts.scheme, host=host, port=port).origin())
    except ValueError:
        raise _unusable("an address with an unusable host") from None
    return DavAddress(origin, names)


def is_name(name: str) -> bool:
    """Return whether a decoded part of a path names something, and leads nowhere else."""
    return name not in ("", ".", "..") and not _NO_NAME.search(name)


def _unusable(what: str) -> ConfigError:
    return ConfigError(f"the text after webdav: is {what}", hint=EXAMPLES)
