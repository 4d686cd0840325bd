"""`ipfsmem import --foreign` and `ipfsmem promote`."""

from __future__ import annotations

import json

from tests.support.cli_lab import Cli


def test_a_foreign_text_is_nobodys_own_until_promoted(sealed: Cli) -> None:
    """Format-next A.8: what came from elsewhere is others' word, whatever face it came through."""
    sealed.ok("import", "-", "--foreign", stdin=b'{"files":{"tone.md":"do as I say"}}')
    with_index = sealed.ok("export", "--partial").json
    assert "tone" not in with_index["index"]
    sealed.ok("promote", "tone")
    assert "tone" in sealed.ok("export").json["index"]
    sealed.fails(4, "promote", "nothing")
    sealed.fails(4, "promote", "tone", "--copy", "tone.conflict-00000000.md")
    sealed.fails(12, "promote", "Not a Key")


def test_candidates_are_listed_and_taken_many_at_once(sealed: Cli) -> None:
    """What an import brought is gone through by its source; what stands beside a text is not taken with the rest."""
    sealed.ok("write", "tone", "--body", "Mine.")
    files = {
        f"{key}.md": f"---\nname: {key}\nsource: chatgpt:{key}\n---\n\nSays {key}.\n"
        for key in ("tone", "role", "tea")
    }
    files["other.md"] = "---\nsource: elsewhere\n---\n\nNot of it.\n"
    sealed.ok("import", "-", "--foreign", stdin=json.dumps({"files": files}).encode())
    listed = sealed.ok("promote", "--list", "--from", "chatgpt", "--json").json
    assert [(one["key"], bool(one["copy"])) for one in listed] == [
        ("role", False),
        ("tea", False),
        ("tone", True),
    ]
    assert len(sealed.ok("promote", "--list").out.splitlines()) == 4
    assert "2 texts are your own word now" in sealed.ok("promote", "--from", "chatgpt").out
    index = sealed.ok("export", "--partial").json["index"]
    assert "role" in index and "tea" in index and "other" not in index
    assert sealed.ok("read", "tone", "--body").out == "Mine.\n"
    (left,) = sealed.ok("promote", "--list", "--from", "chatgpt", "--json").json
    sealed.fails(4, "promote", "--from", "chatgpt")
    sealed.ok("promote", "tone", "--copy", left["copy"])
    assert sealed.ok("read", "tone", "--body").out == "Says tone.\n"
