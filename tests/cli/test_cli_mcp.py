"""`ipfsmem serve mcp` over pipes and HTTP, with correct and faulty clients."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.device.agent_notes import background_notes, syncing_notes
from ipfsmem.device.lock import file_lock
from ipfsmem.memory import Memory
from ipfsmem.wallet.signers import RawKeySigner
from tests.support import effort
from tests.support.cli_lab import Cli, pipe
from tests.support.extras import need_extra
from tests.support.hints import hinted
from tests.support.mcp_lab import play, program, surroundings
from tests.support.patience import PATIENCE

HELLO: dict[str, Any] = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip
#: Calls of about 80 bytes each: together more than a pipe holds.
CALLS = effort.cases(2_000, 10_000)
READY: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    need_extra("mcp", "mcp_types")
    with Memory.create("default", "local", home=tmp_path / "ipfsmem") as memory:
        memory.write("role", "Works on firmware.", name="Role")
    return tmp_path


def call(number: int | str, tool: str = "recall", **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def text_of(answer: Any) -> str:
    return str(answer.content[0].text)


@contextlib.contextmanager
def started(home: Path, *arguments: str, code: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Start `ipfsmem serve mcp` with pipes, or `code` that runs it; check at the end that it has exited."""
    ran = ["-c", code] if code else ["-m", "ipfsmem.cli", "serve", "mcp", *arguments]
    server = subprocess.Popen(
        [sys.executable, *ran],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=surroundings(home),
    )
    try:
        yield server
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()
        for stream in (server.stdin, server.stdout, server.stderr):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]


def say(server: subprocess.Popen[bytes], *messages: Any) -> None:
    assert server.stdin is not None
    for message in messages:
        server.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
    server.stdin.flush()


def ended(server: subprocess.Popen[bytes], code: int = 0) -> tuple[list[dict[str, Any]], str]:
    """Close the input; return the answers, each a line of JSON, and stderr."""
    out, err = server.communicate(timeout=60)
    assert server.returncode == code, err
    assert b"Traceback" not in err, err
    return [json.loads(line) for line in out.splitlines()], err.decode()


def test_official_client_works_over_pipes(home: Path) -> None:
    from mcp import Client

    async def work() -> None:
        async with Client(program(home)) as client:
            assert "> Works on firmware." in text_of(await client.call_tool("recall", {"query": "firmware"}))
            async with client.listen(resource_subscriptions=["memory:///role"]) as heard:
                with Memory.load(home=home / "ipfsmem") as memory:
                    memory.write("role", "Works on compilers.")
                event = await anext(heard)
                assert event.uri == "memory:///role"
            assert "> Works on compilers." in text_of(
                await client.call_tool("recall", {"query": "compilers"})
            )
            made = await client.call_tool("remember", {"key": "made", "body": "by a model"})
            assert not made.is_error

    play(work)
    with Memory.load(home=home / "ipfsmem") as memory:
        assert "made" in memory


def test_malformed_messages_are_answered_without_a_traceback(home: Path) -> None:
    with started(home) as server:
        say(
            server, HELLO, READY, b"\n", b"nonsense\n", b"{}\n", b"[]\n", b"\xff\xfe\x00\n", b'{"jsonrpc":"2.0"}\n',
            b"[" * 10_000 + b"\n", {"jsonrpc": "2.0", "id": 1, "method": "no/such"}, {"jsonrpc": "2.0", "id": 2, "method": "tools/call"},
            {**call(3), "params": {"name": 7}}, {**call(4), "params": {"name": "recall", "arguments": [1]}},
            call(5, "no such tool"), call(6, "recall", query={"a": ["b"] * 1000}), call(7, "remember", key="x" * 100_000, body="y"),
            {"jsonrpc": "2.0", "id": 99, "result": {}}, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}},
            call(8, "recall", query="firmware"),
        )  # fmt: skip
        answers, _ = ended(server)
    found = {answer.get("id"): answer for answer in answers}
    assert "> Works on firmware." in found[8]["result"]["content"][0]["text"]
    assert all(found[n].get("error") for n in (1, 2, 3, 4))
    assert all(found[n]["result"]["isError"] for n in (5, 6, 7) if n in found)


