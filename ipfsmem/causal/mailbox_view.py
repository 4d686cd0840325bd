"""Show pending mailbox ops as siblings of their entry, and build an agent's next op (format section 5.3). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from ipfsmem.causal.authorship import IsMine
from ipfsmem.causal.clock import MAX_COUNTER, ZERO, hlc, hlc_after_seeing, next_hlc
from ipfsmem.causal.mailbox_admission import replaced_dots, superseded_marks
from ipfsmem.causal.mailbox_entry import EVENT, MAX_SEES, AgentOp, MailboxOp, SeenOp
from ipfsmem.causal.state import next_bases
from ipfsmem.causal.value import FORGOTTEN, LIVE, MAX_VALUES, Entry, Value, hash32
from ipfsmem.causal.value import dot as make_dot
from ipfsmem.causal.view import in_view_order


class EntryWithOps(msgspec.Struct, frozen=True):
    """An entry with its pending ops. `entry`: the values that no pending op replaces, and each shown op as a value
    under a made-up dot of its agent. `ops`: the ops by that dot. `texts`: their texts by SHA-256."""

    entry: Entry
    ops: dict[str, AgentOp]
    texts: dict[str, bytes]


def entry_with_ops(entry: Entry, pending: Iterable[AgentOp], mine: IsMine) -> EntryWithOps:
    """Return `entry` with the ops `pending` that write it: each op is a sibling, unless another of the ops saw it.

    An op's dot does not exist in the state: it consists of the agent's id and a number from the op's mark.
    """
    ops = list(pending)
    gone = {dot for each in ops for dot in replaced_dots(entry, each, mine)}
    hidden = {mark for each in ops for mark in superseded_marks(each, mine)}
    shown: Entry = {dot: value for dot, value in entry.items() if dot not in gone}
    placed: dict[str, AgentOp] = {}
    texts: dict[str, bytes] = {}
    for each in ops:
        op = each.op
        if each.mark in hidden:
            continue
        dot = make_dot(each.agent, 1 + int(each.mark[:13], 16))
        shown[dot] = Value(b=op.b, body=op.body, h=op.h, kind=op.kind, author=op.author)
        placed[dot] = each
        if op.body is not None and op.text is not None:
            texts[op.body] = op.text.encode()
    return EntryWithOps(shown, placed, texts)


def by_entry(pending: Iterable[AgentOp]) -> dict[str, list[AgentOp]]:
    """Group pending ops by the entry that they write; an event's entry is `t` or `t/<scope>`."""
    found: dict[str, list[AgentOp]] = {}
    for each in pending:
        found.setdefault(each.op.e, []).append(each)
    return found


def pending_events(pending: Iterable[AgentOp]) -> dict[str, list[bytes]]:
    """Return the lines of pending events by scope."""
    found: dict[str, list[bytes]] = {}
    for each in pending:
        if each.op.kind == EVENT and each.op.text is not None:
            found.setdefault(each.op.scope, []).append(each.op.text.encode())
    return found


def replacing_op(
    name: str, shown: EntryWithOps, replaces: Collection[str], text: str | None, h: str, author: str = ""
) -> MailboxOp:
    """Return the op that writes `text` (None: FORGOTTEN) and replaces the dots `replaces` of `shown`, which its
    writer was shown.

    `h`: the result of `op_clock`.
    """
    ops = [shown.ops[dot] for dot in replaces if dot in shown.ops]
    dots = {(dot, shown.entry[dot].h) for dot in replaces if dot in shown.entry and dot not in shown.ops}
    sees = {each.as_seen() for each in ops}
    # The list of replaced ops is limited; an omitted older text may reappear as an alternative.
    older = {dot for each in ops for dot in each.op.dots} - dots
    before = {seen for each in ops for seen in each.op.sees} - sees
    dots.update(sorted(older)[: max(0, MAX_VALUES - len(dots))])
    named = [
        *sorted(sees, key=_newest, reverse=True),
        *sorted(before, key=_newest, reverse=True),
    ][:MAX_SEES]
    stored = {hash32(v.body) for dot, v in shown.entry.items() if dot not in shown.ops and v.body is not None}
    replaced = in_view_order(shown.entry, replaces)
    b = next_bases(replaced, stored.__contains__)[0] if text is not None else ()
    return MailboxOp(
        b=b,
        dots=tuple(sorted(dots)[:MAX_VALUES]),
        e=name,
        h=h,
        kind=FORGOTTEN if text is None else LIVE,
        author=author if text is not None else "",
        sees=tuple(sorted(named)),
        text=text,
    )


def _newest(seen: SeenOp) -> tuple[str, SeenOp]:
    return (seen.h, seen)


def op_clock(seen: Mapping[str, Value], last: str, now_ms: int, counter: int) -> str:
    """Return the clock value of a new op: greater than `last` and than the values of `seen`, each limited to five
    minutes ahead.

    Within a millisecond, values start at `counter` (16 random bits), so that two copies of a process that resume from
    one snapshot differ.
    """
    latest = max([last, *(hlc_after_seeing(ZERO, value.h, now_ms) for value in seen.values())])
    return max(next_hlc(latest, now_ms), hlc(min(max(now_ms, 0), 2**48 - 1), counter & MAX_COUNTER))
