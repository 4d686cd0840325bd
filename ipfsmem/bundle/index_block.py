"""Split and join a MEMORY.md shared with other programs: their text, and ipfsmem's lines in a marked block.

`split_index_file` is the inverse of `join_index_file`. Lines in the block that ipfsmem did not write belong to the
other programs. See format section 1.3. Pure functions on bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256
from urllib.parse import quote, unquote

import msgspec

from ipfsmem.bundle.index import SECTIONS, IndexItem, index_line
from ipfsmem.bundle.keys import INDEX_FILE, key_of_foreign_name
from ipfsmem.lazy_pattern import lazy_pattern

#: The key of the memory that stores other programs' lines of MEMORY.md.
INDEX_KEY = key_of_foreign_name(INDEX_FILE).key

_START = b"<!-- ipfsmem index %b%b: made anew at each change; write above or below -->\n"
_END = b"<!-- ipfsmem index end -->\n"
_START_FORM = lazy_pattern(rb"<!-- ipfsmem index ([0-9a-f]{8})(\+?): [^\n]*-->")
_ATTENTION = b"Needs attention:"
_LINK = lazy_pattern(r"\]\(\s*<([^<>\n]*)>|\]\(([^()\n]*)\)|\[\[([^\[\]\n|#]*)")
_OURS = lazy_pattern(rb"- \[(?:[^\\\]]|\\.)*\]\(([^)]*)\)")
#: A list item that links to a memory, as programs write it into a MEMORY.md.
_LISTED = lazy_pattern(
    r"\s*[-*+]\s+(?:\[[^\n]*?\]\(\s*+<?((?>[^()<>\n]+\.md))>?[^()\n]*\)|\[\[([^\[\]\n|#]+))"
)
_WORD = lazy_pattern(r"[^\s()<>\[\]\"'`|,;]+")


class IndexFile(msgspec.Struct, frozen=True):
    """A parsed MEMORY.md: other programs' text, and the offset of the block in that text (-1: no block)."""

    text: bytes
    at: int


def split_index_file(data: bytes, own_lines: Collection[bytes] = ()) -> IndexFile:
    """Parse a MEMORY.md. `own_lines`: the lines last written into its block, to detect lines that were changed."""
    lines = _by_lf(data)
    text: list[bytes] = []
    at, n = -1, 0
    while n < len(lines):
        start = _START_FORM.fullmatch(lines[n].strip())
        if start is None:
            text.append(lines[n])
            n += 1
            continue
        end = next((i for i in range(n + 1, len(lines)) if lines[i].strip() == _END.strip()), None)
        if end is None:
            end = n + 1
            while end < len(lines) and lines[end].strip(b"\r\n") in own_lines:
                end += 1
            inner, rest = lines[n + 1 : end], lines[end:]
        else:
            inner, rest = lines[n + 1 : end], lines[end + 1 :]
        whole = _tag(line.strip(b"\r\n") for line in inner) == start[1]
        theirs = [] if whole else [line for line in inner if line.strip(b"\r\n") not in own_lines]
        if start[2] and text and not theirs and not rest:
            text[-1] = text[-1].removesuffix(b"\r\n" if lines[n].endswith(b"\r\n") else b"\n")
        if at < 0:
            at = sum(map(len, text))
        text += theirs
        n = len(lines) - len(rest)
    return IndexFile(b"".join(text), at)


def join_index_file(text: bytes, lines: Iterable[bytes], before: IndexFile | None = None) -> bytes:
    """Return other programs' text with `lines` in a marked block: at its end, or where the block is in the file
    `before`."""
    ours = list(lines)
    if not ours:
        return text
    at = len(text)
    if before is not None and before.at >= 0:
        above, below = before.text[: before.at], before.text[before.at :]
        if below and text.startswith(above):
            at = len(above)
        elif below and text.endswith(below):
            at = len(text) - len(below)
    if at and text[at - 1 : at] != b"\n":
        at = len(text)
    added = b"+" if at and text[at - 1 : at] != b"\n" else b""
    block = _START % (_tag(ours), added) + b"".join(line + b"\n" for line in ours) + _END
    return text[:at] + (b"\n" if added else b"") + block + text[at:]


def block_lines(
    lines: Iterable[tuple[str, str, str]],
    attention: Iterable[IndexItem],
    files: Mapping[str, str],
    text: bytes,
    kept: Mapping[str, bytes] | None = None,
) -> list[bytes]:
    """Return the lines of the block: one for each memory that other programs' `text` does not name, by section and
    key.

    `lines`: (key, section, line) of each memory. `attention`: conflict copies. `files`: file names of the keys whose
    file is not `<key>.md`. `kept`: lines by file that stay as they are for now; empty for a file without a line.
    """
    files_named = named_files(text)
    order = {title: number for number, (_, title) in enumerate(SECTIONS)}
    ours = []
    for key, _, line in sorted(lines, key=lambda one: (order[one[1]], one[0])):
        file = files.get(key, f"{key}.md")
        if key != INDEX_KEY and kept and file in kept:
            ours += [kept[file]] if kept[file] else []
            continue
        if key == INDEX_KEY or file in files_named:
            continue
        if key in files:
            line = line.replace(f"]({key}.md)", f"]({quote(file)})", 1)
        ours.append(line.rstrip("\n").encode())
    copies = sorted(
        (item for item in attention if item.file not in files_named),
        key=lambda item: (item.key, item.file or ""),
    )
    if copies:
        ours.append(_ATTENTION)
        ours += [index_line(item)[1].rstrip("\n").encode() for item in copies]
    return ours


def kept_lines(before: Iterable[bytes], files: Iterable[str], text: bytes | None) -> dict[str, bytes]:
    """Return the lines of `before` by file, for `files` and for all files that `text` names; empty for a file without
    one."""
    lines = {
        unquote(link[1].decode("utf-8", "replace")): line
        for line in before
        if (link := _OURS.match(line)) is not None
    }
    files_named = named_files(text) & lines.keys() if text is not None else set()
    return {file: lines.get(file, b"") for file in (*files, *files_named)}


def typed_text(text: str, is_here: Callable[[str], bool]) -> str:
    """Return the text of a MEMORY.md without the list items that link to memories; "" if only headings remain.

    `is_here`: tells whether a key has a memory here; other list items are kept.
    """
    lines_typed = []
    for line in text.splitlines(keepends=True):
        match = _LISTED.match(line)
        file = None if match is None else unquote(match[1]) if match[1] else f"{match[2]}.md"
        if file is None or not is_here(key_of_foreign_name(file).key):
            lines_typed.append(line)
    has_text = any(line.strip() and not line.startswith("#") for line in lines_typed)
    return "".join(lines_typed) if has_text else ""


def named_files(text: bytes) -> set[str]:
    """Return the names of files that a text links to or mentions."""
    files: set[str] = set()
    read = text.decode("utf-8", "replace")
    names = [word.rstrip(".:!?") for word in _WORD.findall(read) if ".md" in word]
    for angle, link, wiki in _LINK.findall(read):
        # A title can follow a link's target: [a](b.md "title").
        names += [angle, link, link.split(" ")[0], wiki, f"{wiki}.md"]
    for name in names:
        for path in (name, unquote(name)):
            files.add(path.strip().partition("#")[0].removeprefix("./"))
    return files


def _tag(lines: Iterable[bytes]) -> bytes:
    return sha256(b"\n".join(lines)).hexdigest()[:8].encode()


def _by_lf(data: bytes) -> list[bytes]:
    return [line for line in re.split(rb"(?<=\n)", data) if line]
