"""Other programs compared with ipfsmem, by alternating calls: sessions with InitRunner 1.0.0's store, the
graph with the MCP reference server `memory`.

Sessions: each runs in its own process that reports the time of its work, on one disk; both wait for the
disk at each turn (WAL, one fsync). The graph: the same client calls both programs over MCP, so the times
include the pipe. The reference server does not flush, so both store their data in RAM;
ipfsmem also encrypts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.context import Context
from bench.measure import fsync_once
from bench.process import VAULT_NAME, unlock
from bench.retrieval_peer import PeerError, spoken_to

_SESSIONS, _TURNS, _MOST = 1_000, 10, 10_000
_STORE, _SERVER = "InitRunner 1.0.0's store", "the MCP reference server"


def peers(ctx: Context) -> None:
    """Measure up to a thousand sessions and up to ten thousand entities, by the size."""
    if ctx.size <= _SESSIONS:
        _measure(ctx, "sessions", ctx.initrunner, "--initrunner PYTHON names none", sessions)
    if ctx.size <= _MOST:
        _measure(ctx, "graph", ctx.mcp_memory, "--mcp-memory FILE names none", graph)


def _measure(
    ctx: Context, what: str, peer: Path | None, why: str, work: Callable[[Context, Path], None]
) -> None:
    if peer is None:
        ctx.skip(f"peer: {what}", why)
        return
    try:
        work(ctx, peer)
    except PeerError as error:
        ctx.skip(f"peer: {what}", str(error))


def sessions(ctx: Context, python: Path) -> None:
    """Measure a saved turn, and a resumed session."""
    from ipfsmem.memory import Memory

    home, theirs = ctx.fresh("peers-ours"), ctx.fresh("peers-theirs")
    words = [text.decode("utf-8", "replace")[-200:] for text in list(ctx.files.values())[:_TURNS]]

    def said(number: int) -> tuple[str, str]:
        text = words[number % len(words)]
        return f"Turn {number}. {text}", f"Answer {number}. {text}"

    def turn(number: int) -> list[dict[str, str]]:
        asked, answered = said(number)
        return [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]

    filled = [[said(at) for at in range(_TURNS)] for _ in range(ctx.size)]
    needs = "the store: pip install initrunner==1.0.0 pysqlite3-binary"
    script = Path(__file__).with_name("session_peer.py")
    with (
        spoken_to(python, script, str(theirs), needs) as say,
        Memory.create(VAULT_NAME, "encrypted-ipfs", unlock=unlock(), passphrase=False, home=home) as memory,
    ):
        say({"sessions": filled})
        for number in range(ctx.size):
            memory.sessions.add(f"s{number}", [one for at in range(_TURNS) for one in turn(at)])
        chat = memory.sessions.conversation("s0")
        history: list[Any] = [*chat.resume()]
        times: dict[str, list[float]] = {"ours": [], "theirs": [], "disk": [], "back": [], "back there": []}

        def ours(name: str, work: Callable[[], object]) -> None:
            began = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - began)

        for number in range(ctx.runs(60)):
            ours("disk", lambda: fsync_once(home, b"x" * 400))
            history[:] = [*chat.trim(history), *turn(number)]
            ours("ours", lambda: chat.save([*history]))
            times["theirs"].append(say({"session": "s0", "turn": said(number)})[0])
        for _ in range(ctx.runs(30)):
            ours("back", lambda: memory.sessions.resume("s0"))
            times["back there"].append(say({"resume": "s0"})[0])
        if not len(history) >= say({"resume": "s0"})[1] > 0:
            raise RuntimeError("the store did not keep the session")
    disk = f"one fsync took {median(times['disk']) * 1000:.2f} ms"
    _pair(ctx, "save a turn", times["ours"], times["theirs"], _STORE, disk)
    _pair(ctx, "resume a session", times["back"], times["back there"], _STORE, "the peer loads 20 messages")


def graph(ctx: Context, server: Path) -> None:
    """Measure an entity that is created, found by a word, and opened by its name, with four relations
    each."""
    from ipfsmem.memory import Memory

    node = shutil.which("node")
    if node is None or not server.is_file():
        raise PeerError(f"{server} is not a program that Node can run.")
    with tempfile.TemporaryDirectory(prefix="ipfsmem-bench-", dir=_in_ram()) as work:
        home, files = Path(work) / "home", Path(work) / "files" / "memory"
        files.mkdir(parents=True)
        lines, relations = [], []
        for number in range(ctx.size):
            name, others = f"Entity {number}", [(number * 7 + at) % ctx.size for at in (1, 2, 3, 5)]
            said = f"is number {number}"
            lines.append({"type": "entity", "name": name, "entityType": "person", "observations": [said]})
            relations += [
                {"type": "relation", "from": name, "to": f"Entity {other}", "relationType": "knows"}
                for other in others
            ]
            out = "".join(f"- knows: [[e{other:05}]]\n" for other in others)
            text = f"---\nname: {name}\ntype: reference\ntags: [entity]\ncategory: person\n---\n\n- {said}\n\nRelations:\n\n{out}"
            (files / f"e{number:05}.md").write_text(text)
        kept = Path(work) / "memory.jsonl"
        kept.write_text("\n".join(json.dumps(one) for one in (*lines, *relations)))
        with Memory.create(
            VAULT_NAME, "encrypted-ipfs", unlock=unlock(), passphrase=False, home=home
        ) as memory:
            memory.bundles.import_(files.parent)
        env = {**os.environ, "IPFSMEM_HOME": str(home), "MEMORY_FILE_PATH": str(kept)}
        mine = [
            sys.executable,
            "-m",
            "ipfsmem.cli",
            "-n",
            VAULT_NAME,
            "serve",
            "mcp",
            "--tools",
            "graph",
            "--structured",
        ]
        with _asked(mine, env) as ours, _asked([node, str(server)], env) as theirs:
            for what, tool, given in (
                ("create an entity", "create_entities", _new),
                ("search entities", "search_nodes", lambda n: {"query": f"number {ctx.size - 1 - n}"}),
                ("open entities", "open_nodes", lambda n: {"names": [f"Entity {n}"]}),
            ):
                times: tuple[list[float], list[float]] = ([], [])
                for number in range(ctx.runs(20) + 1):
                    for call, took in zip((ours, theirs), times, strict=True):
                        began = time.perf_counter()
                        found = call(tool, given(number))
                        took.append(time.perf_counter() - began)
                        if not found["entities"]:
                            raise RuntimeError(f"{tool} found nothing")
                note = f"the first call took {times[0][0] * 1000:.0f} ms (peer: {times[1][0] * 1000:.0f} ms)"
                _pair(ctx, what, times[0][1:], times[1][1:], _SERVER, f"over MCP, in RAM; {note}")


def _new(number: int) -> dict[str, Any]:
    return {"entities": [{"name": f"New {number}", "entityType": "person", "observations": ["is new"]}]}


def _pair(ctx: Context, what: str, ours: list[float], theirs: list[float], peer: str, note: str) -> None:
    share = median(ours) / median(theirs)
    ctx.add(f"peer: {what}", median(ours), runs=len(ours), note=f"{share:.2f}× the time of {peer}; {note}")
    ctx.add(f"peer: {what}, {peer}", median(theirs), runs=len(theirs))


def _in_ram() -> str | None:
    """Return a folder in RAM, if there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@contextmanager
def _asked(
    command: list[str], env: dict[str, str]
) -> Iterator[Callable[[str, dict[str, Any]], dict[str, Any]]]:
    """Start an MCP server as a program, and call its tools line by line."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, text=True
    )
    assert process.stdin and process.stdout
    wanted, given, number = process.stdin, process.stdout, 0

    def say(what: dict[str, Any]) -> None:
        wanted.write(json.dumps({"jsonrpc": "2.0", **what}) + "\n")
        wanted.flush()

    def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        nonlocal number
        number += 1
        say({"id": number, "method": method, "params": params})
        for line in given:
            said = json.loads(line)
            if said.get("id") == number:
                return dict(said["result"])
        raise PeerError(f"{command[0]} {command[1]} ended before it answered.")

    try:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
        ask("initialize", {**hello, "clientInfo": {"name": "bench", "version": "1"}})
        say({"method": "notifications/initialized"})
        yield lambda tool, arguments: dict(
            ask("tools/call", {"name": tool, "arguments": arguments})["structuredContent"]
        )
    finally:
        wanted.close()
        process.wait()
        given.close()
