"""Values out of bounds for every parameter, the same in every interface."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, Final

import click
import msgspec

from ipfsmem.memory import Memory
from ipfsmem.tools import toolset
from tests.support.operation_rows import Op
from tests.support.operation_world import ROUTE_OF, commands

_KEYS: Final = {"with a blank": "A b", "too long": "x" * 65}
_LIST_OF_KEYS: Final = {what: [value] for what, value in _KEYS.items()}
_NAMES: Final = {"a control character": "a\x07b", "too long": "x" * 257}
_BELOW: Final = {"below": -1}
_TOO_MANY: Final = {"below": -1, "far above": 10**13}
_UNKNOWN: Final = {"unknown": "sideways"}
_HALF: Final = {"half a character": "a\ud800b"}
_NOT_A_TIME: Final = {"not a time": "at no time"}
#: Values out of bounds, by the name of the parameter, or by operation and parameter.
BOUNDS: Final[Mapping[str | tuple[str, str], Mapping[str, Any]]] = {
    "scope": _KEYS,
    "stack": _LIST_OF_KEYS,
    "stacked": _LIST_OF_KEYS,
    "to": _KEYS,
    "limit": _BELOW,
    "last": _BELOW,
    "depth": _TOO_MANY,
    "max_depth": _TOO_MANY,
    "max_tokens": _TOO_MANY,
    "number": _BELOW,
    "start": _BELOW,
    "input_tokens": _TOO_MANY,
    "output_tokens": _TOO_MANY,
    "cost_usd": {"below": -1.0},
    "cost": {"below": -1.0},
    "ttl": {"below": -1.0},
    "confidence": {"above": 1.5},
    "threshold": {"above": 1.5},
    "similarity": {"above": 1.5},
    "layout": _UNKNOWN,
    "level": _UNKNOWN,
    "format": _UNKNOWN,
    "form": _UNKNOWN,
    "order": _UNKNOWN,
    "strategy": _UNKNOWN,
    "tz": _UNKNOWN,
    "since": _NOT_A_TIME,
    "until": _NOT_A_TIME,
    "when": _NOT_A_TIME,
    "reason": {"too long": "x" * 1_001},
    "queries": {"one too long": ["x" * 4_001]},
    "session": _NAMES,
    "body": _HALF,
    "description": _HALF,
    "tags": {"half a character": ["a\ud800b"]},
    "observations": {"half a character": ["a\ud800b"]},
    **{(op, "key"): _KEYS for op in ("read", "write", "forget", "history", "text of a revision", "restore", "why", "promote", "approve")},
    **{(op, "key"): _KEYS for op in ("fact edit", "fact delete", "fact history", "fact restore")},
    **{(f"value {op}", "key"): {"too long": "x" * 257} for op in ("get", "set", "delete", "history", "restore")},
    **{(f"scope {op}", name): _KEYS for op in ("make", "title", "into", "forget", "restore") for name in ("name", "token")},
    ("scope make", "kind"): _UNKNOWN,
    ("recall", "kind"): _UNKNOWN,
    ("context", "session"): {"too long": "x" * 1_001},
    ("recall", "query"): {"too long": "x" * 4_001},
    ("session search", "query"): {"too long": "x" * 4_001},
    **{(f"fact {op}", "kind"): _UNKNOWN for op in ("list", "add")},
    ("write", "type"): _UNKNOWN,
    ("write", "name"): _HALF,
    ("graph add", "name"): {"too long": "x" * 201, "a bracket": "[x]"},
    ("hide", "keys"): _LIST_OF_KEYS,
    ("usage", "by"): _UNKNOWN,
    ("fact add", "text"): {"half a character": "a\ud800b", "too long": "x" * 2_001},
    ("fact edit", "text"): {"half a character": "a\ud800b", "too long": "x" * 2_001},
    ("note", "type"): _HALF,
    **{(f"scope {op}", "title"): _HALF for op in ("make", "put", "title")},
    **{(f"graph {op}", "type"): _HALF for op in ("relate", "unrelate")},
    ("cleanup", "older_than"): {"below": 1},
}  # fmt: skip
#: Parameters without a row above: names that are looked up, texts that are cut or normalised, paths, secrets,
#: flags, and lists whose items the operation checks one by one.
FREE: Final = frozenset(
    [
        "about",
        "account_path",
        "after",
        "agent",
        "all",
        "allow",
        "alternative",
        "among",
        "apply",
        "begin",
        "by",
        "by_meaning",
        "car",
        "category",
        "chosen",
        "confirm",
        "content",
        "count",
        "counts",
        "credentials",
        "cursor",
        "data",
        "days",
        "deletions",
        "deliver",
        "document",
        "dream",
        "dry_run",
        "end",
        "entities",
        "entity",
        "entityNames",
        "entity_type",
        "every",
        "everywhere",
        "expired",
        "expires",
        "fact",
        "fields",
        "file",
        "exclude",
        "explain",
        "folder",
        "foreign",
        "forgotten",
        "hidden",
        "html",
        "id",
        "ids",
        "if_match",
        "important",
        "include_relations",
        "into",
        "items",
        "keep",
        "keep_earlier",
        "key",
        "key_number",
        "keys",
        "kind",
        "maps",
        "match",
        "mnemonic_fd",
        "model",
        "name",
        "names",
        "now",
        "of_type",
        "older_than",
        "on",
        "operation",
        "other",
        "out",
        "pairs",
        "partial",
        "path",
        "plain_car",
        "plugins",
        "prefix",
        "preview",
        "problems",
        "program",
        "progress",
        "properties",
        "proposal",
        "prune",
        "provider",
        "public_ok",
        "query",
        "raw_key_fd",
        "relation",
        "relations",
        "root",
        "running",
        "said",
        "same",
        "seen",
        "sha256",
        "signature_passphrase_fd",
        "source",
        "spec",
        "summarise",
        "tag",
        "target",
        "text",
        "title",
        "token",
        "type",
        "value",
        "vault",
        "wallet",
        "wallet_vault",
        "wallet_passphrase_fd",
        "whole",
        "why",
        "words",
        "zipped",
        "zone",
    ]
)


def bad_values(op: Op, face: str, name: str) -> list[tuple[str, Any]]:
    """Return the values out of bounds of a parameter, each with the kind of violation."""
    found = BOUNDS.get((op.name, name), BOUNDS.get(name, {}))
    return [(what, _on(face, value)) for what, value in found.items()]


def _on(face: str, value: Any) -> Any:
    """Return a value in the form that an interface receives: a command receives bytes that are not UTF-8
    as low surrogates."""
    if face != "cli":
        return value
    if isinstance(value, list):
        return [_on(face, one) for one in value]
    return value.replace("\ud800", "\udcff") if isinstance(value, str) else value


def names_of(op: Op, face: str, name: str) -> set[str]:
    """Return the names of a parameter in an interface."""
    found = {name}
    if face == "cli":
        command = commands()[op.cli]
        one = next(one for one in command.params if one.name == name)
        found |= {one.human_readable_name.lower().strip("[]"), one.opts[0].strip("-").replace("-", "_")}
        if isinstance(one, click.Argument):
            found.add(one.make_metavar(click.Context(command)).lower().strip("[]."))
    return found


def parameters(op: Op, face: str, memory: Memory) -> list[str]:
    """Return the parameters of an operation in an interface, with the names that `Op.call` uses."""
    if face == "tool":
        tool = next(one for one in toolset(memory, ["all"]) if one.name == op.tool)
        return list(tool.parameters["properties"])
    if face == "http":
        route = ROUTE_OF[op.http]
        has_fields = route.body not in (None, bytes)
        body = [one.name for one in msgspec.structs.fields(route.body)] if has_fields else []
        return [*re.findall(r"{(\w+)}", route.path), *route.parameters[1:], *body]
    if face == "cli":
        here = [
            one for one in commands()[op.cli].params if not (isinstance(one, click.Option) and one.is_flag)
        ]
        return [str(one.name) for one in here if one.name not in ("vault_name", "home", "passphrase_fd")]
    method: Any = memory
    for name in op.python.split("."):
        method = getattr(method, name)
    return [
        one.name
        for one in inspect.signature(method).parameters.values()
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
