"""The stored tokens of the HTTP API: the right of each, and its scopes.

A token is 256 random bits, shown once; `tokens.json` in the vault's folder has its SHA-256, unsalted, as no token can be
guessed. The token's right and scopes are in a row next to the hash; in an encrypted vault only this device's keys open the
row. The row names the hash, so that it is invalid next to another. A token belongs to one vault. Independent of HTTP.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from ipfsmem.bundle.keys import check_scope
from ipfsmem.canonical import read_json
from ipfsmem.device.atomic_files import read_file, write_atomic
from ipfsmem.device.lock import file_lock
from ipfsmem.device.replica import Replica
from ipfsmem.errors import IpfsmemError, LimitError, NotFoundError, StorageError, UsageError
from ipfsmem.operation import Right
from ipfsmem.results import Answer

TOKENS_FILE: Final = "tokens.json"
#: Maximum tokens of one vault, characters of a name, and bytes of the file.
MAX_TOKENS: Final = 256
MAX_NAME: Final = 100
_MAX_FILE: Final = 4 * 1024 * 1024
#: The prefix of each token, so that people and secret scanners recognise one.
PREFIX: Final = "ipfsmem_"
_ID_DIGITS: Final = 12


class AccessToken(Answer, frozen=True, kw_only=True):
    """A token without its secret. `scopes` None: all of them; "" is the unnamed one. `made`: milliseconds since 1970 UTC."""

    id: str
    name: str
    right: Right
    scopes: tuple[str, ...] | None
    made: int


class TokenMade(Answer, frozen=True, kw_only=True):
    """A new token with its secret, shown only once."""

    SAID_ONCE = ("secret",)

    secret: str
    token: AccessToken


class TokenRevoked(Answer, frozen=True, kw_only=True):
    """A revoked token."""

    id: str
    revoked: bool = True


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hash: str
    sealed: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tokens: list[_Row]
    v: int = 1


class _Meant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hash: str
    token: AccessToken


_decode = msgspec.json.Decoder(_Meant).decode


def make_token(
    replica: Replica, folder: Path, *, name: str, right: Right, scopes: tuple[str, ...] | None
) -> TokenMade:
    """Create a token of the memory in `folder`. Raises UsageError, KeyNameError, LimitError, StorageError."""
    if len(name) > MAX_NAME or not name.isprintable():
        raise UsageError(f"the name of a token has at most {MAX_NAME} printable characters")
    for scope in scopes or ():
        if scope:
            check_scope(scope)
    secret = PREFIX + b64encode(replica.environment.random(32), b"-_").decode().rstrip("=")
    digest = _digest(secret)
    token = AccessToken(
        id=digest[:_ID_DIGITS], name=name, right=right, scopes=scopes, made=replica.environment.now()
    )
    row = replica.codec.seal_row(msgspec.json.encode(_Meant(digest, token)))
    with file_lock(folder / "tokens.lock"):
        file = _read(folder)
        if len(file.tokens) >= MAX_TOKENS:
            raise LimitError(
                f"there are {MAX_TOKENS} tokens already", hint="Revoke one: ipfsmem token revoke ID"
            )
        _write(folder, [*file.tokens, _Row(digest, b64encode(row).decode())])
    return TokenMade(secret=secret, token=token)


def token_id(digest: str) -> str:
    """Return the id of a token, by its hash."""
    return digest[:_ID_DIGITS]


def tokens_of(replica: Replica, folder: Path) -> list[AccessToken]:
    """Return the tokens of a memory, oldest first. A token whose row does not open gives no access, and has no name."""
    nothing = AccessToken(id="", name="(unreadable: it gives no access)", right="read", scopes=(), made=0)
    return [
        _opened(replica, row) or msgspec.structs.replace(nothing, id=row.hash[:_ID_DIGITS])
        for row in _read(folder).tokens
    ]


def revoke_token(folder: Path, token: str) -> None:
    """Revoke a token by its id. Needs no key. Raises NotFoundError, StorageError."""
    with file_lock(folder / "tokens.lock"):
        rows = _read(folder).tokens
        remaining = [row for row in rows if row.hash[:_ID_DIGITS] != token]
        if len(remaining) == len(rows):
            raise NotFoundError(f"there is no token {token[:40]!a}", hint="List them: ipfsmem token list")
        _write(folder, remaining)


class KeptTokens:
    """The tokens of one memory for a running server: changes apply from the next request on."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._mark: tuple[int, ...] | None = None
        self._rows: dict[str, _Row] = {}
        self._opened: dict[str, AccessToken] = {}

    def __bool__(self) -> bool:
        self._look()
        return bool(self._rows)

    def find(self, secret: str) -> str | None:
        """Return the hash of a kept token, None for any other text. `meant` returns its right and scopes."""
        self._look()
        digest = _digest(secret)
        return digest if digest in self._rows else None

    def is_still_valid(self, digest: str) -> bool:
        """Tell whether a found token still exists."""
        self._look()
        return digest in self._rows

    def meant(self, digest: str, replica: Replica) -> AccessToken | None:
        """Return the right and scopes of a found token, by this memory's keys; None if it is revoked or does not open."""
        row = self._rows.get(digest)
        if row is not None and digest not in self._opened and (token := _opened(replica, row)) is not None:
            self._opened[digest] = token
        return self._opened.get(digest) if row is not None else None

    def _look(self) -> None:
        if self._folder is None:
            return
        try:
            stat = (self._folder / TOKENS_FILE).stat()
            mark: tuple[int, ...] = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        except OSError:
            mark = ()
        if mark == self._mark:
            return
        try:
            rows = {row.hash: row for row in _read(self._folder).tokens}
        except IpfsmemError:
            rows = {}  # an unreadable file gives no access
        self._rows, self._opened, self._mark = rows, {}, mark


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _opened(replica: Replica, row: _Row) -> AccessToken | None:
    try:
        row_contents = _decode(replica.codec.open_row(b64decode(row.sealed, validate=True)))
    except (IpfsmemError, msgspec.MsgspecError, ValueError):
        return None
    return row_contents.token if row_contents.hash == row.hash else None


def _read(folder: Path) -> _File:
    path = folder / TOKENS_FILE
    data = read_file(path, _MAX_FILE)
    if data is None:
        return _File([])
    try:
        file = read_json(data, _File)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        file = None
    if file is None or file.v != 1:
        raise StorageError(
            f"{path} is damaged, or of a newer version", hint="Remove it, and create the tokens again."
        )
    return file


def _write(folder: Path, rows: list[_Row]) -> None:
    write_atomic(folder / TOKENS_FILE, msgspec.json.encode(_File(rows)))
