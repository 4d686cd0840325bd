"""Valid heads, and each defect that invalidates one (format sections 6 and 7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.canonical import MAX_INT, unb64
from ipfsmem.causal.value import DeviceCounter
from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import (
    FormatError,
    IpfsmemError,
    LimitError,
    MembershipError,
    OpenError,
    SignatureError,
)
from ipfsmem.published.commit import (
    Commit,
    open_commit,
    open_plain_commit,
    plain_commit,
    seal_commit,
    sign_commit,
)
from ipfsmem.published.root_reader import RootFiles
from ipfsmem.published.root_verification import VerifiedRoot, open_root
from ipfsmem.ring.keyring import MAX_IDS, parse_keyring
from ipfsmem.ring.statements import member_id
from ipfsmem.seal.objects import MAX_EPOCH, EpochKey, Sealer
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.sync.publish import MAX_PREV
from tests.unit.published.make_commit_vectors import make

V: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "fixtures/vectors/commits.json").read_text("utf-8")
)
WHY: dict[str, type[IpfsmemError]] = {
    "open": OpenError,
    "format": FormatError,
    "limit": LimitError,
    "member": MembershipError,
    "signature": SignatureError,
}
ROWS = [(mode, row) for mode in ("sealed", "plain") for row in V[mode]["valid"]]
REFUSED = [(mode, row) for mode in ("sealed", "plain") for row in V[mode]["refused"]]


def ids(rows: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [f"{mode}: {row['name']}" for mode, row in rows]


def opened(mode: str, row: dict[str, Any]) -> VerifiedRoot:
    """Return the result of production code for a head with its ring."""
    vault = bytes.fromhex(V[mode]["vault"])
    head = unb64(row["head"], "a head") if "head" in row else bytes(row["zeros"])
    files = RootFiles(
        root=raw_cid(bytes(32)),
        plain=mode == "plain",
        keyring=V[mode]["keyring"].encode(),
        head=head,
        state=raw_cid(bytes(32)),
    )
    return open_root(files, vault, None, [bytes.fromhex(V["box_secret"])])


def test_vector_file_equals_the_generated_one() -> None:
    assert make() == V


@pytest.mark.parametrize(("mode", "row"), ROWS, ids=ids(ROWS))
def test_valid_heads_equal_the_vectors(mode: str, row: dict[str, Any]) -> None:
    head = opened(mode, row).head
    assert head is not None
    assert head.commit.json.decode() == row["commit"]
    assert head.commit.digest == row["digest"]
    assert sorted(head.unknown_devices) == row["lacking"]


@pytest.mark.parametrize(("mode", "row"), REFUSED, ids=ids(REFUSED))
def test_invalid_heads_are_refused(mode: str, row: dict[str, Any]) -> None:
    with pytest.raises(IpfsmemError) as caught:
        opened(mode, row)
    assert type(caught.value) is WHY[row["why"]]


@pytest.mark.parametrize("mode", ["sealed", "plain"])
def test_key_ring_of_the_vectors_is_valid(mode: str) -> None:
    ring = parse_keyring(V[mode]["keyring"].encode(), bytes.fromhex(V[mode]["vault"]))
    assert ring.plain == (mode == "plain")


@pytest.mark.parametrize("plain", [False, True])
def test_commit_has_room_for_every_id_of_a_ring(plain: bool) -> None:
    signer = Signer25519(bytes(32))
    seen = DeviceCounter(MAX_INT, "f" * 16, "_" * 85 + "w")
    made = sign_commit(
        signer,
        Commit(
            c=MAX_INT,
            ctx={f"{n:016x}": seen for n in range(MAX_IDS)},
            dev=member_id(signer.public),
            ek="" if plain else "f" * 16,
            h="f" * 16,
            prev=[f"{n:064x}" for n in range(MAX_PREV)],
            ring="f" * 64,
            state="f" * 64,
            vault="f" * 32,
        ),
    )
    if plain:
        assert open_plain_commit(plain_commit(made)).commit.ctx == made.commit.ctx
    else:
        sealer = Sealer(EpochKey(MAX_EPOCH, bytes(32), "f" * 16), bytes(16))
        assert open_commit(seal_commit(made, sealer), [sealer]).commit.ctx == made.commit.ctx
