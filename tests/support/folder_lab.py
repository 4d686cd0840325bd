"""Devices on a real folder instead of a simulated provider, and ways to remove data from it."""

from __future__ import annotations

from pathlib import Path

from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID
from ipfsmem.provider.contract import Provider
from tests.support.device_lab import Lab


class FolderLab(Lab):
    """Devices that share one folder; each opens it separately."""

    def __init__(self, folder: Path, *, kind: type[DirectoryProvider] = DirectoryProvider) -> None:
        super().__init__(folder)
        self.shared = folder / "shared"
        self.shared.mkdir(parents=True, exist_ok=True)
        self.kind = kind

    def provider(self, name: str) -> Provider:  # type: ignore[override]
        """Open the folder again for this device."""
        return self.kind(self.shared, clock=lambda: self.clock.ns)

    def packs(self) -> list[Path]:
        """Return the packs, oldest first."""
        return sorted((self.shared / "packs").glob("*.car"), key=lambda p: (p.stat().st_mtime_ns, p.name))

    def lose_pack(self, pack: Path) -> list[CID]:
        """Remove a pack; return its content."""
        cids = [cid for cid, _ in read_car(pack.read_bytes())]
        pack.unlink()
        pack.with_suffix(".idx").unlink(missing_ok=True)
        return cids
