"""A root that a person wrote down: a channel where names and lists are lost (format section 7).

It stands among the providers of one sync and says one thing. It keeps nothing, serves nothing, and what it says is
verified like any other root.
"""

from __future__ import annotations

from typing import Final

from ipfsmem.content.cid import CID
from ipfsmem.provider.base import ProviderBase
from ipfsmem.provider.contract import Capabilities

_CAPABILITIES: Final = Capabilities(put=False)


class Paper(ProviderBase):
    """See ipfsmem.provider.contract; it has no capability, so nothing is asked of it."""

    def __init__(self, root: CID) -> None:
        """`root` is what stands on the paper."""
        self.root = root

    @property
    def name(self) -> str:
        """What reports call it."""
        return "the version that was given"

    @property
    def capabilities(self) -> Capabilities:
        """None."""
        return _CAPABILITIES
