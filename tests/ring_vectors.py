"""Builds fixtures/vectors/ring.json: `python -m tests.ring_vectors` writes it, a test compares it.

Everything follows from fixed seeds; slots are sealed boxes whose ephemeral secret is SHA-256("ring vectors" | slot text
| box public key), so that another implementation can also make these rings, not only read them.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from ipfsmem import canonical
from ipfsmem.seal.objects import RING_BODY, Sealer, epoch_key
from ipfsmem.seal.ring import Ring, parse_keyring
from ipfsmem.seal.ring_ops import create, enrol, request, revoke, rotate, successor
from ipfsmem.seal.statements import Statement, envelope
from tests.ring_lab import (
    RECOVERY,
    RECOVERY_KEYS,
    ROOT,
    ROOT_KEYS,
    VAULT,
    Party,
    ek,
    fixed_box,
    hlc,
    party,
    says_member,
    says_revoked,
    second_wallet,
)

FILE = Path(__file__).parent.parent / "fixtures" / "vectors" / "ring.json"
LAPTOP, PHONE, GUEST = party("laptop"), party("phone"), party("guest")
RESTORED = party("laptop restored", box_of=LAPTOP)
ADMIN, OTHER = second_wallet("second wallet"), second_wallet("third wallet")
PARTIES = [ROOT, RECOVERY, LAPTOP, PHONE, GUEST, RESTORED, ADMIN, OTHER]


def _enrol(ring: Ring, by: Party, who: Party, role: Any, n: int) -> Ring:
    return enrol(ring, by.signer, who.device, role, since=hlc(n), box=fixed_box)


def _revoke(ring: Ring, by: Party, who: Party, n: int, key: int) -> Ring:
    return revoke(ring, by.signer, who.id, at=hlc(n), counters={who.id: n}, ek=ek(key), box=fixed_box)


def rings() -> dict[str, Ring]:
    """Named rings, in the order in which a vault might grow."""
    made: dict[str, Ring] = {}
    first = made["new vault: wallet, recovery words, laptop"] = create(
        ROOT_KEYS, RECOVERY_KEYS, LAPTOP.device, ek=ek(1), since=hlc(1), box=fixed_box
    )
    admin = made["second wallet as admin, by the wallet"] = _enrol(first, ROOT, ADMIN, "admin", 2)
    phone = made["phone as writer, by the second wallet"] = _enrol(admin, ADMIN, PHONE, "writer", 3)
    guest = made["guest as reader, by the recovery words"] = _enrol(admin, RECOVERY, GUEST, "reader", 4)
    both = made["both enrolments joined"] = phone.join(guest)
    restored = made["laptop names its successor"] = successor(
        both, LAPTOP.signer, RESTORED.device.sign, since=hlc(5), label="laptop restored"
    )
    rotated = made["rotated by the wallet"] = rotate(restored, ROOT.signer, ek(2), box=fixed_box)
    twin = made["rotated at the same time by the second wallet"] = rotate(
        restored, ADMIN.signer, ek(3), box=fixed_box
    )
    met = made["both rotations joined"] = rotated.join(twin)
    made["laptop chain revoked by the wallet"] = _revoke(met, ROOT, LAPTOP, 6, 4)
    made["second wallet revoked by the wallet"] = _revoke(met, ROOT, ADMIN, 7, 5)
    made["guest revoked by the second wallet"] = _revoke(met, ADMIN, GUEST, 8, 6)
    made["plain memory: wallet, recovery words, laptop"] = create(
        ROOT_KEYS, RECOVERY_KEYS, LAPTOP.device, ek=None, since=hlc(1)
    )
    return made


JOINS = [
    (
        "phone as writer, by the second wallet",
        "guest as reader, by the recovery words",
        "both enrolments joined",
    ),
    ("rotated by the wallet", "rotated at the same time by the second wallet", "both rotations joined"),
    ("both rotations joined", "new vault: wallet, recovery words, laptop", "both rotations joined"),
    (
        "laptop chain revoked by the wallet",
        "second wallet as admin, by the wallet",
        "laptop chain revoked by the wallet",
    ),
]


def view_of(ring: Ring) -> dict[str, Any]:
    """What every implementation must conclude from a ring."""
    view = ring.view
    return {
        "anchors": [anchor.hex() for anchor in view.anchors()],
        "cutoffs": dict(sorted(view.cutoffs.items())),
        "holders": sorted(view.holders),
        "kept_statement_hashes": [st.hash for st in ring.statements],
        "members": {
            one.id: {
                "anchor": one.anchor.hex() if one.anchor else None,
                "box": one.box.hex(),
                "label": one.label,
                "rank": ["root", "admin", "successor"][one.rank],
                "role": one.role,
                "sign": one.sign.hex(),
                "successor_of": one.successor_of,
            }
            for one in view.members.values()
        },
        "next_epoch": view.next_epoch,
        "revoked": sorted(view.revoked),
        "shut_out": sorted(view.shut_out),
        "roots": [root.hex() for root in view.roots],
        "seals": list(view.seals) if view.seals else None,
        "sign_keys": {one: [key.hex() for key in keys] for one, keys in sorted(view.keys_of.items())},
    }


def evaluations(made: dict[str, Ring]) -> list[dict[str, Any]]:
    """Sets of statements that no keyring.json need carry: what is dropped, what counts, what seals."""
    met = made["both rotations joined"]
    by_wallet = made["laptop chain revoked by the wallet"]
    by_admin = made["guest revoked by the second wallet"]
    base = list(met.statements)
    forks = sorted(
        (says_member(PHONE, party(f"fork {n}", box_of=PHONE)) for n in range(3)), key=lambda st: st.hash
    )
    chain = [PHONE, *(party(f"chain {n}", box_of=PHONE) for n in range(10))]
    cases: list[tuple[str, list[Statement]]] = [
        ("concurrent revocations leave no key that may seal", [*by_wallet.statements, *by_admin.statements]),
        (
            "a stranger's statements are dropped",
            [*base, says_member(GUEST, PHONE), says_revoked(PHONE, GUEST.id)],
        ),
        ("an admin cannot enrol an admin", [*base, says_member(ADMIN, GUEST, "admin", since=99)]),
        (
            "an admin cannot revoke an admin",
            [*base, says_member(ROOT, OTHER, "admin"), says_revoked(ADMIN, OTHER.id)],
        ),
        ("nobody revokes a root", [*base, says_revoked(ADMIN, RECOVERY.id), says_revoked(ROOT, RECOVERY.id)]),
        (
            "a root's word goes before an admin's later one",
            [*base, says_member(ADMIN, LAPTOP, "reader", since=99)],
        ),
        ("of two successors the least hash stays", [*base, *forks]),
        (
            "a chain has at most eight successors",
            [*base, *(says_member(a, b) for a, b in itertools.pairwise(chain))],
        ),
        ("a successor with another box key is dropped", [*base, says_member(PHONE, party("stranger"))]),
        (
            "a reader's successor is a reader",
            [*base, says_member(GUEST, party("guest again", box_of=GUEST), "writer")],
        ),
        (
            "nobody draws a member into its chain",
            [*base, says_member(GUEST, PHONE, box=GUEST.device.box), says_revoked(ROOT, GUEST.id)],
        ),
        (
            "a revoked admin's enrolment outside keep does not count, its key stays known",
            [*base, says_revoked(ROOT, ADMIN.id, keep=()), says_member(ADMIN, OTHER)],
        ),
        (
            "of a signer's revokes of one id the least hash stays",
            [*base, *(says_revoked(ROOT, GUEST.id, n=n) for n in (3, 4, 5))],
        ),
    ]
    return [
        {"name": name, "statements": items, "view": view_of(Ring(VAULT, items, ()))} for name, items in cases
    ]


def refused(made: dict[str, Ring]) -> list[dict[str, str]]:
    """keyring.json files that must be refused, and how the laptop's key is of no help."""
    good = made["new vault: wallet, recovery words, laptop"]
    data = json.loads(good.serialise())
    first, second = data["open"][0], data["open"][1]
    key = good.view.sealing
    assert key is not None

    def shown(**changes: Any) -> str:
        return canonical.encode({**data, **changes}).decode()

    def sealed(body: Any) -> str:
        raw = body if isinstance(body, bytes) else canonical.encode(body)
        return shown(body=canonical.b64(Sealer(key, VAULT).seal(RING_BODY, b"", raw)))

    inner = [{"k": envelope(st).k, "s": envelope(st).s} for st in good.statements if not st.public]
    other = canonical.b64(ek(50))
    flipped = {"k": first["k"], "s": second["s"]}
    return [
        {"name": "unknown field", "error": "format", "keyring": shown(extra=1)},
        {"name": "white space", "error": "format", "keyring": json.dumps(data)},
        {"name": "version 2", "error": "format", "keyring": shown(v=2)},
        {"name": "another vault's tag", "error": "format", "keyring": shown(vault="00" * 16)},
        {"name": "upper-case vault tag", "error": "format", "keyring": shown(vault=data["vault"].upper())},
        {"name": "no genesis", "error": "format", "keyring": shown(open=[])},
        {"name": "open statements out of order", "error": "format", "keyring": shown(open=[second, first])},
        {"name": "a statement twice", "error": "format", "keyring": shown(open=[first, first, second])},
        {
            "name": "a signature of another statement",
            "error": "signature",
            "keyring": shown(open=[flipped, second]),
        },
        {
            "name": "a padded signature",
            "error": "format",
            "keyring": shown(open=[{**first, "s": first["s"] + "=="}, second]),
        },
        {
            "name": "a member statement in the open part",
            "error": "format",
            "keyring": shown(open=sorted_by_hash([first, second, inner[0]])),
        },
        {
            "name": "an epoch statement in the body",
            "error": "format",
            "keyring": sealed({"eks": [], "st": sorted_by_hash([*inner, second])}),
        },
        {"name": "body out of order", "error": "format", "keyring": sealed({"eks": [], "st": inner[::-1]})},
        {
            "name": "body with an unknown field",
            "error": "format",
            "keyring": sealed({"eks": [], "st": inner, "x": 1}),
        },
        {"name": "body that is not JSON", "error": "format", "keyring": sealed(b"hello")},
        {
            "name": "an epoch key of 31 bytes",
            "error": "format",
            "keyring": sealed({"eks": [[1, canonical.b64(bytes(31))]], "st": inner}),
        },
        {
            "name": "an epoch key twice",
            "error": "format",
            "keyring": sealed({"eks": [[3, other], [3, other]], "st": inner}),
        },
        {
            "name": "an epoch key of epoch 0",
            "error": "format",
            "keyring": sealed({"eks": [[0, other]], "st": inner}),
        },
        {
            "name": "an epoch beyond 32 bits",
            "error": "format",
            "keyring": sealed({"eks": [[2**32, other]], "st": inner}),
        },
        {
            "name": "body sealed for another type",
            "error": "open",
            "keyring": shown(
                body=canonical.b64(
                    Sealer(key, VAULT).seal(2, b"", canonical.encode({"eks": [], "st": inner}))
                )
            ),
        },
        {
            "name": "body under a key that nobody was given",
            "error": "open",
            "keyring": shown(
                body=canonical.b64(Sealer(epoch_key(1, ek(60), VAULT), VAULT).seal(RING_BODY, b"", b"{}"))
            ),
        },
        {
            "name": "a plain ring with epochs",
            "error": "format",
            "keyring": shown(body={"eks": [], "st": inner}),
        },
    ]


