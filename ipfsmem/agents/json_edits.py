"""Edits of JSON: add one entry to a text, and remove exactly that; all other characters stay unchanged.

The text may have comments and trailing commas. An addition follows the layout of the text: indentation, line ends, one line if
all is on one line. Each edit is compared as values before and after: an edit that changes anything but the entry is refused.
Pure functions; `config_files.py` reads and writes the files.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

from ipfsmem.agents.json_text import JsonNode, Part, comments, read, value_of
from ipfsmem.errors import FormatError

#: The path step that appends an item to an array.
APPEND: Final = "[]"


class Added(msgspec.Struct, frozen=True, kw_only=True):
    """An added entry: enough to find it again in a text that has changed since, and to remove it."""

    #: Names from the root; `APPEND` for an item of an array.
    path: tuple[str, ...]
    value: Any
    #: Number of path steps that existed before; the others were created with the entry.
    there: int
    #: The text written before and after it, without a comma.
    lead: str
    tail: str
    #: True if its container was empty.
    first: bool = False
    #: Number of path steps to a `null` that the container replaced; -1 without one.
    null: int = -1


def find(text: str, path: tuple[str, ...]) -> Any:
    """Return the value at a path of names; `msgspec.UNSET` if it is missing. Raises FormatError for invalid JSON, and for a
    duplicate name or a value other than an object on the path."""
    node = read(text)
    for place, step in enumerate(path):
        if node is None or is_null(node):
            return msgspec.UNSET
        _expect(node, step, path[:place])
        part = _member(node, step)
        node = None if part is None else part.value
    return msgspec.UNSET if node is None else value_of(node)


def add(text: str, path: tuple[str, ...], value: Any) -> tuple[str, Added]:
    """Return the text with `value` at `path`, whose last step must not exist yet. A `null` on the path is treated as a missing
    container. Raises FormatError."""
    root = read(text)
    if root is None:
        return _add_root(text, path, value)
    place_of_null = _null_on(root, path)
    if place_of_null is not None:
        depth, null = place_of_null
        empty = "[]" if path[depth] == APPEND else "{}"
        edited, added = add(text[: null.start] + empty + text[null.end :], path, value)
        return edited, msgspec.structs.replace(added, null=depth)
    node = root
    for place, step in enumerate(path):
        _expect(node, step, path[:place])
        part = None if step == APPEND else _member(node, step)
        if part is not None:
            node = part.value
            continue
        new = _nested(path[place + 1 :], value)
        lead, tail, edited = _insert(text, root, node, step, new)
        added = Added(path=path, value=value, there=place, lead=lead, tail=tail, first=not node.parts)
        expected = value_of(root)
        _put(expected, path[: place + 1], new)
        _compare(edited, expected)
        return edited, added
    raise FormatError(f"{'.'.join(path)} exists already")


def remove(text: str, added: Added) -> str:
    """Return the text without that entry, whatever else changed since; the same text if the entry is gone.

    Containers that were created for it are removed if they become empty, and a `null` that one replaced is restored. Raises
    FormatError.
    """
    root = read(text)
    if root is None:
        return text
    path_nodes = _way(root, added)
    if path_nodes is None:
        return text
    edited = _without(text, root, added, path_nodes)
    node = _at(edited, added.path[: added.null]) if added.null >= 0 else None
    if node is None or node.parts or any(comments(edited, node.start + 1, node.end - 1)):
        return edited
    return edited[: node.start] + "null" + edited[node.end :]


def is_null(node: JsonNode) -> bool:
    """Tell whether a value is `null`."""
    return not node.kind and node.plain is None


def _null_on(root: JsonNode, path: tuple[str, ...]) -> tuple[int, JsonNode] | None:
    """Return the first `null` on a path before its last step, and the number of steps to it."""
    node = root
    for place, step in enumerate(path):
        if is_null(node):
            return place, node
        part = _member(node, step) if node.kind == "{" else None
        if part is None:
            break
        node = part.value
    return None


def _at(text: str, path: tuple[str, ...]) -> JsonNode | None:
    """Return the container at a path of names, None if it is missing."""
    node = read(text)
    for step in path:
        part = _member(node, step) if node is not None and node.kind == "{" else None
        node = None if part is None else part.value
    return node if node is not None and node.kind else None


def _without(text: str, root: JsonNode, added: Added, path_nodes: list[tuple[JsonNode, int]]) -> str:
    """Return the text without the entry at a path."""
    depth = _stays(text, path_nodes, added.there)
    if depth < 0:
        return _without_root(text, root, added)
    node, at = path_nodes[depth]
    if depth != added.there:
        return _take_out(text, root, path_nodes[: depth + 1], None, "")
    lead, tail = (_with_ends_of(text, one) for one in (added.lead, added.tail))
    if added.first and len(node.parts) > 1:
        tail = ""  # others' entries follow the line end that we wrote
    elif added.first and (
        _holds_only_this(text, path_nodes[depth]) and text[node.start + 1 : node.parts[at].start] != lead
    ):  # the layout changed since: none of the space is ours
        return text[: node.start + 1] + text[node.end - 1 :]
    return _take_out(text, root, path_nodes[: depth + 1], lead, tail)


def remove_at(text: str, way: tuple[str | int, ...], there: int) -> str:
    """Return the text without the member or item at a path of names and positions, and without containers after step `there`
    that become empty. Raises FormatError."""
    root = read(text)
    node, path_nodes = root, []
    for step in way:
        assert node is not None
        at = step if isinstance(step, int) else [part.key for part in node.parts].index(step)
        path_nodes.append((node, at))
        node = node.parts[at].value
    assert root is not None
    return _take_out(text, root, path_nodes[: _stays(text, path_nodes, there) + 1], None, "")


def _stays(text: str, way: list[tuple[JsonNode, int]], there: int) -> int:
    """Return the last path step whose container stays: later containers hold nothing else."""
    depth = len(way) - 1
    while depth > there and _holds_only_this(text, way[depth]):
        depth -= 1
    return depth


def _take_out(
    text: str, root: JsonNode, way: list[tuple[JsonNode, int]], written: str | None, tail: str
) -> str:
    """Return the text without the last part of a path. `written`, `tail`: text that our edit wrote before and after it."""
    node, at = way[-1]
    expected = value_of(root)
    _drop(expected, way)
    for lead in (_lead(text, node, at, written), 0):
        edited = _cut(text, node, at, lead, tail)
        try:
            _compare(edited, expected)
        except FormatError:
            continue  # a comment without a line end would include the text after it
        return edited
    raise FormatError(f"{node.parts[at].key or 'an item'} cannot be removed without changing something else")


# -- finding --------------------------------------------------------------------------------------------------------------


def _expect(node: JsonNode, step: str, so_far: tuple[str, ...]) -> None:
    kind = "[" if step == APPEND else "{"
    if node.kind != kind:
        what = "an array" if step == APPEND else "an object"
        raise FormatError(f"{'.'.join(so_far) or 'the value there'} is not {what}")


def _member(node: JsonNode, key: str) -> Part | None:
    members = [part for part in node.parts if part.key == key]
    if len(members) > 1:
        raise FormatError(f"{key!r} is there twice")
    return members[0] if members else None


def _way(root: JsonNode, added: Added) -> list[tuple[JsonNode, int]] | None:
    """Return the containers on the path to the entry, each with the position in it; None if the entry is gone."""
    way: list[tuple[JsonNode, int]] = []
    node = root
    for step in added.path:
        if node.kind != ("[" if step == APPEND else "{"):
            return None
        if step == APPEND:
            places = [at for at, part in enumerate(node.parts) if value_of(part.value) == added.value]
        else:
            places = [at for at, part in enumerate(node.parts) if part.key == step]
        if not places:
            return None
        way.append((node, places[-1]))
        node = node.parts[places[-1]].value
    return way


def _holds_only_this(text: str, place: tuple[JsonNode, int]) -> bool:
    node, at = place
    part = node.parts[at]
    if len(node.parts) > 1:
        return False
    around = [*comments(text, node.start + 1, part.start), *comments(text, part.value.end, node.end - 1)]
    return not around


# -- writing --------------------------------------------------------------------------------------------------------------


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for step in reversed(path):
        value = [value] if step == APPEND else {step: value}
    return value


def _put(target: Any, path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        target = target[step]
    if path[-1] == APPEND:
        target.append(value)
    else:
        target[path[-1]] = value


def _drop(target: Any, way: list[tuple[JsonNode, int]]) -> None:
    for place, (node, at) in enumerate(way):
        step = node.parts[at].key if node.kind == "{" else at
        if place == len(way) - 1:
            del target[step]
        else:
            target = target[step]


def _compare(edited: str, expected: Any) -> None:
    """Raise FormatError unless the text has the expected value, order included."""
    node = read(edited)
    if node is None or json.dumps(value_of(node)) != json.dumps(expected):
        raise FormatError("the edit would change more than one entry")


def newline(text: str) -> str:
    """Return the line end of a text."""
    return "\r\n" if "\r\n" in text else "\n"


def _indent_at(text: str, at: int) -> str:
    """Return the indentation of the line at a position."""
    begin = text.rfind("\n", 0, at) + 1
    match = re.compile(r"[ \t]*").match(text, begin)
    assert match is not None
    return match[0][: at - begin]


def _unit(text: str, root: JsonNode) -> str:
    """Return one level of indentation."""
    for part in root.parts:
        indent = _indent_at(text, part.start)
        if indent and text.rfind("\n", 0, part.start) > root.start:
            return indent
    return "  "


def _spread(text: str, root: JsonNode, node: JsonNode) -> bool:
    """Tell whether the parts of a container are on lines of their own."""
    if not node.parts:
        return node is root or "\n" in text[root.start : root.end] or "\n" in text[node.start : node.end]
    begin = node.start + 1
    for part in node.parts:
        if "\n" in text[begin : part.start]:
            return True
        begin = part.value.end
    return "\n" in text[begin : node.end]


def _insert(text: str, root: JsonNode, node: JsonNode, step: str, value: Any) -> tuple[str, str, str]:
    """Insert a last part into a container. Return the text written before it, after it, and the whole text."""
    last = node.parts[-1] if node.parts else None
    close = node.end - 1
    gap = node.start + 1 if last is None else last.value.end if last.comma is None else last.comma + 1
    place = max((comment.end() for comment in comments(text, gap, close)), default=gap)
    spread = _spread(text, root, node)
    tight = '":"' in text and '": ' not in text
    end = newline(text)
    unit, outer = _unit(text, root), _indent_at(text, node.start)
    indent = outer + unit
    if last is not None and not text[text.rfind("\n", 0, last.start) + 1 : last.start].strip():
        indent = _indent_at(text, last.start)
    if spread:
        shown = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", end + indent)
        lead = end + indent
    else:
        shown = json.dumps(value, ensure_ascii=False, separators=(",", ":") if tight else None)
        lead = "" if last is None or tight else " "
    if step != APPEND:
        shown = json.dumps(step, ensure_ascii=False) + (":" if tight and not spread else ": ") + shown
    tail = "," if last is not None and last.comma is not None else ""
    if spread and "\n" not in text[place:close]:
        tail += end + outer
    edited = text[:place] + lead + shown + tail + text[place:]
    if last is not None and last.comma is None:
        edited = edited[: last.value.end] + "," + edited[last.value.end :]
    return lead, tail, edited


def _with_ends_of(text: str, written: str) -> str:
    """Convert written text to the current line ends of the text."""
    return written.replace("\r\n", "\n").replace("\n", newline(text))


def _lead(text: str, node: JsonNode, at: int, written: str | None) -> int:
    """Return the number of characters before a part that are removed with it: those written there; after a change of layout,
    the space back to the line start or the comma."""
    start = node.parts[at].start
    begin = start
    while text[begin - 1] in " \t":
        begin -= 1
    own_line = text[begin - 1] == "\n"
    if written is not None and text.endswith(written, 0, start) and ("\n" in written or not own_line):
        return len(written)
    if own_line:
        return start - begin + (2 if text.endswith("\r\n", 0, begin) else 1)
    return start - begin if text[begin - 1] == "," else 0


def _cut(text: str, node: JsonNode, at: int, lead: int, tail: str) -> str:
    """Return the text without one part and one comma."""
    part = node.parts[at]
    cuts = [(part.start - lead, part.value.end)]
    end = part.value.end
    if part.comma is not None:
        end = part.comma + 1
        if not at and not lead:  # on one line with the next part
            while text[end] in " \t":
                end += 1
        cuts.append((part.comma, end))
    elif at > 0 and (before := node.parts[at - 1].comma) is not None:
        cuts.insert(0, (before, before + 1))
    space = tail.removeprefix(",")
    if at == len(node.parts) - 1 and space and text.startswith(space, end):
        cuts.append((end, end + len(space)))
    for begin, stop in reversed(cuts):
        text = text[:begin] + text[stop:]
    return text


def _add_root(text: str, path: tuple[str, ...], value: Any) -> tuple[str, Added]:
    """Write the first value of an empty text, or one with only comments."""
    end = newline(text)
    lead = end if text and not text.endswith("\n") and text.strip("\ufeff") else ""
    whole = json.dumps(_nested(path, value), indent="  ", ensure_ascii=False).replace("\n", end)
    return text + lead + whole + end, Added(path=path, value=value, there=-1, lead=lead, tail=end)


def _without_root(text: str, root: JsonNode, added: Added) -> str:
    start, end = root.start, root.end
    lead, tail = _with_ends_of(text, added.lead), _with_ends_of(text, added.tail)
    if text.endswith(lead, 0, start):
        start -= len(lead)
    if text.startswith(tail, end):
        end += len(tail)
    return text[:start] + text[end:]
