"""Searches the texts that this device is about to publish for secrets, once for each text.

In plain mode a finding stops the publish; in encrypted mode it is only reported. Entries are recorded when they are written
(`device.writing`), so a publish examines only new ones, until the rules change: then plain mode examines everything again. Texts
of other devices are public already. It never shows the secret, and finding nothing proves nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256

import msgspec

from ipfsmem import wordlist
from ipfsmem.bundle import secret_kinds, secrets
from ipfsmem.canonical import read_json
from ipfsmem.causal.entries import entry_place, segment_name
from ipfsmem.causal.value import LIVE, Value
from ipfsmem.device.replica import Replica
from ipfsmem.device.source_hash import source_hash
from ipfsmem.device.tables import meta
from ipfsmem.device.writing import own_entries, take_unscanned, unscanned
from ipfsmem.errors import SecretsError
from ipfsmem.wording import count

#: Maximum findings that are named in one message.
_NAMED = 10


class Suspect(msgspec.Struct, frozen=True):
    """Something that looks like a secret. `place` is the entry in a person's words (`entry_place`); `where` a line or an event."""

    place: str
    where: str
    kind: str

    def __str__(self) -> str:
        """Return place, line and kind; never the secret."""
        return f"{self.place} {self.where}: {self.kind}"


#: In encrypted mode the check is a courtesy: maximum texts per publish, the others at the next ones.
WARN_ABOUT = 100


#: A finding, and a hash of the secret.
_Met = tuple[str, Suspect]
#: Maximum bytes of text that are read from the database at once.
_AT_ONCE = 4 * 1024 * 1024


class SecretCheck:
    """The check of one publish. `strict` stops at a finding outside `allow` (places); otherwise it is collected."""

    def __init__(self, *, strict: bool, allow: Collection[str] = ()) -> None:
        self._strict = strict
        self._allow = frozenset(allow)
        #: Findings that were not allowed.
        self.found: list[Suspect] = []
        #: The findings in texts that were checked ahead, by entry and hash of the text.
        self._ahead: dict[tuple[str, str], list[_Met]] = {}

    def look_ahead(self, replica: Replica) -> None:
        """Check ahead the texts that `look` will check, while others may write: for the texts of strangers that takes seconds.

        Texts written meanwhile are left to `look`.
        """
        while texts := self._next(replica):
            for name, body, data in texts:
                self._ahead[name, body] = _in_text(name, data.decode("utf-8", "replace"))

    def _next(self, replica: Replica) -> list[tuple[str, str, bytes]]:
        """Return some texts that were not checked yet, in a short transaction of its own."""
        texts: list[tuple[str, str, bytes]] = []
        size = 0
        with replica.transaction():
            names = own_entries(replica) if self._is_new(replica) else unscanned(replica, self._most)
            for name in names:
                for body, value in _bodies(replica, name).items():
                    if (name, body) in self._ahead:
                        continue
                    data = replica.store.body(name, value)
                    if data is None:
                        self._ahead[name, body] = []
                    else:
                        texts.append((name, body, data))
                        size += len(data)
                if size > _AT_ONCE:
                    break
        return texts

    @property
    def _most(self) -> int | None:
        return None if self._strict else WARN_ABOUT

    def _is_new(self, replica: Replica) -> bool:
        """Return whether everything must be checked, as the rules changed."""
        return self._strict and replica.db.get_meta(meta.SECRET_RULES) != _rules()

    def look(self, replica: Replica) -> None:
        """Check every text that this device wrote since the last publish (inside the transaction that publishes).

        A finding that was allowed, or reported once in encrypted mode, is not reported again in a later text. Raises SecretsError
        in plain mode; then the texts stay unchecked, and the next publish checks them again.
        """
        names = take_unscanned(replica, self._most)
        if self._is_new(replica):
            names = own_entries(replica)
            replica.db.set_meta(meta.SECRET_RULES, _rules())
        suspects_found = [suspect for name in names for suspect in self._suspects(replica, name)]
        if not suspects_found:
            self.found = []
            return
        stored = replica.db.get_meta(meta.KNOWN_SECRETS)
        known_marks = (
            set(msgspec.json.decode(replica.codec.open_row(stored), type=list[str])) if stored else set()
        )
        self.found = [
            suspect
            for mark, suspect in suspects_found
            if mark not in known_marks and suspect.place not in self._allow
        ]
        if self.found and self._strict:
            raise SecretsError(_message(self.found), hint=_hint(self.found))
        known_marks.update(mark for mark, _ in suspects_found)
        replica.db.set_meta(
            meta.KNOWN_SECRETS, replica.codec.seal_row(msgspec.json.encode(sorted(known_marks)))
        )

    def _suspects(self, replica: Replica, name: str) -> list[_Met]:
        suspects: list[_Met] = []
        for body, value in _bodies(replica, name).items():
            suspects_here = self._ahead.get((name, body))
            if suspects_here is None:
                data = replica.store.body(name, value)
                suspects_here = _in_text(name, data.decode("utf-8", "replace")) if data is not None else []
            suspects += suspects_here
        return suspects


def _rules() -> bytes:
    return source_hash(secrets, secret_kinds, wordlist)


def _bodies(replica: Replica, name: str) -> dict[str, Value]:
    """Return the texts that this device wrote under an entry, by hash."""
    return {
        value.body: value
        for dot, value in reversed(replica.store.entry(name).items())
        if value.kind == LIVE and value.body is not None and dot[:16] == replica.device.id
    }


def _in_text(name: str, text: str) -> list[_Met]:
    place, segment = entry_place(name), segment_name(name)
    lines = text.split("\n") if segment is not None else []
    suspects: list[_Met] = []
    for finding in secrets.find_secrets(text):
        line = f"line {finding.line}" if segment is None else _event(lines[finding.line - 1], segment.dev)
        suspect = Suspect(place, line, finding.kind)
        mark = sha256(text[finding.start : finding.end].encode("utf-8", "replace")).hexdigest()[:32]
        suspects.append((mark, suspect))
    return suspects


class _Event(msgspec.Struct):
    id: str
    type: str


def _event(line: str, device: str) -> str:
    """Return an event in words: a file of the timeline has the lines of all devices, so a line number would mislead."""
    try:
        event = read_json(line, _Event)
    except msgspec.DecodeError:
        return f"an event of device {device}"
    return f"event {event.id} ({event.type})"


def in_words(suspects: list[Suspect]) -> list[str]:
    """Return findings as lines for a person: one for each memory or segment, so that a text full of them hides nothing else."""
    places: dict[str, list[Suspect]] = {}
    for suspect in suspects:
        places.setdefault(suspect.place, []).append(suspect)
    return [
        str(first) + (f" (and {count(len(others), 'more such place')} in it)" if others else "")
        for first, *others in places.values()
    ]


def _message(suspects: list[Suspect]) -> str:
    names = "; ".join(map(str, suspects[:_NAMED]))
    more = f"; and {len(suspects) - _NAMED} more" if len(suspects) > _NAMED else ""
    return f"nothing was published, because everyone could read what looks like a secret: {names}{more}"


def _hint(suspects: list[Suspect]) -> str:
    places = list(dict.fromkeys(suspect.place for suspect in suspects))
    flags = " ".join(f"--allow {place}" for place in places[:_NAMED])
    return f"Take it out. Or, when it may be public for good: ipfsmem sync {flags}"
