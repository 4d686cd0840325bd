"""Mode `ipfs`: a published root as gateways show it, with the data that devices need to join it."""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from pathlib import Path

import pytest

from ipfsmem.causal.tree import is_leaf
from ipfsmem.content.cid import parse_cid, raw_cid
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.device.replica import Environment as ReplicaWorld
from ipfsmem.device.root_folders import Folder
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import open_provider
from ipfsmem.testing import SeededRandom
from ipfsmem.vault.home import Home
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner

WALLET = Unlock(RawKeySigner(b"\x01" * 32))


@pytest.fixture
def stick(tmp_path: Path) -> Path:
    path = tmp_path / "stick"
    path.mkdir()
    return path


def make(tmp_path: Path, stick: Path) -> Memory:
    return Memory.create("x", "ipfs", public_ok=True, provider=str(stick), unlock=WALLET, home=tmp_path / "a")


def restore(tmp_path: Path, stick: Path, name: str = "b") -> Memory:
    return Memory.load("x", "ipfs", public_ok=True, provider=str(stick), unlock=WALLET, home=tmp_path / name)


def sync(*memories: Memory) -> str:
    for _ in range(3):
        for memory in memories:
            asyncio.run(memory.sync())
    roots = {memory.status().root for memory in memories}
    assert len(roots) == 1
    root = roots.pop()
    assert root is not None
    return root


def published(stick: Path, root: str) -> dict[str, bytes]:
    """Return the whole tree, read with knowledge of UnixFS and the provider only."""
    provider = open_provider(str(stick))
    return asyncio.run(drive_async(Reader().read_tree(parse_cid(root)), provider.get_blocks))


def hidden(files: dict[str, bytes]) -> set[bytes]:
    return {data for path, data in files.items() if path.startswith("memory/.ipfsmem/o/")}


def test_published_files_are_readable_without_our_program(tmp_path: Path, stick: Path) -> None:
    memory = make(tmp_path, stick)
    memory.write("tone", "direct", name="Tone", description="likes it direct", type="feedback")
    memory.note("waved", hand="left")
    files = published(stick, sync(memory))
    shown = {path: data for path, data in files.items() if ".ipfsmem" not in path}
    day = memory.timeline.read()[0]["ts"][:10]
    assert shown.keys() == {"memory/MEMORY.md", "memory/tone.md", f"memory/timeline/{day}.jsonl"}
    assert shown["memory/tone.md"] == memory.read("tone").data
    assert shown["memory/MEMORY.md"].decode() == memory.index()
    assert json.loads(shown[f"memory/timeline/{day}.jsonl"])["hand"] == "left"
    assert {
        "memory/.ipfsmem/commit.json",
        "memory/.ipfsmem/keyring.json",
        "memory/.ipfsmem/s/top.json",
    } <= set(files)
    assert hidden(files) == set()
    working = {p.name: p.read_bytes() for p in (tmp_path / "a" / "x" / "memory").glob("*.md")}
    assert working == {path[7:]: data for path, data in shown.items() if path.endswith(".md")}


def test_trace_18_alternatives_and_merge_bases_stay_in_the_tree(tmp_path: Path, stick: Path) -> None:
    """In plain mode a cleanly merged view matches no value, so alternatives and bases need a place in the
    tree."""
    a = make(tmp_path, stick)
    base = b"one\n\ntwo\n\nthree\n"
    a.write_text("log", base)
    sync(a)
    b = restore(tmp_path, stick)
    mine, theirs = b"ONE\n\ntwo\n\nthree\n", b"one\n\ntwo\n\nTHREE\n"
    a.write_text("log", mine)
    b.write_text("log", theirs)
    a.write_text("clash", b"x\n")
    b.write_text("clash", b"y\n")
    files = published(stick, sync(a, b))
    merged = b"ONE\n\ntwo\n\nTHREE\n"
    assert files["memory/log.md"] == merged == a.read("log").data == b.read("log").data
    assert hidden(files) == {base, mine, theirs}
    copy = next(path for path in files if ".conflict-" in path)
    assert {files["memory/clash.md"], files[copy]} == {b"x\n", b"y\n"}
    third = restore(tmp_path, stick, "c")
    assert third.read("log").data == merged
    assert third.status().not_fetched == 0
    assert third.conflicts() == a.conflicts()
    for memory in (a, b, third):
        folder = Path(memory.status().folder or "") / "memory"
        assert (folder / "log.md").read_bytes() == merged
        assert (folder / copy.removeprefix("memory/")).read_bytes() == files[copy]
    a.write_text("log", b"settled\n", seen=a.read("log"))
    files = published(stick, sync(a, b, third))
    assert files["memory/log.md"] == b"settled\n"
    assert base not in hidden(files)


