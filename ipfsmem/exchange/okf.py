"""Convert memories to and from bundles of the Open Knowledge Format 0.2.

Mapping: `name` ↔ `title`, `expires` (if a date) ↔ `stale_after`, timeline ↔ log.md; index.md is generated, never read.
Other fields keep their names. To avoid clashes, OKF's own `name` is imported as `okf_name`, and the `title` of a memory
is exported as `ipfsmem_title`. Writing, reading and writing again produces the same bytes. Pure: names and bytes only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any

import rfc8785

from ipfsmem.bundle.header import KNOWN, parse_tags, quote, render_tags, yaml_mapping
from ipfsmem.bundle.keys import RESERVED, is_key, key_of_foreign_name
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory, split_header
from ipfsmem.bundle.timeline import Event, day_of, event_line, normal_ts
from ipfsmem.canonical import MAX_INT
from ipfsmem.errors import FormatError, IpfsmemError, LimitError
from ipfsmem.exchange.json_input import as_utf8, read_json
from ipfsmem.exchange.lenient import utf8_text
from ipfsmem.exchange.places import Files, left_out_notes
from ipfsmem.exchange.records import Happened, ImportRecord, Item, Problem

VERSION = "0.2"
#: Default type, as a concept must have one.
NO_TYPE = "memory"
#: Type of an event that is a line of somebody's log.md.
LOGGED = "okf-log"
#: OKF fields that get a prefix on import, since a memory uses these names for something else.
_RENAMED_ON_IMPORT = ("name", "expires", "origin_name")
_IMPORT_PREFIX = "okf_"
#: Fields of a memory that get a prefix on export, since a bundle uses these names for something else.
_RENAMED_ON_EXPORT = ("title", "expires", "origin_name")
_EXPORT_PREFIX = "ipfsmem_"
#: Holds, as JSON, the fields that cannot be written as a YAML line.
_MORE = f"{_EXPORT_PREFIX}more"
#: Front matter beyond this many bytes is treated as body.
_MAX_FRONT_MATTER = 64 * 1024

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,16})?")
_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9_./@+ -]*[A-Za-z0-9_./@+-])?")
_KEY_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,100}")
_NOT_TEXT = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
_CONTROL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
_HEADING = re.compile(r"##[ \t]+([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ \t:].*)?")
_ENTRY = re.compile(r"[*-][ \t]+(.*)")
_EVENT = re.compile(r"\*\*Event\*\*: `(\{.*\})`")
_MARK = re.compile(r"[\\\[\]()`<]")


# -- out -----------------------------------------------------------------------------------------------------------


def write_bundle(texts: Mapping[str, bytes], events: Iterable[Event]) -> dict[str, bytes]:
    """Return the files of a bundle by path: a concept for each memory by key, index.md, and log.md if there are events."""
    parsed = {key: parse_memory(data) for key, data in sorted(texts.items())}
    paths = _paths(parsed)
    files = {paths[key]: _concept(key, memory, paths[key]) for key, memory in parsed.items()}
    files["index.md"] = _index(parsed, paths)
    if log := _log(events):
        files["log.md"] = log
    return dict(sorted(files.items()))


def _paths(memories: Mapping[str, MemoryFile]) -> dict[str, str]:
    """Return the path of each concept: its imported one, if available, else its key's."""
    paths = {key: f"_{key}.md" if key in ("index", "log") else f"{key}.md" for key in memories}
    used = {path.lower() for path in paths.values()}
    for key, memory in memories.items():
        path = memory.origin_name
        if path and path.lower() not in used and _is_path(path) and key_of_foreign_name(path).key == key:
            used = (used - {paths[key].lower()}) | {path.lower()}
            paths[key] = path
    return paths


def _is_path(path: str) -> bool:
    *folders, last = path.split("/")
    return (
        len(path) <= 200
        and path.isprintable()
        and last.endswith(".md")
        and last.lower() not in ("index.md", "log.md", "_index.md", "_log.md")
        and not any(folder.lower().endswith(".md") for folder in folders)
        and all(_is_part(part) for part in (*folders, last.removesuffix(".md")))
    )


def _is_part(part: str) -> bool:
    """Return whether every system accepts a name: no separator, and no leading or trailing dot or space, which
    Windows strips."""
    return (
        bool(part)
        and not set(part) & set('\\:*?"<>|')
        and part[0] not in ". "
        and part[-1] not in ". "
        and part.lower().partition(".")[0] not in RESERVED - {"memory"}
    )


