"""`ipfsmem vault list` and `vault remove`."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem import vaults_here
from ipfsmem.cli import secret_input, vault_remove_cmd
from ipfsmem.device.kernel_keyring import has_kernel_keyring
from ipfsmem.device.runtime_folder import runtime_folder
from ipfsmem.errors import ProviderError
from ipfsmem.memory import Memory
from tests.support.cli_lab import KEY, Cli, pipe


def still_opens(device: Cli, name: str = "default") -> bool:
    """Return whether a vault exists and opens."""
    return device("list", "--vault", name).code == 0


def test_list_names_each_vault_and_why_one_cannot_be_read(cli: Cli, sealed: Cli) -> None:
    cli.ok("init", "--vault", "notes", "--mode", "local")
    cli.ok("init", "--vault", "torn", "--mode", "local")
    (cli.home / "torn" / "ipfsmem.json").write_text("{")
    (cli.home / "empty").mkdir()
    found = {one["name"]: one for one in cli.ok("vault", "list", "--json").json}
    assert set(found) == {"default", "notes", "torn"}
    assert found["notes"]["mode"] == "local" and not found["notes"]["problem"]
    assert found["torn"]["mode"] is None and "ipfsmem.json" in found["torn"]["problem"]
    lines = cli.ok("vault", "list").out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["default", "notes", "torn"]


def test_list_of_an_empty_home_prints_a_note_and_creates_nothing(bare: Cli) -> None:
    assert bare.ok("vault", "list", "--json").json == []
    assert "No vaults in" in bare.ok("vault", "list").err and not bare.home.exists()


def test_remove_deletes_the_local_copy_and_names_the_remaining_one(
    sealed: Cli, second: Cli, stick: Path
) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    sealed.ok("recall", "direct")
    said = sealed.ok("vault", "remove", "default", "--yes")
    assert f"remains at directory:{stick}: everything is there" in said.out
    assert "Restore it with: ipfsmem recover" in said.out and not (sealed.home / "default").exists()
    assert not [path for path in sealed.home.rglob("*") if path.suffix in (".db", ".key", ".json")]
    second.ok("sync")
    assert second.ok("read", "tone", "--body").out == "direct\n"
    sealed.ok("recover", "--unprotected-keys", key=KEY)
    assert sealed.ok("read", "tone", "--body").out == "direct\n"


def test_remove_refuses_a_vault_with_unpublished_changes(sealed: Cli, stick: Path) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    assert "changes here are not published" in sealed.fails(2, "vault", "remove", "default", "--yes").err
    sealed.ok("sync")
    stick.rename(stick.with_name("away"))
    said = sealed.fails(2, "vault", "remove", "default", "--yes").err
    assert "no provider was found to have the whole vault" in said
    stick.with_name("away").rename(stick)
    for pack in (stick / "packs").iterdir():
        pack.unlink()
    said = sealed.fails(2, "vault", "remove", "default", "--yes").err
    assert "no provider was found to have the whole vault" in said
    assert sealed.ok("read", "tone", "--body").out == "direct\n"


def test_remove_refuses_a_vault_with_a_local_only_session(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("[sessions]\nhere_only = true\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(settings))
    sealed.ok("session", "add", "talk", stdin=b'{"role": "user", "content": "only here"}\n')
    sealed.ok("sync")
    assert "1 session on this device only" in sealed.fails(2, "vault", "remove", "default", "--yes").err
    assert "only here" in sealed.ok("session", "export", "talk").out
    sealed.ok("vault", "remove", "default", "--yes", "--force")


def test_remove_refuses_a_vault_that_no_new_device_can_find(sealed: Cli, stick: Path) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    shutil.rmtree(stick / "pins")
    shutil.rmtree(stick / "names")
    said = sealed.fails(2, "vault", "remove", "default", "--yes").err
    assert "no provider leads a new device to it" in said and still_opens(sealed)
    sealed.ok("sync")
    sealed.ok("vault", "remove", "default", "--yes")
    sealed.ok("recover", "--unprotected-keys", key=KEY)
    assert sealed.ok("read", "tone", "--body").out == "direct\n"


@pytest.mark.parametrize("lost", ["pins", "names"])
def test_remove_accepts_a_provider_without_its_pin_list_or_its_names(
    sealed: Cli, stick: Path, lost: str
) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    shutil.rmtree(stick / lost)
    sealed.ok("vault", "remove", "default", "--yes")
    sealed.ok("recover", "--unprotected-keys", key=KEY)
    assert sealed.ok("read", "tone", "--body").out == "direct\n"


def test_remove_refuses_a_vault_with_an_unpublished_revoke(
    sealed: Cli, second: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object, **__: object) -> None:
        raise ProviderError("full")

    sealed.ok("sync")
    with monkeypatch.context() as patch:
        patch.setattr(DirectoryProvider, "put_car", full)
        sealed.fails(40, "member", "revoke", "second", key=KEY)
    said = sealed.fails(2, "vault", "remove", "default", "--yes").err
    assert "a change of the members is not published" in said and still_opens(sealed)
    assert "unpublished change of the members; run ipfsmem sync" in sealed.ok("status").out
    found = sealed.ok("status", "--json").json
    assert found["unpublished"] and found["waiting"] == ["a change of the members"]
    sealed.ok("sync")
    assert "no unpublished changes" in sealed.ok("status").out
    sealed.ok("vault", "remove", "default", "--yes")
    assert second("sync").code != 0


def test_remove_with_files_leaves_plain_files_missing_in_the_vault(
    bare: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare.ok("init", "--mode", "ipfs", "--yes-public", "--unprotected-keys", key=KEY)
    bare.ok("write", "tone", "--body", "direct")
    bare.ok("write", "late", "--body", "first")
    bare.ok("sync", "--yes-public")
    own = bare.home / "default" / "memory"
    (own / "photo.png").write_bytes(b"mine")
    move = vaults_here._move_away

    def moved(folder: Path) -> Path:
        (own / "late.md").write_text("written at the last moment\n")
        return move(folder)

    monkeypatch.setattr(vaults_here, "_move_away", moved)
    said = bare.ok("vault", "remove", "default", "--yes", "--files").out
    assert f"stays: {own}" in said
    assert sorted(path.name for path in own.iterdir()) == ["late.md", "photo.png"]
    assert (own / "late.md").read_text() == "written at the last moment\n"


def test_remove_with_files_keeps_an_edit_made_during_the_question(
    bare: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare.ok("init", "--mode", "ipfs", "--yes-public", "--unprotected-keys", key=KEY)
    bare.ok("write", "tone", "--body", "direct")
    bare.ok("sync", "--yes-public")
    file, agree = bare.home / "default" / "memory" / "tone.md", vault_remove_cmd._agree

    def agreed(*given: object) -> None:
        agree(*given)  # type: ignore[arg-type]
        file.write_text(file.read_text() + "one more line\n")

    monkeypatch.setattr(vault_remove_cmd, "_agree", agreed)
    bare.fails(6, "vault", "remove", "default", "--yes", "--files")
    assert bare.ok("read", "tone", "--body").out == "direct\none more line\n"


def test_remove_leaves_a_folder_with_the_suffix_of_a_lock_file(cli: Cli) -> None:
    inside = cli.home / "default" / "mine.lock"
    inside.mkdir()
    (inside / "note").write_text("mine")
    assert f"stays: {inside}" in cli.ok("vault", "remove", "default", "--yes", "--force", "--files").out
    assert (inside / "note").read_text() == "mine" and not [*cli.home.glob(".removed*")]


def test_remove_ignores_a_provider_inside_the_vaults_own_folder(
    bare: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = bare.home / "default" / "published"
    inside.mkdir(parents=True)
    bare.ok("init", "--unprotected-keys", "--provider", str(inside), key=KEY)
    bare.ok("write", "tone", "--body", "direct")
    bare.ok("sync")
    assert "no provider" in bare.fails(2, "vault", "remove", "default", "--yes").err
    assert still_opens(bare) and any(inside.iterdir())


def test_remove_of_a_local_vault_needs_force_and_leaves_its_plain_files(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "direct")
    assert "published nowhere (1 memory)" in cli.fails(2, "vault", "remove", "default", "--yes").err
    own = cli.home / "default" / "memory"
    assert f"stays: {own}" in cli.ok("vault", "remove", "default", "--force", "--yes").out
    assert (own / "tone.md").read_text().endswith("direct\n") and not still_opens(cli)
    cli.ok("init", "--mode", "local")
    assert cli.ok("read", "tone", "--body").out == "direct\n"
    cli.ok("vault", "remove", "default", "--force", "--yes", "--files")
    assert not (cli.home / "default").exists()


def test_remove_leaves_files_of_others_and_linked_folders(cli: Cli, tmp_path: Path) -> None:
    folder, wallet = tmp_path / "linked", cli.home / "default" / "wallet.json"
    folder.mkdir()
    cli.ok("folder", "attach", str(folder))
    cli.ok("write", "tone", "--body", "direct")
    wallet.write_text("mine")
    said = cli.ok("vault", "remove", "default", "--force", "--yes", "--files", "--json").json
    assert said["left"] == [str(wallet)] and said["folders"] == [str(folder)]
    assert wallet.read_text() == "mine" and (folder / "tone.md").exists() and not still_opens(cli)


def test_remove_answered_with_no_keeps_the_vault(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--yes" in cli.fails(2, "vault", "remove", "default", "--force").err
    monkeypatch.setattr(secret_input, "can_ask", lambda: True)
    said = cli("vault", "remove", "default", "--force", stdin=b"n\n")
    assert said.code == 8 and "lost: it is published nowhere" in said.err and still_opens(cli)
    cli.ok("vault", "remove", "default", "--force", stdin=b"y\n")
    assert not still_opens(cli)


def test_remove_refuses_an_unknown_name_two_names_and_a_link(cli: Cli, tmp_path: Path) -> None:
    cli.fails(4, "vault", "remove", "none", "--yes", "--force")
    assert "name two vaults" in cli.fails(2, "vault", "remove", "none", "--vault", "default").err
    cli.fails(3, "vault", "remove", "../default", "--yes", "--force")
    (cli.home / "other").symlink_to(cli.home / "default")
    assert "is a link" in cli.fails(2, "vault", "remove", "other", "--yes", "--force").err
    assert still_opens(cli)


def test_remove_of_a_vault_that_does_not_open_needs_force(sealed: Cli) -> None:
    sealed.ok("key", "passphrase", "--new-passphrase-fd", str(pipe("a long sentence")))
    assert "--force" in sealed.fails(22, "vault", "remove", "default", "--yes").err
    assert (sealed.home / "default" / "state.db").exists()
    said = sealed.ok("vault", "remove", "default", "--yes", "--force")
    assert "its published state is unknown" in said.out and not (sealed.home / "default").exists()


def test_remove_of_a_vault_without_its_settings_needs_force(sealed: Cli) -> None:
    (sealed.home / "default" / "ipfsmem.json").unlink()
    assert "--force" in sealed.fails(4, "vault", "remove", "default", "--yes").err
    assert (sealed.home / "default" / "state.db").exists()
    sealed.ok("vault", "remove", "default", "--yes", "--force")
    assert not (sealed.home / "default").exists()


def test_remove_locks_the_keys_that_were_unlocked(sealed: Cli) -> None:
    if not has_kernel_keyring():
        pytest.skip("no keyring of the kernel here")
    sealed.ok("key", "passphrase", "--new-passphrase-fd", str(pipe("a long sentence")))
    sealed.ok("unlock", "--passphrase-fd", str(pipe("a long sentence")))
    assert any(runtime_folder().iterdir())
    sealed.ok("vault", "remove", "default", "--yes", "--force")
    assert not any(runtime_folder().iterdir())


def test_remove_completes_an_interrupted_removal(sealed: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (sealed.home / "default" / "mine.txt").write_text("x")
    with monkeypatch.context() as patch:
        patch.setattr(vaults_here, "_delete", _killed)
        with (
            pytest.raises(KeyboardInterrupt),
            Memory.load(home=sealed.home, passphrase=False) as memory,
        ):
            vaults_here.remove_copy(memory)
    assert [path.name[:16] for path in sealed.home.glob(".removed*")] == [".removed-default"]
    assert sealed("list").code == 4
    (left,) = sealed.ok("vault", "list", "--json").json
    assert left["name"] == "default" and "its removal was interrupted" in left["problem"]
    assert "finish it: ipfsmem" in sealed.ok("vault", "list").out
    said = sealed.ok("vault", "remove", "default")
    assert "Deleted: the copy of default" in said.out and "mine.txt" in said.out
    assert "cannot be opened" not in said.out and sealed.ok("vault", "list", "--json").json == []
    assert not [*sealed.home.glob(".removed*")]
    assert [path.name for path in (sealed.home / "default").iterdir()] == ["mine.txt"]
    sealed.fails(4, "vault", "remove", "default", "--yes", "--force")


def test_remove_with_files_keeps_unattributed_files_after_interruption(
    bare: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an interruption it is unknown which files show texts of the vault."""
    bare.ok("init", "--mode", "ipfs", "--yes-public", "--unprotected-keys", key=KEY)
    bare.ok("write", "tone", "--body", "direct")
    bare.ok("sync", "--yes-public")
    (bare.home / "default" / "memory" / "mine.md").write_bytes(b"not UTF-8: \xff")

    def interrupted() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(vaults_here, "_delete", _killed)
            with pytest.raises(KeyboardInterrupt), Memory.load(home=bare.home, passphrase=False) as memory:
                vaults_here.remove_copy(memory, plain_files=True)

    interrupted()
    (away,) = bare.home.glob(".removed-default-*")
    told = bare.fails(2, "vault", "remove", "default", "--files", "--yes").err
    assert "--files --force" in told and (away / "memory" / "mine.md").exists()
    assert "--yes" in bare.fails(2, "vault", "remove", "default", "--files", "--force").err
    assert (away / "memory" / "mine.md").exists()
    assert "stays: " in bare.ok("vault", "remove", "default").out
    assert (bare.home / "default" / "memory" / "mine.md").exists()


