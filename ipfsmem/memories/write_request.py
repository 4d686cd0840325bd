"""A request to write one memory, validated before the vault is opened.

All interfaces build a `WriteRequest`, so that they refuse the same input. An empty text or an invalid header field is refused
because it is more often a mistake than intended. Python's `Memory.write` checks only the type and the decay (`check_values`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from ipfsmem.bundle.memory_file import DECAYS, ENTRY_TYPES, TYPES, has_header
from ipfsmem.bundle.session_parts import SESSION
from ipfsmem.errors import FormatError, UsageError

_KNOWN = {"type": (*TYPES, SESSION), "decay": DECAYS}
_DATES = ("created", "updated", "expires")


#: Types of memories about the person, which do not depend on a project.
OF_THE_PERSON = ("user", "feedback")


def scope_of_type(type: str, workspace: str) -> str:
    """Return the scope of a new memory of this type: the default scope ("") for memories about the person, else the
    workspace. Raises UsageError if none is chosen."""
    if type in OF_THE_PERSON:
        return ""
    if not workspace:
        raise UsageError(
            f"a memory of type {type} requires the scope of a workspace",
            hint="Name it with --scope or IPFSMEM_SCOPE; in Python and for a tool, scope.",
        )
    return workspace


def check_values(fields: Mapping[str, str | None]) -> None:
    """Raise UsageError for an unknown type or decay."""
    allowed = {"type": (*TYPES, *ENTRY_TYPES, SESSION), "decay": DECAYS}
    for field, values in allowed.items():
        value = fields.get(field)
        if value and value not in values:
            raise UsageError(f"unknown {field} {value[:60]!r}", hint=f"It is one of {', '.join(values)}.")


class WriteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A text, header fields, or both; fields that are None or empty stay unchanged."""

    text: bytes | None = None
    #: Whether `text` is a whole file with a header (True) or a body (False). None: it is a whole file if it begins with a header.
    whole: bool | None = None
    #: Whether an empty text is intended.
    empty_ok: bool = False
    name: str | None = None
    description: str | None = None
    type: str | None = None
    tags: tuple[str, ...] = ()
    #: Other header fields; an empty value removes the field.
    fields: Mapping[str, str] = {}
    #: The SHA-256 that the current text must have.
    if_match: str | None = None
    #: Whether the write must create the memory.
    must_be_new: bool = False

    @property
    def expected(self) -> str | None:
        """The SHA-256 that the current text must have: "" for no text, None for any."""
        return "" if self.must_be_new else self.if_match

    @property
    def file(self) -> bytes | None:
        """The whole file, None if the text is a body or missing."""
        if self.text is None or self.whole is False:
            return None
        return self.text if self.whole or has_header(self.text) else None

    @property
    def body(self) -> str | None:
        """The body, or None. Raises FormatError, which names the byte that is not UTF-8."""
        if self.text is None:
            return None
        try:
            return self.text.decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"the body is not UTF-8 (byte {error.start + 1:,})") from None

    @property
    def _has_header(self) -> bool:
        """Whether any header field is given."""
        texts = (self.name, self.description, self.type)
        return bool(any(value is not None for value in texts) or self.tags or self.fields)

    def check(self) -> None:
        """Raise UsageError for a contradiction, an empty text, or an invalid field."""
        self.check_without_text(has_text=self.text is not None)
        if self.text is not None and not self.text.strip() and not self.empty_ok:
            raise UsageError(
                "the text is empty, so nothing was written",
                hint="To save an empty memory: --empty. To delete it: ipfsmem forget.",
            )
        if self._has_header and self.file is not None:
            raise UsageError(
                "the text has a header of its own, so header fields are not accepted",
                hint="Omit them, or write only the body: --body-only (in Python: whole=False).",
            )

    def check_without_text(self, *, has_text: bool) -> None:
        """Run the checks that need no text, for a caller that reads the text later. `has_text`: whether there will be one.

        Raises UsageError, as `check` would.
        """
        if self.if_match is not None and self.must_be_new:
            raise UsageError("a write cannot require both a SHA-256 and a new memory")
        if not has_text and not self._has_header:
            raise UsageError(
                "nothing to write",
                hint="Pass --body TEXT, --file PATH or - for standard input (in Python: text=).",
            )
        if self.whole and (self._has_header or not has_text):
            raise UsageError("a whole file has a header of its own, so header fields are not accepted")
        self._check_fields()

    def _check_fields(self) -> None:
        """Refuse a field that is given twice, or has an invalid value (format section 1.2).

        A whole file is not checked: its author may use fields that this version does not know.
        """
        texts = {
            "name": self.name,
            "description": self.description,
            "type": self.type,
            "tags": self.tags or None,
        }
        for field, value in self.fields.items():
            if texts.get(field) is not None:
                raise UsageError(f"the field {field} is given twice")
            if not value:
                continue
            if field in _KNOWN and value not in _KNOWN[field]:
                raise UsageError(
                    f"{value!r} is not a valid {field}", hint=f"It is one of {', '.join(_KNOWN[field])}."
                )
            if field in _DATES:
                _check_date(field, value)


def _check_date(field: str, value: str) -> None:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        raise UsageError(
            f"{field} must be a date (got {value!r})",
            hint="For instance 2026-11-22 or 2026-11-22T17:30:00Z.",
        ) from None
