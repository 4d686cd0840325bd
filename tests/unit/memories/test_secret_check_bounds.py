"""In encrypted mode the secret scan never delays a large publish: it continues at later ones until all is scanned."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem import Memory
from ipfsmem.memories import secret_check
from ipfsmem.testing import SimProvider

KEY = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z45"


def test_secret_in_a_large_import_is_found_eventually(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_check, "WARN_ABOUT", 4)
    memory = Memory.create("m", "encrypted-ipfs", provider=SimProvider(), passphrase=False, home=tmp_path)
    for n in range(10):
        memory.write(f"k{n}", f"text {n}" if n != 9 else f"the token is {KEY}")
    said = []
    for n in range(4):
        report = asyncio.run(memory.sync())
        said.append([notice.text for notice in report.notices if "k9" in notice.text])
        memory.write("later", f"turn {n}")
    assert [bool(texts) for texts in said].count(True) == 1, said
    assert KEY not in str(said)
