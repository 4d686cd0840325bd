"""Traces 20 to 33: sequences in which devices disagreed or stopped in an earlier draft, as far as commits and
providers show them.

Traces about the ring alone (20, 22, 23) are in test_ring_traces.py; 27 and 28 are with the prefix tree."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec

from ipfsmem.bundle.keys import key_of_foreign_name
from ipfsmem.causal.merge3 import merge_lines
from ipfsmem.causal.value import MAX_DOTS, dot
from ipfsmem.content.cid import CID, decode_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.unixfs import raw_directory
from ipfsmem.seal.primitives import verify
from ipfsmem.testing.simulator import FULL, SimProvider
from tests.support.device_lab import (
    ROOT,
    Forger,
    Lab,
    all_texts,
    body,
    delete,
    kinds,
    lab_in,
    same,
    says,
    texts,
)

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"


def test_trace_20_two_devices_enrol_concurrently(lab: Lab) -> None:
    """Laptop and phone enrol concurrently: two rings of one epoch, each refusing the other. -> a set of
    statements."""
    a = lab.create("a")
    a.write("tone", "x")
    lab.sync(a)
    names, blocks = {n: list(r) for n, r in lab.cloud.names.items()}, dict(lab.cloud.blocks)
    b = lab.restore("b", hold=True)
    # C sees the state before B joined.
    later = lab.cloud.names
    lab.cloud.names = names
    c = lab.restore("c", hold=True)
    for name, records in later.items():
        known = lab.cloud.names.setdefault(name, [])
        known += [record for record in records if record not in known]
    lab.cloud.blocks.update(blocks)
    b.write("laptop", "b")
    c.write("phone", "c")
    lab.settle(a, b, c)
    same(a, b, c)
    assert {"b", "c"} <= all_texts(a)
    assert a.replica.ring == b.replica.ring == c.replica.ring


def test_trace_20_two_rotations_are_concurrent(lab: Lab) -> None:
    """Two concurrent rotations: two keys of one epoch. -> keys are named by id; one of them seals, both
    open."""
    a, b, c = lab.three()
    b.unlock(ROOT)
    # B rotates before it hears of A's rotation.
    lab.provider("b").faults.old_record = {name: len(r) - 1 for name, r in lab.cloud.names.items()}
    asyncio.run(a.members.rotate())
    asyncio.run(b.members.rotate())
    lab.provider("b").faults.old_record = {}
    b.write("tone", "x")
    lab.settle(a, b, c)
    same(a, b, c)
    assert a.replica.codec.ek == b.replica.codec.ek == c.replica.codec.ek
    assert len(c.replica.ring.keys if c.replica.ring else ()) == 3


def test_trace_21_last_words_under_the_old_key(lab: Lab) -> None:
    """C publishes under the old ring while A rotates, then C dies: its last writes must remain valid."""
    a, b, c = lab.three()
    old = c.replica.codec.ek
    c.write("last", "words")
    Forger(c).publish()  # it never hears of the rotation
    lab.provider("a").faults.drop = {lab.record_root(c.replica.device.sign_public)}
    asyncio.run(a.members.rotate())
    lab.provider("a").faults.drop = set()
    assert a.replica.codec.ek != old
    c.close()
    del lab.devices["c"]
    lab.settle(a, b)
    same(a, b)
    assert body(a, "last") == "words"


def test_trace_24_devices_stop_publishing_when_nothing_changes(lab: Lab) -> None:
    """Two devices whose commit counter is part of ctx republish forever. -> c is outside ctx; no commit
    when equal."""
    a, b, c = lab.three()
    a.write("tone", "x")
    b.write("role", "y")
    assert lab.settle(a, b, c) <= 3
    sent = {name: len(provider.calls) for name, provider in lab.providers.items()}
    roots = {memory.status().root for memory in (a, b, c)}
    for _ in range(10):
        for memory in (a, b, c):
            assert not lab.sync(memory).published
    assert roots == {memory.status().root for memory in (a, b, c)} and len(roots) == 1
    for name, provider in lab.providers.items():
        assert not {"put_car", "put_name"} & set(provider.calls[sent[name] :])


def test_trace_25_a_commit_that_only_deletes(lab: Lab) -> None:
    """A delete-only commit looks like equivocation by an honest device. -> c."""
    a, b, c = lab.three()
    a.write("tone", "x")
    a.write("role", "y")
    lab.settle(a, b, c)
    before = a.replica.store.frame.ctx[a.device]
    delete(a, "tone")
    report = lab.sync(a)
    assert report.published and a.replica.store.frame.ctx[a.device] == before
    for memory in (b, c):
        assert "equivocation" not in kinds(lab.sync(memory))
    lab.settle(a, b, c)
    same(a, b, c)
    assert b.read("tone") is None and body(b, "role") == "y"


def test_trace_26_a_provider_with_a_layout_of_its_own(lab: Lab) -> None:
    """A provider changes the layout and returns another root: no equivocation; commits name hashes of
    commits."""

    class Relaying(SimProvider):
        """Stores every root as the same tree with other link sizes in one folder block."""

        async def put_car(self, root: CID, blocks, *, name: str) -> CID:  # type: ignore[no-untyped-def, override]
            await super().put_car(root, blocks, name=name)
            links = decode_node(self.cloud.blocks[root]).links
            made, _ = raw_directory([(link.name.encode(), link.cid.encode(), 1) for link in links])
            for cid, data in made:
                self.cloud.blocks[decode_cid(cid)] = data
            return decode_cid(made[-1][0])

    own = msgspec.structs.replace(FULL, keeps_root=False)
    for name in "abc":
        lab.providers[name] = Relaying(lab.cloud, clock=lab.clock, capabilities=own)
    a, b, c = lab.three()
    a.write("tone", "x")
    b.write("role", "y")
    lab.settle(a, b, c)
    for memory in (a, b, c):
        report = lab.sync(memory)
        assert not kinds(report) & {"equivocation", "head-refused"} and not report.published
        assert texts(memory) == {"tone": {"x"}, "role": {"y"}}
    assert lab.record_root(a.replica.device.sign_public) in lab.cloud.blocks


def test_trace_29_sixty_four_siblings_of_one_member(lab: Lab) -> None:
    """M makes 64 siblings; B's concurrent 65th makes B's whole head invalid. -> limited per device, never per entry."""
    a, b, m = lab.three()
    a.write("tone", "base")
    lab.settle(a, b, m)
    b.write("tone", "by B")
    forger = Forger(m)
    first = m.replica.store.frame.ctx.get(m.device, 0)
    entry, blocks = dict(m.replica.store.entry("m/tone")), []
    for n in range(1, 65):
        under = dot(m.device, first + n)
        value, block = forger.value("m/tone", under, f"sibling {n}")
        entry[under] = value
        blocks.append(block)
    forger.put({"m/tone": entry}, ctx={m.device: first + 64}, blocks=blocks)
    forger.publish()
    report = lab.sync(a)
    assert f"more than {MAX_DOTS} values of device {m.device}" in says(report, "head-refused")
    lab.settle(b, a)
    assert body(a, "tone") == "by B"
    # Each device may have four, and one more by another device is joined as well.
    few = {under: value for under, value in entry.items() if not under.startswith(m.device)}
    few |= dict([item for item in entry.items() if item[0].startswith(m.device)][:4])
    forger.put({"m/tone": few})
    forger.publish()
    lab.settle(a, b)
    assert len(a.replica.store.entry("m/tone")) == 5
    same(a, b)


def test_trace_30_one_line_merge_for_all(lab: Lab) -> None:
    """Python's and JavaScript's line merges differ in 40 of 400 random cases. -> the algorithm is in the format."""
    cases = json.loads((VECTORS / "merge3.json").read_text())
    assert sum(len(group) for group in cases.values() if isinstance(group, list)) >= 60
    assert merge_lines(list("xaxbx"), list("xxbx"), list("xaxbyx")) == list("xxbyx")
    a, b, c = lab.three()
    a.write("tone", "a\nb\nc\nd\ne")
    lab.settle(a, b, c)
    a.write("tone", "a\nB\nc\nd\ne")
    b.write("tone", "a\nb\nc\nd\nE\nf")
    lab.settle(a, b, c)
    same(a, b, c)
    assert body(c, "tone") == "a\nB\nc\nd\nE\nf" and not c.conflicts()


def test_trace_31_three_siblings_of_which_pairs_share_a_base(lab: Lab) -> None:
    """Three siblings of which only pairs share a base. -> folded only when all share one, else shown as conflicts."""
    a, b, c = lab.three()
    a.write("tone", "a\nb\nc\nd\ne")
    lab.settle(a, b, c)
    a.write("tone", "A\nb\nc\nd\ne")
    b.write("tone", "a\nb\nc\nd\nE")
    c.bundles.import_(
        b'{"version":"memory/0.1","index":"","files":{"tone.md":"---\\nname: T\\n---\\n\\nforeign\\n"},"timeline":[]}'
    )
    lab.settle(a, b, c)
    same(a, b, c)
    assert texts(a)["tone"] == {"A\nb\nc\nd\ne", "a\nb\nc\nd\nE", "foreign"}
    (item,) = a.conflicts()
    assert item.key == "tone" and len(item.copies) == 2 and not item.forgotten
    reading = a.read("tone")
    assert reading is not None and not reading.merged


def test_trace_32_one_verdict_on_odd_signatures() -> None:
    """A signature with a mixed-order key or R: noble accepts, libsodium refuses. -> the verdict is libsodium's."""
    cases = json.loads((VECTORS / "ed25519.json").read_text())["signatures"]
    for case in cases:
        parts = (bytes.fromhex(case[field]) for field in ("public", "message", "signature"))
        assert verify(*parts) == case["valid"], case["name"]
    assert sum(not case["valid"] for case in cases) >= 8


def test_trace_33_foreign_names_do_not_depend_on_the_order(tmp_path: Path) -> None:
    """The name of foreign files depends on the order of import. -> a changed name always gets its hash."""
    names = ["Notes 1.md", "notes_1.md", "NOTES-1.md", "日本.md", "Überraschung Nr 1.md"]
    keys = {name: key_of_foreign_name(name)[0] for name in names}
    assert len(set(keys.values())) == len(names)
    assert keys["notes_1.md"] == "notes_1" and keys["日本.md"] == "x-a9748821"
    shown = []
    for order in (names, names[::-1]):
        with lab_in(tmp_path / str(len(shown))) as lab:
            memory = lab.create("a")
            folder = lab.folder / "foreign"
            for name in order:
                folder.mkdir(exist_ok=True)
                (folder / name).write_text(f"text of {name}\n", "utf-8")
                memory.bundles.import_(folder / name)
            shown.append(texts(memory))
    assert shown[0] == shown[1] and set(shown[0]) == set(keys.values())
