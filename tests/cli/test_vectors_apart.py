"""A command without embeddings answers at once; another process computes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.agents import background_start, vectors_apart
from ipfsmem.cli import app as cli
from ipfsmem.cli import secret_input
from ipfsmem.cli.context import CommandContext
from ipfsmem.device.lock import file_lock
from ipfsmem.errors import PassphraseError
from ipfsmem.memory import Memory
from ipfsmem.vault.unlocking import lock_device, unlock_device
from tests.servers.embeddings import EmbeddingsServer
from tests.servers.threaded import serve
from tests.support.kept_vectors import load_vectors
from tests.support.patience import PATIENCE
from tests.support.unlock_lab import PASSPHRASE, needs_kernel_keyring


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingsServer]:
    made = EmbeddingsServer()
    file = tmp_path / "config.toml"
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    monkeypatch.delenv("IPFSMEM_EMBEDDINGS")
    with serve(made.app) as address:
        file.write_text(f'[embeddings]\nmodel = "hashed-words"\nbase_url = "{address}/v1"\n')
        yield made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        memory.write("drinks", "An espresso machine stands in the kitchen")
        memory.write("travel", "The train to Lisbon leaves at nine")
        memory.sessions.add("pets", [{"role": "user", "content": "We have two puppies now"}])
    return tmp_path / "home"


def recall(home: Path, *words: str) -> dict[str, Any]:
    """Return the output of `recall` run as a separate program in another folder."""
    call = [sys.executable, "-m", "ipfsmem", "recall", *words, "--json", "-n", "m", "--home", "home"]
    done = subprocess.run(
        call, capture_output=True, timeout=PATIENCE, check=True, cwd=home.parent, env=os.environ
    )
    said = json.loads(done.stdout)
    assert isinstance(said, dict)
    return said


def wait_for_vectors(home: Path, count: int, *words: str) -> None:
    """Ask until `count` vectors are stored and no process computes more."""
    lock, until = home / "m" / "vectors.lock", time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if lock.exists():
            os.utime(lock, (0, 0))  # a second call a moment later starts no other process
        recall(home, *words)
        with file_lock(lock, wait=PATIENCE), Memory.load("m", home=home) as memory:
            kept = load_vectors(memory.replica)
        if kept is not None and len(kept) == count:
            return
        time.sleep(0.05)
    raise AssertionError(f"no {count} vectors came")


def test_command_without_embeddings_answers_while_they_are_computed(
    server: EmbeddingsServer, home: Path
) -> None:
    with file_lock(home / "m" / "vectors.lock"):  # as if another process already computed them
        found = recall(home, "kitchen")
    assert found["ranking"] == "words" and [hit["key"] for hit in found["hits"]] == ["drinks"]
    assert not server.texts
    wait_for_vectors(home, 3, "kitchen")  # the part of the session is a memory, too
    assert "kitchen" not in server.texts[:3]  # after repeated calls it may be ranked behind them
    assert recall(home, "lisboa trains")["ranking"] == "words and meaning"
    assert recall(home, "puppy", "--kind", "message")["ranking"] == "words"
    wait_for_vectors(home, 4, "puppy", "--kind", "message")
    assert recall(home, "puppy", "--kind", "message")["ranking"] == "words and meaning"


def test_embeddings_are_computed_by_one_process_at_a_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[str, ...]] = []

    class Begun:
        def release(self) -> None: ...

    def start_apart(what: str, vault_name: str, home: Path, **told: str) -> Begun:
        begun.append((what, vault_name, *told.values()))
        return Begun()

    monkeypatch.setattr(background_start, "start_apart", start_apart)
    monkeypatch.setattr(vectors_apart, "_REST", 3_600.0)  # valid also on a machine that pauses
    vectors_apart.start("m", home, frozenset({"message"}), "secret")
    assert begun == [("vectors", "m", "message", "secret")]
    lock = home / "m" / "vectors.lock"
    vectors_apart.start("m", home, (), None)  # a moment later
    os.utime(lock, (0, 0))
    with file_lock(lock, wait=0):
        os.utime(lock, (0, 0))
        vectors_apart.start("m", home, (), None)  # one is running
    assert len(begun) == 1
    os.utime(lock, (0, 0))
    vectors_apart.start("m", home, (), None)
    assert begun[1:] == [("vectors", "m", "", "")]
    os.utime(lock, (time.time() + 10_000,) * 2)  # a wrong clock
    vectors_apart.start("m", home, (), None)
    assert len(begun) == 3


@pytest.mark.parametrize("given", ["typed", "descriptor", "environment"])
def test_passphrase_of_one_call_is_not_passed_to_the_embedding_process(
    server: EmbeddingsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    home, begun = tmp_path / "home", list[tuple[str, str | None]]()
    with Memory.create("m", "encrypted-ipfs", home=home, passphrase=PASSPHRASE) as memory:
        memory.write("drinks", "An espresso machine stands in the kitchen")
    monkeypatch.setattr(
        vectors_apart, "start", lambda name, _home, _kinds, secret: begun.append((name, secret))
    )
    monkeypatch.setattr(secret_input, "ask", lambda *_, **__: PASSPHRASE)
    descriptor = None
    if given == "descriptor":
        descriptor, write = os.pipe()
        os.write(write, PASSPHRASE.encode())
        os.close(write)
    elif given == "environment":
        monkeypatch.setenv("IPFSMEM_PASSPHRASE", PASSPHRASE)
    context = CommandContext("m", str(home), False, descriptor, reads=True, ends=True)
    with context.memory() as memory:
        assert [hit.key for hit in memory.recall("kitchen").hits] == ["drinks"]
    assert begun == ([("m", PASSPHRASE)] if given == "environment" else [])


def test_embeddings_of_a_removed_vault_are_not_computed(home: Path) -> None:
    vectors_apart.run("none", home, b"{}")
    assert not (home / "none").exists()
    vectors_apart.start("none", home, (), None)
    assert not (home / "none").exists()


def test_removed_vault_leaves_no_embedding_files(server: EmbeddingsServer, home: Path) -> None:
    vectors_apart.run("m", home, b"{}")
    assert [*(home / "m").glob("*.vectors")] and [*(home / "m").glob("*.whole")]
    assert cli.run(["vault", "remove", "m", "--force", "--yes", "--home", str(home)]) == 0
    assert {path.name for path in (home / "m").glob("*")} <= {"memory"}  # plain files belong to the user


@needs_kernel_keyring
def test_embedding_process_ends_when_the_keys_are_locked(
    server: EmbeddingsServer, tmp_path: Path, runtime: Path
) -> None:
    home = tmp_path / "home"
    with Memory.create("m", "encrypted-ipfs", home=home, passphrase=PASSPHRASE) as memory:
        memory.write("drinks", "An espresso machine stands in the kitchen")
    unlock_device(home / "m", PASSPHRASE, 600)
    asked, answers = threading.Event(), threading.Event()

    def sick(_: object) -> None:
        asked.set()
        answers.wait(PATIENCE)

    server.sick = sick
    call = [sys.executable, "-m", "ipfsmem", "hook", "vectors", "-n", "m", "--home", str(home)]
    making = subprocess.Popen(call, stdin=subprocess.DEVNULL)
    try:
        assert asked.wait(PATIENCE)
        lock_device(home / "m")
        assert making.wait(PATIENCE) == PassphraseError.exit_code
    finally:
        answers.set()
        lock_device(home / "m")
        making.kill()
        making.wait()


def test_lock_ends_an_embedding_process_with_a_passphrase(server: EmbeddingsServer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Memory.create("m", "encrypted-ipfs", home=home, passphrase=PASSPHRASE) as memory:
        memory.write("drinks", "An espresso machine stands in the kitchen")
    asked, answers = threading.Event(), threading.Event()

    def sick(_: object) -> None:
        asked.set()
        answers.wait(PATIENCE)

    server.sick = sick
    (home / "m" / "vectors.lock").touch()
    call = [sys.executable, "-m", "ipfsmem", "hook", "vectors", "-n", "m", "--home", str(home)]
    making = subprocess.Popen(call, stdin=subprocess.PIPE)
    try:
        assert making.stdin is not None
        making.stdin.write(json.dumps({"passphrase": PASSPHRASE}).encode())
        making.stdin.close()
        assert asked.wait(PATIENCE)
        assert not lock_device(home / "m")
        assert making.wait(PATIENCE) == PassphraseError.exit_code
    finally:
        answers.set()
        making.kill()
        making.wait()
    texts = len(server.texts)
    vectors_apart.run(
        "m", home, json.dumps({"passphrase": PASSPHRASE}).encode()
    )  # a process that started late
    assert len(server.texts) == texts
    # Its time limit would end whatever process called it, half an hour later.
    assert not [
        one for one in threading.enumerate() if isinstance(one, threading.Timer) and not one.finished.is_set()
    ]


def test_embedding_process_for_a_refused_text_is_not_restarted(
    server: EmbeddingsServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(vectors_apart, "start", lambda name, *_: begun.append(name))

    def asked_again() -> bool:
        begun.clear()
        with CommandContext("m", str(home), False, None, reads=True, ends=True).memory() as memory:
            memory.recall("kitchen")
        return bool(begun)

    server.refuses = lambda text: 400 if "espresso" in text or "puppies" in text else 0
    assert asked_again()
    vectors_apart.run("m", home, b"{}")
    assert not asked_again()
    with Memory.load("m", home=home) as memory:
        (said,) = memory._view().opened.meaning().notices()
        assert said.endswith("; the model rejected 2 texts; recall finds them by words only")
    with Memory.load("m", home=home) as memory:
        memory.write("pan", "A pan hangs on the wall")
    assert asked_again()
    server.texts.clear()
    vectors_apart.run("m", home, b"{}")
    assert [text for text in server.texts if "pan" in text] and not any("espresso" in t for t in server.texts)
    assert not asked_again()


def test_embedding_process_for_refused_texts_alone_is_not_restarted(
    server: EmbeddingsServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(vectors_apart, "start", lambda name, *_: begun.append(name))
    server.refuses = lambda text: 0 if text == "memory" else 400
    vectors_apart.run("m", home, b"{}")
    with CommandContext("m", str(home), False, None, reads=True, ends=True).memory() as memory:
        memory.recall("kitchen")
    assert not begun