def test_cancelled_queued_call_is_neither_run_nor_answered(home: Path) -> None:
    hurried = call(2, "remember", key="second", body="Cancelled.")
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    with started(home) as server:
        with file_lock(home / "ipfsmem" / "default" / "lock"):
            # The first waits for the lock, the second for the first; the answer to the list shows that the
            # cancellation was read.
            say(server, HELLO, READY, call(1, "remember", key="first", body="Waited."), hurried, cancel)
            say(server, {"jsonrpc": "2.0", "id": "list", "method": "tools/list"})
            assert server.stdout is not None
            while json.loads(server.stdout.readline()).get("id") != "list":
                pass
        say(server, call(3, "read_memory", key="second"))
        answers, _ = ended(server)
    found = {answer.get("id"): answer["result"] for answer in answers}
    assert 1 in found and 2 not in found and found[3]["isError"]


class Peak:
    """The peak memory (KiB) of a process, sampled until it ends. The system's figure for ended children
    includes the process that forked them."""

    def __init__(self, pid: int) -> None:
        self._path, self._most = Path(f"/proc/{pid}/status"), 0
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    def _look(self) -> None:
        while True:
            try:
                found = re.search(r"VmHWM:\s+(\d+) kB", self._path.read_text())
            except OSError:
                return
            if found is None:  # it has ended
                return
            self._most = max(self._most, int(found[1]))
            time.sleep(0.02)

    def until_its_end(self) -> int:
        self._watch.join(60)
        return self._most


def test_thousands_of_queued_calls_are_answered_in_bounded_memory(home: Path) -> None:
    """Queued calls wait in the pipe, also while the client reads no answers."""
    with started(home) as server:
        say(server, HELLO, READY, call("warm"))
        time.sleep(1)
        os.set_blocking(server.stdin.fileno(), False)  # type: ignore[union-attr]
        sent = data = b"".join(json.dumps(call(n, "no")).encode() + b"\n" for n in range(1, CALLS + 1))
        while data:  # nobody reads yet: the pipes fill, and the server stops reading
            try:
                data = data[os.write(server.stdin.fileno(), data[:65536]) :]  # type: ignore[union-attr]
            except BlockingIOError:
                time.sleep(0.5)
                break
        assert data, f"it took {len(sent):,} bytes though nobody reads its answers"
        os.set_blocking(server.stdin.fileno(), True)  # type: ignore[union-attr]
        peak = Peak(server.pid)
        out, err = server.communicate(data, timeout=100)
    assert server.returncode == 0 and b"Traceback" not in err
    numbers = {json.loads(line)["id"] for line in out.splitlines()}
    assert numbers == {0, "warm", *range(1, CALLS + 1)}
    if sys.platform == "linux":
        assert 20_000 < peak.until_its_end() < 400_000  # KiB


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_oversized_message_is_answered_without_being_parsed(home: Path, first: bool, alone: bool) -> None:
    number = b'"id":"big",' if first else b""
    last = b"" if first else b',"jsonrpc":"2.0","id":"big"'
    start = b'{"jsonrpc":"2.0",' if first else b"{"
    body = b'"method":"tools/call","params":{"name":"remember","arguments":{"key":"big","body":"'
    with started(home) as server:
        say(server, HELLO, READY)
        if alone:
            assert server.stdout.readline()  # type: ignore[union-attr]
        say(
            server,
            start + number + body + b"x" * (9 << 20) + b'"}}' + last + b"}\n",
            call(1, query="firmware"),
        )
        answers, _ = ended(server)
    found = {answer.get("id"): answer for answer in answers}
    assert found["big"]["result"]["isError"] and "exceeds the size limit" in json.dumps(found["big"])
    assert "> Works on firmware." in found[1]["result"]["content"][0]["text"]


def test_message_with_half_a_surrogate_pair_is_answered_with_an_error(home: Path) -> None:
    """JavaScript writes such a text after a cut within an emoji."""
    with started(home) as server:
        say(
            server,
            HELLO,
            READY,
            call("half", query="firmware \ud83d"),
            call(1, query="firmware \U0001f600 \\ud83d"),
        )
        answers, _ = ended(server)
    found = {answer.get("id"): answer for answer in answers}
    assert found["half"]["result"]["isError"] and "half a character" in json.dumps(found["half"])
    assert "> Works on firmware." in found[1]["result"]["content"][0]["text"]


def test_deeply_nested_message_is_answered_with_an_error(home: Path) -> None:
    deep = b"[" * 1_500 + b"]" * 1_500
    asked = b'{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{"name":"recall","arguments":{"query":%s}}}\n'
    with started(home) as server:
        say(server, HELLO, READY, asked % deep, call(1, query="firmware"))
        answers, _ = ended(server)
    found = {answer.get("id"): answer for answer in answers}
    assert found["deep"]["result"]["isError"] and "nested too deep" in json.dumps(found["deep"])
    assert "> Works on firmware." in found[1]["result"]["content"][0]["text"]


