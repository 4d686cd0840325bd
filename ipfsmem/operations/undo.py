"""The operation `undo`: undo the last change of this device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.operation import View, operation

if TYPE_CHECKING:
    from ipfsmem.memories.undo import Undone

LATE = {"Undone": "ipfsmem.memories.undo"}


@operation(
    summary="Undo this device's last write or forget",
    right="write",
    about="memory",
    raises=(
        "NotFoundError: there is nothing to undo, or its texts are not kept any more.",
        "ChangedError: the memory was changed since; nothing was undone.",
    ),
)
def undo(view: View) -> Undone:
    """Undo the last write, forget, resolve, restore or undo by this program on this device, in any scope.

    This restores the earlier text, unless the memory was changed since. A second call undoes the undo.
    """
    from ipfsmem.memories.undo import undo as undone

    done = undone(view.opened.memories)
    view.opened.render_file(done.key, done.scope)
    return done
