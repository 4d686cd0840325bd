"""kill -9 anywhere in `ipfsmem key phrase --revoke-old`: some phrase always restores the vault at once.

Once the new phrase has been printed, it restores the vault; before that, the old phrase does. No sync is needed
in between."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from ipfsmem.cli import main
from ipfsmem.errors import MembershipError, WrongWalletError
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from ipfsmem.vault.recovery import words_of
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.faults.fault_lab import (
    VAULT_NAME,
    Ack,
    Lab,
    assert_sound,
    closing,
    every_boundary,
    stay_in_place,
    sync,
    texts,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forks")


def keys(words: list[str]) -> RootKeys:
    return RootKeys.from_recovery(from_words(" ".join(words)))


def restored(lab: Lab, device: str, words: list[str]) -> Memory:
    return asyncio.run(
        Memory.recover(
            VAULT_NAME,
            provider=str(lab.stick),
            unlock=keys(words),
            passphrase=False,
            home=Home(folder=lab.home(device), label=device),
        )
    )


def printed(lab: Lab) -> list[str] | None:
    """Return the printed phrase, or None while the output is missing or incomplete."""
    try:
        output = json.loads((lab.folder / "said").read_text())
    except (FileNotFoundError, ValueError):
        return None
    words: list[str] = output["recovery_words"]
    assert output["published"] and len(output["revoking"]) == 1
    return words


def test_killed_phrase_change_leaves_a_working_phrase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stay_in_place(monkeypatch)
    for name in [
        name for name in os.environ if name.startswith("IPFSMEM_") and name != "IPFSMEM_EVERY_BOUNDARY"
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("IPFSMEM_CONFIG", os.devnull)
    base = Lab(tmp_path / "base")
    base.stick.mkdir(parents=True)
    with closing(
        Memory.create(
            VAULT_NAME,
            "encrypted-ipfs",
            provider=str(base.stick),
            recovery=False,
            passphrase=False,
            home=base.home("a"),
        )
    ) as (a,):
        a.write("tone", "x")
        a.unlock()
        old = asyncio.run(a.members.new_words()).words

    def work(lab: Lab, ack: Ack) -> None:
        with (lab.folder / "said").open("w") as out:
            sys.stdout = out
            code = main(["key", "phrase", "--revoke-old", "--json", "-n", VAULT_NAME, "--home", str(lab.home("a")), "--provider", str(lab.stick)])  # fmt: skip
        assert code == 0
        ack("done")

    seen = set()
    for lab, outcome in every_boundary(work, lambda number: base.copy(tmp_path / str(number)), step=13):
        new = printed(lab)
        with closing(restored(lab, "b", new or old)) as (b,):
            assert texts(b) == {"tone": {"x"}}
        with closing(lab.open("a")) as (a,):
            a.unlock()
            sync(a)
            assert_sound(a)
            assert texts(a) == {"tone": {"x"}}
            count = len(words_of(a.replica.ring))
        if outcome.acknowledged:
            assert count == 1
            with pytest.raises((WrongWalletError, MembershipError), match="revoked"):
                restored(lab, "c", old)
        seen.add((new is not None, count))
    # Not started, enrolled and not shown, shown and not revoked, done.
    assert {(False, 1), (False, 2), (True, 2), (True, 1)} <= seen, seen
