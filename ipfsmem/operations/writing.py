"""Write a memory of one scope, or of the scope into which it was merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from ipfsmem.bundle.keys import check_key
from ipfsmem.bundle.memory_file import parse_marked
from ipfsmem.errors import ChangedError, UsageError
from ipfsmem.memories.memory_records import Conflict, MemoryRecord, Seen, first_own, place_of

if TYPE_CHECKING:
    from ipfsmem.memories.memories import MemoryStore
    from ipfsmem.open_vault.handle import VaultHandle

#: Returns the text to write, for the memories of the scope and the text that is replaced.
Make = Callable[["MemoryStore", bytes | None], bytes]


def write_text(
    opened: VaultHandle,
    scope: str,
    key: str,
    data: bytes | Make,
    *,
    seen: Seen | None = None,
    if_match: str | None = None,
    long: bool = False,
) -> MemoryRecord:
    """Write a whole text, or the result of `data` for the text that is replaced. Arguments as those of `write`; `long`: long texts are
    accepted."""
    target = opened.scopes.target(scope) if scope else scope
    if if_match is not None or isinstance(seen, str):
        # An edit of the file that was not imported yet is compared too. Without that, nobody has seen it: it is
        # imported after the write, and then merged or kept as an alternative.
        opened.ingest_file(key, target)
    there = opened.memories.in_scope(target)
    record = _shown_below(opened, there, key, seen)
    if record is not None:
        data = _from_below(record, there, data, seen, if_match)
        seen, if_match = None, _hides_nothing(there, key)
    text = data if isinstance(data, bytes) else partial(data, there)
    with opened.flush_usage(target):
        written = there.write(key, text, seen=seen, if_match=if_match, long=long)
    opened.render_file(key, target)
    return written


def changed_text(
    there: MemoryStore, key: str, shown: bytes | None, body: str | None, fields: Mapping[str, str | None]
) -> bytes:
    """Return the text `shown` with another body and other fields; None keeps the present one. Raises UsageError
    without a body if only others' text is visible."""
    if shown is None and body is None:
        _refuse_parts_of_others(there, key)
    changes = {field: value for field, value in fields.items() if value is not None}
    today = there.replica.environment.today().isoformat()
    parsed = parse_marked(shown or b"")
    old = parsed[0]
    new = old.with_fields(changes, body if body is not None else old.body)
    if new == old and shown is not None:
        return shown
    stamps = {"created": new.created or today, "updated": changes.get("updated", today)}
    from ipfsmem.bundle.header_edit import edit_memory, refuse_over_unclosed

    if shown is not None and body is not None:
        refuse_over_unclosed(shown, body)
    return edit_memory(shown or b"", changes, body, stamps=stamps, parsed=parsed)


def _refuse_parts_of_others(there: MemoryStore, key: str) -> None:
    """Refuse a partial write that would hide others' text unseen."""
    view = there.view(key)
    if view.data is not None and not view.own:
        raise UsageError(
            f"{key} is pending, so its parts cannot become your text: pass the body too, or approve it first"
        )


def shown_to_reader(there: MemoryStore, below: Sequence[str], key: str) -> MemoryRecord | None:
    """Return the visible text under a key for a reader of a scope, from it or from `below`, the scopes merged into it."""
    return first_own(part.read(key) for part in (there, *map(there.in_scope, below))) if below else None


def _shown_below(opened: VaultHandle, there: MemoryStore, key: str, seen: Seen | None) -> MemoryRecord | None:
    """Return the visible text under a key that the scope itself lacks, from a scope merged into it."""
    below = opened.scopes.stack(there.scope)[1:] if there.scope else []
    if not below:
        return None
    if isinstance(seen, MemoryRecord) and seen.scope != there.scope:
        return seen if seen.scope in below else None
    if isinstance(seen, str):
        shown = shown_to_reader(there, below, key)
        return None if shown is None or shown.scope == there.scope else shown
    with opened.replica.reading():
        if isinstance(seen, Conflict) or there.entry(check_key(key)):
            return None
    return first_own(there.in_scope(one).read(key) for one in below)


def _from_below(
    record: MemoryRecord, there: MemoryStore, data: bytes | Make, seen: Seen | None, if_match: str | None
) -> bytes:
    """Return the whole text of a write to a scope whose reader sees `record`, of a merged scope. Raises ChangedError if another text was seen,
    UsageError for parts of others' text."""
    matches = (
        record.seen.startswith(seen.lower())
        if isinstance(seen, str)
        else seen in (None, record, record.token)
    )
    if if_match is not None:
        matches = matches and bool(if_match) and record.sha256.startswith(if_match.lower())
    if not matches:
        raise ChangedError(
            f"{record.key} changed since it was read: it shows {place_of(record.scope, record.key)}"
        )
    if isinstance(data, bytes):
        return data
    if not record.own:
        raise UsageError(
            f"{place_of(record.scope, record.key)} is pending, so its parts cannot be written to the scope {there.scope}",
            hint=f"Approve it first: ipfsmem approve {record.key} --scope {record.scope}",
        )
    return data(there, record.data)


def _hides_nothing(there: MemoryStore, key: str) -> str:
    """Return the `if_match` of a write to a scope whose reader sees a merged scope's text: nothing, or a text of others."""
    with there.replica.reading():
        view = there.view(check_key(key))
    return "" if view.own or view.data is None else sha256(view.data).hexdigest()
