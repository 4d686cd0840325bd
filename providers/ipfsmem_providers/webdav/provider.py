"""The `webdav` provider: a folder at a WebDAV server, with the layout of `directory`.

    webdav:https://host[:port]/path/of/folder
    webdav:https://host/remote.php/dav/files/USER/FOLDER    Nextcloud, ownCloud

    WEBDAV_USER, WEBDAV_PASSWORD   the account; at Nextcloud an app password. Of several servers each its own (http/tokens.py)
    WEBDAV_PLAIN_HTTP=allow        send them over http:// to another machine

Settings of the same names in lower case override the environment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ipfsmem.errors import ConfigError
from ipfsmem_providers.http.tokens import token_for
from ipfsmem_providers.remote.provider import RemoteFolder
from ipfsmem_providers.settings import choice
from ipfsmem_providers.webdav.address import parse
from ipfsmem_providers.webdav.files import DavFiles


class WebdavProvider(RemoteFolder):
    """A folder at a WebDAV server. See ipfsmem.provider.contract for the methods."""

    def __init__(
        self,
        rest: str,
        settings: Mapping[str, Any] | None = None,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """`rest`: the address. `settings["create"]`: make a missing folder. `clock` returns nanoseconds since 1970 UTC.

        No network access. ConfigError for a bad address or unusable credentials.
        """
        options = settings or {}
        allow_http = choice(options, "WEBDAV_PLAIN_HTTP", ("refuse", "allow")) == "allow"
        address = parse(rest, allow_http=allow_http)
        user, password = (
            token_for(options, name, address.url, kind="webdav", url_of=lambda rest: parse(rest, allow_http=True).url)
            for name in ("WEBDAV_USER", "WEBDAV_PASSWORD")
        )  # fmt: skip
        if bool(user) != bool(password):
            missing = "WEBDAV_USER" if password else "WEBDAV_PASSWORD"
            raise ConfigError(
                f"{missing} is not set for {address.origin}",
                hint="Set both, or neither for a server without accounts.",
            )
        if ":" in user:
            raise ConfigError("WEBDAV_USER contains a colon, which Basic authentication does not allow")
        super().__init__(DavFiles(address, user, password, options, now=lambda: clock() / 1e9), clock)

    @staticmethod
    def lasting(rest: str) -> str:
        """Return the canonical form of the address. Raises ConfigError for an unusable one."""
        return parse(rest, allow_http=True).url
