"""Keys and delegations of w3up as text, as w3up's tools print them."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from ipfsmem_providers.web3storage import dag_cbor, ucan
from ipfsmem_providers.web3storage.ucan import Signer

from ipfsmem.content.car import car_bytes
from ipfsmem.content.cid import CAR, IDENTITY, varint
from ipfsmem.provider.contract import Block


def format_signer(signer: Signer, seed: bytes) -> str:
    """Return the text of a key, `Mg...`: multibase base64 of varint 0x1300, the seed, 0xed 0x01, and the
    public key."""
    return "M" + base64.b64encode(b"\x80\x26" + seed + b"\xed\x01" + signer.public).decode()


def archive(token: Block, others: Iterable[Block] = ()) -> bytes:
    """Return a delegation and its proofs as one CAR."""
    root, data = dag_cbor.block_of(dag_cbor.encode({ucan.ARCHIVE: token[0]}))
    return car_bytes([root], [(root, data), token, *others])


def proof_text(data: bytes) -> str:
    """Return an archive as text, `m...`: a CID that contains it, in base64."""
    whole = b"\x01" + varint(CAR) + varint(IDENTITY) + varint(len(data)) + data
    return "m" + base64.b64encode(whole).decode().rstrip("=")
