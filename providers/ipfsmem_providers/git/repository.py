"""The cache repository of one address: bare and shallow, in the home folder, never the user's own.

It contains only copies, so a damaged one is replaced. Programs on this device share it, and hold its lock for changes. Data from a
host is received in a separate folder, and moved after its content and size were checked.

*Shallow.* A squashed commit shares no ancestor with the host's, and `git push` would send every file again. In a shallow repository
it leaves out what the host's newest tree holds. So `shallow` names a commit from the beginning.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from ipfsmem.device.lock import file_lock
from ipfsmem.errors import LockedError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem_providers.git.address import GitAddress
from ipfsmem_providers.git.errors import OTHER_HINT, RULES_HINT, explain, is_damage, last_line, local_failure
from ipfsmem_providers.git.program import Finished, GitProgram, LocalFailure
from ipfsmem_providers.packs.blocking_work import heartbeat, is_cancelled

STORE_NAMES: Final = ("packs", "pins", "names", "small")
#: Other files in the root of our branch: a text for people who open the branch.
README: Final = "README.md"
_TEXT: Final = b"This branch is written by ipfsmem: encrypted memories of AI agents. Nothing here is meant to be read, merged or edited.\n"
#: Files that a host or a person may have created in the root; they are never removed.
_HARMLESS: Final = frozenset((README, "LICENSE", ".gitattributes", ".gitignore"))
#: Entries of one folder; a longer list is not ours.
_ENTRIES_MAX: Final = 100_000
#: Bytes of a file; a larger one is not ours.
FILE_MAX: Final = 128 * 1024 * 1024
#: Bytes of all files, unpacked, and of what one fetch receives.
_TOTAL_MAX: Final = 64 * 1024 * 1024 * 1024
_RECEIVED_MAX: Final = 16 * 1024 * 1024 * 1024
_HEAD: Final = "refs/ipfsmem/head"
_MARK: Final = "refs/ipfsmem/mark"
_NEW: Final = "refs/ipfsmem/new/"
_COUNT: Final = re.compile(r"^ipfsmem: sealed memory \(([0-9]{1,6})\)")
#: Seconds to wait for another program that uses the repository; after which leftovers are removed; between two attempts to squash.
_WAIT: Final = 900
_OLD: Final = 86_400
_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")
_NO_FORCE: Final = 30 * 86_400
#: Number of packs, and of loose objects in one of 256 folders, above which the cache repository is repacked.
_PACKS: Final = 60
_LOOSE: Final = 12
#: Seconds until a process repacks it again, because a repack keeps young objects.
_TIDIES: Final = 600.0
_LOST: Final = (
    "stale info", "fetch first", "cannot lock ref", "failed to update ref", "incorrect old value", "reference already exists",
)  # fmt: skip
#: Of those, what says that the name of the branch cannot be used: refs/heads/a and refs/heads/a/b exclude each other.
_IN_THE_WAY: Final = ("exists; cannot create", "directory/file conflict", "unable to resolve reference")


class TreeEntry(NamedTuple):
    """One entry of a folder in a tree."""

    mode: str
    oid: str
    size: int  #: bytes of a regular file; -1 for anything else


_NOTHING: Final[Mapping[str, Mapping[str, TreeEntry]]] = MappingProxyType({kind: {} for kind in STORE_NAMES})


class BranchTree(NamedTuple):
    """The branch at one commit; `head` is empty when there is no branch."""

    head: str = ""
    chain: int = 0  #: commits since the last squash
    has_text: bool = False
    stores: Mapping[str, Mapping[str, TreeEntry]] = _NOTHING


def _quoted(path: str) -> bytes:
    """Return a path for fast-import, quoted, with escapes for all that is not plain."""
    octets = path.encode(errors="surrogateescape")
    return b'"%s"' % b"".join(b"%c" % one if one in _PLAIN else b"\\%03o" % one for one in octets)


def _entry_of(data: bytes, width: int) -> TreeEntry:
    """Return the entry of a new regular file; object ids have `width` hex digits."""
    hasher = hashlib.sha1 if width == 40 else hashlib.sha256
    return TreeEntry(
        "100644", hasher(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest(), len(data)
    )


class LostRace(Exception):
    """Another device pushed first, according to the host's message, which is quoted."""

    def __init__(self, message: str, *, locked: bool = False) -> None:
        """`locked`: the branch has a lock file at the host, of a running or an interrupted git program."""
        super().__init__(message)
        self.locked = locked


