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
    Row("help", "there is no such command or topic", 2, "help reed", "none"),
    Row("version", "printed", 0, "version", "none"),
    Row("demo", "a claim did not hold", 1, "demo", "none", prepare=no_wallet_can_be_made),
    Row("demo", "its folder is not empty", 2, "demo --keep --dir PLAIN", "none"),
    Row("init", "made", 0, "init --mode local", "none"),
    Row("init", "made, and a file of its folder was skipped", 7, "init --mode local --memory-dir PLAIN", "none", prepare=unreadable_file),
    Row("init", "made and published", 0, "init --unprotected-keys KEY", "none"),
    Row("init", "the wallet's memory is brought back", 0, "init --home BASE/new --unprotected-keys KEY", "sealed"),
    Row("init", "the wallet has no vault of that name, but its first one", 43, "init --home BASE/new --vault work --unprotected-keys KEY", "sealed"),
    Row("init", "there is one here already", 3, "init --mode local"),
    Row("init", "the passphrase is too easy", 22, "init --passphrase-fd WEAKFD KEY", "none"),
    Row("init", "the provider cannot be reached: nothing is made", 41, "init --unprotected-keys KEY", "none", prepare=unplug),
    Row("init", "made here, and nothing could be published", 41, "init --unprotected-keys KEY", "none", prepare=full_stick),
    Row("init", "a memory of the other kind is there", 3, "init --home BASE/new --mode ipfs --unprotected-keys KEY", "sealed"),
    Row("init", "it is not said whose it is", 2, "init --unprotected-keys", "none"),
    Row("recover", "it is back", 0, "recover --home BASE/new --unprotected-keys KEY", "sealed", SAID),
    Row("recover", "it is back, and a text could not be fetched", 44, "recover --home BASE/new --unprotected-keys KEY", "sealed", prepare=damaged_text),
    Row("recover", "it is back, and a file of its folder was skipped", 7, "recover --home BASE/new --memory-dir PLAIN --unprotected-keys KEY", "sealed", prepare=unreadable_file),
    Row("recover", "these words belong to no memory there", 43, f"recover --unprotected-keys < {WORDS}", "none"),
    Row("recover", "what was typed are no recovery words", 10, "recover --unprotected-keys < one two three", "none"),
    Row("recover", "the provider cannot be reached: nothing is made", 41, "recover --unprotected-keys KEY", "none", prepare=unplug),
    Row("recover", "nothing of it can be read whole: nothing is made", 14, "recover --home BASE/new --unprotected-keys KEY", "sealed", prepare=damaged_head),
    Row("recover", "made with what can be read, as --damaged asked", 0, "recover --home BASE/new --damaged --unprotected-keys KEY", "sealed", prepare=damaged_head),
    Row("write", "written", 0, "write tone --body x"),
    Row("write", "the text stands there already", 0, "write tone --body x", before=HAS),
    Row("write", "not what was seen, or there is one already", 6, "write tone --body y --new", before=HAS),
    Row("write", "an empty text, and nobody said that it is meant", 2, "write tone -"),
    Row("write", "its type goes to a workspace, and none is named", 2, "write tone --body x --type project --by-type"),
    Row("write", "too long", 11, "write tone --file BASE/long", prepare=lambda p: (p.base / "long").write_bytes(b"x" * 983_041)),
    Row("write", "the file is not there", 4, "write tone --file BASE/none"),
    Row("write", "not a valid key or scope", 12, "write 'Not a key' --body x"),
    Row("write", "the scope is forgotten", 4, "write tone --body x --scope work", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("edit", "written", 0, "edit tone", before=HAS, prepare=editor("path.write_text(text + 'y')")),
    Row("edit", "the text is as it was", 0, "edit tone", before=HAS, prepare=editor("")),
    Row("edit", "there is no such memory", 4, "edit tone"),
    Row("edit", "the editor failed, or the text is empty", 2, "edit tone", before=HAS, prepare=editor("path.write_text('')")),
    Row("edit", "somebody else changed it meanwhile; the edited text is kept", 6, "edit tone", before=HAS, prepare=edited_meanwhile),
    Row("read", "printed", 0, "read tone", before=HAS),
    Row("read", "several scopes have it, and none was named", 2, "read tone", before=("write tone --body x --scope work", "write tone --body y --scope job")),
    Row("read", "there is no such memory, copy, root or scope", 4, "read tone"),
    Row("read", "its text is not fetched yet", 4, "read tone", "sealed", prepare=unfetched),
    Row("list", "listed, also when there is none", 0, "list"),
    Row("list", "there is no such scope", 4, "list --scope work"),
    Row("recall", "found, also when nothing is", 0, "recall tone"),
    Row("recall", "there is no word to look for", 2, "recall '?'"),
    Row("recall", "nobody who wrote here is called so", 2, "recall tone --by Mallory"),
    Row("recall", "there is no such scope", 4, "recall tone --scope work"),
    Row("explain", "said, also why it is not found", 0, "explain tone x", before=HAS),
    Row("explain", "there is no word to look for", 2, "explain tone '?'", before=HAS),
    Row("explain", "there is no such memory or scope, or its text is not here", 4, "explain tone x"),
    Row("explain", "not a valid key", 12, "explain 'Not a key' x"),
    Row("dream run", "tidied up, or proposed, also when there is nothing to do", 0, "dream run", before=TWICE_SAID),
    Row("dream run", "it is not due, and --if-due asked for that", 0, "dream run --if-due"),
    Row("dream run", "there is no such scope", 4, "dream run --scope work"),
    Row("dream run", "no model is named, or its key is not set", 3, "dream run --model"),
    Row("dream run", "somebody wrote meanwhile what it goes by, which stays", 7, "dream run", before=TWICE_SAID, prepare=written_meanwhile),
    Row("dream run", "another process is dreaming", 5, "dream run", prepare=dreaming_elsewhere),
    Row("dream show", "shown", 0, "dream show", before=(*TWICE_SAID, "dream --dry-run")),
    Row("dream show", "nothing was proposed that is not done yet", 4, "dream show"),
    Row("dream apply", "done", 0, "dream apply", before=(*TWICE_SAID, "dream --dry-run")),
    Row("dream apply", "nothing was proposed, or another proposal", 4, "dream apply"),
    Row("dream apply", "a model proposed it, and it is not said which proposal was looked at", 2, "dream apply", before=(*TWICE_SAID, "dream --dry-run"), prepare=proposed_by_a_model),
    Row("dream apply", "somebody changed what it goes by, which stays", 7, "dream apply", before=(*TWICE_SAID, "dream --dry-run", "write tone --body y")),
    Row("dream undo", "taken back", 0, "dream undo", before=(*TWICE_SAID, "dream")),
    Row("dream undo", "there is no such dream on this device", 4, "dream undo"),
    Row("dream undo", "somebody wrote since, which stays", 7, "dream undo", before=(*TWICE_SAID, "dream", "write twin --body y", "write tone --body y")),
    Row("dream list", "listed, also when there is none", 0, "dream list"),
    Row("dream list", "there is no such scope", 4, "dream list --scope work"),
    Row("dream status", "shown", 0, "dream status"),
    Row("dream status", "there is no such scope", 4, "dream status --scope work"),
    Row("dream on", "switched on, and the settings do not allow it", 7, "dream on"),
    Row("dream on", "switched on", 0, "dream on", prepare=dreams_allowed),
    Row("dream off", "switched off", 0, "dream off"),
    Row("dream off", "there is no memory", 4, "dream off", "none"),
    Row("dream abort", "it ends", 0, "dream abort", prepare=dreaming_elsewhere),
    Row("dream abort", "none is under way", 4, "dream abort"),
    Row("dream duplicates", "shown, also when there are none", 0, "dream duplicates", before=HAS),
    Row("dream duplicates", "no such share of words", 2, "dream duplicates --similarity 2"),
    Row("dream duplicates", "there is no such scope", 4, "dream duplicates --scope work"),
    Row("context", "printed, also when there is nothing", 0, "context"),
    Row("context", "the layout turn has no query, or a new session no name", 2, "context --reset"),
    Row("serve mcp", "its client closed its end", 0, "serve mcp", prepare=mcp_extra),
    Row("serve mcp", "the extra is missing, or the call is wrong", 2, "serve mcp --http nonsense"),
    Row("serve mcp", "others could reach the address, or it is taken", 3, "serve mcp --http 0.0.0.0:8788", prepare=mcp_extra),
    Row("serve mcp", "there is no memory", 4, "serve mcp", "none", prepare=mcp_extra),
    Row("serve api", "it ended with Ctrl-C", 0, "serve api --port 0", prepare=api_served),
    Row("serve api", "the token is too short", 2, "serve api --token-fd 0"),
    Row("serve api", "there is no memory", 4, "serve api", "none"),
    Row("serve api", "others could reach the address, and nobody said so", 3, "serve api --host 0.0.0.0"),
    Row("ui", "it ended with Ctrl-C", 0, "ui --no-open --port 0", prepare=page_served),
    Row("ui", "the page is not built, or there is no memory", 4, "ui --no-open", prepare=page_not_built),
    Row("ui", "the page for any host is written", 0, "ui --static BASE/site", "none", prepare=static_there),
    Row("ui", "its folder is not empty, or a place is none", 2, "ui --static BASE/site --place https://example.org", "none", prepare=static_there),
    Row("token new", "made, and printed this once", 0, "token new --right write --scope work"),
    Row("token new", "the call contradicts itself", 2, "token new --everybody"),
    Row("token list", "printed, also when there is none", 0, "token list"),
    Row("token revoke", "it opens nothing any more", 0, "token revoke abababababab", prepare=token_made),
    Row("token revoke", "there is no such token", 4, "token revoke nobody"),
    Row("list", "a scope to be read with others is none, or forgotten", 4, "list --stack work"),
    Row("timeline show", "there is no such scope", 4, "timeline show --scope work"),
    Row("conflicts", "there is no such scope", 4, "conflicts --scope work"),
    Row("export", "--as stands with what is no JSON file", 2, "export --as initrunner --dir BASE/x"),
    Row("export", "there is no such scope", 4, "export --scope work"),
    Row("vault diff", "there is no such scope", 4, "vault diff --scope work", "sealed", SAID),
    Row("forget", "forgotten here", 0, "forget tone", before=HAS),
    Row("forget", "there is no such memory", 4, "forget tone"),
    Row("forget", "not what was seen", 6, "forget tone --if-match 00000000", before=HAS),
    Row("history", "listed", 0, "history tone", before=HAS),
    Row("history", "no text of it is known", 4, "history tone"),
    Row("history", "there is no such scope", 4, "history tone --scope work"),
    Row("restore", "brought back", 0, "restore tone --root ROOT", "sealed", (*SAID, "write tone --body y")),
    Row("restore", "no such text or root", 4, "restore tone --text 0123456789", before=HAS),
    Row("restore", "it is not said which", 2, "restore tone", before=HAS),
    Row("restore", "not what was seen", 6, "restore tone --root ROOT --seen 00000000", "sealed", (*SAID, "write tone --body y")),
    Row("fact add", "remembered, in the place of another, or known already", 0, FACT),
    Row("fact add", "nothing is left of the text, it is too long, or its category is refused", 2, "fact add --category x ' - '"),
    Row("fact add", "the scope is forgotten", 4, f"{FACT} --scope work", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("fact list", "listed, also when there is none", 0, "fact list"),
    Row("fact list", "there is no such scope", 4, "fact list --scope work"),
    Row("fact edit", "changed", 0, f"fact edit {FACT_KEY} 'User likes coffee'", before=(FACT,)),
    Row("fact edit", "the text is empty", 2, f"fact edit {FACT_KEY} ''", before=(FACT,)),
    Row("fact edit", "there is no such fact", 4, "fact edit tone x", before=HAS),
    Row("fact history", "listed, also when it never changed", 0, f"fact history {FACT_KEY}", before=(FACT,)),
    Row("fact history", "there is no such entry, and never was", 4, "fact history nothing"),
    Row("fact history", "there is no such scope", 4, f"fact history {FACT_KEY} --scope work"),
    Row("fact delete", "deleted here", 0, f"fact delete {FACT_KEY}", before=(FACT,)),
    Row("fact delete", "there is no such fact", 4, f"fact delete {FACT_KEY}"),
    Row("fact restore", "brought back", 0, f"fact restore {FACT_KEY}", before=(FACT, f"fact delete {FACT_KEY}")),
    Row("fact restore", "there is no such earlier text", 4, f"fact restore {FACT_KEY}", before=(FACT,)),
    Row("serve api", "--workspace stands without the program that knows one", 2, "serve api --workspace work"),
    Row("value set", "stored", 0, VALUE),
    Row("value set", "the key has no byte or more than 256, or the value is not the JSON that --parse asks for", 2, "value set a:b '{' --parse"),
    Row("value set", "the scope is forgotten", 4, f"{VALUE} --scope work", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("value get", "printed", 0, "value get user:theme", before=(VALUE,)),
    Row("value get", "the key is invalid", 2, "value get ''"),
    Row("value get", "there is no such value, or it expired", 4, "value get user:theme"),
    Row("value list", "listed, also when there is none", 0, "value list"),
    Row("value list", "there is no such scope", 4, "value list --scope work"),
    Row("value delete", "deleted here", 0, "value delete user:theme", before=(VALUE,)),
    Row("value delete", "there is no such value", 4, "value delete user:theme"),
    Row("value clear", "deleted here, also when nothing fits a prefix or level", 0, "value clear --prefix user:", before=(VALUE,)),
    Row("value clear", "nothing says which", 2, "value clear"),
    Row("value clear", "one of the keys has no value; the others are deleted", 4, "value clear user:theme other", before=(VALUE,)),
    Row("value sweep", "swept, also when nothing expired", 0, "value sweep"),
    Row("value history", "listed, also when it never changed", 0, "value history user:theme", before=(VALUE,)),
    Row("value history", "the key never had a value", 4, "value history user:theme"),
    Row("value restore", "brought back", 0, "value restore user:theme", before=(VALUE, "value delete user:theme")),
    Row("value restore", "there is no such earlier value", 4, "value restore user:theme", before=(VALUE,)),
    Row("graph add", "made, or added to one", 0, "graph add Acme"),
    Row("graph add", "the name or an observation is none", 2, "graph add ''"),
    Row("graph relate", "joined, or joined so already", 0, "graph relate acme near bob", before=("graph add Acme", "graph add Bob")),
    Row("graph relate", "there is no such entity, or no such relation to remove", 4, "graph relate acme near bob"),
    Row("graph relate", "no relation was said", 2, "graph relate acme '' bob", before=("graph add Acme", "graph add Bob")),
    Row("graph relate", "it would have to be taken out of a person's text", 2, "graph relate note links_to acme --remove", before=("graph add Acme", "write note --body 'See [[acme]]'")),
    Row("graph list", "listed, also when there is none", 0, "graph list"),
    Row("graph list", "there is no such scope", 4, "graph list --scope work"),
    Row("graph relations", "listed", 0, "graph relations"),
    Row("graph relations", "there is no such entity", 4, "graph relations acme"),
    Row("graph search", "found, also when nothing is", 0, "graph search boat"),
    Row("graph search", "the question is empty", 2, "graph search ''"),
    Row("graph query", "listed", 0, "graph query acme", before=("graph add Acme",)),
    Row("graph query", "there is no such entity", 4, "graph query acme"),
    Row("graph path", "shown", 0, "graph path acme acme", before=("graph add Acme",)),
    Row("graph path", "there is no such entity, or no way", 4, "graph path acme bob", before=("graph add Acme", "graph add Bob")),
    Row("graph around", "shown", 0, "graph around acme", before=("graph add Acme",)),
    Row("graph around", "there is no such entity", 4, "graph around acme"),
    Row("graph export", "printed", 0, "graph export"),
    Row("graph export", "there is no such entity", 4, "graph export acme"),
    Row("graph delete", "deleted here", 0, "graph delete acme", before=("graph add Acme",)),
    Row("graph delete", "there is no such entity", 4, "graph delete acme"),
    Row("usage add", "noted", 0, "usage add --model m --cost 0.01"),
    Row("usage add", "neither provider nor model, or a number that is none", 2, "usage add"),
    Row("usage add", "the scope is forgotten", 4, "usage add --model m --scope work", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("usage show", "shown, also when nothing was noted", 0, "usage show"),
    Row("usage show", "no such day", 2, "usage show --from x"),
    Row("usage show", "there is no such scope", 4, "usage show --scope work"),
    Row("usage export", "printed", 0, "usage export"),
    Row("usage export", "no such day", 2, "usage export --to x"),
    Row("usage export", "there is no such scope", 4, "usage export --scope work"),
    Row("usage budget", "shown, also when more was spent than the settings allow", 0, "usage budget"),
    Row("usage budget", "there is no such scope", 4, "usage budget --scope work"),
    Row("config show", "shown", 0, "config show", mode="none"),
    Row("config show", "there is no such setting", 2, "config show resume", mode="none"),
    Row("config show", "the settings file cannot be used", 3, "config show", mode="none", prepare=damaged_settings),
    Row("config set", "written, or said so already", 0, "config set sessions.resume 30", mode="none", prepare=own_settings),
    Row("config set", "there is no such setting, or it does not take that", 2, "config set sessions.resume 0", mode="none", prepare=own_settings),
    Row("config set", "--vault is passed: a setting applies to all vaults of this user", 2, "config set sessions.resume 30 --vault work", mode="none", prepare=own_settings),
    Row("config set", "the settings file cannot be used", 3, "config set sessions.resume 30", mode="none", prepare=damaged_settings),
    Row("config set", "the settings file cannot be written", 30, "config set sessions.resume 30", mode="none"),
    Row("config path", "printed", 0, "config path", mode="none"),
    Row("plugin list", "listed, also when there is none", 0, "plugin list"),
    Row("plugin test", "what it gave", 0, "plugin test boats", prepare=boats_on),
    Row("plugin test", "there is no such plugin", 4, "plugin test boats"),
    Row("plugin test", "it did something wrong", 7, "plugin test boats", prepare=ill_boats_on),
    Row("plugin test", "it is not switched on, or cannot run", 3, "plugin test boats", prepare=boats_off),
    Row("hide", "hidden on this device, or in sight again", 0, "hide tone", before=HAS),
    Row("hide", "it is not said which", 2, "hide"),
    Row("hide", "there is no such memory, or it is not hidden", 4, "hide tone"),
    Row("list", "--hidden stands with what it does not know", 2, "list --hidden --tag x"),
    Row("session compact", "a model is asked for, and the settings name none", 3, "session compact chat --model", before=(CHAT,)),
    Row("scope clear", "forgotten here, also when there is nothing", 0, "scope clear --yes", before=(*HAS, CHAT)),
    Row("scope clear", "nobody was there to say yes, or nothing is left to clear", 2, "scope clear", before=HAS),
    Row("scope clear", "there is no such scope", 4, "scope clear --yes --scope work"),
    Row("scope clear", "somebody wrote meanwhile, and that stays", 7, "scope clear --yes", before=HAS, prepare=listed_then_written),
    Row("session list", "listed, also when there is none", 0, "session list"),
    Row("session list", "there is no such scope", 4, "session list --scope work"),
    Row("session list", "a session is damaged; the others are shown", 30, "session list", before=(CHAT,), prepare=damaged_session),
    Row("session info", "shown", 0, "session info chat", before=(CHAT,)),
    Row("session info", "there is no such session", 4, "session info chat"),
    Row("session create", "begun", 0, "session create chat"),
    Row("session create", "there is one already, or the name or title is none", 2, "session create chat", before=(CHAT,)),
    Row("session add", "added", 0, CHAT),
    Row("session add", "standard input holds no messages", 2, "session add chat"),
    Row("session add", "the scope is forgotten", 4, f"{CHAT.replace('chat', 'chat --scope work', 1)}", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("session resume", "printed", 0, "session resume", before=(CHAT,)),
    Row("session resume", "there is no session, or none of this name", 4, "session resume"),
    Row("session search", "found, also when nothing is", 0, "session search boat"),
    Row("session search", "the question is empty", 2, "session search ''"),
    Row("session search", "a session is damaged; the others are shown", 30, "session search boat", before=(CHAT,), prepare=damaged_session),
    Row("session export", "printed", 0, "session export chat", before=(CHAT,)),
    Row("session export", "there is no such session", 4, "session export chat"),
    Row("session compact", "compacted, also when nothing is long enough", 0, "session compact --all", before=(CHAT,)),
    Row("session compact", "a session is damaged; the others are compacted", 30, "session compact --all", before=(CHAT,), prepare=damaged_session),
    Row("session compact", "neither a session nor --all", 2, "session compact"),
    Row("session compact", "there is no such session", 4, "session compact chat"),
    Row("session status", "listed", 0, "session status", before=(CHAT,)),
    Row("session status", "there is no such scope", 4, "session status --scope work"),
    Row("session status", "a session is damaged; the others are shown", 30, "session status", before=(CHAT,), prepare=damaged_session),
    Row("session delete", "forgotten here", 0, "session delete chat --yes", before=(CHAT,)),
    Row("session delete", "forgotten here, though it was damaged", 0, "session delete torn --yes", before=(CHAT,), prepare=damaged_session),
    Row("session delete", "nobody was there to say yes", 2, "session delete chat", before=(CHAT,)),
    Row("session delete", "there is no such session", 4, "session delete chat --yes"),
    Row("scope list", "listed, also when there is none", 0, "scope list"),
    Row("scope show", "shown", 0, "scope show work", before=("write tone --body x --scope work",)),
    Row("scope show", "there is no such scope", 4, "scope show work"),
    Row("scope make", "made", 0, "scope make work"),
    Row("scope make", "there is one already", 2, "scope make work", before=("scope make work",)),
    Row("scope make", "it is forgotten", 4, "scope make work", before=("scope make work", "scope forget work --yes")),
    Row("scope make", "not a valid title", 10, "scope make work --title ''"),
    Row("scope make", "not a valid scope", 12, "scope make 'Not a scope'"),
    Row("scope into", "it is the other one now", 0, "scope into work job", before=("scope make work", "scope make job")),
    Row("scope into", "neither another scope nor --remove", 2, "scope into work", before=("scope make work",)),
    Row("scope into", "there is no such scope", 4, "scope into work job", before=("scope make work",)),
    Row("scope title", "titled", 0, "scope title work Work", before=("write tone --body x --scope work",)),
    Row("scope title", "there is no such scope", 4, "scope title work Work"),
    Row("scope forget", "forgotten here", 0, "scope forget work --yes", before=("write tone --body x --scope work",)),
    Row("scope forget", "there is no such scope, or it is forgotten already", 4, "scope forget work --yes"),
    Row("scope forget", "nobody was there to say yes", 2, "scope forget work", before=("write tone --body x --scope work",)),
    Row("scope restore", "writable again", 0, "scope restore work", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("scope restore", "writable again, but no version kept here has its texts", 7, "scope restore work", "sealed", before=("write tone --body x --scope work", "scope forget work --yes")),
    Row("scope restore", "it is not forgotten, or there is none", 4, "scope restore work"),
    Row("approve", "it is your word now", 0, "approve note", before=("import --foreign BASE/note.md",)),
    Row("approve", "all that came from there are your word now, or listed", 0, "approve --from claude-code", before=("import --foreign --from claude-code BASE/from.md",)),
    Row("approve", "there is no such memory or copy, or nothing from there", 4, "approve note"),
    Row("approve", "not one of KEY, --from, --session and --list", 2, "approve note --list"),
    Row("approve", "it stands in the other scope now", 0, "approve tone --scope work --to ''", before=("write tone --body x --scope work",)),
    Row("approve", "a text stands there that was not named", 6, "approve tone --scope work --to ''", before=("write tone --body x --scope work", "write tone --body y")),
    Row("undo", "undone", 0, "undo", before=HAS),
    Row("undo", "nothing was changed here, or somebody has written there since", 4, "undo"),
    Row("timeline add", "noted", 0, "timeline add waved"),
    Row("timeline add", "invalid event", 2, "timeline add waved count:=x"),
    Row("timeline show", "shown, also when there is nothing", 0, "timeline show"),
    Row("timeline show", "shown, but for a piece of it that is not here or damaged", 7, "timeline show", "sealed", prepare=damaged_event),
    Row("timeline show", "no such day", 2, "timeline show --since soon"),
    Row("sync", "the CAR to be taken in is none", 10, "sync --car BASE/note.md", "sealed", SAID),
    Row("sync", "the version in the CAR is of another memory: it is not used, all else is synced and told", 10, "sync --car BASE/other.car", "sealed", SAID, another_memory_saved),
    Row("sync", "the version in the CAR is of a second copy of a device, and waits", 7, "sync --car BASE/copy.car", "sealed", (), second_copy_saved),
    Row("sync", "pulled and published, or nothing waited", 0, "sync", "sealed", HAS),
    Row("sync", "one provider of several took no part; the others have everything", 7, "sync", "sealed", prepare=second_provider_gone),
    Row("sync", "a folder of plain files is not there, or a file in it could not be taken in", 7, "sync", "sealed", ("folder attach PLAIN",), lambda p: p.folder.rename(p.base / "away")),
    Row("sync", "very many texts stand under one name: what had no room was left out", 7, "sync", "sealed", prepare=no_room),
    Row("sync", "a published state cannot be read whole; the rest is joined", 14, "sync", "sealed", prepare=damaged_head),
    Row("sync", "this device was revoked, may not write, or has no key to seal with", 27, "sync", "sealed", prepare=revoked),
    Row("sync", "mode ipfs, and nobody has agreed that it becomes public", 31, "sync", "ipfs", HAS),
    Row("sync", "something that looks like a secret would become public", 32, "sync --yes-public", "ipfs", ("write tone --body 'AKIAIOSFODNN7EXAMPLE password: hunter2hunter2'",)),
    Row("sync", "no provider could be reached", 41, "sync", "sealed", prepare=unplug),
    Row("sync", "something that lives is at no provider and not here", 44, "sync", "sealed", prepare=lost_text),
    Row("sync", "a memory in mode local is not published", 2, "sync"),
    Row("sync", "no provider is chosen", 3, "sync", "sealed", ("provider remove STICK",), lambda p: p.patch.delenv("IPFSMEM_PROVIDER")),
    Row("export", "written", 0, "export --out BASE/out.json", before=HAS),
    Row("export", "written, and what is named was left out", 7, "export --out BASE/out.json", "sealed", prepare=clash),
    Row("export", "the database is damaged: what can be read of it is written, and the rest is named", 7, "export --out BASE/o.json", before=HAS, prepare=changed_state),
    Row("export", "its folder is not empty", 2, "export --dir PLAIN", before=HAS),
    Row("export", "the place cannot be written, or nothing can be read of a damaged database", 30, "export --dir BASE/note.md/x", before=HAS),
    Row("export", "written, and other scopes were left out of a blob", 7, "export --out BASE/out.json", before=("write tone --body x --scope work",)),
    Row("export", "written, and sessions that are kept on this device only were left out", 7, "export --dir BASE/out", before=HAS, prepare=session_kept_here),
    Row("export", "a page is written, and what is not published was left out", 7, "export --html BASE/o.html", "sealed", (*SAID, "write tone --body y"), shell_there),
    Row("export", "the page is not built, or nothing was published", 4, "export --html BASE/o.html", "sealed", SAID, shell_not_built),
    Row("export", "there is no such root", 4, "export --car BASE/o.car --root bafynothing", before=HAS),
    Row("import", "taken in", 0, "import BASE/note.md"),
    Row("import", "taken in, and what is named was left out", 7, "import PLAIN", prepare=lambda p: (p.folder / "bad.md").write_bytes(b"\xff\xfe")),
    Row("import", "a scope of its name is here, and nobody said what it is", 2, "import BASE/out.zip", before=("write tone --body x --scope work", "export --zip BASE/out.zip")),
    Row("import", "the scope that it would go to is forgotten", 4, "import BASE/out.zip --from-backup", before=("write tone --body x --scope work", "export --zip BASE/out.zip", "scope forget work --yes")),
    Row("import", "taken in from another program", 0, "import --from claude-code PLAIN"),
    Row("import", "from another program, and what is named was left out", 7, "import --from claude-code PLAIN", prepare=lambda p: (p.folder / "bad.md").write_bytes(b"\x00\xff\x01")),
    Row("import", "a program that is not known", 2, "import --from nobody PLAIN"),
    Row("import", "nothing of that program is there", 10, "import --from mcp-memory PLAIN"),
    Row("import", "a trial: said what would come in, and nothing is written", 0, "import PLAIN --dry-run"),
    Row("import", "a backup of which something cannot be taken in: nothing is", 7, "import PLAIN --from-backup", prepare=lambda p: (p.folder / "bad.md").write_bytes(b"\xff\xfe")),
    Row("import", "there is nothing", 4, "import BASE/nothing"),
    Row("import", "a folder in which this program keeps memories, or one around it", 2, "import BASE/around", prepare=lambda p: ((p.base / "around" / "m").mkdir(parents=True), (p.base / "around" / "m" / "state.db").touch(), (p.base / "around" / "m" / "ipfsmem.json").touch())),
    Row("import", "there is no memory in it, and --prune would forget all that is here", 2, """import - --strategy replace --prune < '{"files": {}}'""", before=HAS),
    Row("import", "not an export", 10, "import - < {}x"),
    Row("import", "called a zip or a CAR and none, or JSON that is no export", 10, "import BASE/cut.zip", prepare=lambda p: (p.base / "cut.zip").write_text("no zip")),
    Row("import", "a folder, zip or CAR without memories", 10, "import BASE/empty", prepare=lambda p: (p.base / "empty").mkdir()),
    Row("fork", "made", 0, "fork copied", before=HAS),
    Row("fork", "made, and what is named was left out", 0, "fork copied --partial", "sealed", prepare=unfetched),
    Row("fork", "something is not on this device, and nothing is made", 7, "fork copied", "sealed", prepare=unfetched),
    Row("fork", "there is a memory of that name, or the name cannot be one", 3, "fork copied", before=("fork copied",)),
    Row("fork", "it is the vault itself", 2, "fork default"),
    Row("fork", "there is no such scope", 4, "fork copied --scope none"),
    Row("open", "listed or printed", 0, "open ROOT", "ipfs", PUBLIC),
    Row("open", "an encrypted memory, or damaged", 10, "open ROOT", "sealed", SAID),
    Row("open", "there is no such memory, or nobody has it", 4, "open ROOT nothing", "ipfs", PUBLIC),
    Row("open", "the provider cannot be reached", 41, "open ROOT", "sealed", SAID, unplug),
    Row("folder attach", "attached; a folder that is not there is made", 0, "folder attach BASE/none"),
    Row("folder attach", "--dry-run: shown what would be done", 0, "folder attach PLAIN --dry-run"),
    Row("folder attach", "its files are of a git repository, and nobody can be asked", 2, "folder attach PLAIN", prepare=lambda p: (p.folder / ".git").mkdir()),
    Row("folder attach", "marked as another memory's, or no place for one", 2, "folder attach PLAIN", before=("folder attach PLAIN", "init -n b --mode local", "folder attach PLAIN -n b --take-over")),
    Row("folder attach", "attached, and a file in it could not be taken in", 7, "folder attach PLAIN", prepare=unreadable_file),
    Row("folder attach", "--dry-run: a file would be skipped", 7, "folder attach PLAIN --dry-run", prepare=unreadable_file),
    Row("folder detach", "detached, and an edit in it could not be taken in", 7, "folder detach PLAIN", before=("folder attach PLAIN",), prepare=unreadable_file),
    Row("folder detach", "detached while paused, and an edit in it was not taken in", 7, "folder detach PLAIN", before=("folder attach PLAIN",), prepare=paused_edit),
    Row("folder detach", "detached", 0, "folder detach PLAIN", before=("folder attach PLAIN",)),
    Row("folder detach", "it is no working copy of this memory", 4, "folder detach PLAIN"),
    Row("folder list", "listed", 0, "folder list"),
    Row("folder pause", "paused", 0, "folder pause PLAIN", before=("folder attach PLAIN",)),
    Row("folder pause", "it is no working copy of this memory", 4, "folder pause PLAIN"),
    Row("folder resume", "what stands there counts", 0, "folder resume --keep folder PLAIN", prepare=paused),
    Row("folder resume", "it is no working copy of this memory", 4, "folder resume --keep folder PLAIN"),
    Row("folder resume", "a file in it could not be taken in; the rest is", 7, "folder resume --keep folder PLAIN", prepare=paused_unreadable),
    Row("folder resume", "what is remembered stands there again", 0, "folder resume --keep vault PLAIN", prepare=paused),
    Row("connect", "a project's folder of memories is a working copy of its scope", 0, "connect claude-code --project PLAIN", prepare=claude_code),
    Row("connect", "a person has to say more about a project, or there is no such folder", 2, "connect claude-code --project BASE/none", prepare=claude_code),
    Row("disconnect", "that project is not connected", 4, "disconnect claude-code --project PLAIN"),
    Row("service install", "shown, or written and begun", 0, "service install", "sealed", prepare=fake_systemctl),
    Row("service install", "the file is written, and the system's service manager failed", 7, "service install", "sealed", prepare=lambda p: p.patch.setenv("PATH", str(p.base))),
    Row("service install", "a service could never sync it", 2, "service install"),
    Row("service status", "shown, also when there is none", 0, "service status"),
    Row("service uninstall", "ended, and its file removed", 0, "service uninstall", "sealed", prepare=lambda p: (fake_systemctl(p), p.ok("service install"))),
    Row("service uninstall", "there is none", 4, "service uninstall"),
    Row("hook", "whatever happens; what it could not do is shown by status", 0, "hook prompt --program claude-code"),
    Row("hook", "there is no such event", 0, "hook nonsense --program claude-code --what"),
    Row("status", "shown, whatever the state is", 0, "status"),
    Row("unlock", "unlocked", 0, "unlock --for 1m", "sealed", prepare=with_passphrase),
    Row("unlock", "the keys of this device are under no passphrase", 2, "unlock", "sealed"),
    Row("unlock", "there is no place here to hold keys", 2, "unlock", "sealed", prepare=no_place_for_keys),
    Row("unlock", "a wrong passphrase", 22, "unlock --passphrase-fd WEAKFD", "sealed", prepare=with_passphrase),
    Row("unlock", "there is no such memory", 4, "unlock", "none"),
    Row("lock", "locked, also when it was before", 0, "lock", "sealed", prepare=with_passphrase),
    Row("lock", "locked, but a working copy could not be looked at", 30, "lock", "ipfs", prepare=unlocked_and_folder_gone),
    Row("lock", "the keys of this device are under no passphrase", 2, "lock", "sealed"),
    Row("lock", "there is no such memory", 4, "lock", "none"),
    Row("vault log", "shown, also when nothing was published", 0, "vault log"),
    Row("vault log", "with --operations: shown, also when nothing fits", 0, "vault log --operations --since 1h"),
    Row("vault log", "the time is none, or what chooses among operations stands without --operations", 2, "vault log --since 1h"),
    Row("vault diff", "shown, also when nothing changed", 0, "vault diff", "sealed", SAID),
    Row("vault diff", "nothing was published, or no such root is known", 4, "vault diff"),
    Row("conflicts", "listed, also when there is none", 0, "conflicts"),
    Row("conflicts", "this memory has none", 4, "conflicts tone", before=HAS),
    Row("resolve", "settled", 0, "resolve tone --keep --seen SEEN", "sealed", prepare=clash),
    Row("resolve", "it has no conflict, or no such copy", 4, "resolve tone --keep --seen 00000000", before=HAS),
    Row("resolve", "not what was looked at", 6, "resolve tone --keep --seen 00000000", "sealed", prepare=clash),
    Row("resolve", "it is not said what was looked at, or what shall stand", 2, "resolve tone", before=HAS),
    Row("member list", "listed", 0, "member list"),
    Row("member admit", "done", 0, "member admit KEY", "sealed"),
    Row("member admit", "another wallet", 24, "member admit OTHER", "sealed"),
    Row("member admit", "this device was revoked", 26, "member admit KEY", "sealed", prepare=revoked),
    Row("member admit", "the provider cannot be reached", 41, "member admit KEY", "sealed", prepare=unplug),
    Row("member admit", "nobody was named", 2, "member admit", "sealed"),
    Row("key phrase", "made, published and shown", 0, "key phrase KEY", "sealed"),
    Row("key phrase", "made and shown; they may not work everywhere yet", 7, "key phrase KEY", "sealed", prepare=second_provider_gone),
    Row("key phrase", "the provider cannot be reached: nothing is made", 41, "key phrase KEY", "sealed", prepare=unplug),
    Row("key sheet", "printed", 0, "key sheet", "sealed"),
    Row("key sheet", "nothing brings a memory in mode local back", 2, "key sheet"),
    Row("member revoke", "out, and a new key seals", 0, "member revoke second KEY", "sealed", prepare=lambda p: p.ok("sync", device=p.other)),
    Row("member revoke", "no such member, several, or this device itself", 2, "member revoke first KEY", "sealed"),
    Row("member revoke", "a root cannot be revoked", 26, "member revoke wallet KEY", "sealed"),
    Row("member revoke", "the provider cannot be reached", 41, "member revoke second KEY", "sealed", prepare=lambda p: (p.ok("sync", device=p.other), unplug(p))),
    Row("member rotate", "a new key seals", 0, "member rotate KEY", "sealed"),
    Row("member rotate", "the provider cannot be reached", 41, "member rotate KEY", "sealed", prepare=unplug),
    Row("member rename", "called something else", 0, "member rename first laptop KEY", "sealed"),
    Row("member rename", "no such member", 2, "member rename nobody laptop KEY", "sealed"),
    Row("member rename", "not what can be a label", 2, "member rename first '' KEY", "sealed"),
    Row("member rename", "not allowed to", 26, "member rename 'recovery words' paper KEY", "sealed"),
    Row("key passphrase", "changed", 0, "key passphrase --new-passphrase-fd NEWFD", "sealed"),
    Row("key passphrase", "the old one is wrong, or the new one too easy", 22, "key passphrase --new-passphrase-fd WEAKFD", "sealed"),
    Row("key passphrase", "mode local has no keys to protect", 2, "key passphrase --new-passphrase-fd NEWFD"),
    Row("key vaults", "listed, or noted", 0, "key vaults --add work", "sealed"),
    Row("key vaults", "no name of a vault, or this memory keeps none", 2, "key vaults --add 'Not A Vault'", "sealed"),
    Row("key derive", "printed", 0, f"key derive < {KEY}", "none"),
    Row("key derive", "this is no key", 10, "key derive < 12", "none"),
    Row("provider list", "listed", 0, "provider list", "sealed"),
    Row("provider add", "noted; it is asked at the next sync", 0, "provider add USB", "sealed"),
    Row("provider add", "there is no such provider, or a setting is missing", 3, "provider add nonsense", "sealed"),
    Row("provider remove", "not used any more", 0, "provider remove STICK", "sealed"),
    Row("provider remove", "it is none of this memory", 3, "provider remove USB", "sealed"),
    Row("provider test", "it keeps what it promises", 0, "provider test USB", "none"),
    Row("provider test", "a promise was not kept, or it is not there", 40, "provider test USB", "none", prepare=full_stick),
    Row("provider policy", "printed", 0, "provider policy bucket:s3://mine/memories", "none"),
    Row("provider policy", "the provider is not limited by such a policy", 3, "provider policy USB", "none"),
    Row("provider check", "everything is there", 0, "provider check", "sealed", SAID),
    Row("provider check", "a provider could not be checked, or does not serve everything yet", 7, "provider check", "sealed", SAID, unplug),
    Row("provider check", "something is missing there", 44, "provider check", "sealed", SAID, lose_packs),
    Row("provider check", "what was missing is there again", 0, "provider check --repair", "sealed", SAID, lose_packs),
    Row("vault move", "everything is there and checked, and the old place was told", 0, "vault move USB", "sealed", SAID),
    Row("vault move", "it publishes there; a root was not brought whole, or the old place was not told", 7, "vault move USB", "sealed", prepare=old_place_gone),
    Row("vault move", "the new place cannot be reached: nothing changed", 41, "vault move BASE/none", "sealed", SAID),
    Row("provider follow", "it publishes there now", 0, "provider follow", "sealed", prepare=moved_away),
    Row("provider follow", "nobody moved it, or nothing of it is there", 4, "provider follow", "sealed"),
    Row("provider follow", "the new place cannot be reached: nothing changed", 41, "provider follow BASE/none", "sealed", prepare=moved_away),
    Row("serve peer", "it ended with Ctrl-C", 0, "serve peer USB", "none", prepare=served),
    Row("serve peer", "there is no such folder", 4, "serve peer BASE/none", "none"),
    Row("serve peer", "the token is too short", 2, "serve peer USB --token-fd 0", "none"),
    Row("serve peer", "others could reach it, and nobody said that they may", 3, "serve peer USB --host 0.0.0.0", "none"),
    Row("connect", "later projects are followed without all of now", 2, "connect claude-code --follow", prepare=claude_code),
    Row("connect", "connected", 0, "connect claude-code", prepare=claude_code),
    Row("connect", "shown, and nothing written", 0, "connect claude-code --dry-run", prepare=claude_code),
    Row("connect", "the program is not here", 4, "connect claude-code", prepare=no_program),
    Row("connect", "an entry of that name by somebody else is there", 3, "connect claude-code", prepare=other_entry),
    Row("connect", "our entry was edited since", 6, "connect claude-code", prepare=edited_entry),
    Row("connect", "a file of the program cannot be read", 10, "connect claude-code", prepare=unreadable_settings),
    Row("connect", "a file of the program is read-only", 30, "connect claude-code", prepare=read_only_settings),
    Row("disconnect", "taken out, or nothing was there", 0, "disconnect claude-code", "none", prepare=no_program),
    Row("disconnect", "our entry was edited since", 6, "disconnect claude-code", prepare=edited_entry),
    Row("disconnect", "the entry there was not written from this home", 3, "disconnect claude-code", prepare=other_entry),
    Row("disconnect", "a file of the program cannot be read", 10, "disconnect claude-code", prepare=lambda p: (edited_entry(p), unreadable_settings(p))),
    Row("vault check", "nothing is lost", 0, "vault check"),
    Row("vault check", "something is lost or cannot be used", 1, "vault check", "sealed", prepare=lambda p: (revoked(p), p.run("sync"))),
    Row("vault check", "the missing files are written again", 0, "vault check --restore-files", before=HAS, prepare=unmade_files),
    Row("vault check", "--clock-is-right, and nothing has to be put right", 2, "vault check --clock-is-right"),
    Row("vault repair", "nothing is damaged", 0, "vault repair", "sealed", SAID),
    Row("vault repair", "nothing is damaged where it could look; a provider took no part", 7, "vault repair", "sealed", prepare=second_provider_gone),
    Row("vault repair", "parts still cannot be read", 14, "vault repair", "sealed", prepare=damaged_head),
    Row("vault repair", "nothing of that name can be picked", 4, "vault repair --pick nothing", "sealed", SAID),
    Row("vault repair", "the provider cannot be reached", 41, "vault repair", "sealed", prepare=unplug),
    Row("vault compact", "each part freed what it could, or nothing", 0, "vault compact", "sealed", SAID),
    Row("vault compact", "a provider failed", 7, "vault compact", "sealed", SAID, no_collecting),
    Row("vault compact", "a part was not done: no provider could be reached, or the disk has no room; --daily is not noted", 7, "vault compact --daily", "sealed", prepare=unplug),
    Row("vault compact", "the one part that was asked for found the database damaged, or no room on the disk", 30, "vault compact --only files", prepare=full_disk),
    Row("vault compact", "the one part that was asked for reached no provider", 41, "vault compact --only versions", "sealed", prepare=unplug),
    Row("vault compact", "leftovers younger than an hour, options of a part that --only leaves out, or versions of mode local", 2, "vault compact --older-than 5m"),
    Row("vault compact", "--drop-guarded names no guarded version", 4, "vault compact --drop-guarded nobody", "sealed", SAID),
    Row("vault list", "listed, also when there is none", 0, "vault list"),
    Row("vault remove", "deleted on this device", 0, "vault remove default --yes", "sealed", SAID),
    Row("vault remove", "something is only on this device, no provider has all of it, or nobody was there to say yes", 2, "vault remove default --yes"),
    Row("vault remove", "there is no such vault", 4, "vault remove nothing --yes"),
    Row("vault remove", "it changed meanwhile: nothing was deleted", 6, "vault remove default --yes", "sealed", SAID, written_before_removal),
    Row("vault remove", "its passphrase is wrong or missing, and --force is not given", 22, "vault remove default --yes --passphrase-fd WEAKFD", "sealed", prepare=with_passphrase),
    Row("index status", "said", 0, "index status"),
    Row("index rebuild", "made anew, where the memory is large enough", 0, "index rebuild"),
    Row("index rebuild", "the words are there; vectors could not be made", 7, "index rebuild", before=HAS, prepare=model_that_is_down),
    Row("index rebuild", "the index could not be written", 30, "index rebuild", prepare=folder_in_place_of_the_index),
    Row("format cid", "printed", 0, "format cid PLAIN", "none"),
    Row("format cid", "it is not there", 4, "format cid BASE/none", "none"),
    Row("format inspect", "shown", 0, "format inspect STICK", "sealed", SAID),
    Row("format inspect", "it is none of these", 10, "format inspect BASE/note.md", "none"),
    Row("format inspect", "it is not there", 4, "format inspect BASE/none", "none"),
)  # fmt: skip

#: Outcomes of any command on a vault, listed once.
ANY: tuple[tuple[str, int], ...] = (
    ("the call is wrong", 2),
    ("there is no memory of that name", 4),
    ("another process holds it for more than ten seconds", 5),
    ("the passphrase is missing or wrong", 22),
    ("the disk is full, its folder cannot be used, or its database is damaged", 30),
)


def table() -> str:
    """Return the rows as in docs/reference/errors.md."""
    lines = ["| command | outcome | exit code |", "| --- | --- | --- |"]
    lines += [f"| any, on a memory | {outcome} | {code} |" for outcome, code in ANY]
    lines += [f"| `{row.command}` | {row.outcome} | {row.code} |" for row in ROWS]
    return "\n".join(lines) + "\n"


__all__ = ["ANY", "ROWS", "Place", "Row", "table"]
