"""Claude Code's memory: a folder of Markdown files with MEMORY.md, or the tree `projects/` of such folders.

Files are imported byte for byte, so that a folder which is linked later equals the vault. Other programs' lines of MEMORY.md are
a memory too, as in a linked folder (format section 1.3). Of a tree each project is a scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

from ipfsmem.bundle.index_block import split_index_file
from ipfsmem.bundle.keys import INDEX_FILE, is_scope
from ipfsmem.errors import IpfsmemError
from ipfsmem.exchange.places import Files, left_out_notes
from ipfsmem.exchange.records import ImportRecord, Item, Problem, Skipped

_PROJECT = re.compile(r"(?:.*/)?([^/]+)/memory/([^/]+\.(?i:md))")
_BELOW = re.compile(r"(?:.*/)?[^/]+/memory/.+/[^/]+\.(?i:md)")
_INSIDE = re.compile(r"(?:.*/)?[^/]+/memory/.+")
_OTHER = re.compile(r"[^a-z0-9]+")


def read(files: Files) -> Iterator[Item]:
    """Yield the memory files of one project, or of all; other files are skipped, and counted if they are below a memory folder."""
    trees = [(name, match) for name in files.names if (match := _PROJECT.fullmatch(name))]
    trees_found = [(name, project_scope(match[1]), match[2]) for name, match in trees]
    if not trees_found:
        trees_found = [
            (name, "", name) for name in files.ending(".md") if "/" not in name.removeprefix("memory/")
        ]
    yield from left_out_notes(files, lambda name: not trees or _INSIDE.fullmatch(name) is not None)
    names_read = {name for name, _, _ in trees_found}
    for name in files.ending(".md"):
        if name not in names_read and (not trees or _BELOW.fullmatch(name)):
            yield Skipped("a file in a folder below the memory folder")
    for name, scope, last in trees_found:
        last = last.removeprefix("memory/")
        try:
            data = files.read(name)
        except IpfsmemError as error:
            yield Problem(name, str(error))
            continue
        if last == INDEX_FILE:
            data = split_index_file(data).text
        if not data.strip():
            yield Skipped("an empty file")
        else:
            yield ImportRecord(where=name, file=data, file_name=last, scope=scope)


def project_scope(folder: str) -> str:
    """Return the scope of a project by the name of its folder in `projects/`, which is its path: the same at each import, and
    another for each path."""
    mark = sha256(folder.encode(errors="surrogatepass")).hexdigest()[:12]
    words = _OTHER.sub("-", folder.lower()).strip("-")
    scope = f"{words[-40:].partition('-')[2] if len(words) > 40 else words}-{mark}".lstrip("-")
    return scope if is_scope(scope) else f"project-{mark}"
