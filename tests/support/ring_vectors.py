"""Builds fixtures/vectors/ring.json: `python -m tests.support.ring_vectors` writes it, a test compares it.

Everything follows from fixed seeds; slots are sealed boxes whose ephemeral secret is SHA-256("ring
vectors" | slot text | box public key), so that another implementation can also make these rings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem import canonical
from ipfsmem.ring.keyring import Ring, parse_keyring, slot_text
from ipfsmem.ring.operations import add_successor, create, enrolment_request, revoke, rotate
from ipfsmem.ring.statements import Statement, envelope
from ipfsmem.seal.objects import RING_BODY, Sealer, epoch_key
from tests.support.ring_lab import (
    PLAIN,
    RECOVERY,
    RECOVERY_KEYS,
    ROOT,
    ROOT_KEYS,
    VAULT,
    Party,
    ek,
    ek_of,
    enrolled,
    enrolment_of,
    fixed_box,
    hlc,
    party,
    says_epoch,
    says_genesis,
    says_heir,
    says_member,
    says_revoked,
    second_wallet,
)

FILE = Path(__file__).parent.parent.parent / "fixtures" / "vectors" / "ring.json"
LAPTOP, PHONE, GUEST = party("laptop"), party("phone"), party("guest")
RESTORED = party("laptop restored", box_of=LAPTOP)
AGAIN = party("laptop restored again", box_of=LAPTOP)
ADMIN, OTHER = second_wallet("second wallet"), second_wallet("third wallet")
WORDS = second_wallet("later words")
PARTIES = [ROOT, RECOVERY, LAPTOP, PHONE, GUEST, RESTORED, AGAIN, ADMIN, OTHER]


def _revoke(ring: Ring, by: Party, who: Party, n: int, key: int) -> Ring:
    return revoke(ring, by.signer, who.id, at=hlc(n), counters={who.id: n}, ek=ek(key), box=fixed_box)


def rings() -> dict[str, Ring]:
    """Return named rings in the order in which a vault might grow."""
    made: dict[str, Ring] = {}
    first = made["new vault: wallet, recovery words, laptop"] = create(
        ROOT_KEYS, RECOVERY_KEYS, LAPTOP.device, ek=ek(1), since=hlc(1), box=fixed_box
    )
    admin = made["second wallet as admin, by the wallet"] = enrolled(first, ROOT, ADMIN, "admin", 2)
    phone = made["phone as writer, by the second wallet"] = enrolled(admin, ADMIN, PHONE, "writer", 3)
    guest = made["guest as reader, by the recovery words"] = enrolled(admin, RECOVERY, GUEST, "reader", 4)
    both = made["both enrolments joined"] = phone.join(guest)
    restored = made["laptop names its successor"] = add_successor(
        both, LAPTOP.signer, RESTORED.signer, LAPTOP.id, since=hlc(5), label="laptop restored"
    )
    restored = made["the same snapshot started once more"] = restored.join(
        add_successor(
            both, LAPTOP.signer, AGAIN.signer, LAPTOP.id, since=hlc(5), label="laptop restored again"
        )
    )
    rotated = made["rotated by the wallet"] = rotate(restored, ROOT.signer, ek(2), box=fixed_box)
    twin = made["rotated at the same time by the second wallet"] = rotate(
        restored, ADMIN.signer, ek(3), box=fixed_box
    )
    met = made["both rotations joined"] = rotated.join(twin)
    made["laptop and its successors revoked by the wallet"] = _revoke(met, ROOT, LAPTOP, 6, 4)
    made["second wallet revoked by the wallet"] = _revoke(met, ROOT, ADMIN, 7, 5)
    guest = made["guest revoked by the second wallet"] = _revoke(met, ADMIN, GUEST, 8, 6)
    gone = made[
        "then the key changed by the wallet: the guest is out as long as that wallet's word counts"
    ] = rotate(guest, ROOT.signer, ek(7), box=fixed_box)
    made["and the second wallet revoked: what it said stands, the guest is out"] = _revoke(
        gone, ROOT, ADMIN, 9, 8
    )
    made["or revoked with nothing of it standing: the guest is back, what it let in is not"] = revoke(
        gone, ROOT.signer, ADMIN.id, at=hlc(9), counters={}, ek=ek(8), box=fixed_box, cascade=True
    )
    made["or the guest revoked by the wallet too: then it is for good"] = _revoke(gone, ROOT, GUEST, 9, 8)
    made["plain memory: wallet, recovery words, laptop"] = create(
        ROOT_KEYS, RECOVERY_KEYS, LAPTOP.device_in(PLAIN), ek=None, since=hlc(1)
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
        "laptop and its successors revoked by the wallet",
        "second wallet as admin, by the wallet",
        "laptop and its successors revoked by the wallet",
    ),
]


def view_of(ring: Ring) -> dict[str, Any]:
    """Return what every implementation must conclude from a ring."""
    view = ring.view
    return {
        "anchors": [anchor.hex() for anchor in view.anchors()],
        "asked": sorted(view.must_exclude),
        "cutoffs": dict(sorted(view.cutoffs.items())),
        "ek_names": sorted(view.names),
        "families": dict(sorted(view.families.items())),
        "given_up": sorted(one for one in view.families if view.given_up(one)),
        "holders": sorted(view.holders),
        "kept_statement_hashes": [st.hash for st in ring.statements],
        "members": {
            one.id: {
                "anchor": one.anchor.hex() if one.anchor else None,
                "box": one.box.hex(),
                "family": one.family,
                "kind": one.kind,
                "label": one.label,
                "rank": ["root", "admin", "successor"][one.rank],
                "role": one.role,
                "sign": one.sign.hex(),
            }
            for one in view.members.values()
        },
        "next_epoch": view.next_epoch,
        "out": sorted(view.out),
        "put_out_by": {one: sorted(admins) for one, admins in sorted(view.revoked_by.items())},
        "ranks": {one: view.rank_of(one) for one in sorted({*view.families, *view.ranks})},
        "persons": dict(sorted(view.owners.items())),
        "revoked": sorted(view.revoked),
        "roots": [root.hex() for root in view.roots],
        "seals": list(view.seals) if view.seals else None,
        "sign_keys": {one: [key.hex() for key in keys] for one, keys in sorted(view.keys_of.items())},
    }


def _later(than: Statement) -> Statement:
    """Return an admin's enrolment of the phone as somebody else's, with a greater hash than this."""
    found = (says_member(ADMIN, PHONE, since=n, person="12" * 8) for n in range(99))
    return next(st for st in found if st.hash > than.hash)


def evaluations(made: dict[str, Ring]) -> list[dict[str, Any]]:
    """Return sets of statements that no keyring.json need carry: which are dropped, are valid, or seal."""
    met = made["both rotations joined"]
    by_wallet = made["laptop and its successors revoked by the wallet"]
    by_admin = made["guest revoked by the second wallet"]
    base = list(met.statements)
    phone, laptop = enrolment_of(met, PHONE), enrolment_of(met, LAPTOP)
    heirs = [says_heir(PHONE, party(f"heir {n}"), phone) for n in range(10)]
    late = says_member(ADMIN, OTHER)
    names = [key.id for key in met.keys]
    key, greater = ek_of(9, 9), ek_of(10, 10)
    everyone = [LAPTOP, PHONE, GUEST, ADMIN]
    silent = says_epoch(ROOT, greater, everyone)
    naming = says_epoch(ROOT, greater, everyone, old=[*names, key.id])
    twin = says_epoch(RECOVERY, greater, everyone, old=[*names, key.id])
    by_second = says_epoch(ADMIN, key, everyone, old=names)
    cases: list[tuple[str, list[Statement]]] = [
        ("concurrent revocations leave no key that may seal", [*by_wallet.statements, *by_admin.statements]),
        (
            "a stranger's statements are dropped",
            [*base, says_member(GUEST, PHONE), says_revoked(PHONE, GUEST), says_epoch(GUEST, key, everyone)],
        ),
        ("an admin cannot enrol an admin", [*base, says_member(ADMIN, GUEST, "admin", since=99)]),
        (
            "an admin cannot revoke an admin: it does not count, and stays",
            [*base, says_member(ROOT, OTHER, "admin"), says_revoked(ADMIN, OTHER)],
        ),
        ("nobody revokes a root", [*base, says_revoked(ADMIN, RECOVERY), says_revoked(ROOT, RECOVERY)]),
        (
            "nobody else enrols a root",
            [*base, says_member(ADMIN, RECOVERY), says_member(ROOT, RECOVERY, "admin")],
        ),
        (
            "a root's word goes before an admin's later one",
            [*base, says_member(ADMIN, LAPTOP, "reader", since=99)],
        ),
        ("a root makes a writer a reader", [*base, says_member(ROOT, PHONE, "reader", since=99)]),
        ("of ten successors under one enrolment the eight least hashes stay", [*base, *heirs]),
        (
            "a successor with another box key does not count, and stays",
            [*base, says_heir(PHONE, party("heir 0"), phone, box=GUEST)],
        ),
        (
            "a successor under somebody else's enrolment is dropped",
            [*base, says_heir(PHONE, party("heir 0"), laptop)],
        ),
        (
            "a successor of a root is dropped",
            [*base, says_heir(ROOT, party("heir 0"), enrolment_of(met, ROOT))],
        ),
        (
            "a reader's successor is a reader",
            [*base, says_heir(GUEST, party("guest again"), enrolment_of(met, GUEST))],
        ),
        (
            "an id that is enrolled is nobody's successor",
            [*base, says_heir(GUEST, PHONE, enrolment_of(met, GUEST)), says_revoked(ROOT, GUEST)],
        ),
        (
            "who gives up the id of somebody else says nothing",
            [*base, says_heir(GUEST, party("guest again"), enrolment_of(met, GUEST), was=PHONE.id)],
        ),
        (
            "a root's revoke drops enrolments and successors, and has their keys",
            [*base, says_revoked(ROOT, LAPTOP, n=7, heirs=[RESTORED])],
        ),
        ("an admin's revoke drops nothing", [*base, says_revoked(ADMIN, LAPTOP, n=7)]),
        (
            "the least of several counters counts",
            [*base, *(says_revoked(ROOT, GUEST, n=n) for n in (5, 3, 4))],
        ),
        (
            "a revoked admin's enrolment that is not listed is dropped",
            [*base, says_revoked(ROOT, ADMIN), late],
        ),
        (
            "listed by the one root and not by the other it is dropped too",
            [*base, late, says_revoked(ROOT, ADMIN, keep=[late.hash]), says_revoked(RECOVERY, ADMIN)],
        ),
        (
            "listed by both it stays, with the phone's successor",
            [
                *base,
                late,
                heirs[0],
                *(says_revoked(by, ADMIN, keep=[late.hash, phone]) for by in (ROOT, RECOVERY)),
            ],
        ),
        (
            "whom a revoked admin let in as its own person keeps that person, for the revoke says whose the admin was",
            [
                *base,
                *(one := [says_member(ROOT, WORDS, "admin"), says_member(WORDS, OTHER)]),
                says_revoked(ROOT, WORDS, keep=[one[1].hash]),
            ],
        ),
        (
            "whom a revoked admin let in as somebody else's is nobody's",
            [
                *base,
                *(two := [says_member(ROOT, WORDS, "admin"), says_member(WORDS, OTHER)]),
                says_revoked(ROOT, WORDS, keep=[two[1].hash], person="12" * 8),
            ],
        ),
        (
            "of several revokes of that admin the least person counts",
            [
                *base,
                *(three := [says_member(ROOT, WORDS, "admin"), says_member(WORDS, OTHER)]),
                says_revoked(ROOT, WORDS, keep=[three[1].hash], at=1),
                says_revoked(RECOVERY, WORDS, keep=[three[1].hash], at=2, person="f" * 16),
            ],
        ),
        (
            "a root's revoke of a root stays and changes neither its person nor its role",
            [*base, says_revoked(ROOT, RECOVERY, person="12" * 8), says_revoked(RECOVERY, ROOT, rank=1)],
        ),
        (
            "a counter of 0 in a revoke is the same as none",
            [*base, says_revoked(ROOT, LAPTOP, n={LAPTOP.id: 0}, zeros=True)],
        ),
        ("with the phone's enrolment its successor goes", [*base, heirs[0], says_revoked(ROOT, ADMIN)]),
        ("a revoked admin revokes nobody", [*base, says_revoked(ROOT, ADMIN), says_revoked(ADMIN, LAPTOP)]),
        (
            "an epoch for somebody whom it calls revoked is dropped",
            [*base, says_epoch(ROOT, key, everyone, [PHONE])],
        ),
        ("an epoch against its own signer is dropped", [*base, says_epoch(ADMIN, key, [LAPTOP], [ADMIN])]),
        (
            "an epoch is believed about a revoke that is not here",
            [*base, says_epoch(ROOT, key, [LAPTOP], [PHONE])],
        ),
        (
            "a root's epoch is believed about whom an admin put out, as long as the admin's word counts",
            [*base, says_epoch(ROOT, key, [LAPTOP, ADMIN], while_={ADMIN: [PHONE]})],
        ),
        (
            "when a root revokes that admin it is believed no more",
            [
                *base,
                says_epoch(ROOT, key, [LAPTOP, ADMIN], while_={ADMIN: [GUEST]}),
                says_revoked(ROOT, ADMIN),
            ],
        ),
        (
            "an admin's epoch is believed about whom others put out, in its own name",
            [*base, says_epoch(ADMIN, key, [LAPTOP, ADMIN], while_={OTHER: [PHONE]})],
        ),
        ("nobody puts out an admin so", [*base, says_epoch(ROOT, key, [LAPTOP], while_={OTHER: [ADMIN]})]),
        (
            "an epoch for somebody whom it says an admin put out is dropped",
            [*base, says_epoch(ROOT, key, everyone, while_={ADMIN: [PHONE]})],
        ),
        (
            "a root's later epoch that does not know of an admin's revoke leaves the one that does",
            [
                *base,
                says_epoch(ROOT, key, [LAPTOP, GUEST, ADMIN], while_={ADMIN: [PHONE]}, old=names),
                naming,
            ],
        ),
        (
            "one that knows it by a root's word outdoes it",
            [
                *base,
                says_epoch(ROOT, key, [LAPTOP, GUEST, ADMIN], while_={ADMIN: [PHONE]}, old=names),
                says_epoch(ROOT, greater, [LAPTOP, GUEST, ADMIN], [PHONE], old=[*names, key.id]),
            ],
        ),
        (
            "a root's revoke says who had let its target in, and an admin's gives its target no key",
            [*base, says_revoked(ROOT, PHONE, rank=1), says_revoked(ADMIN, party("heir 0"))],
        ),
        (
            "an epoch for those whom an admin let in goes when nothing of that admin stands",
            [*base, says_epoch(ROOT, key, [PHONE], old=names, of=[ADMIN]), says_revoked(ROOT, ADMIN)],
        ),
        (
            "and stays as long as something does",
            [
                *base,
                says_epoch(ROOT, key, [PHONE], old=names, of=[ADMIN, OTHER]),
                says_revoked(ROOT, ADMIN, keep=[phone]),
            ],
        ),
        (
            "of two revokes that let different things stand nothing does",
            [
                *base,
                says_epoch(ROOT, key, [PHONE], old=names, of=[ADMIN, OTHER]),
                says_revoked(ROOT, ADMIN, keep=[phone]),
                says_revoked(RECOVERY, ADMIN, keep=[laptop]),
            ],
        ),
        (
            "a root's revoke that lets less stand and says the rest as well takes the place of another root's",
            [
                *base,
                says_revoked(ROOT, ADMIN, keep=[phone, laptop], n=3),
                says_revoked(RECOVERY, ADMIN, keep=[phone], n=2),
            ],
        ),
        (
            "one that accepts more, knows fewer successors or lets in by a lesser hand does not",
            [
                *base,
                says_revoked(ROOT, ADMIN, keep=[phone, laptop], n=3, heirs=[party("heir 0")]),
                says_revoked(ROOT, ADMIN, keep=[phone], n=4, heirs=[party("heir 0")]),
                says_revoked(ROOT, ADMIN, n=3),
                says_revoked(RECOVERY, ADMIN, n=3, heirs=[party("heir 0")], rank=1),
            ],
        ),
        (
            "one that ends with an admin outdoes what that admin said and what ends with it, and no other",
            [
                *base,
                by_second,
                says_epoch(ROOT, key, [PHONE], old=names),
                says_epoch(ROOT, key, [GUEST], old=names, of=[ADMIN]),
                says_epoch(ROOT, key, [LAPTOP], old=names, of=[OTHER]),
                says_epoch(ROOT, greater, everyone, old=[*names, key.id], of=[ADMIN]),
            ],
        ),
        (
            "a root's later epoch that calls the admin out outdoes what that admin said of others",
            [
                *base,
                says_epoch(ROOT, key, [LAPTOP, GUEST], while_={ADMIN: [PHONE]}, old=names),
                says_epoch(ROOT, greater, [LAPTOP, GUEST], [ADMIN], old=[*names, key.id]),
            ],
        ),
        (
            "an epoch without a root stays, and its key does not seal",
            [*base, says_epoch(ROOT, key, everyone, roots=[ROOT])],
        ),
        ("a root's epoch that does not name a key leaves the epoch that does", [*base, by_second, silent]),
        ("one that names it outdoes it", [*base, by_second, naming]),
        ("of two that outdo each other the least hash stays", [*base, by_second, naming, twin]),
        ("two births of one vault unite their roots", [*base, says_genesis(ROOT, GUEST)]),
        (
            "of two who claim one successor the least signer counts",
            [*base, *(says_heir(by, party("heir 0"), enrolment_of(met, by)) for by in (PHONE, GUEST))],
        ),
        (
            "of a family that an admin revoked a root's word goes before an admin's of a greater hash",
            [*base, says_member(ROOT, PHONE), _later(says_member(ROOT, PHONE)), says_revoked(ADMIN, PHONE)],
        ),
        (
            "a successor that two revokes name is of the family of the least id",
            [*base, *(says_revoked(ROOT, who, heirs=[party("heir 0")]) for who in (PHONE, GUEST))],
        ),
    ]
    return [
        {"name": name, "statements": items, "view": view_of(Ring(VAULT, items, ()))} for name, items in cases
    ]


def refused(made: dict[str, Ring]) -> list[dict[str, str]]:
    """Return keyring.json files that must be refused, and those in which the laptop's key does not help."""
    good = made["both enrolments joined"]
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


