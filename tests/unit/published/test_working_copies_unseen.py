"""Linked folders are invisible to others: a vault publishes the same bytes with and without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.bundle.index_block import INDEX_KEY
from ipfsmem.bundle.keys import key_of_foreign_name
from ipfsmem.content.cid import parse_cid
from ipfsmem.content.fetch import drive
from ipfsmem.content.reader import Reader
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from tests.support.vault_vectors import KEYS, VaultLab, fixed

MODES: list[ModeName] = ["encrypted-ipfs", "ipfs"]
NAMES = ("Meeting Notes.md", "Überblick.md")
LINES = b"# Mine\n\n- [Role](user_role.md) - by hand\nnever deploy on Fridays\n"


@pytest.fixture(params=MODES)
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Vault, Vault]]:
    """One vault twice, made by the same device at the same moment; only the first has a linked folder."""
    with fixed({}):
        pair = Vault(tmp_path / "one", request.param), Vault(tmp_path / "other", request.param)
        pair[0].memory.folders.attach(pair[0].folder, timeline=True)
        yield pair
    for one in pair:
        one.lab.close()


class Vault:
    """A vault on one device, and an existing folder."""

    def __init__(self, home: Path, mode: ModeName) -> None:
        self.lab = VaultLab(home)
        self.memory: Memory = (
            self.lab.plain("laptop", KEYS) if mode == "ipfs" else self.lab.create("laptop", unlock=KEYS)
        )
        self.folder = home / "agent"
        self.folder.mkdir()

    def text(self, key: str) -> bytes:
        """Return the whole text of a key."""
        found = self.memory.read(key)
        assert found is not None and found.data is not None
        return found.data

    def published(self) -> dict[str, bytes]:
        """Publish; return the files of the root and its CID."""
        self.lab.sync(self.memory)
        root, blocks = self.lab.root(self.memory), self.lab.cloud.blocks
        reader = Reader()
        files = drive(reader.walk(parse_cid(root)), lambda cids: {cid: blocks[cid] for cid in cids})
        return {**{path: blocks[cid] for path, cid in files.items()}, "": root.encode()}


def test_writes_are_published_alike_with_and_without_a_folder(pair: tuple[Vault, Vault]) -> None:
    for one in pair:
        one.memory.write("user_role", "teaches", name="Role", type="user")
        one.memory.write("tone", "plain", tags=["a, b"])
        one.memory.write("user_role", "teaches piano")
        one.memory.forget("tone")
        one.memory.folders.render()
    assert (pair[0].folder / "user_role.md").read_bytes().endswith(b"teaches piano\n")
    assert not list(pair[1].folder.iterdir())
    with_folder, without = (one.published() for one in pair)
    assert with_folder == without


def test_files_of_a_folder_are_published_as_writes_of_their_texts(pair: tuple[Vault, Vault]) -> None:
    """Files with other names, an edit, a deleted file, and lines that a program writes into MEMORY.md."""
    mine, other = pair
    keys = [key_of_foreign_name(name).key for name in NAMES]
    for one in pair:
        one.memory.write("user_role", "teaches", name="Role", type="user")
    for name, key in zip(NAMES, keys, strict=True):
        (mine.folder / name).write_bytes(f"text of {name}\n".encode())
        mine.memory.folders.scan()
        data = mine.text(key)
        assert data == f"---\norigin_name: {name}\n---\n\ntext of {name}\n".encode()
        other.memory.write_text(key, data)
    edited = (mine.folder / "user_role.md").read_bytes().replace(b"teaches", b"sings")
    (mine.folder / "user_role.md").write_bytes(edited)
    mine.memory.folders.scan()
    other.memory.write_text("user_role", edited)
    (mine.folder / "MEMORY.md").write_bytes(LINES)
    mine.memory.folders.scan()
    other.memory.write_text(INDEX_KEY, mine.text(INDEX_KEY))
    assert b"never deploy on Fridays" in mine.text(INDEX_KEY)
    with_folder, without = (one.published() for one in pair)
    assert with_folder == without
