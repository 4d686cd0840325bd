"""Writes fixtures/vectors/folder.json: shared folders of the `directory` provider, sound and damaged, and
what is read from them.

Run it only when the layout changes: `python -m tests.unit.providers.make_folder_vectors`. The provider
writes the sound files; foreign and damaged ones are made here."""

from __future__ import annotations

import asyncio
import json
import struct
import tempfile
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any

from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.canonical import b64, encode, unb64
from ipfsmem.content.cid import CID, ipns_name, parse_cid, raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519

OUT = Path(__file__).parents[3] / "fixtures" / "vectors" / "folder.json"
#: 2026-01-01, in milliseconds.
NOW = 1_767_225_600_000
SEED = b"\x01" * 32
NAME = ipns_name(Signer25519(SEED).public)
OTHERS = ipns_name(Signer25519(b"\x02" * 32).public)
TREE = build_tree({"a.txt": b"the first file\n", "b/c.txt": b"another one\n"})
LATER = build_tree({"a.txt": b"the first file\n", "d.txt": b"a third\n"})
PIN = "ipfsmem-0011223344556677"
Files = dict[str, bytes]


def record(sequence: int, root: CID = TREE.cid) -> bytes:
    return ipns_record.make_record(SEED, f"/ipfs/{root}", sequence=sequence, validity=(NOW + 10**10) * 10**6)


def tag(data: bytes | str) -> str:
    return sha256(data.encode() if isinstance(data, str) else data).hexdigest()[:16]