def _claims(base: Ring, by: Party, number: int) -> Ring:
    """Return this ring with an epoch of an admin that removes 800 ids."""
    key, gone = ek_of(9, number), [f"{number:08x}{one:08x}" for one in range(800)]
    slots = [fixed_box(slot_text(key, VAULT), one.box) for one in (ROOT, RECOVERY, LAPTOP)]
    return base.add([says_epoch(by, key, [LAPTOP], gone, old=[base.keys[0].id], slots=slots)], [key])


def full_joins(first: Ring) -> dict[str, tuple[Ring, Ring]]:
    """Return pairs of rings that are each within the limits, and whose join exceeds one."""
    base = first.add([says_member(ROOT, ADMIN, "admin"), says_member(ROOT, OTHER, "admin")])
    by_root = [
        rotate(
            base.add([says_revoked(ROOT, party(side), heirs=[party(f"{side} {n}") for n in range(800)])]),
            ROOT.signer,
            ek(number),
            box=fixed_box,
        )
        for number, side in enumerate(("left", "right"), 8)
    ]
    claimed = [_claims(base, by, number) for number, by in enumerate((ADMIN, OTHER), 8)]
    enrolled_by_admin = [
        base.add([says_member(ADMIN, party(f"{side} {n}")) for n in range(300)]) for side in ("left", "right")
    ]
    return {
        "1,600 claims of two admins": (claimed[0], claimed[1]),
        "keys for 1,600 ids": (by_root[0], by_root[1]),
        "more than 512 KiB of an admin's word": (enrolled_by_admin[0], enrolled_by_admin[1]),
    }


