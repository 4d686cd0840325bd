"""Further tools: facts with their history, sessions, ways in the graph, dreams, usage.

Offered on request only. A text is replaced only with the `seen` of an answer, or the id of a proposal that was shown whole;
`add_fact` may replace a less complete fact, which stays in its history. Deletions can be undone. Hidden memories are not
shown to models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ipfsmem.bundle.fence import CANDIDATE, NOTICE, clean_text, quote, tagged
from ipfsmem.errors import NotFoundError
from ipfsmem.memories.facts import Fact, Remembered
from ipfsmem.memories.usage import Used, dollars
from ipfsmem.operations.facts.add import add
from ipfsmem.operations.facts.delete import delete
from ipfsmem.operations.facts.history import EarlierFact, EarlierFacts, history
from ipfsmem.operations.facts.list import FactPage
from ipfsmem.operations.facts.list import list_ as list_facts
from ipfsmem.operations.facts.restore import restore
from ipfsmem.operations.sessions.list import SessionPage
from ipfsmem.operations.sessions.list import list_ as list_sessions
from ipfsmem.operations.sessions.messages import SessionMessage, SessionMessages, messages
from ipfsmem.operations.usage.add import add as add_use
from ipfsmem.operations.usage.totals import UsageTotals, totals
from ipfsmem.tools.definition import SCOPE, Definition
from ipfsmem.tools.derived import RenderedAnswer, tool
from ipfsmem.tools.graph import shown as shown_graph
from ipfsmem.tools.paging import ANSWER, beginning, weight
from ipfsmem.tools.schema import JSON, answer, arguments, text
from ipfsmem.tools.tool import ToolResult
from ipfsmem.tools.tool_context import ToolContext, one_line, whose
from ipfsmem.wording import count, moment

if TYPE_CHECKING:
    from ipfsmem.device.dreams import Proposed
    from ipfsmem.memory import Memory
    from ipfsmem.operations.graph.stored import Node

#: Characters of one message, bytes that an answer needs around texts, and those of all texts of a proposal that one answer shows.
_MESSAGE: Final = 4_000
_AROUND: Final = 800
_PROPOSAL: Final = ANSWER - 3_000
_CUT: Final = "(truncated: read_memory shows the whole text)"
#: Earlier texts that one answer has.
_EARLIER: Final = 50
_string, _count, _flag = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
_list: Final = {"type": "array", "items": {"type": "object"}}
_keys: Final = {"type": "array", "items": _string}
_SEEN: Final = text("The seen value of the answer that showed it.", least=8, most=64)
_DAY: Final = "UTC day, such as 2026-04-14."


# -- facts ---------------------------------------------------------------------------------------------------


def _add_fact(desk: ToolContext, made: Remembered, given: JSON) -> RenderedAnswer:
    key = made.fact.key
    said = {
        "kept": f"{key} says it already.",
        "updated": f"{key} now says so; its earlier text is in its history.",
        "added": f"{key} is remembered.",
    }[made.action]
    if made.conflict:
        said += " It contradicts another fact: list_facts marks it, and the person decides."
    # The text there may say more than the one given: who is not shown it gets no seen of it.
    there_now = made.fact.text if made.action == "kept" and made.fact.text != given["text"] else ""
    body = beginning(made.was or there_now, ANSWER - _AROUND)
    was = f"\n\n{NOTICE}\n\n{quote(body)}" if body else ""
    fact = _cut_to(made.fact, body) if there_now else made.fact
    seen = f"\nseen: {fact.seen}" if fact.seen else ""
    # Memories hidden on this device are for the person alone.
    shown = replace(made, fact=fact, was=body if made.was else "", hidden=())
    return RenderedAnswer(said + was + seen, shown)


def _cut_to(fact: Fact, text: str) -> Fact:
    """The part of a fact that a model is shown; a part has no seen."""
    return fact if text == fact.text else replace(fact, text=text, seen="")


def _list_facts(desk: ToolContext, page: FactPage, given: JSON) -> RenderedAnswer:
    lines, shown, room = list[str](), list[Fact](), ANSWER - _AROUND
    for one in page:
        line = _fact_line(one, one.text)
        if weight(line) > room and not lines:
            one = _cut_to(one, beginning(one_line(one.text), room - 400))
            line = _fact_line(one, one.text)
        room -= weight(line) + 4
        if room < 0 and lines:
            break
        lines.append(line)
        shown.append(one)
    if len(shown) < len(page):
        page = desk.there(given).facts.list(
            given["kind"], given["category"], limit=len(shown), cursor=given["cursor"]
        )
    said = f"{NOTICE}\n\n{quote(chr(10).join(lines))}" if lines else "No facts."
    said += f"(more: continue with cursor={page.next})\n" if page.next else ""
    return RenderedAnswer(said, replace(page, facts=tuple(shown)))


def _fact_line(one: Fact, shown: str) -> str:
    opposite = " (contradicts another)" if one.conflict else ""
    seen = f"(seen {one.seen})" if one.seen else _CUT
    return f"{one.key} [{one_line(one.category)}]{whose(one.own)}{opposite}: {one_line(shown)} {seen}"


def _fact_history(desk: ToolContext, found: EarlierFacts, given: JSON) -> RenderedAnswer:
    lines, shown, room = list[str](), list[EarlierFact](), ANSWER - _AROUND
    for one in found.facts[:_EARLIER]:
        text = beginning(one_line(one.text), max(room - 400, 200))
        cut = " (cut here)" if text != one_line(one.text) else ""
        line = f"{one.number}. {one.key}, {one.why} {moment(one.until)}: {text}{cut}"
        room -= weight(line) + 4
        if room < 0 and lines:
            break
        lines.append(line)
        shown.append(replace(one, text=text) if cut else one)
    left = len(found) - len(lines)
    lines += [f"And {count(left, 'older one', 'older ones')}."] if left else []
    key = given["key"]
    nothing = "No facts were deleted." if key is None else f"{key} has no earlier text."
    said = f"{NOTICE}\n\n{quote(chr(10).join(lines))}" if lines else nothing
    return RenderedAnswer(said, replace(found, facts=tuple(shown)), {"more": left})


def _restore_fact(desk: ToolContext, made: Fact, given: JSON) -> RenderedAnswer:
    shown = _cut_to(made, beginning(made.text, ANSWER - _AROUND))
    seen = f"seen: {shown.seen}" if shown.seen else _CUT
    return RenderedAnswer(f"{made.key} says now:\n\n{NOTICE}\n\n{quote(shown.text)}{seen}", shown)


def _delete_fact(desk: ToolContext, gone: Fact, given: JSON) -> RenderedAnswer:
    shown = _cut_to(gone, beginning(gone.text, ANSWER - _AROUND))
    return RenderedAnswer(f"{gone.key} is deleted. restore_fact restores it.", shown)


# -- sessions ------------------------------------------------------------------------------------------------


def _list_sessions(desk: ToolContext, found: SessionPage, given: JSON) -> RenderedAnswer:
    lines, room = list[str](), ANSWER - _AROUND
    for one in found:
        title = f"{one_line(one.title)[:200]}{whose(one.own)}"
        line = f"{one_line(one.session)}: {title} ({count(one.messages, 'message')}, {moment(one.changed)})"
        room -= weight(line) + 4
        if room < 0 and lines:
            break
        lines.append(line)
    left = len(found) - len(lines)
    lines += [f"And {count(left, 'older one', 'older ones')}."] if left else []
    total = len(found) + found.older + len(found.problems)
    said = f"{count(total, 'session')}. {NOTICE}\n\n{quote(chr(10).join(lines))}" if lines else "No sessions."
    return RenderedAnswer("\n\n".join([said, *(one_line(one.detail) for one in found.problems)]), found)


def _read_session(desk: ToolContext, found: SessionMessages | None, given: JSON) -> RenderedAnswer:
    session = given["session"]
    if found is None:
        raise NotFoundError(f"there is no session {session[:60]}", hint="list_sessions lists the sessions.")
    shown, fenced = list[SessionMessage](), list[str]()
    summary = clean_text(found.summary)
    if (begun := beginning(summary, ANSWER // 3)) != summary:
        summary = f"{begun}\n(cut here: {len(summary):,} characters in all)"
    room = ANSWER - _AROUND - weight(quote(summary))
    for message in reversed(found.messages):
        said = clean_text(message.text)
        begun = beginning(said[:_MESSAGE], max(room - 300, 0))
        if not begun and said:
            break
        if begun != said:
            said = f"{begun}\n(cut here: {len(said):,} characters in all)"
        shown_as = {
            "session": session,
            "role": message.role,
            "at": moment(message.at),
            "whose": "own" if message.own else "others",
        }
        quoted = tagged("memory-message", shown_as, said)
        room -= weight(quoted)
        if room < 0 and fenced:
            break
        fenced.append(quoted)
        shown.append(replace(message, text=said))
    fenced.reverse()
    shown.reverse()
    shown_as = {"session": session, "whose": "own" if found.summary_own else "others"}
    told = tagged("session-summary", shown_as, summary) if summary else ""
    all_own = found.summary_own and all(one.own for one in shown)
    notice = NOTICE if all_own else f"{NOTICE} {CANDIDATE}"
    more = found.before + len(found.messages) - len(shown)
    before = f"({count(more, 'message')} before these)\n" if more else ""
    # A caller that saw a part of a session has not seen the whole.
    part = replace(found, before=more, messages=tuple(shown), summary=summary, seen="")
    return RenderedAnswer(f"{notice}\n\n{told}{before}" + "\n".join(fenced), part)


# -- the graph -----------------------------------------------------------------------------------------------


def _find_path(desk: ToolContext, given: JSON) -> ToolResult:
    graph = desk.there(given).graph
    found = graph.path(given["begin"], given["end"])
    if found is None:
        raise NotFoundError(
            f"no relations lead from {given['begin'][:60]} to {given['end'][:60]}",
            hint="knowledge_query shows the neighbours of an entity.",
        )
    ends = dict.fromkeys(key for one in found for key in (one.begin, one.end))
    nodes: list[Node] = [node for key in (ends or [given["begin"]]) if (node := graph.get(key)) is not None]
    return shown_graph(graph, nodes, found, f"{count(len(found), 'relation')} away")


# -- dreams --------------------------------------------------------------------------------------------------


def _dream_status(desk: ToolContext, given: JSON) -> ToolResult:
    found = desk.there(given).dreams.status()
    said = [
        f"Automatic: {'not now, ' + found.waits_for if found.waits_for else 'when it is due'}.",
        f"One is running ({found.phase or 'begun'})." if found.under_way else "",
        f"Last: {moment(found.worked) if found.worked else 'never'}.",
        f"Proposed, not applied: {count(found.changes, 'change')}; show_dream shows it."
        if found.proposed
        else "",
        f"Can be undone: {count(found.kept, 'dream')}." if found.kept else "",
    ]
    dreams = [
        {"dream": one.id, "at": moment(one.at), "memories": one.written + one.removed}
        for one in desk.there(given).dreams.list()
    ]
    said += [f"Dream {one['dream']}, {one['at']}: {one['memories']} changed." for one in dreams]
    return ToolResult(
        " ".join(filter(None, said)),
        {
            "waits_for": found.waits_for,
            "under_way": found.under_way,
            "last": moment(found.worked) if found.worked else "",
            "changes": found.changes,
            "dreams": dreams,
        },
    )


def _dream(desk: ToolContext, given: JSON) -> ToolResult:
    there = desk.there(given)
    return _proposal(there, there.dreams.propose())


def _show_dream(desk: ToolContext, given: JSON) -> ToolResult:
    there = desk.there(given)
    found = there.dreams.proposed()
    if found is None:
        raise NotFoundError("no proposed changes", hint="Create a proposal: dream.")
    return _proposal(there, found)


def _proposal(there: Memory, found: Proposed) -> ToolResult:
    """Return the proposal, with its id if it is shown whole."""
    left, parts = _PROPOSAL, list[str]()
    steps: list[dict[str, Any]] = []
    for step in found.steps:
        changes: list[dict[str, Any]] = []
        for change in step.changes:
            reading = there.read(change.key, counts=False)
            before = clean_text(reading.text if reading is not None else "")
            after = clean_text(change.text or "")
            left -= weight(quote(before)) + weight(quote(after))
            changes.append({"key": change.key, "before": before, "after": after, "gone": change.text is None})
        if left < 0:
            break
        steps.append({"why": one_line(step.why), "changes": changes})
        parts.append(tagged("dream-step", {}, one_line(step.why)))
        for one in changes:
            parts.append(tagged("memory-now", {"key": one["key"]}, one["before"]))
            parts.append(
                f"{one['key']} will be deleted.\n"
                if one["gone"]
                else tagged("memory-then", {"key": one["key"]}, one["after"])
            )
    looked = f"Looked at {count(found.looked_at, 'memory')}."
    judged = [
        {"kind": one.kind, "key": one.key, "other": one_line(one.other), "detail": one_line(one.detail)}
        for one in found.found[:50]
    ]
    if judged:
        lines = "\n".join(
            f"{one['kind']}: {one['key']} {one['other']} {one['detail']}".strip() for one in judged
        )
        parts.append(f"For the person to decide:\n{quote(lines)}")
    whole = len(steps) == len(found.steps)
    proposal = found.id if whole and steps else ""
    if proposal:
        said = f"{looked} Nothing is changed yet. To apply it: apply_dream with proposal={proposal}."
    elif steps:
        said = f"{looked} This is only a part, so the person applies it: ipfsmem dream show, ipfsmem dream apply."
    else:
        said = (
            f"{looked} Nothing to tidy up."
            if whole
            else f"{looked} It is too long to show: ipfsmem dream show."
        )
    text = "\n".join([said, *([NOTICE, ""] if parts else []), *parts])
    return ToolResult(
        text,
        {
            "notice": NOTICE,
            "proposal": proposal,
            "looked_at": found.looked_at,
            "steps": steps,
            "found": judged,
        },
    )


def _apply_dream(desk: ToolContext, given: JSON) -> ToolResult:
    done = desk.there(given).dreams.apply(given["proposal"].lower())
    skipped = [one_line(why) for why in done.skipped]
    said = f"{count(len(done.written), 'memory')} changed, {count(len(done.removed), 'memory')} deleted."
    if done.id:
        said += f" undo_dream with dream={done.id} reverts it."
    if skipped:
        said += f" Skipped, as changed since:\n{quote(chr(10).join(skipped))}"
    return ToolResult(
        said,
        {"dream": done.id, "written": list(done.written), "removed": list(done.removed), "skipped": skipped},
    )


def _undo_dream(desk: ToolContext, given: JSON) -> ToolResult:
    undone = desk.there(given).dreams.undo(given["dream"].lower())
    stay = [*undone.changed, *undone.lost]
    said = f"{count(len(undone.back), 'memory')} restored." + (
        f" Changed since, so skipped: {', '.join(stay)}." if stay else ""
    )
    return ToolResult(said, {"dream": undone.id, "back": list(undone.back), "left": stay})


# -- usage ---------------------------------------------------------------------------------------------------


def _usage(desk: ToolContext, found: UsageTotals, given: JSON) -> RenderedAnswer:
    shown = replace(found, totals=tuple(replace(one, name=one_line(one.name)) for one in found))
    lines = [
        f"{one.name or '(not recorded)'}: {count(one.uses, 'use')}, {one.input_tokens:,} tokens in, {one.output_tokens:,} out, {dollars(one.cost)} USD"
        for one in shown
    ]
    said = f"{NOTICE}\n\n{quote(chr(10).join(lines))}" if lines else "Nothing is recorded."
    return RenderedAnswer(said, shown)


def _note_usage(desk: ToolContext, made: Used, given: JSON) -> RenderedAnswer:
    return RenderedAnswer(f"Noted at {made.at}.", made)


# -- what models are told ------------------------------------------------------------------------------------


def _one(
    name: str,
    title: str,
    description: str,
    run: Callable[[ToolContext, JSON], ToolResult],
    parameters: JSON,
    returns: JSON,
    *,
    changes: bool = False,
    takes_away: bool = False,
) -> Definition:
    return Definition(
        name=name,
        title=title,
        description=description,
        parameters=parameters,
        returns=returns,
        run=run,
        read_only=not (changes or takes_away),
        destructive=takes_away,
        idempotent=not (changes or takes_away),
    )


_ENTITY = text("Name or key of the entity.", least=1, most=200)
_TOKENS = 10**12

LIFE: Final = (
    tool(add, _add_fact),
    tool(list_facts, _list_facts),
    tool(history, _fact_history, more={"more": _count}),
    tool(restore, _restore_fact),
    tool(delete, _delete_fact),
    tool(list_sessions, _list_sessions),
    tool(messages, _read_session),
    _one("find_path", "Find a path between entities", "Find a shortest path between two entities of the knowledge graph, along relations in either direction.", _find_path, arguments("begin", "end", begin=_ENTITY, end=_ENTITY, scope=SCOPE), answer(notice=_string, entities=_list, relations=_list, more=_flag)),
    _one("dream_status", "Dream status", "Show whether a dream is running, when the last one ended, what one proposed, and which can be undone.", _dream_status, arguments(scope=SCOPE), answer(waits_for=_string, under_way=_flag, last=_string, changes=_count, dreams=_list)),
    _one("dream", "Dream", "Scan all memories and propose what to tidy up, such as duplicates and dead links. Changes no memory.", _dream, arguments(scope=SCOPE), answer(notice=_string, proposal=_string, looked_at=_count, steps=_list, found=_list), changes=True),
    _one("show_dream", "Show a dream's proposal", "Show the open proposal of the last dream: each step with the texts before and after it.", _show_dream, arguments(scope=SCOPE), answer(notice=_string, proposal=_string, looked_at=_count, steps=_list, found=_list)),
    _one("apply_dream", "Apply a dream's proposal", "Apply a proposal that was shown in full, except where somebody wrote since. undo_dream reverts it.", _apply_dream, arguments("proposal", proposal=text("The proposal value of the answer that showed it.", least=12, most=12), scope=SCOPE), answer(dream=_string, written=_keys, removed=_keys, skipped=_keys), takes_away=True),
    _one("undo_dream", "Take a dream back", "Restore the texts that a dream on this device replaced, except where somebody wrote since.", _undo_dream, arguments("dream", dream=text("Id of the dream, from apply_dream or dream_status.", least=12, most=12), scope=SCOPE), answer(dream=_string, back=_keys, left=_keys), changes=True),
    tool(totals, _usage),
    tool(add_use, _note_usage),
)  # fmt: skip

#: The same by what they are about.
GROUPS: Final = {
    about: tuple(one for one in LIFE if one.name in names)
    for about, names in {
        "facts": ("add_fact", "list_facts", "fact_history", "restore_fact", "delete_fact"),
        "sessions": ("list_sessions", "read_session"),
        "dreams": ("dream_status", "dream", "show_dream", "apply_dream", "undo_dream"),
    }.items()
}