def test_files_edited_by_hand_on_two_devices_are_merged(tmp_path: Path, stick: Path) -> None:
    a = make(tmp_path, stick)
    a.write_text("log", b"one\n\ntwo\n")
    sync(a)
    b = restore(tmp_path, stick)
    here, there = tmp_path / "a" / "x" / "memory", tmp_path / "b" / "x" / "memory"
    (here / "log.md").write_bytes(b"one, here\n\ntwo\n")
    (there / "log.md").write_bytes(b"one\n\ntwo, there\n")
    (there / "new note.md").write_bytes(b"from there\n")
    with next((there).glob("MEMORY.md")).open("ab") as index:
        index.write(b"not an input\n")
    root = sync(a, b)
    assert (here / "log.md").read_bytes() == (there / "log.md").read_bytes() == b"one, here\n\ntwo, there\n"
    key = next(key for key in a.files() if key.startswith("new_note"))
    assert b"from there" in (here / f"{key}.md").read_bytes()
    assert (there / "new note.md").read_bytes() == b"from there\n"
    assert f"memory/{key}.md" in published(stick, root)
    (there / "log.md").unlink()
    sync(a, b)
    assert (here / "log.md").exists()


def test_published_tree_can_be_imported(tmp_path: Path, stick: Path) -> None:
    a = make(tmp_path, stick)
    for n in range(5):
        a.write(f"m{n}", f"text {n}", type="project")
    a.note("waved")
    out = tmp_path / "export"
    for path, data in published(stick, sync(a)).items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(data)
    other = Memory.create("y", "local", home=tmp_path / "c")
    imported = other.bundles.import_(out)
    assert (imported.added, imported.events, imported.problems) == (5, 1, ())
    assert other.files() == a.files()
    assert [event["type"] for event in other.timeline.read()] == ["waved"]


def test_small_change_uploads_few_blocks_and_no_change_none(tmp_path: Path, stick: Path) -> None:
    a = make(tmp_path, stick)
    a.bundles.import_(
        json.dumps(
            {
                "version": "memory/0.1",
                "index": "",
                "timeline": [],
                "files": {f"m{n:04d}.md": f"text {n}\n" for n in range(400)},
            }
        )
    )
    root = sync(a)
    report = asyncio.run(a.sync())
    assert (report.published, report.blocks_sent, report.root) == (False, 0, root)
    a.write_text("m0001", b"changed\n")
    report = asyncio.run(a.sync())
    assert report.published and report.blocks_sent <= 12


def test_day_files_are_rebuilt_only_when_they_change(tmp_path: Path, stick: Path) -> None:
    a = make(tmp_path, stick)
    a.note("one")
    first = published(stick, sync(a))
    run = a.replica.db.connection
    rows = run.execute("SELECT path FROM folders WHERE path LIKE 'p//2%'").fetchall()
    a.write_text("x", b"x\n")
    sync(a)
    assert run.execute("SELECT path FROM folders WHERE path LIKE 'p//2%'").fetchall() == rows
    a.note("two")
    later = published(stick, sync(a))
    assert len(run.execute("SELECT path FROM folders WHERE path LIKE 'p//2%'").fetchall()) == 1
    day = next(path for path in first if "timeline" in path)
    assert later[day].startswith(first[day]) and later[day] != first[day]


