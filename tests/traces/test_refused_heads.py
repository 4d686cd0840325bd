"""Folders that a provider without keys forges: refused heads never lead to a restored empty vault.

The devices are real; a forged folder has the true keyring.json and head.ipm next to other files.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from hashlib import sha256

import pytest

from ipfsmem.content.cid import CID, DAG_PB, ipns_name, parse_cid, raw_cid
from ipfsmem.content.dagpb import BlockLink, decode_node
from ipfsmem.content.tree import build_tree
from ipfsmem.content.unixfs import directory
from ipfsmem.errors import DamagedError
from ipfsmem.provider.contract import Pin
from ipfsmem.sync.names import pin_name
from tests.support.device_lab import ROOT, Lab, all_texts, body, kinds

_Links = dict[str, BlockLink]


def folder_of(lab: Lab, root: CID) -> _Links:
    return {link.name: link for link in decode_node(lab.cloud.blocks[root]).links}


def tree(lab: Lab, files: dict[str, bytes]) -> CID:
    made = build_tree(files)
    lab.cloud.blocks |= dict(made.blocks)
    return made.cid


def block(lab: Lab, cid: CID, data: bytes) -> CID:
    lab.cloud.blocks[cid] = data
    return cid


def _long_top(lab: Lab, links: _Links) -> None:
    links["s"] = BlockLink("s", tree(lab, {"top.ipm": b"x" * (3 << 20)}), 10)


def _no_folder(lab: Lab, links: _Links) -> None:
    links["s"] = BlockLink("s", block(lab, raw_cid(sha256(b"noise").digest()), b"noise"), 10)


def _top_is_a_folder(lab: Lab, links: _Links) -> None:
    links["s"] = BlockLink("s", tree(lab, {"top.ipm/x": b"x"}), 10)


def _noise_for_a_node(lab: Lab, links: _Links) -> None:
    links["s"] = BlockLink("s", tree(lab, {"top.ipm": b"IPM1" + bytes(600)}), 10)


def _short_node(lab: Lab, links: _Links) -> None:
    links["s"] = BlockLink("s", tree(lab, {"top.ipm": b"x"}), 10)


def _no_state(lab: Lab, links: _Links) -> None:
    del links["s"]


def _no_unixfs(lab: Lab, links: _Links) -> None:
    data = b"\x0a\x02\x08\x07"
    links["s"] = BlockLink("s", block(lab, CID(1, DAG_PB, b"\x12\x20" + sha256(data).digest()), data), 1)


def _noise_for_a_head(lab: Lab, links: _Links) -> None:
    links["head.ipm"] = BlockLink(
        "head.ipm", folder_of(lab, tree(lab, {"f": b"IPM1" + bytes(600)}))["f"].cid, 5
    )


GRAFTS = (
    _long_top,
    _no_folder,
    _top_is_a_folder,
    _noise_for_a_node,
    _short_node,
    _no_state,
    _no_unixfs,
    _noise_for_a_head,
)


def graft(lab: Lab, name: str, root: CID, change: Callable[[Lab, _Links], None]) -> None:
    """The provider shows this device the top of a true root under another folder, and no newer names."""
    links = folder_of(lab, root)
    change(lab, links)
    made = directory(links.values())
    lab.cloud.blocks |= dict(made.blocks)
    faults = lab.provider(name).faults
    faults.pins = [Pin(made.cid, pin_name(ROOT.head_public), "x", 5)]
    faults.old_record = {ipns_name(m.replica.device.sign_public): -1 for m in lab.devices.values()}


def pins(lab: Lab) -> set[CID]:
    """Return the pinned roots that have a head; a root with a ring alone says nothing about texts."""
    return {pin.cid for pin in lab.cloud.pins if "head.ipm" in folder_of(lab, pin.cid)}


@pytest.mark.parametrize("change", GRAFTS, ids=lambda change: change.__name__.lstrip("_"))
def test_refused_head_is_not_treated_as_an_empty_vault(
    lab: Lab, change: Callable[[Lab, _Links], None]
) -> None:
    a = lab.create("a")
    a.write("precious", "honest")
    lab.sync(a)
    graft(lab, "b", parse_cid(str(a.status().root)), change)
    before = pins(lab)
    with pytest.raises(DamagedError, match="could not be read completely"):
        lab.restore("b")
    assert pins(lab) == before and not (lab.home("b") / "alex" / "ipfsmem.json").exists()
    graft(lab, "c", parse_cid(str(a.status().root)), change)
    c = lab.restore("c", damaged_ok=True)
    report = lab.sync(c)
    assert not all_texts(c) and not report.published and report.root is None
    assert "cannot-publish" in kinds(report)
    assert pins(lab) == before, "nothing was published over what could not be read"
    lab.provider("c").faults.pins, lab.provider("c").faults.old_record = None, {}
    lab.settle(a, c)
    assert all_texts(c) == {"honest"}


@pytest.mark.parametrize("change", GRAFTS[:7], ids=lambda change: change.__name__.lstrip("_"))
def test_folder_that_does_not_match_its_commit_is_damage(
    lab: Lab, change: Callable[[Lab, _Links], None]
) -> None:
    """A verified commit over a folder that does not fit it is damaged, never its maker's doing."""
    a = lab.create("a")
    a.write("precious", "honest")
    lab.sync(a)
    graft(lab, "b", parse_cid(str(a.status().root)), change)
    b = lab.restore("b", damaged_ok=True)
    assert b.restored is not None and b.restored.damaged == 1
    assert "damaged" in kinds(b.restored) and "head-refused" not in kinds(b.restored)
    for _ in range(2):
        assert lab.sync(b).damaged == 1, "each sync says so, also one that looks at no list"
    lab.provider("b").faults.pins, lab.provider("b").faults.old_record = None, {}
    assert lab.sync(b).damaged == 0 and all_texts(b) == {"honest"}, (
        "the same commit stands under a whole root"
    )


