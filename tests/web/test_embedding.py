"""The examples of web/README.md: an app embeds the client in five lines, and its agent gets the same
context; and a page creates a vault."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.browser_lab import played
from tests.support.web_lab import PEER_TOKEN, WALLET_KEY, root_of

ROOT = Path(__file__).parents[2]
README = ROOT / "web" / "README.md"


def examples(path: Path = README) -> list[str]:
    return re.findall(r"```(?:ts|typescript|js|javascript)\n(.*?)```", path.read_text("utf-8"), re.DOTALL)


def test_first_example_has_five_lines_and_all_examples_are_tested() -> None:
    embedding, making = examples()
    assert len(embedding.splitlines()) == 5 and "create:" in making
    elsewhere = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert [path for path in elsewhere if examples(path)] == []


@pytest.mark.slow
def test_first_example_runs_in_a_page(url: str, memory: Memory) -> None:
    code = examples()[0]
    for written, here in (("./ipfsmem.js", "{library}"), ("https://memory.example.org", url)):
        assert written in code
        code = code.replace(written, here)
    code = f"const token = {PEER_TOKEN!r}\n{code}\nexport {{ memory, prompt }}\n"
    [said] = played("chromium", [("embedded", {"code": code, "key": WALLET_KEY})])
    assert said["prompt"] == memory.context("How should I talk to them?", preview=True).text
    assert root_of(memory) == said["root"]
    here = memory.read("embedded")
    assert here is not None and here.file.body == "Written by an app."


@pytest.mark.slow
def test_readme_example_runs_in_a_page_and_its_phrase_opens_the_vault(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = "findWallets, keysOfWallet, newRecoveryWords, openMemory, defaultEnvironment"
    code = (
        f"import {{ {names} }} from '{{library}}'\n"
        f"const at = [{{ at: 'peer:{url}', token: {PEER_TOKEN!r} }}]\n"
        "const [wallet] = await findWallets(window)\n"
        f"{examples()[1]}\nexport {{ memory, words as prompt }}\n"
    )
    [said] = played("chromium", [("embedded", {"code": code, "key": WALLET_KEY})])
    monkeypatch.setenv("PEER_TOKEN", PEER_TOKEN)
    keys = RootKeys.from_recovery(from_words(said["prompt"]))
    home = Home(folder=tmp_path / "other", label="other")
    found = asyncio.run(
        Memory.recover("other", provider=f"peer:{url}", unlock=keys, passphrase=False, home=home)
    )
    try:
        here = found.read("embedded")
        assert here is not None and here.file.body == "Written by an app."
    finally:
        asyncio.run(found.aclose())
