"""A third-party wallet signs the same bytes as our signer, and opens in the browser a vault that Python
sealed with the same account.

Requires Node and, for the page, Chromium and the package playwright; otherwise skipped, or failed where
counterparts are required."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.files.static_page import write_static_page
from ipfsmem.memory import Memory
from ipfsmem.wallet.message import key_request
from tests.interop.counterparts import built_page
from tests.support.alone_lab import Page, give_signer, hosted, played
from tests.support.anvil_lab import anvil
from tests.support.web_lab import WALLET, root_of

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize(("vault", "number"), [("default", 1), ("work-2", 17)])
def test_foreign_wallet_signs_like_our_signer_and_deterministically(
    tmp_path: Path, vault: str, number: int
) -> None:
    request = key_request(WALLET.address, vault, number)
    with anvil(tmp_path) as node:
        assert bytes.fromhex(node.account.removeprefix("0x")) == WALLET.address
        told = {node.sign("0x" + request.hex()) for _ in range(3)}
    assert told == {"0x" + WALLET.sign_message(request).hex()}


def test_foreign_wallet_opens_in_the_browser_a_vault_sealed_by_python(
    tmp_path: Path, url: str, memory: Memory
) -> None:
    root_of(memory)
    pages = tmp_path / "pages"
    write_static_page(pages, [f"routing:{url}", f"gateway:{url}"], built_page())
    signed: list[str] = []

    async def play(page: Page) -> None:
        async with hosted(pages) as address:
            asked = await give_signer(page, node.account, node.sign)
            await page.goto(address)
            await page.click("button:has-text('Open with Test wallet')")
            await page.wait_for_selector(".row:has-text('Tone')")
            signed.extend(asked)

    with anvil(tmp_path) as node:
        played(play)
    assert (
        len(signed) == 2 and len(set(signed)) == 1
    )  # a wallet with varying signatures is detected before anything is created
