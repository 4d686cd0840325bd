"""Caches of untrusted published data are limited by bytes, not by the number of items."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from ipfsmem import canonical
from ipfsmem.bundle.timeline import normal_ts
from ipfsmem.causal import entries
from ipfsmem.content.cid import CID, IDENTITY, RAW, ipns_name, parse_cid, raw_cid, varint
from ipfsmem.errors import IpfsmemError
from ipfsmem.published.ipns_record import MAX_RECORD, make_record, verify_record
from ipfsmem.ring import statements
from ipfsmem.ring.statements import Epoch, open_envelope, sign_statement
from ipfsmem.seal.primitives import Signer25519

VAULT = bytes(16)


def grown(work: Callable[[], object]) -> int:
    """Return the bytes that remain after the work."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_foreign_statements_use_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pinned rings with huge self-signed epochs: three hundred of them would use 358 MB. The bound here is
    an eighth of the real one."""
    most = statements._CACHE_CHARACTERS // 8
    cache = statements._StatementCache(most)
    monkeypatch.setattr(statements, "_cache", cache)
    signer = Signer25519(bytes(31) + b"\x07")
    ids = tuple(f"{n:016x}" for n in range(9_400))
    made = []
    for n in range(20):
        epoch = Epoch(
            by=signer.public.hex(), ek=f"{n:016x}", epoch=n + 1, for_=ids, not_=(), of=(), old=(), slots=()
        )
        one = sign_statement(signer, epoch, VAULT)
        made.append((canonical.b64(one.payload), canonical.b64(one.signature)))
    size = sum(len(k) for k, _ in made)
    assert size > 3 * most

    def read() -> None:
        for k, s in made:
            open_envelope(k, s, VAULT)

    assert grown(read) < 4 * most
    assert 0 < len(cache._items) < 10 and cache._size <= most


@pytest.mark.parametrize(
    "read",
    [
        entries.parse_entry, entries.check_entry_name, entries.memory_name, entries.segment_name, entries.card_name,
        parse_cid, normal_ts,
    ],
    ids=lambda read: read.__name__,
)  # fmt: skip
@pytest.mark.parametrize(
    "name",
    [
        "m/{}",
        "m/{}/a",
        "t/2026-01-01/{}/1",
        "t/{}/0123456789abcdef/1",
        "c/{}",
        "{}",
        "2026-01-01{}",
        "bafk{}",
    ],
)
def test_long_names_are_not_cached(read: Callable[[str], object], name: str) -> None:
    """A thousand names of 100 KB would use 100 MB."""

    def work() -> None:
        for n in range(60):
            try:
                read(name.format(f"{n}" + "a" * 100_000))
            except IpfsmemError:
                pass

    assert grown(work) < 1_000_000


def test_identity_cids_are_limited_in_length() -> None:
    def work() -> None:
        for n in range(2_000):
            str(CID(1, RAW, bytes((IDENTITY, 100)) + n.to_bytes(100, "big")))

    assert grown(work) < 2_000_000


def test_foreign_records_use_bounded_memory() -> None:
    """A verified record may contain unknown fields of any size."""
    made = []
    for n in range(600):
        signer = Signer25519(n.to_bytes(32, "big"))
        short = make_record(n.to_bytes(32, "big"), f"/ipfs/{raw_cid(bytes(32))}", 1, 10**18)
        room = MAX_RECORD - len(short) - 3
        made.append((ipns_name(signer.public), short + b"\x7a" + varint(room) + bytes(room)))

    def read() -> None:
        for name, encoded in made:
            assert verify_record(name, bytearray(encoded)).encoded == encoded

    assert len(made[0][1]) == MAX_RECORD and grown(read) < 2_000_000


def test_name_and_record_are_computed_once() -> None:
    """Otherwise they would take a third of a sync."""
    name = ipns_name(Signer25519(bytes(31) + b"\x09").public)
    assert ipns_name(Signer25519(bytes(31) + b"\x09").public) is name
    encoded = make_record(bytes(31) + b"\x09", f"/ipfs/{raw_cid(bytes(32))}", 1, 10**18)
    assert verify_record(name, encoded) is verify_record(name, bytes(encoded))
