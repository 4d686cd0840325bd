"""`ipfsmem import --foreign` and `ipfsmem promote`."""

from __future__ import annotations

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
