"""Wrong input to commands: one error line, perhaps a hint, no traceback, no change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli_lab import Cli
from tests.support.outcomes import Place, clash

#: A valid CID without a block.
NOBODY = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
LONG = "x" * 70_000

SEALED = (
    "vault repair extra", "vault repair --pick ''", f"vault repair --pick {LONG}", "vault repair --provider nonsense", "vault repair --pick m/tone",
    "scope show 'No Scope'", "scope show ''", "scope show timeline", "scope show 2026-01-01", f"scope show {LONG}",
    "scope title work", "scope title work ''", "scope title work 'a\nb'", f"scope title work {LONG}", "scope title none T",
    "scope forget none --yes", "scope forget 'No Scope' --yes", "scope restore work", f"scope restore none --root {NOBODY}",
    "scope restore work --root nonsense", "scope lsit",
    "session info", "session info ''", f"session info {LONG}", "session info 'a\nb'", "session create ''", f"session create {LONG}", f"session create x --title {LONG}",
    "session create x --title 'a\x1bb'", "session resume nobody", "session resume --last 0", "session resume --last x", "session search", "session search ' '",
    "session search x --limit 0", "session export nobody", "session export nobody --format pdf", "session compact", "session compact x --all", "session compact nobody",
    "session delete nobody --yes", "session add", "session add x", "session list --scope none", "session lsit", "session status --scope none",
    "dream tone", "dream --dry-run --if-due", "dream --model --if-due", "dream --scope none", "dream --dry-run extra", "dream show extra", "dream apply nothing", "dream undo nothing", "dream undo ''", f"dream undo {LONG}", "dream abort", "dream no", "dream on extra",
    "usage add", "usage add --model m --cost -1", "usage add --model m --cost nan", "usage add --model m --cost x", "usage add --model m --input -1", f"usage add --model {LONG}", "usage add --model 'a\nb'",
    "vault log --operation write", "vault log --scope work", "vault log --operations --since soon", "vault log --operations --operation ''", "vault log --operations --limit 0", f"vault log --operations --since {LONG}", "vault log --operations extra",
    "vault compact extra", "vault compact --only all", "vault compact --older-than soon", "vault compact --older-than 59m", "vault compact --older-than 0", "vault compact --only files --older-than 30d",
    "vault compact --only leftovers --daily", "vault compact --only leftovers --drop-guarded all", "vault compact --only leftovers --older-than 30d extra",
    "config show no.such", f"config show {LONG}", "config set", "config set sessions.resume", "config set sessions.resume 1 --default", "config set sessions.resume x", f"config set {LONG} 1", f"config set label {LONG}",
    "config set '' x", "config set sessions.resume 9 9", "config path extra", "config lsit",
    "usage show --by week", "usage show --from x", "usage show --from 2026-05-01 --to 2026-04-01", "usage export --to ''", "usage export --scope none", "usage budget --scope none", "usage lsit",
    "graph add", "graph add ''", f"graph add {LONG}", "graph add 'a\nb'", "graph add x --say ''", f"graph add x --say {LONG}", "graph relate x", "graph relate x y z", "graph relate '' '' ''", "graph list --scope none",
    "graph relations nobody", "graph search", "graph search ' '", "graph search x --limit 0", "graph query nobody", "graph path x", "graph path x y", "graph around nobody", "graph around x --depth 99",
    "graph export nobody", "graph export --format pdf", "graph delete nobody", "graph lsit",
    "fact add", "fact add ''", f"fact add {LONG}", "fact add x --kind rumour", "fact add x --confidence 2", "fact add x --confidence x", "fact list --limit 0", "fact list --kind x",
    "fact edit nobody x", "fact edit 'No Key' x", "fact history 'No Scope' --scope none", "fact delete nobody", "fact delete ''", "fact restore nobody",
    "fact restore nobody --number 0", "fact lsit", "value set", "value set x", "value set '' x", f"value set {LONG} x", "value set x y --ttl -1", "value set x y --level all", "value get nobody", "value delete nobody", "value clear", "value clear nobody", "value history nobody", "value restore nobody", "value restore x --number 0", "value list --level all", "value lsit", "plugin test", "plugin test nobody", "plugin test ''", f"plugin test {LONG}", "plugin test 'a\nb'", "plugin lsit", "scope clear", "scope clear extra", "scope clear --memories-only --sessions-only --yes", "scope clear --yes --scope none", "hide", "hide nobody", "hide ''", "hide 'No Key'", "hide --all", "hide x --all --back", "hide --back nobody", "list --hidden --type user", "list --hidden --stack none",
    "dream duplicates tone", "dream duplicates --similarity 0.4", "dream duplicates --similarity x", "dream duplicates --similarity nan", "dream duplicates --stack none",
    "explain", "explain tone", "explain tone '?'", "explain nothing x", "explain 'No Key' x", f"explain tone {LONG}", "explain tone x --scope none", "explain tone x --stack none",
    # A home that belongs to nobody, where a path begins.
    "folder attach ~nobody-here/x", "folder detach ~nobody-here/x", "folder pause ~nobody-here/x", "import ~nobody-here/x", "import --from claude-code ~nobody-here/x", "export --dir ~nobody-here/x",
    "export --zip ~nobody-here/x", "export --out ~nobody-here/x", "open ~nobody-here/x", "open ROOT --export ~nobody-here/x", "format inspect ~nobody-here/x", "provider add ~nobody-here/x", "demo --keep --dir ~nobody-here/x",
    "connect claude-code --project ~nobody-here/x",
    "history", "history 'No Key'", f"history {LONG}", "history nothing", "history tone --scope none", "history tone --scope 'No Scope'",
    "restore tone --root nonsense", f"restore tone --root {NOBODY}", "restore tone --text zz", "restore tone --text 0123",
    "restore tone --text 0123456789abcdef", "restore nothing --text 0123456789abcdef", "restore tone --root ''",
    "restore 'No Key' --root ROOT", "restore tone --root ROOT --seen zz", "restore tone --root ROOT --seen 12345678",
    "fork", "fork ''", "fork 'No Name'", f"fork {LONG}", "fork default", "fork copied --scope none", "fork copied extra",
    "undo tone", "approve nothing", "approve 'No Key'", "approve tone --alternative nothing", "approve tone --alternative ../tone.md", "approve",
    "key vaults --add ''", "key vaults --add 'No Vault'", "key vaults --key-number 0", "key vaults --key-number x", "key vaults --key-number 2",
    f"key vaults --add {LONG}", "key vaults extra", "member rename", "member rename first", "member rename first x", "member rename nobody x KEY",
    "key passphrase --new-passphrase-fd 999", "key passphrase --new-passphrase-fd x", "key passphrase extra", "member revoke", "member revoke '' KEY",
    "unlock extra", "unlock --for soon", "unlock --for 0", "unlock --for 9999999d", "unlock", "lock extra", "lock --for 1h",
    "provider check extra", "provider check --every 5m", "provider follow nonsense", "provider follow --decline USB",
    "provider follow BASE/none", "provider follow --decline", "folder attach BASE/home/default", "folder detach PLAIN", "folder pause PLAIN", "folder resume --keep folder", "folder resume --keep vault PLAIN",
)  # fmt: skip
TOKENS = (
    "ui extra", "ui --port x", "ui --port 99999", "ui --also ''", "ui --no-open --also default", "ui --no-open --also none", "serve api --sync --read-only",
    "token lsit", "token new extra", "token new --right all", "token new --scope 'No Scope'", "token new --scope ''", f"token new --name {LONG}", "token new --name 'a\nb'", "token new --everybody",
    "token revoke", "token revoke ''", "token revoke nobody", f"token revoke {LONG}", "serve api --host nowhere.invalid", "serve api --port x", "serve api --name ''", "serve api --also none", "serve api --also 'No Memory'", "serve api --also default",
)  # fmt: skip
LOCAL = (
    "folder attach", "folder attach ''", "folder attach BASE/note.md", "folder attach PLAIN --scope 'No Scope'", f"folder attach BASE/{'x' * 300}", "folder attach 'BASE/a\nb\x00c'",
    "folder attach BASE/home/default", "folder attach BASE/home/default/memory --scope work", "folder attach BASE/home", "folder detach", "folder detach ''", "folder detach BASE/none", "folder detach PLAIN --gone",
    "folder detach BASE/note.md", "folder pause ''", "folder pause BASE/none", "folder resume --keep folder BASE/none", "folder resume --keep vault BASE/none", "folder nothing",
    "import ''", "import --from '' PLAIN", "import --from nobody PLAIN", "import --from okf BASE/none", "import --from okf PLAIN --prune --strategy replace",
    "import --from mem0 PLAIN", "import --from claude-code PLAIN --from-backup", "import --from claude-code PLAIN --map x", "import --from mcp-memory -", f"import --from {'x' * 70_000} PLAIN", "export --to okf", "export --to nothing --dir BASE/new",
    "approve --list tone", "approve --from ''", "approve --from nobody", "approve tone --from x", "approve --alternative x --list", "format cid ''", "format inspect ''", "export --dir ''", "export --out ''", "ui --static ''", "sync --car ''", "sync --car BASE/none.car", "ui --place gateway:https://example.org", "ui --static PLAIN", "export --html ''", "export --html BASE/a --car BASE/b", "vault repair", "provider check", "provider follow", "key vaults --add work", "scope restore none",
    "connect", "connect ''", "connect emacs", "connect codex extra", "connect codex --list", f"connect {LONG}", "disconnect", "disconnect ''", "disconnect emacs",
)  # fmt: skip


TWICE = (
    "write tone --body x --body y", "list -n default -n default", "-n default -n default list", "list --home BASE/home --home BASE/home",
    "vault compact --daily --by-hand", "vault compact --daily --daily", "vault compact --keep-roots 3 --keep-roots 4", "write tone --body x --whole --body-only",
    "read tone --root a --root b", "timeline show --since 2026-01-01 --since 2026-01-02", "folder attach PLAIN --scope a --scope b",
    "export --dir BASE/a --dir BASE/b", "member list --passphrase-fd 8 --passphrase-fd 9", "vault log --limit 1 --limit 2",
    "write tone --type user --set type=user --body x", "write tone --body x --set a=1 --set a=2", "write tone --body x --name T --set name=U",
)  # fmt: skip


def test_single_option_is_accepted_once_and_list_option_repeatedly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, monkeypatch, "local")
    for call in TWICE:
        refused = place.run(call)
        assert refused.code == 2 and refused.out == "", (call, refused)
        assert refused.err.startswith("ipfsmem: "), (call, refused)
        if "--set" not in call:
            assert "is given twice" in refused.err, (call, refused)
    assert place.run("list --json").json["memories"] == []
    place.ok(
        "write tone --body x --tag a --tag b --set a=1 --set b=2 --set a=1",
        "list --json --json",
        "list --stack '' --json",
        "export --out BASE/o.json --partial --partial",
    )


def test_import_prints_the_key_of_each_new_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, monkeypatch, "local")
    (place.base / "My Notes 2026.md").write_text("A note.\n")
    done = place.run("import 'BASE/My Notes 2026.md' --json").json
    assert place.run(f"read {done['key']} --body").out == "A note.\n"
    assert f"1 known already ({done['key']})." in place.run("import 'BASE/My Notes 2026.md'").out
    (place.folder / "more.md").write_text("Another.\n")
    assert place.run("import PLAIN --json").json["key"] == ""


def all_refused(place: Place, calls: tuple[str, ...]) -> None:
    said = {}
    for call in calls:
        done = place.run(call)
        lines = done.err.splitlines()
        plain = 1 <= len(lines) <= 2 and lines[0].startswith("ipfsmem: ") and len(lines[0]) < 1500
        if done.code in (0, 1, 70) or done.out or "Traceback" in done.err or not plain:
            said[call[:80]] = (done.code, done.out[:200], done.err[:300])
    assert said == {}


def test_invalid_input_to_a_sealed_vault_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, monkeypatch, "sealed")
    place.ok("write tone --body x", "write tone --body x --scope work", "sync", "write tone --body y")
    before = place.cli.ok("list", "--json").json["memories"], place.cli.ok("scope", "list", "--json").json
    all_refused(place, SEALED)
    assert (
        place.cli.ok("list", "--json").json["memories"],
        place.cli.ok("scope", "list", "--json").json,
    ) == before
    assert place.cli.ok("key", "vaults", "--json").json == {"vaults": []}


def test_invalid_input_to_a_plain_vault_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, monkeypatch, "local")
    place.ok("write tone --body x", "write tone --body x --scope work")
    before = place.cli.ok("folder", "list", "--json").json
    all_refused(place, LOCAL)
    all_refused(place, TOKENS)
    assert place.cli.ok("folder", "list", "--json").json == before


def test_invalid_input_to_resolve_keeps_the_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, monkeypatch, "sealed")
    clash(place)
    before = place.cli.ok("conflicts", "--json").json["conflicts"]
    all_refused(place, ("resolve tone --seen SEEN", "resolve tone --keep --seen ''", "resolve tone --alternative nothing --seen SEEN",
                        "resolve tone --keep --alternative COPY --seen SEEN", "resolve tone --file BASE/none --seen SEEN",
                        "resolve 'No Key' --keep --seen SEEN", "read tone --alternative ../x", "approve tone --alternative COPY"))  # fmt: skip
    assert place.cli.ok("conflicts", "--json").json["conflicts"] == before


def test_json_value_with_a_duplicate_name_is_refused(cli: Cli) -> None:
    cli("value", "set", "k", "before")
    assert "twice" in cli.fails(2, "value", "set", "k", '{"a": {"b": 1, "b": 2}}', "--parse").err
    assert cli("value", "get", "k").out == "before\n"


def test_empty_text_in_a_repeated_option_is_named_by_the_option(cli: Cli) -> None:
    assert cli.fails(2, "recall", "tea", "--also", "green", "--also", "").err == "ipfsmem: --also is empty\n"
