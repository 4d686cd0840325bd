"""The report of a sync, for users and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from ipfsmem.content.cid import CID
from ipfsmem.errors import (
    DamagedError,
    FormatError,
    IncompleteError,
    MissingError,
    NotPublishedError,
    ProviderError,
    UnreadError,
)
from ipfsmem.sync.changes import Changes, combine_changes

#: The command for a notice that requires the wallet.
UNLOCK: Final = "ipfsmem member admit --wallet FILE, or with --mnemonic or --words"

#: Advice when texts were omitted because of a limit.
CROWDED: Final = "If you do not know those devices, revoke the member that added them, and them with it: ipfsmem member revoke ID --cascade"

#: Kinds of notices that each sync repeats while their reason lasts. Those of an earlier sync of the command are
#: omitted.
_REPEATED_KINDS: Final = frozenset(
    (
        "anchor-unread",
        "cannot-publish",
        "channel-down",
        "damaged",
        "folder",
        "head-refused",
        "left-out",
        "mailbox",
        "missing",
        "moved",
        "not-a-writer",
        "not-enrolled",
        "not-opened",
        "not-published",
        "not-served-yet",
        "provider-down",
        "provider-paused",
        "record-unread",
        "provider-refused",
        "revoked",
        "ring-filling",
        "unlock",
        "unread",
    )
)

#: Maximum number of names in one notice.
MOST_NAMED: Final = 20


def named(names: Iterable[str]) -> str:
    """Return these names for one notice, without repeats: the first ones, and the number of others."""
    unique = list(dict.fromkeys(names))
    more = len(unique) - MOST_NAMED
    return ", ".join(unique[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


class Notice(msgspec.Struct, frozen=True):
    """A notice for the user: `kind` is one word for programs."""

    kind: str
    text: str
    #: The same in the terms of the format, for programs and diagnosis.
    detail: str = ""
    #: Name of the provider concerned, as in `status`; else "".
    provider: str = ""


class Notices:
    """The notices of one sync, in order, without repeats."""

    def __init__(self) -> None:
        self.said: list[Notice] = []

    def say(self, kind: str, text: str, detail: str = "", *, provider: str = "") -> None:
        """Add a notice, once. `provider`: the name of the one concerned."""
        notice = Notice(kind, text, detail, provider)
        if notice not in self.said:
            self.said.append(notice)

    def first(self, *kinds: str) -> str:
        """Return the text of the first notice of one of these kinds, or ""."""
        return next((notice.text for notice in self.said if notice.kind in kinds), "")

    def failed(self, what: str, error: ProviderError, *, provider: str = "") -> None:
        """Report a provider's failure: permanent with advice, or to be retried by the next sync."""
        if error.permanent:
            self.say("provider-refused", f"{what}: {error.in_a_line()}", provider=provider)
        else:
            self.say("provider-down", f"{what}: {error}; the next sync tries again", provider=provider)

    def put_off(self, root: CID, error: ProviderError) -> None:
        """Report that a known version could not be read."""
        self.say(
            "channel-down",
            f"version {root} could not be read, so newer texts may be missing: {error}; the next sync tries again",
        )


class SyncReport(msgspec.Struct):
    """The outcome of one sync. Bytes are those of blocks."""

    #: Root CID that this device's name points at now; None if nothing was ever published.
    root: str | None = None
    #: True when this sync made a new commit.
    published: bool = False
    #: True when another device's equal root was adopted instead.
    adopted: bool = False
    heads_joined: int = 0
    entries_changed: int = 0
    #: Their number by scope; "" is the default scope.
    changed_in: dict[str, int] = msgspec.field(default_factory=dict)
    #: The user's names of the devices whose changes were joined.
    sources: list[str] = msgspec.field(default_factory=list)
    #: The memories that these added, changed and removed.
    changes: Changes = Changes()
    conflicts: int = 0
    not_fetched: int = 0
    #: Number of other people's texts that were dropped because a memory had too many values.
    left_out: int = 0
    #: Linked folders, and files in them, whose texts could not be read in, and so are not published.
    not_taken_in: int = 0
    #: The file that the user specified, if nothing in it was usable, else "".
    not_used: str = ""
    #: The file that the user specified, if its version is held because another copy of its device was joined; else
    #: "".
    waits: str = ""
    #: Heads found but not joined because parts of them are unreadable.
    damaged: int = 0
    blocks_received: int = 0
    bytes_received: int = 0
    blocks_sent: int = 0
    bytes_sent: int = 0
    #: Live blocks missing at providers after resending.
    missing: int = 0
    #: Known roots that were unreadable because a provider was down, and at the first sync of a restored vault
    #: also providers that did not list their roots: newer texts may be missing.
    unread: int = 0
    #: Providers that did not accept what this sync published, or could not be called; another one did, or
    #: nothing had to be sent.
    not_placed: list[str] = msgspec.field(default_factory=list)
    #: Why nothing could be published: `not-a-writer`, `cannot-publish`; "" when it could, or nothing waited.
    blocked: str = ""
    #: True when this device took a new id because its state had been restored or copied.
    new_identity: bool = False
    seconds: float = 0.0
    notices: list[Notice] = msgspec.field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """Return the exit code of a command that synced: 0 when all requested was done, else that of what was not.

        Such as: nothing could be published, live data is missing, heads are unreadable, a file was useless, or a
        provider, text or folder was omitted.
        """
        if self.blocked:
            return NotPublishedError.exit_code
        if self.missing:
            return MissingError.exit_code
        if self.unread:
            return UnreadError.exit_code
        if self.damaged:
            return DamagedError.exit_code
        if self.not_used:
            return FormatError.exit_code
        incomplete = self.waits or self.not_placed or self.not_fetched or self.left_out or self.not_taken_in
        return IncompleteError.exit_code if incomplete else 0

    def say(self, kind: str, text: str, *, provider: str = "") -> None:
        """Add a notice of the command that synced, once. `provider`: the name of the one concerned."""
        self.notices = list(dict.fromkeys([*self.notices, Notice(kind, text, provider=provider)]))

    def after(self, earlier: SyncReport | None) -> None:
        """Merge the report of an earlier sync of the same command, whose one-time notices would be lost otherwise."""
        if earlier is None:
            return
        lasting = [notice for notice in earlier.notices if notice.kind not in _REPEATED_KINDS]
        self.notices = list(dict.fromkeys([*lasting, *self.notices]))
        self.published |= earlier.published
        self.new_identity |= earlier.new_identity
        self.heads_joined += earlier.heads_joined
        self.entries_changed += earlier.entries_changed
        self.changed_in = dict(Counter(self.changed_in) + Counter(earlier.changed_in))
        self.sources = list(dict.fromkeys([*earlier.sources, *self.sources]))
        self.changes = combine_changes(earlier.changes, self.changes)
        self.blocks_received += earlier.blocks_received
        self.bytes_received += earlier.bytes_received
        self.blocks_sent += earlier.blocks_sent
        self.bytes_sent += earlier.bytes_sent
        self.seconds = round(self.seconds + earlier.seconds, 3)
