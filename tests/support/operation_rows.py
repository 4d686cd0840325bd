"""Every operation with its name in each interface and a valid call, for tests over all operations.

A new command, route, tool or method needs a row here or, with a reason, an entry in the lists of those without one;
tests/unit/memories/test_operations_everywhere.py compares this table with the declarations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Given = Mapping[str, Any]


class Op(NamedTuple):
    """An operation. `given`: the arguments of a valid call by name. `on`: the arguments of one interface that differ, None to omit one.
    `cli`, `http`, `tool`, `python`: its names in the interfaces, "" if it has none. `noted`: its name in the list of operations."""

    name: str
    given: Given = {}  # noqa: RUF012
    cli: str = ""
    http: str = ""
    tool: str = ""
    python: str = ""
    noted: str = ""
    on: Mapping[str, Given] = {}

    def named(self, face: str) -> str:
        """Its name in an interface."""
        return str(getattr(self, face))

    def call(self, face: str) -> dict[str, Any]:
        """The arguments of a valid call in an interface."""
        both = {**self.given, **self.on.get(face, {})}
        return {name: value for name, value in both.items() if value is not None}

    @property
    def faces(self) -> list[str]:
        """The interfaces in which it can be called."""
        return [face for face in FACES if self.named(face)]


FACES: Final = ("python", "cli", "http", "tool")
#: Keys and names in each scope of the memory that `tests.support.operation_world` makes.
KEY, OTHERS, AWAY, FACT, CHAT, IMPORTED = "tone", "hint", "away", "fact_e2f077a705af4e99", "chat", "talk"
#: An export of one memory.
BLOB: Final = '{"version": "memory/0.1", "files": {"brought.md": "Brought in.\\n"}, "timeline": []}'

ROWS: Final = (
    # texts
    Op("list", {}, "list", "list", "list_memories", "list", on={"tool": {}}),
    Op("read", {"key": KEY}, "read", "read", "read_memory", "read"),
    Op(
        "write",
        {"key": "fresh", "body": "A fresh text.", "description": "Useful when a test writes.", "name": "Fresh", "type": "user"},
        "write", "write", "remember", "write", "write",
        {"cli": {"tag": ("one",)}, "http": {"tags": ["one"]}, "tool": {"tags": ["one"]}, "python": {"tags": ["one"]}},
    ),
    Op("forget", {"key": KEY, "reason": "A test."}, "forget", "forget", "forget", "forget", "forget", {"tool": {"confirm": "SEEN"}}),
    Op("history", {"key": KEY}, "history", "history", "", "history"),
    Op("text of a revision", {"key": KEY, "sha256": "SHA"}, "", "revision", "", "revision"),
    Op("restore", {"key": KEY, "sha256": "SHA"}, "restore", "restore", "", "restore", "restore", {"http": {"seen": "SEEN"}}),
    Op("recall", {"query": "direct"}, "recall", "recall", "recall", "recall", "recall", {"cli": {"query": ("direct",)}}),
    Op("why", {"key": KEY, "query": "direct"}, "explain", "", "", "why", on={"cli": {"query": ("direct",)}}),
    Op("context", {"query": "direct"}, "context", "context", "context", "context", "context"),
    Op("duplicates", {"similarity": 0.8}, "dream duplicates", "duplicates", "", "duplicates"),
    Op("conflicts", {}, "conflicts", "conflicts", "resolve_conflict", "conflicts"),
    Op("resolve", {"key": KEY}, "resolve", "resolve", "", "resolve", "resolve", {"cli": {"seen": "SEEN", "alternative": KEY}, "http": {"keep": True}, "python": {"seen": "SEEN", "keep": True}}),
    Op("pending", {}, "", "", "", "pending"),
    Op("approve", {"key": OTHERS}, "approve", "", "", "approve", "promote"),
    Op("promote", {"key": KEY, "to": "made"}, "", "promote", "", "promote", "promote", {"python": {"seen": "SEEN"}}),
    Op("undo", {}, "undo", "", "", "undo", "undo"),
    # events and sessions
    Op("timeline", {}, "timeline show", "timeline_read", "", "timeline.read"),
    Op("days", {}, "", "timeline_days", "", "timeline.days"),
    Op("note", {"type": "decision"}, "timeline add", "timeline_add", "note", "timeline.add", "note", {"tool": {"text": "It is so."}}),
    Op("session list", {}, "session list", "sessions_list", "list_sessions", "sessions.list"),
    Op("session create", {"title": "A talk"}, "session create", "sessions_create", "", "sessions.create", "session create"),
    Op("session search", {"query": "boat"}, "session search", "sessions_search", "", "sessions.search", "session search"),
    Op("session info", {"session": CHAT}, "session info", "sessions_info", "", "sessions.info"),
    Op("session delete", {"session": CHAT, "reason": "A test."}, "session delete", "sessions_forget", "", "sessions.forget", "session delete"),
    Op("session items", {"session": CHAT}, "", "sessions_items", "", "sessions.items"),
    Op("session messages", {"session": CHAT}, "", "sessions_messages", "read_session", "sessions.messages"),
    Op("session add", {"session": CHAT, "items": [{"role": "user", "content": "Aft."}]}, "session add", "sessions_add", "", "sessions.add", "session add", {"cli": {"items": None, "stdin": '{"role": "user", "content": "Aft."}'}}),
    Op("session resume", {"session": CHAT}, "session resume", "sessions_resume", "", "sessions.resume"),
    Op("session export", {"session": CHAT, "format": "json"}, "session export", "sessions_export", "", "sessions.export"),
    Op("session compact", {"session": CHAT}, "session compact", "sessions_compact", "", "sessions.compact", "session compact"),
    Op("session pop", {"session": CHAT}, "", "", "", "sessions.pop", "session pop"),
    Op("session approve", {"session": IMPORTED}, "", "sessions_approve", "", "sessions.approve", "promote"),
    Op("session status", {}, "session status", "sessions_status", "", "sessions.status"),
    # facts and values
    Op("fact list", {}, "fact list", "facts_list", "list_facts", "facts.list"),
    Op("fact add", {"text": "User likes cake", "category": "food"}, "fact add", "facts_add", "add_fact", "facts.add", "fact add"),
    Op("fact get", {"key": FACT}, "", "facts_get", "", "facts.get"),
    Op("fact edit", {"key": FACT, "text": "User likes green tea"}, "fact edit", "facts_edit", "", "facts.edit", "fact edit"),
    Op("fact delete", {"key": FACT, "reason": "A test."}, "fact delete", "facts_delete", "delete_fact", "facts.delete", "fact delete", {"tool": {"seen": "SEEN"}}),
    Op("fact history", {"key": FACT}, "fact history", "facts_history", "fact_history", "facts.history"),
    Op("fact restore", {"key": FACT, "number": 1}, "fact restore", "facts_restore", "restore_fact", "facts.restore", "fact restore", {"tool": {"seen": "SEEN"}, "http": {"seen": "SEEN"}}),
    Op("procedure", {"content": "Run the tests", "category": "release"}, "", "", "learn_procedure", "", "fact add"),
    Op("episode", {"content": "It went out late", "category": "release"}, "", "", "record_episode", "", "fact add"),
    Op("preference", {"fact": "Prefers tabs", "category": "preference"}, "", "", "save_memory", "", "fact add"),
    Op("session fact", {"fact": "The host is arm64", "category": "host_info"}, "", "", "save_session_context", ""),
    Op("value list", {"prefix": "user"}, "value list", "values_list", "memory_list", "values.list"),
    Op("value get", {"key": "user:theme"}, "value get", "values_get", "memory_recall", "values.get"),
    Op("value set", {"key": "user:theme", "value": "light"}, "value set", "values_set", "memory_store", "values.set", "value set", {"tool": {"key": "user:tea"}}),
    Op("value delete", {"key": "user:theme"}, "value delete", "values_delete", "memory_delete", "values.delete", "value delete"),
    Op("value history", {"key": "user:theme"}, "value history", "values_history", "", "values.history"),
    Op("value restore", {"key": "user:theme", "number": 1}, "value restore", "values_restore", "", "values.restore", "value restore", {"http": {"seen": "SEEN"}}),
    Op("value clear", {"prefix": "user"}, "value clear", "values_clear", "", "values.clear", "value clear"),
    Op("value sweep", {}, "value sweep", "values_sweep", "", "values.sweep", "value sweep"),
    Op("hidden", {}, "", "hidden_list", "", "hidden.list"),
    Op("hide", {"keys": [KEY]}, "hide", "hidden_add", "", "hidden.add", "hide", {"cli": {"keys": (KEY,)}}),
    Op("bring back", {"keys": [AWAY]}, "", "hidden_bring_back", "", "hidden.bring_back", "hide"),
    # graph
    Op("graph around", {"entity": "Ana", "depth": 1}, "graph around", "graph_around", "", "graph.around"),
    Op("graph draw", {"entity": "Ana", "format": "mermaid"}, "graph export", "graph_drawn", "", "graph.drawn"),
    Op("graph path", {"begin": "Ana", "end": "Oslo"}, "graph path", "graph_path", "find_path", "graph.path"),
    Op("graph list", {"kind": "person"}, "graph list", "graph_list", "read_graph", "graph.list", on={"tool": {"kind": None}}),
    Op("graph search", {"query": "Ana"}, "graph search", "graph_search", "search_nodes", "graph.search", on={"cli": {"query": ("Ana",)}}),
    Op("graph add", {"name": "Eve", "kind": "person", "observations": ["Sails."]}, "graph add", "graph_add", "create_entities", "graph.add", "graph add",
       {"cli": {"observations": ("Sails.",)}, "tool": {"name": None, "kind": None, "observations": None, "entities": [{"name": "Eve", "entityType": "person", "observations": ["Sails."]}]}}),
    Op("graph get", {"entity": "Ana"}, "", "graph_get", "open_nodes", "graph.get", on={"tool": {"entity": None, "names": ["Ana"]}}),
    Op("graph observe", {"name": "Ana", "observations": ["Sails."]}, "", "", "add_observations", "graph.observe", "graph add",
       {"tool": {"name": None, "observations": [{"entityName": "Ana", "contents": ["Sails."]}]}}),
    Op("graph unobserve", {"name": "Ana", "observations": ["Sings."]}, "", "", "delete_observations", "graph.unobserve", "graph add",
       {"tool": {"name": None, "observations": None, "deletions": [{"entityName": "Ana", "observations": ["Sings."]}]}}),
    Op("graph delete", {"entity": "Ana"}, "graph delete", "graph_delete", "delete_entities", "graph.delete", "graph delete",
       {"tool": {"entity": None, "entityNames": ["Ana"]}, "python": {"relations": True}}),
    Op("graph relations", {"entity": "Ana"}, "graph relations", "graph_relations", "", "graph.relations"),
    Op("graph query", {"entity": "Ana", "type": "lives in"}, "graph query", "", "knowledge_query", "graph.query",
       on={"tool": {"entity": None, "type": None, "source": "Ana", "relation": "lives in"}}),
    Op("graph relate", {"begin": "Ana", "type": "knows", "end": "Oslo"}, "graph relate", "graph_relate", "create_relations", "graph.relate", "graph relate",
       {"tool": {"begin": None, "type": None, "end": None, "relations": [{"from": "Ana", "to": "Oslo", "relationType": "knows"}]}}),
    Op("graph unrelate", {"begin": "Ana", "type": "lives in", "end": "Oslo"}, "", "graph_unrelate", "delete_relations", "graph.unrelate", "graph relate",
       {"tool": {"begin": None, "type": None, "end": None, "relations": [{"from": "Ana", "to": "Oslo", "relationType": "lives in"}]}}),
    Op("knowledge entity", {"name": "Eve", "entity_type": "person"}, "", "", "knowledge_add_entity", "", "graph add"),
    Op("knowledge relation", {"source": "Ana", "relation": "knows", "target": "Oslo"}, "", "", "knowledge_add_relation", "", "graph relate"),
    # dreams and usage
    Op("dream status", {}, "dream status", "dreams_status", "dream_status", "dreams.status"),
    Op("dream switch", {"chosen": True}, "dream on", "dreams_switch", "", "dreams.switch", "dream on", {"cli": {"chosen": None}}),
    Op("dream off", {}, "dream off", "", "", "", "dream on"),
    Op("dream", {}, "dream run", "dreams_run", "", "dreams.run", "dream"),
    Op("dream propose", {}, "", "", "dream", "dreams.propose", "dream"),
    Op("dream show", {}, "dream show", "dreams_proposed", "show_dream", "dreams.proposed"),
    Op("dream apply", {"proposal": "0" * 12}, "dream apply", "dreams_apply", "apply_dream", "dreams.apply", "dream apply"),
    Op("dream undo", {"dream": "0" * 12}, "dream undo", "dreams_undo", "undo_dream", "dreams.undo", "dream undo"),
    Op("dream abort", {}, "dream abort", "dreams_abort", "", "dreams.abort", "dream abort"),
    Op("dream list", {}, "dream list", "dreams_list", "", "dreams.list"),
    Op("usage", {"by": "model"}, "usage show", "usage_totals", "usage", "usage.totals"),
    Op("usage add", {"provider": "openai", "model": "m", "agent": "a"}, "usage add", "usage_add", "note_usage", "usage.add", "usage add",
       {"cli": {"input_tokens": 5, "output_tokens": 2, "cost": 0.5}, "http": {"input_tokens": 5, "output_tokens": 2, "cost_usd": 0.5},
        "tool": {"input_tokens": 5, "output_tokens": 2, "cost_usd": 0.5}, "python": {"input_tokens": 5, "output_tokens": 2, "cost_usd": 0.5}}),
    Op("usage list", {}, "usage export", "usage_list", "", "usage.list"),
    Op("usage csv", {}, "", "usage_csv", "", "usage.csv"),
    Op("usage budget", {}, "usage budget", "usage_budgets", "", "usage.budgets"),
    # scopes
    Op("scope list", {}, "scope list", "scopes_list", "", "scopes.list"),
    Op("scope show", {"name": "mine"}, "scope show", "scopes_show", "", "scopes.show"),
    Op("scope make", {"name": "made", "title": "Made"}, "scope make", "", "", "scopes.make", "scope make"),
    Op("scope put", {"name": "made", "title": "Made"}, "", "scopes_put", "", "scopes.put", "scope put"),
    Op("scope title", {"name": "mine", "title": "Mine"}, "scope title", "", "", "scopes.title", "scope title"),
    Op("scope into", {"name": "theirs", "into": "mine"}, "scope into", "", "", "scopes.redirect", "scope into"),
    Op("scope forget", {"name": "mine", "reason": "A test."}, "scope forget", "scopes_forget", "", "scopes.forget", "scope forget"),
    Op("scope restore", {"name": "gone"}, "scope restore", "scopes_restore", "", "scopes.restore", "scope restore"),
    # the whole
    Op("status", {}, "status", "status", "", "status"),
    Op("check", {}, "vault check", "check", "", "check"),
    Op("operations", {}, "vault log", "operations_list", "", "operations.list", on={"cli": {"flags": ("--operations",)}}),
    Op("members", {}, "member list", "members_list", "", "members.list"),
    Op("agents", {}, "agent list", "agents_list", "", "agents.list"),
    Op("providers", {}, "provider list", "providers_list", "", "providers.list"),
    Op("provider add", {"spec": "stick"}, "provider add", "", "", "providers.add", "providers add"),
    Op("provider remove", {"spec": "stick"}, "provider remove", "", "", "providers.remove", "providers remove"),
    Op("index status", {}, "index status", "maintenance_index_status", "", "maintenance.index_status"),
    Op("reindex", {}, "index rebuild", "maintenance_reindex", "", "maintenance.reindex", "reindex"),
    Op("vacuum", {}, "", "maintenance_vacuum", "", "maintenance.vacuum", "vacuum"),
    Op("cleanup", {"older_than": 86_400.0}, "", "maintenance_cleanup", "", "maintenance.cleanup", "cleanup"),
    Op("settings", {}, "config show", "settings_list", "", "settings.list"),
    Op("export", {}, "export", "bundles_export", "", "bundles.export", "export", {"http": {"format": "blob", "partial": True}, "python": {"partial": True}, "cli": {"flags": ("--partial",)}}),
    Op("import", {"source": BLOB}, "import", "bundles_import", "", "bundles.import_", "import", {"cli": {"source": None, "path": "-", "stdin": BLOB}}),
    Op("sync", {}, "sync", "sync", "", "sync", "sync"),
)  # fmt: skip

#: Commands that no row has, by the reason. Their own tests are elsewhere.
COMMANDS_WITHOUT: Final[Mapping[str, tuple[str, ...]]] = {
    "starts a program that serves, watches or shows something": (
        "serve api", "serve mcp", "serve peer", "ui", "demo", "help", "version", "service install", "service status", "service uninstall",
    ),
    "makes, brings back, opens or closes a memory": ("init", "recover", "fork", "open", "lock", "unlock"),
    "is about settings of this device or of other programs": (
        "config path", "config set", "connect", "disconnect", "token list", "token new", "token revoke", "plugin list", "plugin test",
    ),
    "is about folders and files of this device": (
        "folder attach", "folder detach", "folder list", "folder pause", "folder resume", "format cid", "format inspect", "edit",
    ),
    "is about members or providers of a vault": (
        "agent new", "agent renew", "agent revoke", "key derive", "member rename", "key passphrase", "member revoke", "member rotate", "key sheet", "member admit", "key vaults",
        "key phrase", "provider check", "provider follow", "vault move", "provider policy", "provider test",
        "vault repair", "vault compact", "vault diff", "vault list", "vault remove",
    ),
    "forgets all memories of a scope, each by `forget`": ("scope clear",),
}  # fmt: skip
#: Arguments that name nothing that exists, by parameter: an operation fails with one of them.
NOT_THERE: Final[Given] = {
    "entityNames": ["Nobody"], "key": "nothing-here", "session": "nobody", "entity": "Nobody", "begin": "Nobody", "source": "Nobody", "token": "nobody",
    "relations": [{"from": "Nobody", "to": "Oslo", "relationType": "knows"}],
}  # fmt: skip
