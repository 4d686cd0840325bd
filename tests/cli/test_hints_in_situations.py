"""Hints whose situation needs more than a row of test_hints_followed.py."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ipfsmem.memory import Memory
from tests.servers.kubo import FakeKubo
from tests.servers.threaded import serve
from tests.support.cli_lab import Cli
from tests.support.hints import hinted
from tests.support.outcomes import Place, unfetched


@pytest.fixture
def sealed_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch, "sealed")


def new_words(place: Place) -> tuple[bytes, str]:
    """Return a second recovery phrase, and its id."""
    made = place.run("key phrase --json KEY").json
    return " ".join(made["recovery_words"]).encode(), made["id"]


def test_hint_of_a_later_phrase_without_root_rights_works(sealed_place: Place) -> None:
    place = sealed_place
    place.ok("sync", device=place.other)
    later, _ = new_words(place)
    hinted(
        "Use the wallet that created it, the recovery phrase shown at init, or the device of a vault without a wallet.",
        place.cli.fails(26, "key", "phrase", "--words", stdin=later).err,
    )
    hinted(
        "Use the wallet that created this vault, or the recovery phrase shown at init.",
        place.cli.fails(26, "member", "rename", "second", "phone", "--words", stdin=later).err,
    )
    place.ok("key phrase KEY", "member rename second phone KEY")


def test_hint_about_a_revoked_phrase_works(sealed_place: Place) -> None:
    place = sealed_place
    old, number = new_words(place)
    place.ok(f"member revoke {number} KEY")
    newer, _ = new_words(place)
    phone = Cli(place.base / "phone", place.patch)
    hinted(
        "Use the newer recovery phrase, or the wallet.",
        phone.fails(24, "recover", "--unprotected-keys", stdin=old).err,
    )
    phone.ok("recover", "--unprotected-keys", stdin=newer)


def test_hint_about_too_many_members_works(sealed_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place = sealed_place
    place.ok("sync", device=place.other)
    place.ok("sync")
    monkeypatch.setattr("ipfsmem.ring.operations.MAX_FAMILIES", 4)
    hinted(
        "Revoke one that is not used any more: ipfsmem member list, ipfsmem member revoke ID.",
        place.run("key phrase KEY").err,
    )
    (phone,) = [m["id"] for m in place.run("member list --json").json["members"] if m["label"] == "second"]
    place.ok(f"member revoke {phone} KEY", "key phrase KEY")


def test_hint_about_a_restored_scope_with_a_missing_text_works(sealed_place: Place) -> None:
    place = sealed_place
    place.ok("write tone --body x --scope work", "sync")
    root = place.root()
    drop_block(place, "m/work/tone")
    place.ok("scope forget work --yes")
    refused = place.run(f"scope restore work --root {root}")
    assert refused.code == 7, refused
    hinted(
        "Run: ipfsmem sync. Then restore them: ipfsmem restore KEY --scope VALUE --root VALUE", refused.err
    )
    place.ok("sync", f"restore tone --scope work --root {root}")
    assert "x" in place.run("read tone --scope work").out


def drop_block(place: Place, name: str) -> None:
    with Memory.load("default", home=place.cli.home) as memory, memory.replica.transaction():
        for value in memory.replica.store.entry(name).values():
            if value.loc is not None:
                memory.replica.db.connection.execute(
                    "DELETE FROM blocks WHERE digest=?", (bytes.fromhex(value.loc.sha),)
                )


def test_hint_about_an_incomplete_move_works(sealed_place: Place) -> None:
    place = sealed_place
    unfetched(place)
    place.ok("sync", device=place.other)
    drop_block(place, "m/tone")
    lost = place.base / "lost packs"
    (place.stick / "packs").rename(lost)
    (place.stick / "packs").mkdir()
    place.patch.delenv("IPFSMEM_PROVIDER")
    moved = place.run("vault move USB")
    assert moved.code == 7, moved
    hinted("Run on a device that has the missing data: ipfsmem sync", moved.err)
    print(place.run("sync", place.other))
    print("first", place.run("sync"), place.run("read tone"), place.run("provider check"))
    print("follow", place.run("provider follow", place.other))
    print(place.run("sync"), place.run("read tone"), place.run("provider check"))
    place.ok("sync", "provider check", "read tone")


def test_hint_about_a_damaged_pin_list_works(sealed_place: Place) -> None:
    place = sealed_place
    place.patch.setattr("ipfsmem_providers.packs.pins.MAX_FILES", 3)
    place.ok("write tone --body 0", "sync")
    place.ok("sync", device=place.other)
    for text in range(1, 5):
        place.ok(f"write tone --body {text}", "sync")
    (listed,) = (place.stick / "pins").glob("*.pins")
    data = bytearray(listed.read_bytes())
    data[20] ^= 1
    listed.write_bytes(data)
    refused = place.run("vault compact")
    assert refused.code == 7
    hinted(
        "Let the folder's sync program download that file. If it cannot, remove that file, link or folder, then sync all devices, so that each pins its root again. Older versions that only this list keeps are lost.",
        refused.out,
    )
    assert str(listed) in refused.out
    listed.unlink()
    place.ok("sync", device=place.other)
    place.ok("sync", "vault compact", "provider check")
    assert any(place.root() in file.name for file in (place.stick / "pins").iterdir())


@pytest.mark.parametrize("way", ["arrives", "sync"])
def test_hint_about_partly_copied_provider_folder_works(sealed_place: Place, way: str) -> None:
    """A program that syncs folders has copied a pin but not its pack; nothing is deleted."""
    place = sealed_place
    place.ok("write tone --body x", "sync")
    place.ok("sync", "write more --body y", device=place.other)
    packs, waiting = place.stick / "packs", place.base / "on their way"
    waiting.mkdir()
    before = set(packs.iterdir())
    place.ok("sync", device=place.other)
    for pack in set(packs.iterdir()) - before:
        pack.rename(waiting / pack.name)
    refused = place.run("vault compact")
    assert refused.code == 7
    hinted(
        "Let the folder's sync program finish, or sync the device whose newest version it is. An older version that is missing there blocks this until it is no longer kept.",
        refused.out,
    )
    if way == "arrives":
        for pack in waiting.iterdir():
            pack.rename(packs / pack.name)
    else:
        place.ok("sync", device=place.other)
    place.ok("vault compact", "sync", "read more")


def test_hint_of_a_full_key_ring_frees_room(sealed_place: Place) -> None:
    place = sealed_place
    words, number = new_words(place)
    phone = Cli(place.base / "phone", place.patch)
    phone.ok("recover", "--unprotected-keys", stdin=words)
    place.ok("sync")
    with Memory.load("default", home=place.cli.home) as memory, place.patch.context() as patch:
        patch.setattr("ipfsmem.ring.keyring.MAX_RING", 1 << 40)
        ring = memory.replica.ring
        assert ring is not None
        room = ring.room().others + 50
    place.patch.setattr("ipfsmem.ring.keyring.MAX_OTHERS", room)
    hinted(
        "Revoke the member that fills it, with all its statements (ipfsmem member revoke ID --cascade), or move to a new vault.",
        phone.fails(11, "member", "rotate", "--words", stdin=words).err,
    )
    place.ok(f"member revoke {number} --cascade KEY")
    newer, _ = new_words(place)
    place.cli.ok("member", "rotate", "--words", stdin=newer)


def test_hint_about_an_unavailable_service_works(sealed_place: Place) -> None:
    place = sealed_place
    place.patch.delenv("IPFSMEM_PROVIDER")
    node = FakeKubo()
    with serve(node.app) as url:
        place.ok("provider remove STICK", f"provider add kubo:{url}", "sync", "write tone --body x")
        node.faults.answer("*", ".*", 503, times=-1)
        place.patch.setattr("ipfsmem_providers.http.policy.Retry.wait", lambda *given: None)
        hinted(
            "Your memories are safe on this device; the next sync publishes them.",
            place.cli.fails(41, "sync").err,
        )
        place.ok("read tone")
        node.faults.clear()
        place.ok("sync")
        place.ok(f"init --home BASE/new --provider kubo:{url} --unprotected-keys KEY")
        place.ok("read tone --home BASE/new")


def test_disk_errors_of_a_usb_stick_have_hints(sealed_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place = sealed_place
    place.ok("write tone --body x")
    real = os.open

    def refuses(error: int) -> Callable[..., int]:
        def opens(path: object, flags: int, *given: object, **more: object) -> int:
            if flags & os.O_CREAT and str(path).startswith("."):
                raise OSError(error, os.strerror(error), str(path))
            return real(path, flags, *given, **more)  # type: ignore[arg-type]

        return opens

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuses(errno.ENOSPC))
        hinted("Free space there.", place.cli.fails(41, "sync").err)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuses(errno.EACCES))
        hinted("Give this user write permission, or name another folder.", place.cli.fails(41, "sync").err)
    place.ok("sync")
