"""`memory.facts`: single sentences with a category, kept in order by themselves; procedures and episodes beside them."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterator

import msgspec

from ipfsmem.bundle.keys import check_key
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.config import settings
from ipfsmem.errors import UsageError
from ipfsmem.facts.categories import GENERAL, KINDS, Kind
from ipfsmem.memories.fact_history import earlier, keys_with_history
from ipfsmem.memories.facts import Fact, Facts, Remembered, as_fact, keep_shown
from ipfsmem.parts.forgetting import forget_text
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.texts import MemoryTexts
from ipfsmem.parts.vault_handle import VaultHandle


class EarlierFact(msgspec.Struct, frozen=True):
    """A text that an entry had. `number`: what `restore` takes, 1 is the newest; `until`: when it went, in milliseconds since 1970 UTC;
    `why`: `updated` by a new fact, `edited`, `deleted`, or replaced when another was `restored`."""

    number: int
    key: str
    text: str
    until: int
    why: str


class FactPage(msgspec.Struct, frozen=True):
    """Entries, the last written first. `next`: the cursor of what follows; None at the end."""

    facts: tuple[Fact, ...]
    next: str | None


class MemoryFacts(MemoryPart):
    """The entries of one scope. Each is a memory file with a category, so `read`, `list` and `recall` find it like any other."""

    def __init__(self, opened: VaultHandle, scope: str) -> None:
        super().__init__(opened)
        self._scope = scope

    def add(
        self,
        text: str,
        category: str = GENERAL,
        *,
        kind: Kind = "fact",
        confidence: float | None = None,
        important: bool = False,
        source: str = "",
    ) -> Remembered | None:
        """Remember a sentence, durable when this returns; None when nothing of it is left without blanks and dashes.

        One that says what is known already is `kept`; one that says more of an entry, or says it anew, takes its place (`updated`), and
        what stood there goes into its history. `category`: any word; `confidence`: 0 to 1. More entries of a kind than the settings allow
        go out of sight on this device. Raises UsageError, LimitError, ChangedError.
        """
        _check_kind(kind)
        self._open.ingest_edits()
        made = self._facts().add(
            text, category, kind, confidence=confidence, important=important, source=source
        )
        if made is not None and made.action != "kept":
            self._open.render_file(made.fact.key, self._target())
        return made

    def list(
        self, kind: Kind | None = None, category: str | None = None, limit: int | None = None
    ) -> builtins.list[Fact]:
        """The entries, the last written first; hidden ones are not among them. Raises UsageError for a kind that is none."""
        if kind is not None:
            _check_kind(kind)
        self._open.ingest_edits()
        return self._facts().listing(kind, category, limit)

    def page(
        self,
        kind: Kind | None = None,
        category: str | None = None,
        *,
        limit: int = 100,
        cursor: str = "",
        hidden: bool = False,
    ) -> FactPage:
        """So many of what `list` gives, from the `next` of the page before on; `hidden`: of what is out of sight on this device
        instead. Raises UsageError for a kind that is none."""
        if kind is not None:
            _check_kind(kind)
        if limit < 1:
            raise UsageError(f"limit is 1 or more, not {limit}")
        self._open.ingest_edits()
        found, following = self._facts().page(kind, category, limit, cursor, hidden=hidden)
        return FactPage(tuple(found), following or None)

    def get(self, key: str) -> Fact | None:
        """One entry; None where there is none, or its text is not on this device."""
        self._open.ingest_edits()
        return self._facts().get(key)

    def edit(self, key: str, text: str, *, seen: str | None = None) -> Fact:
        """Give an entry another text; the one before goes into its history. `seen`: of the entry that is to be replaced, and no other.
        Raises NotFoundError, UsageError, ChangedError."""
        self._open.ingest_file(key, self._target())
        made = self._facts().edit(key, text, seen)
        self._open.render_file(key, self._target())
        return made

    def history(self, key: str) -> builtins.list[EarlierFact]:
        """The earlier texts of an entry, the newest first; none for one that never changed. Raises KeyNameError."""
        check_key(key)
        self._open.ingest_edits()
        return [
            EarlierFact(number, key, parse_memory(one.data).body, one.until, one.why)
            for number, one in enumerate(earlier(self._texts().memories, key), 1)
        ]

    def delete(self, key: str, *, reason: str = "", seen: str | None = None) -> Fact:
        """Take an entry away, on every device, so that `restore` can bring it back. `forget` takes its earlier texts too. `seen`: of
        the entry that is to go. A text that somebody writes meanwhile stays. Raises NotFoundError, ChangedError."""
        from ipfsmem.memories.reasons import check_reason  # most calls take nothing away

        check_reason(reason)
        self._open.ingest_file(key, self._target())
        gone = self._facts().keep_deleted(key, seen)
        forget_text(
            self._open,
            self._target(),
            key,
            reason=reason or "deleted; it can be restored",
            seen=gone,
            keep_earlier=True,
        )
        return as_fact(gone)

    def keep(self, key: str, *, seen: str | None = None) -> None:
        """Keep what any memory shows in its history, from where `restore` brings it back, before its writer replaces it. Raises
        NotFoundError, ChangedError."""
        self._open.ingest_file(key, self._target())
        keep_shown(self._texts().memories, key, seen)

    @contextlib.contextmanager
    def keeping(self, key: str, *, seen: str | None = None) -> Iterator[None]:
        """The same in one transaction with what is written inside: where that fails, nothing is kept."""
        self._open.ingest_file(key, self._target())
        with self._replica.transaction():
            keep_shown(self._texts().memories, key, seen)
            yield

    def deleted(self) -> builtins.list[EarlierFact]:
        """The entries that were deleted and can be restored, the last one first."""
        self._open.ingest_edits()
        memories = self._texts().memories
        keys = keys_with_history(memories)
        with self._replica.reading():
            gone = [key for key in keys if not memories.shows(key)]
        return [self.history(key)[0] for key in gone if earlier(memories, key)]

    def restore(self, key: str, number: int = 1, *, seen: str | None = None) -> Fact:
        """Bring an earlier text of an entry back, or an entry that was deleted: `number` counts its texts from the newest. `seen`: of
        the entry in whose place it comes, "" for none. Raises NotFoundError, ChangedError."""
        check_key(key)
        self._open.ingest_file(key, self._target())
        reading = self._facts().restore(key, number, seen)
        self._open.render_file(key, self._target())
        return as_fact(reading)

    def keep_limits(self) -> builtins.list[str]:
        """Hide on this device what is more than the settings allow, of all kinds; the keys. `add` does it for its kind."""
        facts = self._facts()
        return [key for kind in KINDS for key in facts.keep_limits(kind)]

    def _target(self) -> str:
        return self._open.scopes.target(self._scope) if self._scope else ""

    def _texts(self) -> MemoryTexts:
        return MemoryTexts(self._open, self._target())

    def _facts(self) -> Facts:
        return Facts(self._open.memories.in_scope(self._target()), settings().facts)


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise UsageError(f"unknown kind {kind[:60]!r}", hint=f"Kinds: {', '.join(KINDS)}.")
