"""The demonstration: two devices share a wallet and a folder as provider, and every promise about them is checked.

`Demo(folder, blob).steps()` yields each step with its claims. The result of a claim is a comparison made in this run, never a fixed
text. All files are below `folder`.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ipfsmem.bundle.blob import Blob, write_blob
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID, RAW, parse_cid, public_of_ipns_name
from ipfsmem.device.database_file import DATABASE_FILES
from ipfsmem.errors import FormatError, IpfsmemError, NoVaultError
from ipfsmem.memories.memories import check_body
from ipfsmem.memory import Memory
from ipfsmem.open_vault.advising import WritingAdvice
from ipfsmem.results import Answer
from ipfsmem.sync.report import SyncReport
from ipfsmem.vault.home import Home
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import KeystoreSigner, RawKeySigner, create_keystore

PASSPHRASE: Final = "only-a-demo"  # noqa: S105
VAULT_NAME: Final = "demo"
#: Texts for a memory that has fewer than the demonstration edits.
SPARE: Final = {
    f"spare_{n}": f"The {n} of five spare texts, for a memory that is smaller than this demonstration needs.\n".encode()
    for n in ("first", "second", "third", "fourth", "fifth")
}
_WORD = re.compile(r"[^\W\d_]{6,}")
_RUN = re.compile(rb"[A-Za-z]{6,}")
_NAMES = re.compile(rb"ba[a-z2-7]{50,}|k51[0-9a-z]{50,}")


class Claim(msgspec.Struct, frozen=True):
    """A promise as a sentence, and whether it held in this run."""

    text: str
    held: bool


class DemoStep(msgspec.Struct, frozen=True):
    """One step: a description (`text`, with details in `facts`), its duration in seconds, and its claims."""

    title: str
    text: str
    claims: tuple[Claim, ...]
    seconds: float
    facts: dict[str, Any] = {}

    @property
    def held(self) -> bool:
        """Whether every claim held."""
        return all(claim.held for claim in self.claims)


class StepResult(Answer, frozen=True, kw_only=True):
    """One step as `--json` prints it. `held`: whether all its claims held; `seconds`: its duration."""

    title: str
    text: str
    claims: tuple[Claim, ...]
    seconds: float
    facts: dict[str, Any]
    held: bool


class DemoResult(Answer, frozen=True, kw_only=True):
    """The demonstration as `--json` prints it.

    `held`: whether all of the `claims` claims held. `roots`: the CID of the last published root of each device, None without one.
    `folder`: the folder with all files, None if it was removed.
    """

    held: bool
    claims: int
    roots: dict[str, str | None]
    folder: str | None
    steps: list[StepResult]

    @classmethod
    def of(cls, steps: list[DemoStep], roots: dict[str, str | None], folder: str | None) -> DemoResult:
        """Return the result of these steps."""
        return cls(
            held=all(step.held for step in steps),
            claims=sum(len(step.claims) for step in steps),
            roots=roots,
            folder=folder,
            steps=[StepResult(**msgspec.structs.asdict(step), held=step.held) for step in steps],
        )


class DamagedByte(msgspec.Struct, frozen=True):
    """One byte of the block `cid`, which has `size` bytes, in a file of the provider."""

    file: Path
    offset: int
    cid: CID
    size: int

    def flip(self) -> None:
        """Flip one bit. A second call restores the byte."""
        with self.file.open("r+b") as file:
            file.seek(self.offset)
            old = file.read(1)[0]
            file.seek(self.offset)
            file.write(bytes([old ^ 1]))


class Demo:
    """The demonstration in a folder: `a` and `b` below it are the home directories of the two devices, `provider` is their shared
    provider."""

    def __init__(self, folder: Path, blob: Blob, *, source: str = "the sample") -> None:
        self.folder = folder
        self.home_a, self.home_b, self.provider = folder / "a", folder / "b", folder / "provider"
        self.source = source
        self.files: dict[str, bytes] = dict(SPARE) if len(blob.files) < len(SPARE) else {}
        self.problems = [*blob.problems]
        for key, data in blob.files.items():
            try:
                check_body(key, data)
            except IpfsmemError as error:
                self.problems.append(f"{key} was left out: {error}")
            else:
                self.files[key] = data
        self.events = blob.events
        self.written: list[bytes] = [*self.files.values()]
        self.roots: dict[str, str | None] = {"A": None, "B": None}
        self._claims: list[Claim] = []
        self._words_of_the_format: set[str] = set()
        self._signer: KeystoreSigner
        self._a: Memory
        self._b: Memory

    def steps(self) -> Iterator[DemoStep]:
        """Run all steps. An IpfsmemError becomes a failed claim and ends the demonstration."""
        actions: list[tuple[str, Callable[[], tuple[str, dict[str, Any]]]]] = [
            ("A creates a wallet", self._make_wallet),
            ("A creates a vault", self._make_memory),
            ("A imports texts", self._import_texts),
            ("A syncs", self._first_sync),
            ("Another wallet", self._try_another_wallet),
            ("B has only the wallet", self._recover_on_b),
            ("Both write, offline", self._write_on_both),
            ("A syncs, a byte flips", self._damage_a_byte),
            ("The byte is repaired", self._undo_the_damage),
            ("A and B sync", self._sync_both),
            ("Nothing was lost", self._compare_devices),
            ("Nobody can read it", self._search_for_plaintext),
        ]
        try:
            for title, action in actions:
                self._claims, started = [], time.perf_counter()
                try:
                    text, facts = action()
                except IpfsmemError as error:
                    failed = Claim(f"{type(error).__name__}: {error}", False)
                    yield DemoStep(title, "it failed", (*self._claims, failed), time.perf_counter() - started)
                    return
                yield DemoStep(title, text, tuple(self._claims), time.perf_counter() - started, facts)
        finally:
            for memory in (getattr(self, "_a", None), getattr(self, "_b", None)):
                if memory is not None:
                    memory.close()

    def _claim(self, text: str, is_true: bool) -> None:
        self._claims.append(Claim(text, is_true))

    # -- one method a step -------------------------------------------------------------------------------------

    def _make_wallet(self) -> tuple[str, dict[str, Any]]:
        for place in (self.home_a, self.home_b, self.provider):
            place.mkdir(parents=True)
        keystore = self.home_a / "wallet.json"
        address = create_keystore(keystore, PASSPHRASE, secrets.token_bytes(32))
        self._signer = _open_wallet(keystore)
        self._claim("the keystore file opens to the same account", self._signer.address == address)
        shown = "0x" + address.hex()
        return f"{_shortened(shown)}, an encrypted keystore", {"address": shown, "keystore": str(keystore)}

    def _make_memory(self) -> tuple[str, dict[str, Any]]:
        unlock = Unlock(self._signer)
        self._a = Memory.create(
            VAULT_NAME,
            "encrypted-ipfs",
            provider=str(self.provider),
            unlock=unlock,
            passphrase=PASSPHRASE,
            home=Home(folder=self.home_a, label="A"),
        )
        _sync(self._a)
        # The provider has no memory yet, so these words are from the format itself.
        self._words_of_the_format = _words_in(_all_files(self.provider))
        words = self._a.recovery_words or []
        self._claim("a recovery phrase of 24 words was generated", len(words) == 24)
        vault = self._a.status().vault
        tag = vault.tag if vault else ""
        return f"vault {tag[:12]}…, 24-word recovery phrase", {
            "vault": tag,
            "device": self._a.device,
        }

    def _import_texts(self) -> tuple[str, dict[str, Any]]:
        blob = write_blob(self.files, self.events, "")
        done = self._a.bundles.import_(blob)
        back = self._a.files()
        self._claim("every text reads back byte for byte", back == self.files)
        self._claim("every event is there", len(self._a.timeline.read()) == len(self.events))
        size = sum(map(len, self.files.values()))
        self._claim(
            "importing it again changes nothing", self._a.bundles.import_(blob).unchanged == len(back)
        )
        return (
            f"{len(back):,} memories, {done.events:,} events of {self.source}",
            {
                "memories": len(back),
                "events": done.events,
                "bytes": size,
                "problems": [*self.problems, *done.problems],
            },
        )

    def _first_sync(self) -> tuple[str, dict[str, Any]]:
        report = _sync(self._a)
        self._claim("a new version was published", report.published and report.root is not None)
        self._claim("a second sync has nothing to do", not _sync(self._a).published)
        return (
            f"{_size(report.bytes_sent)} sent, all encrypted",
            _facts(report),
        )

    def _try_another_wallet(self) -> tuple[str, dict[str, Any]]:
        outcome = "a memory"
        try:
            asyncio.run(
                Memory.recover(
                    VAULT_NAME,
                    provider=str(self.provider),
                    unlock=Unlock(RawKeySigner(secrets.token_bytes(32))),
                    passphrase=False,
                    home=Home(folder=self.folder / "stranger", label="stranger"),
                )
            ).close()
        except NoVaultError:
            outcome = "nothing"
        self._claim("another wallet finds no vault", outcome == "nothing")
        self._claim("and nothing was created for it", not (self.folder / "stranger").exists())
        return f"another wallet finds {outcome} there", {}

    def _recover_on_b(self) -> tuple[str, dict[str, Any]]:
        carried = self.home_b / "wallet.json"
        shutil.copy(self.home_a / "wallet.json", carried)
        self._b = asyncio.run(
            Memory.recover(
                VAULT_NAME,
                provider=str(self.provider),
                unlock=Unlock(_open_wallet(carried)),
                passphrase=PASSPHRASE,
                home=Home(folder=self.home_b, label="B"),
            )
        )
        report = self._b.restored or SyncReport()
        self._claim("B has every text of A, byte for byte", self._b.files() == self._a.files())
        self._claim("B has every event of A", self._b.timeline.read() == self._a.timeline.read())
        self._claim("B is a device of its own", self._b.device != self._a.device)
        status = self._b.status()
        return (
            f"{status.memories:,} memories, {status.events:,} events back, {_size(report.bytes_received)}",
            {**_facts(report), "device": self._b.device},
        )

    def _write_on_both(self) -> tuple[str, dict[str, Any]]:
        """Edit five memories concurrently: one in two places, one in the same line, one forgotten and edited, and one on each
        device alone."""
        chosen = sorted(self.files, key=lambda key: (-len(parse_memory(self.files[key]).body), key))[
            : len(SPARE)
        ]
        self.both, self.clash, self.forgotten, self.only_a, self.only_b = chosen
        self._write(self._a, self.both, lambda body: f"Device A put this line on top.\n\n{body}")
        self._write(self._b, self.both, lambda body: f"{body}\n\nDevice B put this line at the end.")
        self._write(self._a, self.clash, lambda _: "Device A rewrote the whole of it.")
        self._write(self._b, self.clash, lambda _: "Device B rewrote the whole of it, otherwise.")
        self._a.forget(self.forgotten, reason="shown in the demonstration")
        self._text_by_b_after_forget = self._write(
            self._b, self.forgotten, lambda body: f"{body}\n\nWritten by B before it knew."
        )
        self._write(self._a, self.only_a, lambda body: f"{body}\n\nOnly device A changed this one.")
        self._write(self._b, self.only_b, lambda body: f"{body}\n\nOnly device B changed this one.")
        self._events = [self._a.note("demonstrated", device="A"), self._b.note("demonstrated", device="B")]
        self._claim("each has its own edits, and not yet the other's", self._a.files() != self._b.files())
        return (
            "8 edits of 5 texts; A forgets what B edits",
            {
                "both": self.both,
                "clash": self.clash,
                "forgotten": self.forgotten,
                "only_a": self.only_a,
                "only_b": self.only_b,
            },
        )

    def _write(self, memory: Memory, key: str, change: Callable[[str], str]) -> bytes:
        reading = memory.read(key)
        assert reading is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WritingAdvice)
            data = memory.write(key, change(reading.file.body), seen=reading).data
        self.written.append(data)
        return data

    def _damage_a_byte(self) -> tuple[str, dict[str, Any]]:
        _sync(self._a)
        self._damaged = self._largest_new_block()
        before = self._b.files()
        self._damaged.flip()
        refused = _sync(self._b)
        details = [notice.detail for notice in refused.notices if str(self._damaged.cid) in notice.detail]
        self._claim(f"B names the part {self._damaged.cid} and refuses what needs it", bool(details))
        self._claim("B merged nothing of that version", not refused.entries_changed)
        self._claim("B still has every text it had", self._b.files() == before)
        return (
            f"1 bit of {self._damaged.size:,} bytes: B refuses them",
            {
                "block": str(self._damaged.cid),
                "file": str(self._damaged.file),
                "offset": self._damaged.offset,
                "refusal": details,
            },
        )

    def _largest_new_block(self) -> DamagedByte:
        """Return the largest sealed block at the provider that B does not have."""
        candidates: list[DamagedByte] = []
        for car in sorted(self.provider.glob("packs/*.car")):
            data = car.read_bytes()
            for cid, block in read_car(data):
                if cid.codec == RAW and not self._b.replica.db.has_block(cid.digest):
                    candidates.append(DamagedByte(car, data.index(block) + len(block) // 2, cid, len(block)))
        return max(candidates, key=lambda one: one.size)

    def _undo_the_damage(self) -> tuple[str, dict[str, Any]]:
        self._damaged.flip()
        report = _sync(self._b)
        self._claim("B merges the repaired version", report.entries_changed > 0 and report.heads_joined > 0)
        self._claim("and reports no problems", not any("refused" in n.kind for n in report.notices))
        return (
            f"B takes in {report.entries_changed} changes, and keeps its own",
            _facts(report),
        )

    def _sync_both(self) -> tuple[str, dict[str, Any]]:
        first, second = _sync(self._a), _sync(self._b)
        self.roots = {"A": first.root, "B": second.root}
        self._claim(
            "both devices have the same version", first.root is not None and first.root == second.root
        )
        again = [_sync(self._a), _sync(self._b)]
        self._claim("and stay there", {report.root for report in again} == {first.root})
        self._claim("with nothing more to send", not any(report.bytes_sent for report in again))
        return (
            f"A takes in {first.entries_changed} changes: both have the same",
            {"roots": self.roots},
        )

    def _compare_devices(self) -> tuple[str, dict[str, Any]]:
        a, b = self._a, self._b
        files = a.files()
        self._claim("A and B show the same texts", files == b.files())
        self._claim("A and B have the same timeline", a.timeline.read() == b.timeline.read())
        self._claim("A and B show the same conflicts", a.conflicts() == b.conflicts())
        both = files.get(self.both, b"").decode()
        self._claim(
            f"{self.both} has the lines of both devices",
            "Device A put this line" in both and "Device B put this line" in both,
        )
        texts = self._all_texts(b, self.clash)
        self._claim(
            f"{self.clash} is kept in both versions", sum("rewrote the whole" in t for t in texts) == 2
        )
        self._claim(f"{self.forgotten} is forgotten on both", self.forgotten not in files)
        copies = {item.key: item.files for item in b.conflicts()}
        beside = [b.read(self.forgotten, alternative=name) for name in copies.get(self.forgotten, ())]
        kept = [copy.data for copy in beside if copy is not None]
        self._claim(
            f"what B wrote in {self.forgotten} is kept under its conflicts",
            self._text_by_b_after_forget in kept,
        )
        ids = {event["id"] for event in b.timeline.read()}
        self._claim("the events of both are there", all(event["id"] in ids for event in self._events))
        untouched = set(self.files) - {self.both, self.clash, self.forgotten, self.only_a, self.only_b}
        self._claim(
            "every other text is as it came, byte for byte",
            all(files.get(key) == self.files[key] for key in untouched),
        )
        self._claim(
            "the single edits arrived",
            all(
                f"Only device {who} changed" in files[key].decode()
                for who, key in (("A", self.only_a), ("B", self.only_b))
            ),
        )
        return (
            f"1 merged, 2 conflicts, {len(untouched):,} untouched",
            {"conflicts": [[key, list(names)] for key, names in copies.items()]},
        )

    def _all_texts(self, memory: Memory, key: str) -> list[str]:
        copies = next((item.files for item in memory.conflicts() if item.key == key), ())
        shown = [memory.read(key), *(memory.read(key, alternative=name) for name in copies)]
        return [one.text for one in shown if one is not None]

    def _search_for_plaintext(self) -> tuple[str, dict[str, Any]]:
        words: set[str] = set()
        for key in self.files:
            words.update(_WORD.findall(key))
        for data in self.written:
            file = parse_memory(data)
            words.update(_WORD.findall(f"{file.name}\n{file.description}\n{file.body}"))
        words -= self._words_of_the_format
        stored = _all_files(self.provider)
        runs = _words_in(stored)
        words_there = {
            word
            for word in words
            if (any(word in run for run in runs) if word.isascii() else _contains(stored, word))
        }
        self._claim(
            f"none of the words is there ({', '.join(sorted(words_there)[:5]) or 'none found'})",
            not words_there,
        )
        lines = {
            line
            for data in self.written
            for line in data.split(b"\n")
            if len(line) >= 24 and b":" not in line[:14]
        }
        disks = {**_all_files(self.home_a), **_all_files(self.home_b)}
        lines_there = [line for line in lines if any(line in data for data in disks.values())]
        self._claim("no line of any text is on either device's disk", not lines_there)
        size = sum(map(len, stored.values()))
        return (
            f"{len(words_there)} of {len(words):,} words found in {_size(size)} there",
            {
                "words": len(words),
                "bytes": size,
                "files": len(stored),
                "found": sorted(words_there),
                "lines": len(lines),
            },
        )


def _open_wallet(keystore: Path) -> KeystoreSigner:
    return KeystoreSigner(keystore, PASSPHRASE)


def _sync(memory: Memory) -> SyncReport:
    return asyncio.run(memory.sync())


def _shortened(cid: str | None) -> str:
    return f"{cid[:11]}…{cid[-6:]}" if cid else "none"


def _size(count: int) -> str:
    return (
        f"{count:,} B"
        if count < 1000
        else f"{count / 1000:,.1f} kB"
        if count < 1e6
        else f"{count / 1e6:,.1f} MB"
    )


def _facts(report: SyncReport) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(report)
    return facts


def _all_files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, and a list of all file names."""
    contents = {str(path): _bytes_of(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        **contents,
        "names": "\n".join(Path(name).relative_to(folder).as_posix() for name in contents).encode(),
    }


def _bytes_of(path: Path) -> bytes:
    """Read a file. SQLite's files are read by another process, because closing a descriptor in this process would release SQLite's
    locks."""
    if path.name not in DATABASE_FILES:
        return path.read_bytes()
    command = [sys.executable, "-I", "-S", "-c", _PRINT_FILE, str(path)]
    return subprocess.run(command, capture_output=True, check=True).stdout


_PRINT_FILE = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"


def _words_in(stored: Mapping[str, bytes]) -> set[str]:
    """Return all words of six or more letters, except for those in CIDs and IPNS names, which spell words by chance."""
    return {
        run.decode("ascii")
        for data in stored.values()
        for run in _RUN.findall(_NAMES.sub(lambda match: b" " if _is_name(match[0]) else match[0], data))
    }


def _is_name(text: bytes) -> bool:
    try:
        name = text.decode("ascii")
        public_of_ipns_name(name) if name.startswith("k51") else parse_cid(name)
    except (FormatError, ValueError):
        return False
    return True


def _contains(stored: Mapping[str, bytes], word: str) -> bool:
    coded = word.encode()
    return any(coded in data for data in stored.values())
