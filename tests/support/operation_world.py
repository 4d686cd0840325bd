"""A memory with every kind of entry in three scopes, and functions that call an operation through each interface."""

from __future__ import annotations

import asyncio
import inspect
import json
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import click
import pytest

from ipfsmem.api.routes import Route
from ipfsmem.api.serving import ROUTES
from ipfsmem.cli.app import group
from ipfsmem.config import settings
from ipfsmem.device.operations import Operation, operations
from ipfsmem.device.replica import Environment
from ipfsmem.errors import IpfsmemError
from ipfsmem.memory import Memory
from ipfsmem.open_vault.audit import acting_as
from ipfsmem.tools import toolset
from ipfsmem.vault.opening import open_replica
from tests.cli.test_cli_promote import conversation_database
from tests.support import prepared
from tests.support.api_lab import Client, Lab
from tests.support.cli_lab import Cli
from tests.support.operation_rows import AWAY, CHAT, FACT, KEY, OTHERS, Op

NAME = "default"
MINE, THEIRS, LED = "mine", "theirs", "led"
#: A word in every text of the scope `theirs` and in no other text.
SECRET = "quetzalcoatl"
#: A word in every text of the unnamed scope.
MARK = "huitzilopochtli"
ROUTE_OF: Mapping[str, Route] = {route.name: route for route in ROUTES}
_made: list[Path] = []


def world(home: Path) -> None:
    """Copy the memory to `home`."""
    if not _made:
        folder = Path(tempfile.mkdtemp(prefix="operations-")) / "home"
        _make(folder)
        _made.append(folder)
    shutil.copytree(_made[0], home)
    prepared.settle(home / NAME, {str(_made[0]): str(home)})


def _make(home: Path) -> None:
    with Memory.create(NAME, "local", home=home) as memory:
        for scope in ("", MINE, THEIRS):
            fill(
                memory.scope(scope) if scope else memory,
                SECRET if scope == THEIRS else scope if scope else MARK,
            )
        memory.scopes.make("gone", title="Gone")
        memory.scopes.forget("gone")
        memory.scopes.make(LED, title="Led")
        memory.scope(LED).write("before", "A text from before.")
        memory.scopes.redirect(LED, THEIRS)


def fill(memory: Memory, mark: str) -> None:
    """Write one entry of every kind, each with the word `mark`."""
    memory.write(KEY, f"Direct. {mark} one.", name=f"Tone {mark}", description=f"Useful to answer {mark}.")
    memory.write(KEY, f"Direct and short. {mark} two.", tags=["style"])
    blob = {"version": "memory/0.1", "files": {f"{OTHERS}.md": f"A hint, {mark}.\n"}, "timeline": []}
    memory.bundles.import_(json.dumps(blob).encode(), foreign=True)
    memory.write(AWAY, f"Put away. {mark}", description=f"Useful to none, {mark}.")
    memory.hidden.add([AWAY])
    memory.facts.add("User likes tea", f"drinks-{mark}")
    memory.facts.edit(FACT, f"User likes tea, says {mark}")
    memory.values.set("user:theme", f"dark {mark}")
    memory.values.set("user:theme", f"darker {mark}")
    memory.graph.add("Ana", "person", [f"Sings {mark}.", "Sings."])
    memory.graph.add("Oslo", "town", [f"Is cold, {mark}."])
    memory.graph.relate("Ana", "lives in", "Oslo")
    items = [
        {"role": "user", "content": f"Where is the boat? {mark}"},
        {"role": "assistant", "content": "Aft."},
    ]
    memory.sessions.add(CHAT, items)
    with tempfile.TemporaryDirectory() as folder:
        memory.bundles.import_from(
            "initrunner", conversation_database(Path(folder) / "agent.db", f"Said there, {mark}.")
        )
    memory.note("said", text=f"It was said: {mark}.")
    memory.usage.add(provider="openai", model=f"m-{mark}", agent="a", input_tokens=3)


class Answer(NamedTuple):
    """The answer of an interface: whether the call succeeded, its message, and its values."""

    ok: bool
    said: str
    values: Any = None
    #: Whether it ended with an unexpected error.
    broken: bool = False


def commands() -> dict[str, click.Command]:
    """Return every command by its words."""
    return dict(_leaves(group, ()))


