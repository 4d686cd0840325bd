"""Builds fixtures/vectors/vaults.json, whole published vaults: `python -m tests.support.vault_vectors` writes
it, tests compare it.

Real devices write them to a simulated provider. Time is a fixed clock; randomness follows from a device's
name and the number of bytes requested; slots are sealed by `ring_lab.fixed_box`; compressed texts are
stored in the file and reused. So the bytes are the same on every machine, until the format or the
behaviour of a device changes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from ipfsmem.canonical import b64, encode, unb64
from ipfsmem.causal import tree as prefix_tree
from ipfsmem.content.car import car_bytes
from ipfsmem.content.cid import CID, DAG_PB, ipns_name, parse_cid, raw_cid
from ipfsmem.content.dagpb import BlockLink, decode_node
from ipfsmem.content.tree import build_tree
from ipfsmem.content.unixfs import directory
from ipfsmem.device.replica import Environment
from ipfsmem.memories.scopes import Scopes
from ipfsmem.memory import Memory
from ipfsmem.published import ipns_record
from ipfsmem.ring import operations
from ipfsmem.seal import compression
from ipfsmem.sync.names import pin_name
from ipfsmem.testing.clock import SeededRandom
from ipfsmem.testing.simulator import FULL, SimProvider
from ipfsmem.vault.home import Home
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.device_lab import VAULT_NAME, Forger, Lab, replaced
from tests.support.ring_lab import fixed_box
from tests.support.vault_reading import keys_of, read_case

FILE = Path(__file__).parent.parent.parent / "fixtures" / "vectors" / "vaults.json"
#: The public first and second account of Hardhat and Anvil.
WALLET = {
    "private_key": "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "vault": "default",
    "key_number": 1,
}
OTHER_WALLET = {**WALLET, "private_key": "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"}
KEYS = keys_of({"wallet": WALLET})
OTHER_KEYS = keys_of({"wallet": OTHER_WALLET})


class BySize:
    """Randomness by name and request size: a further draw of another size changes nothing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._sources: dict[int, SeededRandom] = {}

    def __call__(self, size: int) -> bytes:
        """Return the next bytes of this size."""
        return self._sources.setdefault(size, SeededRandom(f"vault vectors {self._name} {size}"))(size)


class VaultLab(Lab):
    """Devices whose bytes are the same in every run."""

    def environment(self, name: str) -> Environment:
        """Return the clock, and randomness that differs for each opening of a vault."""
        self._runs[name] = self._runs.get(name, 0) + 1
        return Environment(lambda: self.clock.ms, BySize(f"{name} {self._runs[name]}"))

    #: The abilities of the provider.
    can = FULL

    def provider(self, name: str) -> SimProvider:
        """Return this device's connection."""
        if name not in self.providers:
            self.providers[name] = SimProvider(
                self.cloud, clock=self.clock, random=SeededRandom(f"provider {name}"), capabilities=self.can
            )
        return self.providers[name]

    def pinned(self, anchor: bytes) -> list[str]:
        """Return the roots in the list of an anchor, newest first."""
        return [str(pin.cid) for pin in self.cloud.pins if pin.name == pin_name(anchor)][::-1]

    def files(self, name: str) -> Path:
        """Return an existing folder for the plain files of a device."""
        self.home(name).mkdir(parents=True, exist_ok=True)
        return self.home(name) / "files"

    def plain(self, name: str, keys: RootKeys) -> Memory:
        """Create a vault that anybody can read on this device."""
        memory = Memory.create(VAULT_NAME, "ipfs", provider=self.provider(name), unlock=keys, recovery=False, public_ok=True, passphrase=False, home=Home(folder=self.home(name), label=name, environment=self.environment(name)), memory_dir=self.files(name))  # fmt: skip
        return self._keep(name, memory)

    def plain_again(self, name: str, keys: RootKeys) -> Memory:
        """Restore the plain vault on another device."""
        memory = asyncio.run(
            Memory.recover(VAULT_NAME, provider=self.provider(name), unlock=keys, mode="ipfs", public_ok=True, passphrase=False, home=Home(folder=self.home(name), label=name, environment=self.environment(name)), memory_dir=self.files(name))
        )  # fmt: skip
        return self._keep(name, memory)

    def root(self, memory: Memory) -> str:
        """Return the root that a device's own name points at."""
        return str(self.record_root(memory.replica.device.sign_public))


