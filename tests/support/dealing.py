"""How tests are dealt out to the workers of pytest-xdist: a handful of one file at a time.

One at a time cost the process that deals two milliseconds a test, and each worker the fixtures of each module. Tests of one
group (`xdist_group`) stay together, as ever.
"""

from __future__ import annotations

from collections import Counter

from xdist.scheduler import LoadGroupScheduling

#: Tests of one handful: few enough that no worker has long to go when the others are done.
_HANDFUL = 10


class Handfuls(LoadGroupScheduling):
    """Gives a worker the next handful when it has two tests left."""

    def schedule(self) -> None:
        """Deal, in the order of the files."""
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
