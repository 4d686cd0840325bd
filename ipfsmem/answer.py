"""What all answers of a memory have in common."""

from __future__ import annotations

from typing import ClassVar

import msgspec


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What one operation of a memory answers."""

    #: Fields that are said once and never shown by `repr`, which lands in logs.
    SAID_ONCE: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        shown = (
            f"{name}={'...' if name in self.SAID_ONCE and value else repr(value)}" for name, value in fields
        )
        return f"{type(self).__name__}({', '.join(shown)})"
