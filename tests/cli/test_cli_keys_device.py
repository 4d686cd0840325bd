"""`ipfsmem key passphrase` and `member rename`."""

from __future__ import annotations

import json

import pytest

from ipfsmem.device.identity import KEY_FILE
from tests.support.cli_lab import KEY, OTHER_KEY, Cli, pipe


def new(text: str) -> list[str]:
    return ["--new-passphrase-fd", str(pipe(text))]


def test_weak_passphrase_is_refused_from_every_source(
    bare: Cli, stick: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    fd = str(pipe("x"))
    refused = bare("init", "--passphrase-fd", fd, key=KEY)
    assert refused.code == 22 and "of 8 characters" in refused.err and "at least 8 characters" in refused.err
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "x")
    assert bare("init", key=KEY).code == 22
    assert bare("init", "--new-wallet", "--wallet-passphrase-fd", str(pipe("y"))).code == 22
    assert bare("init", "--new-wallet", "--wallet-passphrase-fd", str(pipe("open sesame"))).code == 22
    monkeypatch.delenv("IPFSMEM_PASSPHRASE")
    wallet = ["--new-wallet", "--wallet-passphrase-fd", str(pipe("open sesame")), "--unprotected-keys"]
    assert bare("init", *wallet, "--signature-passphrase-fd", str(pipe("z"))).code == 22
    wallet[2] = str(pipe("open sesame"))
    assert bare("init", *wallet, "--wallet-vault", "No Name!").code == 2
    weak = ["--signature-passphrase-fd", str(pipe("z"))]
    assert bare("init", "--unprotected-keys", *weak, key=KEY).code == 22
    assert not (bare.home / "default").exists() and not (bare.home / "wallet.json").exists()


def test_key_passphrase_changes_the_passphrase_of_the_device(
    sealed: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set a first passphrase, change and remove it: each time the old one no longer opens the vault, and
    every text remains."""
    sealed.ok("write", "tone", "--body", "direct")
    key_file = sealed.home / "default" / KEY_FILE
    assert b'"clear"' in key_file.read_bytes()
    assert sealed.ok("key", "passphrase", "--json", *new("open sesame")).json == {"protected": True}
    assert b'"clear"' not in key_file.read_bytes()
    sealed.fails(22, "read", "tone")
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "open sesame")
    sealed.ok("read", "tone")
    before = key_file.read_bytes()
    for wrong in (new("x"), new("aaaaaaaaaaaa"), new("")):
        sealed.fails(22, "key", "passphrase", *wrong)
    sealed.fails(2, "key", "passphrase", "--unprotected-keys", *new("another fine one"))
    assert key_file.read_bytes() == before
    sealed.ok("key", "passphrase", *new("another fine one"))
    sealed.fails(22, "read", "tone")
    sealed.fails(22, "key", "passphrase", *new("a third fine one"))
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "another fine one")
    monkeypatch.setenv("IPFSMEM_NEW_PASSPHRASE", "open sesame")
    sealed.ok("key", "passphrase")
    monkeypatch.delenv("IPFSMEM_NEW_PASSPHRASE")
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "open sesame")
    assert "have no passphrase now" in sealed.ok("key", "passphrase", "--unprotected-keys").out
    monkeypatch.delenv("IPFSMEM_PASSPHRASE")
    assert sealed.ok("read", "tone", "--body").out == "direct\n"
    sealed.ok("sync")


def test_full_disk_keeps_the_former_passphrase(sealed: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipfsmem.device import identity
    from ipfsmem.errors import StorageError

    def full(*given: object, **more: object) -> None:
        raise StorageError("cannot write device.key: the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(identity, "write_atomic", full)
        sealed.fails(30, "key", "passphrase", *new("open sesame"))
    sealed.ok("list")


def test_key_passphrase_of_a_local_vault_is_refused(cli: Cli) -> None:
    cli.fails(2, "key", "passphrase", *new("open sesame"))


def test_key_passphrase_without_a_terminal_is_refused(sealed: Cli) -> None:
    assert "there is no terminal" in sealed.fails(22, "key", "passphrase").err


def test_renamed_device_has_its_new_label_on_every_device(sealed: Cli, second: Cli) -> None:
    sealed.ok("sync")
    second.ok("write", "tone", "--body", "direct")
    second.ok("sync")
    sealed.ok("sync")
    sealed.ok("member", "rename", "second", "my phone", key=KEY)
    for device in (sealed, second):
        device.ok("sync")
        labels = [m["label"] for m in device.ok("member", "list", "--json").json["members"]]
        assert sorted(labels) == ["first", "my phone", "recovery words", "wallet"]
    assert "my phone" in sealed.ok("history", "tone").out and "my phone" in sealed.ok("status", "--json").out
    second.ok("write", "more", "--body", "it still writes")
    second.ok("sync")
    sealed.ok("sync")
    sealed.ok("read", "more")
    assert sealed.ok("member", "list", "--json").json["seals"]["epoch"] == 1


def test_successor_of_a_renamed_device_has_the_new_label(sealed: Cli, second: Cli) -> None:
    """A copied home becomes a successor, whose statement still has the former label."""
    import shutil

    sealed.ok("sync")
    other = second.home.with_name("copy")
    shutil.copytree(second.home, other)
    copy = Cli(other, second._monkeypatch)
    copy.ok("write", "tone", "--body", "from the copy")
    copy.ok("sync")
    sealed.ok("sync")
    sealed.ok("member", "rename", "second", "my phone", key=KEY)
    members = sealed.ok("member", "list", "--json").json["members"]
    assert [m["label"] for m in members if m["kind"] == "device"].count("my phone") == 2
    assert "second" not in {m["label"] for m in members}


def test_renaming_the_wallet_changes_only_its_label(sealed: Cli) -> None:
    before = sealed.ok("member", "list", "--json").json
    sealed.ok("member", "rename", "wallet", "the grey one", key=KEY)
    after = sealed.ok("member", "list", "--json").json
    assert "the grey one" in {m["label"] for m in after["members"]}
    strip = [
        [{k: v for k, v in m.items() if k not in ("label", "heard")} for m in found["members"]]
        for found in (before, after)
    ]
    assert sorted(map(json.dumps, strip[0])) == sorted(map(json.dumps, strip[1]))
    sealed.fails(26, "member", "rename", "recovery words", "x", key=KEY)


def test_invalid_member_rename_is_refused(sealed: Cli) -> None:
    sealed.fails(2, "member", "rename", "nobody", "x", key=KEY)
    sealed.fails(2, "member", "rename", "first", "x")
    sealed.fails(24, "member", "rename", "first", "x", key=OTHER_KEY)
    for bad in ("", "a\nb", "x" * 129):
        sealed.fails(2, "member", "rename", "first", bad, key=KEY)
    sealed.fails(2, "member", "rename", "first", key=KEY)
    assert "first" in sealed.ok("member", "list").out
