"""`ipfsmem open`, and the confirmation required before anything becomes public."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from ipfsmem.cli import secret_input
from tests.support.cli_lab import KEY, Cli

AWS = "AKIA" + "ABCDEFGHIJKLMNOP"


@pytest.fixture
def public(bare: Cli, stick: Path) -> Cli:
    """A device with a vault in mode ipfs."""
    bare.ok("init", "--mode", "ipfs", "--unprotected-keys", "--yes-public", key=KEY)
    return bare


def test_anyone_can_list_read_and_export_a_public_vault(
    public: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public.ok("write", "tone", "--type", "feedback", "--body", "direct")
    public.ok("timeline", "add", "met")
    root = public.ok("sync", "--json").json["report"]["root"]
    monkeypatch.delenv("IPFSMEM_PROVIDER")
    other = Cli(tmp_path / "other", monkeypatch)
    assert "read it from" in other.fails(3, "open", root).err
    monkeypatch.setenv("IPFSMEM_PROVIDER", str(stick))
    assert other.ok("open", root).out.startswith("tone\tfeedback\t")
    assert [item["key"] for item in other.ok("open", f"ipfs://{root}", "--json").json["memories"]] == ["tone"]
    assert other.ok("open", root, "tone", "--provider", str(stick)).out == public.ok("read", "tone").out
    assert other.ok("open", root, "tone", "--json").json["body"] == "direct"
    other.ok("open", root, "--export", "blob.json")
    blob = json.loads((tmp_path / "blob.json").read_text())
    assert list(blob["files"]) == ["tone.md"] and [e["type"] for e in blob["timeline"]] == ["met"]
    assert not other.home.exists()
    other.fails(4, "open", root, "nothing")
    other.fails(2, "open", "no-cid")
    other.fails(
        4, "open", "bafybeiaqihpb4m7wt6vvtafbr6lqn2ynakoghdo2kfobnd3kz6h7nyegvy"
    )  # the CID has no block
    sealed = Cli(tmp_path / "sealed", monkeypatch)
    sealed.ok("init", "-n", "s", "--no-wallet", "--unprotected-keys")
    hidden = sealed.ok("sync", "-n", "s", "--json").json["report"]["root"]
    assert "encrypted" in other.fails(10, "open", hidden).err


def test_open_prints_problems_next_to_the_result(bare: Cli, stick: Path, tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "good.md").write_text("text\n")
    (folder / "bad.md").write_bytes(b"\xff\xfe")
    found = bare.ok("format", "cid", str(folder), "--car", "x.car").out.strip()
    from ipfsmem_providers.directory import DirectoryProvider

    from ipfsmem.content.tree import build_tree

    tree = build_tree({p.name: p.read_bytes() for p in folder.iterdir()})
    assert str(tree.cid) == found
    import asyncio

    asyncio.run(DirectoryProvider(stick).put_car(tree.cid, tree.blocks, name="x"))
    result = bare.ok("open", found)
    assert result.out.startswith("good\t") and "bad" in result.err and "bad" not in result.out
    for_programs = bare.ok("open", found, "--json")
    assert [one["key"] for one in for_programs.json["memories"]] == ["good"] and "bad" in for_programs.err


def test_open_refuses_key_with_export_and_partial_without_export(bare: Cli, tmp_path: Path) -> None:
    (tmp_path / "tone.md").write_text("direct\n")
    for wrong in (("tone", "--export", "out.json"), ("--partial",)):
        bare.fails(2, "open", str(tmp_path), *wrong)


def test_public_vault_is_not_published_without_consent(bare: Cli, stick: Path) -> None:
    said = bare.ok("init", "--mode", "ipfs", "--unprotected-keys", key=KEY)
    assert "not published" in said.err and "--yes-public" in said.err
    bare.ok("write", "tone", "--body", "direct")
    assert "--yes-public" in bare.fails(31, "sync").err
    assert not (stick / "packs").exists()
    bare.ok("sync", "--yes-public")
    bare.ok("write", "tone", "--body", "very direct")
    bare.ok("sync")


@pytest.mark.parametrize("answer", [True, False])
def test_sync_of_a_public_vault_asks_on_a_terminal(
    bare: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    bare.ok("init", "--mode", "ipfs", "--unprotected-keys", key=KEY)
    asked: list[str] = []

    def confirm(text: str, **more: object) -> bool:
        assert more["default"] is False
        asked.append(text)
        return answer

    monkeypatch.setattr(secret_input, "can_ask", lambda: True)
    monkeypatch.setattr(click, "confirm", confirm)
    result = bare("sync")
    assert (result.code, len(asked)) == (0 if answer else 31, 1)
    assert "Anyone can read it" in result.err
    bare("sync")
    assert len(asked) == (1 if answer else 2)


def test_suspected_secret_blocks_publication_until_allowed(public: Cli) -> None:
    public.ok("write", "aws", "--body", f"use {AWS}")
    result = public.fails(32, "sync")
    assert (
        "aws line 6: AWS access key" in result.err and "--allow aws" in result.err and AWS not in result.err
    )
    public.fails(32, "sync", "--allow", "other")
    assert public("sync", "--json").error["kind"] == "SecretsError"
    public.ok("sync", "--allow", "aws")
    public.ok("write", "more", "--body", "text")
    public.ok("sync")


def test_move_of_a_public_vault_requires_the_same_consent(bare: Cli, stick: Path, tmp_path: Path) -> None:
    (tmp_path / "usb").mkdir()
    bare.ok("init", "--mode", "ipfs", "--unprotected-keys", key=KEY)
    bare.fails(31, "vault", "move", str(tmp_path / "usb"))
    bare.ok("write", "aws", "--body", AWS)
    bare.fails(32, "vault", "move", str(tmp_path / "usb"), "--yes-public")
    bare.ok("vault", "move", str(tmp_path / "usb"), "--allow", "aws")


def test_suspected_secret_in_an_encrypted_vault_is_only_reported(sealed: Cli) -> None:
    sealed.ok("write", "aws", "--body", AWS)
    said = sealed.ok("sync").out
    assert "secret: aws line 6: AWS access key" in said and AWS not in said
    assert "secret:" not in sealed.ok("sync").out


def test_public_address_and_open_command_of_a_sync_work(
    public: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed command is run with an empty home."""
    public.ok("write", "hello", "--body", "Hello, world.")
    said = public.ok("sync").out
    root = public.ok("status", "--json").json["root"]
    assert f"Public address: ipfs://{root}\n" in said
    (told,) = re.findall(r"Anyone can read it with: ipfsmem (.*)", said)
    assert told in public.ok("status").out and f"ipfs://{root}" in public.ok("status").out
    monkeypatch.delenv("IPFSMEM_PROVIDER")
    friend = Cli(tmp_path / "friend", monkeypatch)
    assert friend.ok(*shlex.split(told)).out.startswith("hello\t") and not friend.home.exists()
    local = Cli(tmp_path / "local", monkeypatch)
    local.ok("init", "--mode", "local")
    assert "ipfs://" not in local.ok("status").out


