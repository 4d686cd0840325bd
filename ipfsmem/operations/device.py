"""The operations on this device alone: its clock, and the passphrase of its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from ipfsmem.answer import Answer
from ipfsmem.errors import IncompleteError, StorageError, UsageError
from ipfsmem.operation import Except, View, operation

if TYPE_CHECKING:
    from ipfsmem.results import KeysProtected

#: Types of results, imported when an interface shows them.
LATE = {"KeysProtected": "ipfsmem.results"}


class ClockBack(Answer, frozen=True, kw_only=True):
    """The number of milliseconds by which the clock of new writes was set back."""

    clock_back_ms: int


@operation(
    name="maintenance.trust_clock",
    summary="Date new writes by this machine's clock again",
    right="write",
    about="memory",
    raises=("UsageError: writes are dated at most a day ahead of the clock; time catches up with that.",),
    audit="check",
    command="",
)
def trust_clock(view: View) -> ClockBack:
    """Date new writes by this machine's clock again, although this device once wrote far in its future.

    Earlier writes keep their date, and win over writes of others until they are overwritten.
    """
    from ipfsmem.causal.clock import corrected_hlc, hlc_ms
    from ipfsmem.device.state import StateHeader

    replica = view.opened.replica
    with replica.transaction():
        frame = replica.store.frame
        right = corrected_hlc(frame.hlc, replica.environment.now())
        if right is None:
            raise UsageError(
                "this device's writes are dated at most a day ahead of this machine's clock: nothing to fix",
                hint="If the clock is behind, set it.",
            )
        replica.store.apply({}, StateHeader(frame.ctx, frame.seen, right))
    return ClockBack(clock_back_ms=hlc_ms(frame.hlc) - hlc_ms(right))


@operation(
    name="maintenance.change_passphrase",
    summary="Change the passphrase of this device's keys",
    right="admin",
    about="memory",
    raises=(
        "PassphraseError: `old` is wrong, or `new` is too weak.",
        "UsageError: the mode of the vault has no keys.",
        "StorageError: the old passphrase is still valid.",
        "IncompleteError: the new passphrase is valid, but cached keys could not be locked.",
    ),
    audit="keys passphrase",
    command="key passphrase",
)
def change_passphrase(
    view: View,
    new: Annotated[
        str | Literal[False],
        Meta(description="The new passphrase; False for none."),
        Except(("cli", "http", "mcp")),
    ],
    old: Annotated[
        str | None,
        Meta(description="The present passphrase; None if the keys have none."),
        Except(("cli", "http", "mcp")),
    ] = None,
) -> KeysProtected:
    """Change the passphrase of this device's keys, and lock cached keys.

    A passphrase needs at least 8 characters, not counting repeats and sequences (aaa, 123). Other devices have
    passphrases of their own. A copy of the old key file still opens with the old passphrase: if somebody may have one,
    revoke this device and set it up again.
    """
    from ipfsmem.device.identity import change_passphrase
    from ipfsmem.mode import Mode
    from ipfsmem.results import KeysProtected
    from ipfsmem.vault.owner import check_protection
    from ipfsmem.vault.unlocking import lock_device

    opened, folder = view.opened, view.opened.replica.folder
    if not opened.mode.published or folder is None:
        raise UsageError(
            f"a vault in mode {opened.mode} has no keys to protect: whoever can read this disk can read it"
        )
    check_protection(Mode.ENCRYPTED_IPFS, new)
    change_passphrase(folder, old, new or None, opened.replica.environment.random)
    try:
        lock_device(folder)
    except StorageError as error:
        raise IncompleteError(f"the passphrase was changed, but {error}", hint=error.hint) from error
    return KeysProtected(protected=bool(new))
