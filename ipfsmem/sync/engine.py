"""One sync: find heads, verify, join, publish. The only code that talks to a provider on behalf of a memory.

Order of things (format section 7): read names and roots until nothing new is learned; keep what rings say; find out
whether this device's own counters were used elsewhere; join every verified head; with an unlocked root enrol this
device and move the anchor; publish. A crash anywhere loses nothing: each step is on disk before the next begins,
and the whole is simply run again. One sync at a time for a memory; writes go on meanwhile.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Sequence

import msgspec

from ipfsmem.content.cid import CID, ipns_name, parse_cid, raw_cid
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.errors import (
    ConfigError,
    FormatError,
    IpfsmemError,
    LimitError,
    MembershipError,
    NotFoundError,
    NoVaultError,
    OpenError,
    ProviderError,
    SealError,
)
from ipfsmem.replica.collect import Collected, collect
from ipfsmem.replica.lock import directory_lock_async
from ipfsmem.replica.replica import Replica
from ipfsmem.seal import ring_ops
from ipfsmem.seal.derive import RootKeys
from ipfsmem.seal.ring import Ring, parse_keyring
from ipfsmem.sync.fetch import Fetcher
from ipfsmem.sync.fork import (
    adopt_head,
    adopt_orphans,
    append_new_lines,
    forked_devices,
    orphans,
    settled,
)
from ipfsmem.sync.heads import Head, open_root
from ipfsmem.sync.identity import (
    append_lines,
    last_pair,
    move_since,
    move_values,
    new_identity,
    stranger_to_itself,
)
from ipfsmem.sync.join import LACKING, Change, checked, fetch_objects, join
from ipfsmem.sync.names import ANCHOR_LIFE_MS, DEVICE_LIFE_MS, Names, pin_name, target
from ipfsmem.sync.provider import MAX_BATCH, Provider
from ipfsmem.sync.publish import Layout, build_ring_root, prepare, send
from ipfsmem.sync.remote import differences, read_root
from ipfsmem.sync.report import Progress, SyncReport, no_progress
from ipfsmem.sync.retention import Pinned, Verdict, judge

#: Names followed in one sync; more means somebody makes them up.
MAX_NAMES = 512
#: A join of fewer changes than this is never a mass delete.
GUARD_FROM = 10


class Collection(msgspec.Struct, frozen=True):
    """What a collection let go: a verdict for each root, at each provider and here, and the blocks here."""

    providers: dict[str, list[Verdict]]
    here: list[Verdict]
    blocks: Collected


class Sync:
    """One run. `root` is the unlocked wallet or recovery key, None in everyday use."""

    def __init__(
        self,
        replica: Replica,
        providers: Sequence[Provider],
        layout: Layout,
        *,
        root: RootKeys | None = None,
        progress: Progress = no_progress,
    ) -> None:
        assert replica.config.vault is not None and replica.vault_tag is not None
        self.replica = replica
        self.providers = providers
        self.where = " and ".join(provider.name for provider in providers)
        self.layout = layout
        self.root = root
        self.progress = progress
        self.report = SyncReport()
        self.vault = replica.vault_tag
        self.anchor = bytes.fromhex(replica.config.vault.anchor)
        self.names = Names(replica, providers, self.report)
        self.fetcher = Fetcher(replica.db, providers)
        self.heads: dict[CID, Head] = {}
        self._opened: set[CID] = set()
        self._ring_roots: set[CID] = set()
        #: Roots with a ring alone that no anchor has named (yet).
        self._headless: set[CID] = set()
        self._anchored: Ring | None = None
        #: Whether another device's head, or the anchor, has this device in its ring.
        self._known_elsewhere = False
        #: Why nothing may be published in this sync; empty when it may.
        self._unsure = ""

    async def run(self) -> SyncReport:
        """Pull, join, publish. Raises ProviderError when the provider fails; nothing local is lost then."""
        started = time.monotonic()
        async with self._alone():
            await self.pull()
            if self.root is not None:
                self._administer()
            await self._bring_out_anchors()
            await self._publish()
        self.report.seconds = round(time.monotonic() - started, 3)
        return self.report

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        if self.replica.folder is None:
            yield
            return
        async with directory_lock_async(self.replica.folder / "sync.lock", wait=60.0):
            yield

    # -- pull --------------------------------------------------------------------------------------------------

    async def pull(self) -> None:
        """Find and join every head that can be found and verified."""
        await self._discover()
        with self.replica.transaction():
            for head in sorted(self.heads.values(), key=lambda h: h.commit.commit.c):
                self._weigh(head)
        stranger = stranger_to_itself(self.replica, list(self.heads.values()))
        if stranger is not None or self.replica.moved():
            await self._become_another(stranger)
        else:
            await self._check_own_name()
        self._take_over_orphans()
        await self._ask_again()
        for head in sorted(self.heads.values(), key=lambda h: (h.commit.commit.h, h.commit.digest)):
            if head is not stranger:
                await self._join(head)
        with self.replica.transaction():
            self.fetcher.keep()
            self.names.keep()
            self._say_what_was_refused()
        self.report.blocks_received = self.fetcher.blocks
        self.report.bytes_received = self.fetcher.bytes

    async def _discover(self) -> None:
        """Anchors and device names, then the roots they point at, until nothing new is learned."""
        todo = [ipns_name(self.anchor)]
        if self.root is not None:
            todo.append(ipns_name(self.root.head_public))
        asked: set[str] = set()
        listed = False
        while todo:
            for name in todo:
                asked.add(name)
                await self._follow(name, asked)
            if not listed and (not self._opened or not any(p.capabilities.names for p in self.providers)):
                # Where names are lost or hidden, pin lists still show roots; each is verified like any other.
                listed = True
                await self._open_pins()
            todo = [name for name in self._member_names() if name not in asked]
            if len(asked) > MAX_NAMES:
                raise FormatError(f"more than {MAX_NAMES} names lead from one to the next")

    async def _open_pins(self) -> None:
        for provider in self.providers:
            if not provider.capabilities.list:
                continue
            try:
                pins = await provider.pins(pin_name(self.anchor))
            except ProviderError as error:
                self.report.say("channel-down", f"the pin list of {provider.name} could not be read: {error}")
                continue
            for pin in pins:
                await self._open(pin.cid, f"pin list of {provider.name}", anchor=False)

    def _member_names(self) -> list[str]:
        ring = self.replica.ring
        if ring is None:
            return []
        keys = [person.sign for person in ring.view.members.values()]
        return [ipns_name(key) for key in (*ring.view.anchors(), *keys)]

    async def _follow(self, name: str, asked: set[str]) -> None:
        record = await self.names.read(name)
        for _ in range(8):
            if record is None:
                return
            try:
                leads = target(record)
            except FormatError as error:
                self.report.say("bad-record", f"{name}: {error}")
                return
            if isinstance(leads, CID):
                await self._open(leads, name, anchor=name in self._anchor_names())
                return
            asked.add(leads)
            record = await self.names.read(leads)

    def _anchor_names(self) -> set[str]:
        roots = [self.root.head_public] if self.root is not None else []
        return {ipns_name(public) for public in (*self._anchors(), *roots)}

    async def _open(self, root: CID, source: str, *, anchor: bool = False) -> None:
        """Verify a root; `anchor` when a name that only a root can sign points at it."""
        if root in self._opened or (root in self._headless and not anchor):
            return
        self._opened.add(root)
        reader, before = Reader(), len(self.fetcher.fetched)
        try:
            files = await drive_async(read_root(reader, root), self.fetcher.get)
            ring = self.replica.ring
            secrets = [self.replica.device.box_secret]
            if self.root is not None:
                secrets.append(self.root.box_secret)
            try:
                opened = open_root(files, self.vault, ring, secrets)
            except OpenError:
                self._learn_publicly(files.keyring, ring)
                raise
            if opened.head is None and not anchor:
                # Bytes of a ring count when a commit or an anchor names them: else old and new parts could be paired.
                # Pin lists show the anchor's root too, so this alone is no news for anybody.
                self._opened.discard(root)
                self._headless.add(root)
                return
        except ProviderError:
            raise
        except IpfsmemError as error:
            self.fetcher.forget_since(before)
            self.report.say("head-refused", f"root {root} ({source}) was not used: {error}{self._why(error)}")
            return
        with self.replica.transaction():
            if ring is None and not self._is_anchored(opened.ring):
                self.report.say(
                    "head-refused", f"root {root} ({source}) has a ring that is not of this wallet"
                )
                return
            self.replica.set_ring(
                opened.ring if self.replica.ring is None else self.replica.ring.join(opened.ring)
            )
        by = opened.head.commit.commit.dev if opened.head is not None else ""
        if by != self.replica.device.id and self.replica.device.id in opened.shown.view.members:
            self._known_elsewhere = True
        if opened.head is None:
            self._anchored = opened.shown if self._anchored is None else self._anchored.join(opened.shown)
            self._ring_roots.add(root)
        else:
            self.heads[root] = opened.head

    def _why(self, error: IpfsmemError) -> str:
        if isinstance(error, NotFoundError) and self.fetcher.refused:
            return "; " + next(iter(self.fetcher.refused.values()))
        return ""

    def _is_anchored(self, ring: Ring) -> bool:
        assert self.replica.config.vault is not None
        return bytes.fromhex(self.replica.config.vault.admin) in ring.view.roots

    def _learn_publicly(self, keyring: bytes, ring: Ring | None) -> None:
        """A ring that we cannot open still shows, signed, that another key seals: then we stop publishing."""
        if ring is None:
            return
        with contextlib.suppress(SealError, FormatError), self.replica.transaction():
            self.replica.set_ring(ring.join(parse_keyring(keyring, self.vault).public_ring()))

    def _weigh(self, head: Head) -> None:
        """High-water marks: tell of a head older than one seen before, and of two commits with one number."""
        run = self.replica.db.connection
        commit = head.commit.commit
        row = run.execute("SELECT c, digest FROM marks WHERE device=?", (commit.dev,)).fetchone()
        if row is None or commit.c > row[0]:
            run.execute(
                "INSERT OR REPLACE INTO marks VALUES (?,?,?)", (commit.dev, commit.c, head.commit.digest)
            )
        elif commit.c < row[0]:
            named = any(head.commit.digest in other.commit.commit.prev for other in self.heads.values())
            if not named:
                self.report.say(
                    "stale",
                    f"an older head of device {commit.dev} was served (commit {commit.c}, {row[0]} was seen before)",
                )
        elif row[1] != head.commit.digest:
            self.report.say(
                "equivocation", f"device {commit.dev} made two different commits with the number {commit.c}"
            )

    # -- join --------------------------------------------------------------------------------------------------

    async def _join(self, head: Head) -> None:
        before = len(self.fetcher.fetched)
        try:
            changes = await self._changes(head)
        except ProviderError:
            raise
        except IpfsmemError as error:
            self.fetcher.forget_since(before)
            self._drop(head, f"{error}{self._why(error)}")
            return
        with self.replica.transaction():
            entries = self._count_entries() if len(changes) > GUARD_FROM else 0
            if not self._join_or_hold(changes, head):
                return
            if entries:
                self._guard(entries)

    async def _ask_again(self) -> None:
        """Ask for bodies that could not be had when their values were joined in an earlier sync: "not fetched" is a
        state that ends. What a join of this sync misses is asked for in the next one."""
        if self.replica.db.get_meta(LACKING) != b"1":
            return
        absent = "SELECT digest FROM objects WHERE digest NOT IN (SELECT digest FROM blocks)"
        missing = [bytes(row[0]) for row in self.replica.db.connection.execute(absent)]
        if missing:
            found = await self.fetcher.get([raw_cid(digest) for digest in missing])
            self.report.not_fetched += len(missing) - len(found)
        else:
            with self.replica.transaction():
                self.replica.db.set_meta(LACKING, b"0")

    def _count_entries(self) -> int:
        return sum(1 for _ in self.replica.store.names())

    def _guard(self, before: int) -> None:
        """A join that removes more than a tenth keeps the root before it until the user says so (trace 19)."""
        gone = before - self._count_entries()
        root = self.replica.db.get_meta("root")
        if gone * 10 > before and root is not None:
            self.replica.db.set_meta(f"guarded {root.decode()}", b"1")
            self.report.say(
                "mass-delete",
                f"{gone} of {before} entries went with this join; the root before it, {root.decode()}, is kept",
            )

    async def _changes(self, head: Head) -> list[Change]:
        """What differs between a head and us, checked, its objects fetched."""
        with self.replica.transaction():
            self.replica.store.checkpoint(folders=True)
            tree = self.replica.store.tree
        codec, commit = self.replica.codec, head.commit.commit
        found = await drive_async(
            differences(
                Reader(),
                head.state,
                codec.extension,
                tree,
                bytes.fromhex(commit.state),
                lambda prefix, stored: codec.open_node(prefix, commit.ek, stored),
            ),
            self.fetcher.get,
        )
        changes = checked(found, head, self.replica, self.progress)
        await fetch_objects(changes, self.replica, self.fetcher, self.progress)
        return changes

    def _join_or_hold(self, changes: list[Change], head: Head) -> bool:
        """Join a head, or hold it: whoever copied a device's state wrote something else (format section 5).

        The first head was joined. A held one is taken in as soon as the old id is given up.
        """
        forked = forked_devices(changes, head, self.replica)
        if not self._joinable(forked, head):
            self.heads.pop(head.root, None)
            return False
        lines: list[bytes] = []
        if forked:
            try:
                changes, lines = adopt_head(self.replica, changes, head, forked)
            except (LimitError, NotFoundError) as error:
                self.report.say("equivocation", f"head {head.root} is held back: {error}")
                self.heads.pop(head.root, None)
                return False
            self.report.say(
                "fork-joined",
                f"two copies of {', '.join(sorted(forked))} wrote different things; the texts of both were kept, "
                "some may come twice",
            )
        if not join(changes, head, self.replica, self.report):
            raise FormatError(f"head {head.root} contradicts itself")
        append_new_lines(self.replica, lines)
        self.report.heads_joined += self._note_head(head)
        return True

    def _joinable(self, forked: set[str], head: Head) -> bool:
        ring = self.replica.ring
        assert ring is not None
        waiting = sorted(device for device in forked if not settled(ring, device))
        if waiting:
            self.report.say(
                "equivocation",
                f"device {', '.join(waiting)} wrote different things under the same numbers: head {head.root}, which "
                "came second, is held back until that device has taken a new id (it does so at its next sync) or is "
                "revoked",
            )
        return not waiting

    def _drop(self, head: Head, why: str) -> None:
        self.heads.pop(head.root, None)
        self.report.say(
            "head-refused", f"head {head.root} of device {head.commit.commit.dev} was not joined: {why}"
        )

    def _note_head(self, head: Head) -> bool:
        """Remember a joined head; True when it is news."""
        commit = head.commit.commit
        known = self.replica.db.connection.execute(
            "SELECT 1 FROM heads WHERE root=?", (str(head.root),)
        ).fetchone()
        if known is not None:
            return False
        self.replica.db.connection.execute(
            "INSERT OR REPLACE INTO heads VALUES (?,?,?,?,?,?)",
            (str(head.root), commit.dev, commit.c, head.commit.digest, self.replica.world.now(), b""),
        )
        return True

    def _own_head(self) -> Head | None:
        mine = [h for h in self.heads.values() if h.commit.commit.dev == self.replica.device.id]
        return max(mine, key=lambda head: head.commit.commit.c, default=None)

    async def _check_own_name(self) -> None:
        """A name of ours that points at a root which we never published and cannot read: another copy may have counted
        on. Then nothing is published (format section 5), or with the wallet at hand the id is changed."""
        record = self.names.known(ipns_name(self.replica.device.sign_public))
        if record is None:
            return
        leads = target(record)
        run = self.replica.db.connection
        if not isinstance(leads, CID) or leads in self.heads or leads in self._joined_before():
            return
        if run.execute("SELECT 1 FROM placed WHERE answered=?", (str(leads),)).fetchone():
            return
        if self.root is not None:
            await self._become_another(None, unknown=True)
            return
        self._unsure = f"the name of this device points at {leads}, which it did not publish and cannot read"

    def _joined_before(self) -> set[CID]:
        rows = self.replica.db.connection.execute("SELECT root FROM heads")
        return {parse_cid(root) for (root,) in rows}

    def _take_over_orphans(self) -> None:
        with self.replica.transaction():
            found = orphans(self.replica)
            if found:
                try:
                    adopt_orphans(self.replica, found)
                except (LimitError, NotFoundError) as error:
                    self.report.say(
                        "orphan", f"texts of devices without a key could not be taken over: {error}"
                    )
                    return
                self.report.say(
                    "orphan",
                    f"the key ring no longer knows the key of {', '.join(sorted(found))}: the texts of that device go "
                    "on under the id of this one",
                )

    async def _become_another(self, stranger: Head | None, *, unknown: bool = False) -> None:
        """Take a new id, with every text of the old one that the other copy's head does not hold.

        Without such a head: with what was written since the last pair, which both copies know; `unknown`: with all.
        """
        old = self.replica.device.id
        shown = stranger or self._own_head()
        changes: list[Change] | None = None
        if shown is not None:
            try:
                changes = await self._changes(shown)
            except ProviderError:
                raise
            except IpfsmemError as error:
                if stranger is not None:
                    self._drop(stranger, f"{error}{self._why(error)}")
        with self.replica.transaction():
            if stranger is not None and changes is not None:
                forked = forked_devices(changes, stranger, self.replica) - {old}
                if not self._joinable(forked, stranger):
                    self.heads.pop(stranger.root, None)
                    changes = None
            common = last_pair(self.replica) if stranger is None and not unknown else 0
            new_identity(self.replica, self.report)
            if stranger is not None and changes is not None:
                lines, whole = move_values(self.replica, old, changes)
                self._join_or_hold(whole, stranger)
            else:
                lines = move_since(self.replica, old, common, changes or [])
            append_lines(self.replica, lines)
        self._known_elsewhere = False
        self.report.new_identity = True
        self.report.say(
            "identity",
            f"this device's state was restored or copied: it goes on as {self.replica.device.id} (was {old}); "
            "nothing was lost, and a text may come twice",
        )

    def _say_what_was_refused(self) -> None:
        for cid, why in self.fetcher.refused.items():
            self.report.say("bad-block", f"a wrong block was served: {why}")
            self.replica.db.report(self.replica.world.now(), "bad-block", f"{cid}: {why}")

    # -- admin -------------------------------------------------------------------------------------------------

    def _administer(self) -> None:
        """What an unlocked root does: enrol this device, give keys to who lacks them, move the anchor."""
        assert self.root is not None
        replica, root = self.replica, self.root
        if replica.ring is None:
            raise NoVaultError(f"no memory of this wallet was found at {self.where}")
        with replica.transaction():
            ring = replica.ring
            since = replica.store.frame.hlc
            if not ring.plain:
                ring = ring_ops.give_key(ring, root.admin, replica.world.random(32))
            if replica.device.id not in ring.view.members:
                if replica.device.id in ring.view.revoked:
                    raise MembershipError(f"this device ({replica.device.id}) was revoked")
                if any(person.box == replica.device.box_public for person in ring.view.people.values()):
                    # Another copy of this device goes on with the old one; what it opened stays in the ring.
                    replica.set_device(replica.device.with_box(replica.world.random))
                public = ring_ops.Device(
                    replica.device.sign_public, replica.device.box_public, replica.config.label
                )
                ring = ring_ops.enrol(ring, root.admin, public, "writer", since=since)
                self.report.say("enrolled", f"this device joined the memory as {replica.device.id}")
            replica.set_ring(ring)
            anchor_root = build_ring_root(replica)
            name = ipns_name(root.head_public)
            known = self.names.known(name)
            if known is None or known.value != f"/ipfs/{anchor_root}":
                self.names.sign(root.head_seed, root.head_public, f"/ipfs/{anchor_root}", ANCHOR_LIFE_MS)
            self.names.keep()
        self._anchored = replica.ring

    # -- publish -----------------------------------------------------------------------------------------------

    async def _bring_out_anchors(self) -> None:
        """Put anchors where they are missing or old, the ring they point at first when it was made here.

        Devices cannot sign them, and somebody must keep them alive (format section 7).
        """
        names = [ipns_name(anchor) for anchor in sorted(self._anchors())]
        for name in names:
            record = self.names.known(name)
            if record is None or not self.names.differs(name):
                continue
            leads = target(record)
            if isinstance(leads, CID) and self.replica.db.has_block(leads.digest):
                await self._place(leads)
        await self.names.put(names)

    async def _publish(self) -> None:
        replica = self.replica
        ring = replica.ring
        if ring is None:
            raise NoVaultError(f"no memory of this wallet was found at {self.where}")
        if not ring.view.may_write(replica.device.id):
            self.report.say(
                "not-a-writer",
                f"this device ({replica.device.id}) may not write: nothing was published. If it should, unlock once "
                "with the wallet",
            )
            return
        if self._unsure:
            self.report.say("cannot-publish", f"nothing was published: {self._unsure}")
            return
        try:
            with replica.transaction():
                ready = prepare(
                    replica,
                    self.layout,
                    self.heads.values(),
                    [head.commit.digest for head in self.heads.values()],
                )
        except MembershipError as error:
            self.report.say("cannot-publish", f"nothing was published: {error}. {error.hint}")
            return
        answered = await self._place(ready.root)
        self.report.adopted = not ready.own
        device = replica.device
        name = ipns_name(device.sign_public)
        record = self.names.known(name)
        if record is None or record.value != f"/ipfs/{answered}":
            self.names.sign(device.sign_seed, device.sign_public, f"/ipfs/{answered}", DEVICE_LIFE_MS)
        moved = [name, *self._move_former(answered)]
        with replica.transaction():
            self.names.keep()
        await self.names.put(moved)
        with replica.transaction():
            replica.db.set_meta("root", str(ready.root).encode())
            replica.db.connection.execute(
                "INSERT OR REPLACE INTO heads VALUES (?,?,?,?,?,?)",
                (
                    str(ready.root),
                    ready.commit.commit.dev,
                    ready.commit.commit.c,
                    ready.commit.digest,
                    replica.world.now(),
                    b"",
                ),
            )
        self.report.root = str(ready.root)
        self.report.published = ready.new
        if (
            self._anchored is not None
            and replica.ring is not None
            and self._anchored.join(replica.ring) != self._anchored
        ):
            self.report.say(
                "unlock", "the ring has grown since the anchor was signed: unlock once with the wallet"
            )

    def _move_former(self, root: CID) -> list[str]:
        """After a change of id nobody follows the new name yet: the old one leads to it until somebody does."""
        former = self.replica.former()
        if former is None:
            return []
        if self._known_elsewhere:
            with self.replica.transaction():
                self.replica.forget_former()
            return []
        return [self.names.sign(former.sign_seed, former.sign_public, f"/ipfs/{root}", DEVICE_LIFE_MS)]

    def _anchors(self) -> set[bytes]:
        ring = self.replica.ring
        return {self.anchor, *(ring.view.anchors() if ring is not None else ())}

    # -- letting go --------------------------------------------------------------------------------------------

    async def collect(self, *, dry_run: bool, keep_roots: int, keep_days: int) -> Collection:
        """Unpin superseded roots and drop the blocks that only they needed (format section 7). Pulls first."""
        async with self._alone():
            await self.pull()
            verdicts = {
                provider.name: await self._unpin(provider, dry_run, keep_roots, keep_days)
                for provider in self.providers
                if provider.capabilities.list and provider.capabilities.unpin
            }
            here = self._judge_here(keep_roots, keep_days)
            stay = [parse_cid(verdict.root) for verdict in here if verdict.keep]
            with self.replica.transaction():
                run = self.replica.db.connection
                collected = collect(self.replica.store, [*stay, *self.names.roots()], dry_run=dry_run)
                if not dry_run:
                    gone = [(verdict.root,) for verdict in here if not verdict.keep]
                    run.executemany("DELETE FROM heads WHERE root=?", gone)
        return Collection(verdicts, here, collected)

    async def _unpin(
        self, provider: Provider, dry_run: bool, keep_roots: int, keep_days: int
    ) -> list[Verdict]:
        pins = await provider.pins(pin_name(self.anchor))
        run = self.replica.db.connection
        ours = {
            answered: (root, at)
            for root, answered, at in run.execute(
                "SELECT root, answered, at FROM placed WHERE provider=?", (provider.name,)
            )
        }
        facts = {}
        for pin in pins:
            answered = str(pin.cid)
            root, at = ours.get(answered, (answered, pin.created))
            facts[answered] = msgspec.structs.replace(self._facts(root, at), root=answered)
        whole = await self._whole_at(provider)
        verdicts = judge(
            facts.values(), self.replica.world.now(), whole=whole, keep_roots=keep_roots, keep_days=keep_days
        )
        gone = {verdict.root for verdict in verdicts if not verdict.keep}
        for pin in pins:
            if str(pin.cid) in gone and not dry_run:
                await provider.unpin(pin)
                with self.replica.transaction():
                    run.execute(
                        "DELETE FROM placed WHERE provider=? AND answered=?", (provider.name, str(pin.cid))
                    )
        return verdicts

    def _judge_here(self, keep_roots: int, keep_days: int) -> list[Verdict]:
        rows = self.replica.db.connection.execute("SELECT root, seen FROM heads").fetchall()
        facts = [self._facts(root, seen) for root, seen in rows]
        return judge(facts, self.replica.world.now(), whole=True, keep_roots=keep_roots, keep_days=keep_days)

    def _facts(self, root: str, at: int) -> Pinned:
        run = self.replica.db.connection
        head = run.execute("SELECT seen FROM heads WHERE root=?", (root,)).fetchone()
        guarded = self.replica.db.get_meta(f"guarded {root}") is not None
        cid = parse_cid(root)
        return Pinned(
            root,
            head[0] if head else at,
            verified=head is not None,
            named=cid in self.names.roots(),
            ring=head is None and cid in self._ring_roots,
            guarded=guarded,
        )

    async def _whole_at(self, provider: Provider) -> bool:
        """Whether everything that the joined state names is at this provider, asked block by block where it can be."""
        root = self.replica.db.get_meta("root")
        run = self.replica.db.connection
        placed = (
            root is not None
            and run.execute(
                "SELECT 1 FROM placed WHERE provider=? AND root=?", (provider.name, root.decode())
            ).fetchone()
        )
        digests = [bytes(row[0]) for row in run.execute("SELECT digest FROM objects")]
        if not placed or not all(self.replica.db.has_block(digest) for digest in digests):
            return False
        if provider.capabilities.has:
            cids = [raw_cid(digest) for digest in digests]
            for start in range(0, len(cids), MAX_BATCH):
                batch = cids[start : start + MAX_BATCH]
                if len(await provider.has(batch)) < len(batch):
                    return False
        return True

    # -- placing -----------------------------------------------------------------------------------------------

    async def _place(self, root: CID) -> CID:
        """Bring a root to every provider that does not have it yet; the root that names are to point at.

        One that takes it suffices: what the others missed goes to them at the next sync. Raises the first failure when
        none took it.
        """
        answers: list[CID] = []
        failures: list[ProviderError] = []
        takers = [provider for provider in self.providers if provider.capabilities.put]
        for provider in takers:
            try:
                answers.append(await self._place_at(provider, root))
            except ProviderError as error:
                failures.append(error)
        if not answers:
            raise failures[0] if failures else ConfigError(f"nothing can be published at {self.where}")
        for failure in failures:
            self.report.say(
                "provider-down", f"not published everywhere: {failure}; the next sync tries again"
            )
        return root if root in answers else answers[0]

    async def _still_there(self, provider: Provider, root: CID) -> bool:
        """A folder can be emptied and an account closed: ask where that is cheap."""
        return not provider.capabilities.has or bool(await provider.has([root]))

    async def _place_at(self, provider: Provider, root: CID) -> CID:
        run = self.replica.db.connection
        row = run.execute(
            "SELECT answered FROM placed WHERE provider=? AND root=?", (provider.name, str(root))
        ).fetchone()
        if row is not None and await self._still_there(provider, parse_cid(row[0])):
            return parse_cid(row[0])
        self.progress(f"publishing to {provider.name}", 0, 0)
        before = run.execute(
            "SELECT root FROM placed WHERE provider=? ORDER BY at DESC LIMIT 2", (provider.name,)
        ).fetchall()
        known = [parse_cid(text) for (text,) in before]
        if provider.capabilities.has:
            # Heads that were read there save questions; a root that is gone may have taken its blocks along.
            known = list(await provider.has([*known, *self.heads]))
        sent = await send(self.replica, provider, root, known, pin_name(self.anchor))
        self.report.blocks_sent += sent.blocks
        self.report.bytes_sent += sent.bytes
        with self.replica.transaction():
            run.execute(
                "INSERT OR REPLACE INTO placed VALUES (?,?,?,?,?)",
                (provider.name, str(root), str(sent.root), sent.handle, self.replica.world.now()),
            )
        return sent.root
