"""Access control of the HTTP API: by host name, by origin of the page, and by token.

There are session tokens, valid while the server runs, and stored tokens, created by `ipfsmem token new`. A stored
token's right and scopes are in the vault, so they are read after it is opened.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from ipfsmem.api.calls import Caller
from ipfsmem.api.served import ServedMemory
from ipfsmem.api.tokens import token_id
from ipfsmem.loopback import LOCAL_HOSTS, host_of

#: Lifetime of a one-time code in seconds, wrong attempts that revoke it, and maximum session tokens of one run.
CODE_LIFE: Final = 120.0
CODE_TRIES: Final = 5
MAX_SESSIONS: Final = 64


class CodeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The one-time code of `ipfsmem ui`."""

    code: str


class SessionToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token that is valid until this server ends, and the vault that it opens."""

    token: str
    vault_name: str


class KnownCaller(NamedTuple):
    """A known caller: `caller` of a token of this run; else a kept token of that memory, by its hash."""

    caller: Caller | None
    vault_name: str | None = None
    digest: str = ""

    @property
    def by(self) -> str:
        """Return the id of a kept token (`ipfsmem token list`), for people; "" for a token of this run."""
        return token_id(self.digest)


class AccessControl:
    """The access control of one running server."""

    def __init__(
        self,
        served: Mapping[str, ServedMemory],
        *,
        names: Collection[str] = (),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`names`: further host names of the server."""
        self._served = served
        self._names = frozenset(name.lower() for name in names)
        self._now = now
        self._run: list[tuple[bytes, Caller]] = []
        self._code = ""
        self._code_ends, self._tries = 0.0, 0

    # -- names and pages -------------------------------------------------------------------------------------

    def check_host_and_origin(self, hosts: Sequence[str], origins: Sequence[str]) -> tuple[int, str] | None:
        """Return status and message if the host name is not the server's, or the page is of another origin; else None."""
        if len(hosts) != 1 or host_of(hosts[0]) not in LOCAL_HOSTS | self._names:
            return 421, "this server does not have that host name"
        host = hosts[0].strip().lower()
        # A configured name may be behind a TLS proxy; names of this machine never are.
        own = {f"http://{host}"} | ({f"https://{host}"} if host_of(host) in self._names else set())
        if any(origin.lower() not in own for origin in origins):
            return 403, "requests from pages of other hosts are refused"
        return None

    # -- tokens ----------------------------------------------------------------------------------------------

    def accept_token(self, token: str, caller: Caller) -> None:
        """Accept this token while the server runs."""
        self._run.append((token.encode(), caller))
        del self._run[1 : max(1, len(self._run) - MAX_SESSIONS)]

    def caller_of(self, authorizations: Sequence[str]) -> KnownCaller | None:
        """Return the caller of a request by its token; None without a known one."""
        if len(authorizations) != 1:
            return None
        kind, _, value = authorizations[0].partition(" ")
        token = value.strip()
        if kind.lower() != "bearer" or not token:
            return None
        token_bytes = token.encode("utf-8", "surrogateescape")
        for secret, caller in self._run:
            if hmac.compare_digest(secret, token_bytes):
                return KnownCaller(caller)
        for vault_name, memory in self._served.items():
            if (digest := memory.tokens.find(token)) is not None:
                return KnownCaller(None, vault_name, digest)
        return None

    def is_still_valid(self, identity: KnownCaller) -> bool:
        """Tell whether an accepted token is still valid."""
        return identity.vault_name is None or self._served[identity.vault_name].tokens.is_still_valid(
            identity.digest
        )

    # -- the one-time code -----------------------------------------------------------------------------------

    def new_code(self) -> str:
        """Return a code that opens the page once, within two minutes; it replaces an earlier one."""
        self._code = secrets.token_urlsafe(24)
        self._code_ends, self._tries = self._now() + CODE_LIFE, CODE_TRIES
        return self._code

    def exchange(self, code: str) -> str | None:
        """Exchange a code for a token, once; None for a wrong or an expired code. Five wrong codes revoke it."""
        right = (
            self._code != ""
            and self._now() < self._code_ends
            and hmac.compare_digest(code.encode("utf-8", "surrogateescape"), self._code.encode())
        )
        self._tries -= 1
        if right or self._tries <= 0:
            self._code = ""
        if not right:
            return None
        token = secrets.token_urlsafe(32)
        self.accept_token(token, Caller("admin"))
        return token
