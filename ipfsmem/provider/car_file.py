"""A local CAR file of one published version as a read-only provider, for transfer from a device that can
publish nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID
from ipfsmem.errors import FormatError, StorageError
from ipfsmem.provider.base import ProviderBase
from ipfsmem.provider.contract import Capabilities


class CarFile(ProviderBase):
    """The blocks of one CAR, each checked on opening."""

    def __init__(self, path: Path) -> None:
        """Open a CAR. Raises StorageError when unreadable, FormatError or BlockError when it is not a CAR of
        one version."""
        try:
            with path.open("rb") as file:
                car = read_car(file)
                self._blocks = dict(car)
        except OSError as error:
            raise StorageError(
                f"{path} cannot be read: {error.strerror}", hint="Check the path and its permissions."
            ) from None
        if len(car.roots) != 1:
            raise FormatError(f"{path} holds {len(car.roots)} versions; a file with one is required")
        #: Root of the version.
        self.root: CID = car.roots[0]
        self._path = path

    @property
    def name(self) -> str:
        """Return `the file ...`."""
        return f"the file {self._path}"

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities: single blocks, read-only."""
        return Capabilities(put=False, blocks=True)

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return the blocks that are in the file."""
        return {cid: self._blocks[cid] for cid in cids if cid in self._blocks}
