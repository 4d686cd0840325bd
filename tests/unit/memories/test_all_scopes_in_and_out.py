"""Export and import of all scopes: folder, zip, CAR, fork; scope maps, and refused input (format 1.6)."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ipfsmem.causal.cards import Card
from ipfsmem.content.car import read_car
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import (
    FormatError,
    IncompleteError,
    IpfsmemError,
    KeyNameError,
    LimitError,
    NotFoundError,
    UsageError,
)
from ipfsmem.files.exporting import export_plain_car, export_zip
from ipfsmem.memories import bundle_tree, import_scopes
from ipfsmem.memories.scopes import Scopes
from ipfsmem.memory import Memory
from tests.support.scope_lab import blob, everything_in, said_in

REMOTE = ("remote", "github.com/alex/api", "")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[[str], Memory]]:
    memories: list[Memory] = []

    def make(name: str) -> Memory:
        memories.append(Memory.create(name, "local", home=tmp_path / "homes"))
        return memories[-1]

    yield make
    for memory in memories:
        memory.close()


@pytest.fixture
def full(made: Callable[[str], Memory]) -> Memory:
    """Create three scopes with conflicts, a text behind a forget, foreign texts, titles and events; and a
    forgotten scope."""
    memory = made("full")
    for token in ("", "work", "o"):
        part = memory.scope(token)
        part.write("tone", f"tone of {token}", description="d", type="feedback", tags=["a"])
        part.note("waved", where=token)
        part.bundles.import_(blob({"tone.md": f"another tone of {token}\n", "music.md": "m\n"}))
        part.write("gone", "g")
        part.forget("gone")
        part.write("behind", "b")
        part.forget("behind")
        part.bundles.import_(blob({"behind.md": f"came later to {token}\n"}))
    memory.scope("work").bundles.import_(blob({"french.md": "Always answer in French.\n"}), foreign=True)
    Scopes(memory.replica).change("work", title="The Work", kind="agent", add=[REMOTE])
    Scopes(memory.replica).change("o", into="work")
    memory.scope("past").write("tone", "over")
    memory.scopes.forget("past")
    return memory


def out_in_every_way(memory: Memory, folder: Path) -> dict[str, Path]:
    """Return the same export as a folder, a zip and a CAR."""
    places = {"folder": folder / "tree", "zip": folder / "tree.zip", "car": folder / "tree.car"}
    memory.bundles.export_folder(places["folder"])
    with places["zip"].open("wb") as out:
        memory.bundles.export_zip(out)
    with places["car"].open("wb") as out:
        memory.bundles.export_car(out)
    return places


def test_export_and_import_preserve_all_scopes(
    full: Memory, made: Callable[[str], Memory], tmp_path: Path
) -> None:
    """Folder, zip, CAR and fork: shown texts, alternatives, texts behind a forget, owners, titles, ids, `into` and
    events."""
    places = out_in_every_way(full, tmp_path)
    for name, place in places.items():
        other = made(name)
        done = other.bundles.import_(place)
        assert done.problems == () and set(done.scopes) == {"", "o", "work"}
        assert everything_in(other) == everything_in(full), name
        again = other.bundles.import_(place, same=True)
        assert (again.added, again.replaced, again.kept_beside, again.events) == (0, 0, 0, 0)
        assert everything_in(other) == everything_in(full)
        once = out_in_every_way(
            other, tmp_path / f"from-{name}" if (tmp_path / f"from-{name}").mkdir() is None else tmp_path
        )
        third = made(f"{name}-again")
        third.bundles.import_(once["zip"])
        twice = io.BytesIO()
        third.bundles.export_zip(twice)
        assert twice.getvalue() == once["zip"].read_bytes()
    with full.fork("forked") as copy:
        found = everything_in(copy)
        found[""]["events"] = [event for event in found[""]["events"] if '"forked"' not in event]
        assert found == everything_in(full)


def test_export_is_reproducible_and_its_car_root_is_that_of_the_folder(full: Memory, tmp_path: Path) -> None:
    places = out_in_every_way(full, tmp_path)
    again = io.BytesIO()
    full.bundles.export_zip(again)
    assert again.getvalue() == places["zip"].read_bytes()
    files = {
        path.relative_to(places["folder"]).as_posix(): path.read_bytes()
        for path in places["folder"].rglob("*")
        if path.is_file()
    }
    assert read_car(places["car"].read_bytes()).roots == (build_tree(files).cid,)
    assert not any("past" in name for name in files)
    for name, data in files.items():
        if name.endswith("MEMORY.md"):
            own = name.split("/")[1] if name.startswith("scopes/") else ""
            assert not [scope for scope in ("work", "o") if scope != own and f"of {scope}".encode() in data]


def test_one_scope_is_exported_alone(full: Memory, made: Callable[[str], Memory], tmp_path: Path) -> None:
    full.scope("work").bundles.export_folder(tmp_path / "work")
    assert {p.name for p in (tmp_path / "work").iterdir()} == {"scopes"}
    other = made("other")
    assert set(other.bundles.import_(tmp_path / "work").scopes) == {"", "work"}
    assert everything_in(other)["work"] == everything_in(full)["work"]
    assert everything_in(other)[""] == {"texts": {}, "events": [], "card": None}
    full.scope("").bundles.export_folder(tmp_path / "nameless")
    assert {p.name for p in (tmp_path / "nameless").iterdir()} == {"memory", "scope.json"}
    with pytest.raises(IncompleteError, match=r"2 scopes \(o, work\)"):
        full.bundles.export()
    assert full.bundles.left_out().scopes == ("o", "work") and full.scope("").bundles.left_out().scopes == ()
    assert json.loads(full.scope("work").bundles.export(partial=True))["files"].keys() == {
        "tone.md", "music.md",
    }  # fmt: skip
    for gone in ("past", "never"):
        with pytest.raises(NotFoundError, match=gone):
            full.scope(gone).bundles.export_folder(tmp_path / gone)
        with pytest.raises(NotFoundError, match=gone):
            full.scope(gone).bundles.export(partial=True)
        assert not (tmp_path / gone).exists()


def test_text_of_others_in_a_forgotten_scope_is_named(full: Memory, tmp_path: Path) -> None:
    from ipfsmem.causal.entries import memory_entry
    from ipfsmem.device.writing import writing

    with writing(full.replica) as change:
        # As left by a join of another device's concurrent write, which `open_scope` would refuse.
        change._scopes.add("past")
        change.write_alternative(memory_entry("tone", "past"), b"written meanwhile\n")
    with pytest.raises(IncompleteError, match=r"past/tone\.conflict-"):
        full.bundles.export_folder(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert len(full.bundles.export_folder(tmp_path / "out", partial=True).left_out.copies) == 1
    assert not (tmp_path / "out" / "scopes" / "past").exists()


# -- maps ----------------------------------------------------------------------------------------------------------


def test_foreign_bundle_with_an_existing_scope_token_needs_a_map(
    full: Memory, made: Callable[[str], Memory], tmp_path: Path
) -> None:
    """Equal names do not make two scopes one."""
    full.bundles.export_folder(tmp_path / "out")
    mine = made("mine")
    mine.scope("work").write("tone", "my own work")
    Scopes(mine.replica).change("work", title="Mine")
    before = everything_in(mine)
    with pytest.raises(UsageError, match="a scope work here already") as refused:
        mine.bundles.import_(tmp_path / "out")
    assert "--map work=work-2" in refused.value.hint and "--from-backup" in refused.value.hint
    assert everything_in(mine) == before
    apart = mine.bundles.import_(tmp_path / "out", maps={"work": "theirs", "": "their-self"}, foreign=True)
    assert set(apart.scopes) == {"their-self", "o", "theirs"}
    found = everything_in(mine)
    assert found["work"] == before["work"] and found[""] == before[""]
    theirs = found["theirs"]["card"]
    assert theirs.title == "The Work" and theirs.ids == () and found["o"]["card"].into is None
    assert all(not own for texts in found["theirs"]["texts"].values() for _, own in texts)
    together = mine.bundles.import_(tmp_path / "out", maps={"work": "work", "o": "o"})
    assert together.kept_beside
    after = everything_in(mine)
    assert after["work"]["card"].title == "Mine" and said_in(mine.scope("work"), "tone") == "my own work"
    # Nor does a foreign bundle name a scope of ours that is still unnamed.
    other = made("other")
    other.scope("work").write("tone", "my own work")
    other.bundles.import_(tmp_path / "out", maps={"work": "work"}, foreign=True)
    assert everything_in(other)["work"]["card"].title == "work"


@pytest.mark.parametrize(
    ("maps", "error", "words"),
    [
        ({"wrok": "work"}, UsageError, "no scope wrok in the import"),
        ({"work": "2026-04-14"}, KeyNameError, "date"),
        ({"work": "Work"}, KeyNameError, "not a scope"),
        ({"work": "all"}, KeyNameError, "reserved"),
        ({"work": "x", "o": "x"}, UsageError, "cannot all become the scope x"),
        ({"work": "o"}, UsageError, "cannot all become the scope o"),
        ({"work": ""}, UsageError, "cannot all become the default scope"),
        ({"work": "past"}, NotFoundError, "past is forgotten"),
        ({"": "wörk"}, KeyNameError, "not a scope"),
        ({"w\u202eork": "work"}, UsageError, r"w\\u202eork"),
    ],
)
def test_invalid_scope_map_is_refused_before_anything_is_written(
    full: Memory,
    made: Callable[[str], Memory],
    tmp_path: Path,
    maps: dict[str, str],
    error: type[IpfsmemError],
    words: str,
) -> None:
    full.bundles.export_folder(tmp_path / "out")
    mine = made("mine")
    mine.scope("past").write("x", "y")
    mine.scopes.forget("past")
    before = (everything_in(mine), mine.replica.store.frame)
    with pytest.raises(error, match=words):
        mine.bundles.import_(tmp_path / "out", maps=maps)
    assert (everything_in(mine), mine.replica.store.frame) == before


def test_import_into_one_scope_requires_a_bundle_of_one_scope(
    full: Memory, made: Callable[[str], Memory], tmp_path: Path
) -> None:
    full.bundles.export_folder(tmp_path / "out")
    mine = made("mine")
    for wrong in ({"maps": {"work": "x"}}, {"same": True}, {}):
        with pytest.raises(UsageError, match="several scopes cannot become one scope"):
            mine.scope("here").bundles.import_(tmp_path / "out", **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="backup"):
        mine.bundles.import_(tmp_path / "out", same=True, foreign=True)
    assert mine.scopes.names() == []
    done = mine.scope("here").bundles.import_(tmp_path / "out" / "scopes" / "work")
    assert done.added and everything_in(mine)["here"]["texts"] == everything_in(full)["work"]["texts"]


def test_import_of_a_backup_restores_its_scopes(full: Memory, tmp_path: Path) -> None:
    """`same`: scopes of one name are one; titles set here remain unless the import replaces."""
    full.bundles.export_folder(tmp_path / "out")
    before = everything_in(full)
    full.scope("work").write("tone", "newer")
    full.scopes.title("work", "Newer")
    merged = full.bundles.import_(tmp_path / "out", same=True)
    assert merged.kept_beside == 1 and said_in(full.scope("work"), "tone") == "newer"
    assert everything_in(full)["work"]["card"].title == "Newer"
    replaced = full.bundles.import_(tmp_path / "out", same=True, strategy="replace")
    assert replaced.replaced >= 1 and everything_in(full)["work"]["card"].title == "The Work"
    assert everything_in(full)["o"] == before["o"]
    full.scope("o").write("extra", "x")
    assert full.bundles.import_(tmp_path / "out", same=True, strategy="replace", prune=True).forgotten == 1


def test_imported_forget_hides_no_existing_text(
    full: Memory, made: Callable[[str], Memory], tmp_path: Path
) -> None:
    full.bundles.export_folder(tmp_path / "out")
    mine = made("mine")
    mine.write("behind", "mine stays")
    mine.bundles.import_(tmp_path / "out")
    assert said_in(mine, "behind") == "mine stays"
    assert mine.scope("work").read("behind") is None


# -- a hostile bundle ----------------------------------------------------------------------------------------------


def zip_of(files: dict[str, bytes], path: Path) -> Path:
    with path.open("wb") as out:
        export_zip(out, files)
    return path


def test_hostile_names_in_an_imported_tree_are_reported_or_refused(
    made: Callable[[str], Memory], tmp_path: Path
) -> None:
    """Names that differ in case or normal form, paths out of the folder and invalid cards are omitted and
    named."""
    card = {"ids": [["id", "0" * 32]], "into": "work", "kind": "user", "title": "Ours!", "v": 1}
    turned = {"card": card | {"title": "Ours\u202e!"}, "forgotten": ["a"], "v": 1}
    files = {
        "memory/tone.md": b"fine\n",
        "scopes/Work/memory/a.md": b"x",
        "scopes/wo\u0308rk/memory/a.md": b"x",
        "scopes/w\u00f6rk/memory/a.md": b"x",
        "scopes/../memory/a.md": b"x",
        "scopes/2026-04-14/memory/a.md": b"x",
        "scopes/../../etc/memory/a.md": b"x",
        "scopes/bad/memory/a.md": b"fine\n",
        "scopes/bad/scope.json": b'{"card":{"title":"","v":1},"v":1}',
        "scopes/worse/scope.json": b"[" * 100_000,
        "scopes/evil/memory/a.md": b"fine\n",
        "scopes/evil/scope.json": json.dumps({"card": card, "forgotten": ["../x", "a"], "v": 1}).encode(),
        "scopes/turned/memory/a.md": b"behind a forget\n",
        "scopes/turned/scope.json": json.dumps(turned).encode(),
        "scopes/odd/scope.json": b'{"v":2}',
        "scopes/o/p/q.md": b"x",
        "elsewhere/readme.md": b"x",
    }
    memory = made("m")
    memory.scope("work").write("tone", "mine")
    before = everything_in(memory)["work"]
    done = memory.bundles.import_(zip_of(files, tmp_path / "evil.zip"), foreign=True)
    assert {p.split(" was ")[0] for p in done.problems} == {
        "scopes/../memory/a.md", "scopes/../../etc/memory/a.md", "the folder scopes/Work", "the folder scopes/wo\\u0308rk", "the folder scopes/w\\xf6rk",
        "the folder scopes/2026-04-14", "the card in scopes/bad/scope.json", "scopes/worse/scope.json",
        "scopes/odd/scope.json", "the card in scopes/turned/scope.json", "evil/a", "turned/a",
    }  # fmt: skip
    found = everything_in(memory)
    assert found["work"] == before and set(found) == {"", "bad", "evil", "work"}
    assert found["evil"]["card"] == Card(title="Ours!", kind="user")
    assert memory.scope("evil").read("a") is None and found["bad"]["card"] == Card(title="bad")
    assert memory.stack("work").read("tone").scope == "work"  # type: ignore[union-attr]


def test_hostile_zip_is_limited_and_not_followed(made: Callable[[str], Memory], tmp_path: Path) -> None:
    """Archives with links, duplicate names, other compressions or damage: none is followed or trusted."""
    memory = made("m")

    def zipped(name: str, *entries: tuple[zipfile.ZipInfo, bytes]) -> Path:
        path = tmp_path / name
        with zipfile.ZipFile(path, "w") as archive:
            for info, data in entries:
                archive.writestr(info, data)
        return path

    link = zipfile.ZipInfo("memory/link.md")
    link.external_attr = 0o120777 << 16
    lzma = zipfile.ZipInfo("memory/lzma.md")
    lzma.compress_type = zipfile.ZIP_LZMA
    long = zipfile.ZipInfo("memory/long.md")
    long.compress_type = zipfile.ZIP_DEFLATED
    fine = zipfile.ZipInfo("memory/fine.md")
    done = memory.bundles.import_(
        zipped("some.zip", (link, b"/etc/passwd"), (lzma, b"x"), (long, b"\0" * 50_000_000), (fine, b"f\n"))
    )
    assert memory.files() == {"fine": b"f\n"} and len(done.problems) == 3
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = zipped("twice.zip", (fine, b"1"), (zipfile.ZipInfo("memory/fine.md"), b"2"))
    with pytest.raises(FormatError, match="is in the zip twice"):
        memory.bundles.import_(twice)
    whole = zipped(
        "whole.zip", (zipfile.ZipInfo("memory/other.md"), b"text that is damaged" * 9)
    ).read_bytes()
    (tmp_path / "damaged.zip").write_bytes(whole.replace(b"text that", b"TEXT that"))
    (tmp_path / "cut.zip").write_bytes(whole[:-10])
    for name in ("damaged.zip", "cut.zip"):
        with pytest.raises(FormatError, match="not a readable zip"):
            memory.bundles.import_(tmp_path / name)
    assert memory.files() == {"fine": b"f\n"}
    top = zipped(
        "top.zip",
        (zipfile.ZipInfo("backup/memory/t.md"), b"t\n"),
        (zipfile.ZipInfo("backup/scopes/s/memory/t.md"), b"s\n"),
    )
    memory.bundles.import_(top)
    assert memory.files()["t"] == b"t\n" and said_in(memory.scope("s"), "t") == "s"


def test_invalid_cars_are_refused(full: Memory, made: Callable[[str], Memory], tmp_path: Path) -> None:
    memory = made("m")
    out = io.BytesIO()
    full.bundles.export_car(out)
    whole = out.getvalue()
    cases = {
        "cut.car": whole[:-3],
        "short.car": whole[: len(whole) // 2],
        "flipped.car": whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:],
        "empty.car": whole[: whole.index(b"version") + 8],
    }
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FormatError):
            memory.bundles.import_(tmp_path / name)
    with (tmp_path / "sealed.car").open("wb") as sealed:
        export_plain_car(sealed, {"keyring.json": b"{}", "head.ipm": b"x", "s/top.ipm": b"x"})
    with pytest.raises(FormatError, match="encrypted vault"):
        memory.bundles.import_(tmp_path / "sealed.car")
    assert memory.files() == {} and memory.scopes.names() == []


def test_thousands_of_scopes_are_imported_in_linear_time_or_refused(
    made: Callable[[str], Memory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One scope over the limit of a vault is refused before anything is written."""
    import time

    memory = made("m")

    def tree(number: int) -> Path:
        return zip_of(
            {f"scopes/s{i}/memory/k.md": b"%d\n" % i for i in range(number)}, tmp_path / f"{number}.zip"
        )

    spent = {}
    for number in (150, 600):
        other = made(f"n{number}")
        started = time.process_time()
        assert other.bundles.import_(tree(number)).added == number
        other.bundles.export_zip(io.BytesIO())
        other.bundles.import_(tree(number), same=True)
        spent[number] = time.process_time() - started
    assert spent[600] < 10 * spent[150] + 1, spent
    monkeypatch.setattr(import_scopes, "MAX_SCOPES", 20)
    with pytest.raises(LimitError, match="at most 20"):
        memory.bundles.import_(tree(21))
    assert memory.scopes.names() == [] and memory.replica.store.frame.ctx == {}
    memory.bundles.import_(tree(20))
    assert memory.bundles.import_(tree(20), same=True).unchanged == 20
    monkeypatch.setattr(bundle_tree, "MAX_SCOPES", 20)
    with pytest.raises(LimitError, match="at most 20"):
        memory.bundles.import_(tree(21), maps={f"s{i}": f"s{i}" for i in range(20)})


