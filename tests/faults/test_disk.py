"""This device's disk when full, read-only, damaged, truncated or shared: a clear error, or a correct text."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from ipfsmem.device.database import Database
from ipfsmem.errors import (
    ConfigError,
    IpfsmemError,
    LockedError,
    NotFoundError,
    PassphraseError,
    StorageError,
)
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from ipfsmem.vault.home import Home
from tests.faults.fault_lab import (
    ROOT,
    VAULT_NAME,
    Ack,
    Lab,
    Texts,
    assert_sound,
    body_of,
    closing,
    converge,
    in_child,
    stay_in_place,
    sync,
    texts,
)
from tests.support import effort
from tests.support.cli_lab import program

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forks")

needs_root = pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="needs root to mount and to drop rights"
)


@pytest.fixture(autouse=True)
def _place(monkeypatch: pytest.MonkeyPatch) -> None:
    stay_in_place(monkeypatch)


# -- full ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB."""
    disk = tmp_path / "small"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    if (
        os.geteuid() != 0
        or shutil.which("mount") is None
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("no small file system can be mounted here")
    yield disk
    gc.collect()
    held = [str(Path(f"/proc/self/fd/{fd}").resolve()) for fd in os.listdir("/proc/self/fd")]
    subprocess.run(["umount", "-l", str(disk)], check=True)
    assert [path for path in held if path.startswith(str(disk))] == []


def fill(memory: Memory, expected: Texts, *, most: int = 2000) -> str:
    """Write until the disk refuses; `expected` gets the acknowledged texts, and a refused one that is
    complete. A write may be durable and still raise if only its plain file could not be updated."""
    for number in range(most):
        key, body = f"f{number % 40}", f"{number} " * 1500
        try:
            memory.write(key, body)
        except StorageError as error:
            if texts(memory).get(key) == {body.strip()}:
                assert memory.mode == "local", error
                expected[key] = {body.strip()}
            return str(error)
        expected[key] = {body.strip()}
    raise AssertionError("the disk never filled")


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
def test_full_disk_refuses_the_write_and_keeps_the_others(small_disk: Path, mode: str) -> None:
    lab = Lab(small_disk)
    ballast = small_disk / "ballast"
    with closing(lab.create("a", mode)) as (a,):
        a.write("first", "word")
        expected: Texts = {"first": {"word"}}
        ballast.write_bytes(bytes(600_000))
        error = fill(a, expected)
        assert "full" in error and "\n" not in error
        assert texts(a) == expected
        with pytest.raises(StorageError):
            a.write("too-much", "x" * 900_000)
        expected |= {key: bodies for key, bodies in texts(a).items() if key == "too-much"}
        assert texts(a) == expected
        if mode != "local":
            with pytest.raises(IpfsmemError):
                sync(a)
            assert texts(a) == expected
        ballast.unlink()
        a.write("first", "again")
        a.note("went on")
        expected["first"] = {"again"}
    with closing(lab.open("a")) as (a,):
        assert texts(a) == expected
        assert len(a.timeline.read()) == 1
        assert [f for f in a.check() if f.level == "error"] == []


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
def test_present_texts_are_read_on_a_completely_full_disk(
    small_disk: Path, tmp_path: Path, mode: ModeName
) -> None:
    home = small_disk / "home"
    where = {} if mode == "local" else {"provider": str(tmp_path)}
    with Memory.create("default", mode, home=home, passphrase=False, **where) as memory:
        for key, text in (("tone", "Be brief."), ("music", "Fugues."), ("old", "Fugues no more.")):
            memory.write(key, text)
        memory.note("begun")
        memory.hidden.add(["old"])
    with contextlib.suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(b"x")  # no byte is left: a page is allocated at once
            os.posix_fallocate(ballast.fileno(), 0, ballast.tell() + 4096)
            ballast.seek(0, os.SEEK_END)
    said = {}
    for call in (
        "read tone",
        "list",
        "recall fugues",
        "context",
        "timeline show",
        "explain music fugues",
        f"export --out {tmp_path}/out",
    ):
        done = program("--home", str(home), *call.split())
        assert done.returncode == 0 and b"disk is full" in done.stderr, (call, done)
        said[call] = done.stdout.decode()
    assert "Be brief." in said["read tone"] and "begun" in said["timeline show"]
    for call in ("list", "recall fugues", "context"):
        assert "music" in said[call] and "old" not in said[call], call
    for call in (
        "write more --body x",
        "forget tone",
        "timeline add more",
        "hide tone",
        "status",
        "index status",
    ):
        done = program("--home", str(home), *call.split())
        assert done.returncode == 30 and b"Free space" in done.stderr and not done.stdout, (call, done)
    (small_disk / "ballast").unlink()
    with Memory.load("default", home=home) as memory:
        assert [one.key for one in memory.list()] == ["music", "tone"]
        memory.write("more", "x")


def test_init_on_a_full_disk_leaves_no_vault(small_disk: Path) -> None:
    lab = Lab(small_disk)
    ballast = small_disk / "ballast"
    with contextlib.suppress(OSError):
        ballast.write_bytes(bytes(4_000_000))
    with pytest.raises(StorageError):
        lab.create("a", "local")
    with pytest.raises(NotFoundError):
        lab.open("a")
    ballast.unlink()
    with closing(lab.create("a", "local")) as (a,):
        a.write("first", "word")
        assert texts(a) == {"first": {"word"}}


def test_file_size_limit_refuses_the_write_and_keeps_the_others(tmp_path: Path) -> None:
    """The same with a limit on the size of files, which needs no rights."""
    lab = Lab(tmp_path)
    with closing(lab.create("a", "local")) as (a,):
        a.write("first", "word")

    def work(ack: Ack) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
        memory = lab.open("a")
        expected: Texts = {"first": {"word"}}
        ack(fill(memory, expected))
        assert texts(memory) == expected
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        memory.write("last", "fits")
        assert texts(memory) == {**expected, "last": {"fits"}}
        ack(str(len(expected)))

    outcome = in_child(work)
    assert not outcome.failure, outcome.failure
    message, count = outcome.acknowledged
    assert "disk" in message
    with closing(lab.open("a")) as (a,):
        assert len(texts(a)) == int(count) + 1
        assert_sound(a)


# -- without write permission -----------------------------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("made", [False, True], ids=["init", "open"])
def test_read_only_home_is_reported_in_one_line(made: bool) -> None:
    top = Path(tempfile.mkdtemp(prefix="ipfsmem-faults-"))
    try:
        top.chmod(0o755)
        lab = Lab(top)
        if made:
            with closing(lab.create("a", "local")) as (a,):
                a.write("first", "word")
        else:
            lab.home("a").mkdir()
            lab.stick.mkdir()
        for path in (lab.home("a"), *lab.home("a").rglob("*")):
            os.chown(path, 65534, 65534)
            path.chmod(0o500 if path.is_dir() else 0o400)

        def work(ack: Ack) -> None:
            os.environ["IPFSMEM_CONFIG"] = os.devnull
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            try:
                (lab.open("a") if made else lab.create("a", "local")).write("second", "word")
            except IpfsmemError as error:
                ack(type(error).__name__)
                ack(str(error))

        outcome = in_child(work)
        assert not outcome.failure, outcome.failure
        kind, message = outcome.acknowledged
        assert kind == "StorageError"
        assert str(lab.home("a")) in message and "\n" not in message
        if made:
            with closing(lab.open("a")) as (a,):
                assert texts(a) == {"first": {"word"}}
    finally:
        shutil.rmtree(top)


# -- missing, changed, truncated --------------------------------------------------------------------------------------


def test_missing_key_file_is_refused_and_nothing_is_replaced(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.create("a").close()
    folder = lab.home("a") / VAULT_NAME
    (folder / "device.key").rename(folder / "kept")
    with pytest.raises(StorageError, match=r"device\.key is missing"):
        lab.open("a")
    with pytest.raises(ConfigError, match="already"):
        lab.create("a")
    (folder / "kept").rename(folder / "device.key")
    lab.open("a").close()


def test_missing_configuration_is_refused_and_nothing_is_replaced(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    with closing(lab.create("a")) as (a,):
        a.write("first", "word")
        sync(a)
    folder = lab.home("a") / VAULT_NAME
    (folder / "ipfsmem.json").rename(tmp_path / "kept")
    for make in (lab.create, lab.restore):
        with pytest.raises(ConfigError, match=r"ipfsmem\.json is missing"):
            make("a")
    (tmp_path / "kept").rename(folder / "ipfsmem.json")
    with closing(lab.open("a")) as (a,):
        assert texts(a) == {"first": {"word"}}


def test_failed_restore_leaves_other_files_unchanged(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    with closing(lab.create("a")) as (a,):
        a.write("first", "word")
        sync(a)
    mine = lab.home("b") / VAULT_NAME / "memory" / "own.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine\n")

    class Broken(Exception):
        pass

    def progress(*_: object) -> None:
        raise Broken

    with pytest.raises(Broken):
        Memory.load(
            VAULT_NAME,
            "encrypted-ipfs",
            provider=str(lab.stick),
            unlock=ROOT,
            passphrase=False,
            home=Home(folder=lab.home("b"), progress=progress),
        )
    assert [path.name for path in (lab.home("b") / VAULT_NAME).rglob("*")] == ["memory", "own.md"]


@pytest.mark.parametrize(
    ("file", "data", "error"),
    [
        ("ipfsmem.json", b"", ConfigError),
        ("ipfsmem.json", b"{}", ConfigError),
        ("ipfsmem.json", b"\xff\xfe", ConfigError),
        ("ipfsmem.json", b'{"mode":"local","label":"\xb9"}', ConfigError),
        ("ipfsmem.json", b"[" * 100_000, IpfsmemError),
        ("ipfsmem.json", b'{"mode":"local","label":"x","v":2}', ConfigError),
        ("device.key", b"", IpfsmemError),
        ("device.key", b"garbage", IpfsmemError),
        ("device.key", bytes(100_000), StorageError),
        ("state.db", b"not a database" * 1000, StorageError),
        ("state.db", bytes(4096), StorageError),
        ("state.db", b"", StorageError),
        ("state.db", None, StorageError),
    ],
)
def test_invalid_vault_file_is_named_in_one_line(
    tmp_path: Path, file: str, data: bytes | None, error: type[IpfsmemError]
) -> None:
    lab = Lab(tmp_path)
    with closing(lab.create("a")) as (a,):
        a.write("first", "word")
        sync(a)
    path = lab.home("a") / VAULT_NAME / file
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    for _ in range(2):  # a read creates nothing that looks like a vault
        with pytest.raises(error) as caught:
            lab.open("a")
    assert "\n" not in str(caught.value)
    assert file in str(caught.value) or "device" in str(caught.value)


@pytest.mark.parametrize("field", ["tag", "admin", "anchor"])
def test_invalid_key_in_the_configuration_is_refused(tmp_path: Path, field: str) -> None:
    lab = Lab(tmp_path)
    lab.create("a").close()
    path = lab.home("a") / VAULT_NAME / "ipfsmem.json"
    known = json.loads(path.read_bytes())
    known["vault"][field] = "q" + known["vault"][field][1:]
    path.write_text(json.dumps(known))
    with pytest.raises(ConfigError, match=rf"ipfsmem\.json cannot be read.*{field}"):
        lab.open("a")


def test_state_of_another_version(tmp_path: Path) -> None:
    """A database of a later program is refused by its number, not misread."""
    lab = Lab(tmp_path)
    lab.create("a", "local").close()
    with contextlib.closing(sqlite3.connect(lab.home("a") / VAULT_NAME / "state.db")) as connection:
        connection.execute("PRAGMA user_version=99")
    with pytest.raises(ConfigError, match="schema 99"):
        lab.open("a")


def test_wrong_passphrase_opens_nothing_and_changes_nothing(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.stick.mkdir()
    with closing(
        Memory.create(
            VAULT_NAME,
            "encrypted-ipfs",
            provider=str(lab.stick),
            unlock=ROOT,
            passphrase="the right one",
            home=lab.home("a"),
        )
    ) as (a,):
        a.write("first", "word")
    for wrong in ("wrong", None, ""):
        with pytest.raises(PassphraseError):
            Memory.load(VAULT_NAME, home=lab.home("a"), passphrase=wrong)
    with closing(Memory.load(VAULT_NAME, home=lab.home("a"), passphrase="the right one")) as (a,):
        assert texts(a) == {"first": {"word"}}


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
@pytest.mark.parametrize("checkpointed", [False, True], ids=["journal", "tree"])
def test_flipped_byte_gives_correct_texts_or_an_error(tmp_path: Path, mode: str, checkpointed: bool) -> None:
    base = Lab(tmp_path / "base")
    with closing(base.create("a", mode)) as (a,):
        for i in range(12):
            a.write(f"key{i}", f"old {i}")
        if checkpointed:
            with a.replica.transaction():
                a.replica.store.checkpoint(folders=True)
        for i in range(6):
            a.write(f"key{i}", f"new {i}")
        a.note("said", text="hello")
        if checkpointed:
            with a.replica.transaction():
                a.replica.store.checkpoint(folders=True)
        expected, events = a.files(), a.timeline.read()
    draw = random.Random(f"{mode} {checkpointed}")
    state = base.home("a") / VAULT_NAME / "state.db"
    good = state.read_bytes()
    assert not state.with_name("state.db-wal").exists()
    shutil.copytree(base.folder, tmp_path / "kept")
    used = [i for i, byte in enumerate(good) if byte]
    refused = 0
    rounds = effort.cases(8, 200)
    for _ in range(rounds):
        bad = bytearray(good)
        at = draw.choice(used)
        bad[at] ^= draw.choice([1 << draw.randrange(8), draw.randrange(1, 256)])
        gc.collect()  # a connection that an error of the last round still holds would write
        shutil.rmtree(base.folder)
        shutil.copytree(tmp_path / "kept", base.folder)
        state.write_bytes(bad)
        try:
            with closing(base.open("a")) as (a,):
                shown = a.files()
                apart = {item.key for item in a.conflicts() if item.copies}
                for key, data in shown.items():
                    # A damaged record of a plain file makes an edit of it, which is kept as an alternative
                    # and listed.
                    assert data == expected[key] or (
                        key in apart and body_of(expected[key]) in texts(a)[key]
                    ), at
                for key in expected.keys() - shown.keys():
                    with pytest.raises(NotFoundError, match=r"not fetched|not on this disk"):
                        a.read(key)
                assert all(event in events for event in a.timeline.read())
                a.list(), a.index(), a.conflicts(), a.status(), a.check()
                a.write("after", "the flip")
                a.note("after")
                assert a.files()["after"].endswith(b"the flip\n")
                if mode != "local":
                    sync(a)
        except IpfsmemError as error:
            refused += 1
            assert str(error)
    assert refused < rounds


def structure(data: bytes, pages: Iterable[int]) -> Iterator[int]:
    """Return where SQLite's own bytes are in these pages: header and cell pointers, and the beginning of
    each cell."""
    size = int.from_bytes(data[16:18], "big")
    for page in pages:
        start = (page - 1) * size
        head = 12 if data[start] in (2, 5) else 8
        cells = int.from_bytes(data[start + 3 : start + 5], "big")
        yield from range(start, start + head + 2 * cells)
        for at in range(start + head, start + head + 2 * cells, 2):
            cell = start + int.from_bytes(data[at : at + 2], "big")
            yield from range(cell, cell + 6)


def pages_of(state: Path, tables: Iterable[str]) -> list[int]:
    """Return the root pages of these tables and of their indexes."""
    with contextlib.closing(sqlite3.connect(state)) as connection:
        rows = connection.execute("SELECT tbl_name, rootpage FROM sqlite_master").fetchall()
    return [page for table, page in rows if page and table in tables]


def test_block_with_a_flipped_page_byte_is_found_or_refused(tmp_path: Path) -> None:
    """An added block is found afterwards, or the transaction fails with our error."""

    def pair(number: int) -> tuple[bytes, bytes]:
        data = b"%d" % number * 20
        return sha256(data).digest(), data

    state = tmp_path / "state.db"
    db = Database(tmp_path)
    with db.transaction():
        db.add_blocks([pair(number) for number in range(20)])
        db.set_meta("name", b"old")
    db.close()
    good = state.read_bytes()
    refused = 0
    draw = random.Random("structure")
    places = [*structure(good, pages_of(state, ["blocks", "meta"]))]
    for at in places:
        bad = bytearray(good)
        bad[at] ^= draw.choice([1 << draw.randrange(8), draw.randrange(1, 256)])
        state.write_bytes(bad)
        for beside in ("state.db-wal", "state.db-shm"):
            (tmp_path / beside).unlink(missing_ok=True)
        with contextlib.ExitStack() as opened:
            try:
                db = opened.enter_context(contextlib.closing(Database(tmp_path)))
                with db.transaction():
                    db.add_blocks([pair(100), pair(101), pair(7)])
                    db.set_meta("name", b"new")
                other = opened.enter_context(contextlib.closing(Database(tmp_path)))
                for one in (db, other):
                    for digest, data in map(pair, (100, 101, 7)):
                        found = one.block(digest)
                        if found is None:
                            one.check_order()  # as the store does
                        assert found == data, at
                assert other.get_meta("name") == b"new", at
            except StorageError:
                refused += 1
    assert 0 < refused < len(places)


def test_file_row_with_a_flipped_name_mixes_no_memories(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "base")
    with closing(lab.create("a", "local")) as (a,):
        for i in range(4):
            a.write(f"key{i}", f"new {i}")
        expected = a.files()
    state = lab.home("a") / VAULT_NAME / "state.db"
    good = state.read_bytes()
    shutil.copytree(lab.folder, tmp_path / "kept")
    size = int.from_bytes(good[16:18], "big")
    places = [
        found.end() - 1
        for page in pages_of(state, ["renders"])
        for found in re.finditer(rb"key[0-3]", good[: page * size])
        if found.start() >= (page - 1) * size
    ]
    for at, bit in itertools.product(places[:: effort.every(2)], (1, 2)):
        bad = bytearray(good)
        bad[at] ^= bit
        gc.collect()
        shutil.rmtree(lab.folder)
        shutil.copytree(tmp_path / "kept", lab.folder)
        state.write_bytes(bad)
        with contextlib.suppress(StorageError), closing(lab.open("a")) as (a,):
            assert a.files() == expected and not a.conflicts(), at
            a.write("key0", "newer")
            # Its file's text may remain as an alternative where its row can no longer be replaced.
            assert {item.key for item in a.conflicts()} <= {"key0"} and "newer" in texts(a)["key0"], at
            assert a.files() == {**expected, "key0": a.files()["key0"]}, at
    assert len(places) >= 8


def test_truncated_log_gives_an_earlier_state(tmp_path: Path) -> None:
    """The write-ahead log may end anywhere after a power failure."""
    lab = Lab(tmp_path / "base")
    folder = lab.home("a") / VAULT_NAME
    states: list[Texts] = []
    sizes: list[int] = []
    with closing(lab.create("a")) as (a,):
        a.replica.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        states.append(texts(a))
        for i in range(6):
            a.write(f"key{i % 3}", f"text {i}", description="Of use where one write is one transaction.")
            states.append(texts(a))
            sizes.append((folder / "state.db-wal").stat().st_size)
        kept = shutil.copytree(folder, tmp_path / "kept")
    log = (kept / "state.db-wal").read_bytes()
    assert len(log) == sizes[-1]
    draw = random.Random(1)
    page = 4096 + 24
    cuts = {0, 1, 31, 32, len(log)} | {32 + page * n for n in range(len(log) // page + 1)}
    cuts |= {draw.randrange(len(log)) for _ in range(25)}
    other = Lab(tmp_path / "cut")
    for cut in sorted(cuts):
        for tail in (b"", bytes(500)):
            shutil.rmtree(other.folder, ignore_errors=True)
            shutil.copytree(kept, other.home("a") / VAULT_NAME)
            (other.home("a") / VAULT_NAME / "state.db-wal").write_bytes(log[:cut] + tail)
            (other.home("a") / VAULT_NAME / "state.db-shm").unlink(missing_ok=True)
            whole = sum(size <= cut for size in sizes)
            with closing(other.open("a")) as (a,):
                assert texts(a) == states[whole], (cut, whole)
                a.write("key0", "after the cut")
                assert texts(a)["key0"] == {"after the cut"}


# -- shared --------------------------------------------------------------------------------------------------------


def test_locked_names_the_process(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    with closing(lab.create("a", "local")) as (a,):
        program = f"""
import sys, time
from pathlib import Path
from ipfsmem.device.lock import file_lock
with file_lock(Path({str(lab.home("a") / VAULT_NAME / "lock")!r})):
    print("held", flush=True)
    sys.stdin.read()
"""
        holder = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        a.replica.db._wait = 0.05
        with pytest.raises(LockedError, match=f"process {holder.pid}"):
            a.write("first", "word")
        assert texts(a) == {}
        assert a.list().memories == ()
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()
        a.write("first", "word")
        assert texts(a) == {"first": {"word"}}


def test_two_processes_write_concurrently_without_loss(tmp_path: Path) -> None:
    """200 writes and 40 notes of each of two processes are all there; a third opens and reads meanwhile."""
    lab = Lab(tmp_path)
    lab.create("a", "local").close()
    children = []
    for who in ("p", "q"):
        pid = os.fork()
        if pid == 0:  # pragma: no cover
            code = 1
            try:
                memory = lab.open("a")
                for i in range(200):
                    memory.write(f"{who}{i % 100}", f"{who} {i}")
                    if i % 5 == 0:
                        memory.note("step", who=who, i=i, pad="z" * 400)
                    if i % 50 == 49:
                        with memory.replica.transaction():
                            memory.replica.store.checkpoint(folders=True)
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    seen = 0
    for _ in range(20):
        with closing(lab.open("a")) as (reader,):
            now = len(texts(reader))
            assert now >= seen
            seen = now
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    with closing(lab.open("a")) as (a,):
        assert texts(a) == {f"{w}{i}": {f"{w} {i + 100}"} for w in "pq" for i in range(100)}
        steps = {(e["who"], e["i"]) for e in a.timeline.read()}
        assert steps == {(w, i) for w in "pq" for i in range(0, 200, 5)}
        assert len({e["id"] for e in a.timeline.read()}) == 80
        assert_sound(a)


def test_two_processes_create_only_one_vault(tmp_path: Path) -> None:
    for mode in ("local", "encrypted-ipfs"):
        lab = Lab(tmp_path / mode)
        reading, writing = os.pipe()
        children = []
        for who in ("p", "q"):
            pid = os.fork()
            if pid == 0:  # pragma: no cover
                code = 1
                try:
                    os.close(writing)
                    os.read(reading, 1)
                    memory = lab.create("a", mode)
                    memory.write(who, who)
                    code = 0
                except ConfigError:
                    code = 3
                finally:
                    os._exit(code)
            children.append(pid)
        os.close(reading)
        os.close(writing)
        assert sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children) == [0, 3]
        with closing(lab.open("a")) as (a,):
            assert len(texts(a)) == 1
            assert_sound(a)


def test_two_processes_sync_concurrently_without_loss(tmp_path: Path) -> None:
    """Two processes of one device sync while both write: one counter, nothing lost, no second id."""
    lab = Lab(tmp_path)
    with closing(lab.create("a")) as (a,):
        device = a.device
        sync(a)
    children = []
    for who in ("p", "q"):
        pid = os.fork()
        if pid == 0:  # pragma: no cover
            code = 1
            try:
                memory = lab.open("a")
                for i in range(6):
                    memory.write(f"{who}{i}", f"{who} {i}")
                    report = sync(memory)
                    assert not report.new_identity
                    assert not [n for n in report.notices if n.kind in ("equivocation", "head-refused")]
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    with closing(lab.open("a"), lab.restore("b")) as (a, b):
        assert a.device == device
        converge(a, b)
        assert texts(b) == {f"{w}{i}": {f"{w} {i}"} for w in "pq" for i in range(6)}


def test_two_tasks_sync_one_after_another(tmp_path: Path) -> None:
    """Two syncs of one process wait for each other without stopping the event loop."""
    lab = Lab(tmp_path)
    with closing(lab.create("a")) as (a,):
        a.write("first", "word")

        async def both() -> None:
            await asyncio.wait_for(asyncio.gather(a.sync(), a.sync()), 60)

        asyncio.run(both())
        with closing(lab.restore("b")) as (b,):
            assert texts(b) == {"first": {"word"}}


def test_row_not_found_after_its_insert_is_refused(tmp_path: Path) -> None:
    """Threat 95; SQLite reports here that it stored a row, and did not."""
    with contextlib.closing(Database(tmp_path)) as db:
        with db.transaction():
            db.set_meta("name", b"old")
        for table in ("blocks", "meta"):
            db.connection.execute(
                f"CREATE TRIGGER no_{table} BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END"
            )
        data = b"a text"
        with pytest.raises(StorageError, match="cannot be read back"), db.transaction():
            db.add_blocks([(sha256(data).digest(), data)])
        with pytest.raises(StorageError, match="cannot be read back"), db.transaction():
            db.set_meta("name", b"new")
        assert db.get_meta("name") == b"old"


@pytest.mark.parametrize("table", ["blocks", "journal", "meta"])
def test_write_is_refused_if_one_of_its_rows_is_not_found_again(tmp_path: Path, table: str) -> None:
    """Threat 95, for the rows that one write adds to several tables."""
    with Memory.create("m", "local", home=tmp_path) as memory:
        before = memory.write("note", "old")
        run = memory.replica.db.connection.execute
        run(f"CREATE TRIGGER refused BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END")
        for key in ("note", "another"):
            with pytest.raises(StorageError, match="cannot be read back"):
                memory.write(key, "new")
        shown = memory.read("note")
        assert shown is not None and shown.token == before.token and memory.read("another") is None
        run("DROP TRIGGER refused")
        memory.write("another", "new")
        assert [one.key for one in memory.list()] == ["another", "note"]


def test_blocks_in_wrong_order_are_reported_as_damage(tmp_path: Path) -> None:
    """Threat 95: two swapped entries of the index hide an existing block, which must not count as
    absent."""
    texts = [b"%d" % n * 20 for n in range(8)]
    with contextlib.closing(Database(tmp_path)) as db:
        with db.transaction():
            db.add_blocks((sha256(text).digest(), text) for text in texts)
        (page,) = db.connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name='sqlite_autoindex_blocks_1'"
        ).fetchone()
        (size,) = db.connection.execute("PRAGMA page_size").fetchone()
        db.check_order()
    state = tmp_path / "state.db"
    bad = bytearray(state.read_bytes())
    cells = (page - 1) * size + 8  # after the header of a leaf: the offset of each entry
    bad[cells : cells + 4] = bad[cells + 2 : cells + 4] + bad[cells : cells + 2]
    state.write_bytes(bad)
    with contextlib.closing(Database(tmp_path)) as db:
        assert None in [db.block(sha256(text).digest()) for text in texts]
        with pytest.raises(StorageError, match="not in the order"):
            db.check_order()
