"""LibreFang's memory routes on a vault: keys and values, memories by level, and the graph of each agent.

An agent is the scope of its ID. Memories of the level `user` are in the default scope; those of a session expire after 24 hours.
Overwritten or deleted texts stay in the history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID, uuid5

from ipfsmem.bundle.fence import clean_text
from ipfsmem.bundle.keys import is_scope
from ipfsmem.bundle.value_file import LEVEL, LEVELS, check_name, name_of, value_file
from ipfsmem.compat.entries import instant, own_in, write_entry
from ipfsmem.compat.http import HttpAnswer, HttpCall, HttpRoute
from ipfsmem.errors import IpfsmemError, NotFoundError, UsageError
from ipfsmem.exchange.program_forms import created_at
from ipfsmem.graph.entity import TAG as ENTITY
from ipfsmem.memories.values import is_past
from ipfsmem.tools.graph import matches

if TYPE_CHECKING:
    from ipfsmem.memories.memory_records import MemoryRecord
    from ipfsmem.memory import Memory

PROGRAM: Final = "librefang"
#: Hours after which a memory of a session expires; default and maximum hits and entries.
SESSION_TTL: Final = 24
LIMIT, MOST = 10, 1_000
_IDS: Final = UUID("6f1c6f0e-5b0e-4d8e-9d0a-1b6a3f0c2d51")
_TYPES: Final = {"user": "user", "agent": "reference", "session": "project"}


class Item(NamedTuple):
    """A memory in LibreFang's form."""

    scope: str
    reading: MemoryRecord

    @property
    def id(self) -> str:
        return str(uuid5(_IDS, f"{self.scope}/{self.reading.key}"))

    @property
    def level(self) -> str:
        name = self.reading.readable.fields.get(LEVEL, "")
        return name if name in LEVELS else "agent" if self.scope else "user"

    @property
    def category(self) -> str:
        return self.reading.readable.fields.get("category", "")

    def values(self) -> dict[str, Any]:
        """Return it in the form of its answers."""
        file, at = self.reading.readable, _time(created_at(self.reading))
        return {
            "id": self.id,
            "content": clean_text(file.body),
            "level": self.level,
            "category": clean_text(self.category) or None,
            "metadata": {"category": clean_text(self.category)} if self.category else {},
            "created_at": at,
            "source": "system" if file.source.startswith(PROGRAM) else clean_text(file.source) or "system",
            "confidence": 1.0 if file.confidence is None else file.confidence,
            "accessed_at": at,
            "access_count": 0,
            "agent_id": self.scope,
            "scope": f"{self.level}_memory",
        }


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


# -- which memories ------------------------------------------------------------------------------------------


def _agent(call: HttpCall) -> str:
    """Return the scope of the agent in a path, which the caller's token covers. Raises UsageError."""
    scope = call.path["id"].lower()
    if not is_scope(scope):
        raise UsageError("Invalid agent ID")
    call.require(scope)
    return scope


def _there(call: HttpCall) -> Memory:
    return call.memory.scope(_agent(call))


def _in_scope(memory: Memory, scope: str) -> list[Item]:
    """Return the memories of a scope without values, entities and expired ones, newest first."""
    now = memory.replica.environment.now()
    return [
        Item(scope, one)
        for one in own_in(memory.scope(scope))
        if name_of(one.readable, one.key) is None
        and ENTITY not in one.readable.tags
        and not is_past(one.readable.expires, now)
    ]


def _scopes(call: HttpCall) -> list[str]:
    scopes = ["", *call.memory.scopes.names()]
    return [scope for scope in scopes if call.may(scope)]


def _all(call: HttpCall) -> list[Item]:
    items = [item for scope in _scopes(call) for item in _in_scope(call.memory, scope)]
    return sorted(items, key=lambda one: (created_at(one.reading), one.id), reverse=True)


def _one(call: HttpCall) -> Item:
    """Return the memory of an ID. Raises NotFoundError."""
    return _by_id(call, call.path["memory_id"])


def _by_id(call: HttpCall, ident: str, places: Mapping[str, tuple[str, str]] | None = None) -> Item:
    scope, key = (_places(call) if places is None else places).get(ident, ("", ""))
    reading = call.memory.scope(scope).read(key) if key else None
    if reading is None or not reading.own:
        raise NotFoundError("Memory not found")
    return Item(scope, reading)


def _places(call: HttpCall) -> dict[str, tuple[str, str]]:
    """Return scope and key of each memory that the caller may read, by ID."""
    return {
        str(uuid5(_IDS, f"{scope}/{item.key}")): (scope, item.key)
        for scope in _scopes(call)
        for item in call.memory.scope(scope).list()
    }