def test_error_with_path_that_is_not_unicode_is_answered(tmp_path: Path) -> None:
    need_extra("mcp", "mcp_types")
    home = tmp_path / "odd\udcff"
    try:
        home.mkdir()
    except OSError:
        pytest.skip("this system has no names that are not Unicode")
    Memory.create("default", "local", home=home / "ipfsmem").close()
    with started(home) as server:
        say(server, HELLO, READY, call(1, "list_memories"))
        assert (
            server.stdout is not None and server.stdout.readline() and b'"id":1' in server.stdout.readline()
        )
        (home / "ipfsmem/default/state.db").rename(home / "moved")
        say(server, call(2, "remember", key="tone", body="Be brief."))
        answers, _ = ended(server)
    assert answers[0]["id"] == 2 and "state.db" in answers[0]["result"]["content"][0]["text"]


@pytest.mark.parametrize("number", [b'"\xff"', b"007", b'"\x01"'])
def test_long_message_with_an_invalid_number_does_not_stop_the_server(home: Path, number: bytes) -> None:
    with started(home) as server:
        say(server, HELLO, READY, b'{"id":' + number + b',"x":"' + b"x" * (9 << 20) + b'"}\n', call(1))
        answers, _ = ended(server)
    assert 1 in {answer.get("id") for answer in answers}


def test_server_exits_silently_on_disconnect_and_on_signals(home: Path) -> None:
    with started(home) as server:
        say(server, HELLO, READY, *(call(n, query="firmware") for n in range(200)))
        server.stdout.close()  # type: ignore[union-attr]
        server.stdin.close()  # type: ignore[union-attr]
        assert server.wait(60) == 0
        assert server.stderr.read() == b""  # type: ignore[union-attr]
    for number in (signal.SIGTERM, signal.SIGINT):
        with started(home) as server:
            say(server, HELLO)
            assert server.stdout.readline()  # type: ignore[union-attr]
            server.send_signal(number)
            assert server.wait(60) == 0
            assert server.stderr.read() == b""  # type: ignore[union-attr]