def full_join_rows(first: Ring, *names: str) -> list[dict[str, str]]:
    """Return these of `full_joins` as rows for the laptop, all without names."""
    made = full_joins(first)
    return [
        {"name": name, "by": LAPTOP.name, "a": a.serialise().decode(), "b": b.serialise().decode()}
        for name, (a, b) in made.items()
        if name in names or not names
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
        "keyring.json; every party named in opened_by opens it with its box secret. `view` is the evaluation, `room` what is "
        "taken of each limit on a join: bytes of the file, bytes of them for others than roots, pairs of who is put out by admins, ids. "
        "Each of `refused_joins` is in order by itself and opened by `by`; joined they pass a limit. "
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
                "room": msgspec.structs.asdict(ring.room()),
                "view": view_of(ring),
            }
            for name, ring in made.items()
        ],
        "joins": [{"a": a, "b": b, "result": result} for a, b, result in JOINS],
        "refused_joins": full_join_rows(
            made["new vault: wallet, recovery words, laptop"], "1,600 claims of two admins"
        ),
        "statements": {name: {"k": item.k, "s": item.s} for name, item in sorted(table.items())},
        "evaluations": cases,
        "refused_keyrings": refused(made),
        "request": {
            "device": GUEST.name,
            "text": enrolment_request(VAULT, GUEST.device).decode(),
        },
    }


def main() -> None:
    FILE.write_text(json.dumps(build(), indent=1, ensure_ascii=False) + "\n")
    for ring in rings().values():
        parse_keyring(ring.serialise())


if __name__ == "__main__":
    main()