@contextlib.contextmanager
def fixed(streams: dict[str, str]) -> Iterator[None]:
    """Use boxes without randomness, and streams as in `streams` (SHA-256 of the text -> hex); add new
    ones."""

    def stored(data: bytes, level: int = 6) -> bytes:
        name = sha256(data).hexdigest()
        if name not in streams:
            streams[name] = compression.deflate(data, level).hex()
        return bytes.fromhex(streams[name])

    with (
        mock.patch("nacl.bindings.crypto_box_seal", fixed_box),
        mock.patch("ipfsmem.seal.objects.deflate", stored),
    ):
        yield


class Cases:
    """The cases, and their blocks."""

    def __init__(self) -> None:
        self.blocks: dict[str, dict[CID, bytes]] = {}
        self.tops: dict[str, list[CID]] = {}
        self.cases: list[dict[str, Any]] = []

    def case(
        self,
        car: str,
        name: str,
        why: str,
        lab: Lab,
        *,
        opened_by: dict[str, Any],
        kind: str = "sealed",
        names: bool | Iterable[bytes] = True,
        pins: dict[bytes, list[str]],
        without: Iterable[str] = (),
        instead: dict[str, bytes] | None = None,
        years: int = 0,
    ) -> None:
        """Add one case: a provider that shows these records (of all names, of none, or of these keys),
        pins and blocks."""
        cloud = lab.cloud
        records = {name: all_[-1] for name, all_ in cloud.names.items()}
        if names is not True:
            wanted = {ipns_name(key) for key in (names or ())}
            records = {name: record for name, record in records.items() if name in wanted}
        led = [ipns_record.parse_record(record).value for record in records.values()]
        roots = [parse_cid(value[6:]) for value in led if value.startswith("/ipfs/")]
        roots += [parse_cid(root) for all_ in pins.values() for root in all_]
        held = self.blocks.setdefault(car, {})
        tops = self.tops.setdefault(car, [])
        tops += [root for root in roots if root not in tops]
        for root in roots:
            held.update({cid: cloud.blocks[cid] for cid in cloud.tree(root)})
        self.cases.append(
            {
                "car": car,
                "instead": {cid: b64(data) for cid, data in (instead or {}).items()},
                "kind": kind,
                "name": name,
                "names": {name: b64(record) for name, record in sorted(records.items())},
                "now": lab.clock.ms + years * 365 * 86_400_000,
                "opened_by": opened_by,
                "pins": {pin_name(anchor): roots for anchor, roots in pins.items()},
                "why": why,
                "without": sorted(without),
            }
        )

    def cars(self) -> dict[str, str]:
        """Return each as CAR: children before parents, from the roots in the order in which cases named
        them."""
        return {
            name: b64(car_bytes([tops[0]], self._ordered(name, tops))) for name, tops in self.tops.items()
        }

    def _ordered(self, name: str, tops: list[CID]) -> Iterator[tuple[CID, bytes]]:
        held, done = self.blocks[name], set()

        def below(cid: CID) -> Iterator[tuple[CID, bytes]]:
            if cid in done or cid not in held:
                return
            done.add(cid)
            if cid.codec == DAG_PB:
                for link in decode_node(held[cid]).links:
                    yield from below(link.cid)
            yield cid, held[cid]

        for top in tops:
            yield from below(top)


def by_wallet(wallet: dict[str, Any] = WALLET) -> dict[str, Any]:
    return {"wallet": wallet}


LONG = "\n\n".join(
    f"{n}. A rule that stands here so that the text is long enough for a compressor to make a smaller object of it."
    for n in range(1, 15)
)


def a_life(a: Memory) -> None:
    """Write as one device: memories of all types, two scopes besides the unnamed one, events, a text to
    forget."""
    a.write(
        "user_role",
        "Argentina fan, plays on Saturdays.",
        name="Role",
        type="user",
        description="weekly 5-a-side",
    )
    a.write("feedback_tone", "first\n\nsecond\n\nthird", name="Tone", type="feedback", tags=["style", "b, c"])
    a.write("rules", LONG, name="Rules", type="project")
    a.write("secret_plan", "to be forgotten", name="Plan", type="project")
    a.note("waved", style="enthusiastic")
    known_as = [("id", "00112233445566778899aabbccddeeff"), ("remote", "github.com/a/b", "")]
    Scopes(a.replica).make(
        "api-0123456789ab", title="Work: the API", ids=() if a.mode == "ipfs" else known_as
    )
    a.scope("api-0123456789ab").write("style", "tabs", name="Style", type="project")
    a.scope("api-0123456789ab").write("o", "a key like a folder", type="reference")
    a.scope("api-0123456789ab").note("built", ok=True, n=3)
    a.scope("o").write("feedback_tone", "a scope like a folder", name="Tone")
    Scopes(a.replica).change("o", into="api-0123456789ab")
    a.scope("gone").write("style", "of a scope that is forgotten", name="Style")
    a.scope("gone").note("built")
    a.scopes.forget("gone")