def _leaves(command: click.Command, path: tuple[str, ...]) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(" ".join(path), command)]
    context = click.Context(command)
    below = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [leaf for name, one in below if one is not None for leaf in _leaves(one, (*path, name))]


def state(home: Path) -> str:
    """Return everything that an operation may change, except the list of operations."""
    with Memory.load(NAME, home=home) as memory:
        return state_of(memory)


def state_of(memory: Memory) -> str:
    """Return the same for an open vault."""
    whole = json.loads(memory.bundles.export(partial=True))
    hidden = [[one.scope, one.key] for one in memory.hidden.list(everywhere=True)]
    return json.dumps([whole, hidden, memory.dreams.status()], sort_keys=True, default=str)


def recorded(home: Path, after: int = 0) -> list[Operation]:
    """Return the list of operations, newest first, without the `after` oldest."""
    with closing(open_replica(home / NAME, None, Environment())) as replica:
        found = list(operations(replica, settings().operations.kept))
    return found[: len(found) - after]


# -- interfaces ---------------------------------------------------------------------------------------------------------------


def by_python(memory: Memory, op: Op, given: Mapping[str, Any]) -> Answer:
    """Call the method."""
    args = dict(given)
    scope = "" if op.python == "operations.list" else args.pop("scope", "")
    try:
        place = memory.scope(scope) if scope else memory
        method: Any = place
        for name in op.python.split("."):
            method = getattr(method, name)
        args = {name: _sha(place, value) for name, value in args.items()}
        made = method(**args)
        if inspect.isawaitable(made):
            made = asyncio.run(_awaited(made))
        return Answer(True, "", made)
    except IpfsmemError as error:
        return Answer(False, f"{error}. {error.hint}")
    except Exception as error:
        return Answer(False, f"{type(error).__name__}: {error}", broken=True)


async def _awaited(made: Any) -> Any:
    return await made


def _sha(place: Memory, value: Any) -> Any:
    """Replace `SHA` with the digest of an earlier text of the memory `tone`, `SEEN` with its shown digest."""
    if value == "SHA":
        return place.history(KEY).versions[-1].sha256
    if value == "SEEN":
        reading = place.read(KEY, counts=False)
        return reading.seen if reading is not None else ""
    return value


def by_cli(cli: Cli, op: Op, given: Mapping[str, Any]) -> Answer:
    """Run the command with `--json`."""
    command, args = commands()[op.cli], dict(given)
    stdin = str(args.pop("stdin", "")).encode("utf-8", "surrogatepass")
    words, behind = [*op.cli.split(), *args.pop("flags", ())], []
    with Memory.load(NAME, home=cli.home) as memory:
        place = (
            memory.scope(args["scope"])
            if args.get("scope") in (MINE, THEIRS) and "scope " not in op.cli
            else memory
        )
        args = {name: _sha(place, value) for name, value in args.items()}
    for parameter in command.params:
        called = [
            str(parameter.name),
            parameter.human_readable_name.lower().strip("[]"),
            parameter.opts[0].strip("-").replace("-", "_"),
        ]
        name = next((one for one in called if one in args), None)
        if name is None:
            continue
        value = args.pop(name)
        each = [str(one) for one in value] if isinstance(value, tuple | list) else [str(value)]
        if isinstance(parameter, click.Option):
            words += [f"{parameter.opts[0]}={one}" for one in each]
        else:
            behind += each
    assert not args, (op.name, args, [one.name for one in command.params])
    if any("--json" in one.opts for one in command.params):
        words.append("--json")
    if any("--yes" in one.opts for one in command.params):
        words.append("--yes")
    done = cli(*words, *(["--", *behind] if behind else []), stdin=stdin)
    values = None
    if done.out:
        try:
            values = json.loads(done.out)
        except ValueError:
            values = done.out
    return Answer(done.code == 0, done.err, values, broken="Traceback" in done.err or done.code in (1, 70))


