"""Every outcome of every command: the command, its situation and its exit code.

`tools/generate.py` writes the table in docs/reference/errors.md from these rows, and
tests/cli/test_outcomes.py runs each. A command that did not do what was asked never ends with 0."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from ipfsmem.cli import edit_cmd
from ipfsmem.device.tables import meta
from tests.support import prepared
from tests.support.cli_lab import KEY, OTHER_KEY, Cli, Result, pipe
from tests.support.extras import need_extra
from tests.support.plugin_lab import Lab, plugin_lab

#: Two memories with the same text.
TWICE_SAID = ("write tone --body 'It is so.'", "write twin --body 'It is so.'")
#: A session with one message.
CHAT = """session add chat < '{"role": "user", "content": "Where is the boat?"}'"""
#: A fact, and its key.
FACT, FACT_KEY = 'fact add "User likes tea"', "fact_e2f077a705af4e99"
#: A value.
VALUE = "value set user:theme dark"
#: 24 valid words that belong to no vault.
WORDS = "abandon " * 23 + "art"


class Place:
    """One device with a vault, a stick as its provider, and a working folder."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
        self.base, self.patch = base, monkeypatch
        self.stick, self.usb, self.folder = base / "stick", base / "usb", base / "plain"
        for folder in (self.stick, self.usb, self.folder):
            folder.mkdir()
        (base / "note.md").write_text("A note.\n")
        (base / "from.md").write_text("---\nsource: note:1\n---\n\nA note from elsewhere.\n")
        (self.folder / "role.md").write_text("Works on firmware.\n")
        runtime = base / "runtime"  # keys that one test unlocks must not be locked by another
        runtime.mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        monkeypatch.setenv("IPFSMEM_PROVIDER", str(self.stick))
        self.cli = Cli(base / "home", monkeypatch)
        if mode == "local":
            prepared.local(self.cli.home)
        elif mode == "ipfs":
            prepared.public(self.cli.home, self.stick)
        elif mode == "sealed":
            prepared.sealed(self.cli.home, self.stick)
        self._other: Cli | None = None

    @property
    def other(self) -> Cli:
        """Return a second device of the same wallet, created on first use."""
        if self._other is None:
            self._other = Cli(self.base / "other", self.patch)
            self._other.ok("init", "--unprotected-keys", "--label", "second", key=KEY)
        return self._other

    def root(self) -> str:
        found = self.cli.ok("vault", "log", "--json").json
        return str(found[0]["root"]) if found else "bafynone"

    def run(self, command: str, device: Cli | None = None) -> Result:
        """Run the command of a row. `KEY` and `OTHER` are piped in; names in capitals are filled in."""
        device = device or self.cli
        words = [self._filled(word) for word in _split(command)]
        key = {"KEY": KEY, "OTHER": OTHER_KEY}.get(words[-1], "")
        stdin = b""
        if "<" in words:
            at = words.index("<")
            words, stdin = words[:at], " ".join(words[at + 1 :]).encode()
        return device(*(words[:-1] if key else words), key=key, stdin=stdin)

    def ok(self, *commands: str, device: Cli | None = None) -> None:
        for command in commands:
            done = self.run(command, device)
            assert done.code == 0, (command, done)

    def _filled(self, word: str) -> str:
        if word == "ROOT":
            return self.root()
        if word == "SEEN":
            return str(self.cli.ok("conflicts", "--json").json["conflicts"][0]["seen"])
        if word == "COPY":
            return str(self.cli.ok("conflicts", "--json").json["conflicts"][0]["copies"][0]["file"])
        if word == "NEWFD":
            return str(pipe("open sesame"))
        if word == "WEAKFD":
            return str(pipe("x"))
        for name, path in (
            ("STICK", self.stick),
            ("USB", self.usb),
            ("PLAIN", self.folder),
            ("BASE", self.base),
        ):
            word = word.replace(name, str(path))
        return word


def _split(command: str) -> list[str]:
    return shlex.split(command)


Prepare = Callable[[Place], object]


class Row(NamedTuple):
    """`run` in `mode` after `before`, prepared by `prepare`, ends with `code`; `outcome` describes it."""

    command: str
    outcome: str
    code: int
    run: str
    mode: str = "local"
    before: tuple[str, ...] = ()
    prepare: Prepare | None = None


# -- what happens to a place --------------------------------------------------------------------------------------------


def fake_systemctl(place: Place) -> None:
    """A service manager that accepts every command."""
    programs = place.base / "programs"
    programs.mkdir()
    (programs / "systemctl").write_text("#!/bin/sh\nexit 0\n")
    (programs / "systemctl").chmod(0o755)
    place.patch.setenv("PATH", str(programs))
    place.patch.setenv("XDG_CONFIG_HOME", str(place.base / "settings"))


def boats_off(place: Place, code: str = "return 'It is red.'") -> Lab:
    """A plugin that is installed but not enabled."""
    lab = plugin_lab(place.base, place.patch)
    lab.install("boats", f"class Plugin:\n    def prefetch(self, query, session):\n        {code}\n")
    return lab


def boats_on(place: Place) -> None:
    """A plugin that is installed and enabled."""
    boats_off(place).switch_on("boats")


def ill_boats_on(place: Place) -> None:
    """A plugin that raises."""
    boats_off(place, "raise ValueError(query)").switch_on("boats")


def listed_then_written(place: Place) -> None:
    """Another process rewrites a memory during the first listing."""
    from ipfsmem.memory import Memory

    listed, written = Memory.list, list[bool]()

    def then_written(self: Memory, **asked: Any) -> Any:
        found = listed(self, **asked)
        if not written:
            written.append(True)
            self.write("tone", "Somebody else's.")
        return found

    place.patch.setattr(Memory, "list", then_written)


def unplug(place: Place) -> None:
    place.stick.rename(place.base / "gone")


def lose_packs(place: Place) -> None:
    for pack in (place.stick / "packs").iterdir():
        pack.unlink()


def second_provider_gone(place: Place) -> None:
    place.ok("provider add USB", "write tone --body x")
    place.usb.rename(place.base / "gone usb")


def clash(place: Place) -> None:
    """A conflict in `tone` that both devices have seen."""
    place.ok("write tone --body old", "sync")
    place.ok("sync", device=place.other)
    place.ok("write tone --body first")
    place.ok("write tone --body second", device=place.other)
    place.ok("sync")
    place.ok("sync", device=place.other)
    place.ok("sync")


def no_program(place: Place) -> None:
    """A user's folder in which no agent program has run."""
    need_extra("mcp", "mcp")
    (place.base / "user").mkdir(exist_ok=True)
    for name in ("HOME", "USERPROFILE"):
        place.patch.setenv(name, str(place.base / "user"))
    place.patch.setenv("PATH", "")


def claude_code(place: Place) -> Path:
    """A user's folder in which Claude Code has run. Return its state file."""
    no_program(place)
    state = place.base / "user" / ".claude.json"
    state.write_text('{"numStartups": 3}')
    return state


def other_entry(place: Place) -> None:
    claude_code(place).write_text('{"mcpServers": {"ipfsmem": {"command": "mine"}}}')


def edited_entry(place: Place) -> None:
    state = claude_code(place)
    place.ok("connect claude-code")
    state.write_text(state.read_text().replace("--sync", "--quiet"))


def unreadable_settings(place: Place) -> None:
    claude_code(place).write_text('{"mcpServers": ')


def read_only_settings(place: Place) -> None:
    claude_code(place).chmod(0o444)


def with_passphrase(place: Place) -> None:
    """Protect the keys of this device with a passphrase, which the environment has."""
    place.ok("key passphrase --new-passphrase-fd NEWFD")
    place.patch.setenv("IPFSMEM_PASSPHRASE", "open sesame")


def no_place_for_keys(place: Place) -> None:
    with_passphrase(place)
    place.patch.setenv("XDG_RUNTIME_DIR", str(place.base / "none"))


def unlocked_and_folder_gone(place: Place) -> None:
    with_passphrase(place)
    place.ok("folder attach PLAIN", "unlock --for 1m")
    place.folder.rename(place.base / "elsewhere")


def no_room(place: Place) -> None:
    """Two texts under one key where only one fits; this device has not seen the other's."""
    from ipfsmem.sync import join_head

    place.ok("sync", device=place.other)
    place.ok("write tone --body first")
    place.ok("write tone --body second", "sync", device=place.other)
    place.patch.setattr(join_head, "MAX_VALUES", 1)


def agent_made(place: Place) -> None:
    """An agent key `web`."""
    place.ok("agent new web KEY")


def revoked(place: Place) -> None:
    place.ok("sync", device=place.other)
    place.ok("member revoke first KEY", device=place.other)