def two_devices(lab: VaultLab, a: Memory, b: Memory) -> None:
    """Concurrent edits of two devices: one that merges, one that conflicts, one behind a forget."""
    lab.clock.advance(86_400)
    a.write("feedback_tone", "FIRST\n\nsecond\n\nthird")
    b.write("feedback_tone", "first\n\nsecond\n\nTHIRD", tags=["later"])
    a.write("user_role", "Argentina fan, plays on Sundays.")
    lab.clock.advance(5)
    b.write("user_role", "Argentina fan, coaches on Saturdays.")
    a.forget("secret_plan", reason="asked")
    b.write("secret_plan", "written beside a wish to forget")
    a.write("same", "the same text on two devices")
    b.write("same", "the same text on two devices")
    b.note("scored", goals=2)


def sealed(cases: Cases, folder: Path) -> None:
    """A sealed vault of one wallet with recovery words and two devices, and what a provider may do to it."""
    lab = VaultLab(folder)
    a = lab.create("laptop", unlock=KEYS, recovery=True)
    assert a.recovery_words is not None
    words = {"words": " ".join(a.recovery_words)}
    a_life(a)
    lab.sync(a)
    first = lab.root(a)
    b = lab.restore("phone", unlock=KEYS)
    lab.settle(a, b)
    quiet = lab.root(a)
    anchor = KEYS.head_public
    case = cases.case
    case(
        "sealed", "one root, by names", "What stands in a provider after two devices of a wallet synced: no list of pins is needed.",
        lab, opened_by=by_wallet(), pins={},
    )  # fmt: skip
    two_devices(lab, a, b)
    for memory in (a, b):
        Forger(memory).publish()
    lab.clock.advance(1)
    of_a, of_b = lab.root(a), lab.root(b)
    both = {anchor: [of_b, of_a, quiet]}
    case(
        "sealed", "two heads that nobody joined", "Concurrent edits on two devices: one merges by lines, one does not, one stands behind a "
        "wish to forget, one is the same text twice. The reader joins; no root says what it sees, so `root` is null.",
        lab, opened_by=by_wallet(), pins={},
    )  # fmt: skip
    case(
        "sealed", "the same by the recovery words", "The words' anchor leads by name to the vault's.",
        lab, opened_by=words, pins={},
    )  # fmt: skip
    case(
        "sealed", "a list of pins and no names", "A provider that keeps no records: the heads stand in its pin list.",
        lab, opened_by=by_wallet(), names=False, pins=both,
    )  # fmt: skip
    case(
        "sealed", "an old root beside newer ones", "Roots of the past in the list bring nothing back.",
        lab, opened_by=by_wallet(), pins={anchor: [of_b, of_a, quiet, first]},
    )  # fmt: skip

    case(
        "sealed", "all records have expired", "Eleven years later: names are followed all the same.",
        lab, opened_by=by_wallet(), pins={}, years=11,
    )  # fmt: skip
    top = _entry(lab, of_b, "s/top.ipm")
    case(
        "sealed", "a node of the newest root is damaged", "A bit of the state of one head is another: that head is damaged, not joined and not "
        "refused; the other and the older one are read (section 7.1).",
        lab, opened_by=by_wallet(), pins=both, instead={str(top): _flipped(lab.cloud.blocks[top])},
    )  # fmt: skip
    case(
        "sealed", "a node of every root is missing", "Heads stand there and none is whole: that is no empty memory.",
        lab, opened_by=by_wallet(), pins=both,
        without=[str(_entry(lab, root, "s/top.ipm")) for root in both[anchor]],
    )  # fmt: skip
    body = _body_of(b, "m/feedback_tone", b.device)
    case(
        "sealed", "a body is missing", "Its text is not fetched: never absent, and nothing is merged.",
        lab, opened_by=by_wallet(), pins={}, without=[str(body)],
    )  # fmt: skip
    flat = _flat_objects(lab, of_b)
    case(
        "sealed", "objects laid out otherwise", "A root put together anew, without any key: all objects lie in one folder of another name, the rest is "
        "as it was. Objects are found by their hash, so it is read like the other.",
        lab, opened_by=by_wallet(), names=False, pins={anchor: [str(flat), of_a]},
    )  # fmt: skip
    crossed = _crossed(lab, of_a, of_b)
    case(
        "sealed", "a commit beside another state", "A root put together from two: the commit and ring of one, the state of the other. What the commit "
        "names is not there: damaged.",
        lab, opened_by=by_wallet(), names=False, pins={anchor: [str(crossed), quiet]},
    )  # fmt: skip
    bare = _with_ring(lab, of_a, _ring_at(lab, first))
    case(
        "sealed", "a commit beside another ring", "An older keyring.json beside a newer commit: refused, for the commit names the ring by its hash.",
        lab, opened_by=by_wallet(), names=False, pins={anchor: [str(bare), quiet]},
    )  # fmt: skip
    forged = _genesis_as_plain(lab, first)
    case(
        "sealed", "a plain ring in a sealed vault", "Made by a provider without any key from the public genesis statement, as a plain vault: what is "
        "signed for the one tag proves nothing for the other.",
        lab, opened_by=by_wallet(), names=False, pins={anchor: [str(forged)]},
    )  # fmt: skip
    case(
        "sealed", "the same beside the real roots", "It is passed over.",
        lab, opened_by=by_wallet(), pins={anchor: [str(forged), of_b, of_a]},
    )  # fmt: skip
    case(
        "sealed", "a sealed vault asked for as a plain one", "Only a vault of the other kind stands there: nothing is made, joined or shown.",
        lab, opened_by=by_wallet(), kind="plain", pins=both,
    )  # fmt: skip
    case(
        "sealed", "another wallet", "Whoever has another key finds nothing, also where roots stand under its own pin name.",
        lab, opened_by=by_wallet(OTHER_WALLET), pins={OTHER_KEYS.head_public: [of_b, of_a]},
    )  # fmt: skip

    lab.settle(a, b)
    case(
        "sealed", "both joined", "The same memories when both devices have synced: one root, with the view of the two heads.",
        lab, opened_by=by_wallet(), pins={},
    )  # fmt: skip
    lab.close()


