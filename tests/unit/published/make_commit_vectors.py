"""Writes fixtures/vectors/commits.json: heads of a sealed and a plain vault, valid and refused ones with the
reason.

Run it only when the format changes: `python -m tests.unit.published.make_commit_vectors`. `ring_lab` makes
the ring; the JSON of a commit, its signature and its pairs are built here, so that any part can be wrong."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from ipfsmem.canonical import b64
from ipfsmem.causal.tree import empty_tree
from ipfsmem.ring.keyring import Ring
from ipfsmem.ring.operations import enrol, revoke
from ipfsmem.seal.objects import COMMIT, STATE_NODE, Sealer, epoch_key
from tests.support.ring_lab import PLAIN, ROOT, VAULT, Party, ek, fixed_box, hlc, new_ring, party

OUT = Path(__file__).parents[3] / "fixtures" / "vectors" / "commits.json"
LAPTOP, PHONE, GUEST, LOST, STRANGER = map(party, ("laptop", "phone", "guest", "lost", "stranger"))
R = "0102030405060708"


def ring(*, plain: bool) -> Ring:
    """Two writers, a reader, and a revoked device."""
    made = new_ring(LAPTOP, PHONE, LOST, plain=plain)
    guest = GUEST.device_in(made.vault)
    made = enrol(made, ROOT.signer, guest, "reader", since=hlc(9), box=fixed_box)
    lost = LOST.device_in(made.vault).id
    return revoke(
        made, ROOT.signer, lost, at=hlc(10), counters={lost: 3}, ek=None if plain else ek(1), box=fixed_box
    )


def pair(who: Party, n: int, vault: bytes, *, r: str = R, by: Party | None = None) -> list[Any]:
    """[n, r, signature] of a device's counter."""
    said = b"ipfsmem/v1/seen\0" + vault + bytes.fromhex(who.id) + n.to_bytes(8, "big") + bytes.fromhex(r)
    return [n, r, b64((by or who).signer.sign(said))]


def text_of(commit: dict[str, Any]) -> bytes:
    return json.dumps(commit, sort_keys=True, separators=(",", ":")).encode()


