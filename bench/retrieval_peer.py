"""InitRunner 1.0.0's store and basic-memory's search next to our ranking: this file runs under a Python that
has one of them, and answers line by line.

InitRunner's store finds by vectors only, which the program gets over a network. Here they are words hashed
to 384 numbers, without a model: its hits are worth what such vectors are worth, its times are its own.
basic-memory is called as by an agent, through its MCP tool `search_notes`, by words: its search by vectors
loads a model from the network."""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.retrieval_talk import Collection, Question

_SIZE, _DEPTH = 384, 100


class PeerError(Exception):
    """The named Python cannot run the store."""


def vector(text: str) -> list[float]:
    """Return the words of a text, without case and accents, each hashed to one of 384 numbers; of length
    1."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in apart if not unicodedata.combining(c))
    found = [0.0] * _SIZE
    for word, times in Counter(re.findall(r"\w+", plain)).items():
        hashed = zlib.crc32(word.encode())
        found[hashed % _SIZE] += math.sqrt(times) * (1 if hashed >> 31 else -1)
    length = math.sqrt(sum(value * value for value in found)) or 1.0
    return [value / length for value in found] if any(found) else [1.0, *found[1:]]


@contextmanager
def initrunner(python: Path) -> Iterator[Callable[[Collection], Callable[[Question], list[str]]]]:
    """Yield its store as a pipeline in a process under that Python."""
    with spoken_to(
        python, __file__, "initrunner", "the store: pip install initrunner==1.0.0 pysqlite3-binary"
    ) as say:
        say({"documents": []})
        yield lambda collection: _asked(say, collection)


@contextmanager
def basic_memory(python: Path) -> Iterator[Callable[[Collection], Callable[[Question], list[str]]]]:
    """Yield its search as a pipeline: a process per collection, because it has one set of notes at a time."""
    with ExitStack() as process:

        def make(collection: Collection) -> Callable[[Question], list[str]]:
            process.close()
            say = process.enter_context(
                spoken_to(python, __file__, "basic-memory", "the search: pip install basic-memory")
            )
            return _asked(say, collection)

        yield make


def _asked(say: Callable[[dict[str, Any]], Any], collection: Collection) -> Callable[[Question], list[str]]:
    ids = [document.id for document in collection.documents]
    say({"documents": [document.words for document in collection.documents]})
    return lambda question: [ids[number] for number in say({"question": question.text})]


@contextmanager
def spoken_to(
    python: Path, script: str | Path, name: str, needs: str
) -> Iterator[Callable[[dict[str, Any]], Any]]:
    """Run a file under that Python as a process that answers one line of JSON with another."""
    # From its own folder: the other Python need not have this package.
    command: list[str | Path] = [python.absolute(), Path(script).resolve(), name]
    with tempfile.TemporaryDirectory(prefix="ipfsmem-bench-", ignore_cleanup_errors=True) as work:
        env = {**os.environ, "DO_NOT_TRACK": "1", "HOME": work, "INITRUNNER_HOME": work}
        env |= {
            "BASIC_MEMORY_HOME": f"{work}/notes",
            "BASIC_MEMORY_CONFIG_DIR": f"{work}/kept",
            "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
        }
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=work,
                env=env,
                encoding="utf-8",
            )
        except OSError as error:
            raise PeerError(f"{python} cannot be started: {error.strerror}.") from None
        assert process.stdin and process.stdout
        wanted, given = process.stdin, process.stdout

        def say(line: dict[str, Any]) -> Any:
            try:
                wanted.write(json.dumps(line) + "\n")
                wanted.flush()
            except OSError:
                answer = ""
            else:
                answer = given.readline()
            if not answer:
                raise PeerError(f"{python} does not run {needs} there.")
            return json.loads(answer)

        try:
            yield say
        finally:
            with suppress(OSError):
                wanted.close()
            process.wait()
            given.close()


def serve_initrunner() -> None:
    """Store entries and answer queries until the input ends."""
    with suppress(ImportError):  # a Python whose own sqlite3 loads no extensions
        sys.modules["sqlite3"] = importlib.import_module("pysqlite3")
    kept = importlib.import_module("initrunner.stores.sqlite_vec").SqliteVecMemoryStore
    with tempfile.TemporaryDirectory() as work:
        for number, line in enumerate(sys.stdin):
            asked = json.loads(line)
            answer: list[int] = []
            if "documents" in asked:
                store = kept(Path(work) / f"{number}.db", dimensions=_SIZE)
                for at, text in enumerate(asked["documents"]):
                    store.add_memory(str(at), "fact", vector(text))
            else:
                answer = [
                    int(memory.content)
                    for memory, _ in store.search_memories(vector(asked["question"]), top_k=_DEPTH)
                ]
            print(json.dumps(answer), flush=True)


async def serve_basic_memory() -> None:
    """Import each text as a note of a folder, then answer queries until the input ends."""
    notes = Path(os.environ["BASIC_MEMORY_HOME"])
    notes.mkdir()
    for at, text in enumerate(json.loads(await asyncio.to_thread(sys.stdin.readline))["documents"]):
        (notes / f"note{at}.md").write_text(text + "\n", encoding="utf-8")
    program = Path(sys.executable).parent / "basic-memory"
    said = subprocess.DEVNULL
    subprocess.run([program, "reindex", "--full", "--search"], check=True, stdout=said, stderr=said)
    server = importlib.import_module("basic_memory.mcp.server").mcp
    importlib.import_module("basic_memory.mcp.tools")
    async with importlib.import_module("fastmcp").Client(server) as client:
        print("[]", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            asked = {
                "query": json.loads(line)["question"],
                "search_type": "text",
                "page_size": _DEPTH,
                "output_format": "json",
            }
            found = (await client.call_tool("search_notes", asked)).structured_content
            rows = found.get("result", found)["results"]
            print(
                json.dumps([int(row["file_path"].removeprefix("note").removesuffix(".md")) for row in rows]),
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1] == "initrunner":
        serve_initrunner()
    else:
        asyncio.run(serve_basic_memory())
