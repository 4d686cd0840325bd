"""Section 5 of docs/FORMAT.md: the three-way merge and the view of one key; 5.2: the author of a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.support.plain.texts import (
    KNOWN,
    File,
    NotJudged,
    Refused,
    read_file,
    read_tags,
    render_file,
    write_tags,
)

Value = dict[str, Any]
Entry = Mapping[str, Value]


# -- three-way merge -------------------------------------------------------------------------------------------------------


def _matches(base: list[str], side: list[str]) -> dict[int, int]:
    """Return the place in `side` of each base line that the longest common subsequence matches."""
    n, m = len(base), len(side)
    table = [[0] * (m + 1) for _ in range(n + 1)]
    for i in reversed(range(n)):
        for j in reversed(range(m)):
            same = base[i] == side[j]
            table[i][j] = table[i + 1][j + 1] + 1 if same else max(table[i + 1][j], table[i][j + 1])
    found, i, j = {}, 0, 0
    while i < n and j < m:
        if base[i] == side[j]:
            found[i] = j
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def merge_lines(base: list[str], a: list[str], b: list[str]) -> list[str] | None:
    """Return diff3 of lines; None if not clean."""
    if a == b or b == base:
        return a
    if a == base:
        return b
    if len(base) * max(len(a), len(b)) > 4_000_000:
        return None
    in_a, in_b = _matches(base, a), _matches(base, b)
    both = [i for i in range(len(base)) if i in in_a and i in in_b]
    merged: list[str] = []
    at, at_a, at_b = 0, 0, 0
    for i, j, k in [*((i, in_a[i], in_b[i]) for i in both), (len(base), len(a), len(b))]:
        was, mine, theirs = base[at:i], a[at_a:j], b[at_b:k]
        if mine == was:
            merged += theirs
        elif theirs in (was, mine):
            merged += mine
        else:
            return None
        if i < len(base):
            merged.append(base[i])
        at, at_a, at_b = i + 1, j + 1, k + 1
    return merged


def merge_fields(
    base: Mapping[str, str], a: Mapping[str, str], b: Mapping[str, str]
) -> dict[str, str] | None:
    """Return headers merged by field; None if not clean."""
    order = [*KNOWN, *(name for name in [*a, *b] if name not in KNOWN)]
    merged: dict[str, str] = {}
    for name in dict.fromkeys(order):
        was, mine, theirs = base.get(name), a.get(name), b.get(name)
        if mine in (was, theirs):
            value = theirs
        elif theirs == was:
            value = mine
        elif mine is None or theirs is None:
            return None
        elif name in ("updated", "created"):
            value = (max if name == "updated" else min)(mine, theirs)
        elif name == "tags":
            value = write_tags(sorted({*read_tags(mine), *read_tags(theirs)}))
        else:
            return None
        if value is not None:
            merged[name] = value
    return merged


def _is_normal(data: bytes, file: File) -> bool:
    """Return whether a file has no header, or one in normal form."""
    if not file.fields:
        return not data.startswith((b"---", b"\xef\xbb\xbf"))
    rendered = render_file(File(file.fields, "")).encode()
    return data.startswith(rendered) and (
        len(data) == len(rendered) or data[len(rendered) :].startswith(b"\n")
    )


def merge3(base: bytes, a: bytes, b: bytes) -> bytes | None:
    """Return two merged edits of one file; None if not clean."""
    try:
        files = [read_file(data) for data in (base, a, b)]
    except Refused:
        return None
    if not all(map(_is_normal, (base, a, b), files)):
        raise NotJudged("edits in place")
    fields = merge_fields(*(file.fields for file in files))
    lines = merge_lines(*([*file.body.split("\n")] if file.body else [] for file in files))
    if fields is None or lines is None:
        return None
    try:
        return render_file(File(fields, "\n".join(lines))).encode()
    except Refused:
        return None


# -- view ------------------------------------------------------------------------------------------------------------------


def split_dot(dot: str) -> tuple[str, int]:
    dev, n = dot.split("-")
    return dev, int(n)


class View(NamedTuple):
    data: bytes | None
    merged: bool
    forgotten: bool
    conflicts: list[str]  # bodies, the greatest first
    hidden: list[str]
    not_fetched: list[str]  # dots


def _rank(dot: str, value: Value) -> tuple[str, str, int]:
    return (value["h"], *split_dot(dot))


def view(entry: Entry, body_of: Callable[[str], bytes | None]) -> View:
    """Return what is shown of an entry; `body_of` returns the bytes of a body by its hash."""
    by_body: dict[str | None, list[str]] = {}
    for dot in sorted(entry, key=lambda dot: _rank(dot, entry[dot]), reverse=True):
        by_body.setdefault(entry[dot]["body"], []).append(dot)
    forgotten = None in by_body
    live = {body: dots for body, dots in by_body.items() if body is not None}
    # View order: descending (HLC, device, body).
    order = sorted(
        live, key=lambda body: (entry[live[body][0]]["h"], split_dot(live[body][0])[0], body), reverse=True
    )
    missing = [dot for body in order if body_of(body) is None for dot in live[body]]
    if forgotten:
        return View(None, False, True, [], order, [])
    if not order:
        return View(None, False, False, [], [], missing)
    if len(order) > 1 and (merged := _folded(entry, live, order, body_of)) is not None:
        return View(merged, True, False, [], [], missing)
    return View(body_of(order[0]), False, False, order[1:], [], missing)


def _folded(
    entry: Entry, live: Mapping[str, list[str]], order: list[str], body_of: Callable[[str], bytes | None]
) -> bytes | None:
    lists = {
        body: list(dict.fromkeys([body[:32], *(one for dot in live[body] for one in entry[dot]["b"])]))
        for body in order
    }
    # Possible bases: a sibling, or the first `b` of one of its values.
    places = {one: one for dots in live.values() for dot in dots for one in entry[dot]["b"][:1]}
    places |= {body[:32]: body for body in order}
    base = next(
        (one for one in lists[order[0]] if one in places and all(one in known for known in lists.values())),
        None,
    )
    texts = [body_of(body) for body in reversed(order)]
    start = None if base is None else body_of(places[base])
    if start is None or None in texts:
        return None
    merged = texts[0]
    for text in texts[1:]:
        assert merged is not None and text is not None
        merged = merge3(start, merged, text)
        if merged is None:
            return None
    return merged


def copies(key: str, bodies: list[str]) -> list[tuple[str | None, str]]:
    """Return the files of conflict copies: of two with one name only the greater sibling's; the other is
    only listed."""
    found: list[tuple[str | None, str]] = []
    taken: set[str] = set()
    for body in bodies:
        name = f"{key}.conflict-{body[:8]}.md"
        found.append((None if name in taken else name, body))
        taken.add(name)
    return found


class OwnView(NamedTuple):
    view: View
    others: list[str]
    unheeded: int


def own_view(
    entry: Entry, is_own: Callable[[str, str | None], bool], body_of: Callable[[str], bytes | None]
) -> OwnView:
    """Return what the reader's own values show, the texts of others, and the number of others' forgets
    that are ignored."""
    own = {dot: value for dot, value in entry.items() if is_own(dot, value.get("of"))}
    rest = {dot: value for dot, value in entry.items() if dot not in own}
    mine = {value["body"] for value in own.values()}
    ranked = sorted(
        {value["body"] for value in rest.values() if value["body"] is not None} - mine,
        key=lambda body: max(
            (value["h"], split_dot(dot)[0], body) for dot, value in rest.items() if value["body"] == body
        ),
        reverse=True,
    )
    return OwnView(view(own, body_of), ranked, sum(value["body"] is None for value in rest.values()))
