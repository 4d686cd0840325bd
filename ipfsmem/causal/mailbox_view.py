"""Show pending mailbox ops as siblings of their entry, and build an agent's next op (format section 5.3). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from ipfsmem.causal.clock import MAX_COUNTER, hlc, next_hlc
from ipfsmem.causal.mailbox_admission import replaced_dots, superseded_marks
from ipfsmem.causal.mailbox_entry import EVENT, MAX_SEES, MailboxOp, PlacedOp
from ipfsmem.causal.state import next_bases
from ipfsmem.causal.value import FORGOTTEN, LIVE, Entry, Value, hash32
from ipfsmem.causal.value import dot as make_dot
from ipfsmem.causal.view import in_view_order


class EntryWithOps(msgspec.Struct, frozen=True):
    """An entry with its pending ops. `entry`: the values that no pending op replaces, and each shown op as a value
    under a made-up dot of its agent. `ops`: the ops by that dot. `texts`: their texts by SHA-256."""

    entry: Entry
    ops: dict[str, PlacedOp]
    texts: dict[str, bytes]


def entry_with_ops(entry: Entry, pending: Iterable[PlacedOp]) -> EntryWithOps:
    """Return `entry` with the ops `pending` that write it: each op is a sibling, unless another of the ops saw it.

    An op's dot does not exist in the state: it consists of the agent's id and a number from the op's mark.
    """
    ops = list(pending)
    gone = {dot for each in ops for dot in replaced_dots(entry, each.op)}
    hidden = {mark for each in ops for mark in superseded_marks(each)}
    held = {(value.kind, value.body, value.h) for dot, value in entry.items() if dot not in gone}
    shown: Entry = {dot: value for dot, value in entry.items() if dot not in gone}
    placed: dict[str, PlacedOp] = {}
    texts: dict[str, bytes] = {}
    for each in ops:
        op, body = each.op, each.op.body
        if each.mark in hidden or (op.kind, body, op.h) in held:
            continue
        dot = make_dot(each.agent, 1 + int(each.mark[:13], 16))
        kind = FORGOTTEN if op.kind == FORGOTTEN else LIVE
        shown[dot] = Value(b=op.b, body=body, h=op.h, kind=kind, author=op.author)
        placed[dot] = each
        if body is not None and op.text is not None:
            texts[body] = op.text.encode()
    return EntryWithOps(shown, placed, texts)


def by_entry(pending: Iterable[PlacedOp]) -> dict[str, list[PlacedOp]]:
    """Group pending ops by the entry that they write; an event's entry is `t` or `t/<scope>`."""
    found: dict[str, list[PlacedOp]] = {}
    for each in pending:
        found.setdefault(each.op.e, []).append(each)
    return found


def pending_events(pending: Iterable[PlacedOp]) -> dict[str, list[bytes]]:
    """Return the lines of pending events by scope."""
    found: dict[str, list[bytes]] = {}
    for each in pending:
        if each.op.kind == EVENT and each.op.text is not None:
            found.setdefault(each.op.scope, []).append(each.op.text.encode())
    return found


def replacing_op(
    name: str, shown: EntryWithOps, replaces: Collection[str], text: str | None, h: str, author: str = ""
) -> MailboxOp:
    """Return the op that writes `text` (None deletes) and replaces the dots `replaces`, which its writer was shown.

    `h`: a clock value greater than all in `shown` (see `op_clock`).
    """
    ops = [shown.ops[dot] for dot in replaces if dot in shown.ops]
    dots = {dot for dot in replaces if dot in shown.entry and dot not in shown.ops}
    sees = {each.as_seen() for each in ops}
    for each in ops:
        dots.update(each.op.dots)
        sees.update(each.op.sees)
    # A text omitted here may reappear as an alternative, but is not lost.
    newest = sorted(sees, key=lambda each: (each.h, each), reverse=True)[:MAX_SEES]
    stored = {hash32(v.body) for dot, v in shown.entry.items() if dot not in shown.ops and v.body is not None}
    replaced = in_view_order(shown.entry, replaces)
    b = next_bases(replaced, stored.__contains__)[0] if text is not None else ()
    return MailboxOp(
        b=b,
        dots=tuple(sorted(dots)),
        e=name,
        h=h,
        kind=FORGOTTEN if text is None else LIVE,
        author=author if text is not None else "",
        sees=tuple(sorted(newest)),
        text=text,
    )


def op_clock(seen: Mapping[str, Value], last: str, now_ms: int, counter: int) -> str:
    """Return the clock value of a new op: greater than `last` and than all clock values in `seen`.

    Within a millisecond, values start at `counter` (16 random bits), so that two copies of a process that resume from
    one snapshot differ.
    """
    latest = max([last, *(value.h for value in seen.values())])
    return max(next_hlc(latest, now_ms), hlc(min(max(now_ms, 0), 2**48 - 1), counter & MAX_COUNTER))