def test_older_heads_behind_refused_ones_are_found(lab: Lab) -> None:
    """The first read of a list opens eight roots; if all of them are refused, the whole list is read."""
    a = lab.create("a")
    a.write("precious", "honest")
    lab.sync(a)
    root = parse_cid(str(a.status().root))
    fakes = []
    for n in range(9):
        links = folder_of(lab, root) | {"z": BlockLink(f"z{n}", tree(lab, {"f": b"%d" % n}), 1)}
        _noise_for_a_head(lab, links)
        made = directory(links.values())
        lab.cloud.blocks |= dict(made.blocks)
        fakes.append(Pin(made.cid, pin_name(ROOT.head_public), f"x{n}", 10 + n))
    faults = lab.provider("b").faults
    faults.pins = [Pin(root, pin_name(ROOT.head_public), "x", 5), *fakes]
    faults.old_record = {ipns_name(a.replica.device.sign_public): -1}
    assert all_texts(lab.restore("b")) == {"honest"}


def _stuffed(lab: Lab, name: str, blocks: list[bytes], *, first: bool, tail: bool) -> None:
    """This device's connection also answers requests for a tree with these blocks."""
    provider = lab.provider(name)
    honest = provider.get_dag

    async def get_dag(root: CID) -> AsyncIterator[tuple[CID, bytes]]:
        if first:
            for data in blocks:
                yield raw_cid(sha256(data).digest()), data
        if tail:
            async for item in honest(root):
                yield item

    provider.get_dag = get_dag  # type: ignore[method-assign]


@pytest.mark.parametrize("tail", (True, False))
def test_unrelated_blocks_refuse_no_head_and_are_not_stored(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tail: bool
) -> None:
    """A provider that answers for a whole tree with valid blocks of its own."""
    a = lab.create("a")
    a.write("precious", "honest")
    lab.sync(a)
    monkeypatch.setattr("ipfsmem.sync.fetch.WHOLE_MAX", 100_000)
    junk = [bytes([n]) * 50_000 for n in range(8)]
    _stuffed(lab, "b", junk, first=True, tail=tail)
    b = lab.restore("b")
    assert all_texts(b) == {"honest"}
    with b.replica.reading():
        kept = {bytes(row[0]) for row in b.replica.db.connection.execute("SELECT digest FROM blocks")}
    assert kept.isdisjoint({sha256(data).digest() for data in junk})


def test_sync_with_unreadable_head_of_another_device_does_not_exit_0(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    a.write("tone", "of a")
    root = parse_cid(str(lab.sync(a).root))
    for part in (root, folder_of(lab, root)["head.ipm"].cid):
        lab.provider("b").faults.drop = {part}
        report = lab.sync(b)
        assert body(b, "tone") is None
        assert report.exit_code == DamagedError.exit_code and "head-refused" in kinds(report)
    lab.provider("b").faults.drop = set()
    assert lab.sync(b).exit_code == 0 and body(b, "tone") == "of a"
