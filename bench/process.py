"""A process that does one thing with a vault and exits: measured as "whole process".

It does what a user's command does: start Python, open the vault with the passphrase of its keys, work,
close."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ipfsmem.vault.home import Home

if TYPE_CHECKING:
    from ipfsmem.vault.owner import Unlock

PASSPHRASE = "a passphrase of the bench"
#: A published test key (Hardhat account 0) without any value.
WALLET = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
VAULT_NAME = "bench"


def unlock() -> Unlock:
    """Return the wallet of the bench."""
    from ipfsmem.vault.owner import Unlock
    from ipfsmem.wallet.signers import RawKeySigner

    return Unlock(RawKeySigner(WALLET))


def main(what: str, home: Path, *args: str) -> None:
    """`init HOME PROVIDER`, `import HOME FOLDER`, `sync HOME`, `restore HOME PROVIDER`, `use HOME`, `open HOME`."""
    from ipfsmem.memory import Memory

    if what == "init":
        Memory.create(
            VAULT_NAME,
            "encrypted-ipfs",
            provider=args[0],
            unlock=unlock(),
            passphrase=PASSPHRASE,
            home=Home(folder=home, label="bench"),
        ).close()
        return
    if what == "restore":
        Memory.load(
            VAULT_NAME,
            "encrypted-ipfs",
            provider=args[0],
            unlock=unlock(),
            passphrase=PASSPHRASE,
            home=Home(folder=home, label="bench"),
        ).close()
        return
    with Memory.load(VAULT_NAME, passphrase=PASSPHRASE, home=home) as memory:
        if what == "import":
            memory.bundles.import_(Path(args[0]))
        elif what == "first":
            memory.bundles.import_(Path(args[0]))
            asyncio.run(memory.sync())
        elif what == "sync":
            asyncio.run(memory.sync())
        elif what == "use":
            listed = memory.list()
            memory.read(listed[0].key)
            memory.write(listed[0].key, "changed")
            memory.note("used")
            memory.index()
            asyncio.run(memory.sync())
        elif what != "open":
            raise SystemExit(f"unknown: {what}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
