"""A vault with a folder as provider, and agent keys for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ipfsmem.device.replica import Environment
from ipfsmem.memory import Memory
from ipfsmem.operations.agent_keys import NewAgentKey
from ipfsmem.vault.home import Home
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.root_keys import RootKeys
from ipfsmem.wallet.signers import RawKeySigner

WALLET = Unlock(RawKeySigner(b"\x01" * 32))
DAY = 86_400_000
#: 1 March 2026, in milliseconds since 1970.
START = 1_772_323_200_000


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


class KeyLab:
    """A vault of one owner, and containers that open it by a key."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.clock = Clock()
        self.stick = base / "stick"
        self.stick.mkdir()
        self.owner = Memory.create(
            "work",
            "encrypted-ipfs",
            provider=str(self.stick),
            unlock=WALLET,
            passphrase=False,
            home=self.home("a"),
        )
        self.owner.write("tone", "Say what is wrong first.", description="How to give feedback.")
        self.owner.scope("acme").write("plan", "Ship it on Friday.", description="The plan of acme.")
        self.sync()

    def home(self, name: str) -> Home:
        return Home(folder=self.base / name, label=name, environment=Environment(now=self.clock))

    def sync(self) -> None:
        asyncio.run(self.owner.sync())

    def new(self, name: str = "web", expires: str = "30d") -> NewAgentKey:
        return asyncio.run(self.owner.agents.new(name, expires=expires))

    def load(self) -> Memory:
        """Open the vault of the key in the environment, with this lab's clock."""
        return Memory.load(home=Home(environment=Environment(now=self.clock)))

    def device(self, name: str, unlock: Unlock | RootKeys = WALLET) -> Memory:
        """Restore the vault on another device of the owner."""
        return Memory.load(
            "work",
            "encrypted-ipfs",
            provider=str(self.stick),
            unlock=unlock,
            passphrase=False,
            home=self.home(name),
        )
