"""`memory.maintenance`: the daily deletion of old versions."""

from __future__ import annotations

import msgspec

from ipfsmem.config import RetentionRule
from ipfsmem.parts.part import MemoryPart


class MemoryMaintenance(MemoryPart):
    """What an open memory needs now and then."""

    def gc_daily(self, keep: RetentionRule | None) -> None:
        """Let superseded roots go once a day, with a sync, and keep what `keep` says; None: only `gc` lets go."""
        self._replica.save_config(msgspec.structs.replace(self._replica.config, collect=keep))