async def by_http(client: Client, op: Op, given: Mapping[str, Any], *, home: Path) -> Answer:
    """Send the request."""
    route, args = ROUTE_OF[op.http], dict(given)
    query = {name: args.pop(name) for name in route.parameters if name in args}
    path = route.path
    for name in [one for one in args if f"{{{one}}}" in path]:
        path = path.replace(f"{{{name}}}", quote(str(args.pop(name)), safe="", errors="surrogatepass"))
    headers = {}
    if "{sha256}" in path or "SEEN" in args.values() or "SHA" in args.values() or "SHA" in path:
        with Memory.load(NAME, home=home) as memory:
            place = memory.scope(query["scope"]) if query.get("scope") in (MINE, THEIRS) else memory
            path = path.replace("/SHA", "/" + _sha(place, "SHA"))
            args = {name: _seen_of(place, op, value) for name, value in args.items()}
    words = "&".join(
        urlencode({name: one}, errors="surrogatepass")
        for name, value in query.items()
        for one in (value if isinstance(value, list | tuple) else [value])
    )
    url = path + ("?" + words if words else "")
    if route.seen:
        headers = {"If-None-Match": "*"} if route.new else {}
        if not route.new or op.http == "facts_edit":
            async with client.get(
                url.replace("/promote", "").replace("/resolve", "").replace("/approve", "").split("?")[0]
                + _scope(query)
            ) as got:
                if "ETag" in got.headers:
                    headers = {"If-Match": got.headers["ETag"]}
                else:
                    headers = {"If-Match": '"' + "0" * 16 + '"'}
    body = None
    if route.body is not None:
        headers["Content-Type"] = "application/json"
        body = (args["source"] if route.body is bytes else json.dumps(args)).encode()
        args = {}
    assert not args, (op.name, args)
    async with client.request(
        route.method.upper(), yarl_url(client, url), headers=headers, data=body
    ) as answer:
        raw = await answer.read()
        try:
            values = json.loads(raw)
        except ValueError:
            values = raw.decode("utf-8", "replace")
        said = raw.decode("utf-8", "replace") if answer.status >= 400 else ""
        return Answer(answer.status < 400, said, values, broken=answer.status >= 500)


def yarl_url(client: Client, url: str) -> Any:
    """Return a URL that keeps its escapes."""
    from yarl import URL

    return URL(str(client._base_url).rstrip("/") + url, encoded=True)


def _scope(query: Mapping[str, Any]) -> str:
    return f"?scope={query['scope']}" if query.get("scope") else ""


def _seen_of(place: Memory, op: Op, value: Any) -> Any:
    if value != "SEEN":
        return _sha(place, value)
    if op.name.startswith("value"):
        found = place.values.get("user:theme")
        return found.seen if found else ""
    if op.name.startswith("fact"):
        found_fact = place.facts.get(FACT)
        return found_fact.seen if found_fact else ""
    return _sha(place, value)


def by_tool(memory: Memory, op: Op, given: Mapping[str, Any]) -> Answer:
    """Call the tool as the server does. The first call returns the token that a confirmation needs."""
    tool = next(one for one in toolset(memory, ["all"]) if one.name == op.tool)
    args = dict(given)
    with acting_as("mcp", "test"):
        if "SEEN" in args.values():
            first = tool.call(**{name: value for name, value in args.items() if value != "SEEN"})
            place = memory.scope(args["scope"]) if args.get("scope") in (MINE, THEIRS) else memory
            args = {
                name: (first.structured.get(name) or _seen_of(place, op, value)) if value == "SEEN" else value
                for name, value in args.items()
            }
        try:
            made = tool.call(**args)
        except Exception as error:
            return Answer(False, f"{type(error).__name__}: {error}", broken=True)
    return Answer(not made.is_error, made.text if made.is_error else "", made.structured)


def run(op: Op, face: str, home: Path, given: Mapping[str, Any]) -> Answer:
    """Call an operation of the memory in `home` through an interface."""
    if face == "cli":
        with pytest.MonkeyPatch.context() as patch:
            return by_cli(Cli(home, patch), op, given)
    if face == "http":
        found: list[Answer] = []

        async def ask(client: Client) -> None:
            found.append(await by_http(client, op, given, home=home))

        Lab(home, NAME, open_memory=lambda: Memory.load(NAME, home=home)).run(ask)
        return found[0]
    with Memory.load(NAME, home=home) as memory:
        return (by_python if face == "python" else by_tool)(memory, op, given)