def _concept(key: str, memory: MemoryFile, path: str) -> bytes:
    fields = memory.fields
    lines = [f"type: {_text(memory.type or NO_TYPE)}\n"]
    for ours, theirs in (("name", "title"), ("description", "description")):
        if ours in fields:
            lines.append(f"{theirs}: {_text(fields[ours])}\n")
    if tags := parse_tags(fields.get("tags", "")):
        lines.append(f"tags: [{', '.join(_text(tag, in_list=True) for tag in tags)}]\n")
    more: dict[str, str] = {}
    # An `expires` that came from `stale_after` is exported under that name again, in the position of `expires`.
    moved = {"expires": "stale_after"} if _comes_back_as_expires(fields) else {}
    rest = [moved.get(name, name) for name in KNOWN if name in fields or name in moved]
    rest += [name for name in fields if name not in KNOWN and name not in moved.values()]
    for name in rest:
        if name in ("type", "name", "description", "tags") or (
            name == "origin_name" and path == fields[name]
        ):
            continue
        line = _line(_name_there(name, fields), fields[name])
        if line is None:
            more[name] = fields[name]
        else:
            lines.append(line)
    if more:
        lines.append(f"{_MORE}: {quote(str(rfc8785.dumps(dict(more)), 'utf-8'))}\n")
    body = memory.body
    text = f"---\n{''.join(lines)}---\n" + (f"\n{body}\n" if body else "")
    return text.encode()


def _comes_back_as_expires(fields: Mapping[str, str]) -> bool:
    return "expires" not in fields and _is_date(fields.get("stale_after", ""))


def _is_date(text: str) -> bool:
    """Return whether this is a valid date: YAML readers fail on one that only looks like it."""
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _name_there(name: str, fields: Mapping[str, str]) -> str:
    """Return the name of our field in a bundle."""
    if name == "expires" and "stale_after" not in fields and _is_date(fields[name]):
        return "stale_after"
    if name in _RENAMED_ON_EXPORT or name.startswith(_EXPORT_PREFIX):
        return _EXPORT_PREFIX + name
    if name.startswith(_IMPORT_PREFIX) and name.removeprefix(_IMPORT_PREFIX) in _RENAMED_ON_IMPORT:
        return name.removeprefix(_IMPORT_PREFIX)
    return name


def _line(name: str, value: str) -> str | None:
    """Return one line of a front matter, None if readers would misread it."""
    key = name if _KEY_PLAIN.fullmatch(name) and name.lower() not in _NOT_TEXT else quote(name)
    if key == name and (_NUMBER.fullmatch(value) or _is_date(value) or value in ("true", "false")):
        return f"{key}: {value}\n"
    if key == name and _is_plain(value):
        return f"{key}: {value}\n"
    forms = [f"{key}: {quote(value)}\n"]
    if (nested := _nested(value)) is not None:
        forms.insert(0, f"{key}: {nested}\n")
    for line in forms:
        try:
            if {_key: _as_field(field) for _key, field in _mapping(line).items()} == {name: value}:
                return line
        except FormatError:
            continue
    return None


def _nested(value: str) -> str | None:
    """Return a JSON object or list of a header as YAML, None for any other text."""
    if value[:1] not in "{[":
        return None
    try:
        parsed = read_json(value.encode(), "a field")
        return (
            _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
            if isinstance(parsed, dict | list) and _json(parsed) == value
            else None
        )
    except (FormatError, UnicodeError):
        return None


def _text(value: str, *, in_list: bool = False) -> str:
    return value if _is_plain(value) and not (in_list and "," in value) else quote(value)


def _is_plain(value: str) -> bool:
    return _PLAIN.fullmatch(value) is not None and value.lower() not in _NOT_TEXT


def _index(memories: Mapping[str, MemoryFile], paths: Mapping[str, str]) -> bytes:
    sections: dict[str, list[str]] = {}
    for key, memory in memories.items():
        title = _MARK.sub(r"\\\g<0>", _one_line(memory.name) or key)
        description = _one_line(memory.description)
        line = f"* [{title}]({_link(paths[key])})" + (f" - {description}" if description else "")
        sections.setdefault(_one_line(memory.type) or NO_TYPE, []).append(line + "\n")
    parts = [f"# {title}\n\n{''.join(lines)}" for title, lines in sorted(sections.items())]
    return (f'---\nokf_version: "{VERSION}"\n---\n\n' + "\n".join(parts)).encode()


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _link(path: str) -> str:
    return path if re.fullmatch(r"[A-Za-z0-9_./-]*", path) else f"<{path}>"


def _log(events: Iterable[Event]) -> bytes:
    days: dict[str, set[str]] = {}
    for event in events:
        data = {name: value for name, value in event.items() if name != "id"}
        if data.keys() == {"ts", "type", "text"} and data["type"] == LOGGED and _is_logged(data):
            days.setdefault(data["ts"], set()).add(f"* {data['text']}\n")
            continue
        line = str(event_line({**data, "id": "-"}), "utf-8").replace(',"id":"-"', "", 1)
        days.setdefault(day_of(data["ts"]), set()).add(f"* **Event**: `{line}`\n")
    if not days:
        return b""
    parts = [f"## {day}\n{''.join(sorted(lines))}" for day, lines in sorted(days.items(), reverse=True)]
    return ("# Timeline\n\n" + "\n".join(parts)).encode()


def _is_logged(data: Mapping[str, Any]) -> bool:
    """Return whether a logged line can be written unchanged: it would be read back the same."""
    text = data["text"]
    return (
        isinstance(text, str)
        and _DATE.fullmatch(data["ts"]) is not None
        and text == " ".join(text.split())
        and text.isprintable()
        and bool(text)
        and not _EVENT.fullmatch(text)
    )


