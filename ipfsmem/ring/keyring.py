"""Parse, write, unlock and join key rings and their file keyring.json (format section 4).

A ring is a set of verified statements and the epoch keys that they name. Rings of one vault join by union: verified
statements are not lost, and an older ring adds nothing. `authority` evaluates statements, `retention_rules` drops
superfluous ones, `operations` creates them.
"""

import functools
import itertools
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Any, Final, Literal

import msgspec

from ipfsmem import canonical
from ipfsmem.errors import FormatError, LimitError, MembershipError, OpenError
from ipfsmem.ring.authority import PLAIN_REASON, Authority, evaluate, names_of
from ipfsmem.ring.retention_rules import kept_statements, rights_of
from ipfsmem.ring.statements import (
    Envelope,
    Epoch,
    Genesis,
    Statement,
    envelope,
    open_envelope,
    restore_envelope,
)
from ipfsmem.seal.objects import EK_BYTES, OVERHEAD, RING_BODY, EpochKey, Sealer, epoch_key, padded_size
from ipfsmem.seal.primitives import box_open, x25519_public
from ipfsmem.wallet.root_keys import vault_tag

MAX_RING: Final = 1024 * 1024
#: Maximum bytes of keyring.json for statements not signed by a root, so that roots always have room.
MAX_OTHERS: Final = 512 * 1024
#: Maximum number of slots tried in the open part of a ring, of those not signed by a root. A sealing key has one slot
#: per family.
MAX_OTHER_SLOTS: Final = 512
#: Maximum number of ids with keys in a ring: a commit has a counter for each (format section 8).
MAX_IDS: Final = 1536
#: Maximum number of removals by admins: each epoch of a root repeats all of them.
MAX_CLAIMS: Final = 1536
#: Used share of a limit (0 to 1) above which users are warned.
WARN_FROM: Final = 0.5
SLOT_MAGIC: Final = b"IPMK"


class _KeyringBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    eks: list[tuple[int, str]]
    st: list[Envelope]


class _KeyringFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    #: `Keyring.unlock` checks its content.
    body: str | dict[str, Any]
    open: list[Envelope]
    v: Literal[1]
    vault: str


class _StoredRing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    eks: list[tuple[int, str]]
    plain: bool
    spare: list[tuple[int, str]]
    st: list[Envelope]
    v: Literal[1]
    vault: str


class Room(msgspec.Struct, frozen=True):
    """A ring's use of the limits of format section 8."""

    #: bytes of keyring.json; the same for each sealing key
    size: int
    #: of these, the bytes of statements not signed by a root and of keys that only these statements name
    others: int
    #: pairs (admin, id) for ids removed by admins only
    claims: int
    #: ids with keys
    ids: int


@functools.cache
def _file_decoder() -> msgspec.json.Decoder[_KeyringFile]:
    """Return the decoder, built on first use because most calls need none."""
    return msgspec.json.Decoder(_KeyringFile)


_body_decoder: Final = msgspec.json.Decoder(_KeyringBody)
_stored_ring_decoder: Final = msgspec.json.Decoder(_StoredRing)


