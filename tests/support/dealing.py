"""Distributes tests to the workers of pytest-xdist in small batches of one file.

Sending single tests cost the controller two milliseconds a test, and each worker the fixtures of each
module. Tests of one group (`xdist_group`) stay together."""

from __future__ import annotations

from collections import Counter

from xdist.scheduler import LoadGroupScheduling

#: Tests per batch: small enough that no worker runs much longer than the others.
_HANDFUL = 10


class Handfuls(LoadGroupScheduling):
    """Send a worker the next batch when it has two tests left."""

    def schedule(self) -> None:
        """Schedule the tests in the order of the files."""
        if self.collection is None:
            self.config.option.loadscopereorder = False
            self._handful: dict[str, str] = {}
            seen: Counter[str] = Counter()
            for nodeid in next(iter(self.registered_collections.values())):
                file = nodeid.partition("::")[0]
                group = super()._split_scope(nodeid)
                self._handful[nodeid] = f"{file} {seen[file] // _HANDFUL}" if group == nodeid else group
                seen[file] += 1
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._handful[nodeid]