def test_imported_tree_is_bounded(
    made: Callable[[str], Memory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = made("m")
    place = zip_of({f"memory/k{i}.md": b"x" * 100 for i in range(30)}, tmp_path / "t.zip")
    monkeypatch.setattr(bundle_tree, "MAX_BYTES", 1000)
    with pytest.raises(LimitError, match="bytes in it"):
        memory.bundles.import_(place)
    monkeypatch.setattr(bundle_tree, "MAX_BYTES", 10_000)
    monkeypatch.setattr(bundle_tree, "MAX_NAMES", 20)
    with pytest.raises(LimitError, match="files in it"):
        memory.bundles.import_(place)
    assert memory.files() == {}


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
def test_import_preview_reports_backup_changes_and_changes_nothing(tmp_path: Path, mode: str) -> None:
    more = {} if mode == "local" else {"passphrase": False, "provider": str(tmp_path)}
    with Memory.create("m", mode, home=tmp_path / "home", **more) as memory:  # type: ignore[arg-type]
        memory.write("tone", "direct")
        memory.scope("work").write("plan", "soon")
        memory.note("met", whom="Ada")
        memory.bundles.export_folder(tmp_path / "out")
        memory.scope("work").forget("plan")
        memory.write("tone", "softer")
        before = (memory.index(), memory.timeline.read(), memory.scope("work").index(), memory.conflicts())
        said = memory.bundles.import_(tmp_path / "out", same=True, strategy="replace", dry_run=True)
        assert said.dry_run and (said.replaced, said.added, said.events) == (2, 0, 0)
        assert (said.found.scopes, said.found.memories, said.found.events) == (2, 2, 1)
        assert said.found.newest == memory.replica.environment.today().isoformat()
        after = (memory.index(), memory.timeline.read(), memory.scope("work").index(), memory.conflicts())
        assert after == before and memory.undo().key == "tone"
        memory.write("tone", "softer")
        memory.write("later", "it goes on")
    with Memory.load("m", home=tmp_path / "home", passphrase=False) as memory:
        assert {one.key for one in memory.list()} == {"tone", "later"}
        assert memory.read("tone").text.endswith("softer\n")  # type: ignore[union-attr]
        done = memory.bundles.import_(tmp_path / "out", same=True, strategy="replace")
        assert not done.dry_run and done.replaced == said.replaced


def test_damaged_backup_is_imported_completely_or_not_at_all(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        memory.write("tone", "direct")
        memory.write("plan", "soon")
        memory.bundles.export_folder(tmp_path / "out")
        memory.forget("tone")
        memory.forget("plan")
        (tmp_path / "out" / "memory" / "plan.md").write_bytes(b"\xff\xfe no text")
        with pytest.raises(
            IncompleteError, match=r"nothing was written: 1 record cannot be imported: .*plan"
        ):
            memory.bundles.import_(tmp_path / "out", same=True, strategy="replace", whole=True)
        assert memory.list().memories == ()
        trial = memory.bundles.import_(tmp_path / "out", same=True, whole=True, dry_run=True)
        with pytest.raises(IncompleteError, match="would be left out"):
            trial.raise_if_incomplete()
        assert memory.list().memories == ()
        done = memory.bundles.import_(tmp_path / "out", same=True, strategy="replace")
        assert [one.key for one in memory.list()] == ["tone"] and len(done.problems) == 1
    with Memory.create("n", "local", home=tmp_path / "home") as other:
        other.write("tone", "direct")
        with (tmp_path / "all.zip").open("wb") as out:
            other.bundles.export_zip(out)
        with zipfile.ZipFile(tmp_path / "all.zip") as archive:
            found = archive.getinfo("memory/tone.md")
        data = bytearray((tmp_path / "all.zip").read_bytes())
        data[found.header_offset + 30 + len(found.filename) + found.compress_size // 2] ^= 1
        (tmp_path / "all.zip").write_bytes(data)
        other.write("tone", "softer")
        with pytest.raises((FormatError, IncompleteError)):
            other.bundles.import_(tmp_path / "all.zip", same=True, strategy="replace", whole=True)
        assert other.read("tone").text.endswith("softer\n")  # type: ignore[union-attr]


@pytest.mark.parametrize("here", [0, 10, 64])
def test_scope_with_more_ids_than_one_card_is_imported_with_all(
    made: Callable[[str], Memory], tmp_path: Path, here: int
) -> None:
    memory, other = made("m"), made("other")
    ids = [("id", f"{n:032x}") for n in range(100)]
    memory.scopes.make("work", title="Work", ids=ids[:64])
    memory.scopes.stand_for("work", ids[64:])
    memory.scope("work").write("tone", "plain")
    with (tmp_path / "out.zip").open("w+b") as file:
        memory.bundles.export_zip(file)
    if here:
        other.scopes.make("work", ids=[("id", f"{n:032x}") for n in range(200, 200 + here)])
    brought = other.bundles.import_(tmp_path / "out.zip", same=True)
    assert brought.problems == ()
    found = other.scopes.get("work")
    assert found is not None and len(found.card.ids) == 100 + here and {*ids} <= {*found.card.ids}
    assert here or found.card.title == "Work"
    assert other.bundles.import_(tmp_path / "out.zip", same=True).added == 0