def people(cases: Cases, folder: Path) -> None:
    """Two people in one vault, a revoked device, a text that a stranger signed."""
    lab = VaultLab(folder)
    a = lab.create("laptop", unlock=KEYS)
    a.write("user_role", "likes tea", name="Role", type="user")
    a.write("feedback_tone", "direct", name="Tone", type="feedback")
    a.write("shared", "the wallet's own", name="Shared")
    chat = {
        "files": {"from_a_chat.md": "said in a chat\n"},
        "timeline": [{"ts": "2025-12-24", "type": "sang"}],
    }
    a.bundles.import_(json.dumps(chat), foreign=True)
    lab.sync(a)
    b = lab.restore("guest", unlock=KEYS)
    lab.settle(a, b)
    with a.replica.transaction():
        ring, device = a.replica.ring, b.replica.device
        assert ring is not None
        stated = operations.enrollee_of(device.signer, device.box_public, "guest", ring.vault, kind="agent")
        person = operations.new_person(ring.vault, device.sign_public)
        since = f"{int(a.replica.store.frame.hlc, 16) + 1:016x}"
        a.replica.set_ring(operations.enrol(ring, KEYS.admin, stated, "writer", since=since, person=person))
    lab.settle(a, b)
    lab.clock.advance(60)
    b.write("user_role", "likes coffee")
    b.write("guest_note", "by somebody else", name="Note")
    b.forget("feedback_tone")
    b.write("shared", "replaced by the guest", seen=b.read("shared"))
    lab.settle(b, a)
    anchor = KEYS.head_public
    cases.case(
        "people", "two people", "A guest's agent is a writer of its own person: what it wrote is in the view, and in the own view of the wallet's "
        "person only listed (section 5.2). Of `shared` it replaced the one own text, so there that reader has none.",
        lab, opened_by=by_wallet(), pins={},
    )  # fmt: skip
    a.write("user_role", "likes mate")
    lab.settle(a, b)
    lab.clock.advance(60)
    a.unlock(KEYS)
    asyncio.run(a.members.revoke(b.device))
    lab.sync(a)
    after = lab.root(a)
    b.write("user_role", "written after the revoke")
    Forger(b).publish()
    late = lab.root(b)
    cases.case(
        "people", "a revoked device goes on", "It published once more after its revoke, under the key that it still had: that head is refused, "
        "wherever it is found. The newest root is sealed under a new epoch key.",
        lab, opened_by=by_wallet(), pins={anchor: [late, after]},
    )  # fmt: skip
    forger = Forger(a)
    under = forger.next_dot()
    value, block = forger.value("m/user_role", under, "not what was signed", h="f" * 16)
    n = int(under[17:])
    forger.put({"m/user_role": {under: replaced(value, h="0" * 16)}}, ctx={a.device: n}, blocks=[block])
    lab.clock.advance(1)
    forger.publish()
    cases.case(
        "people", "a value that nobody signed", "A member published a value with another clock than it signed: the whole head is refused, and its older "
        "one is read.",
        lab, opened_by=by_wallet(), pins={anchor: [lab.root(a), after]},
    )  # fmt: skip
    lab.close()