class Ring:
    """An immutable key ring of one vault. Equal when vault, statements and epoch keys are equal.

    `statements`: sorted by hash. `keys`: the epoch keys that the statements name, sorted by (epoch, id). `view`: the
    result of evaluating the statements. `spare`: keys that the statements do not name (any more), with which this
    device can read; they are not part of the ring. `plain`: plain `ipfs` mode, without epoch keys. The repr shows no
    key.
    """

    __slots__ = (
        "_adds_nothing",
        "_bytes",
        "_hashes",
        "filled",
        "keys",
        "plain",
        "spare",
        "statements",
        "used",
        "vault",
        "view",
    )

    def __init__(
        self,
        vault: bytes,
        statements: Iterable[Statement],
        keys: Iterable[EpochKey],
        *,
        plain: bool = False,
        spare: Iterable[EpochKey] = (),
        bounded: bool = True,
    ) -> None:
        """Build a ring from those of `statements` that a ring keeps, those of `keys` that they name, and all `spare`
        keys.

        `bounded=False` skips the limits, for inspection only. Raises LimitError beyond the limits of format section
        8, FormatError if the genesis belongs to another vault.
        """
        self.vault = vault
        self.plain = plain
        self.statements = kept_statements(statements)
        names = names_of(self.statements)
        spare = set(spare)
        self.keys = _sorted(ek for ek in {*keys, *spare} if ek.id in names)
        self.spare = _sorted(ek for ek in spare if ek.id not in names)
        self._hashes = frozenset((st.hash, st.signature) for st in self.statements)
        #: Statements of other rings that are known to add nothing to this ring.
        self._adds_nothing: set[tuple[str, bytes]] = set()
        self._bytes: bytes | None = None
        _check_vault(vault, self.statements, plain)
        self.view: Authority = evaluate(self.statements, self.keys, plain=plain)
        #: Used share of the 1 MiB, and of the limit closest to exhaustion; 1.0 is full.
        room = self.room()
        self.filled = room.size / MAX_RING
        self.used = max(self.filled, room.others / MAX_OTHERS, room.claims / MAX_CLAIMS, room.ids / MAX_IDS)
        if bounded and self.used > 1:
            raise LimitError(
                f"the key ring would pass its limits: 1 MiB in all, 512 KiB of statements by admins and devices, {MAX_IDS} ids, "
                f"{MAX_CLAIMS} removals by admins",
                hint="Revoke the member that fills it, with all its statements (ipfsmem member revoke ID --cascade), or move to a new "
                "vault.",
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ring):
            return NotImplemented
        return (self.vault, self.plain, self.keys, self._hashes) == (
            other.vault,
            other.plain,
            other.keys,
            other._hashes,
        )

    def __hash__(self) -> int:
        return hash((self.vault, self._hashes))

    def __repr__(self) -> str:
        return f"Ring(vault={self.vault.hex()}, statements={len(self.statements)}, keys={len(self.keys)})"

    def join(self, other: "Ring | UnlockedKeyring") -> "Ring":
        """Return the union of both rings' statements and keys; this same object if `other` adds nothing.

        Raises MembershipError for another vault's ring, LimitError if the union exceeds a limit; the caller then
        keeps its own ring and ignores the head with the other ring.
        """
        self._same_vault(other)
        if other is self:
            return self
        # Keys that are no longer named are kept: a text may be sealed with them, and they may be named again.
        spare = {*self.spare, *(() if isinstance(other, UnlockedKeyring) else (*other.keys, *other.spare))}
        known = {*self.keys, *self.spare}
        new = any(ek not in known and ek.id in self.view.names for ek in other.keys) or not spare <= known
        theirs = {(st.hash, st.signature) for st in other.statements} - self._hashes
        if not new and theirs <= self._adds_nothing:
            return self
        both = self._with(_union(self.statements, other.statements), other.keys, spare)
        if both != self or both.spare != self.spare:
            return both
        # An older ring may still contain statements that this ring dropped.
        self._adds_nothing |= theirs
        return self

    def add(self, statements: Iterable[Statement], keys: Iterable[EpochKey] = ()) -> "Ring":
        """Return this ring with additional verified statements and epoch keys."""
        return self._with(_union(self.statements, statements), keys, self.spare)

    def _with(
        self, statements: Iterable[Statement], keys: Iterable[EpochKey], spare: Iterable[EpochKey]
    ) -> "Ring":
        return Ring(self.vault, statements, keys, plain=self.plain, spare={*self.keys, *spare})

    def with_spare(self, keys: Iterable[EpochKey]) -> "Ring":
        """Return this ring with additional keys with which this device can only read."""
        new = set(keys) - {*self.keys, *self.spare}
        return self._with(self.statements, (), {*self.spare, *new}) if new else self

    def without_spare(self, needed: Collection[str]) -> "Ring":
        """Return this ring with only those spare keys whose ids are in `needed`."""
        needed_keys = [ek for ek in self.spare if ek.id in needed]
        if len(needed_keys) == len(self.spare):
            return self
        return Ring(self.vault, self.statements, self.keys, plain=self.plain, spare=needed_keys)

    def join_open_part(self, keyring: "Keyring") -> "Ring":
        """Join the open part of a ring that this device cannot unlock, so that the device stops sealing under a
        replaced key (format section 4)."""
        return self.join(UnlockedKeyring(keyring.vault, keyring.open, (), keyring.plain))

    def serialise(self) -> bytes:
        """Return the bytes of keyring.json; equal rings have equal bytes.

        Raises MembershipError if no key may seal or this device lacks the key. The device must not publish then (see
        `view.reason`).
        """
        if self._bytes is None:
            self._bytes = self._serialise()
        return self._bytes

    def equals_file(self, data: bytes) -> bool:
        """Tell whether `data` is the keyring.json of exactly this ring, which then needs no parsing."""
        return self.view.reason in ("", PLAIN_REASON) and data == self.serialise()

    def dump(self) -> bytes:
        """Return the ring with unencrypted keys, for this device's own protected state. Never publish the result."""
        envelopes = [envelope(st) for st in self.statements]
        stored = _StoredRing(_pack(self.keys), self.plain, _pack(self.spare), envelopes, 1, self.vault.hex())
        return canonical.encode(stored)

    @classmethod
    def restore(cls, data: bytes) -> "Ring":
        """Restore a ring from the output of `dump`, whose signatures are not verified again. Raises FormatError."""
        what = "the stored key ring"
        try:
            stored = _stored_ring_decoder.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise FormatError(f"{what} is not readable: {error}") from None
        canonical.check_canonical(data, stored, what)
        vault = canonical.unhex(stored.vault, "the vault tag of a key ring", 16)
        statements = [restore_envelope(item.k, item.s, vault) for item in stored.st]
        spare = _unpack(stored.spare, vault, what)
        return cls(vault, statements, _unpack(stored.eks, vault, what), plain=stored.plain, spare=spare)

    def _serialise(self) -> bytes:
        view = self.view
        hidden = [envelope(st) for st in self.statements if not st.public]
        if self.plain:
            body: str | dict[str, Any] = msgspec.to_builtins(_KeyringBody([], hidden))
        elif view.sealing is None:
            raise MembershipError(view.reason)
        else:
            others = [ek for ek in self.keys if ek != view.sealing]
            payload = canonical.encode(_KeyringBody(_pack(others), hidden))
            body = canonical.b64(Sealer(view.sealing, self.vault).seal(RING_BODY, b"", payload))
        shown = [envelope(st) for st in self.statements if st.public]
        data = canonical.encode(_KeyringFile(body, shown, 1, self.vault.hex()))
        if len(data) > MAX_RING:
            raise LimitError(f"keyring.json would have {len(data)} bytes, {MAX_RING} are allowed")
        return data

    def room(self) -> Room:
        """Return the use of each limit."""
        claims = sum(map(len, self.view.revoked_by.values()))
        return Room(self._size(), self._others_size(), claims, len(self.view.keys_of))

    def _size(self) -> int:
        shown = sum(_envelope_size(st) for st in self.statements if st.public)
        hidden = sum(_envelope_size(st) for st in self.statements if not st.public)
        if not self.plain:
            text = hidden + sum(map(_key_size, self.keys)) + 20
            hidden = _b64_size(padded_size(4 + text) + OVERHEAD)
        return shown + hidden + 90

    def _others_size(self) -> int:
        roots = self.view.rights.roots
        others = sum(
            _envelope_size(st) if st.public or self.plain else _b64_size(_envelope_size(st))
            for st in self.statements
            if st.body.by not in roots
        )
        # Keys that only these statements name are included: ten thousand of them would leave no room for the roots.
        named = names_of(st for st in self.statements if st.body.by in roots)
        return others + _b64_size(sum(_key_size(ek) for ek in self.keys if ek.id not in named))

    def _same_vault(self, other: "Ring | UnlockedKeyring") -> None:
        if other.vault != self.vault:
            raise MembershipError(f"the key ring is of vault {other.vault.hex()}, not of {self.vault.hex()}")
        if other.plain != self.plain:
            raise MembershipError(
                "a plain key ring and a sealed one cannot be merged: they belong to different vaults"
            )


