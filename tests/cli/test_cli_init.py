"""`ipfsmem init`: new vaults, restored vaults, refusals, and no vault created by mistake."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.cli import init_cmd
from ipfsmem.config import VaultConfig
from ipfsmem.http import blocks
from ipfsmem.memory import Memory
from ipfsmem.open_vault import creating
from ipfsmem.wallet.root_keys import RootKeys
from ipfsmem.wallet.signers import RawKeySigner
from tests.servers.threaded import serve
from tests.support.cli_lab import KEY, OTHER_KEY, Cli, pipe


def test_init_creates_a_local_vault_once(bare: Cli) -> None:
    said = bare.ok("init", "--mode", "local", "--json").json
    assert (said["mode"], said["restored"], said["recovery_words"], said["root"]) == (
        "local",
        False,
        None,
        None,
    )
    assert bare.ok("status", "--json").json["mode"] == "local"
    bare.fails(3, "init", "--mode", "local")


def test_init_publishes_an_encrypted_vault_and_shows_its_phrase(bare: Cli, stick: Path) -> None:
    result = bare.ok("init", "--unprotected-keys", "--json", key=KEY)
    said = result.json
    assert said["address"] == "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" and not said["restored"]
    assert said["vault_tag"] == "3973bff87388964db243992eeb7c6506"
    assert len(said["recovery_words"]) == 24 and said["warnings"] and said["root"].startswith("bafy")
    assert list((stick / "names").iterdir())


def test_init_on_second_device_restores_the_vault_of_that_name(
    sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the wallet's first vault, which would mix the texts of two vaults."""
    sealed.ok("init", "--vault", "work", "--unprotected-keys", key=KEY)
    sealed.ok("write", "plan", "--vault", "work", "--body", "of work")
    sealed.ok("sync", "--vault", "work")
    other = Cli(tmp_path / "other", monkeypatch)
    said = other.ok("init", "--vault", "work", "--unprotected-keys", "--json", key=KEY).json
    assert said["restored"] and other.ok("read", "plan", "--vault", "work", "--body").out == "of work\n"


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_init_with_a_new_name_requires_create_and_names_the_first_vault(
    sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    other = Cli(tmp_path / "other", monkeypatch)
    asked = ("init", "--vault", "work", "--unprotected-keys", *(["--json"] if as_json else []))
    assert other(*asked, key=KEY).code == 43 and not (other.home / "work").exists()
    said = other.ok(*asked, "--create", key=KEY)
    if as_json:
        assert not said.json["restored"] and [one["name"] for one in said.json["vaults"]] == ["default"]
    else:
        assert "Created a new vault, work" in said.out
        assert "ipfsmem recover --vault default --wallet FILE" in said.err
    assert other.ok("status", "--vault", "work", "--json").json["vault"]["name"] == "work"
    assert other("read", "tone", "--vault", "work").code != 0
    other.ok("recover", "--vault", "default", "--unprotected-keys", key=KEY)
    assert other.ok("read", "tone", "--vault", "default", "--body").out == "direct\n"
    third = Cli(tmp_path / "third", monkeypatch)
    assert third.ok("init", "--vault", "work", "--unprotected-keys", "--json", key=KEY).json["restored"]


SEALED, PLAIN = "encrypted-ipfs", "ipfs"


def _expected(existing: dict[str, str], name: str, mode: str | None, create: bool, readable: bool) -> str:
    """Return the result of `init` with a wallet that has the vaults `existing` (label -> mode) at the
    provider."""
    kind = mode or SEALED
    if not readable and {name, "default"} & existing.keys():
        return "created" if create else "refused"
    if name in existing:
        return "restored" if existing[name] == kind else "refused"
    if "default" not in existing:
        return "created"
    if name == "a_b":
        return "refused"
    other_kind = existing["default"] != kind and mode is not None
    return "created" if create or other_kind else "refused"


@pytest.mark.parametrize("readable", [True, False], ids=["readable", "pins-alone"])
@pytest.mark.parametrize(
    "existing",
    [{"default": SEALED}, {"default": PLAIN}, {"work": SEALED}, {"default": SEALED, "work": PLAIN}],
    ids=str,
)
def test_init_restores_no_other_vault_and_creates_no_second_unasked(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: dict[str, str], readable: bool
) -> None:  # fmt: skip
    for label, mode in existing.items():
        given = ("--vault", label, "--mode", mode, "--yes-public", "--no-recovery")
        bare.ok("init", *given, "--wallet-vault", label, "--unprotected-keys", key=KEY)
        bare.ok("write", "tone", "--vault", label, "--body", f"of {label}")
        bare.ok("sync", "--vault", label)
    if not readable:
        for folder in ("names", "packs"):
            shutil.rmtree(stick / folder)
    cases = product(("default", "work", "a_b"), (None, SEALED, PLAIN), (False, True))
    for number, (name, mode, create) in enumerate(cases):
        copy = shutil.copytree(stick, tmp_path / f"stick{number}")
        other = Cli(tmp_path / f"home{number}", monkeypatch)
        words = [*(["--mode", mode] if mode else []), *(["--create"] if create else [])]
        spelling = "-n" if number % 2 else "--vault"
        asked = ("init", spelling, name, *words, "--provider", str(copy), "--yes-public", "--no-recovery", "--unprotected-keys", "--json")  # fmt: skip
        done = other(*asked, key=KEY)
        wanted = _expected(existing, name, mode, create, readable)
        case = (asked, wanted, done.code, done.err)
        if wanted == "refused":
            assert done.code not in (0, 1) and not (other.home / name / "ipfsmem.json").exists(), case
            continue
        assert done.code == 0 and done.json["restored"] is (wanted == "restored"), case
        assert not done.json["restored"] or other.ok("read", "tone", "-n", name, "--body").out == f"of {name}\n", case  # fmt: skip


#: The vaults that a device may already hold: the options of `init`.
EXISTING_VAULTS = {
    "local": ("notes", "--mode", "local"),
    "no wallet": ("lone", "--no-wallet", "--unprotected-keys"),
    "another wallet": ("theirs", "--unprotected-keys", OTHER_KEY),
    "the wallet": ("bob", "--wallet-vault", "bob", "--unprotected-keys", KEY),
    "the first one": ("home", "--wallet-vault", "default", "--unprotected-keys", KEY),
}


@pytest.mark.parametrize("labels", [(), ("default",), ("work",)], ids=str)
def test_init_and_recover_find_the_first_vault_next_to_other_vaults(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: tuple[str, ...]
) -> None:
    for label in labels:
        bare.ok("init", "--vault", label, "--wallet-vault", label, "--unprotected-keys", key=KEY)
        bare.ok("write", "tone", "--vault", label, "--body", f"of {label}")
        bare.ok("sync", "--vault", label)
    for here, create in product(EXISTING_VAULTS, (False, True) if labels == ("default",) else (False,)):
        copy = shutil.copytree(stick, tmp_path / here / str(create))
        other = Cli(copy / "home", monkeypatch)
        name, *options = EXISTING_VAULTS[here]
        key = options.pop() if options[-1] in (KEY, OTHER_KEY) else ""
        where = () if here == "local" else ("--provider", str(copy))
        other.ok("init", "--vault", name, *options, *where, key=key)
        asked = ("--vault", "work", "--unprotected-keys", "--provider", str(copy), "--json")
        done = other("init", *asked, *(["--create"] if create else []), key=KEY)
        case = (here, create, done)
        elsewhere = labels == ("default",) and here != "the first one"
        if elsewhere and not create:
            assert done.code == 43 and "ipfsmem recover --vault work" in done.err, case
            assert not (other.home / "work" / "ipfsmem.json").exists(), case
            back = other.ok("recover", *asked, key=KEY).json["status"]["vault"]["name"]
            assert back == "default", case
            assert other.ok("read", "tone", "--vault", "work", "--body").out == "of default\n", case
            continue
        assert done.code == 0 and done.json["restored"] is ("work" in labels), case
        assert elsewhere is ("default" in [one["name"] for one in done.json["vaults"]]), case
        label = other.ok("status", "--vault", "work", "--json").json["vault"]["name"]
        assert label == ("default" if here == "local" and not labels else "work"), case


@pytest.mark.parametrize("name", ["work", "a_b"])
def test_load_finds_the_first_vault_next_to_other_vaults_on_device(
    bare: Cli, stick: Path, tmp_path: Path, name: str
) -> None:
    bare.ok("init", "--unprotected-keys", key=KEY)
    bare.ok("write", "tone", "--body", "of default")
    bare.ok("sync")
    home = tmp_path / "other"

    def load(name: str, key: str) -> tuple[str, list[str]]:
        signer = RawKeySigner(bytes.fromhex(key.removeprefix("0x")))
        with Memory.load(
            name,
            "encrypted-ipfs",
            provider=str(stick),
            unlock=signer,
            passphrase=False,
            home=home,
            create=True,
        ) as memory:
            vault = memory.replica.config.vault
            assert vault is not None
            return vault.name, [one.key for one in memory.list()]

    assert load("theirs", OTHER_KEY) == ("default", [])
    assert load(name, KEY) == ("default", ["tone"])
    assert load("more", KEY) == ("more", [])


@pytest.mark.parametrize("label", ["default", "work"])
def test_load_on_empty_device_prefers_the_vault_of_that_name(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: str
) -> None:
    bare.ok("init", "--unprotected-keys", key=KEY)
    bare.ok("sync")
    if label == "work":
        bare.ok("init", "--vault", "work", "--unprotected-keys", key=KEY)
    bare.ok("write", "tone", "--vault", label, "--body", f"of {label}")
    bare.ok("sync", "--vault", label)
    searched: list[str] = []
    find = creating.find_vault

    async def noted(root: RootKeys, *rest: Any, **how: Any) -> VaultConfig:
        searched.append(root.head_public.hex())
        return await find(root, *rest, **how)

    monkeypatch.setattr(creating, "find_vault", noted)
    signer = RawKeySigner(bytes.fromhex(KEY.removeprefix("0x")))

    def load(name: str) -> Memory:
        return Memory.load(
            name,
            "encrypted-ipfs",
            provider=str(stick),
            unlock=signer,
            passphrase=False,
            home=tmp_path / name,
            create=True,
        )

    with load("work") as memory:
        assert memory.read("tone").body == f"of {label}"
        assert len(searched) == (1 if label == "work" else 2)
    searched.clear()
    load("default").close()
    assert len(searched) == 1


def test_init_next_to_a_vault_recovered_by_phrase_creates_another_vault(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = bare.ok("init", "--unprotected-keys", "--json", key=KEY).json["recovery_words"]
    other = Cli(tmp_path / "other", monkeypatch)
    other.ok("recover", "--vault", "home", "--unprotected-keys", stdin=" ".join(words).encode())
    assert not other.ok("init", "--vault", "work", "--unprotected-keys", "--json", key=KEY).json["restored"]
    assert other.ok("status", "--vault", "work", "--json").json["vault"]["name"] == "work"


def test_init_of_a_name_invalid_in_a_wallet_suggests_an_own_vault_name(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    other = Cli(tmp_path / "other", monkeypatch)
    for more in ((), ("--create",)):
        told = other.fails(43, "init", "--vault", "a_b", "--unprotected-keys", *more, key=KEY).err
        assert "ipfsmem init --vault a_b --wallet-vault NAME" in told and not (other.home / "a_b").exists()
    other.ok("init", "--vault", "a_b", "--wallet-vault", "ab", "--unprotected-keys", key=KEY)
    assert other("read", "tone", "--vault", "a_b").code != 0


def test_init_creates_no_second_first_vault_of_a_wallet(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first vault is `default` in the wallet, whatever its name on a device."""
    bare.ok("init", "--vault", "work", "--unprotected-keys", key=KEY)
    bare.ok("write", "plan", "--vault", "work", "--body", "of work")
    bare.ok("sync", "--vault", "work")
    other = Cli(tmp_path / "other", monkeypatch)
    told = other.fails(43, "init", "--vault", "work", "--unprotected-keys", key=KEY).err
    assert "has no vault work there, but a vault default" in told
    assert "ipfsmem recover --vault work" in told and not (other.home / "work").exists()
    other.ok("recover", "--vault", "work", "--unprotected-keys", key=KEY)
    assert other.ok("read", "plan", "--vault", "work", "--body").out == "of work\n"


def test_init_on_second_device_restores_the_vault_of_the_wallet(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    other = Cli(tmp_path / "other", monkeypatch)
    said = other.ok("init", "--unprotected-keys", key=KEY).out
    assert "Restored: 1 memory, 0 events." in said
    assert other.ok("read", "tone").out == sealed.ok("read", "tone").out


def test_init_with_another_wallet_creates_another_vault(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    other = Cli(tmp_path / "other", monkeypatch)
    assert "this wallet had no vault there" in other.ok("init", "--unprotected-keys", key=OTHER_KEY).out
    assert other.ok("list").out == ""


@pytest.mark.parametrize("provider", ["no/such/kind", "nonsense:", "/nonexistent/folder"])
def test_init_with_an_unusable_provider_creates_nothing(bare: Cli, provider: str) -> None:
    result = bare("init", "--unprotected-keys", "--provider", provider, key=KEY)
    assert result.code in (3, 41) and "Traceback" not in result.err and result.out == ""
    assert not bare.home.exists() or not list(bare.home.iterdir())


def test_init_with_a_damaged_provider_creates_no_second_vault(
    sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pack in (stick / "packs").glob("*.car"):
        pack.write_bytes(pack.read_bytes()[:-10])
    for index in (stick / "packs").glob("*.idx"):
        index.unlink()
    other = Cli(tmp_path / "other", monkeypatch)
    result = other("init", "--unprotected-keys", key=KEY)
    assert result.code not in (0, 43), result
    assert not other.home.exists() or not list(other.home.iterdir())


def test_init_refuses_options_that_exclude_each_other(bare: Cli, stick: Path) -> None:
    bare.fails(2, "init")
    bare.fails(2, "init", "--no-wallet", "--no-recovery", "--unprotected-keys")
    bare.fails(2, "init", "--no-wallet", "--new-wallet", "--unprotected-keys")
    bare.fails(2, "init", "--mode", "local", key=KEY)
    bare.fails(2, "init", "--memory-dir", "x", "--no-wallet")
    bare.fails(2, "init", "--mode", "none")
    assert not bare.home.exists()


def test_init_without_a_provider_is_refused(bare: Cli) -> None:
    assert "--provider" in bare.fails(3, "init", "--unprotected-keys", key=KEY).err


def test_init_without_a_passphrase_requires_the_unprotected_option(bare: Cli, stick: Path) -> None:
    result = bare.fails(2, "init", key=KEY)
    assert "passphrase" in result.err and not bare.home.exists()


def test_raw_key_requires_its_confirmation_option(bare: Cli, stick: Path) -> None:
    bare.fails(2, "init", "--unprotected-keys", "--raw-key-fd", str(pipe(KEY)))
    result = bare("init", "--unprotected-keys", "--raw-key-fd", str(pipe("not a key")), "--i-know-raw-keys")
    assert result.code == 10 and "not a key" not in result.err


def test_init_accepts_a_seed_phrase_and_hides_an_invalid_one(bare: Cli, stick: Path) -> None:
    words = "test test test test test test test test test test test junk"
    said = bare.ok("init", "--unprotected-keys", "--json", "--mnemonic-fd", str(pipe(words + "\n"))).json
    assert said["address"] == "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
    bad = bare("init", "-n", "other", "--unprotected-keys", "--mnemonic-fd", str(pipe("test junk")))
    assert bad.code == 10 and "junk" not in bad.err


def test_init_creates_a_vault_without_a_wallet(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = bare.ok("init", "--unprotected-keys", "--no-wallet", "--json").json
    assert said["address"] is None and len(said["recovery_words"]) == 24
    bare.ok("write", "tone", "--body", "direct")
    bare.ok("sync")
    other = Cli(tmp_path / "other", monkeypatch)
    other.ok("recover", "--unprotected-keys", stdin=" ".join(said["recovery_words"]).encode())
    assert other.ok("read", "tone", "--body").out == "direct\n"


def test_init_creates_a_wallet_file_with_its_passphrase(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keystore = tmp_path / "my wallet.json"
    device, wallet = pipe("device secret\n"), pipe("wallet secret\n")
    said = bare.ok(
        "init", "--new-wallet", str(keystore), "--passphrase-fd", str(device), "--wallet-passphrase-fd", str(wallet), "--json",
    ).json  # fmt: skip
    assert said["keystore"] == str(keystore) and keystore.stat().st_mode & 0o077 == 0
    assert json.loads(keystore.read_text())["version"] == 3
    bare.fails(22, "list")
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "wrong")
    bare.fails(22, "list")
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "device secret")
    bare.ok("write", "tone", "--body", "x")
    # the wallet alone, on another device, with its own passphrase
    other = Cli(tmp_path / "other", monkeypatch)
    other.fails(22, "init", "--wallet", str(keystore))
    monkeypatch.setenv("IPFSMEM_WALLET_PASSPHRASE", "wallet secret")
    other.ok("init", "--wallet", str(keystore))
    # an existing file is never overwritten
    again = bare("init", "-n", "second", "--new-wallet", str(keystore))
    assert again.code == 30 and "not overwritten" in again.err
    other.fails(30, "init", "-n", "third", "--wallet", str(tmp_path / "missing.json"))


def test_failed_init_leaves_no_new_wallet(bare: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "the first one")
    in_the_way = bare.home / "default" / "create.lock"
    in_the_way.mkdir(parents=True)
    assert bare("init", "--new-wallet").code
    assert not (bare.home / "wallet.json").exists()
    in_the_way.rmdir()
    bare.ok("init", "--new-wallet")
    assert (bare.home / "wallet.json").exists()


@pytest.mark.parametrize("owner", ["a wallet", "nobody"])
def test_init_that_lost_a_race_leaves_no_new_wallet(
    owner: str, bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "the first one")
    create = init_cmd._create

    def beaten(*given: Any) -> Memory:
        monkeypatch.setattr(init_cmd, "_create", create)
        if owner == "nobody":
            Memory.create("default", "local", home=bare.home).close()
        else:
            bare.ok("init", "--new-wallet", str(tmp_path / "winner.json"))
        return create(*given)

    monkeypatch.setattr(init_cmd, "_create", beaten)
    assert "there is already a vault" in bare("init", "--new-wallet").err
    assert not (bare.home / "wallet.json").exists()
    assert (tmp_path / "winner.json").exists() == (owner == "a wallet")
    bare.ok("write", "tone", "--body", "direct")


def test_one_passphrase_protects_the_wallet_and_the_device(
    bare: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "the first one")
    said = bare.ok("init", "--new-wallet", "--json").json
    assert said["keystore"] == str(bare.home / "wallet.json")
    bare.ok("sync", "--wallet", said["keystore"])


def test_signature_passphrase_selects_another_vault(bare: Cli, stick: Path) -> None:
    fd = pipe("pepper and salt")
    said = bare.ok("init", "--unprotected-keys", "--json", "--signature-passphrase-fd", str(fd), key=KEY).json
    assert said["vault_tag"] != "3973bff87388964db243992eeb7c6506"


def test_init_names_the_readers_of_the_vault(bare: Cli, stick: Path) -> None:
    assert "Readers: your devices" in bare.ok("init", "--unprotected-keys", key=KEY).err
    assert "Readers: everyone" in bare.ok("init", "-n", "open", "--mode", "ipfs", key=OTHER_KEY).err


def test_init_on_a_terminal_asks_and_verifies_the_recovery_phrase(tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ipfsmem.cli", "init", "--no-wallet", "--provider", str(stick), "--home", str(tmp_path / "h")],
        stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "NO_COLOR": "1"}, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    seen = ""

    def until(what: str) -> str:
        nonlocal seen
        give_up = time.monotonic() + 60
        while what not in seen:
            assert select.select([ours], [], [], give_up - time.monotonic())[0], seen
            seen += os.read(ours, 4096).decode()
        before, _, seen = seen.partition(what)
        return before

    def answer(text: str) -> None:
        os.write(ours, (text + "\n").encode())

    until("Passphrase for this device: ")
    answer("secret")  # it is too short
    until("of 8 characters")
    until("Passphrase for this device: ")
    answer("no secret")
    until("Repeat it: ")
    answer("different")
    until("They differ")
    until("Passphrase for this device: ")
    answer("no secret")
    until("Repeat it: ")
    answer("no secret")
    sheet = until("Word ")
    words = dict(re.findall(r"(\d+) ([a-z]+)", sheet))
    assert len(words) == 24
    number = until(": ")
    answer("wrong")
    until("This is a different word")
    for turn in range(3):
        if turn:
            until("Word ")
            number = until(": ")
        else:
            until(": ")
        answer(words[number])
    until("Right. Keep them safe.")
    until("Created a new vault")
    assert "sesame 7" not in sheet
    while True:
        try:
            if not os.read(ours, 4096):
                break
        except OSError:
            break
    assert process.wait(60) == 0
    os.close(ours)


TOKEN = "the token of the server"


class Served:
    """A peer on loopback; `answer` replaces the answer to uploads."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.answer: Callable[[], web.Response] | None = None
        self.everything: Callable[[], web.Response] | None = None  # the same for all requests
        self.spec = ""

    def app(self) -> web.Application:
        @web.middleware
        async def look(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            if self.everything is not None:
                return self.everything()
            if self.answer is not None and request.method != "GET":
                return self.answer()
            return await handler(request)

        app = blocks.app(DirectoryProvider(self.folder), token=TOKEN)
        app.middlewares.insert(0, look)
        return app


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    made = Served(tmp_path / "theirs")
    monkeypatch.setenv("PEER_TOKEN", TOKEN)
    with serve(made.app) as url:
        made.spec = f"peer:{url}"
        monkeypatch.setenv("IPFSMEM_PROVIDER", made.spec)
        yield made


OWNERS = {"wallet": KEY, "no wallet": ""}


def _init(cli: Cli, owner: str, *more: str) -> Any:
    more = (*more,) if owner else (*more, "--no-wallet")
    return cli("init", "--unprotected-keys", *more, key=owner)


@pytest.mark.parametrize("owner", OWNERS.values(), ids=OWNERS)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_init_with_a_refused_upload_keeps_the_vault_and_reports_it(
    bare: Cli, peer: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str, as_json: bool
) -> None:
    monkeypatch.setenv("PEER_TOKEN", "a token of somebody else")
    result = _init(bare, owner, *(["--json"] if as_json else []))
    assert result.code == 42
    if as_json:
        words = result.json["recovery_words"]
        assert result.json["root"] is None and result.json["sync"] is None
        kind, told, advice = (result.error[name] for name in ("kind", "message", "hint"))
        assert kind == "ProviderRefused" and result.error["exit_code"] == 42
    else:
        words = [
            word
            for _, word in sorted((int(n), word) for n, word in re.findall(r"(\d+) ([a-z]+)", result.out))
        ]
        assert "Created a new vault" in result.out and result.out.count("Recovery phrase") == 1
        told, advice = result.err.splitlines()[-2:]
    assert len(words) == 24
    assert "the vault is created on this device, but not published yet: " in told and "401" in told
    assert "token is wrong" in advice and advice.endswith("Then publish it with: ipfsmem sync.")
    assert not (peer.folder / "packs").exists()
    # the vault exists and works, is not created twice, and is published when that is possible
    bare.ok("write", "tone", "--body", "direct")
    assert _init(bare, owner).code == 3
    monkeypatch.setenv("PEER_TOKEN", TOKEN)
    bare.ok("sync")
    other = Cli(tmp_path / "other", monkeypatch)
    other.ok("recover", "--unprotected-keys", stdin=" ".join(words).encode())
    assert other.ok("read", "tone", "--body").out == "direct\n"


def test_init_during_an_outage_keeps_the_vault_and_reports_it(bare: Cli, peer: Served) -> None:
    """The provider answers the lookup and refuses the upload."""
    peer.answer = lambda: web.Response(status=503, headers={"Retry-After": "3600"})
    result = _init(bare, KEY)
    assert result.code == 41 and "Created a new vault" in result.out and "Recovery phrase" in result.out
    told, advice = result.err.splitlines()[-2:]
    assert "is created on this device, but not published yet: " in told and "503" in told
    assert advice == "When the provider can be reached: ipfsmem sync."
    peer.answer = None
    paused = bare("sync")
    assert paused.code == 41 and "accepts no requests until" in paused.err


def test_failed_publish_still_shows_the_recovery_phrase(
    bare: Cli, peer: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The phrase is stored nowhere else."""
    from ipfsmem.memory import Memory

    for number, fault in enumerate((KeyboardInterrupt(), RuntimeError("x"), OSError("x"))):

        async def sync(self: Memory, fault: BaseException = fault, **_: object) -> None:
            raise fault

        monkeypatch.setattr(Memory, "sync", sync)
        result = _init(bare, "", "--json", "-n", f"n{number}")
        assert result.code == (130, 70, 30)[number] and len(result.json["recovery_words"]) == 24


@pytest.mark.parametrize("command", ["init", "recover"])
@pytest.mark.parametrize("fault", ["down", "refused"])
def test_restore_from_an_unavailable_provider_creates_nothing(
    bare: Cli, peer: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, fault: str
) -> None:
    words = _init(bare, KEY, "--json").json["recovery_words"]
    other = Cli(tmp_path / "other", monkeypatch)
    status = 503 if fault == "down" else 403
    peer.everything = lambda: web.Response(status=status, headers={"Retry-After": "3600"})
    if command == "init":
        result = other("init", "--unprotected-keys", key=KEY)
    else:
        result = other("recover", "--unprotected-keys", stdin=" ".join(words).encode())
    assert result.code == (41 if fault == "down" else 42) and result.out == ""
    advice = result.err.splitlines()[-1]
    assert (
        advice.startswith("Nothing was created on this device. ") and "safe on this device" not in result.err
    )
    assert ("Try again when" in advice) is (fault == "down") and ("token" in advice) is (fault != "down")
    assert not other.home.exists() or not list(other.home.iterdir())
    peer.everything = None
    if command == "init":
        assert "Restored" in other.ok("init", "--unprotected-keys", key=KEY).out
    else:
        other.ok("recover", "--unprotected-keys", stdin=" ".join(words).encode())


@pytest.mark.parametrize("command", ["init", "recover"])
def test_restore_needs_only_read_access_and_publishes_later(
    bare: Cli, peer: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    words = _init(bare, KEY, "--json").json["recovery_words"]
    other = Cli(tmp_path / "other", monkeypatch)
    monkeypatch.setenv("PEER_TOKEN", "a token of somebody else")
    if command == "init":
        said = other.ok("init", "--unprotected-keys", key=KEY).out
    else:
        said = other.ok("recover", "--unprotected-keys", stdin=" ".join(words).encode()).out
    assert "Restored" in said and "not published: " in said and "ipfsmem sync" in said and "token" in said
    other.ok("write", "tone", "--body", "direct")
    other.fails(42, "sync")
    monkeypatch.setenv("PEER_TOKEN", TOKEN)
    other.ok("sync")
    bare.ok("sync")
    assert bare.ok("read", "tone", "--body").out == "direct\n"


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize("owner", ["--no-wallet", "--new-wallet"])
def test_init_with_a_mistyped_provider_creates_no_vault_or_wallet(
    bare: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str
) -> None:
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "the first one")
    given = [owner] if owner == "--no-wallet" else [owner, str(tmp_path / "wallet.json")]
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        for code, provider in (
            (3, "typo"),
            (3, "nonsense:x"),
            (41, "./not-there"),
            (41, f"peer:http://127.0.0.1:{one.getsockname()[1]}"),
        ):
            result = bare("init", *given, "--provider", provider)
            assert result.code == code and result.out == "", result
            assert (code == 3) or "Nothing was created on this device" in result.err
            assert not (tmp_path / "wallet.json").exists()
            assert not bare.home.exists() or not list(bare.home.iterdir())
    # a repeated call succeeds
    (tmp_path / "typo").mkdir()
    said = bare.ok("init", *given, "--provider", "typo", "--json").json
    assert len(said["recovery_words"]) == 24
    assert bare.ok("status", "--json").json["providers"] == [str(tmp_path / "typo")], "kept by its whole path"


def test_recover_never_creates_a_vault(bare: Cli, stick: Path, tmp_path: Path) -> None:
    """It fails and leaves the home empty."""
    bare.fails(43, "recover", "--unprotected-keys", key=KEY)
    assert not bare.home.exists() or not list(bare.home.iterdir())
    bare.fails(2, "recover", "--unprotected-keys", "--words-fd", str(pipe("x")), key=KEY)


def test_recover_accepts_the_wallet(sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    other = Cli(tmp_path / "other", monkeypatch)
    assert "Restored: 1 memory" in other.ok("recover", "--unprotected-keys", key=KEY).out
    assert other.ok("read", "tone").out == sealed.ok("read", "tone").out


def test_init_with_lost_names_requires_create_and_both_vaults_merge(
    sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pin list remains; names and packs are lost."""
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    names, packs = stick / "names", stick / "packs"
    names.rename(tmp_path / "names")
    packs.rename(tmp_path / "packs")
    packs.mkdir()
    other = Cli(tmp_path / "other", monkeypatch)
    result = other.fails(43, "init", "--unprotected-keys", key=KEY)
    assert "the search was incomplete" in result.err and "--create" in result.err
    assert not other.home.exists() or not list(other.home.iterdir())
    assert "Created a new vault" in other.ok("init", "--unprotected-keys", "--create", key=KEY).out
    other.ok("write", "role", "--body", "pilot")
    # the old packs return: the two geneses of one vault merge
    for pack in (tmp_path / "packs").iterdir():
        pack.rename(packs / pack.name)
    sealed("sync")
    other("sync")
    sealed.ok("member", "admit", key=KEY)
    for device in (other, sealed, other):
        device.ok("sync")
    for device in (sealed, other):
        assert device.ok("read", "tone", "--body").out == "direct\n"
        assert device.ok("read", "role", "--body").out == "pilot\n"


def test_public_vault_is_restored_only_with_consent(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names both kinds, and a restored public vault asks before it publishes."""
    words = bare.ok("init", "--mode", "ipfs", "--yes-public", "--json", key=KEY).json["recovery_words"]
    other = Cli(tmp_path / "other", monkeypatch)
    for command in (("init",), ("recover",)):
        result = other.fails(3, *command, "--unprotected-keys", key=KEY)
        assert "has mode ipfs" in result.err and "mode encrypted-ipfs was requested" in result.err
    assert (
        "--mode ipfs" in other.fails(3, "recover", "--unprotected-keys", stdin=" ".join(words).encode()).err
    )
    assert not other.home.exists() or not list(other.home.iterdir())
    result = other.ok("recover", "--mode", "ipfs", stdin=" ".join(words).encode())
    assert "Restored" in result.out and "sync --yes-public" in result.err
    other.ok("write", "tone", "--body", "direct")
    other.fails(31, "sync")
    other.ok("sync", "--yes-public")
    third = Cli(tmp_path / "third", monkeypatch)
    assert "Restored: 1 memory" in third.ok("init", "--mode", "ipfs", "--yes-public", key=KEY).out
    third.ok("sync")