def trees(cases: Cases, folder: Path) -> None:
    """A member that lays out its state in its own way."""
    lab = VaultLab(folder)
    a = lab.create("laptop", unlock=KEYS)
    a.write("user_role", "likes tea", name="Role", type="user")
    lab.sync(a)
    good = lab.root(a)
    a.write("feedback_tone", "direct", name="Tone", type="feedback")
    with mock.patch.object(prefix_tree, "MAX_ENTRIES", 1):
        Forger(a).publish()
    cases.case(
        "trees", "a tree that no rule makes", "Two entries under an inner node: its maker did that and signed it, so the head is refused, not damaged.",
        lab, opened_by=by_wallet(), pins={KEYS.head_public: [lab.root(a), good]},
    )  # fmt: skip
    forger, stranger = Forger(a), "00112233445566aa"
    under, other = forger.next_dot(), "11223344556677bb"
    lines = [
        "no event",
        '{"ts":"2026-01-01T10:00:00Z","type":"t","id":"mine","n":1e300}',
        '{"ts":"2026-01-01T11:00:00Z","type":"doubled","type":"doubled"}',
        f'{{"ts":"2026-01-01T12:00:00+02:00","type":"claimed","id":"{other}-1"}}',
        f'{{"ts":"2026-01-01T13:00:00Z","type":"own","id":"{a.device}-1"}}',
        f'{{"ts":"2026-01-01T14:00:00Z","type":"same id","id":"{a.device}-1"}}',
        '{"ts":"2026-01-01T15:00:00Z","type":"no id"}',
        '{"ts":"2026-01-01T16:00:00Z","type":"an id of another form","id":"x"}',
        "too long for an event " * 3000,
    ]
    segment = f"t/2026-01-01/{a.device}/0"
    value, block = forger.value(segment, under, "\n".join(lines) + "\n")
    forger.put({segment: {under: value}}, ctx={a.device: int(under[17:])}, blocks=[block])
    lab.clock.advance(1)
    forger.publish()
    cases.case(
        "trees", "a segment with lines that are no events", "Each is kept as a raw event, but one that is too long is passed over; an id counts only in a segment of its device, and of two events with one id the least line keeps it.",
        lab, opened_by=by_wallet(), pins={KEYS.head_public: [lab.root(a)]},
    )  # fmt: skip
    value, block = forger.value("m/feedback_tone", f"{stranger}-1", "by nobody who is known")
    forger.put(
        {"m/feedback_tone": {f"{stranger}-1": value}},
        ctx={stranger: 1}, seen={stranger: forger.seen(stranger, 1)}, blocks=[block],
    )  # fmt: skip
    lab.clock.advance(1)
    forger.publish()
    cases.case(
        "trees", "values that no key of the ring vouches for", "The counter and the values of that id are left out, the rest of the head counts: joined in part.",
        lab, opened_by=by_wallet(), pins={KEYS.head_public: [lab.root(a)]},
    )  # fmt: skip
    lab.close()


