"""Builds fixtures/vectors/anchor_pins.json with `python -m tests.support.anchor_pin_vectors`; a test compares
the file.

Parties and ring are those of ring.json; records practically never expire. Each refused case combines parts
that are valid alone, or parts signed by somebody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ipfsmem.canonical import b64
from ipfsmem.content.cid import ipns_name
from ipfsmem.content.tree import build_tree
from ipfsmem.published.ipns_record import make_record
from ipfsmem.sync.anchor_pins import SUFFIX, AnchorRoot, ring_tree
from ipfsmem.sync.names import pin_name
from tests.support.ring_lab import RECOVERY_KEYS, ROOT_KEYS, new_ring, party

FILE = Path(__file__).parent.parent.parent / "fixtures" / "vectors" / "anchor_pins.json"
UNTIL = 2_092_000_000 * 10**9
OWN, MAIN = ipns_name(RECOVERY_KEYS.head_public), ipns_name(ROOT_KEYS.head_public)
RINGS = {"true": new_ring().serialise(), "another": new_ring(party("laptop")).serialise()}
THIEF = party("thief").seed


def roots() -> list[tuple[str, bytes, dict[str, bytes], str]]:
    """Return (name, ring, records, reason for refusal or "")."""
    ring, other = RINGS.values()
    there, elsewhere = f"/ipfs/{ring_tree(ring).cid}", f"/ipfs/{ring_tree(other).cid}"
    leads = make_record(RECOVERY_KEYS.head_seed, f"/ipns/{MAIN}", 1, UNTIL)
    moved = make_record(RECOVERY_KEYS.head_seed, there, 2, UNTIL)
    back = make_record(RECOVERY_KEYS.head_seed, f"/ipns/{OWN}", 3, UNTIL)
    main = make_record(ROOT_KEYS.head_seed, there, 1, UNTIL)
    return [
        ("signed at init", ring, {OWN: leads, MAIN: main}, ""),
        ("moved by the words", ring, {OWN: moved}, ""),
        ("a record more than needed", ring, {OWN: moved, MAIN: main}, ""),
        ("another ring", other, {OWN: leads, MAIN: main}, "the last record names another ring"),
        (
            "another target",
            ring,
            {OWN: leads, MAIN: make_record(ROOT_KEYS.head_seed, elsewhere, 2, UNTIL)},
            "the last record names another ring",
        ),
        ("the second missing", ring, {OWN: leads}, "a record is missing"),
        ("the first missing", ring, {MAIN: main}, "nothing says that this anchor leads there"),
        (
            "signed by a stranger",
            ring,
            {OWN: make_record(THIEF, there, 9, UNTIL)},
            "not signed by the anchor",
        ),
        (
            "the second signed by a stranger",
            ring,
            {OWN: leads, MAIN: make_record(THIEF, there, 9, UNTIL)},
            "not signed by the name that it stands under",
        ),
        ("in a circle", ring, {OWN: back}, "it leads to itself"),
        ("no record", ring, {}, "a ring alone says nothing"),
    ]


def build() -> dict[str, Any]:
    """Build the whole file."""
    return {
        "about": "Roots pinned under the pin name of a recovery key's anchor, format section 7. A root is a folder of "
        "keyring.json, one of keyrings, and of records as `<name>.ipns` (base64url here); root: its CID. A root that counts leads to ring_root, which is the CID of a folder "
        "with keyring.json alone; by the records in leads_by. A refused one is passed over.",
        "anchor": RECOVERY_KEYS.head_public.hex(),
        "ipns_name": OWN,
        "pin_name": pin_name(RECOVERY_KEYS.head_public),
        "keyrings": {name: ring.decode() for name, ring in RINGS.items()},
        "roots": [_entry(*root) for root in roots()],
    }


def _entry(name: str, ring: bytes, records: dict[str, bytes], refused: str) -> dict[str, Any]:
    files = {"keyring.json": ring, **{one + SUFFIX: record for one, record in records.items()}}
    entry: dict[str, Any] = {
        "name": name,
        "keyring": next(one for one, text in RINGS.items() if text == ring),
        "records": {one: b64(record) for one, record in sorted(records.items())},
        "root": str(build_tree(files).cid),
    }
    if refused:
        return {**entry, "refused": refused}
    needed = [OWN, MAIN] if name == "signed at init" else [OWN]
    # All devices pin the same root: one without the optional records.
    published = AnchorRoot(ring, {one: records[one] for one in needed}).tree().cid
    return {
        **entry,
        "ring_root": str(ring_tree(ring).cid),
        "leads_by": needed,
        "pinned_as": str(published),
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(build(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