def test_day_longer_than_one_block_is_published(tmp_path: Path, stick: Path) -> None:
    a = make(tmp_path, stick)
    events = [{"ts": f"2026-01-01T00:00:{n:02d}Z", "type": "long", "text": "x" * 50_000} for n in range(30)]
    a.bundles.import_(json.dumps({"version": "memory/0.1", "index": "", "files": {}, "timeline": events}))
    files = published(stick, sync(a))
    assert files["memory/timeline/2026-01-01.jsonl"].count(b"\n") == 30
    assert len(restore(tmp_path, stick).timeline.read()) == 30


def test_hidden_objects_follow_the_prefix_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipfsmem.published import layout

    made: dict[tuple[str, ...], int] = {}

    def add_folder(_: object, links: list[tuple[bytes, bytes, int]]) -> Folder:
        made[tuple(name.decode() for name, _, _ in links)] = len(links)
        return raw_cid(sha256(repr(links).encode()).digest()).encode(), 1

    monkeypatch.setattr(layout, "add_folder", add_folder)
    names = sorted(sha256(b"%d" % n).hexdigest()[:40] for n in range(300))
    layout._prefix_folder(None, [(name, b"cid", 1) for name in names], 0)  # type: ignore[arg-type]
    leaves = [links for links in made if len(links[0]) == 40]
    assert sorted(name for leaf in leaves for name in leaf) == names
    assert all(is_leaf(len(leaf), len(leaf), 1) for leaf in leaves)
    assert tuple("0123456789abcdef") in made


def test_collection_keeps_objects_that_the_tree_needs(tmp_path: Path, stick: Path) -> None:
    now = [1_776_000_000_000]
    world = ReplicaWorld(lambda: now[0], SeededRandom(1))
    a = Memory.create(
        "x",
        "ipfs",
        public_ok=True,
        provider=str(stick),
        unlock=WALLET,
        home=Home(folder=tmp_path / "a", environment=world),
    )
    for n in range(4):
        a.write_text("log", b"%d\n\nsame\n" % n)
        a.write_text("clash", b"%d\n" % n)
        a.note("turn", n=n)
        sync(a)
        now[0] += 100 * 86_400_000
    asyncio.run(a.maintenance.gc(keep_roots=1, keep_days=0))
    root = sync(a)
    assert published(stick, root)["memory/log.md"] == b"3\n\nsame\n"
    b = restore(tmp_path, stick)
    assert b.files() == a.files() and len(b.timeline.read()) == 4
    assert b.status().not_fetched == 0
    a.folders.scan()
    a.folders.render()
    assert (tmp_path / "a" / "x" / "memory" / "log.md").read_bytes() == b"3\n\nsame\n"


def test_folder_of_revoked_device_is_released_and_unpublished_files_named(
    tmp_path: Path, stick: Path
) -> None:
    a = make(tmp_path, stick)
    sync(a)
    b = restore(tmp_path, stick)
    place = tmp_path / "agent"
    b.folders.attach(place)
    b.write("tone", "direct")
    sync(a, b)
    b.write("stranded", "never published")
    files = {path.name: path.read_bytes() for path in place.glob("*.md")}
    asyncio.run(a.members.revoke(b.device))
    b.lock()
    asyncio.run(b.sync())
    assert [*b.folders.list()] == [] and not (place / ".ipfsmem").exists()
    assert {path.name: path.read_bytes() for path in place.glob("*.md")} == files
    notices = "\n".join(b.status().notices)
    assert "stranded" in notices and "ipfsmem export" in notices and "tone" not in notices
    assert not a.members.is_revoked() and b.members.is_revoked()
    a.close()
    b.close()