def test_forget_of_published_memory_warns_that_it_stays_public(public: Cli, bare: Cli) -> None:
    public.ok("write", "hello", "--body", "Hello, world.")
    public.ok("sync")
    assert "stays public" in public.ok("forget", "hello").err


def test_open_reads_a_folder_an_export_and_a_car_file(public: Cli, stick: Path, tmp_path: Path) -> None:
    """-"""
    public.ok("write", "hello", "--body", "Hello, world.")
    public.ok("sync")
    for arguments in (("--car", "page.car"), ("--dir", "page"), ("--out", "page.json")):
        public.ok("export", *arguments)
        assert "Hello, world." in public.ok("open", arguments[1], "hello").out
        assert public.ok("open", str(tmp_path / arguments[1])).out.startswith("hello\t")
    sealed = public.ok("init", "-n", "s", "--no-wallet", "--unprotected-keys", "--json")
    assert sealed.code == 0
    public.ok("sync", "-n", "s")
    public.ok("export", "-n", "s", "--car", "s.car")
    assert "encrypted" in public.fails(10, "open", "s.car").err


def test_open_of_unreadable_source_is_refused_in_plain_words(
    public: Cli, stick: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "torn.car").write_bytes(b"no CAR")
    for code, source, said in (
        (2, "no-such-thing", "not an IPFS address, and no file of that name"),
        (2, str(stick), "which may hold many memories"),
        (10, "empty", "there are no memories in empty"),
        (10, "torn.car", "CAR"),
    ):
        refused = public.fails(code, "open", source).err
        assert said in refused and "multibase" not in refused and "base:" not in refused


def test_export_by_open_follows_links_and_refuses_vault_files(bare: Cli, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "tone.md").write_text("direct\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real").write_text("old")
    bare.ok("open", str(notes), "--export", str(tmp_path / "link"), "--overwrite")
    assert (tmp_path / "link").is_symlink() and "direct" in (tmp_path / "real").read_text()
    bare.fails(2, "open", str(notes), "--export", str(bare.home / "default" / "state.db"))


def test_open_of_an_empty_vault_suggests_no_write(
    public: Cli, bare: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    public.ok("timeline", "add", "met")
    root = public.ok("sync", "--json").json["report"]["root"]
    monkeypatch.setattr("tests.support.cli_lab._Stream.isatty", lambda stream: True)
    empty = bare.ok("open", root)
    assert "No memories." in empty.err and "ipfsmem write" not in empty.err


def test_open_of_a_vault_with_conflicts_suggests_no_resolve(
    clash: tuple[Cli, Cli], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ipfsmem conflicts` is for vaults of this device."""
    clash[0].ok("export", "--dir", str(tmp_path / "theirs"))
    monkeypatch.setattr("tests.support.cli_lab._Stream.isatty", lambda stream: True)
    told = clash[0].ok("open", str(tmp_path / "theirs")).err
    assert ", 1 with conflicts" in told and "ipfsmem conflicts" not in told