def damaged_event(place: Place) -> None:
    """A piece of the timeline differs from the written one."""
    from tests.support.damage_lab import flip

    place.ok("timeline add remark text=x")
    flip(place.cli.home / "default", "data FROM blocks WHERE rowid=(SELECT max(rowid) FROM blocks)")


def unfetched(place: Place) -> None:
    """`tone` is known here but its text is not downloaded."""
    from ipfsmem.memory import Memory

    place.ok("write tone --body x", "sync")
    with Memory.load("default", home=place.cli.home) as memory:
        ((_, value),) = memory.replica.store.entry("m/tone").items()
        assert value.loc is not None
        with memory.replica.transaction():
            memory.replica.db.connection.execute(
                "DELETE FROM blocks WHERE digest=?", (bytes.fromhex(value.loc.sha),)
            )


def another_memory_saved(place: Place) -> None:
    """`other.car` has a version of another vault."""
    from ipfsmem.memory import Memory

    where = place.base / "another"
    where.mkdir()
    with Memory.create(
        "another", "encrypted-ipfs", provider=str(where), passphrase=False, home=place.base / "far"
    ) as memory:
        memory.write("tone", "Of another memory.")
        asyncio.run(memory.sync())
        with (place.base / "other.car").open("wb") as out:
            memory.bundles.export_published(out)


def second_copy_saved(place: Place) -> None:
    """The other device continued after its home was restored from a backup; `copy.car` has what it
    published elsewhere."""
    import shutil

    other, backup = place.other, place.base / "backup"
    place.patch.setattr("ipfsmem.device.replica.place", lambda path: "here")
    place.ok("sync", device=other)
    shutil.copytree(other.home, backup)
    place.ok("write x --body laptop", "sync", device=other)
    place.ok("sync")
    shutil.rmtree(other.home)
    backup.rename(other.home)
    place.ok("write y --body copy", "sync --provider USB", "export --car BASE/copy.car", device=other)


def lost_text(place: Place) -> None:
    unfetched(place)
    lose_packs(place)


def changed_state(place: Place) -> None:
    """An indispensable value of the database and its second copy are damaged."""
    from tests.support.damage_lab import flip_value

    for name in (meta.STATE, meta.JOURNAL_CHAIN):
        flip_value(place.cli.home / "default", name)


def damaged_head(place: Place) -> None:
    """The newest root of another device has no state, and no other device has it."""
    place.ok("write tone --body x", "sync")
    place.ok("sync", device=place.other)
    place.ok("write more --body y", device=place.other)
    place.ok("sync", device=place.other)
    from tests.support.damage_lab import damage_state

    damage_state(place.other, place.stick)


def damaged_text(place: Place) -> None:
    """One text cannot be read at the provider, and no other device is asked."""
    place.ok("write tone --body x", "sync")
    from tests.support.damage_lab import damage_text

    damage_text(place.cli, place.stick, "tone")


def moved_away(place: Place) -> None:
    place.ok("sync", device=place.other)
    place.patch.delenv("IPFSMEM_PROVIDER")
    place.ok("vault move USB", device=place.other)
    place.ok("sync")


def old_place_gone(place: Place) -> None:
    place.ok("write tone --body x", "sync")
    unplug(place)


def session_kept_here(place: Place) -> None:
    """A session that is stored on this device only."""
    from ipfsmem.memory import Memory

    file = place.base / "sessions.toml"
    file.write_text("[sessions]\nhere_only = true\n")
    place.patch.setenv("IPFSMEM_CONFIG", str(file))
    with Memory.load(home=place.base / "home") as memory:
        memory.sessions.add("torn", [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])


def damaged_session(place: Place) -> None:
    """A message of a session that is stored on this device only is damaged."""
    from ipfsmem.memory import Memory

    session_kept_here(place)
    with Memory.load(home=place.base / "home") as memory, memory.replica.transaction():
        memory.replica.db.connection.execute("UPDATE sessions_here SET row = x'00' WHERE n = 0")


def folder_in_place_of_the_index(place: Place) -> None:
    """The index cannot be written: a folder has its name."""
    from ipfsmem.device.recall_image import VERSION
    from ipfsmem.memories import search_index

    place.patch.setattr(search_index, "_FEW", 0)
    (state,) = (place.base / "home").rglob("state.db")
    (state.parent / f"recall-v{VERSION}.image" / "x").mkdir(parents=True)


def not_here(place: Place) -> None:
    (place.base / "note.md").unlink()


def full_stick(place: Place) -> None:
    from ipfsmem_providers.directory import DirectoryProvider

    from ipfsmem.errors import ProviderUnavailable

    async def full(self: DirectoryProvider, *given: object, **more: object) -> object:
        raise ProviderUnavailable("no space left in folder", hint="Free space there.")

    place.patch.setattr(DirectoryProvider, "put_car", full)


def no_collecting(place: Place) -> None:
    from ipfsmem_providers.directory import DirectoryProvider

    from ipfsmem.errors import ProviderUnavailable

    async def fails(self: DirectoryProvider, *given: object, **more: object) -> object:
        raise ProviderUnavailable("the folder cannot be written")

    place.patch.setattr(DirectoryProvider, "collect", fails)


def paused(place: Place) -> None:
    place.ok("folder attach PLAIN", "folder pause PLAIN")


def unreadable_file(place: Place) -> None:
    (place.folder / "latin.md").write_bytes(b"caf\xe9\n")


def paused_edit(place: Place) -> None:
    paused(place)
    (place.folder / "new.md").write_bytes(b"new\n")


def paused_unreadable(place: Place) -> None:
    paused(place)
    unreadable_file(place)


def served(place: Place) -> None:
    """A server that ends as soon as it runs."""
    from ipfsmem.cli import serve_peer_cmd

    async def soon(*given: object) -> None:
        raise KeyboardInterrupt

    place.patch.setattr(serve_peer_cmd, "_serve", soon)


def api_served(place: Place) -> None:
    """An API that ends as soon as it runs."""
    from ipfsmem.cli import serve_api_cmd

    async def soon(*given: object) -> None:
        raise KeyboardInterrupt

    place.patch.setattr(serve_api_cmd, "_serve", soon)


#: Locks that are held until the test ends.
_HELD: dict[str, object] = {}


def dreaming_elsewhere(place: Place) -> None:
    from ipfsmem.device.dream_notes import dreaming

    held = dreaming(place.cli.home / "default")
    held.__enter__()
    place.patch.setitem(_HELD, "dream", held)


def written_meanwhile(place: Place) -> None:
    from ipfsmem.memories.dreams import Dreams

    keep = Dreams.keep

    def keep_then_write(self: Any, *given: Any, **named: Any) -> Any:
        kept = keep(self, *given, **named)
        for key in ("tone", "twin"):
            self._memories.write(key, b"It is another.")
        return kept

    place.patch.setattr(Dreams, "keep", keep_then_write)


def proposed_by_a_model(place: Place) -> None:
    """A proposal of `dream --dry-run`, as if by a model."""
    from ipfsmem.memories.dreams import Dreams

    proposed = Dreams.proposed

    def by_a_model(self: Any) -> Any:
        found = proposed(self)
        return found and msgspec.structs.replace(found, by="dreamer")

    place.patch.setattr(Dreams, "proposed", by_a_model)


def full_disk(place: Place) -> None:
    """A full disk."""
    import shutil

    place.patch.setattr("shutil.disk_usage", lambda path: shutil._ntuple_diskusage(100, 100, 0))


def written_before_removal(place: Place) -> None:
    """Another process writes after the question of `vault remove` was answered."""
    from ipfsmem.cli import vault_remove_cmd

    def agreed(*given: object) -> None:
        place.ok("write late --body x")

    place.patch.setattr(vault_remove_cmd, "_agree", agreed)


def own_settings(place: Place) -> None:
    """A settings file of this user without any setting."""
    file = place.base / "settings.toml"
    file.write_text("# mine\n")
    place.patch.setenv("IPFSMEM_CONFIG", str(file))


def damaged_settings(place: Place) -> None:
    own_settings(place)
    (place.base / "settings.toml").write_text("[sessions\n")


def dreams_allowed(place: Place) -> None:
    file = place.base / "dreams.toml"
    file.write_text("[dream]\nenabled = true\n")
    place.patch.setenv("IPFSMEM_CONFIG", str(file))


def model_that_is_down(place: Place) -> None:
    file = place.base / "model.toml"
    file.write_text('[embeddings]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n')
    place.patch.delenv("IPFSMEM_EMBEDDINGS")
    place.patch.setenv("IPFSMEM_CONFIG", str(file))


