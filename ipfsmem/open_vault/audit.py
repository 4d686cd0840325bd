"""The audit log: records each call of an operation with its interface and client, which the interface states around the
call.

Calls that change, export or show texts to an agent are recorded; reads and lists are not. Of nested calls only the outer
one is recorded, with its scope and one key or name, but no other argument.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ipfsmem.errors import IpfsmemError, NotFoundError

if TYPE_CHECKING:
    from typing import Protocol

    from ipfsmem.device.replica import Replica

    class OpenVault(Protocol):
        """What the audit needs of an open vault (`open_vault.handle.VaultHandle`)."""

        closed: bool

        @property
        def replica(self) -> Replica:
            """Return the vault's data on this device."""

        @property
        def operations_kept(self) -> int:
            """Return how many operations the list keeps."""


#: Operations that write a text.
_WRITES: Final = frozenset(
    ["write", "note", "session add", "fact add", "fact edit", "graph add", "graph relate", "value set"]
)
#: Methods whose result is false if there was nothing to delete or to stop.
_TAKES_AWAY: Final = frozenset(["forget", "delete", "unrelate", "abort"])
_COLLECTED: Final[ContextVar[list[str] | None]] = ContextVar("advice", default=None)
_DOUBTS: Final[ContextVar[_Doubts | None]] = ContextVar("doubts", default=None)
#: Parameters that name the subject of a call.
_ABOUT: Final = ("key", "session", "token")
_INSIDE: Final[ContextVar[bool]] = ContextVar("inside", default=False)


class Acting(msgspec.Struct, frozen=True):
    """An interface (`python`, `cli`, `http`, `mcp`, `hook`), and its client or token; "" if unknown."""

    face: str
    by: str = ""


_ACTING: Final[ContextVar[Acting]] = ContextVar("acting")
_LIBRARY: Final = Acting("python")


def acting() -> Acting:
    """Return the interface and client of the current call."""
    return _ACTING.get(_LIBRARY)


@contextlib.contextmanager
def acting_as(face: str, by: str = "") -> Iterator[None]:
    """Record calls inside the block as made by this interface and client."""
    token = _ACTING.set(Acting(face, by))
    try:
        yield
    finally:
        _ACTING.reset(token)


@contextlib.contextmanager
def auditing(
    opened: OpenVault, word: str, scope: str, arguments: Mapping[str, Any], method: str = ""
) -> Iterator[Callable[[object], None]]:
    """Record a call when it ends, also with an error; not a dry run or a preview. Yields a function that receives the
    result: a false one from a method in `_TAKES_AWAY` is recorded as NotFoundError."""
    outcome = ""

    def ended(result: object) -> None:
        nonlocal outcome
        # A number counts deleted entries: 0 for a scope without memories.
        if method in _TAKES_AWAY and (
            result is None or result is False or (isinstance(result, msgspec.Struct) and not result)
        ):
            outcome = NotFoundError.__name__

    if _INSIDE.get() or arguments.get("dry_run") or arguments.get("preview"):
        yield ended
        return
    token = _INSIDE.set(True)
    try:
        yield ended
    except BaseException as error:
        outcome = error.kind if isinstance(error, IpfsmemError) else type(error).__name__
        raise
    finally:
        _INSIDE.reset(token)
        about = next((arguments[name] for name in _ABOUT if isinstance(arguments.get(name), str)), "")
        note(opened, word, scope, about, outcome)


@contextlib.contextmanager
def collecting() -> Iterator[list[str]]:
    """Yield the advice on all writes inside the block, one sentence each (`advising`)."""
    advice: list[str] = []
    token = _COLLECTED.set(advice)
    try:
        yield advice
    finally:
        _COLLECTED.reset(token)


class _Doubts(msgspec.Struct):
    texts: list[str] = []
    #: Whether the reasons concern the memory of the call, not all memories.
    about_one: bool = False


@contextlib.contextmanager
def collecting_doubts() -> Iterator[list[str]]:
    """Yield the reasons why answers inside the block may be older than linked files, one sentence each."""
    collected = _Doubts()
    token = _DOUBTS.set(collected)
    try:
        yield collected.texts
    finally:
        _DOUBTS.reset(token)


def with_doubts(text: str, doubts: list[str]) -> str:
    """Return a text for a model with these doubts (`collecting_doubts`) in a last line."""
    return "\n".join(filter(None, (text.rstrip("\n"), f"(Note: {'; '.join(doubts)}.)"))) if doubts else text


def report_doubts(reasons: Callable[[], list[str]], *, about_one: bool = False) -> None:
    """Pass these reasons to the interface if it collects them. Reasons about one memory replace reasons about all."""
    collected = _DOUBTS.get()
    if collected is None or (collected.about_one and not about_one):
        return
    if not collected.about_one and about_one:
        collected.about_one = True
        collected.texts.clear()
    collected.texts += [one for one in reasons() if one not in collected.texts]


def advise_on(opened: OpenVault, word: str, method: str, result: Any, arguments: Mapping[str, Any]) -> None:
    """Pass the advice on a write to the interface that collects it, else to the program that uses the library; only for the
    outer one of nested calls."""
    collected = _COLLECTED.get()
    if word not in _WRITES or _INSIDE.get() or (collected is None and acting().face != _LIBRARY.face):
        return
    from ipfsmem.open_vault.advising import advise  # few calls write

    repeats = acting().face not in (_LIBRARY.face, "cli")
    advise(opened.replica, collected, method, result, arguments, repeats=repeats)


def note(opened: OpenVault, word: str, scope: str, about: str, outcome: str) -> None:
    """Record an operation of the current interface and client. A failure to record is ignored."""
    if opened.closed:
        return
    from ipfsmem.device.operations import Operation, note_operation

    who, replica = acting(), opened.replica
    one = Operation(replica.environment.now(), word, scope, about, who.face, who.by, outcome)
    note_operation(replica, one, opened.operations_kept)


def operation_counts(opened: OpenVault) -> dict[str, int]:
    """Return the number of entries of each operation in the audit log, most frequent first."""
    from collections import Counter

    from ipfsmem.device.operations import operations

    listed = operations(opened.replica, opened.operations_kept)
    return dict(Counter(one.operation for one in listed).most_common())
