"""`ipfsmem export` to a file that is there, and what a terminal is given of characters that nobody sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.cli.printing import clean, clean_lines
from tests.support.cli_lab import Cli


@pytest.mark.parametrize("form", ["--out", "--zip", "--plain-car", "--car", "--html"])
def test_export_to_a_file_that_holds_something_is_refused(cli: Cli, tmp_path: Path, form: str) -> None:
    cli.ok("write", "tone", "--body", "direct")
    there = tmp_path / "there"
    there.write_bytes(b"the only copy")
    assert "--overwrite" in cli.fails(2, "export", form, str(there)).err
    assert there.read_bytes() == b"the only copy"
    if form not in ("--car", "--html"):  # nothing is published here
        cli.ok("export", form, str(there), "--overwrite")
        assert b"the only copy" not in there.read_bytes()
        (tmp_path / "empty").touch()
        cli.ok("export", form, str(tmp_path / "empty"))


@pytest.mark.parametrize("shown", [clean, clean_lines])
def test_characters_that_nobody_sees_do_not_reach_a_terminal(shown: object) -> None:
    assert callable(shown)
    for code in (0xAD, 0x34F, 0x115F, 0x200B, 0x2060, 0x3164, 0xFEFF, 0xE0001, 0xE0041, 0xE007F):
        assert shown(f"a{chr(code)}b") == "a\ufffdb", hex(code)
    assert shown("x\U000e0069\U000e0067\U000e006e") == "x\ufffd"
    assert shown("a\u200db\u200c") == "a\ufffdb\ufffd"
    for text in (
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u2764\ufe0f é 日本",
    ):
        assert shown(text) == text
