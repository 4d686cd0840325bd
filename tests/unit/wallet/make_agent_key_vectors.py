"""Writes fixtures/vectors/agent_keys.json: strings of agent keys, valid and refused, and the keys of their members.

Run it only when a rule changes: `python -m tests.unit.wallet.make_agent_key_vectors`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ipfsmem import canonical
from ipfsmem.errors import IpfsmemError
from ipfsmem.seal.compression import deflate
from ipfsmem.wallet.agent_key import (
    PREFIX,
    AgentKey,
    KeyProvider,
    _base62,
    _check_digits,
    parse_key,
    render_key,
)
from ipfsmem.wallet.root_keys import RootKeys

OUT = Path(__file__).parents[3] / "fixtures" / "vectors" / "agent_keys.json"
ROOT = RootKeys.from_random(bytes(range(64)), "default", 1)
BUCKET = {
    "aws_access_key_id": "AKIAEXAMPLEEXAMPLE00",
    "aws_secret_access_key": "exampleexampleexampleexampleexample00000",
    "bucket_endpoint": "https://0123456789abcdef.r2.example",
}


def file_rows() -> list[dict[str, str]]:
    """The refused rows of the file."""
    rows: list[dict[str, str]] = json.loads(OUT.read_text("utf-8"))["refused"]
    return rows


def seed_of(name: str) -> bytes:
    """The seed of an example."""
    return sha256(f"example seed {name}, not a secret".encode()).digest()


def key_of(name: str, *providers: KeyProvider, least: tuple[str, int] = ("0123456789abcdef", 1)) -> AgentKey:
    """The agent key of an example."""
    return AgentKey(
        seed=seed_of(name), root=ROOT.admin_public, anchor=ROOT.head_public, providers=providers, least=least
    )


PEER = key_of("peer", KeyProvider("peer:https://box.example.net"))
KEYS = (
    ("a peer", PEER),
    ("a bucket with credentials", key_of("bucket", KeyProvider("bucket:s3://team-memory/v", BUCKET))),
    (
        "two providers and the greatest counter",
        key_of(
            "two",
            KeyProvider("/mnt/Größe"),
            KeyProvider("pinata", {"pinata_jwt": "e30.e30.example"}),
            least=("ffffffffffffffff", 2**53 - 1),
        ),
    ),
)


def sealed(content: bytes, *, first: bytes = b"\x01", raw: bytes | None = None) -> str:
    """A string with a valid checksum, whatever its content."""
    text = PREFIX + _base62(first + (deflate(content) if raw is None else raw))
    return text + _check_digits(text)


def fields(**changed: Any) -> bytes:
    """The JSON of the first key with these fields changed; None removes one."""
    full: dict[str, Any] = {
        "anchor": PEER.anchor.hex(),
        "least": [*PEER.least],
        "providers": [["peer:https://box.example.net", {}]],
        "root": PEER.root.hex(),
        "seed": canonical.b64(PEER.seed),
        "v": 1,
    } | changed
    return canonical.encode({name: value for name, value in full.items() if value is not None})


def refused() -> list[dict[str, str]]:
    """Return strings that are not agent keys."""
    good = render_key(PEER)
    checked = good[:-6]
    longest = sealed(canonical.encode({"pad": "x" * 9000}))
    rows: Mapping[str, str] = {
        "empty": "",
        "the prefix alone": PREFIX,
        "the prefix and a checksum": PREFIX + _check_digits(PREFIX),
        "another prefix": good.replace("ak1", "ik1"),
        "prefix in capitals": good.replace("ipfsmem", "IPFSMEM"),
        "one character changed": checked[:40] + ("A" if checked[40] != "A" else "B") + good[41:],
        "two characters swapped": checked[:-2] + checked[-1] + checked[-2] + good[-6:],
        "the last character cut off": good[:-1],
        "a character more": good + "0",
        "white space inside": good[:50] + " " + good[50:],
        "a leading zero": PREFIX + "0" + (body := good[len(PREFIX) : -6]) + _check_digits(PREFIX + "0" + body),
        "a digit that is not ASCII": good[:-1] + "\u0661",
        "content that does not begin with 1": sealed(fields(), first=b"\x02"),
        "no compressed content": sealed(b"", raw=b""),
        "compressed content that is cut off": sealed(b"", raw=deflate(fields())[:-1]),
        "bytes after the compressed content": sealed(b"", raw=deflate(fields()) + b"\x00"),
        "content of more than 8,192 bytes": longest,
        "4,097 characters": (longest_text := PREFIX + "1" * (4_097 - len(PREFIX) - 6)) + _check_digits(longest_text),
        "content that is not JSON": sealed(b"\xff"),
        "content that is not canonical": sealed(fields().replace(b'"v":1', b'"v": 1')),
        "a list": sealed(b"[]"),
        "version 2": sealed(fields(v=2)),
        "version true": sealed(fields(v=True)),
        "a missing field": sealed(fields(least=None)),
        "an unknown field": sealed(fields(x=1)),
        "a seed of 31 bytes": sealed(fields(seed=canonical.b64(bytes(31)))),
        "a seed in hex": sealed(fields(seed=PEER.seed.hex())),
        "a root that is not a key": sealed(fields(root="00" * 32)),
        "an anchor in capitals": sealed(fields(anchor=PEER.anchor.hex().upper())),
        "an anchor of small order": sealed(fields(anchor="01" + "00" * 31)),
        "a counter of 0": sealed(fields(least=["0123456789abcdef", 0])),
        "a counter of 2^53": sealed(fields(least=["0123456789abcdef", 2**53])),
        "a counter as text": sealed(fields(least=["0123456789abcdef", "1"])),
        "a device that is not an id": sealed(fields(least=["0123456789abcdeF", 1])),
        "no provider": sealed(fields(providers=[])),
        "nine providers": sealed(fields(providers=[[f"/m/{n}", {}] for n in range(9)])),
        "one provider twice": sealed(fields(providers=[["/m", {}], ["/m", {}]])),
        "a provider without credentials": sealed(fields(providers=[["/m"]])),
        "an empty address": sealed(fields(providers=[["", {}]])),
        "an address with a line break": sealed(fields(providers=[["/m\n/n", {}]])),
        "an address of 513 characters": sealed(fields(providers=[["/" + "m" * 512, {}]])),
        "a setting that is not a credential": sealed(fields(providers=[["kubo", {"kubo_rpc_url": "http://x"}]])),
        "a credential of another provider": sealed(fields(providers=[["peer:https://x", {"pinata_jwt": "x"}]])),
        "an empty credential": sealed(fields(providers=[["peer:https://x", {"peer_token": ""}]])),
        "a credential that is not text": sealed(fields(providers=[["peer:https://x", {"peer_token": 1}]])),
    }  # fmt: skip
    return [{"name": name, "text": text, "error": error_of(text)} for name, text in rows.items()]


def error_of(text: str) -> str:
    """Why a string is refused."""
    try:
        parse_key(text)
    except IpfsmemError as error:
        return {"FormatError": "format", "LimitError": "limit"}[error.kind]
    raise AssertionError("a string that should be refused is accepted")


def build() -> dict[str, Any]:
    """The whole file."""
    return {
        "about": "Agent keys, format section 4.1. `keys`: `text` is a valid string with the fields `seed` (base64url), `root`, `anchor`, `least` and "
        "`providers`; `vault` is the tag, `id`, `sign_public` and `box_public` are of its member. Compressors may differ, so a writer's string for "
        "these fields may be another one that reads the same. `refused`: texts that are not agent keys.",
        "keys": [
            {
                "name": name,
                "text": render_key(key),
                "seed": canonical.b64(key.seed),
                "root": key.root.hex(),
                "anchor": key.anchor.hex(),
                "least": [*key.least],
                "providers": [[one.spec, dict(one.credentials)] for one in key.providers],
                "vault": key.vault.hex(),
                "id": key.id,
                "sign_public": key.signer.public.hex(),
                "box_public": key.box_public.hex(),
            }
            for name, key in KEYS
        ],
        "refused": refused(),
    }


def text(data: dict[str, Any]) -> str:
    """The file for these contents."""
    return json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    OUT.write_text(text(build()), "utf-8")