def _chosen(call: HttpCall, items: Iterable[Item]) -> list[Item]:
    category, level = call.query.get("category", ""), _level(call.query.get("level", ""))
    return [one for one in items if category in ("", one.category) and level in ("", one.level)]


def _level(text: str) -> str:
    level = text.lower()
    if level and level not in LEVELS:
        raise UsageError("Invalid memory level; expected user, session, or agent")
    return level


def _page(call: HttpCall, items: list[Item], **more: Any) -> HttpAnswer:
    offset, limit = call.number("offset", 0, 10**9), call.number("limit", LIMIT, MOST)
    chosen = _chosen(call, items)
    shown = [one.values() for one in chosen[offset : offset + limit]]
    return HttpAnswer({"memories": shown, "total": len(chosen), "offset": offset, "limit": limit, **more})


# -- memories ------------------------------------------------------------------------------------------------


def _list(call: HttpCall) -> HttpAnswer:
    return _page(call, _all(call), proactive_enabled=True)


def _list_agent(call: HttpCall) -> HttpAnswer:
    return _page(call, _in_scope(call.memory, _agent(call)))


def _add(call: HttpCall) -> HttpAnswer:
    body = call.object()
    agent = str(body.get("agent_id") or "").lower()
    if agent and not is_scope(agent):
        raise UsageError("Invalid agent ID")
    metadata_given = body.get("metadata")
    metadata = metadata_given if isinstance(metadata_given, dict) else {}
    level = _level(str(body.get("level") or body.get("scope") or "").removesuffix("_memory"))
    level = level or ("agent" if agent else "user")
    texts = [body["content"]] if "content" in body else []
    for message in body.get("messages") or []:
        if isinstance(message, dict) and message.get("role") == "user":
            texts.append(message.get("content"))
    if not texts or not all(isinstance(one, str) and one.strip() for one in texts):
        raise UsageError("nothing to add: pass content, or messages of a user")
    category = str(body.get("category") or metadata.get("category") or "")
    user = str(body.get("user_id") or "")
    items = [_write(call, text, agent, level, category, body.get("confidence"), user) for text in texts]
    return HttpAnswer({"added": len(items), "memories": [one.values() for one in items]}, 201)


def _write(
    call: HttpCall, text: str, agent: str, level: str, category: str, confidence: object, user: str = ""
) -> Item:
    scope = "" if level == "user" else agent
    call.require(scope)
    fields = {LEVEL: level}
    if isinstance(confidence, int | float) and 0 <= confidence <= 1:
        fields["confidence"] = f"{confidence:.6g}"
    if user:
        fields["user_id"] = user[:200]
    if level == "session":
        fields["expires"] = instant(call.memory.replica.environment.now() + SESSION_TTL * 3_600_000)
    reading = write_entry(
        call.memory.scope(scope),
        PROGRAM,
        text,
        type=_TYPES[level],
        category=category[:64],
        source=f"{PROGRAM}:{level}",
        fields=fields,
    )
    return Item(scope, reading)