class UnlockedKeyring:
    """The verified content of a keyring.json, not reduced by `retention_rules`; join it to a `Ring`."""

    def __init__(
        self, vault: bytes, statements: tuple[Statement, ...], keys: tuple[EpochKey, ...], plain: bool
    ) -> None:
        """Called by `Keyring.unlock` only."""
        self.vault = vault
        self.statements = statements
        self.keys = keys
        self.plain = plain

    @classmethod
    def of_ring(cls, ring: Ring) -> "UnlockedKeyring":
        """Return the content of the file of this ring."""
        shown = cls(ring.vault, ring.statements, ring.keys, ring.plain)
        shown.unbounded_ring = ring
        return shown

    def ring(self) -> Ring:
        """Return the content as a ring, for a device that has no ring yet. Raises LimitError."""
        return Ring(self.vault, self.statements, self.keys, plain=self.plain)

    @cached_property
    def unbounded_ring(self) -> Ring:
        """Return the content as a ring of any size, for inspection only."""
        return Ring(self.vault, self.statements, self.keys, plain=self.plain, bounded=False)


class Keyring:
    """A parsed keyring.json: public statements verified, body not opened; the body is sealed unless `plain`."""

    __slots__ = ("_body", "open", "vault")

    def __init__(self, vault: bytes, shown: tuple[Statement, ...], body: str | dict[str, Any]) -> None:
        """Called by `parse_keyring` only."""
        self.vault = vault
        self.open = shown
        self._body = body

    @property
    def plain(self) -> bool:
        """Tell whether the body is unsealed (plain `ipfs` mode)."""
        return not isinstance(self._body, str)

    @property
    def roots(self) -> tuple[bytes, ...]:
        """Return the roots' admin keys; the first created the vault."""
        return tuple(bytes.fromhex(root) for root in rights_of(self.open).roots)

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        """Return the epochs of the open part, newest first. Signatures are verified, the signers' rights are not."""
        return tuple(_newest_first(self.open))

    def slot_keys(self, box_secrets: Iterable[bytes]) -> list[EpochKey]:
        """Return every epoch key in the slots of the open part that one of these X25519 secrets opens."""
        return list(self._from_slots(self.epochs, _pairs(box_secrets)))

    def unlock(
        self, box_secrets: bytes | Iterable[bytes] = (), known: Iterable[EpochKey] = ()
    ) -> UnlockedKeyring:
        """Open the body with an epoch key from `known` or from a slot of these X25519 secrets, newest first.

        Raises OpenError if no key opens it; FormatError, LimitError or SignatureError for an invalid body.
        """
        if not isinstance(self._body, str):
            return self._shown(_plain_body(self._body))
        sealed = canonical.unb64(self._body, "the body of the key ring")
        pairs = _pairs([box_secrets] if isinstance(box_secrets, bytes) else box_secrets)
        known = list(known)
        for key in self._candidates(pairs, known):
            try:
                payload = Sealer(key, self.vault).open(RING_BODY, b"", sealed)
            except OpenError:
                continue
            # Keys tried earlier have no preference: the result must not depend on the order.
            shown = self._shown(_read_body(payload), key)
            # A body without a key that is in a root's slot is forged; all readers must reach the same result from it.
            have = {(ek.epoch, ek.id) for ek in (*known, *shown.keys)}
            roots = rights_of(self.open).roots
            unopened = [e for e in self.epochs if e.by in roots and (e.epoch, e.ek) not in have]
            more = tuple(self._from_slots(unopened, pairs))
            return UnlockedKeyring(shown.vault, shown.statements, (*shown.keys, *more), shown.plain)
        raise OpenError("no key of this device opens the key ring: it is not a member, or not yet")

    def _candidates(self, pairs: list[tuple[bytes, bytes]], known: list[EpochKey]) -> Iterator[EpochKey]:
        by_name = {(ek.epoch, ek.id): ek for ek in known}
        seen: set[tuple[int, str]] = set()
        closed: list[Epoch] = []
        for body in self.epochs:
            name = (body.epoch, body.ek)
            if name in by_name and name not in seen:
                seen.add(name)
                yield by_name[name]
            elif name not in by_name:
                closed.append(body)
        yield from self._from_slots(closed, pairs)

    def _from_slots(self, epochs: Iterable[Epoch], pairs: list[tuple[bytes, bytes]]) -> Iterator[EpochKey]:
        """Yield the keys in slots of roots' statements, then in slots of other statements, newest first.

        Only the sealed part shows which other signers are admins, so the number of their slots tried is bounded.
        """
        roots = rights_of(self.open).roots
        epochs = list(epochs)
        others: list[Epoch] = []
        left = MAX_OTHER_SLOTS
        for body in epochs:
            if body.by not in roots:
                others.append(
                    body
                    if len(body.slots) <= left
                    else msgspec.structs.replace(body, slots=body.slots[:left])
                )
                left -= len(others[-1].slots)
        yield from _try_slots([*(body for body in epochs if body.by in roots), *others], pairs, self.vault)

    def _shown(self, body: _KeyringBody, *keys: EpochKey) -> UnlockedKeyring:
        hidden = _statements(body.st, self.vault, "the body of the key ring")
        if any(st.public for st in hidden):
            raise FormatError("the body of the key ring holds a statement of the open part")
        more = _unpack(body.eks, self.vault, "the body of the key ring")
        return UnlockedKeyring(self.vault, (*self.open, *hidden), (*keys, *more), self.plain)