class Maker:
    """Heads of one vault."""

    def __init__(self, *, plain: bool) -> None:
        self.ring = ring(plain=plain)
        self.plain, self.vault = plain, PLAIN if plain else VAULT
        self.keyring = self.ring.serialise()
        self.keys = self.ring.keys
        self.good = {
            "c": 5,
            "ctx": {LAPTOP.id: pair(LAPTOP, 12, self.vault), PHONE.id: pair(PHONE, 4, self.vault)},
            "dev": LAPTOP.id,
            "ek": "" if plain else self.keys[-1].id,
            "h": hlc(20),
            "prev": sorted(sha256(bytes([n])).hexdigest() for n in range(3)),
            "ring": sha256(self.keyring).hexdigest(),
            "state": empty_tree().digest.hex(),
            "v": 1,
            "vault": self.vault.hex(),
        }

    def head(
        self,
        commit: dict[str, Any] | bytes,
        *,
        by: Party = LAPTOP,
        key: int = -1,
        kind: int = COMMIT,
        ctx: str = "",
        domain: bytes = b"ipfsmem/v1/commit\0",
        signature: bytes | None = None,
    ) -> bytes:
        """The file `head.ipm` or `commit.json`."""
        text = commit if isinstance(commit, bytes) else text_of(commit)
        signature = by.signer.sign(domain + text) if signature is None else signature
        if self.plain:
            return text_of({"k": b64(text), "s": b64(signature)})
        return Sealer(self.keys[key], self.vault).seal(kind, ctx, signature + text)

    def but(self, **fields: Any) -> dict[str, Any]:
        return {**self.good, **fields}

    def valid(self) -> list[tuple[str, bytes]]:
        rows = [
            ("a commit", self.head(self.good)),
            ("the first one of a device that wrote nothing", self.head(self.but(c=1, ctx={}, prev=[]))),
            ("by another writer", self.head(self.but(dev=PHONE.id), by=PHONE)),
            ("by a root", self.head(self.but(dev=ROOT.id), by=ROOT)),
            ("the greatest number", self.head(self.but(c=2**53 - 1))),
            (
                "a counter of a revoked device",
                self.head(self.but(ctx={**self.good["ctx"], LOST.id: pair(LOST, 3, self.vault)})),
            ),
            (
                "a counter of an id that the ring has no key of: it is left out",
                self.head(self.but(ctx={**self.good["ctx"], STRANGER.id: pair(STRANGER, 7, self.vault)})),
            ),
        ]
        if not self.plain:
            rows.append(
                ("under an older key", self.head(self.but(ek=self.keys[0].id), key=0)),
            )
        return rows

    def refused(self) -> list[tuple[str, str, bytes]]:
        """Yield (name, kind of error, file)."""
        good, text = self.good, text_of(self.good)
        pairs = good["ctx"]
        raw = text.decode()

        def with_pair(who: Party, said: list[Any]) -> bytes:
            return self.head(self.but(ctx={**pairs, who.id: said}))

        laptop = pairs[LAPTOP.id]
        other = bytes(32) if self.plain else self.vault
        rows = [
            ("signed by another member", "signature", self.head(good, by=PHONE)),
            ("signed by a stranger", "signature", self.head(good, by=STRANGER)),
            ("a flipped bit in the signature", "signature", self.head(good, signature=flip(LAPTOP.signer.sign(b"ipfsmem/v1/commit\0" + text)))),
            ("signed without the domain", "signature", self.head(good, domain=b"")),
            ("signed as a value", "signature", self.head(good, domain=b"ipfsmem/v1/value\0")),
            ("by a stranger", "member", self.head(self.but(dev=STRANGER.id), by=STRANGER)),
            ("by a reader", "member", self.head(self.but(dev=GUEST.id), by=GUEST)),
            ("by a revoked device", "member", self.head(self.but(dev=LOST.id), by=LOST)),
            ("of another vault", "format", self.head(self.but(vault="00" * 16))),
            ("names another ring", "format", self.head(self.but(ring="00" * 32))),
            ("a counter signed by somebody else", "signature", with_pair(PHONE, pair(PHONE, 9, self.vault, by=LAPTOP))),
            ("a counter signed for another number", "signature", with_pair(PHONE, [5, *pairs[PHONE.id][1:]])),
            ("a counter signed with another r", "signature", with_pair(PHONE, [4, "ff" * 8, pairs[PHONE.id][2]])),
            ("a counter signed in another vault", "signature", with_pair(PHONE, pair(PHONE, 4, bytes(16)))),
            ("a counter of nothing", "format", with_pair(LAPTOP, [0, *laptop[1:]])),
            ("a counter beyond 2^53-1", "format", with_pair(LAPTOP, [2**53, *laptop[1:]])),
            ("a counter with a short r", "format", with_pair(LAPTOP, [12, R[:-2], laptop[2]])),
            ("a counter with r in capitals", "format", with_pair(LAPTOP, [12, "AB" * 8, laptop[2]])),
            ("a counter without its signature", "format", with_pair(LAPTOP, laptop[:2])),
            ("a signature of a counter in another spelling of its bytes", "format", with_pair(LAPTOP, [*laptop[:2], laptop[2][:-1] + chr(ord(laptop[2][-1]) + 1)])),
            ("a device id in capitals", "format", self.head(self.but(dev=LAPTOP.id.upper()))),
            ("number 0", "format", self.head(self.but(c=0))),
            ("number 2^53", "format", self.head(self.but(c=2**53))),
            ("a number with a fraction", "format", self.head(raw.replace('"c":5', '"c":5.0').encode())),
            ("prev is not sorted", "format", self.head(self.but(prev=good["prev"][::-1]))),
            ("prev names one twice", "format", self.head(self.but(prev=[good["prev"][0]] * 2))),
            ("prev holds half a hash", "format", self.head(self.but(prev=["ab" * 16]))),
            ("version 2", "format", self.head(self.but(v=2))),
            ("a clock of 15 digits", "format", self.head(self.but(h=good["h"][1:]))),
            ("a state hash in capitals", "format", self.head(self.but(state=good["state"].upper()))),
            ("an unknown field", "format", self.head(self.but(z=1))),
            ("a missing field", "format", self.head({k: v for k, v in good.items() if k != "prev"})),
            ("a field twice", "format", self.head(raw.replace('{"c":5,', '{"c":5,"c":5,').encode())),
            ("fields in another order", "format", self.head(json.dumps(dict(reversed(good.items())), separators=(",", ":")).encode())),
            ("white space", "format", self.head(raw.replace('"c":5', '"c": 5').encode())),
            ("an LF at the end", "format", self.head(text + b"\n")),
            ("no JSON", "format", self.head(b"commit")),
            ("a list", "format", self.head(b"[]")),
            ("nothing signed", "format", self.head(b"")),
            ("longer than 384 KiB", "limit", self.head(self.but(prev=sorted(sha256(b"%d" % n).hexdigest() for n in range(7_000))))),
        ]  # fmt: skip
        if self.plain:
            file = self.head(good).decode()
            return [
                *rows,
                ("names a key", "format", self.head(self.but(ek="00" * 8))),
                ("white space around the file", "format", (file + "\n").encode()),
                ("a field more in the file", "format", (file[:-1] + ',"v":1}').encode()),
                ("base64 with padding", "format", file.replace('","s', '==","s').encode()),
                ("a signature of 63 bytes", "format", self.head(good, signature=bytes(63))),
                ("a sealed head", "format", sealed_head()),
            ]
        strange = Sealer(epoch_key(1, bytes(32), other), other)
        return [
            *rows,
            ("under a key that is not in the ring", "open", strange.seal(COMMIT, "", bytes(64) + text)),
            ("says another key than it is under", "format", self.head(self.but(ek=self.keys[0].id))),
            ("says no key", "format", self.head(self.but(ek=""))),
            ("sealed as a state node", "open", self.head(good, kind=STATE_NODE)),
            ("sealed with a context", "open", self.head(good, ctx="head")),
            ("a flipped bit in the file", "open", flip(self.head(good))),
            ("a byte more in the file", "open", self.head(good) + b"\0"),
            (
                "shorter than a signature",
                "format",
                Sealer(self.keys[-1], self.vault).seal(COMMIT, "", bytes(63)),
            ),
            ("a plain head", "open", Maker(plain=True).head(good)),
            ("empty", "open", b""),
        ]