def without_names(cases: Cases, folder: Path) -> None:
    """A provider with a pin list and without names, so that the list carries the words' anchor."""
    lab = VaultLab(folder)
    lab.can = msgspec.structs.replace(FULL, names=False)
    a = lab.create("laptop", unlock=KEYS, recovery=True)
    assert a.recovery_words is not None
    words = {"words": " ".join(a.recovery_words)}
    a.write("user_role", "likes tea", name="Role", type="user")
    lab.sync(a)
    anchors = [KEYS.head_public, keys_of(words).head_public]
    pins = {anchor: lab.pinned(anchor) for anchor in anchors}
    cases.case(
        "no names", "the words and a list of pins", "Under the pin name of the words' anchor stands a root with the ring and the records that lead "
        "to it (section 7, Anchor roots); under that of the vault's anchor the heads.",
        lab, opened_by=words, pins=pins,
    )  # fmt: skip
    cases.case(
        "no names", "the wallet and a list of pins", "The same vault.",
        lab, opened_by=by_wallet(), pins=pins,
    )  # fmt: skip
    cases.case(
        "no names", "the words' list leads to another ring", "What stands under the pin name of the words' anchor is an ordinary root of the vault: it "
        "does not count, and nothing else leads the words anywhere.",
        lab, opened_by=words, pins={anchors[1]: pins[anchors[0]]},
    )  # fmt: skip
    lab.close()


def twins(cases: Cases, folder: Path) -> None:
    """A device that was reset to a snapshot: it found its own name ahead of it, and took a successor."""
    lab = VaultLab(folder)
    a = lab.create("laptop", unlock=KEYS)
    a.write("user_role", "before the snapshot", name="Role", type="user")
    lab.sync(a)
    lab.save("laptop", "snapshot")
    a.write("user_role", "after the snapshot", name="Role", type="user")
    a.note("first")
    lab.sync(a)
    again = lab.put_back("laptop", "snapshot")
    again.write("feedback_tone", "written by the copy", name="Tone", type="feedback")
    again.note("second")
    lab.sync(again)
    cases.case(
        "twins", "a successor", "The restored device gave up its id for a successor and moved what it had written; values of the old id go on verifying.",
        lab, opened_by=by_wallet(), pins={KEYS.head_public: [lab.root(again)]},
    )  # fmt: skip
    lab.close()


def later_words(cases: Cases, folder: Path) -> None:
    """Recovery words that a root enrolled later as an admin: with names, and with a pin list alone."""
    for names in (True, False):
        lab = VaultLab(folder / str(names))
        lab.can = msgspec.structs.replace(FULL, names=names)
        a = lab.create("laptop", unlock=KEYS, recovery=True)
        a.write("user_role", "likes tea", name="Role", type="user")
        lab.sync(a)
        a.unlock(KEYS)
        made = asyncio.run(a.members.new_words())
        words = {"words": " ".join(made.words)}
        lab.sync(a)
        pins = (
            {}
            if names
            else {key: lab.pinned(key)[:1] for key in (KEYS.head_public, keys_of(words).head_public)}
        )
        cases.case(
            f"later words {names}", f"words made later, {'by names' if names else 'by a list'}", "An admin that a root enrolled; its anchor leads to that root's.",
            lab, opened_by=words, pins=pins,
        )  # fmt: skip
        lab.close()


def replaced_words(cases: Cases, folder: Path) -> None:
    """A device restored with later words, which were then replaced and revoked."""
    lab = VaultLab(folder)
    a = lab.create("laptop", unlock=KEYS, recovery=True)
    a.write("user_role", "likes tea", name="Role", type="user")
    lab.sync(a)
    a.unlock(KEYS)
    first = asyncio.run(a.members.new_words())
    b = lab.restore("phone", unlock=keys_of({"words": " ".join(first.words)}))
    b.write("lake", "written on the phone", name="Lake")
    lab.settle(a, b)
    second = asyncio.run(a.members.new_words())
    for old in second.older:
        if not old.root:
            asyncio.run(a.members.revoke(old.id))
    lab.settle(a, b)
    for name, opened_by in (("", by_wallet()), (", by the newest words", {"words": " ".join(second.words)})):
        cases.case(
            "replaced words", f"words that were replaced{name}", "Later words let a device in, and a root revoked them. The revoke lets that enrolment stand "
            "and says whose the words were, so the device keeps its person and its texts are the reader's own (section 4, rule 5).",
            lab, opened_by=opened_by, pins={},
        )  # fmt: skip
    lab.close()


