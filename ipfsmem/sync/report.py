"""What a sync did, for people and for programs."""

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

#: What a person does where a notice asks for the wallet.
UNLOCK: Final = "ipfsmem member admit --wallet FILE, or with --mnemonic or --words"

#: What a person does where texts were left out for want of room.
CROWDED: Final = "If you do not know those devices, revoke who let them in, with all of them: ipfsmem member revoke ID --nothing-stands"

#: Kinds of notices that each sync makes anew while their reason lasts: those of an earlier sync are left out.
_SAID_ANEW: Final = frozenset(
    (
        "anchor-unread",
        "cannot-publish",
        "channel-down",
        "damaged",
        "folder",
        "head-refused",
        "left-out",
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

#: Names listed at most in one notice.
MOST_NAMED: Final = 20


def named(names: Iterable[str]) -> str:
    """These names for one notice, each once: the first of them, and how many more."""
    unique = list(dict.fromkeys(names))
    more = len(unique) - MOST_NAMED
    return ", ".join(unique[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


class Notice(msgspec.Struct, frozen=True):
    """Something that a person must be told: `kind` is one word for programs."""

    kind: str
    text: str
    #: The same in the format's words, for programs and for whoever looks for the cause.
    detail: str = ""
    #: The name of the provider that it is about, as `status` has it; empty when it is not about one.
    provider: str = ""


class Notices:
    """The notices of one sync, in the order in which its steps made them, each once."""

    def __init__(self) -> None:
        self.said: list[Notice] = []

    def say(self, kind: str, text: str, detail: str = "", *, provider: str = "") -> None:
        """Add a notice, once. `provider`: the name of the one that it is about."""
        notice = Notice(kind, text, detail, provider)
        if notice not in self.said:
            self.said.append(notice)

    def first(self, *kinds: str) -> str:
        """The text of the first notice of one of these kinds; empty when there is none."""
        return next((notice.text for notice in self.said if notice.kind in kinds), "")

    def failed(self, what: str, error: ProviderError, *, provider: str = "") -> None:
        """Say that a provider did not do its part: for good and what helps, or that the next sync tries again."""
        if error.permanent:
            self.say("provider-refused", f"{what}: {error.in_a_line()}", provider=provider)
        else:
            self.say("provider-down", f"{what}: {error}; the next sync tries again", provider=provider)

    def put_off(self, root: CID, error: ProviderError) -> None:
        """Say that a version which is known of could not be read."""
        self.say(
            "channel-down",
            f"version {root} could not be read, so newer texts may be missing: {error}; the next sync tries again",
        )


class SyncReport(msgspec.Struct):
    """The outcome of one sync. Bytes are those of blocks."""

    #: Root CID that this device's name points at now; None when nothing was ever published.
    root: str | None = None
    #: True when this sync made a new commit.
    published: bool = False
    #: True when another device's equal root was taken over instead.
    adopted: bool = False
    heads_joined: int = 0
    entries_changed: int = 0
    #: How many of these by scope; "" is the nameless one.
    changed_in: dict[str, int] = msgspec.field(default_factory=dict)
    #: The devices whose changes were joined, as their person calls them.
    sources: list[str] = msgspec.field(default_factory=list)
    #: Which memories these added, changed and removed.
    changes: Changes = Changes()
    conflicts: int = 0
    not_fetched: int = 0
    #: Texts of others that were left out, and so are gone, for want of room under one name.
    left_out: int = 0
    #: Working copies, and files in them, whose texts could not be taken in, and so are not published.
    not_taken_in: int = 0
    #: The file that was given and of which nothing could be used; empty when it was, or none was given.
    not_used: str = ""
    #: The file that was given and whose version waits, as another copy of the device that wrote it was joined first; else empty.
    waits: str = ""
    #: Heads that were found and not joined because parts of them cannot be read.
    damaged: int = 0
    blocks_received: int = 0
    bytes_received: int = 0
    blocks_sent: int = 0
    bytes_sent: int = 0
    #: Blocks that live and are missing at providers, after what could be sent again was.
    missing: int = 0
    #: Roots that are known of and could not be read because a provider was down, and at the first sync of a restored memory
    #: also providers that did not say what they have: newer texts may be missing.
    unread: int = 0
    #: Providers that did not take what this sync published, or could not be asked; another one did, or nobody had to.
    not_placed: list[str] = msgspec.field(default_factory=list)
    #: Why nothing could be published: `not-a-writer`, `cannot-publish`; empty when it could, or nothing waited.
    blocked: str = ""
    #: True when this device took a new id because its state had been restored or copied.
    new_identity: bool = False
    seconds: float = 0.0
    notices: list[Notice] = msgspec.field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """What a command that synced ends with: 0 when all that was asked was done, else the code of what was not: nothing
        could be published, something that lives is missing, heads cannot be read, a file was of no use, a provider, a text or a folder
        was left out."""
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
        """Add a notice of the command that synced, once. `provider`: the name of the one that it is about."""
        self.notices = list(dict.fromkeys([*self.notices, Notice(kind, text, provider=provider)]))

    def after(self, earlier: SyncReport | None) -> None:
        """Take in what an earlier sync of the same command did and said: what is told once would be told to nobody."""
        if earlier is None:
            return
        lasting = [notice for notice in earlier.notices if notice.kind not in _SAID_ANEW]
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