def test_remove_leaves_similarly_named_folders_of_others(cli: Cli) -> None:
    aside = cli.home / ".removed-default-keep"
    (cli.home / "default").rename(aside)
    (cli.home / ".removed-a-0123456789abcdef").write_text("a file")
    assert cli.ok("vault", "list", "--json").json == []
    cli.fails(4, "vault", "remove", "default", "--yes", "--force")
    aside.rename(cli.home / "default")
    assert cli.ok("list").code == 0


def test_interrupted_removal_adds_no_files_to_a_new_vault(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.ok("write", "tone", "--body", "old")
    (cli.home / "default" / "mine.txt").write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(vaults_here, "_delete", _killed)
        with pytest.raises(KeyboardInterrupt), Memory.load(home=cli.home) as memory:
            vaults_here.remove_copy(memory, force=True)
    cli.ok("init", "--mode", "local")
    (cli.home / "default" / "mine.txt").write_text("new")
    cli.ok("init", "--mode", "local", "--vault", "other")
    cli.ok("vault", "remove", "other", "--yes", "--force")
    assert cli.ok("list").out == "" and (cli.home / "default" / "mine.txt").read_text() == "new"
    (left,) = cli.home.glob("removed-default-*")
    assert (left / "mine.txt").read_text() == "old" and (left / "memory" / "tone.md").exists()
    assert not [*cli.home.glob(".removed*")]


@pytest.mark.parametrize("when", ["before the last look", "after it"])
def test_remove_preserves_concurrent_writes_of_another_process(
    sealed: Cli, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """An acknowledged write keeps the vault; a later one is refused."""
    agree, move = vault_remove_cmd._agree, vaults_here._move_away
    wrote: list[Exception | None] = []

    def write() -> None:
        try:
            with Memory.load(home=sealed.home, passphrase=False) as other:
                other.write("late", "text")
            wrote.append(None)
        except Exception as error:
            wrote.append(error)

    def agreed(*given: object) -> None:
        agree(*given)  # type: ignore[arg-type]
        write()

    with Memory.load(home=sealed.home, passphrase=False) as other:
        if when == "before the last look":
            monkeypatch.setattr(vault_remove_cmd, "_agree", agreed)
            sealed.fails(6, "vault", "remove", "default", "--yes")
            assert wrote == [None] and sealed.ok("read", "late", "--body").out == "text\n"
            return
        begun = threading.Thread(target=lambda: other.write("late", "text"), daemon=True)

        def moved(folder: Path) -> Path:
            # It waits for the lock that the removal holds, and then finds no folder.
            monkeypatch.setattr(threading, "excepthook", lambda found: wrote.append(found.exc_value))
            begun.start()
            return move(folder)

        monkeypatch.setattr(vaults_here, "_move_away", moved)
        sealed.ok("vault", "remove", "default", "--yes")
        begun.join()
        assert len(wrote) == 1 and isinstance(wrote[0], Exception) and not (sealed.home / "default").exists()


def _killed(*_: object, **__: object) -> list[str]:
    raise KeyboardInterrupt