def no_wallet(cases: Cases, folder: Path) -> None:
    """A vault without a wallet: only the words lead to it."""
    lab = VaultLab(folder)
    a = lab.create("laptop", unlock=None, recovery=True)
    assert a.recovery_words is not None
    a.write("user_role", "likes tea", name="Role", type="user")
    lab.sync(a)
    cases.case(
        "no wallet", "a vault without a wallet", "64 random bytes stand for the signature (2.3); the words are its second root.",
        lab, opened_by={"words": " ".join(a.recovery_words)}, pins={},
    )  # fmt: skip
    cases.case(
        "no wallet", "a vault without a wallet, by its secret", "As the device that made it may keep it.",
        lab, opened_by={"secret": BySize("laptop 1")(64).hex()}, pins={},
    )  # fmt: skip
    lab.close()


def large(cases: Cases, folder: Path) -> None:
    """More than 64 entries and objects: the trees have inner nodes."""
    lab = VaultLab(folder)
    a = lab.create("laptop", unlock=KEYS)
    for n in range(70):
        a.write(f"note-{n:02}", f"text {n}")
    lab.sync(a)
    cases.case(
        "large", "seventy memories", "State and objects split by the next digit (section 6.1).",
        lab, opened_by=by_wallet(), pins={},
    )  # fmt: skip
    case_root = lab.root(a)
    objects = _objects(lab, _entry(lab, case_root, "o"))
    links = _links(lab, case_root)
    one_folder = _made(lab, {link.name: link for link in objects})
    flat = _made(lab, {**links, "o": BlockLink("o", one_folder, links["o"].tsize)})
    cases.case(
        "large", "objects against the rule", "All objects lie in one folder `o`: folders are signed by nobody, and objects are found by their hash, so "
        "the head is joined. No device lays it out so: `by_rule` is false.",
        lab, opened_by=by_wallet(), names=False, pins={KEYS.head_public: [str(flat)]},
    )  # fmt: skip
    inner = next(
        link.cid
        for link in decode_node(lab.cloud.blocks[_entry(lab, lab.root(a), "s")]).links
        if link.name != "top.ipm" and link.name.endswith(".ipm")
    )
    cases.case(
        "large", "one leaf is missing", "One of its children is nowhere: the only head is damaged.",
        lab, opened_by=by_wallet(), pins={}, without=[str(inner)],
    )  # fmt: skip
    lab.close()


def plain(cases: Cases, folder: Path) -> None:
    """A plain vault with scopes, conflicts and a forgotten text."""
    lab = VaultLab(folder)
    a = lab.plain("laptop", KEYS)
    a_life(a)
    lab.sync(a)
    b = lab.plain_again("phone", KEYS)
    lab.settle(a, b)
    two_devices(lab, a, b)
    lab.settle(a, b)
    cases.case(
        "plain", "plain: one root", "What anybody can read: a folder that people open, and below it what a device needs to join.",
        lab, opened_by=by_wallet(), kind="plain", pins={},
    )  # fmt: skip
    newest = lab.root(a)
    cases.case(
        "plain", "plain: no names", "The heads stand in a pin list only.",
        lab, opened_by=by_wallet(), kind="plain", names=False, pins={KEYS.head_public: [newest]},
    )  # fmt: skip
    cases.case(
        "plain", "a plain vault asked for as a sealed one", "The wallet's plain vault is not its sealed one.",
        lab, opened_by=by_wallet(), pins={KEYS.head_public: [newest]},
    )  # fmt: skip
    lab.close()


def strangers(cases: Cases, folder: Path) -> None:
    """The vault of another wallet in place of ours."""
    lab = VaultLab(folder)
    a = lab.create("laptop", unlock=OTHER_KEYS)
    a.write("user_role", "somebody else")
    lab.sync(a)
    cases.case(
        "stranger", "a foreign genesis", "Another wallet's whole vault under our pin name and nothing else: no memory of ours.",
        lab, opened_by=by_wallet(), names=False, pins={KEYS.head_public: [lab.root(a)]},
    )  # fmt: skip
    lab.close()


# -- what a provider can make without any key ------------------------------------------------------------------------


def _entry(lab: Lab, root: str, path: str) -> CID:
    here = parse_cid(root)
    for part in path.split("/"):
        here = next(link.cid for link in decode_node(lab.cloud.blocks[here]).links if link.name == part)
    return here


def _flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def _body_of(memory: Memory, name: str, device: str) -> CID:
    with memory.replica.reading():
        entry = memory.replica.store.entry(name)
    loc = next(value.loc for under, value in entry.items() if under.startswith(device))
    assert loc is not None
    return raw_cid(bytes.fromhex(loc.sha))