def page_served(place: Place) -> None:
    """A page that ends as soon as it is served."""
    from ipfsmem.api.page import PageFiles
    from ipfsmem.cli import ui_cmd

    async def soon(*given: object) -> None:
        raise KeyboardInterrupt

    place.patch.setattr(ui_cmd, "_serve", soon)
    place.patch.setattr(PageFiles, "built", lambda: PageFiles({"index.html": b""}))


def page_not_built(place: Place) -> None:
    from ipfsmem.api.page import PageFiles

    place.patch.setattr(PageFiles, "built", lambda: None)


def shell_there(place: Place) -> None:
    """A build of the page that `export --html` fills, with its marks only, and unpublished data."""
    for name in ("rescue", "static"):
        (place.base / "page" / name).mkdir(parents=True)
    marks = ("SAVED", "VAULT", "KEY_NUMBER", "LICENCES", "CAR")
    shell = " ".join(f"%IPFSMEM_{mark}%" for mark in marks)
    (place.base / "page" / "rescue" / "rescue.html").write_text(shell)
    (place.base / "page" / "static" / "licences.md").write_text("")
    place.patch.setattr("ipfsmem.files.rescue_page.BUILT", place.base / "page")


def static_there(place: Place) -> None:
    """A build of the page for any host, with its marks only."""
    top = place.base / "page" / "static"
    top.mkdir(parents=True)
    (top / "index.html").write_text('<meta name="ipfsmem-places" content="">')
    (top / "service_worker.js").write_text("ipfsmem-page-0123456789abcdef")
    place.patch.setattr("ipfsmem.files.static_page.BUILT", place.base / "page")


def shell_not_built(place: Place) -> None:
    place.patch.setattr("ipfsmem.files.rescue_page.BUILT", place.base / "none")


def token_made(place: Place) -> None:
    """A token with a known id."""
    row = {"hash": "ab" * 32, "sealed": ""}
    (place.cli.home / "default" / "tokens.json").write_text(json.dumps({"tokens": [row], "v": 1}))


def mcp_extra(place: Place) -> None:
    need_extra("mcp", "mcp_types")


def unmade_files(place: Place) -> None:
    (place.cli.home / "default" / "memory" / "tone.md").unlink()


def no_wallet_can_be_made(place: Place) -> None:
    from ipfsmem import demo
    from ipfsmem.errors import StorageError

    def fails(*given: object) -> bytes:
        raise StorageError("the disk is full")

    place.patch.setattr(demo, "create_keystore", fails)


def editor(code: str) -> Prepare:
    """An editor that runs this code on the file at `path`, whose content is `text`."""

    def prepare(place: Place) -> None:
        script = place.base / "editor.py"
        script.write_text(
            f"import pathlib, sys\npath = pathlib.Path(sys.argv[-1])\ntext = path.read_text()\n{code}\n"
        )
        place.patch.delenv("VISUAL", raising=False)
        place.patch.setenv("EDITOR", shlex.join([sys.executable, str(script)]))

    return prepare


def edited_meanwhile(place: Place) -> None:
    """An open editor while another process writes the memory."""
    (place.base / "editing").mkdir()
    place.patch.setattr(edit_cmd, "_IN_MEMORY", place.base / "editing")
    editor("path.write_text(text + 'mine')")(place)
    opens = edit_cmd._edited

    def opened(*given: Any) -> bytes:
        place.ok("write tone --body theirs")
        return opens(*given)

    place.patch.setattr(edit_cmd, "_edited", opened)


# -- the rows -----------------------------------------------------------------------------------------------------------

HAS = ("write tone --body x",)
SAID = ("write tone --body x", "sync")
PUBLIC = ("write tone --body x", "sync --yes-public")

