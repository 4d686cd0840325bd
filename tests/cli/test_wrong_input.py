"""Wrong input on every command that came late: one line that says what, perhaps one that helps, no traceback, nothing changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.outcomes import Place, clash

#: A CID that is valid and of nothing here.
NOBODY = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
LONG = "x" * 70_000

SEALED = (
    "salvage extra", "salvage --pick ''", f"salvage --pick {LONG}", "salvage --provider nonsense", "salvage --pick m/tone",
    "scope show 'No Scope'", "scope show ''", "scope show timeline", "scope show 2026-01-01", f"scope show {LONG}",
    "scope title work", "scope title work ''", "scope title work 'a\nb'", f"scope title work {LONG}", "scope title none T",
    "scope forget none --yes", "scope forget 'No Scope' --yes", "scope restore work", f"scope restore none --root {NOBODY}",
    "scope restore work --root nonsense", "scope lsit",
    "history", "history 'No Key'", f"history {LONG}", "history nothing", "history tone --scope none", "history tone --scope 'No Scope'",
    "restore tone --root nonsense", f"restore tone --root {NOBODY}", "restore tone --text zz", "restore tone --text 0123",
    "restore tone --text 0123456789abcdef", "restore nothing --text 0123456789abcdef", "restore tone --root ''",
    "restore 'No Key' --root ROOT", "restore tone --root ROOT --seen zz", "restore tone --root ROOT --seen 12345678",
    "undo tone", "promote nothing", "promote 'No Key'", "promote tone --copy nothing", "promote tone --copy ../tone.md", "promote",
    "keys vaults --add ''", "keys vaults --add 'No Vault'", "keys vaults --key-number 0", "keys vaults --key-number x",
    f"keys vaults --add {LONG}", "keys vaults extra", "keys label", "keys label first", "keys label first x", "keys label nobody x KEY",
    "keys passphrase --new-passphrase-fd 999", "keys passphrase --new-passphrase-fd x", "keys passphrase extra", "keys revoke", "keys revoke '' KEY",
    "providers check extra", "providers check --every 5m", "providers follow nonsense", "providers follow --decline USB",
    "providers follow BASE/none", "providers follow --decline", "attach PLAIN", "detach PLAIN", "folders pause PLAIN", "folders accept", "folders put-back PLAIN",
)  # fmt: skip
LOCAL = (
    "attach", "attach ''", "attach BASE/note.md", "attach PLAIN --scope 'No Scope'", f"attach BASE/{'x' * 300}", "attach 'BASE/a\nb\x00c'",
    "attach BASE/home/default", "attach BASE/home/default/memory --scope work", "attach BASE/home", "detach", "detach ''", "detach BASE/none", "detach PLAIN --gone",
    "detach BASE/note.md", "folders pause ''", "folders pause BASE/none", "folders accept BASE/none", "folders put-back BASE/none", "folders nothing",
    "import ''", "cid ''", "inspect ''", "export --dir ''", "export --out ''", "salvage", "providers check", "providers follow", "keys vaults --add work", "scope restore none",
)  # fmt: skip


def all_refused(place: Place, calls: tuple[str, ...]) -> None:
    said = {}
    for call in calls:
        done = place.run(call)
        lines = done.err.splitlines()
        plain = 1 <= len(lines) <= 2 and lines[0].startswith("ipfsmem: ") and len(lines[0]) < 1500
        if done.code in (0, 1, 70) or done.out or "Traceback" in done.err or not plain:
            said[call[:80]] = (done.code, done.out[:200], done.err[:300])
    assert said == {}


def test_wrong_input_on_a_sealed_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, monkeypatch, "sealed")
    place.ok("write tone --body x", "write tone --body x --scope work", "sync", "write tone --body y")
    before = place.cli.ok("list", "--json").json, place.cli.ok("scope", "list", "--json").json
    all_refused(place, SEALED)
    assert (place.cli.ok("list", "--json").json, place.cli.ok("scope", "list", "--json").json) == before
    assert place.cli.ok("keys", "vaults", "--json").json == []


def test_wrong_input_on_plain_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, monkeypatch, "local")
    place.ok("write tone --body x", "write tone --body x --scope work")
    before = place.cli.ok("folders", "list", "--json").json
    all_refused(place, LOCAL)
    assert place.cli.ok("folders", "list", "--json").json == before


def test_wrong_input_where_there_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, monkeypatch, "sealed")
    clash(place)
    before = place.cli.ok("conflicts", "--json").json
    all_refused(place, ("resolve tone --seen SEEN", "resolve tone --keep --seen ''", "resolve tone --take nothing --seen SEEN",
                        "resolve tone --keep --take COPY --seen SEEN", "resolve tone --file BASE/none --seen SEEN",
                        "resolve 'No Key' --keep --seen SEEN", "read tone --conflict ../x", "promote tone --copy COPY"))  # fmt: skip
    assert place.cli.ok("conflicts", "--json").json == before
