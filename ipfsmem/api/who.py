"""Who may ask the HTTP API: by the name that it is asked by, by the page that asks, and by token.

Tokens are those of a run of the server (given to it, made by it, or exchanged for a one-time code) and those that a command made for one
memory. What a kept token is for says the memory that it is of, so it is asked once that is open.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from ipfsmem.api.calls import Caller
from ipfsmem.api.served import ServedMemory
from ipfsmem.api.tokens import token_id
from ipfsmem.loopback import LOCAL_HOSTS, host_of

#: Seconds that a one-time code lives, wrong tries that end it, and session tokens of one run.
CODE_LIFE: Final = 120.0
CODE_TRIES: Final = 5
MAX_SESSIONS: Final = 64


class Known(NamedTuple):
    """Who asks: `caller` of a token of this run; else a kept token of that memory, by its hash."""

    caller: Caller | None
    namespace: str | None = None
    digest: str = ""

    @property
    def by(self) -> str:
        """Who asks, for people: the id of a kept token (`ipfsmem token list`); "" for a token of this run."""
        return token_id(self.digest)


class Doors:
    """The ways in of one running server."""

    def __init__(
        self,
        served: Mapping[str, ServedMemory],
        *,
        names: Collection[str] = (),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`names`: further host names that it is asked by."""
        self._served = served
        self._names = frozenset(name.lower() for name in names)
        self._now = now
        self._run: list[tuple[bytes, Caller]] = []
        self._code = ""
        self._code_ends, self._tries = 0.0, 0

    # -- names and pages -------------------------------------------------------------------------------------

    def wrong_place(self, hosts: Sequence[str], origins: Sequence[str]) -> tuple[int, str] | None:
        """Status and words where the name is none of this server's, or the page that asks came from elsewhere."""
        if len(hosts) != 1 or host_of(hosts[0]) not in LOCAL_HOSTS | self._names:
            return 421, "this server is not known under that name"
        asked = hosts[0].strip().lower()
        # A name of one's own may stand behind a server that speaks TLS; this machine's names never do.
        own = {f"http://{asked}"} | ({f"https://{asked}"} if host_of(asked) in self._names else set())
        if any(origin.lower() not in own for origin in origins):
            return 403, "pages of other hosts are not answered"
        return None

    # -- tokens ----------------------------------------------------------------------------------------------

    def let_in(self, token: str, caller: Caller) -> None:
        """Let in who sends this token, for as long as the server runs."""
        self._run.append((token.encode(), caller))
        del self._run[1 : max(1, len(self._run) - MAX_SESSIONS)]

    def who(self, authorizations: Sequence[str]) -> Known | None:
        """Whose token a request sends; None without one that is known."""
        if len(authorizations) != 1:
            return None
        kind, _, value = authorizations[0].partition(" ")
        token = value.strip()
        if kind.lower() != "bearer" or not token:
            return None
        given = token.encode("utf-8", "surrogateescape")
        for known, caller in self._run:
            if hmac.compare_digest(known, given):
                return Known(caller)
        for namespace, memory in self._served.items():
            if (digest := memory.tokens.find(token)) is not None:
                return Known(None, namespace, digest)
        return None

    def still(self, known: Known) -> bool:
        """Whether a token that was let in is not revoked meanwhile."""
        return known.namespace is None or self._served[known.namespace].tokens.still(known.digest)

    # -- the one-time code -----------------------------------------------------------------------------------

    def new_code(self) -> str:
        """A code that opens the page once, within two minutes; one before it ends."""
        self._code = secrets.token_urlsafe(24)
        self._code_ends, self._tries = self._now() + CODE_LIFE, CODE_TRIES
        return self._code

    def exchange(self, code: str) -> str | None:
        """A token for a code, once; None for a wrong one, or too late. Five wrong ones end the code."""
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
        self.let_in(token, Caller("admin"))
        return token
