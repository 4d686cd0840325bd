"""A mapping stored as MessagePack that decodes each entry on first access: a recall needs about ten of ten thousand."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, MutableMapping, ValuesView
from typing import Generic, TypeVar

import msgspec

from ipfsmem.errors import FormatError

S = TypeVar("S", bound=msgspec.Struct)


class DecodedLater(MutableMapping[str, S], Generic[S]):
    """Entries by key, in the order in which they were added."""

    def __init__(self, kind: type[S], stored: dict[str, msgspec.Raw] | None = None) -> None:
        self._kind = kind
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._all: dict[str, S | msgspec.Raw] = {**stored} if stored else {}
        self._is_whole = not stored

    def stored(self) -> dict[str, S | msgspec.Raw]:
        """Return the encoded form for the next process."""
        return self._all

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __contains__(self, key: object) -> bool:
        return key in self._all

    def __getitem__(self, key: str) -> S:
        """Return an entry. Raises KeyError, and FormatError for an entry of another kind."""
        one = self._all[key]
        if isinstance(one, msgspec.Raw):
            one = self._all[key] = self._decoded(one)
        return one

    def __setitem__(self, key: str, one: S) -> None:
        self._all[key] = one

    def __delitem__(self, key: str) -> None:
        del self._all[key]

    def items(self) -> ItemsView[str, S]:
        return self.whole().items()

    def values(self) -> ValuesView[S]:
        return self.whole().values()

    def whole(self) -> dict[str, S]:
        """Return all entries, decoded."""
        if not self._is_whole:
            for key, one in self._all.items():
                if isinstance(one, msgspec.Raw):
                    self._all[key] = self._decoded(one)
            self._is_whole = True
        return self._all  # type: ignore[return-value] # no entry is encoded any more

    def _decoded(self, stored: msgspec.Raw) -> S:
        try:
            return self._decode(stored)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise damaged_index(f"a {self._kind.__name__}") from None


def damaged_index(what: str) -> FormatError:
    """Return the error for a part of a stored index that does not decode."""
    return FormatError(
        f"the saved index is damaged: {what}",
        hint="Rebuild it: ipfsmem index rebuild",
    )