def sorted_by_hash(items: list[dict[str, str]]) -> list[dict[str, str]]:
    import hashlib

    return sorted(items, key=lambda item: hashlib.sha256(canonical.unb64(item["k"], "")).hexdigest())


def build() -> dict[str, Any]:
    made = rings()
    cases = evaluations(made)
    table = {st.hash: envelope(st) for case in cases for st in case["statements"]}
    for case in cases:
        case["statements"] = [st.hash for st in case["statements"]]
    return {
        "about": "Key ring, format section 4. Keys and hashes hex, slots and sealed bytes base64url. `keyring` is the text of "
        "keyring.json; every party named in opened_by opens it with its box secret. `view` is the evaluation. "
        "An evaluation names its statements by hash; keep and read them in any order. A slot's ephemeral secret is SHA-256('ring vectors' | slot text | box public key).",
        "vault": VAULT.hex(),
        "parties": [
            {
                "name": one.name,
                "id": one.id,
                "sign_seed": one.seed.hex(),
                "sign_public": one.key,
                "box_secret": one.box_secret.hex(),
                "box_public": one.device.box.hex(),
                "anchor_public": one.head.hex() if one.head else None,
            }
            for one in PARTIES
        ],
        "rings": [
            {
                "name": name,
                "keyring": ring.serialise().decode(),
                "eks": [{"epoch": key.epoch, "id": key.id, "key": key.key.hex()} for key in ring.keys],
                "opened_by": [one.name for one in PARTIES if not ring.plain and one.id in ring.view.members],
                "not_opened_by": [one.name for one in PARTIES if one.id in ring.view.revoked],
                "view": view_of(ring),
            }
            for name, ring in made.items()
        ],
        "joins": [{"a": a, "b": b, "result": result} for a, b, result in JOINS],
        "statements": {name: {"k": item.k, "s": item.s} for name, item in sorted(table.items())},
        "evaluations": cases,
        "refused_keyrings": refused(made),
        "request": {
            "device": GUEST.name,
            "text": request(VAULT, GUEST.device).decode(),
        },
    }


def main() -> None:
    FILE.write_text(json.dumps(build(), indent=1, ensure_ascii=False) + "\n")
    for ring in rings().values():
        parse_keyring(ring.serialise())


if __name__ == "__main__":
    main()
