"""Hidden texts are cached, and read again after a change by another process or a failed transaction."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.device import hidden as device_hidden
from ipfsmem.device.hidden import Hidden, hidden_texts, hide
from ipfsmem.memory import Memory


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Memory.create("default", "encrypted-ipfs", passphrase=False, home=tmp_path) as memory:
        for key in ("a", "b", "c"):
            memory.write(key, f"text {key}", description="a text of these tests")
    return tmp_path


def shown(memory: Memory) -> list[str]:
    return sorted(one.key for one in memory.list())


def test_hidden_texts_of_another_process_are_seen_at_once(home: Path) -> None:
    with Memory.load("default", home=home) as one, Memory.load("default", home=home) as other:
        one.hidden.add(["a"])
        assert shown(one) == shown(other) == ["b", "c"]
        other.hidden.add(["b"])
        assert shown(one) == shown(other) == ["c"]
        other.hidden.bring_back(["a"])
        assert shown(one) == shown(other) == ["a", "c"]
        one.hidden.bring_back(["b"])
        assert shown(one) == shown(other) == ["a", "b", "c"]


def test_hidden_texts_of_a_failed_transaction_are_shown(home: Path) -> None:
    with Memory.load("default", home=home) as memory:
        replica = memory.replica
        with replica.reading():
            assert hidden_texts(replica) == {}
            hlc = next(iter(replica.store.entry("m/a").values())).h
        with pytest.raises(RuntimeError), replica.transaction():
            hide(replica, [Hidden("", "a", hlc, 1, "x")])
            assert ("", "a") in hidden_texts(replica)
            raise RuntimeError
        assert shown(memory) == ["a", "b", "c"]


def test_unchanged_hidden_keys_are_read_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.load("default", home=home) as memory:
        memory.hidden.add(["a"])
        assert shown(memory) == ["b", "c"]
        monkeypatch.setattr(device_hidden, "_read", lambda _: pytest.fail("it was read again"))
        memory.write("d", "text d", description="a text of these tests")
        memory.hidden.add(["b"])
        assert shown(memory) == ["c", "d"]
