"""Recognise file names of conflict copies by sync programs: Syncthing, Dropbox, Nextcloud, Obsidian Sync and others."""

from __future__ import annotations

import re
from typing import Final

from ipfsmem.lazy_pattern import lazy_pattern

#: Text between a file's name and its suffix. Names that users choose too, like `plan 2` and `plan (1)`, are excluded.
_MARKS: Final = lazy_pattern(
    r"(?P<base>[^/]*[^/ ])(?:"
    r"\.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]{7})?"
    r"| \([^()/]{0,80}\b(?:conflicted copy|case conflict|SFConflict|in Konflikt stehende Kopie|copie en conflit"
    r"|copia en conflicto|copia in conflitto|c.pia em conflito)\b[^()/]{0,80}\)(?: ?\(\d{1,3}\))?"
    r"|_conflict-\d{8}-\d{6}"
    r"|_[^_/]+_[A-Z][a-z]{2}-\d{2}-\d{6}-\d{4}_Conflict"
    r"| \[conflicted\]"
    r")\.md",
    re.IGNORECASE,
)


def base_of_conflict(name: str) -> str | None:
    """Return the name of the original file if `name` is that of a conflict copy, else None."""
    folder, slash, last = name.rpartition("/")
    match = _MARKS.fullmatch(last)
    return None if match is None else f"{folder}{slash}{match['base']}.md"
