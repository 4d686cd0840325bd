"""Scopes in mode `ipfs`: their public form, and data that must be absent (format sections 5.1 and 6)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from ipfsmem_providers.gateways.stored_files import StoredFiles

from ipfsmem.bundle.projects import random_token, remote_name
from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.device.events import Timeline
from ipfsmem.errors import UsageError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.scopes import Scopes
from ipfsmem.memory import Memory
from ipfsmem.published import plain_layout
from ipfsmem.testing import SimCloud, SimProvider
from tests.unit.published.test_plain_layout import hidden, make, published, restore, stick, sync

__all__ = ["stick"]


@pytest.fixture
def a(tmp_path: Path, stick: Path) -> Iterator[Memory]:
    with make(tmp_path, stick) as memory:
        yield memory


def fill(memory: Memory) -> None:
    for scope in ("", "work", "o"):
        where = scope or "nameless"
        MemoryStore(memory.replica, scope).write(
            "tone", f"---\nname: Tone of {where}\ntype: user\n---\n\nsaid in {where}\n".encode()
        )
        MemoryStore(memory.replica, scope).write(f"only_{where}", f"text of {where}\n".encode())
        Timeline(memory.replica, scope).note("waved", {"where": where})


def test_published_scope_names_nothing_of_another_scope(a: Memory, stick: Path) -> None:
    fill(a)
    files = published(stick, sync(a))
    bases = {"nameless": "memory/", "work": "scopes/work/memory/", "o": "scopes/o/memory/"}
    for where, base in bases.items():
        names = {path.removeprefix(base) for path in files if path.startswith(base)}
        days = {name for name in names if name.startswith("timeline/")}
        assert {n for n in names if "/" not in n} == {"MEMORY.md", "tone.md", f"only_{where}.md"}
        index = files[base + "MEMORY.md"].decode()
        assert f"Tone of {where}" in index and all(
            f"of {other}" not in index for other in bases if other != where
        )
        (day,) = days
        assert files[base + day].count(b"\n") == 1 and f'"where":"{where}"'.encode() in files[base + day]
        # The original's loader reads the files that its index names, next to it.
        linked = {line.split("](")[1].split(")")[0] for line in index.splitlines() if line.startswith("- ")}
        assert {base + name for name in linked} <= files.keys()
    assert not hidden(files) & {data for path, data in files.items() if "/.ipfsmem/" not in path}


def test_other_devices_restore_the_scopes_and_make_the_same_root(
    a: Memory, tmp_path: Path, stick: Path
) -> None:
    fill(a)
    sync(a)
    with restore(tmp_path, stick) as b:
        MemoryStore(b.replica, "work").write("of_b", b"written there\n")
        files = published(stick, sync(a, b))
        assert files["scopes/work/memory/of_b.md"] == b"written there\n"
        for memory in (a, b):
            keys = [item.key for item in MemoryStore(memory.replica, "work").listing()]
            assert keys == ["of_b", "only_work", "tone"]
        Scopes(b.replica).forget("work")
        files = published(stick, sync(a, b))
        assert not any(path.startswith("scopes/work") for path in files)
        assert [scope.token for scope in Scopes(a.replica).listing()] == ["o"]
        Scopes(a.replica).forget("o")
        assert not any(path.startswith("scopes/") for path in published(stick, sync(a, b)))


def test_change_in_one_scope_rebuilds_no_other(a: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(12):
        MemoryStore(a.replica, f"s{n}").write("k", b"text %d\n" % n)
    sync(a)
    made: list[str] = []
    real = plain_layout.base_links
    monkeypatch.setattr(
        plain_layout,
        "base_links",
        lambda r, memories, *rest: (made.append(memories.scope), real(r, memories, *rest))[1],
    )
    MemoryStore(a.replica, "s7").write("k", b"changed\n")
    sync(a)
    assert made == ["s7"]


def test_public_root_contains_no_remote_and_no_hash_of_one(a: Memory, stick: Path) -> None:
    remote = remote_name("https://me:secret@github.com/acme/hidden.git")
    assert remote is not None
    scopes = Scopes(a.replica)
    for ids in ([("remote", remote, "")], [("id", "0" * 32)]):
        with pytest.raises(UsageError, match="published") as caught:
            scopes.make("work", ids=ids)
        assert "acme" not in str(caught.value)
    token = random_token("hidden", a.replica.environment.random(6))
    scopes.make(token, title="Hidden")
    with pytest.raises(UsageError, match="published"):
        scopes.change(token, add=[("remote", remote, "")])
    MemoryStore(a.replica, token).write("k", b"text\n")
    root = sync(a)
    tag = a.replica.vault_tag
    assert tag is not None
    words = [remote.encode(), b"acme", b"github", b"secret"]
    for data in (remote.encode(), tag + remote.encode()):
        words += [sha256(data).digest(), sha256(data).hexdigest()[:12].encode()]
    for path, data in published(stick, root).items():
        assert not any(word in data or word.decode("latin-1") in path for word in words)


def test_foreign_bundle_with_our_scope_token_stays_separate(tmp_path: Path, a: Memory, stick: Path) -> None:
    fill(a)
    root = sync(a)
    with Memory.create("mine", "local", home=tmp_path / "mine") as mine:
        MemoryStore(mine.replica, "work").write("tone", b"mine\n")
        with asyncio.run(Memory.open_foreign(root, provider=str(stick))) as foreign:
            scopes = {scope.token for scope in Scopes(foreign.replica).listing()}
            assert scopes == {"work", "o"}
            assert foreign.opened is not None and foreign.opened.problems == []
            reading = MemoryStore(foreign.replica, "work").read("tone")
            assert reading is not None and b"said in work" in reading.data
            assert [e["where"] for e in Timeline(foreign.replica, "o").events()] == ["o"]
            assert foreign.read("tone") is not None
        assert MemoryStore(mine.replica, "work").read("tone").data == b"mine\n"


def test_folders_with_invalid_scope_names_are_skipped() -> None:
    cloud = SimCloud()
    tree = build_tree(
        {
            "memory/a.md": b"a\n",
            "scopes/work/memory/b.md": b"b\n",
            "scopes/2026-04-14/memory/c.md": b"c\n",
            "scopes/Work/memory/d.md": b"d\n",
        }
    )
    asyncio.run(SimProvider(cloud).put_car(tree.cid, tree.blocks, name="x"))
    with asyncio.run(Memory.open_foreign(str(tree.cid), provider=SimProvider(cloud))) as memory:
        assert [scope.token for scope in Scopes(memory.replica).listing()] == ["work"]
        assert memory.opened is not None and len(memory.opened.problems) == 2
        assert all("not a valid scope" in problem for problem in memory.opened.problems)


def test_texts_of_other_scopes_are_found_without_cids() -> None:
    """As at a gateway that serves only files of roots."""
    files = {
        "memory/a.md": b"in the nameless scope\n",
        "memory/timeline/2026-04-14.jsonl": b"{}\n",
        "scopes/work/memory/b.md": b"in a scope\n",
        "scopes/work/memory/timeline/2026-04-14.jsonl": b'{"a":1}\n',
        "memory/.ipfsmem/commit.json": b"{}",
    }
    tree = build_tree(files)
    blocks = dict(tree.blocks)

    async def read(root: CID, path: tuple[str, ...], first: bool) -> bytes | None:
        if first:
            cid: CID | None = root
            from ipfsmem.content.dagpb import decode_node

            for part in path:
                links = {link.name: link.cid for link in decode_node(blocks[cid]).links} if cid else {}
                cid = links.get(part)
            return None if cid is None else blocks[cid]
        return files.get("/".join(path))

    wanted = {raw_cid(sha256(data).digest()) for path, data in files.items() if "commit" not in path}
    found = asyncio.run(StoredFiles(read).find(wanted, [tree.cid]))
    assert found.keys() == wanted