class CacheRepository:
    """The cache repository of an address. Methods block; not thread-safe."""

    def __init__(self, folder: Path, address: GitAddress, git: GitProgram, where: str) -> None:
        self.folder, self._address, self._git, self._where = folder, address, git, where
        #: Connections by kind, for reports and tests.
        self.connections = {"fetch": 0, "push": 0}
        self.lost = self.squashes = 0
        self._tidied = float("-inf")
        #: Whether the host refused to replace the history since this was last reset.
        self.newly_forbidden = False

    # -- reading ---------------------------------------------------------------------------------------------------

    def fetch(self, previous: BranchTree | None) -> BranchTree:
        """Fetch the current branch from the host. Raises ProviderError, LocalFailure."""
        if self._address.kind == "file" and not Path(self._address.url).is_dir():
            raise ProviderUnavailable(
                f"{self._where}: folder {self._address.url} is not there",
                hint="Plug in the stick or mount the share. Create a new repository first: git init --bare PATH",
            )
        packs: list[Path] = []
        with self._locked():
            try:
                head = self._fetch(packs)
                if previous is not None and previous.head == head:
                    self._tidy_if_due()  # this device's own pushes leave objects, too
                    return previous
                tree = self._load(head) if head else BranchTree()
            except ProviderRefused:  # each attempt would keep objects that others wrote
                for path in reversed(packs):
                    path.unlink(missing_ok=True)
                raise
            self._git.local(self.folder, "update-ref", *([_HEAD, head] if head else ["-d", _HEAD]))
            self._tidy_if_due()
            return tree

    def blobs(self, oids: Sequence[str], size: int) -> Iterator[bytes | None]:
        """Yield the bytes of objects, together `size`; None for objects that are not on this device."""
        unique = list(dict.fromkeys(oids))
        request = "".join(f"{oid}\n" for oid in unique).encode()
        out = self._git.local(
            self.folder, "cat-file", "--batch", data=request, out_max=size + 200 * len(oids)
        ).out
        heartbeat()
        contents: dict[str, bytes] = {}
        at = 0
        for oid in unique:
            end = out.index(b"\n", at)
            line = out[at:end].split()
            at = end + 1
            if len(line) == 3:
                length = int(line[2])
                if line[1] == b"blob":
                    contents[oid] = out[at : at + length]
                at += length + 1
        for oid in oids:
            yield contents.get(oid)

    def _fetch(self, packs: list[Path]) -> str:
        """Receive the branch and return its commit, or ""; `packs` gets the files that were added."""
        received = self.folder / "received" / secrets.token_hex(8)
        (received / "pack").mkdir(parents=True)
        try:
            first = not self._resolved(_HEAD)
            done = self._ask(received, first=first)
            if done.code and "shallow" in done.err.lower() and not first:
                done = self._ask(received, first=True)
            if done.code:
                if "couldn't find remote ref" in done.err.lower():
                    return ""
                if line := local_failure(done.err):
                    raise LocalFailure(line, connected=True)
                raise explain(self._where, done.err)
            self._take_in(received / "pack", packs)
        finally:
            shutil.rmtree(received, ignore_errors=True)
        line = (self.folder / "FETCH_HEAD").read_bytes()[:64].split(b"\t")[0].decode(errors="replace")
        if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", line) or self._type_of(line) != "commit":
            raise ProviderRefused(f"{self._where}: {self._address.branch} is not a branch")
        return line

    def _ask(self, received: Path, *, first: bool) -> Finished:
        self.connections["fetch"] += 1
        room = min(_RECEIVED_MAX, shutil.disk_usage(self.folder).free // 2)
        return self._git.remote(
            self.folder, "fetch", "--progress", "--no-tags", "--no-prune", "--force",
            *(["--depth=1"] if first else []), self._address.url, self._address.ref,
            objects=received, bytes_max=room,
        )  # fmt: skip

    def _take_in(self, packs: Path, moved: list[Path]) -> None:
        """Move received packs to the others; git sees a pack once its index exists."""
        there = self.folder / "objects" / "pack"
        names = [path.name for path in packs.iterdir() if path.name.startswith("pack-")]
        for name in sorted(names, key=lambda one: one.endswith(".idx")):
            if not (there / name).exists():
                moved.append(there / name)
            (packs / name).replace(there / name)

    def _load(self, head: str) -> BranchTree:
        root = dict(self._entries(head))
        strange = [
            name
            for name, entry in root.items()
            if (entry.mode != "040000" if name in STORE_NAMES else name not in _HARMLESS)
        ]
        commit = self._git.local(self.folder, "cat-file", "commit", head).out
        counted = _COUNT.match(commit.partition(b"\n\n")[2][:200].decode(errors="replace"))
        if strange or (root and not counted and not any(kind in root for kind in STORE_NAMES)):
            what = strange[0] if strange else next(iter(root))
            raise ProviderRefused(
                f"{self._where}: branch {self._address.branch} holds other files than ipfsmem's, for instance "
                f"{what[:60]!a}; nothing was changed",
                hint=OTHER_HINT,
            )
        stores = {kind: dict(self._entries(root[kind].oid)) if kind in root else {} for kind in STORE_NAMES}
        total = sum(max(0, entry.size) for files in stores.values() for entry in files.values())
        if total > _TOTAL_MAX:
            raise ProviderRefused(
                f"{self._where} has {total:,} bytes of files; at most {_TOTAL_MAX:,} are read",
                hint=OTHER_HINT,
            )
        return BranchTree(head, int(counted[1]) if counted else 1, README in root, stores)

    def _entries(self, tree: str) -> Iterator[tuple[str, TreeEntry]]:
        out = self._git.local(self.folder, "ls-tree", "-l", "-z", tree).out
        if out.count(b"\0") > _ENTRIES_MAX:
            raise ProviderRefused(f"{self._where} lists more than {_ENTRIES_MAX:,} files in a folder")
        for line in out.split(b"\0")[:-1]:
            about, _, name = line.partition(b"\t")
            mode, kind, oid, size = about.decode().split()
            regular = kind == "blob" and mode in ("100644", "100755")
            if regular and not size.isdecimal():
                raise LocalFailure(f"missing blob {oid}")
            yield name.decode(errors="surrogateescape"), TreeEntry(mode, oid, int(size) if regular else -1)

    def _resolved(self, ref: str) -> str:
        done = self._git.local(self.folder, "rev-parse", "-q", "--verify", f"{ref}^{{commit}}", check=False)
        return done.out.decode().strip()

    def _type_of(self, oid: str) -> str:
        return self._git.local(self.folder, "cat-file", "-t", oid, check=False).out.decode().strip()

    # -- writing ---------------------------------------------------------------------------------------------------

    def store(self, data: bytes) -> str:
        """Store a file in the cache repository before its commit; return its object id."""
        with self._locked():
            return (
                self._git.local(self.folder, "hash-object", "-w", "--stdin", data=data).out.decode().strip()
            )

    def push(
        self,
        tree: BranchTree,
        puts: Mapping[str, bytes | TreeEntry],
        gone: Sequence[str],
        *,
        squash_at: int,
    ) -> BranchTree:
        """Put one commit on `tree` at the host, and return the branch after it.

        `puts` and `gone` are paths. Raises LostRace when the host's branch is not `tree` any more, ProviderError,
        LocalFailure.
        """
        with self._locked():
            squash = tree.chain + 1 >= squash_at and bool(tree.head) and not self._forbids_force()
            try:
                after = self._push(tree, puts, gone, squash=squash)
                self.squashes += squash
            except ProviderRefused:
                if not squash:
                    raise
                after = self._push(tree, puts, gone, squash=False)
                (self.folder / "no-force").touch()
                self.newly_forbidden = True
            self._git.local(self.folder, "update-ref", _HEAD, after.head)
            return after

    def try_force(self, tree: BranchTree) -> tuple[BranchTree, bool]:
        """Replace the history of `tree` by one commit; return the branch, and whether the host allows that."""
        (self.folder / "no-force").unlink(missing_ok=True)
        after = self.push(tree, {}, (), squash_at=1)
        return after, not self._forbids_force()

    def _forbids_force(self) -> bool:
        with contextlib.suppress(OSError):
            return time.time() - (self.folder / "no-force").stat().st_mtime < _NO_FORCE
        return False

    def _push(
        self, tree: BranchTree, puts: Mapping[str, bytes | TreeEntry], gone: Sequence[str], *, squash: bool
    ) -> BranchTree:
        name = f"{_NEW}{secrets.token_hex(8)}"
        try:
            pushed = self._load(self._commit(name, tree, puts, gone, squash=squash))
            self._compare(pushed, tree, puts, gone)
            self.connections["push"] += 1
            done = self._git.remote(
                self.folder, "push", "--progress", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed",
                f"--force-with-lease={self._address.ref}:{tree.head}", self._address.url, f"{pushed.head}:{self._address.ref}",
                sent=sum(put.size if isinstance(put, TreeEntry) else len(put) for put in puts.values()),
            )  # fmt: skip
        finally:
            with contextlib.suppress(
                ProviderError
            ):  # an old one is removed when the repository is packed again
                self._git.local(self.folder, "update-ref", "-d", name, check=False)
        if done.code:
            refused = [
                line for line in done.out.decode(errors="replace").splitlines() if line.startswith("!")
            ]
            refusal = refused[0].rpartition("\t")[2] if refused else ""
            lower = f"{refusal} {done.err}".lower() if refused else ""
            if any(word in lower for word in _LOST) or (
                "[rejected]" in refusal and "non-fast-forward" in refusal
            ):
                if any(word in lower for word in _IN_THE_WAY):
                    raise ProviderRefused(
                        f"{self._where}: another branch has a name in the way of {self._address.branch} ({last_line(refusal)})",
                        hint=OTHER_HINT,
                    )
                self.lost += 1
                raise LostRace(last_line(refusal), locked=".lock'" in lower and "file exists" in lower)
            if refusal.startswith("[remote rejected]"):
                error = explain(self._where, f"{done.err}\n{refusal}")
                if isinstance(error, ProviderRefused) or "space" in str(error):
                    raise error
                raise ProviderRefused(
                    f"{self._where} refused the new commit ({last_line(refusal)})",
                    hint=RULES_HINT,
                )
            if failure := local_failure(done.err):
                raise LocalFailure(failure, connected=True)
            raise explain(self._where, done.err or refusal)
        return pushed

    def _commit(
        self,
        name: str,
        tree: BranchTree,
        puts: Mapping[str, bytes | TreeEntry],
        gone: Sequence[str],
        *,
        squash: bool,
    ) -> str:
        count = 1 if squash or not tree.head else tree.chain + 1
        text = (
            f"ipfsmem: sealed memory ({count}) [skip ci]\n\nMade by a program; nothing here is meant to be read or merged.\n"
        ).encode()
        day = int(time.time()) // 86_400 * 86_400
        stream = [
            f"commit {name}\ncommitter ipfsmem <ipfsmem@invalid> {day} +0000\ndata {len(text)}\n".encode(),
            text,
        ]
        if tree.head and not squash:
            stream.append(f"from {tree.head}\n".encode())
        elif tree.head:
            root = self._git.local(self.folder, "rev-parse", f"{tree.head}^{{tree}}").out.decode().strip()
            stream.append(f'M 040000 {root} ""\n'.encode())
        stream += [b"D %s\n" % _quoted(path) for path in sorted(gone)]
        files = dict(puts) if tree.has_text else {README: _TEXT, **puts}
        for path, put in sorted(files.items()):
            if isinstance(put, TreeEntry):
                stream.append(b"M %s %s %s\n" % (put.mode.encode(), put.oid.encode(), _quoted(path)))
            else:
                stream += [b"M 100644 inline %s\ndata %d\n" % (_quoted(path), len(put)), put, b"\n"]
        stream.append(b"done\n")
        try:
            self._git.local(self.folder, "fast-import", "--quiet", "--done", data=b"".join(stream))
        except LocalFailure:
            if tree.head and self._resolved(_HEAD) != tree.head and not self._type_of(tree.head):
                raise LostRace("another program on this device read a newer commit") from None
            raise
        commit = self._resolved(name)
        if not commit:
            raise LocalFailure("git fast-import made no commit")
        return commit

    def _compare(
        self, pushed: BranchTree, tree: BranchTree, puts: Mapping[str, bytes | TreeEntry], gone: Sequence[str]
    ) -> None:
        """Verify before the push that a commit has exactly the files of `tree` with these changes."""
        expected = {
            f"{kind}/{name}": entry for kind, files in tree.stores.items() for name, entry in files.items()
        }
        for path in gone:
            expected.pop(path, None)
        width = len(pushed.head)
        expected |= {
            path: put if isinstance(put, TreeEntry) else _entry_of(put, width) for path, put in puts.items()
        }
        there = {
            f"{kind}/{name}": entry for kind, files in pushed.stores.items() for name, entry in files.items()
        }
        if there != expected:
            wrong = sorted({*there.items()} ^ {*expected.items()})[0][0]
            raise ProviderUnavailable(
                f"{self._where}: git made another tree than it was given, for instance at {wrong[:80]!a}; nothing was pushed",
                hint="Sync again.",
            )

    # -- the repository itself -------------------------------------------------------------------------------------

    def replace(self, failure: LocalFailure) -> bool:
        """Remove the cache repository if the failure reports damage and a check of all objects confirms it; return whether it was
        damaged.

        The next fetch creates it again.
        """
        if not is_damage(str(failure)):
            return False
        with self._locked(make=False), contextlib.suppress(FileNotFoundError):
            if not self._git.local(self.folder, "fsck", "--no-dangling", "--no-progress", check=False).code:
                return False
            aside = self.folder.with_name(f"{self.folder.name}.damaged-{secrets.token_hex(4)}")
            self.folder.replace(aside)
            shutil.rmtree(aside, ignore_errors=True)
        return True

    @contextlib.contextmanager
    def _locked(self, *, make: bool = True) -> Iterator[None]:
        """Hold the repository's lock against other programs on this device, and create the repository if it is missing."""
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            self._wait_for(lambda: stack.enter_context(file_lock(self.folder.with_suffix(".lock"), wait=1.0)))
            if make and not (self.folder / "HEAD").is_file():
                self._make()
            if make:
                self._remove_locks()
            yield

    def _wait_for(self, enter: Callable[[], None]) -> None:
        for _ in range(_WAIT):
            try:
                enter()
            except LockedError:
                heartbeat()
                if is_cancelled():
                    raise ProviderUnavailable(f"{self._where}: cancelled") from None
            else:
                return
        raise ProviderUnavailable(
            f"{self._where}: another program on this device has been using its copy for {_WAIT // 60} minutes",
            hint="Wait until it ends, or stop it; then try again.",
        )

    def _make(self) -> None:
        new = self.folder.with_name(f"{self.folder.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        self._git.local(new, "init", "-q", "--bare", "--object-format=sha1", "--template=", str(new))
        (new / "objects" / "pack").mkdir(exist_ok=True)
        (new / "info").mkdir(exist_ok=True)
        text = (
            b"commit %s\ncommitter ipfsmem <ipfsmem@invalid> 0 +0000\ndata 12\nnever pushed\ndone\n"
            % _MARK.encode()
        )
        self._git.local(new, "fast-import", "--quiet", "--done", data=text)
        mark = self._git.local(new, "rev-parse", _MARK).out
        (new / "shallow").write_bytes(mark)
        shutil.rmtree(self.folder, ignore_errors=True)
        new.replace(self.folder)

    def _remove_locks(self) -> None:
        """Remove lock files and reports of git programs that were killed. While our lock is held nothing else runs, but for the one command of
        a program that was just killed, which adds objects and moves a ref of its own."""
        for pattern in ("*.lock", "refs/ipfsmem/**/*.lock", "fast_import_crash_*"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)

    def _is_untidy(self) -> bool:
        objects = self.folder / "objects"
        packs = sum(1 for _ in (objects / "pack").glob("*.pack"))
        return packs > _PACKS or sum(1 for _ in (objects / "17").glob("*")) > _LOOSE

    def _tidy_if_due(self) -> None:
        now = time.monotonic()
        if now - self._tidied > _TIDIES and self._is_untidy():
            self._tidied = now
            self._tidy()

    def _tidy(self) -> None:
        """Repack the repository without unneeded objects; young objects are kept, because another program may need them."""
        with contextlib.suppress(LocalFailure, OSError, ProviderError):
            now = time.time()
            for kind in ("received", "objects/pack"):
                for path in (self.folder / kind).glob("*" if kind == "received" else "tmp_*"):
                    if now - path.stat().st_mtime > _OLD:
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
            for path in (self.folder / _NEW).glob("*"):
                if now - path.stat().st_mtime > _OLD:
                    path.unlink()
            mark, head = self._resolved(_MARK), self._resolved(_HEAD)
            (self.folder / "shallow.new").write_text("".join(f"{one}\n" for one in (mark, head) if one))
            (self.folder / "shallow.new").replace(self.folder / "shallow")
            self._git.local(self.folder, "repack", "-a", "-d", "-q", "--unpack-unreachable=1.hour.ago")
            self._git.local(self.folder, "prune", "--expire=1.hour.ago")