def files_of(folder: Path) -> Files:
    """All files below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def written() -> Files:
    """A device that publishes twice, pins both roots, and moves its name."""
    with tempfile.TemporaryDirectory() as folder:
        now = [NOW]

        async def run() -> None:
            provider = DirectoryProvider(folder, clock=lambda: now[0] * 1_000_000)
            await provider.put_car(TREE.cid, TREE.blocks, name=PIN)
            await provider.pin(TREE.cid, PIN)
            await provider.put_name(NAME, record(1))
            now[0] += 1000
            known = {cid for cid, _ in TREE.blocks}
            await provider.put_car(LATER.cid, [one for one in LATER.blocks if one[0] not in known], name=PIN)
            await provider.pin(LATER.cid, PIN)
            await provider.put_name(NAME, record(2, LATER.cid))

        asyncio.run(run())
        return files_of(Path(folder))


def pin_line(root: CID, name: str, created: int) -> bytes:
    return encode({"cid": str(root), "created": created, "name": name, "v": 1})


def pin_list(*lines: bytes) -> Files:
    data = b"\n".join(sorted(lines)) + b"\n"
    return {f"pins/{sha256(data).hexdigest()}.pins": data}


def index_of(places: list[tuple[bytes, int, int]], pack: int) -> bytes:
    """An index file, built by the document alone."""
    records = sorted(struct.pack(">32sQI", *place) for place in places)
    counts = [sum(record[0] <= byte for record in records) for byte in range(256)]
    head = struct.pack(">8sQI256I", b"ipmidx1\n", pack, len(records), *counts)
    body = b"".join(records)
    return head + struct.pack(">I", zlib.crc32(body, zlib.crc32(head))) + body


def cases() -> list[dict[str, Any]]:
    """Return folders by name, each with a description."""
    whole = written()
    packs = sorted(path for path in whole if path.endswith(".car"))
    others = {path: data for path, data in whole.items() if not path.startswith("pins/")}
    plain = {"cid": str(TREE.cid), "created": NOW + 5, "name": PIN, "v": 1}
    lines = [
        json.dumps(plain),
        json.dumps({**plain, "created": NOW + 3}, sort_keys=False, indent=None, separators=(" , ", " : ")),
        json.dumps({"v": 1, "name": PIN, "created": NOW + 1, "cid": str(LATER.cid)}),
        *(json.dumps({**plain, "name": "holiday", **more}) for more in ({"v": 2}, {"created": -1}, {"created": 2**53}, {"x": 1}, {"name": "other" * 60})),
        '{"cid":"none","created":1,"name":"holiday","v":1}',
        "not JSON",
    ]  # fmt: skip
    rewritten = {**others, f"pins/{'0' * 64}.pins": "\r\n".join([*lines, ""]).encode()}
    torn = {
        **others,
        f"pins/{TREE.cid}.{tag(PIN)}.json": b'{"cid":"ba',
        f"pins/{LATER.cid}.{tag(PIN)}.json": pin_line(TREE.cid, PIN, NOW),
        f"pins/{LATER.cid}.{tag('holiday')}.json": b"",
    }
    first = next(path for path in packs if dict(TREE.blocks)[TREE.cid] in whole[path])
    block = dict(TREE.blocks)[raw_cid(sha256(b"another one\n").digest())]
    at = whole[first].index(block)
    damaged = {**whole, first: whole[first][:at] + b"X" + whole[first][at + 1 :]}
    lying = {
        **whole,
        f"{first[:-4]}.idx": index_of([(sha256(block).digest(), at + 1, len(block))], len(whole[first])),
    }
    listed = {path: data for path, data in whole.items() if not path.startswith("pins/")}
    listed |= pin_list(
        pin_line(TREE.cid, PIN, NOW), pin_line(LATER.cid, PIN, NOW + 1000), pin_line(TREE.cid, "holiday", NOW)
    )
    strange = {
        **whole,
        "pins/notes.txt": b"somebody's",
        f"pins/{TREE.cid}.{tag('other')}.json": pin_line(TREE.cid, PIN, NOW),
        f"names/{NAME}.{tag(b'x')}.ipns-record": record(9).replace(b"/ipfs/", b"/ipns/"),
        f"names/{OTHERS}.{tag(record(3))}.ipns-record": record(3),
        f"packs/{'g' * 64}.car": whole[first],
        "packs/.new-1-0011223344556677": b"half a pack",
    }
    going = {**whole, f"{first[:-4]}.going": b'{"since":%d}' % NOW}
    lost = {**whole, f"{first[:-4]}.lost": f"{raw_cid(sha256(block).digest())}\n".encode()}
    kept = {**listed}
    kept.pop(next(path for path in kept if path.endswith(".pins")))
    good = pin_list(pin_line(TREE.cid, PIN, NOW), pin_line(LATER.cid, PIN, NOW + 1000))
    name, data = next(iter(good.items()))
    kept[name] = data[: len(data) * 3 // 4]
    rows = [
        (
            "as a device writes it",
            "Two uploads are two packs; the second has only what was not there.",
            whole,
        ),
        (
            "without indexes",
            "They are a cache: made again from the packs.",
            {p: d for p, d in whole.items() if not p.endswith(".idx")},
        ),
        ("an index that lies", "Its places are checked like all else: the pack is looked through.", lying),
        (
            "a damaged block",
            "It is not given out, the others are; the note `.lost` is written by whoever finds it.",
            damaged,
        ),
        (
            "a block noted as lost",
            "Not said to be there, so whoever has it sends it again; read all the same when it is sound.",
            lost,
        ),
        ("a pack that is to go", "Its blocks are read and not said to be there.", going),
        ("pins in a list", "Many pins in one file, a line each.", listed),
        (
            "a list that was cut off",
            "The lines that can be read count as pins; nothing is collected while it stands there.",
            kept,
        ),
        (
            "what others left there",
            "A pin under another name than its own, records that their name did not sign, files of another form: passed over.",
            strange,
        ),
        (
            "pins that others wrote again",
            "A list with other ends of lines, white space, an order of names, a pin twice, and lines that are no pins.",
            rewritten,
        ),
        (
            "a pin whose file is damaged",
            "It counts by the root and the name in its file's name, made when it is read; one that holds another pin does not.",
            torn,
        ),
        ("an empty folder", "Nothing was ever put there.", {}),
    ]
    return [
        {"name": name, "about": about, "files": {p: b64(d) for p, d in sorted(files.items())}}
        for name, about, files in rows
    ]


def asked() -> dict[str, Any]:
    """The requests to every folder."""
    cids = sorted({str(cid) for cid, _ in (*TREE.blocks, *LATER.blocks)})
    return {"blocks": cids, "names": [NAME], "now": NOW, "pins": [PIN, "holiday", "other"]}


def read(folder: Path, case: dict[str, Any]) -> dict[str, Any]:
    """Return what the provider reads from the files of a case in `folder`."""
    for path, data in case["files"].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(unb64(data, "a file"))

    async def run() -> dict[str, Any]:
        provider = DirectoryProvider(folder, clock=lambda: NOW * 1_000_000)
        cids = [parse_cid(cid) for cid in asked()["blocks"]]
        there = await provider.has(cids)
        listing = await provider.listing()
        got = await provider.get_blocks(cids)
        return {
            "blocks": {str(cid): b64(got[cid]) for cid in cids if cid in got},
            "has": sorted(str(cid) for cid in there),
            "listing": dict(sorted(listing.items())),
            "names": {
                name: b64(found) for name in asked()["names"] if (found := await provider.get_name(name))
            },
            "pins": {
                name: [[str(pin.cid), pin.created] for pin in await provider.pins(name)]
                for name in asked()["pins"]
            },
        }

    return asyncio.run(run())


def build() -> dict[str, Any]:
    """The whole file."""
    found = cases()
    for case in found:
        with tempfile.TemporaryDirectory() as folder:
            case["expect"] = read(Path(folder), case)
    return {
        "about": "Shared folders, format section 7.2. `files`: everything in the folder, by path (base64url). `expect`, of what `asked` names: "
        "`blocks` that are given out, those that it `has`, the `listing`, the greatest record of each of `names`, and `pins` by name, "
        "newest first, each with its time in milliseconds. The first case is what a device writes, byte for byte.",
        "asked": asked(),
        "cases": found,
    }


def text(data: dict[str, Any]) -> str:
    """The file for these contents."""
    return json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    OUT.write_text(text(build()), "utf-8")