def test_server_of_a_locked_vault_starts_and_suggests_unlock(tmp_path: Path) -> None:
    need_extra("mcp", "mcp_types")
    from ipfsmem.vault.owner import Unlock
    from ipfsmem.wallet.signers import RawKeySigner

    wallet = Unlock(RawKeySigner(bytes(31) + b"\x0b"))
    with Memory.create(
        "default",
        "encrypted-ipfs",
        unlock=wallet,
        passphrase="correct horse battery staple",
        home=tmp_path / "ipfsmem",
    ):
        pass
    with started(tmp_path) as server:
        say(server, HELLO, READY, call(1, query="x"), {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        answers, err = ended(server)
    assert "locked" in err
    found = {answer["id"]: answer["result"] for answer in answers}
    assert (
        found[1]["isError"]
        and "ipfsmem unlock" in found[1]["content"][0]["text"]
        and len(found[2]["tools"]) == 6
    )


def test_mcp_server_started_while_database_is_locked_answers_later_calls(
    home: Path,
) -> None:
    impatient = (
        "from ipfsmem.cli import main; from ipfsmem.device.database import Database; "
        "Database.__init__.__kwdefaults__['wait'] = 0.05; main(['serve', 'mcp'])"
    )
    holder = sqlite3.connect(home / "ipfsmem" / "default" / "state.db", isolation_level=None)
    with contextlib.closing(holder), started(home, code=impatient) as server:
        assert server.stdout is not None
        holder.execute("BEGIN IMMEDIATE")
        say(server, HELLO, READY, call(1, query="firmware"))
        server.stdout.readline()
        refused = json.loads(server.stdout.readline())["result"]
        holder.execute("ROLLBACK")
        say(server, call(2, query="firmware"))
        answers, err = ended(server)
    assert refused["isError"] and "in use by another program" in refused["content"][0]["text"]
    assert "process id" not in refused["content"][0]["text"]  # SQLite does not report this
    assert "Works on firmware." in answers[0]["result"]["content"][0]["text"]
    assert "in use by another program" in err


def test_mcp_server_syncs_and_publishes_pending_writes_when_client_exits(tmp_path: Path) -> None:
    need_extra("mcp", "mcp_types")
    (stick := tmp_path / "stick").mkdir()
    made: dict[str, Any] = {"passphrase": False, "home": tmp_path / "ipfsmem", "provider": str(stick)}
    with Memory.create("default", "encrypted-ipfs", **made):
        pass
    with started(tmp_path, "--sync") as server:
        say(server, HELLO, READY, call(1, "remember", key="tone", body="direct"))
        _, err = ended(server)
    assert err == ""
    with Memory.load(home=tmp_path / "ipfsmem") as memory:
        status = memory.status()
        assert status.memories == 1 and not status.unpublished and status.root


@pytest.mark.skipif(sys.platform == "win32", reason="a process is killed by a signal")
def test_write_before_server_is_killed_is_published(tmp_path: Path) -> None:
    """Programs kill their servers at the end of a session, long before the next sync is due."""
    need_extra("mcp", "mcp_types")
    (stick := tmp_path / "stick").mkdir()
    made: dict[str, Any] = {"passphrase": False, "home": tmp_path / "ipfsmem", "provider": str(stick)}
    with Memory.create("default", "encrypted-ipfs", **made) as memory:
        memory.write("role", "Works on firmware.")
    place = tmp_path / "ipfsmem" / "default"
    with started(tmp_path, "--sync") as server:
        assert server.stdout is not None
        say(server, HELLO, READY)
        _until(lambda: syncing_notes(place).worked != 0)  # the first sync is done
        say(server, call(1, "remember", key="tone", body="direct"))
        while b'"id":1' not in server.stdout.readline():
            pass
        server.kill()
        server.wait()
    with Memory.load(home=tmp_path / "ipfsmem") as memory:
        assert memory.status().memories == 2
        _until(lambda: not memory.status().unpublished)
    _until(lambda: background_notes(place).worked != 0)


def _until(reached: Callable[[], bool]) -> None:
    for _ in range(1_200):
        if reached():
            return
        time.sleep(0.05)
    raise AssertionError("it was not reached within a minute")


def test_texts_pulled_by_mcp_server_are_noted_for_hooks(tmp_path: Path) -> None:
    need_extra("mcp", "mcp_types")
    (stick := tmp_path / "stick").mkdir()
    made: dict[str, Any] = {"passphrase": False, "provider": str(stick), "unlock": RawKeySigner(b"\x21" * 32)}
    with Memory.create("default", "encrypted-ipfs", home=tmp_path / "ipfsmem", **made) as memory:
        asyncio.run(memory.sync())
    with Memory.load("default", "encrypted-ipfs", home=tmp_path / "phone", **made) as phone:
        phone.write("tone", "direct")
        asyncio.run(phone.sync())
    place = tmp_path / "ipfsmem" / "default"
    with started(tmp_path, "--sync") as server:
        say(server, HELLO, READY)
        for _ in range(600):
            if syncing_notes(place).brought:
                break
            time.sleep(0.05)
        _, err = ended(server)
    assert err == "" and syncing_notes(place).brought


def test_unknown_tool_name_ends_the_server_at_once(home: Path) -> None:
    with started(home, "--tool", "promote") as server:
        _, err = ended(server, code=2)
    assert "unknown tool 'promote'" in err


# -- over HTTP -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def listening(home: Path, *arguments: str) -> Iterator[tuple[str, str]]:
    """Return the server's URL and the token that it made."""
    with started(home, "--http", "127.0.0.1:0", "--json", *arguments) as server:
        lines = b""
        while not lines.endswith(b"}\n"):
            lines += (line := server.stdout.readline())  # type: ignore[union-attr]
            assert line, server.stderr.read()  # type: ignore[union-attr]
        told = json.loads(lines)
        yield told["url"], told["token"]
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        assert server.stderr.read() == b""  # type: ignore[union-attr]


def test_mcp_over_http_requires_token_host_and_origin(home: Path) -> None:
    with listening(home) as (url, token):
        port = int(re.findall(r":(\d+)/mcp$", url)[0])
        good = {
            "Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {token}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }  # fmt: skip

        def ask(
            method: str = "POST",
            path: str = "/mcp",
            body: bytes = json.dumps(HELLO).encode(),
            **changed: str | None,
        ) -> int:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            headers = {**good, **{name.replace("_", "-"): value for name, value in changed.items()}}
            connection.request(
                method, path, body, {name: value for name, value in headers.items() if value is not None}
            )
            answer = connection.getresponse()
            assert b"Traceback" not in answer.read()
            connection.close()
            return answer.status

        assert (
            ask() == 200
            and ask(Host=f"localhost:{port}") == 200
            and ask(Origin="http://localhost:6274") == 200
        )
        assert ask(Authorization=None) == 401 and ask(Authorization="Bearer wrong") == 401
        assert ask(Authorization=f"Basic {token}") == 401
        assert ask(Host="evil.example") == 421 and ask(Host=f"evil.example:{port}") == 421
        assert ask(Origin="http://evil.example") == 403 and ask(Origin="null") == 403
        assert ask(Origin="http://localhost.evil.example") == 403 and ask(Origin="https://127.0.0.1") == 403
        assert ask(path="/other") == 404 and ask(body=b"nonsense") == 400
        assert ask(body=b"x" * (5 << 20)) == 413


def test_idle_connections_do_not_block_new_clients(home: Path) -> None:
    with listening(home) as (url, token), contextlib.ExitStack() as held:
        port = int(re.findall(r":(\d+)/mcp$", url)[0])
        for sent in (b"", b"POST /mcp HTTP/1.1\r\nHost:", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") * 50:
            one = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            one.sendall(sent)
        for _ in range(3):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            good = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
            connection.request(
                "POST", "/mcp", json.dumps(HELLO), {**good, "Content-Type": "application/json"}
            )
            assert connection.getresponse().status == 200
            held.callback(connection.close)


def test_abandoned_mcp_sessions_block_no_new_session_and_used_one_stays(home: Path) -> None:
    from ipfsmem.mcp.web import MAX_SESSIONS

    with listening(home) as (url, token):
        port = int(re.findall(r":(\d+)/mcp$", url)[0])
        good = {
            "Authorization": f"Bearer {token}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }  # fmt: skip
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def ask(body: object, session: str | None = None) -> tuple[int, str | None]:
            named = {"Mcp-Session-Id": session} if session is not None else {}
            connection.request("POST", "/mcp", json.dumps(body), {**good, **named})
            answer = connection.getresponse()
            assert b"Traceback" not in answer.read()
            return answer.status, answer.getheader("mcp-session-id")

        def opened() -> str:
            status, session = ask(HELLO)
            assert status == 200 and session is not None
            return session

        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        used, silent, *_ = [opened() for _ in range(MAX_SESSIONS)]
        assert ask(ping, used)[0] == 200
        last = opened()
        assert (
            ask(ping, silent)[0] == 404
        )  # the protocol's answer for an expired session: the client opens another one
        assert ask(ping, used)[0] == ask(ping, last)[0] == 200
        assert (
            ask({"jsonrpc": "2.0", "id": 3, "method": "ping"})[0] == 400
        )  # it opens no session, so none is closed for it
        for _ in range(2 * MAX_SESSIONS):
            opened()
            assert ask(ping, used)[0] == 200
        assert ask(ping, last)[0] == 404


def test_official_client_works_over_http(home: Path) -> None:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    with listening(home, "--tools", "everyday,peers") as (url, token):
        for era in ("legacy", "auto"):

            async def work(era: str = era) -> None:
                headers = {"Authorization": f"Bearer {token}"}
                async with (
                    httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as web,
                    Client(streamable_http_client(url, http_client=web), mode=era) as client,
                ):
                    found = await client.call_tool("recall", {"query": "firmware"})
                    assert "> Works on firmware." in text_of(found) and found.structured_content is None
                    names = {tool.name for tool in (await client.list_tools()).tools}
                    assert ("save_session_context" in names) == (era == "legacy")

            play(work)


def test_mcp_over_http_refuses_bad_addresses_ports_and_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tested in this process, because nothing is served."""
    need_extra("mcp", "mcp_types")
    cli = Cli(tmp_path, monkeypatch)
    cli.ok("init", "--mode", "local")
    for given in ("nonsense", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", ":80"):
        hinted("For instance --http 127.0.0.1:8788.", cli.fails(2, "serve", "mcp", "--http", given).err)
    for given in ("0.0.0.0:0", "example.org:80", "[::]:0"):
        said = cli.fails(3, "serve", "mcp", "--http", given).err
        hinted(
            "Give 127.0.0.1:PORT, or let the program start the server itself, over its standard streams.",
            said,
        )
    cli.ok("serve", "mcp")  # the client closed its input at once
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        hinted(
            "Choose another port; 0 takes a free one.",
            cli.fails(3, "serve", "mcp", "--http", f"127.0.0.1:{port}").err,
        )
    weak = cli.fails(2, "serve", "mcp", "--http", "127.0.0.1:0", "--token-fd", str(pipe("x"))).err
    hinted("Or leave it out to create one.", weak)
    assert "requires --http" in cli.fails(2, "serve", "mcp", "--token-fd", str(pipe("x" * 20))).err
