"""A vault with its mailbox: ops that nobody admitted yet as siblings, and the next op of an agent (format section 5.3). Pure."""

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
    """An entry as a reader shows it. `entry` holds the values that no pending op replaces, and the pending ops under dots of
    their agents that stand for `ops`; `texts` the texts of these, by SHA-256."""

    entry: Entry
    ops: dict[str, PlacedOp]
    texts: dict[str, bytes]


def entry_with_ops(entry: Entry, pending: Iterable[PlacedOp]) -> EntryWithOps:
    """Return `entry` with the pending ops that write it, those of `pending_ops`: each is a sibling unless another one saw it.

    The dot of an op is not one of the state: it has the id of its agent, for whose text it is, and a number from its mark.
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
    """Return pending ops by the entry that they write; events under the name of their timeline."""
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
    """Return the op that writes `text` (None: forgets) after its writer was shown the dots `replaces` of `shown`.

    `h` is greater than every clock value there (`op_clock`).
    """
    ops = [shown.ops[dot] for dot in replaces if dot in shown.ops]
    dots = {dot for dot in replaces if dot in shown.entry and dot not in shown.ops}
    sees = {each.as_seen() for each in ops}
    for each in ops:
        dots.update(each.op.dots)
        sees.update(each.op.sees)
    # An older text that is left out here may reappear as an alternative; it is never lost.
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
    """Return the clock value of a new op: after `last` and all values of `seen`.

    A millisecond begins at `counter`, 16 random bits: two copies of one process that resume from a snapshot then differ.
    """
    latest = max([last, *(value.h for value in seen.values())])
    return max(next_hlc(latest, now_ms), hlc(min(max(now_ms, 0), 2**48 - 1), counter & MAX_COUNTER))
