"""Further tools: facts with their history, sessions, ways in the graph, dreams, usage.

Offered on request only. A text is replaced only with the `seen` of an answer, or the id of a proposal that was shown whole;
`add_fact` may replace a less complete fact, which stays in its history. Deletions can be undone. Hidden memories are not
shown to models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ipfsmem.bundle.fence import CANDIDATE, NOTICE, clean_text, quote, tagged
from ipfsmem.dream.proposal import Change, Step
from ipfsmem.errors import NotFoundError
from ipfsmem.memories.dreams import Outcome, Undoing
from ipfsmem.memories.facts import Fact, Remembered
from ipfsmem.memories.usage import Used, dollars
from ipfsmem.operations.dreams import DreamStatus, apply, propose, proposed, status, undo
from ipfsmem.operations.facts.add import add
from ipfsmem.operations.facts.delete import delete
from ipfsmem.operations.facts.history import EarlierFact, EarlierFacts, history
from ipfsmem.operations.facts.list import FactPage
from ipfsmem.operations.facts.list import list_ as list_facts
from ipfsmem.operations.facts.restore import restore
from ipfsmem.operations.graph.relations import path
from ipfsmem.operations.sessions.list import SessionPage
from ipfsmem.operations.sessions.list import list_ as list_sessions
from ipfsmem.operations.sessions.messages import SessionMessage, SessionMessages, messages
from ipfsmem.operations.usage.add import add as add_use
from ipfsmem.operations.usage.totals import UsageTotals, totals
from ipfsmem.tools.derived import RenderedAnswer, tool
from ipfsmem.tools.graph import shown as shown_graph
from ipfsmem.tools.paging import ANSWER, beginning, weight
from ipfsmem.tools.schema import JSON
from ipfsmem.tools.tool_context import ToolContext, one_line, whose
from ipfsmem.wording import count, moment

if TYPE_CHECKING:
    from ipfsmem.device.dreams import Proposed
    from ipfsmem.memory import Memory
    from ipfsmem.operations.graph.stored import Node, Relations

#: Characters of one message, bytes that an answer needs around texts, and those of all texts of a proposal that one answer shows.
_MESSAGE: Final = 4_000
_AROUND: Final = 800
_PROPOSAL: Final = ANSWER - 3_000
_CUT: Final = "(truncated: read_memory shows the whole text)"
#: Earlier texts that one answer has.
_EARLIER: Final = 50
#: Findings of a dream that one answer has.
_JUDGED: Final = 50
_count: Final = {"type": "integer"}
_list: Final = {"type": "array", "items": {"type": "object"}}
_texts: Final = {"type": "object", "additionalProperties": {"type": "string"}}


# -- facts ---------------------------------------------------------------------------------------------------


def _add_fact(tool_context: ToolContext, result: Remembered, args: JSON) -> RenderedAnswer:
    key = result.fact.key
    message = {
        "kept": f"{key} says it already.",
        "updated": f"{key} now says so; its earlier text is in its history.",
        "added": f"{key} is remembered.",
    }[result.action]
    if result.conflict:
        message += " It contradicts another fact: list_facts marks it, and the person decides."
    # The text there may say more than the one given: who is not shown it gets no seen of it.
    there_now = result.fact.text if result.action == "kept" and result.fact.text != args["text"] else ""
    body = beginning(result.was or there_now, ANSWER - _AROUND)
    was = f"\n\n{NOTICE}\n\n{quote(body)}" if body else ""
    fact = _cut_to(result.fact, body) if there_now else result.fact
    seen = f"\nseen: {fact.seen}" if fact.seen else ""
    # Memories hidden on this device are for the person alone.
    shown = replace(result, fact=fact, was=body if result.was else "", hidden=())
    return RenderedAnswer(message + was + seen, shown)


def _cut_to(fact: Fact, text: str) -> Fact:
    """The part of a fact that a model is shown; a part has no seen."""
    return fact if text == fact.text else replace(fact, text=text, seen="")


def _list_facts(tool_context: ToolContext, page: FactPage, args: JSON) -> RenderedAnswer:
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
        page = tool_context.there(args).facts.list(
            args["kind"], args["category"], limit=len(shown), cursor=args["cursor"]
        )
    text = f"{NOTICE}\n\n{quote(chr(10).join(lines))}" if lines else "No facts."
    text += f"(more: continue with cursor={page.next})\n" if page.next else ""
    return RenderedAnswer(text, replace(page, facts=tuple(shown)))


def _fact_line(one: Fact, shown: str) -> str:
    opposite = " (contradicts another)" if one.conflict else ""
    seen = f"(seen {one.seen})" if one.seen else _CUT
    return f"{one.key} [{one_line(one.category)}]{whose(one.own)}{opposite}: {one_line(shown)} {seen}"


def _fact_history(tool_context: ToolContext, earlier: EarlierFacts, args: JSON) -> RenderedAnswer:
    lines, shown, room = list[str](), list[EarlierFact](), ANSWER - _AROUND
    for one in earlier.facts[:_EARLIER]:
        text = beginning(one_line(one.text), max(room - 400, 200))
        cut = " (cut here)" if text != one_line(one.text) else ""
        line = f"{one.number}. {one.key}, {one.why} {moment(one.until)}: {text}{cut}"
        room -= weight(line) + 4
        if room < 0 and lines:
            break
        lines.append(line)
        shown.append(replace(one, text=text) if cut else one)
    rest = len(earlier) - len(lines)
    lines += [f"And {count(rest, 'older one', 'older ones')}."] if rest else []
    key = args["key"]
    nothing = "No facts were deleted." if key is None else f"{key} has no earlier text."
    message = f"{NOTICE}\n\n{quote(chr(10).join(lines))}" if lines else nothing
    return RenderedAnswer(message, replace(earlier, facts=tuple(shown)), {"more": rest})


def _restore_fact(tool_context: ToolContext, fact: Fact, args: JSON) -> RenderedAnswer:
    shown = _cut_to(fact, beginning(fact.text, ANSWER - _AROUND))
    seen = f"seen: {shown.seen}" if shown.seen else _CUT
    return RenderedAnswer(f"{fact.key} says now:\n\n{NOTICE}\n\n{quote(shown.text)}{seen}", shown)


def _delete_fact(tool_context: ToolContext, gone: Fact, args: JSON) -> RenderedAnswer:
    shown = _cut_to(gone, beginning(gone.text, ANSWER - _AROUND))
    return RenderedAnswer(f"{gone.key} is deleted. restore_fact restores it.", shown)


# -- sessions ------------------------------------------------------------------------------------------------


def _list_sessions(tool_context: ToolContext, page: SessionPage, args: JSON) -> RenderedAnswer:
    lines, room = list[str](), ANSWER - _AROUND
    for one in page:
        title = f"{one_line(one.title)[:200]}{whose(one.own)}"
        line = f"{one_line(one.session)}: {title} ({count(one.messages, 'message')}, {moment(one.changed)})"
        room -= weight(line) + 4
        if room < 0 and lines:
            break
        lines.append(line)
    rest = len(page) - len(lines)
    lines += [f"And {count(rest, 'older one', 'older ones')}."] if rest else []
    total = len(page) + page.older + len(page.problems)
    text = f"{count(total, 'session')}. {NOTICE}\n\n{quote(chr(10).join(lines))}" if lines else "No sessions."
    return RenderedAnswer("\n\n".join([text, *(one_line(one.detail) for one in page.problems)]), page)


def _read_session(
    tool_context: ToolContext, transcript: SessionMessages | None, args: JSON
) -> RenderedAnswer:
    session = args["session"]
    if transcript is None:
        raise NotFoundError(f"there is no session {session[:60]}", hint="list_sessions lists the sessions.")
    shown, fenced = list[SessionMessage](), list[str]()
    summary = clean_text(transcript.summary)
    if (begun := beginning(summary, ANSWER // 3)) != summary:
        summary = f"{begun}\n(cut here: {len(summary):,} characters in all)"
    room = ANSWER - _AROUND - weight(quote(summary))
    for message in reversed(transcript.messages):
        text = clean_text(message.text)
        begun = beginning(text[:_MESSAGE], max(room - 300, 0))
        if not begun and text:
            break
        if begun != text:
            text = f"{begun}\n(cut here: {len(text):,} characters in all)"
        shown_as = {
            "session": session,
            "role": message.role,
            "at": moment(message.at),
            "whose": "own" if message.own else "others",
        }
        quoted = tagged("memory-message", shown_as, text)
        room -= weight(quoted)
        if room < 0 and fenced:
            break
        fenced.append(quoted)
        shown.append(replace(message, text=text))
    fenced.reverse()
    shown.reverse()
    shown_as = {"session": session, "whose": "own" if transcript.summary_own else "others"}
    summary_block = tagged("session-summary", shown_as, summary) if summary else ""
    all_own = transcript.summary_own and all(one.own for one in shown)
    notice = NOTICE if all_own else f"{NOTICE} {CANDIDATE}"
    more = transcript.before + len(transcript.messages) - len(shown)
    before = f"({count(more, 'message')} before these)\n" if more else ""
    # A caller that saw a part of a session has not seen the whole.
    part = replace(transcript, before=more, messages=tuple(shown), summary=summary, seen="")
    return RenderedAnswer(f"{notice}\n\n{summary_block}{before}" + "\n".join(fenced), part)


# -- the graph -----------------------------------------------------------------------------------------------


def _find_path(tool_context: ToolContext, relations: Relations | None, args: JSON) -> RenderedAnswer:
    graph = tool_context.there(args).graph
    if relations is None:
        raise NotFoundError(
            f"no relations lead from {args['begin'][:60]} to {args['end'][:60]}",
            hint="knowledge_query shows the neighbours of an entity.",
        )
    ends = dict.fromkeys(key for one in relations for key in (one.begin, one.end))
    nodes: list[Node] = [node for key in (ends or [args["begin"]]) if (node := graph.get(key)) is not None]
    subgraph = shown_graph(graph, nodes, relations, f"{count(len(relations), 'relation')} away")
    more = {name: subgraph.structured[name] for name in ("entities", "more")}
    return RenderedAnswer(subgraph.text, relations, more)


# -- dreams --------------------------------------------------------------------------------------------------


def _dream_status(tool_context: ToolContext, dream_status: DreamStatus, args: JSON) -> RenderedAnswer:
    sentences = [
        f"Automatic: {'not now, ' + dream_status.waits_for if dream_status.waits_for else 'when it is due'}.",
        f"One is running ({dream_status.phase or 'begun'})." if dream_status.under_way else "",
        f"Last: {moment(dream_status.worked) if dream_status.worked else 'never'}.",
        f"Proposed, not applied: {count(dream_status.changes, 'change')}; show_dream shows it."
        if dream_status.proposed
        else "",
        f"Can be undone: {count(dream_status.kept, 'dream')}." if dream_status.kept else "",
    ]
    dreams = [
        {"dream": one.id, "at": moment(one.at), "memories": one.written + one.removed}
        for one in tool_context.there(args).dreams.list()
    ]
    sentences += [f"Dream {one['dream']}, {one['at']}: {one['memories']} changed." for one in dreams]
    # Only an answer that shows a proposal has its id.
    return RenderedAnswer(
        " ".join(filter(None, sentences)), replace(dream_status, proposed=""), {"dreams": dreams}
    )


def _dream(tool_context: ToolContext, proposed_dream: Proposed, args: JSON) -> RenderedAnswer:
    return _proposal(tool_context.there(args), proposed_dream)


def _show_dream(tool_context: ToolContext, proposed_dream: Proposed | None, args: JSON) -> RenderedAnswer:
    if proposed_dream is None:
        raise NotFoundError("no proposed changes", hint="Create a proposal: dream.")
    return _proposal(tool_context.there(args), proposed_dream)


def _proposal(there: Memory, proposed_dream: Proposed) -> RenderedAnswer:
    """Return the proposal, with its id if it is shown whole."""
    budget, parts = _PROPOSAL, list[str]()
    steps, before = list[Step](), dict[str, str]()
    for step in proposed_dream.steps:
        changes, now = list[Change](), dict[str, str]()
        for change in step.changes:
            reading = there.read(change.key, counts=False)
            now[change.key] = clean_text(reading.text if reading is not None else "")
            after = None if change.text is None else clean_text(change.text)
            budget -= weight(quote(now[change.key])) + weight(quote(after or ""))
            changes.append(replace(change, text=after))
        if budget < 0:
            break
        steps.append(replace(step, why=one_line(step.why), changes=tuple(changes)))
        before |= now
        parts.append(tagged("dream-step", {}, one_line(step.why)))
        for one in changes:
            parts.append(tagged("memory-now", {"key": one.key}, now[one.key]))
            parts.append(
                f"{one.key} will be deleted.\n"
                if one.text is None
                else tagged("memory-then", {"key": one.key}, one.text)
            )
    scanned = f"Looked at {count(proposed_dream.looked_at, 'memory')}."
    judged = [
        replace(one, other=one_line(one.other), detail=one_line(one.detail))
        for one in proposed_dream.found[:_JUDGED]
    ]
    if judged:
        lines = "\n".join(f"{one.kind}: {one.key} {one.other} {one.detail}".strip() for one in judged)
        parts.append(f"For the person to decide:\n{quote(lines)}")
    whole = len(steps) == len(proposed_dream.steps)
    proposal = proposed_dream.id if whole and steps else ""
    if proposal:
        message = f"{scanned} Nothing is changed yet. To apply it: apply_dream with proposal={proposal}."
    elif steps:
        message = f"{scanned} This is only a part, so the person applies it: ipfsmem dream show, ipfsmem dream apply."
    else:
        message = (
            f"{scanned} Nothing to tidy up."
            if whole
            else f"{scanned} It is too long to show: ipfsmem dream show."
        )
    text = "\n".join([message, *([NOTICE, ""] if parts else []), *parts])
    # Who was shown a part applies nothing, and the tokens of the memories are for the dream alone.
    shown = replace(proposed_dream, id=proposal, steps=tuple(steps), found=tuple(judged), seen={})
    return RenderedAnswer(text, shown, {"before": before})


def _apply_dream(tool_context: ToolContext, done: Outcome, args: JSON) -> RenderedAnswer:
    shown = replace(
        done, skipped=tuple(map(one_line, done.skipped)), waiting=tuple(map(one_line, done.waiting))
    )
    message = f"{count(len(done.written), 'memory')} changed, {count(len(done.removed), 'memory')} deleted."
    if done.id:
        message += f" undo_dream with dream={done.id} reverts it."
    if shown.skipped:
        message += f" Skipped, as changed since:\n{quote(chr(10).join(shown.skipped))}"
    return RenderedAnswer(message, shown)


def _undo_dream(tool_context: ToolContext, undone: Undoing, args: JSON) -> RenderedAnswer:
    stay = [*undone.changed, *undone.lost]
    message = f"{count(len(undone.back), 'memory')} restored." + (
        f" Changed since, so skipped: {', '.join(stay)}." if stay else ""
    )
    return RenderedAnswer(message, undone)


# -- usage ---------------------------------------------------------------------------------------------------


def _usage(tool_context: ToolContext, usage_totals: UsageTotals, args: JSON) -> RenderedAnswer:
    shown = replace(usage_totals, totals=tuple(replace(one, name=one_line(one.name)) for one in usage_totals))
    lines = [
        f"{one.name or '(not recorded)'}: {count(one.uses, 'use')}, {one.input_tokens:,} tokens in, {one.output_tokens:,} out, {dollars(one.cost)} USD"
        for one in shown
    ]
    text = f"{NOTICE}\n\n{quote(chr(10).join(lines))}" if lines else "Nothing is recorded."
    return RenderedAnswer(text, shown)


def _note_usage(tool_context: ToolContext, use: Used, args: JSON) -> RenderedAnswer:
    return RenderedAnswer(f"Noted at {use.at}.", use)


# -- what models are told ------------------------------------------------------------------------------------


LIFE: Final = (
    tool(add, _add_fact),
    tool(list_facts, _list_facts),
    tool(history, _fact_history, more={"more": _count}),
    tool(restore, _restore_fact),
    tool(delete, _delete_fact),
    tool(list_sessions, _list_sessions),
    tool(messages, _read_session),
    tool(path, _find_path, more={"entities": _list, "more": {"type": "boolean"}}),
    tool(status, _dream_status, more={"dreams": _list}),
    tool(propose, _dream, more={"before": _texts}),
    tool(proposed, _show_dream, more={"before": _texts}),
    tool(apply, _apply_dream),
    tool(undo, _undo_dream),
    tool(totals, _usage),
    tool(add_use, _note_usage),
)

#: The same by what they are about.
GROUPS: Final = {
    about: tuple(one for one in LIFE if one.name in names)
    for about, names in {
        "facts": ("add_fact", "list_facts", "fact_history", "restore_fact", "delete_fact"),
        "sessions": ("list_sessions", "read_session"),
        "dreams": ("dream_status", "dream", "show_dream", "apply_dream", "undo_dream"),
    }.items()
}
