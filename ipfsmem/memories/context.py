"""What a model is given at the start of a session or before a prompt: the index of the own memories, and with a query the
texts that match it, in their fences and within a bound.

Only own texts stand in it, others' not even by name (format section 5.2). The same memory gives the same text. A token is
taken to be three bytes of UTF-8, which is more tokens than usual models count in prose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ipfsmem.bundle.fence import NOTICE, QUOTE, fence_memory, tagged
from ipfsmem.bundle.index import SECTIONS
from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.errors import UsageError
from ipfsmem.memories.memories import Memories
from ipfsmem.memories.recall import Hit, recall
from ipfsmem.memories.writers import Writers
from ipfsmem.wording import count

#: `index`: the index, and with a query the matches before it. `turn`: only the matches.
Layout = Literal["index", "turn"]
LAYOUTS: tuple[Layout, ...] = ("index", "turn")
#: Bytes that are counted as one token.
TOKEN_BYTES = 3
DEFAULT_TOKENS = 2_000
LEAST_TOKENS = 200
MOST_TOKENS = 200_000
#: Matches that are looked at, and bytes of one that are shown.
_HITS = 20
_LONGEST = 6_000
#: A text of which less would be left is not shown.
_SHORTEST = 1_200


class ContextBlock(msgspec.Struct, frozen=True):
    """The block, and what is in it. Empty text: there is nothing to give."""

    text: str
    #: Keys of the memories that stand in it with their texts, as `scope/key` outside of the nameless scope.
    shown: tuple[str, ...]
    #: How many memories the index names, and how many it had no room for.
    listed: int
    left_out: int

    @property
    def tokens(self) -> int:
        """How many tokens it is counted as."""
        return -(-len(self.text.encode()) // TOKEN_BYTES)

    def __str__(self) -> str:
        return self.text


def context(
    parts: Sequence[Memories],
    *,
    query: str | None = None,
    max_tokens: int = DEFAULT_TOKENS,
    layout: Layout = "index",
) -> ContextBlock:
    """The block for some scopes, the first before the next. Never more than `max_tokens`. Raises UsageError."""
    if layout not in LAYOUTS:
        raise UsageError(f"{layout!r} is no layout", hint=f"It is one of {', '.join(LAYOUTS)}.")
    if layout == "turn" and query is None:
        raise UsageError("the layout turn shows what matches a query, so it needs one")
    if not LEAST_TOKENS <= max_tokens <= MOST_TOKENS:
        raise UsageError(f"max_tokens is {LEAST_TOKENS} to {MOST_TOKENS:,}, not {max_tokens}")
    room = max_tokens * TOKEN_BYTES - len(NOTICE.encode()) - 2
    texts: list[str] = []
    shown: list[str] = []
    if query is not None and query.strip():
        writers = Writers(parts[0].replica)
        share = room if layout == "turn" else room * 3 // 4
        for hit in recall(parts, query, limit=_HITS).hits:
            if not hit.reading.own:
                continue
            fenced = _fenced(hit, writers, share)
            if fenced is None:
                continue
            share -= len(fenced.encode()) + 1
            room -= len(fenced.encode()) + 1
            texts.append(fenced)
            shown.append(f"{hit.reading.scope}/{hit.reading.key}".removeprefix("/"))
    listed = left_out = 0
    if layout == "index":
        index, listed, left_out = _index(parts, room)
        if index:
            texts.append(index)
    if not texts:
        return ContextBlock("", (), 0, left_out)
    return ContextBlock(f"{NOTICE}\n\n" + "\n".join(texts), tuple(shown), listed, left_out)


def _fenced(hit: Hit, writers: Writers, room: int) -> str | None:
    """One match in its fence; a long text is cut and says so. None when there is no room."""
    file = hit.reading.file
    data = file.body.encode()
    most = min(_LONGEST, room)
    if len(data) > most:
        if most < _SHORTEST:
            return None
        cut = data[: most - 600].decode("utf-8", "ignore")
        file = MemoryFile(file.fields, f"{cut}\n(cut here: {len(data):,} bytes in all)")
    fenced = fence_memory(writers.quoted(hit.reading, file=file))
    return fenced if len(fenced.encode()) + 1 <= room else None


def _index(parts: Sequence[Memories], room: int) -> tuple[str, int, int]:
    """The index of some scopes in at most `room` bytes, how many memories it names, and how many it leaves out."""
    order = {title: number for number, (_, title) in enumerate(SECTIONS)}
    met: set[str] = set()
    found: list[tuple[str, list[tuple[str, str, str]]]] = []
    for part in parts:
        lines = [line for line in part.index_lines()[0] if line[0] not in met]
        met.update(key for key, _, _ in lines)
        lines.sort(key=lambda line: (order[line[1]], line[0]))
        found.append((part.scope, lines))
    total, listed = len(met), 0
    room -= len(_left_out(total).encode())
    blocks = []
    for scope, lines in found:
        tagged_bytes = len(tagged("memory-index", {"scope": scope}, "").encode()) + 1
        kept, section, rest = list[str](), "", room - tagged_bytes
        for _, title, line in lines:
            heading = "" if title == section else f"## {title}\n"
            cost = len((QUOTE + line).encode()) + (len(QUOTE) + len(heading) if heading else 0)
            if cost > rest:
                break
            rest -= cost
            kept += [heading, line] if heading else [line]
            section, listed = title, listed + 1
        if kept:
            blocks.append(tagged("memory-index", {"scope": scope}, "".join(kept)))
            room = rest
    if listed < total and room >= 0:
        blocks.append(_left_out(total - listed))
    return "\n".join(blocks), listed, total - listed


def _left_out(number: int) -> str:
    return (
        f"({count(number, 'more memory', 'more memories')} not listed here: look for them by their words.)\n"
    )