def _objects(lab: Lab, folder: CID) -> Iterator[BlockLink]:
    for link in decode_node(lab.cloud.blocks[folder]).links:
        if link.cid.codec == DAG_PB:
            yield from _objects(lab, link.cid)
        else:
            yield link


def _links(lab: Lab, root: str) -> dict[str, BlockLink]:
    return {link.name: link for link in decode_node(lab.cloud.blocks[parse_cid(root)]).links}


def _made(lab: Lab, links: dict[str, BlockLink]) -> CID:
    made = directory(links.values())
    lab.cloud.blocks.update(made.blocks)
    return made.cid


def _flat_objects(lab: Lab, root: str) -> CID:
    links = _links(lab, root)
    old = links.pop("o")
    return _made(lab, {**links, "things": BlockLink("things", old.cid, old.tsize)})


def _crossed(lab: Lab, one: str, other: str) -> CID:
    return _made(lab, {**_links(lab, one), "s": _links(lab, other)["s"]})


def _ring_at(lab: Lab, root: str) -> BlockLink:
    return _links(lab, root)["keyring.json"]


def _with_ring(lab: Lab, root: str, ring: BlockLink) -> CID:
    return _made(lab, {**_links(lab, root), "keyring.json": ring})


def _genesis_as_plain(lab: Lab, root: str) -> CID:
    shown = json.loads(lab.cloud.blocks[_ring_at(lab, root).cid])
    genesis = [one for one in shown["open"] if b'"t":"genesis"' in unb64(one["k"], "it")]
    ring = encode(
        {"body": {"eks": [], "st": []}, "open": genesis, "v": 1, "vault": KEYS.tag(plain=True).hex()}
    )
    made = build_tree({"memory/.ipfsmem/keyring.json": ring, "memory/MEMORY.md": b"# Agent Memory\n"})
    lab.cloud.blocks.update(made.blocks)
    return made.cid


def build(streams: dict[str, str], *, read: bool = True) -> dict[str, Any]:
    """Return the whole file. `streams`: the compressed texts of the existing file; `read` False: without
    `expect`."""
    cases = Cases()
    with tempfile.TemporaryDirectory() as folder, fixed(streams):
        for world in (
            sealed,
            without_names,
            people,
            trees,
            twins,
            later_words,
            replaced_words,
            no_wallet,
            large,
            plain,
            strangers,
        ):
            world(cases, Path(folder) / world.__name__)
        cars = cases.cars()
        for n, case in enumerate(cases.cases if read else ()):
            case["expect"] = read_case(case, cars, Path(folder) / f"reader {n}")
    return {"about": ABOUT, "cars": cars, "cases": cases.cases, "streams": dict(sorted(streams.items()))}


ABOUT = (
    "Whole published vaults, format sections 1 to 7, as a reader finds them that has nothing but a key. `cars`: blocks of a "
    "provider (CAR version 1, base64url; the root of its header means nothing). A case: `opened_by` a wallet (private key, vault, key "
    "number), recovery words, or the `secret` of a vault without a wallet; `kind`: what is asked for; `car`: the blocks that are there, except those in `without`, and with other bytes "
    "in `instead`; `names`: IPNS records by name; `pins`: roots by pin name, newest first; `now`: milliseconds since 1970. `expect`: either "
    "`refused` (none: nothing that this key signed for; other kind; damaged: heads stand there and none is whole; revoked; unread: section 9), or what is read: "
    "`digest` of the joined state; `root` on which all devices end, null where no head says what the join says, and whether its files stand where the rule puts them, `by_rule`; `heads`: what "
    "becomes of each root of device names and of the list of the vault (refused: its ring or commit, or its state); `members`; `scopes` "
    "with their cards, null where forgotten; `memories` by context of their objects; `events` by scope, as lines. Of a memory: what is "
    "`shown` and whether it was `merged` or is `forgotten`, the `conflicts`, texts `hidden` by a wish to forget, dots `not_fetched`, and `own`, null "
    "or the own view of the person who reads (5.2) with the texts of `others` and how many wishes are `unheeded`. `streams`: what a compressor "
    "made of texts, by their SHA-256."
)


def known_streams() -> dict[str, str]:
    """Return the streams of the existing file."""
    return dict(json.loads(FILE.read_text("utf-8"))["streams"]) if FILE.exists() else {}


def text(data: dict[str, Any]) -> str:
    """Return the file for these contents."""
    return json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(build(known_streams())), "utf-8")
