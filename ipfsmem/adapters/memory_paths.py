"""Maps paths below `/memories`, as models write them, to memories.

A path is a name, never a location on a disk. `/memories/<key>.md` is the memory `<key>`, byte for byte. Any other path is a foreign
name (format section 1.1): the part below `/memories/`, including slashes, is stored in the header line `origin_name`, which is not
part of the text that a model reads. Folders are parts of names, not scopes.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

from ipfsmem.bundle import header
from ipfsmem.bundle.keys import ForeignName, key_of_foreign_name, split_conflict_name
from ipfsmem.bundle.memory_file import MemoryFile, parse_fields
from ipfsmem.bundle.origin_name import with_origin, without_origin
from ipfsmem.errors import FormatError, UsageError

ROOT = "/memories"
#: Maximum bytes of a path below the root, which must fit into a header; and of one name in it, as in file systems.
MAX_PATH = 1024
MAX_NAME = 255

_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
#: Invalid encodings of `.`, `/` and `\` that some decoders accept.
_OVERLONG = re.compile(r"%c0%ae|%e0%80%ae|%u002e|%c0%af|%e0%80%af|%u002f|%c1%9c|%u005c", re.IGNORECASE)
#: Maximum levels of repeated encoding.
_TIMES = 8


class PathError(UsageError):
    """Not a path below /memories"""


def relative(path: str) -> str:
    """Return the path below `/memories/`, without empty names and dots; "" for the root. Raises PathError."""
    if path != ROOT and not path.startswith(ROOT + "/"):
        raise PathError(f"Path must start with {ROOT}, got: {_shown(path)}")
    names: list[str] = []
    for name in path[len(ROOT) :].split("/"):
        if (name == ".." and not names) or _climbs_in_disguise(name):
            raise PathError(f"Path {_shown(path)} would escape {ROOT} directory")
        if name == "..":
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    joined = "/".join(names)
    if _UNFIT.search(joined):
        raise PathError(f"Path {_shown(path)} holds a control character or something that is not Unicode")
    if len(joined.encode()) > MAX_PATH or any(len(name.encode()) > MAX_NAME for name in names):
        raise PathError(
            f"Path {_shown(path)} is too long: {MAX_PATH} bytes at most, and {MAX_NAME} for each name in it"
        )
    if split_conflict_name(joined) is not None:
        raise PathError(
            f"Path {_shown(path)} has the name of a conflict copy, which is never a file of its own"
        )
    return joined


def _climbs_in_disguise(name: str) -> bool:
    """Return whether some decoder or file system would read `..` from a name that is not `..`."""
    seen = name
    for _ in range(_TIMES):
        plain = _OVERLONG.sub(lambda found: "." if found[0].lower().endswith("e") else "/", seen)
        plain = unicodedata.normalize("NFKC", unquote(plain)).replace("\\", "/")
        if plain == seen:
            return seen != name and any(part.strip(" \0") == ".." for part in seen.split("/"))
        seen = plain
    return True


def _shown(path: str) -> str:
    return _UNFIT.sub("\ufffd", path if len(path) <= 200 else path[:200] + "...")


def name_below(path: str) -> ForeignName:
    """Return the key for a path below the root, and the name to keep if the path is not `<key>.md`."""
    return key_of_foreign_name(path)


def path_of(key: str, file: MemoryFile) -> str:
    """Return the path below the root of a memory with this key and header."""
    origin = file.origin_name
    try:
        if origin and relative(f"{ROOT}/{origin}") == origin and name_below(origin) == (key, origin):
            return origin
    except FormatError:
        pass
    except PathError:
        pass
    return f"{key}.md"


def stored(path: str, text: bytes) -> bytes:
    """Return the memory file for a text at a path. Raises FormatError for an invalid one, PathError if its own header has another
    name."""
    key, origin = name_below(path)
    text_stored = with_origin(text, origin)
    if origin is not None and (
        shown(path, text_stored) != text or parse_fields(text_stored).origin_name != origin
    ):
        text_stored = _head(origin) + text
    if path_of(key, parse_fields(text_stored)) != path:
        raise PathError(f"The header of this text says that it belongs elsewhere, not at {ROOT}/{path}")
    return text_stored


def shown(path: str, data: bytes) -> bytes:
    """Return the text at a path, from its memory file: the input of `stored`, byte for byte."""
    origin = name_below(path).origin
    if origin is None:
        return data
    head = _head(origin)
    return data[len(head) :] if data.startswith(head) else without_origin(data, origin)


def _head(origin: str) -> bytes:
    return b"---\n" + header.write_header({"origin_name": origin}).encode() + b"---\n\n"
