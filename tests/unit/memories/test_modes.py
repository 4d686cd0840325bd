"""Files of each mode on this device: `none` writes nothing, `local` plain files and its state."""

from __future__ import annotations

import asyncio
import builtins
import os
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.errors import UsageError
from ipfsmem.memory import Memory


def tree(path: Path) -> list[str]:
    return sorted(found.relative_to(path).as_posix() for found in path.rglob("*"))


def use_everything(memory: Memory) -> None:
    """Make every call that a vault accepts."""
    reading = memory.write("tone", "direct", name="Tone", description="d", type="feedback", tags=["a"])
    memory.write("tone", "more direct", seen=reading, if_match=reading.sha256)
    memory.write_text("raw", b"whole file\n")
    memory.note("waved", hand="left")
    assert memory.read("tone") is not None
    assert [item.key for item in memory.list()] == ["raw", "tone"]
    assert "(tone.md)" in memory.index()
    blob = memory.bundles.export()
    assert memory.bundles.import_(blob).unchanged == 2
    memory.bundles.import_(blob, strategy="replace")
    assert not memory.conflicts()
    assert memory.forget("raw", reason="because")
    assert memory.read("raw") is None
    events = [event["type"] for event in memory.timeline.read()]
    assert [one for one in events if one != "used"] == ["waved", "forgot"]  # a new day counts earlier uses
    assert memory.status().memories == 1
    memory.folders.scan()
    memory.folders.render()
    assert memory.folders.restore_files() == 0
    assert memory.files().keys() == {"tone"}


def test_mode_none_writes_nothing_and_accepts_every_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "IPFSMEM_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    real_open, real_os_open = builtins.open, os.open

    def guarded(file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        assert not set(mode) & set("wax+"), f"{file} was opened for writing"
        return real_open(file, mode, *rest, **more)

    def guarded_os(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        assert not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT), f"{path} was opened for writing"
        return real_os_open(path, flags, *rest, **more)

    def refused(*args: Any, **_: Any) -> None:
        raise AssertionError(f"the disk was changed: {args}")

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", guarded)
        patch.setattr(os, "open", guarded_os)
        for name in ("mkdir", "rename", "replace", "link", "unlink"):
            patch.setattr(os, name, refused)
        memory = Memory.load("x", mode="none", home=tmp_path)
        use_everything(memory)
        report = asyncio.run(memory.sync())
        assert report.root is None and not report.published
        asyncio.run(memory.flush())
        memory.close()
    assert tree(tmp_path) == []
    again = Memory.load("x", mode="none", home=tmp_path)
    assert again.list().memories == ()
    again.close()


def test_mode_local_stores_plain_files_and_its_state_only(tmp_path: Path) -> None:
    memory = Memory.load("x", mode="local", home=tmp_path / "home")
    use_everything(memory)
    memory.close()
    shown = [name for name in tree(tmp_path) if "/.ipfsmem/aside" not in name]
    day = next(name for name in shown if name.endswith(".jsonl"))
    assert set(shown) >= {"home/x/memory/tone.md", "home/x/memory/MEMORY.md", "home/x/ipfsmem.json", day}
    assert not [name for name in shown if not name.startswith("home")]
    again = Memory.load("x", mode="local", home=tmp_path / "home")
    assert again.files().keys() == {"tone"}
    with pytest.raises(UsageError, match="is never published"):
        asyncio.run(again.sync())
    again.close()


def test_vault_in_mode_none_refuses_a_folder_of_plain_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none"):
        Memory.create("x", "none", home=tmp_path / "home", memory_dir=tmp_path / "plain")
    assert tree(tmp_path) == []


def test_sealed_vault_leaves_no_plain_file(tmp_path: Path) -> None:
    memory = Memory.create("x", "encrypted-ipfs", home=tmp_path, passphrase=False)
    use_everything(memory)
    memory.close()
    assert not [name for name in tree(tmp_path) if name.endswith((".md", ".jsonl"))]
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"direct" not in path.read_bytes()