def parse_keyring(data: bytes, vault: bytes | None = None) -> Keyring:
    """Parse keyring.json; check size, form, signatures of the open part, and the vault if its 16-byte tag is given.

    Raises LimitError beyond 1 MiB, FormatError if not canonical or of another vault, SignatureError.
    """
    what = "keyring.json"
    if len(data) > MAX_RING:
        raise LimitError(f"{what} has {len(data)} bytes, {MAX_RING} are allowed")
    canonical.check_depth(data, what)
    try:
        file = _file_decoder().decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise FormatError(f"{what} is not readable: {error}") from None
    canonical.check_canonical(data, file, what)
    tag = canonical.unhex(file.vault, "the vault tag of a key ring", 16)
    if vault is not None and tag != vault:
        raise FormatError(f"{what} is of vault {file.vault}, not of {vault.hex()}")
    shown = _statements(file.open, tag, "the open part of the key ring")
    if not all(st.public for st in shown):
        raise FormatError(f"the open part of {what} holds a statement of the sealed part")
    plain = not isinstance(file.body, str)
    if plain:
        canonical.decode(canonical.encode(file.body), what)  # a body of any type can contain floats
        if any(isinstance(st.body, Epoch) for st in shown):
            raise FormatError(f"a plain {what} has no epochs")
    _check_vault(tag, shown, plain)
    return Keyring(tag, shown, file.body)