ROWS: tuple[Row, ...] = (
    Row("help", "shown", 0, "help all", "none"),
    Row("help", "no such command or topic", 2, "help reed", "none"),
    Row("version", "printed", 0, "version", "none"),
    Row("demo", "a guarantee failed", 1, "demo", "none", prepare=no_wallet_can_be_made),
    Row("demo", "the folder is not empty", 2, "demo --keep --dir PLAIN", "none"),
    Row("init", "created", 0, "init --mode local", "none"),
    Row("init", "created; a file of its folder was skipped", 7, "init --mode local --memory-dir PLAIN", "none", prepare=unreadable_file),
    Row("init", "created and published", 0, "init --unprotected-keys KEY", "none"),
    Row("init", "the wallet's vault is restored", 0, "init --home BASE/new --unprotected-keys KEY", "sealed"),
    Row("init", "the wallet has only its first vault, not this one", 43, "init --home BASE/new --vault work --unprotected-keys KEY", "sealed"),
    Row("init", "it already exists on this device", 3, "init --mode local"),
    Row("init", "the passphrase is too weak", 22, "init --passphrase-fd WEAKFD KEY", "none"),
    Row("init", "the provider cannot be reached; nothing is created", 41, "init --unprotected-keys KEY", "none", prepare=unplug),
    Row("init", "created; the first publish failed", 41, "init --unprotected-keys KEY", "none", prepare=full_stick),
    Row("init", "the provider has a vault of the other kind", 3, "init --home BASE/new --mode ipfs --unprotected-keys KEY", "sealed"),
    Row("init", "no wallet or recovery phrase is given", 2, "init --unprotected-keys", "none"),
    Row("recover", "restored", 0, "recover --home BASE/new --unprotected-keys KEY", "sealed", SAID),
    Row("recover", "restored; a text could not be fetched", 44, "recover --home BASE/new --unprotected-keys KEY", "sealed", prepare=damaged_text),
    Row("recover", "restored; a file of its folder was skipped", 7, "recover --home BASE/new --memory-dir PLAIN --unprotected-keys KEY", "sealed", prepare=unreadable_file),
    Row("recover", "no vault of this recovery phrase was found", 43, f"recover --unprotected-keys < {WORDS}", "none"),
    Row("recover", "not a valid recovery phrase", 10, "recover --unprotected-keys < one two three", "none"),
    Row("recover", "the provider cannot be reached; nothing is created", 41, "recover --unprotected-keys KEY", "none", prepare=unplug),
    Row("recover", "no version can be read completely; nothing is created", 14, "recover --home BASE/new --unprotected-keys KEY", "sealed", prepare=damaged_head),
    Row("recover", "--damaged: restored from the readable part", 0, "recover --home BASE/new --damaged --unprotected-keys KEY", "sealed", prepare=damaged_head),
    Row("write", "written", 0, "write tone --body x"),
    Row("write", "unchanged: the same text exists", 0, "write tone --body x", before=HAS),
    Row("write", "changed since it was read, or it already exists", 6, "write tone --body y --new", before=HAS),
    Row("write", "the text is empty, without confirmation", 2, "write tone -"),
    Row("write", "the type belongs to a workspace, and none is given", 2, "write tone --body x --type project --by-type"),
    Row("write", "too long", 11, "write tone --file BASE/long", prepare=lambda p: (p.base / "long").write_bytes(b"x" * 983_041)),
    Row("write", "no such file", 4, "write tone --file BASE/none"),
    Row("write", "invalid key or scope", 12, "write 'Not a key' --body x"),
    Row("write", "the scope is forgotten", 4, "write tone --body x --scope work", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("edit", "written", 0, "edit tone", before=HAS, prepare=editor("path.write_text(text + 'y')")),
    Row("edit", "the text is unchanged", 0, "edit tone", before=HAS, prepare=editor("")),
    Row("edit", "no such memory", 4, "edit tone"),
    Row("edit", "the editor failed, or the text is empty", 2, "edit tone", before=HAS, prepare=editor("path.write_text('')")),
    Row("edit", "changed meanwhile; the edited text is saved to a file", 6, "edit tone", before=HAS, prepare=edited_meanwhile),
    Row("read", "printed", 0, "read tone", before=HAS),
    Row("read", "several scopes have it, and none is given", 2, "read tone", before=("write tone --body x --scope work", "write tone --body y --scope job")),
    Row("read", "no such memory, alternative, root or scope", 4, "read tone"),
    Row("read", "the text is not on this device yet", 4, "read tone", "sealed", prepare=unfetched),
    Row("list", "listed, even if empty", 0, "list"),
    Row("list", "no such scope", 4, "list --scope work"),
    Row("recall", "searched, even without hits", 0, "recall tone"),
    Row("recall", "the query has no words", 2, "recall '?'"),
    Row("recall", "no such writer", 2, "recall tone --by Mallory"),
    Row("recall", "no such scope", 4, "recall tone --scope work"),
    Row("explain", "explained, even if it does not match", 0, "explain tone x", before=HAS),
    Row("explain", "the query has no words", 2, "explain tone '?'", before=HAS),
    Row("explain", "no such memory or scope, or its text is not on this device", 4, "explain tone x"),
    Row("explain", "invalid key", 12, "explain 'Not a key' x"),
    Row("dream run", "applied or proposed, even without changes", 0, "dream run", before=TWICE_SAID),
    Row("dream run", "--if-due: not due yet", 0, "dream run --if-due"),
    Row("dream run", "no such scope", 4, "dream run --scope work"),
    Row("dream run", "no model is configured, or its key is not set", 3, "dream run --model"),
    Row("dream run", "a text changed meanwhile and is kept", 7, "dream run", before=TWICE_SAID, prepare=written_meanwhile),
    Row("dream run", "another process is dreaming", 5, "dream run", prepare=dreaming_elsewhere),
    Row("dream show", "shown", 0, "dream show", before=(*TWICE_SAID, "dream --dry-run")),
    Row("dream show", "no open proposal", 4, "dream show"),
    Row("dream apply", "done", 0, "dream apply", before=(*TWICE_SAID, "dream --dry-run")),
    Row("dream apply", "no proposal, or another one", 4, "dream apply"),
    Row("dream apply", "proposed by a model, and no reviewed proposal is given", 2, "dream apply", before=(*TWICE_SAID, "dream --dry-run"), prepare=proposed_by_a_model),
    Row("dream apply", "a text changed since and is kept", 7, "dream apply", before=(*TWICE_SAID, "dream --dry-run", "write tone --body y")),
    Row("dream undo", "undone", 0, "dream undo", before=(*TWICE_SAID, "dream")),
    Row("dream undo", "no such dream on this device", 4, "dream undo"),
    Row("dream undo", "a text changed since the dream and is kept", 7, "dream undo", before=(*TWICE_SAID, "dream", "write twin --body y", "write tone --body y")),
    Row("dream list", "listed, even if empty", 0, "dream list"),
    Row("dream list", "no such scope", 4, "dream list --scope work"),
    Row("dream status", "shown", 0, "dream status"),
    Row("dream status", "no such scope", 4, "dream status --scope work"),
    Row("dream on", "enabled, but disabled in the settings", 7, "dream on"),
    Row("dream on", "enabled", 0, "dream on", prepare=dreams_allowed),
    Row("dream off", "disabled", 0, "dream off"),
    Row("dream off", "no vault on this device", 4, "dream off", "none"),
    Row("dream abort", "stopping", 0, "dream abort", prepare=dreaming_elsewhere),
    Row("dream abort", "none is running", 4, "dream abort"),
    Row("dream duplicates", "shown, even if empty", 0, "dream duplicates", before=HAS),
    Row("dream duplicates", "invalid similarity", 2, "dream duplicates --similarity 2"),
    Row("dream duplicates", "no such scope", 4, "dream duplicates --scope work"),
    Row("context", "printed, even if empty", 0, "context"),
    Row("context", "layout turn without a query, or a new session without a name", 2, "context --reset"),
    Row("serve mcp", "the client disconnected", 0, "serve mcp", prepare=mcp_extra),
    Row("serve mcp", "the extra is missing, or the call is invalid", 2, "serve mcp --http nonsense"),
    Row("serve mcp", "the address is not loopback, or is in use", 3, "serve mcp --http 0.0.0.0:8788", prepare=mcp_extra),
    Row("serve mcp", "no vault on this device", 4, "serve mcp", "none", prepare=mcp_extra),
    Row("serve api", "ended by Ctrl-C", 0, "serve api --port 0", prepare=api_served),
    Row("serve api", "the token is too short", 2, "serve api --token-fd 0"),
    Row("serve api", "no vault on this device", 4, "serve api", "none"),
    Row("serve api", "the address is not loopback, without confirmation", 3, "serve api --host 0.0.0.0"),
    Row("ui", "ended by Ctrl-C", 0, "ui --no-open --port 0", prepare=page_served),
    Row("ui", "the page is not built, or no vault exists", 4, "ui --no-open", prepare=page_not_built),
    Row("ui", "the static page is written", 0, "ui --static BASE/site", "none", prepare=static_there),
    Row("ui", "the folder is not empty, or an address is invalid", 2, "ui --static BASE/site --place https://example.org", "none", prepare=static_there),
    Row("token new", "created and printed once", 0, "token new --right write --scope work"),
    Row("token new", "contradictory options", 2, "token new --everybody"),
    Row("token list", "printed, even if empty", 0, "token list"),
    Row("token revoke", "revoked", 0, "token revoke abababababab", prepare=token_made),
    Row("token revoke", "no such token", 4, "token revoke nobody"),
    Row("list", "a scope of the stack does not exist or is forgotten", 4, "list --stack work"),
    Row("timeline show", "no such scope", 4, "timeline show --scope work"),
    Row("conflicts", "no such scope", 4, "conflicts --scope work"),
    Row("export", "--as without a JSON file", 2, "export --as initrunner --dir BASE/x"),
    Row("export", "no such scope", 4, "export --scope work"),
    Row("vault diff", "no such scope", 4, "vault diff --scope work", "sealed", SAID),
    Row("forget", "forgotten", 0, "forget tone", before=HAS),
    Row("forget", "no such memory", 4, "forget tone"),
    Row("forget", "changed since it was read", 6, "forget tone --if-match 00000000", before=HAS),
    Row("history", "listed", 0, "history tone", before=HAS),
    Row("history", "no known revision", 4, "history tone"),
    Row("history", "no such scope", 4, "history tone --scope work"),
    Row("restore", "restored", 0, "restore tone --root ROOT", "sealed", (*SAID, "write tone --body y")),
    Row("restore", "no such revision or root", 4, "restore tone --text 0123456789", before=HAS),
    Row("restore", "none is given", 2, "restore tone", before=HAS),
    Row("restore", "changed since it was read", 6, "restore tone --root ROOT --seen 00000000", "sealed", (*SAID, "write tone --body y")),
    Row("fact add", "added, merged, or known already", 0, FACT),
    Row("fact add", "the text is empty or too long, or its category is refused", 2, "fact add --category x ' - '"),
    Row("fact add", "the scope is forgotten", 4, f"{FACT} --scope work", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("fact list", "listed, even if empty", 0, "fact list"),
    Row("fact list", "no such scope", 4, "fact list --scope work"),
    Row("fact edit", "changed", 0, f"fact edit {FACT_KEY} 'User likes coffee'", before=(FACT,)),
    Row("fact edit", "the text is empty", 2, f"fact edit {FACT_KEY} ''", before=(FACT,)),
    Row("fact edit", "no such fact", 4, "fact edit tone x", before=HAS),
    Row("fact history", "listed, even if it never changed", 0, f"fact history {FACT_KEY}", before=(FACT,)),
    Row("fact history", "it never existed", 4, "fact history nothing"),
    Row("fact history", "no such scope", 4, f"fact history {FACT_KEY} --scope work"),
    Row("fact delete", "deleted", 0, f"fact delete {FACT_KEY}", before=(FACT,)),
    Row("fact delete", "no such fact", 4, f"fact delete {FACT_KEY}"),
    Row("fact restore", "restored", 0, f"fact restore {FACT_KEY}", before=(FACT, f"fact delete {FACT_KEY}")),
    Row("fact restore", "no such revision", 4, f"fact restore {FACT_KEY}", before=(FACT,)),
    Row("serve api", "--workspace without a program that supports it", 2, "serve api --workspace work"),
    Row("value set", "stored", 0, VALUE),
    Row("value set", "the key is not 1-256 bytes, or --parse got invalid JSON", 2, "value set a:b '{' --parse"),
    Row("value set", "the scope is forgotten", 4, f"{VALUE} --scope work", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("value get", "printed", 0, "value get user:theme", before=(VALUE,)),
    Row("value get", "the key is invalid", 2, "value get ''"),
    Row("value get", "no such value, or it expired", 4, "value get user:theme"),
    Row("value list", "listed, even if empty", 0, "value list"),
    Row("value list", "no such scope", 4, "value list --scope work"),
    Row("value delete", "deleted", 0, "value delete user:theme", before=(VALUE,)),
    Row("value delete", "no such value", 4, "value delete user:theme"),
    Row("value clear", "deleted, even if no key matches", 0, "value clear --prefix user:", before=(VALUE,)),
    Row("value clear", "no filter is given", 2, "value clear"),
    Row("value clear", "a key has no value; the others are deleted", 4, "value clear user:theme other", before=(VALUE,)),
    Row("value sweep", "expired values are deleted, even if none exist", 0, "value sweep"),
    Row("value history", "listed, even if it never changed", 0, "value history user:theme", before=(VALUE,)),
    Row("value history", "the key never had a value", 4, "value history user:theme"),
    Row("value restore", "restored", 0, "value restore user:theme", before=(VALUE, "value delete user:theme")),
    Row("value restore", "no such earlier value", 4, "value restore user:theme", before=(VALUE,)),
    Row("graph add", "created, or added to an existing entity", 0, "graph add Acme"),
    Row("graph add", "invalid name or observation", 2, "graph add ''"),
    Row("graph relate", "added, or it already exists", 0, "graph relate acme near bob", before=("graph add Acme", "graph add Bob")),
    Row("graph relate", "no such entity or relation", 4, "graph relate acme near bob"),
    Row("graph relate", "no relation is given", 2, "graph relate acme '' bob", before=("graph add Acme", "graph add Bob")),
    Row("graph relate", "the relation is part of a text that a person wrote", 2, "graph relate note links_to acme --remove", before=("graph add Acme", "write note --body 'See [[acme]]'")),
    Row("graph list", "listed, even if empty", 0, "graph list"),
    Row("graph list", "no such scope", 4, "graph list --scope work"),
    Row("graph relations", "listed", 0, "graph relations"),
    Row("graph relations", "no such entity", 4, "graph relations acme"),
    Row("graph search", "searched, even without hits", 0, "graph search boat"),
    Row("graph search", "the query is empty", 2, "graph search ''"),
    Row("graph query", "listed", 0, "graph query acme", before=("graph add Acme",)),
    Row("graph query", "no such entity", 4, "graph query acme"),
    Row("graph path", "shown", 0, "graph path acme acme", before=("graph add Acme",)),
    Row("graph path", "no such entity, or no path", 4, "graph path acme bob", before=("graph add Acme", "graph add Bob")),
    Row("graph around", "shown", 0, "graph around acme", before=("graph add Acme",)),
    Row("graph around", "no such entity", 4, "graph around acme"),
    Row("graph export", "printed", 0, "graph export"),
    Row("graph export", "no such entity", 4, "graph export acme"),
    Row("graph delete", "deleted", 0, "graph delete acme", before=("graph add Acme",)),
    Row("graph delete", "no such entity", 4, "graph delete acme"),
    Row("usage add", "recorded", 0, "usage add --model m --cost 0.01"),
    Row("usage add", "no provider or model, or an invalid number", 2, "usage add"),
    Row("usage add", "the scope is forgotten", 4, "usage add --model m --scope work", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("usage show", "shown, even if empty", 0, "usage show"),
    Row("usage show", "invalid day", 2, "usage show --from x"),
    Row("usage show", "no such scope", 4, "usage show --scope work"),
    Row("usage export", "printed", 0, "usage export"),
    Row("usage export", "invalid day", 2, "usage export --to x"),
    Row("usage export", "no such scope", 4, "usage export --scope work"),
    Row("usage budget", "shown, even if over budget", 0, "usage budget"),
    Row("usage budget", "no such scope", 4, "usage budget --scope work"),
    Row("config show", "shown", 0, "config show", mode="none"),
    Row("config show", "no such setting", 2, "config show resume", mode="none"),
    Row("config show", "the settings file is invalid", 3, "config show", mode="none", prepare=damaged_settings),
    Row("config set", "written, or already set", 0, "config set sessions.resume 30", mode="none", prepare=own_settings),
    Row("config set", "no such setting, or an invalid value", 2, "config set sessions.resume 0", mode="none", prepare=own_settings),
    Row("config set", "--vault is given: settings apply to all vaults", 2, "config set sessions.resume 30 --vault work", mode="none", prepare=own_settings),
    Row("config set", "the settings file is invalid", 3, "config set sessions.resume 30", mode="none", prepare=damaged_settings),
    Row("config set", "the settings file cannot be written", 30, "config set sessions.resume 30", mode="none"),
    Row("config path", "printed", 0, "config path", mode="none"),
    Row("plugin list", "listed, even if empty", 0, "plugin list"),
    Row("plugin test", "output shown", 0, "plugin test boats", prepare=boats_on),
    Row("plugin test", "no such plugin", 4, "plugin test boats"),
    Row("plugin test", "the plugin failed", 7, "plugin test boats", prepare=ill_boats_on),
    Row("plugin test", "the plugin is not enabled, or cannot run", 3, "plugin test boats", prepare=boats_off),
    Row("hide", "hidden on this device, or shown again", 0, "hide tone", before=HAS),
    Row("hide", "none is given", 2, "hide"),
    Row("hide", "no such memory, or it is not hidden", 4, "hide tone"),
    Row("list", "--hidden with an option that it does not support", 2, "list --hidden --tag x"),
    Row("session compact", "--model without a configured model", 3, "session compact chat --model", before=(CHAT,)),
    Row("scope clear", "forgotten, even if empty", 0, "scope clear --yes", before=(*HAS, CHAT)),
    Row("scope clear", "not confirmed, or nothing to clear", 2, "scope clear", before=HAS),
    Row("scope clear", "no such scope", 4, "scope clear --yes --scope work"),
    Row("scope clear", "a text changed meanwhile and is kept", 7, "scope clear --yes", before=HAS, prepare=listed_then_written),
    Row("session list", "listed, even if empty", 0, "session list"),
    Row("session list", "no such scope", 4, "session list --scope work"),
    Row("session list", "a session is damaged; the others are shown", 30, "session list", before=(CHAT,), prepare=damaged_session),
    Row("session info", "shown", 0, "session info chat", before=(CHAT,)),
    Row("session info", "no such session", 4, "session info chat"),
    Row("session create", "created", 0, "session create chat"),
    Row("session create", "it already exists, or the name or title is invalid", 2, "session create chat", before=(CHAT,)),
    Row("session add", "added", 0, CHAT),
    Row("session add", "standard input has no messages", 2, "session add chat"),
    Row("session add", "the scope is forgotten", 4, f"{CHAT.replace('chat', 'chat --scope work', 1)}", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("session resume", "printed", 0, "session resume", before=(CHAT,)),
    Row("session resume", "no session, or none of this name", 4, "session resume"),
    Row("session search", "searched, even without hits", 0, "session search boat"),
    Row("session search", "the query is empty", 2, "session search ''"),
    Row("session search", "a session is damaged; the others are shown", 30, "session search boat", before=(CHAT,), prepare=damaged_session),
    Row("session export", "printed", 0, "session export chat", before=(CHAT,)),
    Row("session export", "no such session", 4, "session export chat"),
    Row("session compact", "compacted, even if none is long enough", 0, "session compact --all", before=(CHAT,)),
    Row("session compact", "a session is damaged; the others are compacted", 30, "session compact --all", before=(CHAT,), prepare=damaged_session),
    Row("session compact", "neither SESSION nor --all", 2, "session compact"),
    Row("session compact", "no such session", 4, "session compact chat"),
    Row("session status", "listed", 0, "session status", before=(CHAT,)),
    Row("session status", "no such scope", 4, "session status --scope work"),
    Row("session status", "a session is damaged; the others are shown", 30, "session status", before=(CHAT,), prepare=damaged_session),
    Row("session delete", "forgotten", 0, "session delete chat --yes", before=(CHAT,)),
    Row("session delete", "forgotten, although damaged", 0, "session delete torn --yes", before=(CHAT,), prepare=damaged_session),
    Row("session delete", "not confirmed", 2, "session delete chat", before=(CHAT,)),
    Row("session delete", "no such session", 4, "session delete chat --yes"),
    Row("scope list", "listed, even if empty", 0, "scope list"),
    Row("scope show", "shown", 0, "scope show work", before=("write tone --body x --scope work",)),
    Row("scope show", "no such scope", 4, "scope show work"),
    Row("scope make", "created", 0, "scope make work"),
    Row("scope make", "it already exists", 2, "scope make work", before=("scope make work",)),
    Row("scope make", "it is forgotten", 4, "scope make work", before=("scope make work", "scope forget work --yes")),
    Row("scope make", "invalid title", 10, "scope make work --title ''"),
    Row("scope make", "invalid scope", 12, "scope make 'Not a scope'"),
    Row("scope into", "redirected to the other scope", 0, "scope into work job", before=("scope make work", "scope make job")),
    Row("scope into", "neither a target nor --remove", 2, "scope into work", before=("scope make work",)),
    Row("scope into", "no such scope", 4, "scope into work job", before=("scope make work",)),
    Row("scope title", "titled", 0, "scope title work Work", before=("write tone --body x --scope work",)),
    Row("scope title", "no such scope", 4, "scope title work Work"),
    Row("scope forget", "forgotten", 0, "scope forget work --yes", before=("write tone --body x --scope work",)),
    Row("scope forget", "no such scope, or already forgotten", 4, "scope forget work --yes"),
    Row("scope forget", "not confirmed", 2, "scope forget work", before=("write tone --body x --scope work",)),
    Row("scope restore", "writable again", 0, "scope restore work", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("scope restore", "writable again; no stored version has its texts", 7, "scope restore work", "sealed", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("scope restore", "not forgotten, or no such scope", 4, "scope restore work"),
    Row("approve", "approved", 0, "approve note", before=("import --foreign BASE/note.md",)),
    Row("approve", "all texts of that source are approved, or listed", 0, "approve --from claude-code", before=("import --foreign --from claude-code BASE/from.md",)),
    Row("approve", "no such memory or alternative, or nothing from that source", 4, "approve note"),
    Row("approve", "not exactly one of KEY, --from, --session and --list", 2, "approve note --list"),
    Row("approve", "moved to the other scope", 0, "approve tone --scope work --to ''", before=("write tone --body x --scope work",)),
    Row("approve", "the target has another text, and its hash is not given", 6, "approve tone --scope work --to ''", before=("write tone --body x --scope work", "write tone --body y")),
    Row("undo", "undone", 0, "undo", before=HAS),
    Row("undo", "nothing to undo, or the text changed since", 4, "undo"),
    Row("timeline add", "recorded", 0, "timeline add waved"),
    Row("timeline add", "invalid event", 2, "timeline add waved count:=x"),
    Row("timeline show", "shown, even if empty", 0, "timeline show"),
    Row("timeline show", "shown, except a missing or damaged part", 7, "timeline show", "sealed", prepare=damaged_event),
    Row("timeline show", "invalid day", 2, "timeline show --since soon"),
    Row("sync", "not a valid CAR", 10, "sync --car BASE/note.md", "sealed", SAID),
    Row("sync", "the CAR is of another vault; the rest is synced", 10, "sync --car BASE/other.car", "sealed", SAID, another_memory_saved),
    Row("sync", "the CAR is of a second copy of a device, and waits", 7, "sync --car BASE/copy.car", "sealed", (), second_copy_saved),
    Row("sync", "synced, or nothing to sync", 0, "sync", "sealed", HAS),
    Row("sync", "one of several providers failed; the others are complete", 7, "sync", "sealed", prepare=second_provider_gone),
    Row("sync", "a linked folder is missing, or a file could not be imported", 7, "sync", "sealed", ("folder attach PLAIN",), lambda p: p.folder.rename(p.base / "away")),
    Row("sync", "too many texts under one key; some were omitted", 7, "sync", "sealed", prepare=no_room),
    Row("sync", "a published version cannot be read completely; the rest is merged", 14, "sync", "sealed", prepare=damaged_head),
    Row("sync", "this device is revoked, read-only or without a sealing key", 27, "sync", "sealed", prepare=revoked),
    Row("sync", "mode ipfs, not confirmed as public", 31, "sync", "ipfs", HAS),
    Row("sync", "a likely secret would become public", 32, "sync --yes-public", "ipfs", ("write tone --body 'AKIAIOSFODNN7EXAMPLE password: hunter2hunter2'",)),
    Row("sync", "no provider could be reached", 41, "sync", "sealed", prepare=unplug),
    Row("sync", "live data is missing everywhere", 44, "sync", "sealed", prepare=lost_text),
    Row("sync", "mode local: nothing is published", 2, "sync"),
    Row("sync", "no provider is set", 3, "sync", "sealed", ("provider remove STICK",), lambda p: p.patch.delenv("IPFSMEM_PROVIDER")),
    Row("export", "written", 0, "export --out BASE/out.json", before=HAS),
    Row("export", "written; named items were omitted", 7, "export --out BASE/out.json", "sealed", prepare=clash),
    Row("export", "the database is damaged; the readable part is written", 7, "export --out BASE/o.json", before=HAS, prepare=changed_state),
    Row("export", "the folder is not empty", 2, "export --dir PLAIN", before=HAS),
    Row("export", "the target cannot be written, or a damaged database has no readable part", 30, "export --dir BASE/note.md/x", before=HAS),
    Row("export", "written; other scopes do not fit into a blob", 7, "export --out BASE/out.json", before=("write tone --body x --scope work",)),
    Row("export", "written; sessions of this device only were omitted", 7, "export --dir BASE/out", before=HAS, prepare=session_kept_here),
    Row("export", "the page is written; unpublished changes were omitted", 7, "export --html BASE/o.html", "sealed", (*SAID, "write tone --body y"), shell_there),
    Row("export", "the page is not built, or nothing was published", 4, "export --html BASE/o.html", "sealed", SAID, shell_not_built),
    Row("export", "no such root", 4, "export --car BASE/o.car --root bafynothing", before=HAS),
    Row("import", "imported", 0, "import BASE/note.md"),
    Row("import", "imported; named items were omitted", 7, "import PLAIN", prepare=lambda p: (p.folder / "bad.md").write_bytes(b"\xff\xfe")),
    Row("import", "a scope of that name exists, and no target is given", 2, "import BASE/out.zip", before=("write tone --body x --scope work", "export --zip BASE/out.zip")),
    Row("import", "the target scope is forgotten", 4, "import BASE/out.zip --from-backup", before=("write tone --body x --scope work", "export --zip BASE/out.zip", "scope forget work --yes")),
    Row("import", "imported from another program", 0, "import --from claude-code PLAIN"),
    Row("import", "imported from another program; named items were omitted", 7, "import --from claude-code PLAIN", prepare=lambda p: (p.folder / "bad.md").write_bytes(b"\x00\xff\x01")),
    Row("import", "unsupported program", 2, "import --from nobody PLAIN"),
    Row("import", "no data of that program", 10, "import --from mcp-memory PLAIN"),
    Row("import", "--dry-run: shown, nothing is written", 0, "import PLAIN --dry-run"),
    Row("import", "an invalid part in a backup; nothing is imported", 7, "import PLAIN --from-backup", prepare=lambda p: (p.folder / "bad.md").write_bytes(b"\xff\xfe")),
    Row("import", "no such file or folder", 4, "import BASE/nothing"),
    Row("import", "a folder of this vault, or one around it", 2, "import BASE/around", prepare=lambda p: ((p.base / "around" / "m").mkdir(parents=True), (p.base / "around" / "m" / "state.db").touch(), (p.base / "around" / "m" / "ipfsmem.json").touch())),
    Row("import", "--prune with a source without memories", 2, """import - --strategy replace --prune < '{"files": {}}'""", before=HAS),
    Row("import", "not an export", 10, "import - < {}x"),
    Row("import", "an invalid zip or CAR, or JSON that is not an export", 10, "import BASE/cut.zip", prepare=lambda p: (p.base / "cut.zip").write_text("no zip")),
    Row("import", "a folder, zip or CAR without memories", 10, "import BASE/empty", prepare=lambda p: (p.base / "empty").mkdir()),
    Row("fork", "created", 0, "fork copied", before=HAS),
    Row("fork", "created; named items were omitted", 0, "fork copied --partial", "sealed", prepare=unfetched),
    Row("fork", "a text is not on this device; nothing is created", 7, "fork copied", "sealed", prepare=unfetched),
    Row("fork", "a vault of that name exists, or the name is invalid", 3, "fork copied", before=("fork copied",)),
    Row("fork", "it is the vault itself", 2, "fork default"),
    Row("fork", "no such scope", 4, "fork copied --scope none"),
    Row("open", "listed or printed", 0, "open ROOT", "ipfs", PUBLIC),
    Row("open", "an encrypted vault, or damaged data", 10, "open ROOT", "sealed", SAID),
    Row("open", "not found at any provider", 4, "open ROOT nothing", "ipfs", PUBLIC),
    Row("open", "the provider cannot be reached", 41, "open ROOT", "sealed", SAID, unplug),
    Row("folder attach", "linked; a missing folder is created", 0, "folder attach BASE/none"),
    Row("folder attach", "--dry-run: shown, nothing is changed", 0, "folder attach PLAIN --dry-run"),
    Row("folder attach", "the files belong to a git repository, not confirmed", 2, "folder attach PLAIN", prepare=lambda p: (p.folder / ".git").mkdir()),
    Row("folder attach", "linked to another vault, or an unsuitable folder", 2, "folder attach PLAIN", before=("folder attach PLAIN", "init -n b --mode local", "folder attach PLAIN -n b --take-over")),
    Row("folder attach", "linked; a file could not be imported", 7, "folder attach PLAIN", prepare=unreadable_file),
    Row("folder attach", "--dry-run: a file would be skipped", 7, "folder attach PLAIN --dry-run", prepare=unreadable_file),
    Row("folder detach", "unlinked; an edit could not be imported", 7, "folder detach PLAIN", before=("folder attach PLAIN",), prepare=unreadable_file),
    Row("folder detach", "unlinked while paused; an edit was not imported", 7, "folder detach PLAIN", before=("folder attach PLAIN",), prepare=paused_edit),
    Row("folder detach", "unlinked", 0, "folder detach PLAIN", before=("folder attach PLAIN",)),
    Row("folder detach", "not a linked folder of this vault", 4, "folder detach PLAIN"),
    Row("folder list", "listed", 0, "folder list"),
    Row("folder pause", "paused", 0, "folder pause PLAIN", before=("folder attach PLAIN",)),
    Row("folder pause", "not a linked folder of this vault", 4, "folder pause PLAIN"),
    Row("folder resume", "resumed with the files of the folder", 0, "folder resume --keep folder PLAIN", prepare=paused),
    Row("folder resume", "not a linked folder of this vault", 4, "folder resume --keep folder PLAIN"),
    Row("folder resume", "resumed; a file could not be imported", 7, "folder resume --keep folder PLAIN", prepare=paused_unreadable),
    Row("folder resume", "resumed with the memories of the vault", 0, "folder resume --keep vault PLAIN", prepare=paused),
    Row("connect", "the project's memory folder is linked to its scope", 0, "connect claude-code --project PLAIN", prepare=claude_code),
    Row("connect", "a project needs confirmation, or no such folder", 2, "connect claude-code --project BASE/none", prepare=claude_code),
    Row("disconnect", "the project is not connected", 4, "disconnect claude-code --project PLAIN"),
    Row("service install", "shown, or written and started", 0, "service install", "sealed", prepare=fake_systemctl),
    Row("service install", "the file is written; the service manager failed", 7, "service install", "sealed", prepare=lambda p: p.patch.setenv("PATH", str(p.base))),
    Row("service install", "a service could never sync this vault", 2, "service install"),
    Row("service status", "shown, even without a service", 0, "service status"),
    Row("service uninstall", "stopped and removed", 0, "service uninstall", "sealed", prepare=lambda p: (fake_systemctl(p), p.ok("service install"))),
    Row("service uninstall", "no service", 4, "service uninstall"),
    Row("hook", "always; `status` shows failures", 0, "hook prompt --program claude-code"),
    Row("hook", "no such event", 0, "hook nonsense --program claude-code --what"),
    Row("status", "shown, in any state", 0, "status"),
    Row("unlock", "unlocked", 0, "unlock --for 1m", "sealed", prepare=with_passphrase),
    Row("unlock", "the keys of this device have no passphrase", 2, "unlock", "sealed"),
    Row("unlock", "this system cannot cache keys", 2, "unlock", "sealed", prepare=no_place_for_keys),
    Row("unlock", "wrong passphrase", 22, "unlock --passphrase-fd WEAKFD", "sealed", prepare=with_passphrase),
    Row("unlock", "no such memory", 4, "unlock", "none"),
    Row("lock", "locked, even if it was before", 0, "lock", "sealed", prepare=with_passphrase),
    Row("lock", "locked; a linked folder could not be scanned", 30, "lock", "ipfs", prepare=unlocked_and_folder_gone),
    Row("lock", "the keys of this device have no passphrase", 2, "lock", "sealed"),
    Row("lock", "no such memory", 4, "lock", "none"),
    Row("vault log", "shown, even if nothing was published", 0, "vault log"),
    Row("vault log", "--operations: shown, even without a match", 0, "vault log --operations --since 1h"),
    Row("vault log", "invalid time, or a filter without --operations", 2, "vault log --since 1h"),
    Row("vault diff", "shown, even without changes", 0, "vault diff", "sealed", SAID),
    Row("vault diff", "nothing was published, or no such root", 4, "vault diff"),
    Row("conflicts", "listed, even if empty", 0, "conflicts"),
    Row("conflicts", "the memory has no conflict", 4, "conflicts tone", before=HAS),
    Row("resolve", "resolved", 0, "resolve tone --keep --seen SEEN", "sealed", prepare=clash),
    Row("resolve", "no conflict, or no such alternative", 4, "resolve tone --keep --seen 00000000", before=HAS),
    Row("resolve", "changed since it was shown", 6, "resolve tone --keep --seen 00000000", "sealed", prepare=clash),
    Row("resolve", "--seen or the text to keep is missing", 2, "resolve tone", before=HAS),
    Row("agent new", "created, and printed once", 0, "agent new web KEY", "sealed"),
    Row("agent new", "no owner, an invalid or used name, or a role that writes", 2, "agent new web --role writer KEY", "sealed"),
    Row("agent new", "invalid credentials file, or credentials of another provider", 3, "agent new web --provider-credentials BASE/keys.toml KEY", "sealed", prepare=lambda p: (p.base / "keys.toml").write_text("[providers.pinata]\npinata_jwt = 'x'\n")),
    Row("agent new", "another wallet", 24, "agent new web OTHER", "sealed"),
    Row("agent new", "the credentials file cannot be read", 30, "agent new web --provider-credentials BASE/none KEY", "sealed"),
    Row("agent new", "the provider cannot be reached", 41, "agent new web KEY", "sealed", prepare=unplug),
    Row("agent list", "listed, even if empty", 0, "agent list", "sealed"),
    Row("agent list", "no such memory", 4, "agent list", "none"),
    Row("agent renew", "extended; the string stays the same", 0, "agent renew web", "sealed", prepare=agent_made),
    Row("agent renew", "invalid time", 2, "agent renew web --expires 3y", "sealed", prepare=agent_made),
    Row("agent renew", "no such agent key", 4, "agent renew nobody", "sealed"),
    Row("agent renew", "the agent key is revoked", 26, "agent renew web", "sealed", prepare=lambda p: (agent_made(p), p.ok("agent revoke web KEY"))),
    Row("agent renew", "the provider cannot be reached", 41, "agent renew web", "sealed", prepare=lambda p: (agent_made(p), unplug(p))),
    Row("agent revoke", "revoked; new texts have a new key", 0, "agent revoke web KEY", "sealed", prepare=agent_made),
    Row("agent revoke", "no owner was named", 2, "agent revoke web", "sealed", prepare=agent_made),
    Row("agent revoke", "no such agent key", 4, "agent revoke nobody KEY", "sealed"),
    Row("agent revoke", "already revoked", 26, "agent revoke web KEY", "sealed", prepare=lambda p: (agent_made(p), p.ok("agent revoke web KEY"))),
    Row("agent revoke", "the provider cannot be reached", 41, "agent revoke web KEY", "sealed", prepare=lambda p: (agent_made(p), unplug(p))),
    Row("member list", "listed", 0, "member list"),
    Row("member admit", "done", 0, "member admit KEY", "sealed"),
    Row("member admit", "another wallet", 24, "member admit OTHER", "sealed"),
    Row("member admit", "this device was revoked", 26, "member admit KEY", "sealed", prepare=revoked),
    Row("member admit", "the provider cannot be reached", 41, "member admit KEY", "sealed", prepare=unplug),
    Row("member admit", "no member is given", 2, "member admit", "sealed"),
    Row("key phrase", "created, published and shown", 0, "key phrase KEY", "sealed"),
    Row("key phrase", "created and shown; not published everywhere yet", 7, "key phrase KEY", "sealed", prepare=second_provider_gone),
    Row("key phrase", "the provider cannot be reached; nothing is created", 41, "key phrase KEY", "sealed", prepare=unplug),
    Row("key sheet", "printed", 0, "key sheet", "sealed"),
    Row("key sheet", "mode local: no recovery", 2, "key sheet"),
    Row("member revoke", "revoked, and the key is rotated", 0, "member revoke second KEY", "sealed", prepare=lambda p: p.ok("sync", device=p.other)),
    Row("member revoke", "no such member, several match, or this device itself", 2, "member revoke first KEY", "sealed"),
    Row("member revoke", "a root cannot be revoked", 26, "member revoke wallet KEY", "sealed"),
    Row("member revoke", "the provider cannot be reached", 41, "member revoke second KEY", "sealed", prepare=lambda p: (p.ok("sync", device=p.other), unplug(p))),
    Row("member rotate", "the key is rotated", 0, "member rotate KEY", "sealed"),
    Row("member rotate", "the provider cannot be reached", 41, "member rotate KEY", "sealed", prepare=unplug),
    Row("member rename", "renamed", 0, "member rename first laptop KEY", "sealed"),
    Row("member rename", "no such member", 2, "member rename nobody laptop KEY", "sealed"),
    Row("member rename", "invalid label", 2, "member rename first '' KEY", "sealed"),
    Row("member rename", "not allowed", 26, "member rename 'recovery words' paper KEY", "sealed"),
    Row("key passphrase", "changed", 0, "key passphrase --new-passphrase-fd NEWFD", "sealed"),
    Row("key passphrase", "the old passphrase is wrong, or the new one too weak", 22, "key passphrase --new-passphrase-fd WEAKFD", "sealed"),
    Row("key passphrase", "mode local: no keys to protect", 2, "key passphrase --new-passphrase-fd NEWFD"),
    Row("key vaults", "listed or recorded", 0, "key vaults --add work", "sealed"),
    Row("key vaults", "invalid vault name, or this vault keeps no list", 2, "key vaults --add 'Not A Vault'", "sealed"),
    Row("key derive", "printed", 0, f"key derive < {KEY}", "none"),
    Row("key derive", "not a private key", 10, "key derive < 12", "none"),
    Row("provider list", "listed", 0, "provider list", "sealed"),
    Row("provider add", "added; the next sync uses it", 0, "provider add USB", "sealed"),
    Row("provider add", "no such provider, or a setting is missing", 3, "provider add nonsense", "sealed"),
    Row("provider remove", "removed", 0, "provider remove STICK", "sealed"),
    Row("provider remove", "not a provider of this vault", 3, "provider remove USB", "sealed"),
    Row("provider test", "every declared capability works", 0, "provider test USB", "none"),
    Row("provider test", "a capability failed, or the provider does not exist", 40, "provider test USB", "none", prepare=full_stick),
    Row("provider policy", "printed", 0, "provider policy bucket:s3://mine/memories", "none"),
    Row("provider policy", "the provider has no such policy", 3, "provider policy USB", "none"),
    Row("provider check", "all data is there", 0, "provider check", "sealed", SAID),
    Row("provider check", "a provider could not be checked, or does not serve all data yet", 7, "provider check", "sealed", SAID, unplug),
    Row("provider check", "data is missing", 44, "provider check", "sealed", SAID, lose_packs),
    Row("provider check", "missing data is uploaded again", 0, "provider check --repair", "sealed", SAID, lose_packs),
    Row("vault move", "copied, verified and announced at the old provider", 0, "vault move USB", "sealed", SAID),
    Row("vault move", "moved; a root was not copied completely, or the move was not announced", 7, "vault move USB", "sealed", prepare=old_place_gone),
    Row("vault move", "the new provider cannot be reached; nothing changed", 41, "vault move BASE/none", "sealed", SAID),
    Row("provider follow", "this device publishes there now", 0, "provider follow", "sealed", prepare=moved_away),
    Row("provider follow", "the vault was not moved, or the new provider has no version", 4, "provider follow", "sealed"),
    Row("provider follow", "the new provider cannot be reached; nothing changed", 41, "provider follow BASE/none", "sealed", prepare=moved_away),
    Row("serve peer", "ended by Ctrl-C", 0, "serve peer USB", "none", prepare=served),
    Row("serve peer", "no such folder", 4, "serve peer BASE/none", "none"),
    Row("serve peer", "the token is too short", 2, "serve peer USB --token-fd 0", "none"),
    Row("serve peer", "the address is not loopback, without confirmation", 3, "serve peer USB --host 0.0.0.0", "none"),
    Row("connect", "--follow without --all", 2, "connect claude-code --follow", prepare=claude_code),
    Row("connect", "connected", 0, "connect claude-code", prepare=claude_code),
    Row("connect", "shown, nothing is written", 0, "connect claude-code --dry-run", prepare=claude_code),
    Row("connect", "the program is not installed", 4, "connect claude-code", prepare=no_program),
    Row("connect", "another entry of that name exists", 3, "connect claude-code", prepare=other_entry),
    Row("connect", "the entry was edited since", 6, "connect claude-code", prepare=edited_entry),
    Row("connect", "a settings file of the program cannot be read", 10, "connect claude-code", prepare=unreadable_settings),
    Row("connect", "a settings file of the program is read-only", 30, "connect claude-code", prepare=read_only_settings),
    Row("disconnect", "removed, or nothing to remove", 0, "disconnect claude-code", "none", prepare=no_program),
    Row("disconnect", "the entry was edited since", 6, "disconnect claude-code", prepare=edited_entry),
    Row("disconnect", "the entry was not written from this home", 3, "disconnect claude-code", prepare=other_entry),
    Row("disconnect", "a settings file of the program cannot be read", 10, "disconnect claude-code", prepare=lambda p: (edited_entry(p), unreadable_settings(p))),
    Row("vault check", "nothing is lost", 0, "vault check"),
    Row("vault check", "data is lost or cannot be used", 1, "vault check", "sealed", prepare=lambda p: (revoked(p), p.run("sync"))),
    Row("vault check", "missing files are written again", 0, "vault check --restore-files", before=HAS, prepare=unmade_files),
    Row("vault check", "--clock-is-right without need", 2, "vault check --clock-is-right"),
    Row("vault repair", "nothing is damaged", 0, "vault repair", "sealed", SAID),
    Row("vault repair", "no damage found; a provider failed", 7, "vault repair", "sealed", prepare=second_provider_gone),
    Row("vault repair", "parts still cannot be read", 14, "vault repair", "sealed", prepare=damaged_head),
    Row("vault repair", "--pick: no such text", 4, "vault repair --pick nothing", "sealed", SAID),
    Row("vault repair", "the provider cannot be reached", 41, "vault repair", "sealed", prepare=unplug),
    Row("vault compact", "each step freed space, or nothing was left", 0, "vault compact", "sealed", SAID),
    Row("vault compact", "a provider failed", 7, "vault compact", "sealed", SAID, no_collecting),
    Row("vault compact", "a step was skipped: no provider could be reached, or the disk is full", 7, "vault compact --daily", "sealed", prepare=unplug),
    Row("vault compact", "--only: the database is damaged, or the disk is full", 30, "vault compact --only files", prepare=full_disk),
    Row("vault compact", "--only: no provider could be reached", 41, "vault compact --only versions", "sealed", prepare=unplug),
    Row("vault compact", "invalid age, options of a step that --only excludes, or mode local", 2, "vault compact --older-than 5m"),
    Row("vault compact", "--drop-guarded: no such guarded version", 4, "vault compact --drop-guarded nobody", "sealed", SAID),
    Row("vault list", "listed, even if empty", 0, "vault list"),
    Row("vault remove", "deleted on this device", 0, "vault remove default --yes", "sealed", SAID),
    Row("vault remove", "data is only on this device, or not confirmed", 2, "vault remove default --yes"),
    Row("vault remove", "no such vault", 4, "vault remove nothing --yes"),
    Row("vault remove", "changed meanwhile; nothing is deleted", 6, "vault remove default --yes", "sealed", SAID, written_before_removal),
    Row("vault remove", "the passphrase is wrong or missing, without --force", 22, "vault remove default --yes --passphrase-fd WEAKFD", "sealed", prepare=with_passphrase),
    Row("index status", "shown", 0, "index status"),
    Row("index rebuild", "rebuilt, if the vault is large enough", 0, "index rebuild"),
    Row("index rebuild", "words are indexed; vectors could not be made", 7, "index rebuild", before=HAS, prepare=model_that_is_down),
    Row("index rebuild", "the index could not be written", 30, "index rebuild", prepare=folder_in_place_of_the_index),
    Row("format cid", "printed", 0, "format cid PLAIN", "none"),
    Row("format cid", "no such file", 4, "format cid BASE/none", "none"),
    Row("format inspect", "shown", 0, "format inspect STICK", "sealed", SAID),
    Row("format inspect", "not a supported file", 10, "format inspect BASE/note.md", "none"),
    Row("format inspect", "no such file", 4, "format inspect BASE/none", "none"),
)  # fmt: skip

#: Outcomes of any command on a vault, listed once.
ANY: tuple[tuple[str, int], ...] = (
    ("the call is invalid", 2),
    ("no such vault", 4),
    ("another process holds the lock for more than ten seconds", 5),
    ("the passphrase is missing or wrong", 22),
    ("the disk is full, the folder cannot be used, or the database is damaged", 30),
)


def table() -> str:
    """Return the rows as in docs/reference/errors.md."""
    lines = ["| command | outcome | exit code |", "| --- | --- | --- |"]
    lines += [f"| any, on a vault | {outcome} | {code} |" for outcome, code in ANY]
    lines += [f"| `{row.command}` | {row.outcome} | {row.code} |" for row in ROWS]
    return "\n".join(lines) + "\n"


__all__ = ["ANY", "ROWS", "Place", "Row", "table"]
