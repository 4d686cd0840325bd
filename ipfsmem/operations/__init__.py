"""The operations of a memory, each declared once (see `operation.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ipfsmem.operation import Operation

#: The module of each operation by the name of the operation, in the order of the docs.
INDEX: Final[Mapping[str, str]] = {
    "list": "list",
    "read": "read",
    "recall": "recall",
    "why": "why",
    "context": "context",
    "duplicates": "duplicates",
    "write": "write",
    "forget": "forget",
    "conflicts": "conflicts",
    "resolve": "resolve",
    "pending": "pending",
    "approve": "approve",
    "promote": "promote",
    "history": "history",
    "revision": "revisions",
    "restore": "revisions",
    "undo": "undo",
    "timeline.read": "timeline",
    "timeline.days": "timeline",
    "timeline.add": "timeline",
    "sessions.list": "sessions.list",
    "sessions.info": "sessions.info",
    "sessions.messages": "sessions.messages",
    "sessions.items": "sessions.items",
    "sessions.resume": "sessions.resume",
    "sessions.search": "sessions.search",
    "sessions.export": "sessions.export",
    "sessions.status": "sessions.status",
    "sessions.create": "sessions.create",
    "sessions.add": "sessions.add",
    "sessions.pop": "sessions.pop",
    "sessions.compact": "sessions.compact",
    "sessions.approve": "sessions.approve",
    "sessions.forget": "sessions.forget",
    "facts.list": "facts.list",
    "facts.get": "facts.get",
    "facts.history": "facts.history",
    "facts.add": "facts.add",
    "facts.edit": "facts.edit",
    "facts.delete": "facts.delete",
    "facts.restore": "facts.restore",
    "values.list": "values.list",
    "values.get": "values.get",
    "values.history": "values.history",
    "values.set": "values.set",
    "values.delete": "values.delete",
    "values.clear": "values.clear",
    "values.sweep": "values.sweep",
    "values.restore": "values.restore",
    "hidden.list": "hidden",
    "hidden.add": "hidden",
    "hidden.bring_back": "hidden",
    "graph.list": "graph.entities",
    "graph.search": "graph.entities",
    "graph.get": "graph.entities",
    "graph.relations": "graph.relations",
    "graph.query": "graph.relations",
    "graph.path": "graph.relations",
    "graph.around": "graph.relations",
    "graph.drawn": "graph.relations",
    "graph.add": "graph.entities",
    "graph.observe": "graph.entities",
    "graph.unobserve": "graph.entities",
    "graph.relate": "graph.relations",
    "graph.unrelate": "graph.relations",
    "graph.delete": "graph.entities",
    "dreams.status": "dreams",
    "dreams.run": "dreams",
    "dreams.proposed": "dreams",
    "dreams.apply": "dreams",
    "dreams.list": "dreams",
    "dreams.undo": "dreams",
    "dreams.abort": "dreams",
    "dreams.switch": "dreams",
    "scopes.list": "scopes",
    "scopes.show": "scopes",
    "scopes.make": "scopes",
    "scopes.title": "scopes",
    "scopes.redirect": "scopes",
    "scopes.forget": "scopes",
    "scopes.restore": "scopes",
    "usage.totals": "usage.totals",
    "usage.list": "usage.list",
    "usage.csv": "usage.csv",
    "usage.budgets": "usage.budgets",
    "usage.add": "usage.add",
    "maintenance.index_status": "maintenance",
    "maintenance.reindex": "maintenance",
    "maintenance.vacuum": "maintenance",
    "maintenance.cleanup": "maintenance",
}


def load(name: str) -> Operation[..., Any]:
    """Import and return an operation."""
    module = import_module(f"ipfsmem.operations.{INDEX[name]}")
    return next(
        one for one in vars(module).values() if getattr(one, "name", "") == name and hasattr(one, "declared")
    )