def slot_text(ek: EpochKey, vault: bytes) -> bytes:
    """Return the plaintext of a slot: magic, vault tag, epoch number, key."""
    return SLOT_MAGIC + vault + ek.epoch.to_bytes(4, "big") + ek.key


def _check_vault(vault: bytes, statements: Iterable[Statement], plain: bool) -> None:
    genesis = [st.body for st in statements if isinstance(st.body, Genesis)]
    if not genesis:
        raise FormatError("a key ring has no genesis statement")
    if any(vault_tag(bytes.fromhex(body.roots[0]), plain=plain) != vault for body in genesis):
        kind = "plain" if plain else "sealed"
        raise FormatError(f"the genesis statement of the key ring is not of the {kind} vault {vault.hex()}")


def _union(mine: Iterable[Statement], theirs: Iterable[Statement]) -> Iterable[Statement]:
    both = {st.hash: st for st in mine}
    for st in theirs:
        other = both.get(st.hash)
        # A signer can make several valid signatures of one payload; the least is kept.
        if other is None or st.signature < other.signature:
            both[st.hash] = st
    return both.values()


def _statements(items: Iterable[Envelope], vault: bytes, what: str) -> tuple[Statement, ...]:
    statements = tuple(open_envelope(item.k, item.s, vault) for item in items)
    if any(a.hash >= b.hash for a, b in itertools.pairwise(statements)):
        raise FormatError(f"{what} is not sorted, or holds a statement twice")
    return statements


