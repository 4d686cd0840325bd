"""Searches the texts that this device is about to publish for secrets, each text once.

In plain mode a finding stops the publish; in encrypted mode it is only reported. Written entries are recorded (`device.writing`),
so a publish checks only new entries; after a change of the rules, plain mode checks all entries again. Texts of other devices are
not checked: they are public already. Findings never contain the secret. No finding does not mean that there is no secret.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256

import msgspec

from ipfsmem import wordlist
from ipfsmem.bundle import secret_kinds, secrets
from ipfsmem.canonical import read_json
from ipfsmem.causal.entries import entry_display_name, segment_name
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
    """A finding that looks like a secret. `place`: the displayed name of the entry (`entry_display_name`); `where`: a line or an event."""

    place: str
    where: str
    kind: str

    def __str__(self) -> str:
        """Return place, line and kind; never the secret."""
        return f"{self.place} {self.where}: {self.kind}"


#: Maximum texts that one publish checks in encrypted mode; later publishes check the others.
WARN_ABOUT = 100


#: The hash of a secret, and the finding.
_Finding = tuple[str, Suspect]
#: Maximum bytes of text that are read from the database at once.
_BATCH_BYTES = 4 * 1024 * 1024


class SecretCheck:
    """The check of one publish. `strict`: raise an error for a finding whose place is not in `allow`; otherwise findings are only
    collected."""

    def __init__(self, *, strict: bool, allow: Collection[str] = ()) -> None:
        self._strict = strict
        self._allow = frozenset(allow)
        #: Findings whose places are not allowed.
        self.found: list[Suspect] = []
        #: Findings of `look_ahead`, by entry and hash of the text.
        self._ahead: dict[tuple[str, str], list[_Finding]] = {}

    def look_ahead(self, replica: Replica) -> None:
        """Check the texts for `look` before its transaction, because long texts take seconds.

        `look` checks the texts that are written meanwhile.
        """
        while texts := self._next(replica):
            for name, body, data in texts:
                self._ahead[name, body] = _in_text(name, data.decode("utf-8", "replace"))

    def _next(self, replica: Replica) -> list[tuple[str, str, bytes]]:
        """Return some texts that were not checked yet, in a short transaction of its own."""
        texts: list[tuple[str, str, bytes]] = []
        size = 0
        with replica.transaction():
            names = own_entries(replica) if self._is_new(replica) else unscanned(replica, self._max_texts)
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
                if size > _BATCH_BYTES:
                    break
        return texts

    @property
    def _max_texts(self) -> int | None:
        return None if self._strict else WARN_ABOUT

    def _is_new(self, replica: Replica) -> bool:
        """Return whether all texts must be checked because the rules changed."""
        return self._strict and replica.db.get_meta(meta.SECRET_RULES) != _rules()

    def look(self, replica: Replica) -> None:
        """Check every text that this device wrote since the last publish (inside the transaction that publishes).

        A finding that was allowed, or reported once in encrypted mode, is not reported again. Raises SecretsError in plain mode;
        the next publish then checks the same texts again.
        """
        names = take_unscanned(replica, self._max_texts)
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

    def _suspects(self, replica: Replica, name: str) -> list[_Finding]:
        suspects: list[_Finding] = []
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


def _in_text(name: str, text: str) -> list[_Finding]:
    place, segment = entry_display_name(name), segment_name(name)
    lines = text.split("\n") if segment is not None else []
    suspects: list[_Finding] = []
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
    """Describe an event by time and type: a timeline file has the lines of all devices, so a line number would mislead."""
    try:
        event = read_json(line, _Event)
    except msgspec.DecodeError:
        return f"an event of device {device}"
    return f"event {event.id} ({event.type})"


def in_words(suspects: list[Suspect]) -> list[str]:
    """Return findings as lines for a person, one for each memory or segment, so that a text with many findings does not hide the
    others."""
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
    return f"Remove it. Or, if it may be public permanently: ipfsmem sync {flags}"
