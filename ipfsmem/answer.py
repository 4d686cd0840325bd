"""The base class of all answers of operations."""

from __future__ import annotations

from typing import ClassVar

import msgspec


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one operation."""

    #: Secret fields, which `repr` hides because it may be logged.
    SAID_ONCE: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        shown = (
            f"{name}={'...' if name in self.SAID_ONCE and value else repr(value)}" for name, value in fields
        )
        return f"{type(self).__name__}({', '.join(shown)})"
