"""Claims of the documents are true: known answers, vectors, modules, layers, links."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from ipfsmem.bundle.header import KNOWN
from ipfsmem.bundle.keys import RESERVED, key_of_foreign_name
from ipfsmem.canonical import b64
from ipfsmem.causal.merge3 import MAX_PAIRS
from ipfsmem.causal.tree import empty_tree
from ipfsmem.causal.value import LIVE, Loc, Value, sign_seen, sign_value
from ipfsmem.seal.objects import MEMORY, SEGMENT, Sealer, epoch_key
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.wallet.message import key_request, sign_once
from ipfsmem.wallet.recovery_words import to_words
from ipfsmem.wallet.root_keys import RootKeys
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.format_text import CHAPTERS, FORMAT, INDEX, headings

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ipfsmem"
INTERNALS = ROOT / "docs" / "internals"
ARCHITECTURE = (INTERNALS / "architecture.md").read_text("utf-8")
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
#: The public first account of Hardhat and Anvil.
HARDHAT = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")


def section(number: str) -> str:
    """The text of one section of the format, with those below it."""
    match = re.search(rf"^(#+) {re.escape(number)}\.? .*?(?=^#{{1,2}} \d|\Z)", FORMAT, re.M | re.S)
    assert match, f"no section {number}"
    return match[0]


def floors() -> ModuleType:
    spec = spec_from_file_location("floors", Path(__file__).with_name("test_floors.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_known_values_of_the_wallet_are_reproduced() -> None:
    signer = RawKeySigner(HARDHAT)
    message = key_request(signer.address, "default", 1)
    root = RootKeys.from_signature(sign_once(signer, message), signer.address, "default", 1)
    stated = section("2.3")
    assert message.decode().split("Account:")[0] in section("2.1")
    for value in (
        sha256(message).hexdigest(),
        signer.sign_message(message).hex(),
        root.admin_public.hex(),
        root.head_public.hex(),
        root.box_public.hex(),
        (root.check or b"").hex(),
        root.vault_tag.hex(),
    ):
        assert f"`{value}`" in stated
    assert f"{len(message)} bytes" in stated


def test_known_values_of_objects_values_and_roots_are_reproduced() -> None:
    vault = bytes.fromhex("3973bff87388964db243992eeb7c6506")
    first = epoch_key(1, bytes(range(32)), vault)
    one, two = Sealer(first, vault), Sealer(epoch_key(2, bytes(range(32)), vault), vault)
    text = b"User prefers direct critique.\n"
    small, large = one.seal(MEMORY, "feedback_tone", text), one.seal(MEMORY, "feedback_tone", b"a" * 20_000)
    empty = two.seal(SEGMENT, "2026-04-14/00aabbccddeeff11/0", b"")
    stated = section("3")
    assert f"`{first.id}`" in stated and f"`{small[:32].hex()}`" in stated
    for data in (small, large, empty):
        assert f"{len(data):,} bytes" in stated and f"`{sha256(data).hexdigest()}`" in stated

    stated = section("9")
    device = Signer25519(b"\x01" * 32)
    dev = sha256(device.public).hexdigest()[:16]
    loc = Loc(first.id, sha256(small).hexdigest(), len(small))
    live = Value(b=(), body=sha256(text).hexdigest(), h="019d8aee00000000", kind=LIVE, loc=loc)
    gone = Value(b=(), body=None, h="019d8aee00000001", kind="forgotten")
    secret, words = bytes([2]) * 32, to_words(bytes([2]) * 32)
    recovery, lone = RootKeys.from_recovery(secret), RootKeys.from_random(bytes([3]) * 64, "default", 1)
    for value in (
        device.public.hex(),
        dev,
        sign_value(device, "m/feedback_tone", f"{dev}-1", live, vault).s,
        sign_value(device, "m/old_note", f"{dev}-2", gone, vault).s,
        sign_seen(device, vault, dev, 2, "0102030405060708").s,
        empty_tree().digest.hex(),
        " ".join(words),
        *(key.hex() for key in (recovery.admin_public, recovery.head_public, recovery.box_public)),
        lone.admin_public.hex(),
        lone.vault_tag.hex(),
    ):
        assert f"`{value}`" in stated
    assert b64(b"") == ""


def test_lists_and_numbers_of_the_format_equal_the_code() -> None:
    names = re.search(r"in this order: (.*?)\. Then", section("1.2"), re.S)
    assert names and tuple(re.findall(r"`(\w+)`", names[1])) == KNOWN
    assert {"con", "prn", "aux", "nul", "com0", "lpt9", "memory"} <= RESERVED and len(RESERVED) == 25
    for name in ("Überraschung Nr 1.md", "日本.md", "MEMORY.md"):
        assert f"`{name}`" in section("1.1") and f"`{key_of_foreign_name(name)[0]}`" in section("1.1")
    assert f"{MAX_PAIRS:,}" in section("5")


def test_every_vector_file_belongs_to_a_section() -> None:
    files = {path.name for path in (ROOT / "fixtures" / "vectors").glob("*.json")}
    # Results of recall and contexts are the same in every interface, but not part of the format.
    assert files - {"context.json", "graph.json", "ranking.json", "time_ranges.json"} == set(
        re.findall(r"\(\.\./\.\./fixtures/vectors/(\w+\.json)\)", FORMAT)
    )


def test_index_of_the_format_lists_every_section() -> None:
    row = r"^\| ([\d.]+) \| \[([^\]]+)\]\(format/([\w-]+\.md)(?:#([\w-]+))?\) \|$"
    listed = re.findall(row, INDEX.read_text("utf-8"), re.M)
    assert [str(number) for number in range(1, 11)] == [number for number, *_ in listed if "." not in number]
    assert [(number, chapter) for number, _, chapter, _ in listed] == [
        (number, path.name) for path in CHAPTERS for number in headings(path.read_text("utf-8"))
    ]
    for number, title, _, anchor in listed:
        heading = f"{number} {title}" if anchor else f"{number}. {title}"
        assert re.search(rf"^#+ {re.escape(heading)}$", FORMAT, re.M), heading
        assert anchor in ("", re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))


@pytest.mark.parametrize("name", ["architecture", "disk", "flows"])
def test_internals_name_modules_that_exist(name: str) -> None:
    text = (INTERNALS / f"{name}.md").read_text("utf-8")
    paths = re.findall(r"`([\w/]+/\w+\.py)`", text)
    assert paths
    for path in paths:
        assert (PACKAGE / path).is_file() or (ROOT / path).is_file(), f"{name}.md names {path}"


def test_architecture_fits_one_page() -> None:
    lines = ARCHITECTURE.splitlines()
    assert len(lines) <= 125
    assert [line for line in lines if len(line) > 110 and not line.startswith("|")] == []


def test_layers_of_architecture_are_those_enforced() -> None:
    drawing = re.search(r"## Layers.*?```\n(.*?)```", ARCHITECTURE, re.S)
    assert drawing
    floor = floors().FLOOR
    drawn: dict[str, int] = {}
    for line in drawing[1].splitlines():
        match = re.match(r" ?(\d+)  (.*?)(?:   |$)", line)
        if match:
            drawn |= {name.removesuffix("/").removesuffix(".py"): int(match[1]) for name in match[2].split()}
    assert drawn == floor


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_of_documents_lead_to_files(document: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", document.read_text("utf-8"), flags=re.M | re.S)
    prose = re.sub(r"`[^`\n]*`", "", prose)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose):
        if not target.startswith(("http", "user_")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
