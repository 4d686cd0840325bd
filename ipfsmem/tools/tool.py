"""One tool: what a model is told of it, and the call, which answers in a structured and in a text form.

A call never raises what went wrong with the memory or the arguments: the answer says it, since whoever called is a model that
reads answers. Errors of the program itself are raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ipfsmem.device.lock import one_wait
from ipfsmem.errors import ChangedError, IpfsmemError, KeyNameError, LockedError, PassphraseError
from ipfsmem.parts.audit import collecting, hearing, with_doubts
from ipfsmem.tools.lenient import meant
from ipfsmem.tools.schema import JSON, checked, unknown


class ToolResult(msgspec.Struct, frozen=True):
    """What a call answered: a text for models, in which everything that somebody wrote is fenced, and the same as values.

    Where it is an error, `structured` has `error` with its `kind`, `message` and `hint`.
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
    #: Does the answer with the checked arguments. Raises IpfsmemError.
    answer: Callable[[JSON], ToolResult]
    #: Arguments of any type that become text.
    side: frozenset[str] = frozenset()
    #: Whether it changes nothing; whether it can take something away; whether the same call twice is as one.
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    #: Whether the answer also says what could be better about what was written.
    advises: bool = False

    def call(self, /, **arguments: Any) -> ToolResult:
        """Check the arguments and do it. Never raises an IpfsmemError.

        An argument that there is not is refused by a tool that writes, for it may hold what was to be written; one that reads
        leaves it out and says so, unless it looks like one that there is.
        """
        given = meant(self.parameters, arguments, self.side)
        ignored = unknown(self.parameters, given) if self.read_only else []
        try:
            with one_wait(), collecting() as better, hearing() as doubts:
                result = self.answer(
                    checked(
                        self.name,
                        self.parameters,
                        {k: value for k, value in given.items() if k not in ignored},
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
    """An error as an answer; `text` and `more` go along with it."""
    hint = _hint(error)
    said = f"Error: {error}." + (f" {hint}" if hint else "")
    return ToolResult(
        f"{said}\n\n{text}" if text else said,
        {"error": {"kind": error.kind, "message": str(error), "hint": hint}, **(more or {})},
        is_error=True,
    )


def _hint(error: IpfsmemError) -> str:
    """What a model can do; what only the person can do is said to be for the person."""
    if isinstance(error, ChangedError) and error.hint == ChangedError.hint:
        return "Read it again with read_memory, and pass the seen value of that answer."
    if isinstance(error, PassphraseError):
        return "The memory is locked. Ask the person to run: ipfsmem unlock. Nothing can be read or written until then."
    if isinstance(error, LockedError):
        return "Call again in a minute. If it fails again, ask the person to close the program that holds the lock."
    if not error.hint or isinstance(error, KeyNameError) or "ipfsmem " not in error.hint:
        return error.hint
    return f"For the person: {error.hint}"