# -- in ------------------------------------------------------------------------------------------------------------


def read(files: Files) -> Iterator[Item]:
    """Yield the concepts and logs of a bundle."""
    yield from left_out_notes(files)
    for path in files.ending(".md"):
        last = path.rpartition("/")[2]
        if last == "index.md":
            continue
        try:
            data = as_utf8(utf8_text(files.read(path)), "it")
            if last == "log.md":
                yield from _logged(path, str(data, "utf-8"))
            else:
                yield _record(path, data)
        except IpfsmemError as error:
            yield Problem(path, str(error))


def _record(path: str, data: bytes) -> ImportRecord:
    native = "/" not in path and is_key(path.removesuffix(".md"))
    own = path in ("_index.md", "_log.md")
    file_name = path.removeprefix("_") if own else path
    header = split_header(data)
    fields: dict[str, str] = {} if native or own else {"origin_name": path}
    body = str(data, "utf-8").removeprefix("\ufeff")
    if header is not None:
        try:
            if len(header[0].encode()) > _MAX_FRONT_MATTER:
                raise FormatError("the front matter is too long for a header")
            _take_fields(fields, _mapping(header[0].replace("\r\n", "\n")))
            body = header[1].removeprefix("\n")
        except FormatError:
            pass  # not a front matter after all: all of it is body, as in a memory file
    memory = MemoryFile().with_fields(fields, body.rstrip("\n"))
    # The added `origin_name` can push the header over its limit; then keep the file unchanged.
    try:
        file = render_memory(memory)
    except LimitError:
        file = data
    return ImportRecord(where=path, file=file, file_name=file_name)


def _take_fields(fields: dict[str, str], header_fields: Mapping[str, Any]) -> None:
    """Add the fields of a concept under the names that a memory uses for them."""
    for name, value in header_fields.items():
        text = _as_field(value)
        if not text:
            continue
        if name == _MORE:
            fields.update(_more(text))
        elif name == "title":
            fields.setdefault("name", text)
        elif name == "tags":
            fields[name] = (
                render_tags(map(_as_field, value))
                if isinstance(value, list)
                else render_tags(parse_tags(text))
            )
        elif name == "stale_after" and f"{_EXPORT_PREFIX}expires" not in header_fields and _is_date(text):
            fields["expires"] = text
        elif name in _RENAMED_ON_IMPORT:
            fields[_IMPORT_PREFIX + name] = text
        elif name.startswith(_EXPORT_PREFIX) and name.removeprefix(_EXPORT_PREFIX).startswith(
            (*_RENAMED_ON_EXPORT, _EXPORT_PREFIX)
        ):
            fields.setdefault(name.removeprefix(_EXPORT_PREFIX), text)
        else:
            fields[name] = text


def _more(text: str) -> dict[str, str]:
    parsed = read_json(text.encode(), "a field")
    return (
        {name: value for name, value in parsed.items() if isinstance(value, str)}
        if isinstance(parsed, dict)
        else {_IMPORT_PREFIX + "more": text}
    )


def _mapping(text: str) -> dict[str, Any]:
    return yaml_mapping(text, _scalar)


def _scalar(event: Any) -> Any:
    """Return the JSON value of a YAML scalar: a plain one may be a number, true, false or null."""
    text: str = event.value
    if not event.implicit[0]:
        return text.rstrip("\n") if event.style in ("|", ">") else text
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        number: float = float(text) if "." in text else int(text)
        return number if abs(number) <= MAX_INT and _json(number) == text else text
    return text


def _as_field(value: Any) -> str:
    """Return a value of a front matter as the text of a header field; "" for none."""
    if value is None or value in ([], {}):
        return ""
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    try:
        return str(rfc8785.dumps(value), "utf-8")
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError):
        raise FormatError("its front matter holds what has no JSON form") from None


def _logged(path: str, text: str) -> Iterator[Item]:
    day, sentence = "", ""
    for line in [*text.split("\n"), ""]:
        heading, entry = _HEADING.fullmatch(line.rstrip()), _ENTRY.fullmatch(line)
        if sentence and day and (heading or entry or not line.strip()):
            yield _logged_event(path, day, sentence)
            sentence = ""
        if heading:
            day = heading[1]
        elif entry:
            sentence = entry[1].strip()
        elif sentence:
            sentence += f" {line.strip()}"


def _logged_event(path: str, day: str, sentence: str) -> Item:
    if (match := _EVENT.fullmatch(sentence)) and path == "log.md":
        try:
            event = read_json(match[1].encode(), "the event")
            normal_ts(event["ts"])
            return Happened(event)
        except (KeyError, TypeError, FormatError):
            pass
    sentence = " ".join(sentence.split())
    try:
        normal_ts(day)
    except FormatError:
        return Problem(path, f"{day} is not a day")
    file_field = {} if path == "log.md" else {"file": path}
    return Happened({"ts": day, "type": LOGGED, "text": sentence, **file_field})
