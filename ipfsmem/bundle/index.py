"""Generate the index file MEMORY.md from the memories (format section 1.3). The index is never read back.

`render_index` renders the whole index, `cap_index` truncates a copy for a prompt. The caller ranks memories by
relevance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

import msgspec

from ipfsmem.bundle.keys import check_key, split_conflict_name
from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.bundle.session_parts import is_part
from ipfsmem.errors import FormatError
from ipfsmem.invisible_characters import CONTROLS_AND_BREAKS, INVISIBLE
from ipfsmem.lazy_pattern import lazy_pattern

SECTIONS = (("user", "User"), ("feedback", "Feedback"), ("project", "Project"), ("reference", "Reference"))
ATTENTION = "Needs attention"
#: Limits of an index in a prompt.
MAX_LINES = 200
MAX_BYTES = 25 * 1024
TITLE = "# Agent Memory"
_TITLES = dict(SECTIONS)

# Like brackets, a code span or HTML tag in a name would take precedence over the link around it.
_MARK = lazy_pattern(r"[\\\[\]()`<]")
_LINE = lazy_pattern(r"- \[(?:[^\\\]]|\\.)*\]\(([^)]*)\)")


class IndexItem(msgspec.Struct, frozen=True):
    """One line of the index. `file`: the name of a conflict copy; None for `<key>.md`. `session`: the header field."""

    key: str
    name: str = ""
    description: str = ""
    type: str = ""
    file: str | None = None
    session: str = ""


def item_of(key: str, file: MemoryFile, copy: str | None = None) -> IndexItem:
    """Return the index item of a memory; `copy`: the file name if it is a conflict copy."""
    return IndexItem(key, file.name, file.description, file.type, copy, file.session)


def render_index(items: Iterable[IndexItem], attention: Iterable[IndexItem] = ()) -> str:
    """Render the whole index. `attention`: conflict copies, listed last under "Needs attention".

    Memories with a missing or unknown type are listed under Project. Raises KeyNameError or FormatError for invalid
    names.
    """
    return assemble_index(((item.key, *index_line(item)) for item in items), attention)


def index_line(item: IndexItem) -> tuple[str, str]:
    """Return the section and line of an item. The section is "" for a session part, which is not indexed.

    Raises KeyNameError or FormatError.
    """
    return "" if is_part(item.key, item) else _TITLES.get(item.type, "Project"), _line(item)


def assemble_index(lines: Iterable[tuple[str, str, str]], attention: Iterable[IndexItem] = ()) -> str:
    """Render the whole index from known lines: (key, section, line) each."""
    sections: dict[str, list[str]] = {title: [] for _, title in SECTIONS}
    for _, section, line in sorted(lines, key=itemgetter(0)):
        if section:
            sections[section].append(line)
    conflicts = sorted((i for i in attention if not is_part(i.key, i)), key=lambda i: (i.key, i.file or ""))
    sections[ATTENTION] = [_line(item) for item in conflicts]
    parts = [f"\n## {title}\n{''.join(lines)}" for title, lines in sections.items() if lines]
    return f"{TITLE}\n{''.join(parts)}"


def _line(item: IndexItem) -> str:
    if item.file is None:
        file = check_key(item.key) + ".md"
    else:
        split = split_conflict_name(item.file)
        if split is None or split.key != item.key:
            raise FormatError(f"not the name of a conflict copy of {item.key!a}: {item.file[:120]!a}")
        file = item.file
    name = _text(item.name) or item.key
    description = _text(item.description)
    return f"- [{name}]({file}) — {description}\n" if description else f"- [{name}]({file})\n"


def _text(text: str) -> str:
    """Return a text as one line with Markdown syntax escaped."""
    if not text.isascii():
        text = INVISIBLE.sub("", text)
    if not text.isprintable():
        text = CONTROLS_AND_BREAKS.sub(" ", text)
    return _MARK.sub(r"\\\g<0>", text.strip(" "))


def cap_index(
    text: str,
    relevance: Sequence[str] | None = None,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
) -> str:
    """Truncate an index at whole lines to fit a prompt. A last line states the number of omitted memories.

    `relevance`: keys, most relevant first. Lines are dropped in this order: keys that are not in `relevance`, from
    the end of the text; the least relevant keys; conflicts. Empty sections are dropped too.
    """
    if text.count("\n") <= max_lines and len(text.encode()) <= max_bytes:
        return text
    title, sections = _sections(text)
    rank = {key: n for n, key in reversed(list(enumerate(relevance or ())))}
    lines: list[tuple[int, int, int, str]] = []  # rank, position, section, line
    for number, (heading, members) in enumerate(sections):
        for line in members:
            place = -1 if heading == f"## {ATTENTION}" else rank.get(_key(line), len(rank))
            lines.append((place, len(lines), number, line))
    notice = "\n({} more not shown)\n"
    room_lines = max_lines - 3  # the title, an empty line, the notice
    room_bytes = max_bytes - len(title.encode()) - 1 - len(notice.format(len(lines)).encode())
    lines_of: dict[int, list[tuple[int, str]]] = {}
    shown = 0
    for _, position, number, line in sorted(lines):
        cost_lines, cost_bytes = 1, len(line.encode()) + 1
        if number not in lines_of:
            cost_lines, cost_bytes = cost_lines + 2, cost_bytes + 2 + len(sections[number][0].encode())
        if cost_lines > room_lines or cost_bytes > room_bytes:
            break
        room_lines, room_bytes, shown = room_lines - cost_lines, room_bytes - cost_bytes, shown + 1
        lines_of.setdefault(number, []).append((position, line))
    parts = [f"{title}\n"]
    for number in sorted(lines_of):
        parts.append(f"\n{sections[number][0]}\n")
        parts.extend(f"{line}\n" for _, line in sorted(lines_of[number]))
    return "".join(parts) + notice.format(len(lines) - shown)


def _sections(text: str) -> tuple[str, list[tuple[str, list[str]]]]:
    title, *rest = text.split("\n")
    sections: list[tuple[str, list[str]]] = []
    for line in rest:
        if line.startswith("## "):
            sections.append((line, []))
        elif line and sections:
            sections[-1][1].append(line)
    return title, sections


def _key(line: str) -> str:
    match = _LINE.match(line)
    return match[1].removesuffix(".md") if match else ""