def _read_body(payload: bytes) -> _KeyringBody:
    what = "the body of the key ring"
    try:
        body = _body_decoder.decode(payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise FormatError(f"{what} is not readable: {error}") from None
    canonical.check_canonical(payload, body, what)
    return body


def _plain_body(value: dict[str, Any]) -> _KeyringBody:
    what = "the body of the key ring"
    try:
        body = msgspec.convert(value, _KeyringBody)
    except msgspec.ValidationError as error:
        raise FormatError(f"{what} is not readable: {error}") from None
    if body.eks:
        raise FormatError(f"{what} has epoch keys in a plain vault")
    return body


def _sorted(keys: Iterable[EpochKey]) -> tuple[EpochKey, ...]:
    return tuple(sorted(keys, key=lambda ek: (ek.epoch, ek.id, ek.key)))


def _pack(keys: Iterable[EpochKey]) -> list[tuple[int, str]]:
    return [(ek.epoch, canonical.b64(ek.key)) for ek in keys]


def _unpack(items: Iterable[tuple[int, str]], vault: bytes, what: str) -> list[EpochKey]:
    keys: list[EpochKey] = []
    for epoch, text in items:
        if not 1 <= epoch < 1 << 32:
            raise FormatError(f"{what} holds a key of epoch {epoch}")
        keys.append(epoch_key(epoch, canonical.unb64(text, "an epoch key", EK_BYTES), vault))
    order = [(ek.epoch, ek.id, ek.key) for ek in keys]
    if any(a >= b for a, b in itertools.pairwise(order)):
        raise FormatError(f"the epoch keys in {what} are not sorted, or one is listed twice")
    return keys


def _newest_first(statements: Iterable[Statement]) -> list[Epoch]:
    bodies = [st.body for st in statements if isinstance(st.body, Epoch)]
    return sorted(bodies, key=lambda body: (body.epoch, body.ek), reverse=True)


def _pairs(box_secrets: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    return [(x25519_public(secret), secret) for secret in box_secrets]


def _try_slots(epochs: Iterable[Epoch], pairs: list[tuple[bytes, bytes]], vault: bytes) -> Iterator[EpochKey]:
    opened: set[tuple[int, str]] = set()
    for body in epochs:
        if (body.epoch, body.ek) in opened:
            continue
        key = _slot_key(body, pairs, vault)
        if key is not None:
            opened.add((body.epoch, body.ek))
            yield key


def _slot_key(body: Epoch, pairs: list[tuple[bytes, bytes]], vault: bytes) -> EpochKey | None:
    head = SLOT_MAGIC + vault + body.epoch.to_bytes(4, "big")
    for slot in body.slots:
        for public, secret in pairs:
            text = box_open(canonical.unb64(slot, "a key slot"), public, secret)
            if text is None or not text.startswith(head) or len(text) != len(head) + EK_BYTES:
                continue
            key = epoch_key(body.epoch, text[len(head) :], vault)
            if key.id == body.ek:
                return key
    return None


def _envelope_size(st: Statement) -> int:
    return _b64_size(len(st.payload)) + 86 + 18


def _key_size(ek: EpochKey) -> int:
    """Return the size in bytes of a key in the ring's body."""
    return 50 + len(str(ek.epoch))


def _b64_size(n: int) -> int:
    return (n * 4 + 2) // 3