def sealed_head() -> bytes:
    maker = Maker(plain=False)
    return maker.head(maker.good)


def flip(data: bytes) -> bytes:
    return data[:-1] + bytes((data[-1] ^ 1,))


def make() -> dict[str, Any]:
    """The content of the file."""
    found: dict[str, Any] = {
        "about": "Heads, format sections 6 and 7: the file (base64url) beside the keyring.json of its vault, opened by who has the box"
        " secret. `valid`: the JSON of the commit and its SHA-256; `lacking`: ids in ctx of which the ring has no key. `refused`: why is one"
        " of open, format, limit, member, signature. The state that a commit names is not looked at.",
        "box_secret": PHONE.box_secret.hex(),
    }
    for mode, plain in (("sealed", False), ("plain", True)):
        maker = Maker(plain=plain)
        valid = []
        for name, data in maker.valid():
            if plain:
                text = unb64(json.loads(data)["k"])
            else:
                text = opened(maker, data)
            lacking = [STRANGER.id] if STRANGER.id in json.loads(text)["ctx"] else []
            valid.append(
                {
                    "name": name,
                    "head": b64(data),
                    "commit": text.decode(),
                    "digest": sha256(text).hexdigest(),
                    "lacking": lacking,
                }
            )
        found[mode] = {
            "vault": maker.vault.hex(),
            "keyring": maker.keyring.decode(),
            "valid": valid,
            "refused": [
                {
                    "name": name,
                    "why": why,
                    **({"head": b64(data)} if len(data) < 200_000 else {"zeros": len(data)}),
                }
                for name, why, data in maker.refused()
            ],
        }
    return found


def opened(maker: Maker, data: bytes) -> bytes:
    from ipfsmem.errors import OpenError

    for key in maker.keys:
        try:
            return Sealer(key, maker.vault).open(COMMIT, "", data)[64:]
        except OpenError:
            continue
    raise AssertionError


def unb64(text: str) -> bytes:
    from base64 import urlsafe_b64decode

    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


if __name__ == "__main__":
    OUT.write_text(json.dumps(make(), indent=1) + "\n", "utf-8")