def _get(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(_one(call).values())


def _update(call: HttpCall) -> HttpAnswer:
    content = call.object().get("content")
    if not isinstance(content, str) or not content.strip():
        raise UsageError("missing field `content`")
    item = _one(call)
    there = call.memory.scope(item.scope)
    with there.facts.keeping(item.reading.key, seen=item.reading.seen):
        there.write(item.reading.key, content, seen=item.reading)
    return HttpAnswer({"updated": True, "memory_id": item.id})


def _delete(call: HttpCall) -> HttpAnswer:
    _take_away(call.memory, _one(call))
    return HttpAnswer(None, 204)


def _take_away(memory: Memory, item: Item) -> None:
    there = memory.scope(item.scope)
    there.facts.keep(item.reading.key, seen=item.reading.seen)
    there.forget(item.reading.key, seen=item.reading, keep_earlier=True)


def _history(call: HttpCall) -> HttpAnswer:
    item = _one(call)
    versions = [
        {"content": clean_text(one.text), "replaced_at": instant(one.until).replace("Z", "+00:00")}
        for one in call.memory.scope(item.scope).facts.history(item.reading.key)
    ]
    return HttpAnswer({"memory_id": item.id, "versions": versions, "version_count": len(versions)})


def _bulk_delete(call: HttpCall) -> HttpAnswer:
    ids = call.object().get("ids")
    if not isinstance(ids, list):
        raise UsageError("missing 'ids' array")
    deleted, places = 0, _places(call)
    for ident in ids:
        try:
            _take_away(call.memory, _by_id(call, str(ident), places))
            deleted += 1
        except IpfsmemError:
            continue  # counted as failed
    return HttpAnswer({"deleted": deleted, "failed": len(ids) - deleted, "total": len(ids)})


def _search(call: HttpCall) -> HttpAnswer:
    return _search_in(call, _all(call))


def _search_agent(call: HttpCall) -> HttpAnswer:
    return _search_in(call, _in_scope(call.memory, _agent(call)))


def _search_in(call: HttpCall, items: list[Item]) -> HttpAnswer:
    query, limit = call.query.get("q"), call.number("limit", LIMIT, MOST)
    if query is None:
        raise UsageError("missing field `q`")
    items_of = {(one.scope, one.reading.key): one for one in _chosen(call, items)}
    ranked: list[tuple[float, Item]] = []
    for scope in dict.fromkeys(one.scope for one in items_of.values()):
        try:
            hits = call.memory.stack(scope).recall(query, limit=min(200, max(1, limit))).hits
        except UsageError:  # the query has no word
            return HttpAnswer({"memories": []})
        ranked += [
            (hit.score, items_of[scope, hit.key])
            for hit in hits
            if hit.scope == scope and (scope, hit.key) in items_of
        ]
    ranked.sort(key=lambda one: -one[0])
    return HttpAnswer({"memories": [item.values() for _, item in ranked[:limit]]})


def _stats_of(items: list[Item]) -> dict[str, Any]:
    levels = Counter(one.level for one in items)
    return {
        "total": len(items),
        **{f"{level}_count": levels[level] for level in LEVELS},
        "categories": dict(Counter(one.category for one in items if one.category)),
        "enabled": True,
        "auto_memorize_enabled": False,
        "auto_retrieve_enabled": False,
        "llm_extraction": False,
    }


def _stats(call: HttpCall) -> HttpAnswer:
    items = _all(call)
    agents = dict(Counter(one.scope for one in items if one.scope))
    return HttpAnswer({**_stats_of(items), "proactive_enabled": True, "by_agent": agents})


def _stats_agent(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(_stats_of(_in_scope(call.memory, _agent(call))))


def _count(call: HttpCall) -> HttpAnswer:
    level = _level(call.query.get("level", ""))
    agent = _agent(call)
    items_counted = [one for one in _in_scope(call.memory, agent) if level in ("", one.level)]
    return HttpAnswer({"agent_id": agent, "count": len(items_counted), "level": level or None})


def _reset(call: HttpCall) -> HttpAnswer:
    for item in _in_scope(call.memory, _agent(call)):
        _take_away(call.memory, item)
    return HttpAnswer(None, 204)


def _clear_level(call: HttpCall) -> HttpAnswer:
    name = call.path["level"].lower()
    level = next((one for one in LEVELS if one == name), None)
    if level is None:
        raise UsageError(f"Invalid memory level '{name[:40]}'. Must be one of: user, session, agent")
    agent = _agent(call)
    for item in _in_scope(call.memory, agent):
        if item.level == level:
            _take_away(call.memory, item)
    call.memory.scope(agent).values.clear(level=level)
    return HttpAnswer(None, 204)


def _cleanup(call: HttpCall) -> HttpAnswer:
    deleted, now = 0, call.memory.replica.environment.now()
    for scope in _scopes(call):
        there = call.memory.scope(scope)
        deleted += len(there.values.sweep())
        for one in own_in(there):
            file = one.readable
            if file.fields.get(LEVEL) == "session" and is_past(file.expires, now):
                _take_away(call.memory, Item(scope, one))
                deleted += 1
    return HttpAnswer({"cleaned_up": True, "deleted_count": deleted, "session_ttl_hours": SESSION_TTL})


def _duplicates(call: HttpCall) -> HttpAnswer:
    agent = _agent(call)
    items_of = {one.reading.key: one for one in _in_scope(call.memory, agent)}
    groups = [
        [items_of[key].values() for key in (one.key, one.other)]
        for one in call.memory.scope(agent).duplicates()
        if one.key in items_of and one.other in items_of
    ]
    return HttpAnswer({"duplicate_groups": len(groups), "groups": groups})


def _user(call: HttpCall) -> HttpAnswer:
    user = call.path["user_id"]
    users_items = [
        one
        for one in _all(call)
        if one.level == "user" and one.reading.readable.fields.get("user_id", "") == user
    ]
    return HttpAnswer({"memories": [one.values() for one in users_items]})


def _export(call: HttpCall) -> HttpAnswer:
    agent = _agent(call)
    rows = [
        {
            "content": item.reading.readable.body,
            "level": item.level.capitalize(),
            "category": item.category or None,
            "confidence": 1.0 if (sure := item.reading.readable.confidence) is None else sure,
            "created_at": created_at(item.reading).isoformat(),
            "updated_at": None,
            "metadata": {"category": item.category} if item.category else {},
        }
        for item in _in_scope(call.memory, agent)
    ]
    return HttpAnswer({"agent_id": agent, "count": len(rows), "memories": rows})


def _import(call: HttpCall) -> HttpAnswer:
    agent = _agent(call)
    rows = call.body.get("memories") if isinstance(call.body, dict) else call.body
    if not isinstance(rows, list):
        raise UsageError("invalid type: map, expected a sequence")
    # Everything is checked before anything is written.
    entries = [
        (
            text,
            _level(str(one.get("level") or "agent")),
            str(one.get("category") or ""),
            one.get("confidence"),
        )
        for one in rows
        if isinstance(one, dict) and isinstance(text := one.get("content"), str) and text.strip()
    ]
    for text, level, category, confidence in entries:
        _write(call, text, agent, level, category, confidence)
    return HttpAnswer({"agent_id": agent, "imported": len(entries), "skipped": len(rows) - len(entries)})


# -- keys and values -----------------------------------------------------------------------------------------


def _kv(call: HttpCall) -> HttpAnswer:
    values = [one for one in _there(call).values.list() if one.own]
    return HttpAnswer({"kv_pairs": [{"key": one.key, "value": one.value} for one in values]})


def _kv_get(call: HttpCall) -> HttpAnswer:
    key = call.path["key"]
    value = _there(call).values.get(key)
    if value is None or not value.own:
        raise NotFoundError("api-error-kv-key-not-found")
    return HttpAnswer({"key": key, "value": value.value})


def _kv_set(call: HttpCall) -> HttpAnswer:
    key, body = call.path["key"], call.body
    value = body["value"] if isinstance(body, dict) and "value" in body else body
    _there(call).values.set(key, value)
    return HttpAnswer({"status": "stored", "key": key})


def _kv_delete(call: HttpCall) -> HttpAnswer:
    there, key = _there(call), call.path["key"]
    if (value := there.values.get(key)) is not None and value.own:
        there.values.delete(key)
    return HttpAnswer(None, 204)


def _kv_export(call: HttpCall) -> HttpAnswer:
    agent = _agent(call)
    values = {one.key: one.value for one in call.memory.scope(agent).values.list() if one.own}
    return HttpAnswer({"agent_id": agent, "version": 1, "kv": values})


def _kv_import(call: HttpCall) -> HttpAnswer:
    pairs = call.body.get("kv") if isinstance(call.body, dict) else None
    if not isinstance(pairs, dict):
        raise UsageError("api-error-kv-missing-kv-object")
    there = _there(call)
    for key, value in pairs.items():
        value_file(check_name(key), value, {})  # refused before anything is written
    for key, value in pairs.items():
        there.values.set(key, value)
    return HttpAnswer({"status": "imported", "keys_imported": len(pairs)})


# -- the graph -----------------------------------------------------------------------------------------------


def _relations(call: HttpCall) -> HttpAnswer:
    graph = _there(call).graph
    query = {name: text for name in ("source", "relation", "target") if (text := call.query.get(name))}
    if not query:
        kinds = dict.fromkeys(edge.type for edge in graph.relations())
        edges = [one for kind in kinds for one in matches(graph, {"relation": kind})]
    else:
        edges = matches(graph, query)
    shown = [
        {
            "source": {"id": one.begin.key, "name": one.begin.name, "entity_type": one.begin.kind},
            "relation": {"type": one.type, "confidence": 1.0},
            "target": {"id": one.end.key, "name": one.end.name, "entity_type": one.end.kind},
        }
        for one in edges
    ]
    return HttpAnswer({"matches": shown, "count": len(shown)})


def _relate(call: HttpCall) -> HttpAnswer:
    agent = _agent(call)
    rows = call.body if isinstance(call.body, list) else None
    if rows is None:
        raise UsageError("invalid type: map, expected a sequence")
    graph = call.memory.scope(agent).graph
    for one in rows:
        if not isinstance(one, dict) or not all(
            isinstance(one.get(name), str) and one[name] for name in ("subject", "relation", "object")
        ):
            raise UsageError("each relation has subject, relation and object")
    for one in rows:
        begin = graph.get(one["subject"]) or graph.add(one["subject"], str(one.get("subject_type") or ""))
        end = graph.get(one["object"]) or graph.add(one["object"], str(one.get("object_type") or ""))
        graph.relate(begin.key, one["relation"], end.key)
    return HttpAnswer({"agent_id": agent, "triples_processed": len(rows)})


# -- the rest ------------------------------------------------------------------------------------------------


def _agents(call: HttpCall) -> HttpAnswer:
    agents = [{"id": scope, "name": scope, "state": "Running"} for scope in _scopes(call) if scope]
    return HttpAnswer({"items": agents, "total": len(agents), "offset": 0, "limit": len(agents)})


def _sessions(call: HttpCall) -> HttpAnswer:
    rows = [
        {"session_id": one.session, "agent_id": scope, "updated_at": instant(one.changed)}
        for scope in _scopes(call)
        for one in call.memory.scope(scope).sessions.known()
    ]
    return HttpAnswer({"items": rows, "total": len(rows), "offset": 0, "limit": len(rows)})


def _decay(call: HttpCall) -> HttpAnswer:
    return HttpAnswer({"decayed": True, "decay_rate": 0.01})


#: Requires no token, as its command line sends none; it reveals nothing of a vault.
HEALTH: Final = "/api/health"
_MEMORY: Final = "/api/memory"
_OF_AGENT: Final = "/api/memory/agents/{id}"

ROUTES: Final = (
    HttpRoute("GET", "/api/agents", "read", _agents),
    HttpRoute("GET", _MEMORY, "read", _list),
    HttpRoute("POST", _MEMORY, "write", _add),
    HttpRoute("GET", f"{_MEMORY}/search", "read", _search),
    HttpRoute("GET", f"{_MEMORY}/stats", "read", _stats),
    HttpRoute("POST", f"{_MEMORY}/cleanup", "write", _cleanup),
    HttpRoute("POST", f"{_MEMORY}/decay", "write", _decay),
    HttpRoute("POST", f"{_MEMORY}/bulk-delete", "write", _bulk_delete),
    HttpRoute("GET", f"{_MEMORY}/sessions", "read", _sessions),
    HttpRoute("GET", f"{_MEMORY}/user/{{user_id}}", "read", _user),
    HttpRoute("GET", f"{_MEMORY}/items/{{memory_id}}", "read", _get),
    HttpRoute("PUT", f"{_MEMORY}/items/{{memory_id}}", "write", _update),
    HttpRoute("DELETE", f"{_MEMORY}/items/{{memory_id}}", "write", _delete),
    HttpRoute("GET", f"{_MEMORY}/items/{{memory_id}}/history", "read", _history),
    HttpRoute("GET", _OF_AGENT, "read", _list_agent),
    HttpRoute("DELETE", _OF_AGENT, "write", _reset),
    HttpRoute("GET", f"{_OF_AGENT}/search", "read", _search_agent),
    HttpRoute("GET", f"{_OF_AGENT}/stats", "read", _stats_agent),
    HttpRoute("GET", f"{_OF_AGENT}/count", "read", _count),
    HttpRoute("DELETE", f"{_OF_AGENT}/level/{{level}}", "write", _clear_level),
    HttpRoute("GET", f"{_OF_AGENT}/duplicates", "read", _duplicates),
    HttpRoute("GET", f"{_OF_AGENT}/relations", "read", _relations),
    HttpRoute("POST", f"{_OF_AGENT}/relations", "write", _relate),
    HttpRoute("GET", f"{_OF_AGENT}/export", "read", _export),
    HttpRoute("POST", f"{_OF_AGENT}/import", "write", _import),
    HttpRoute("GET", f"{_OF_AGENT}/kv", "read", _kv),
    HttpRoute("GET", f"{_OF_AGENT}/kv/{{key}}", "read", _kv_get),
    HttpRoute("PUT", f"{_OF_AGENT}/kv/{{key}}", "write", _kv_set),
    HttpRoute("DELETE", f"{_OF_AGENT}/kv/{{key}}", "write", _kv_delete),
    HttpRoute("GET", "/api/agents/{id}/memory/export", "read", _kv_export),
    HttpRoute("POST", "/api/agents/{id}/memory/import", "write", _kv_import),
    HttpRoute("GET", f"{_MEMORY}/{{memory_id}}", "read", _get),
    HttpRoute("DELETE", f"{_MEMORY}/{{memory_id}}", "write", _delete),
)


def problem(error: IpfsmemError) -> HttpAnswer:
    """Return an error in LibreFang's form."""
    status, code = (404, "not_found") if isinstance(error, NotFoundError) else (400, "bad_request")
    message = str(error)
    return HttpAnswer(
        {"error": {"message": message, "code": code}, "message": message, "code": code, "type": code}, status
    )
