"""A tool: its description for models, and the call, which returns a structured and a text form.

A call never raises errors of the memory or the arguments: the answer has them, since the caller is a model that reads answers.
Bugs of the program are raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ipfsmem.device.lock import one_wait
from ipfsmem.errors import ChangedError, IpfsmemError, KeyNameError, LockedError, PassphraseError
from ipfsmem.open_vault.audit import collecting, collecting_doubts, with_doubts
from ipfsmem.tools.lenient import meant
from ipfsmem.tools.schema import JSON, checked, unknown


class ToolResult(msgspec.Struct, frozen=True):
    """The answer of a call: a text for models, in which every text that others can write is fenced, and the same as values.

    On an error, `structured` has `error` with its `kind`, `message` and `hint`.
    """

    text: str
    structured: JSON
    is_error: bool = False


class Tool(msgspec.Struct, frozen=True):
    """A tool for one memory. `parameters` and `returns` are JSON Schemas of objects."""

    name: str
    title: str
    description: str
    parameters: JSON
    returns: JSON
    #: Returns the answer for checked arguments. Raises IpfsmemError.
    answer: Callable[[JSON], ToolResult]
    #: Arguments of any type that become text.
    side: frozenset[str] = frozenset()
    #: It changes nothing; it can delete data; a repeated call has no further effect.
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    #: True if the answer includes advice on the written text.
    advises: bool = False

    def call(self, /, **arguments: Any) -> ToolResult:
        """Check the arguments and run the tool. Never raises an IpfsmemError.

        A tool that writes refuses an unknown argument, which may hold the text to write; one that reads ignores it and reports
        it, unless it resembles an omitted one.
        """
        corrected = meant(self.parameters, arguments, self.side)
        ignored = unknown(self.parameters, corrected) if self.read_only else []
        try:
            with one_wait(), collecting() as better, collecting_doubts() as doubts:
                result = self.answer(
                    checked(
                        self.name,
                        self.parameters,
                        {k: value for k, value in corrected.items() if k not in ignored},
                    )
                )
        except IpfsmemError as error:
            return refusal(error)
        new = [one for one in better if one not in result.text] if self.advises else []
        if new:
            result = msgspec.structs.replace(result, text=f"{result.text}\n{' '.join(new)}")
        if doubts and not result.is_error:
            result = msgspec.structs.replace(result, text=with_doubts(result.text, doubts))
        if not ignored:
            return result
        names = ", ".join(repr(name[:60]) for name in ignored[:5])
        return msgspec.structs.replace(result, text=f"{result.text}\n(Ignored unknown arguments: {names}.)")

    def __repr__(self) -> str:
        return f"Tool({self.name})"


def refusal(error: IpfsmemError, *, text: str = "", more: Mapping[str, Any] | None = None) -> ToolResult:
    """Return an error as an answer, with `text` and `more`."""
    hint = _hint(error)
    message = f"Error: {error}." + (f" {hint}" if hint else "")
    return ToolResult(
        f"{message}\n\n{text}" if text else message,
        {"error": {"kind": error.kind, "message": str(error), "hint": hint}, **(more or {})},
        is_error=True,
    )


def _hint(error: IpfsmemError) -> str:
    """Return the hint for a model; a hint that only the person can follow is addressed to the person."""
    if isinstance(error, ChangedError) and error.hint == ChangedError.hint:
        return "Read it again with read_memory, and pass the seen value of that answer."
    if isinstance(error, PassphraseError):
        return "The memory is locked. Ask the person to run: ipfsmem unlock. Nothing can be read or written until then."
    if isinstance(error, LockedError):
        return "Call again in a minute. If it fails again, ask the person to close the program that holds the lock."
    if not error.hint or isinstance(error, KeyNameError) or "ipfsmem " not in error.hint:
        return error.hint
    return f"For the person: {error.hint}"
