"""UCANs equal those of the service's own libraries, and damaged ones are refused."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.web3storage import dag_cbor, ucan
from ipfsmem_providers.web3storage.ucan import Ability, AgentMessage, Signer

from ipfsmem.content.car import car_bytes
from ipfsmem.content.cid import parse_cid
from ipfsmem.errors import FormatError
from tests.support import ucan_lab

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures" / "vectors" / "ucan.json").read_text("utf-8"))
SIGNERS = [Signer(bytes.fromhex(key["seed_hex"])) for key in VECTORS["keys"]]
SPACE = SIGNERS[0].did


def value(given: Any) -> Any:
    """Decode DAG-JSON."""
    if isinstance(given, list):
        return [value(item) for item in given]
    if isinstance(given, dict):
        if list(given) == ["/"]:
            inner = given["/"]
            if isinstance(inner, str):
                return parse_cid(inner)
            return base64.b64decode(inner["bytes"] + "==")
        return {key: value(item) for key, item in given.items()}
    return given


@pytest.mark.parametrize("key", VECTORS["keys"], ids=lambda key: key["did"][-6:])
def test_signer_key_is_parsed(key: dict[str, str]) -> None:
    signer = ucan.parse_signer(key["text"])
    assert signer.did == key["did"]
    assert ucan_lab.format_signer(signer, bytes.fromhex(key["seed_hex"])) == key["text"]
    assert key["text"] not in repr(signer) and key["did"] in repr(signer)


@pytest.mark.parametrize("text", VECTORS["not_keys"])
def test_invalid_signer_key_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        ucan.parse_signer(text)
    assert len(text) < 10 or text not in str(caught.value)


@pytest.mark.parametrize("vector", VECTORS["tokens"], ids=lambda vector: vector["cid"][-6:])
def test_tokens_equal_those_of_the_reference(vector: dict[str, Any]) -> None:
    abilities = [
        Ability(item["can"], item["with"], value(item.get("nb", {}))) for item in vector["capabilities"]
    ]
    cid, data = ucan.issue(
        SIGNERS[vector["signer"]],
        vector["audience"],
        abilities,
        expires=vector["expires"],
        nonce=vector["nonce"],
        proofs=value([{"/": cid} for cid in vector["proofs"]]),
        facts=value(vector["facts"]),
    )
    assert data.hex() == vector["block_hex"]
    assert str(cid) == vector["cid"]
    token = ucan.read_token(cid, data)
    assert token.issuer == SIGNERS[vector["signer"]].did
    assert token.audience == vector["audience"]
    assert token.abilities == tuple(abilities)
    assert token.expires == vector["expires"]
    assert [str(proof) for proof in token.proofs] == vector["proofs"]


@pytest.mark.parametrize("vector", VECTORS["tokens"], ids=lambda vector: vector["cid"][-6:])
def test_delegation_is_read_in_every_encoding(vector: dict[str, Any]) -> None:
    text = vector["archive_text"]
    proof = ucan.read_proof(f" {text}\n")
    assert str(proof.token.cid) == vector["cid"]
    cids = {str(cid) for cid, _ in proof.blocks}
    assert cids == {vector["cid"], *vector["proofs"]}
    blocks = dict(proof.blocks)
    mine = (proof.token.cid, blocks[proof.token.cid])
    rest = [item for item in proof.blocks if item != mine]
    archive = ucan_lab.archive(mine, rest)
    old = car_bytes([], [*rest, mine])
    for form in (
        archive,
        ucan_lab.proof_text(archive),
        base64.b64encode(archive).decode(),
        base64.b64encode(old).decode(),
        "u" + base64.urlsafe_b64encode(archive).decode().rstrip("="),
        car_bytes([mine[0]], [*rest, mine]),
    ):
        again = ucan.read_proof(form)
        assert again.token == proof.token
        assert {cid for cid, _ in again.blocks} == set(blocks)


@pytest.mark.parametrize("text", VECTORS["not_delegations"])
def test_invalid_delegation_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        ucan.read_proof(text)


def test_delegation_with_a_changed_byte_is_refused() -> None:
    data = base64.b64decode(VECTORS["tokens"][0]["archive_text"][1:] + "==")
    for position in range(8, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 0x20
        with pytest.raises(FormatError):
            ucan.read_proof(bytes(damaged[7:]))


def test_receipts_equal_those_of_the_reference() -> None:
    vector = VECTORS["receipt"]
    cid, data = ucan.make_receipt(SIGNERS[vector["signer"]], parse_cid(vector["ran"]))
    assert (str(cid), data.hex()) == (vector["cid"], vector["block_hex"])


def delegation(*cans: str, expires: int | None = 1000, resource: str = SPACE) -> ucan.Proof:
    abilities = [Ability(can, resource) for can in cans]
    token = ucan.issue(SIGNERS[0], SIGNERS[1].did, abilities, expires=expires)
    return ucan.read_proof(ucan_lab.archive(token))


@pytest.mark.parametrize(
    ("proof", "wrong"),
    [
        (delegation("*"), ""),
        (delegation("upload/add", "space/blob/add", expires=None), ""),
        (delegation("upload/*", "space/*"), ""),
        (delegation("*", resource="ucan:*"), ""),
        (delegation("*", expires=500), "expired"),
        (delegation("upload/*"), "does not allow space/blob/add on"),
        (delegation("space/blob/*", "uploads/*"), "does not allow upload/add on"),
        (delegation("*", resource=SIGNERS[1].did), "does not allow space/blob/add, upload/add"),
    ],
)
def test_delegation_check_names_every_fault(proof: ucan.Proof, wrong: str) -> None:
    found = ucan.check_proof(proof, SIGNERS[1], SPACE, ("upload/add", "space/blob/add"), now=500)
    assert wrong in "; ".join(found)
    assert bool(found) == bool(wrong)


def test_delegation_for_another_key_is_refused() -> None:
    (wrong,) = ucan.check_proof(delegation("*"), SIGNERS[0], SPACE, (), now=1)
    assert SIGNERS[0].did in wrong and SIGNERS[1].did in wrong


@pytest.mark.parametrize("did", ["did:web:up.example.org", "did:mailto:example.com:a", SPACE])
def test_did_is_encoded_and_decoded(did: str) -> None:
    assert ucan.did_text(ucan.did_bytes(did)) == did


@pytest.mark.parametrize(
    "did",
    [
        "",
        "did:",
        "web:x",
        "did:key:z6Mk",
        "did:key:z0",
        SPACE.replace(":z", ":z1"),
        SPACE + "1",
        "did:w:" + "x" * 600,
    ],
)
def test_invalid_did_is_refused(did: str) -> None:
    with pytest.raises(FormatError):
        ucan.did_bytes(did)


def test_messages_contain_their_receipts() -> None:
    invocation = ucan.issue(SIGNERS[1], "did:web:x", [Ability("upload/list", SPACE)], expires=1)
    other = ucan.issue(SIGNERS[1], "did:web:x", [Ability("blob/allocate", SPACE)], expires=1)
    inner = ucan.make_receipt(SIGNERS[0], other[0])
    conclude = ucan.issue(
        SIGNERS[0], SPACE, [Ability("ucan/conclude", SPACE, {"receipt": inner[0]})], expires=None
    )
    outer = ucan.make_receipt(SIGNERS[0], invocation[0])
    report = dag_cbor.encode({ucan.MESSAGE: {"report": {str(invocation[0]): outer[0]}}})
    root = (ucan._block(dag_cbor.decode(report))[0], report)
    message = AgentMessage(car_bytes([root[0]], [root, outer, inner, conclude, other, invocation]))
    assert set(message.receipts) == {invocation[0], other[0]}
    assert message.receipts[invocation[0]].ok == {}
    found = message.token(other[0])
    assert found is not None and found.abilities[0].can == "blob/allocate"


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"{}", car_bytes([], [])[:-3], b"\x00" * 40, car_bytes([parse_cid("bafkqaaa")], [])],
)
def test_invalid_message_has_no_receipts(body: bytes) -> None:
    try:
        message = AgentMessage(body)
    except FormatError:
        return
    assert message.receipts == {}


def test_message_with_a_false_report_has_no_receipts() -> None:
    for report in (None, 5, {"x": 1}, {"x": parse_cid("bafkqaaa")}, [parse_cid("bafkqaaa")]):
        block = ucan._block({ucan.MESSAGE: {"report": report}})
        assert AgentMessage(car_bytes([block[0]], [block])).receipts == {}
