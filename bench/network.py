"""Case `network`: publish and first fetch over loopback next to a js-ipfs node and restic, and one change at
each provider.

Uses the counterparts of the interop tests; a missing one is skipped with a line. Our side is always a
whole process with the passphrase of its keys. Nothing leaves this machine."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import re
import shutil
import tarfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.context import PYTHON, Context
from bench.corpus import changed
from bench.measure import process
from bench.network_report import Line, Report

TOKEN = "a-token-of-the-bench-which-is-long-enough"
#: Specs and settings for publishing and opening.
Where = list[tuple[str, dict[str, Any]]]
_PLAIN, _SEALED = "ipfs", "encrypted-ipfs"


def network(ctx: Context) -> None:
    """Print the tables; write RESULTS_NETWORK.md unless it is a quick run."""
    report = Report(ctx.size, ctx.bytes)
    cases: tuple[tuple[str, int, Callable[[Context, Report], None]], ...] = (
        ("S3 server", 3, _s3),
        ("ipfsmem peer", 3, _peer),
        ("Go peer", 3, _go),
        ("simulated Filebase, RPC", 1, _filebase_rpc),
        ("simulated Pinata", 1, _pinata),
        ("w3up service", 1, _w3up),
        ("latency", 1, _latency),
        ("js-ipfs node", 1, _js_ours),  # these take longest
        ("js-ipfs node: its own add and get", 1, _js_itself),
    )
    for name, rounds, case in cases:
        for turn in range(1 if ctx.quick else rounds):
            ctx.say(f"{ctx.size:>7}  network: {name}, round {turn + 1}")
            try:
                why = _skipping(case, ctx, report)
                if why:
                    report.skipped.append(f"{name}: {why}")
                    ctx.say(f"{ctx.size:>7}  network: {name} skipped: {why}")
                    break
            finally:  # after each case, so that an interrupted run keeps its results
                if not ctx.quick:
                    report.write(Path(__file__).with_name("RESULTS_NETWORK.md"))
    report.show()


def _skipping(case: Callable[[Context, Report], None], ctx: Context, report: Report) -> str:
    """Run a case; return why it was skipped or failed, or nothing."""
    try:
        import pytest
    except ImportError:
        return "pytest, which the counterparts need, is not installed"
    try:
        case(ctx, report)
    except pytest.skip.Exception as missing:
        return str(missing)
    except Exception as error:  # a failing counterpart must not lose the other rows
        return f"broke off: {type(error).__name__}: {str(error)[-300:]}"
    return ""


# -- our side ----------------------------------------------------------------------------------------------------


def _device(
    what: str, ctx: Context, home: Path, where: Where, mode: str, **more: str
) -> tuple[float, dict[str, float]]:
    """Return the seconds of a whole process, and its counts."""
    job = {"what": what, "home": str(home), "mode": mode, "providers": where, "count": ctx.size, **more}
    job["folder"] = str(ctx.folder)
    done = process([PYTHON, "-m", "bench.network_device", json.dumps(job)], cwd=Path(__file__).parents[1])
    return done.seconds, json.loads(done.output.splitlines()[-1])


def _both(ctx: Context, report: Report, name: str, where: Where, mode: str, *, change: bool = True) -> None:
    """Publish all, change some, and fetch all on a device with only the wallet."""
    home, other = ctx.fresh("network-a"), ctx.fresh("network-b")
    _device("init", ctx, home, where, mode)
    seconds, counted = _device("first", ctx, home, where, mode)
    line = Line(name, "encrypted" if mode == _SEALED else "plain")
    line.publish, line.sent, line.publish_requests = seconds, counted["sent"], counted["requests"]
    report.lines.append(line)
    line.fetch, counted = _device("fetch", ctx, other, where, mode)
    line.received, line.fetch_requests = counted["received"], counted["requests"]
    if change:
        _, counted = _device("change", ctx, home, where, mode)
        report.changes.append((name, line.kind, counted))
    ctx.say(f"{ctx.size:>7}  {name}, {line.kind}: {seconds:.2f} s, fetch {line.fetch:.2f} s")


@contextlib.contextmanager
def _server(job: dict[str, Any]) -> Iterator[str]:
    from tests.interop.counterparts import server

    with server([PYTHON, "-m", "bench.network_device", json.dumps(job)]) as url:
        yield url


def _peer(ctx: Context, report: Report) -> None:
    for mode in (_SEALED, _PLAIN):
        store = ctx.fresh("network-store")
        with _server({"what": "serve", "home": str(store), "token": TOKEN}) as url:
            where: Where = [(f"peer:{url}", {"peer_token": TOKEN})]
            _both(ctx, report, "ipfsmem peer (`ipfsmem serve peer`)", where, mode)


def _go(ctx: Context, report: Report) -> None:
    from tests.interop.counterparts import gopeer_program, server

    for mode in (_SEALED, _PLAIN):
        with server([gopeer_program(), "serve"]) as url:
            # Without pins and lists, one change would send the whole tree.
            _both(ctx, report, "Go peer (gateway)", [(f"go:{url}", {})], mode, change=False)


# -- a js-ipfs node ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _js(ctx: Context) -> Iterator[str]:
    from tests.interop.kubo_lab import Process

    node = Process(ctx.fresh("network-js") / "repo")
    try:
        yield node.start().url
    finally:
        node.kill()


def _js_ours(ctx: Context, report: Report) -> None:
    for mode in (_SEALED, _PLAIN):
        with _js(ctx) as url:
            _both(
                ctx,
                report,
                "js-ipfs node (provider kubo)",
                [(f"kubo:{url}", {})],
                mode,
                change=mode == _SEALED,
            )


def _js_itself(ctx: Context, report: Report) -> None:
    """Measure `ipfs add -r` and `ipfs get` with a running node and the same tree: one request each,
    without the start of a process."""
    for mode in (_SEALED, _PLAIN):
        store, home, tree = ctx.fresh("network-store"), ctx.fresh("network-a"), ctx.fresh("network-tree")
        where: Where = [(f"directory:{store}", {})]
        _device("init", ctx, home, where, mode)
        _device("first", ctx, home, where, mode)
        _device("tree", ctx, home, where, mode, out=str(tree))
        files = {
            path.relative_to(tree).as_posix(): path for path in sorted(tree.rglob("*")) if path.is_file()
        }
        with _js(ctx) as url:
            line = Line("js-ipfs node: its own add -r, get", "encrypted" if mode == _SEALED else "plain")
            began = time.perf_counter()
            root, line.sent = _js_add(url, files)
            line.publish, line.publish_requests = time.perf_counter() - began, 1
            out = ctx.fresh("network-js-out")
            began = time.perf_counter()
            line.received = _js_get(url, root, out)
            line.fetch, line.fetch_requests = time.perf_counter() - began, 1
            found = sum(1 for path in out.rglob("*") if path.is_file())
            if found != len(files):
                raise RuntimeError(f"{found} files came back instead of {len(files)}")
            report.lines.append(line)
            ctx.say(f"{ctx.size:>7}  {line.name}, {line.kind}: {line.publish:.2f} s, get {line.fetch:.2f} s")


def _js_add(url: str, files: dict[str, Path]) -> tuple[str, int]:
    boundary = "a-boundary-of-the-bench"
    body = io.BytesIO()
    for name, path in files.items():
        shown = urllib.parse.quote(f"tree/{name}", safe="")
        body.write(
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{shown}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n".encode()
        )
        body.write(path.read_bytes() + b"\r\n")
    body.write(f"--{boundary}--\r\n".encode())
    query = "cid-version=1&raw-leaves=true&pin=true&progress=false&quieter=true"
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    answer = _post(f"{url}/api/v0/add?{query}", body.getvalue(), kind)
    rows = [json.loads(row) for row in answer.splitlines() if row.strip()]
    return next(row["Hash"] for row in rows if row["Name"] == "tree"), body.tell()


def _js_get(url: str, root: str, out: Path) -> int:
    data = _post(f"{url}/api/v0/get?arg={root}&archive=true")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(out, filter="data")
    return len(data)


def _post(url: str, body: bytes = b"", headers: dict[str, str] | None = None) -> bytes:
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=300)
    try:
        connection.request("POST", f"{parts.path}?{parts.query}", body, headers or {})
        answer = connection.getresponse()
        data = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{parts.path} answered {answer.status}: {data[:200]!r}")
        return data
    finally:
        connection.close()


# -- an S3 server: Filebase and restic ---------------------------------------------------------------------------


def _s3(ctx: Context, report: Report) -> None:
    from tests.interop.seaweed import seaweed
    from tests.servers import filebase
    from tests.unit.providers.services_lab import account

    if shutil.which("restic") is None:
        raise RuntimeError("restic is not installed; it also makes the bucket")
    with seaweed(ctx.fresh("network-s3"), filebase.KEY, filebase.SECRET) as server:
        url = server.url
        _restic(ctx, report, url)
        for mode in (_SEALED, _PLAIN):
            with account("filebase-s3", url) as at:
                where: Where = [(f"filebase:{filebase.BUCKET}", _plain_settings(at.settings))]
                _both(ctx, report, "S3 via `filebase` proxy", where, mode)
            _empty(url)
            keys = {"aws_access_key_id": filebase.KEY, "aws_secret_access_key": filebase.SECRET}
            spec = f"bucket:s3://{filebase.BUCKET}/memories"
            _both(ctx, report, "S3 (provider bucket)", [(spec, {**keys, "bucket_endpoint": url})], mode)
            _empty(url)


def _restic(ctx: Context, report: Report, url: str) -> None:
    from tests.servers import filebase

    env = {
        "RESTIC_PASSWORD": "a passphrase of the bench",
        "RESTIC_CACHE_DIR": str(ctx.fresh("network-restic-cache")),
        "RESTIC_REPOSITORY": f"s3:{url}/{filebase.BUCKET}/restic",  # a new server each round
        "AWS_ACCESS_KEY_ID": filebase.KEY,
        "AWS_SECRET_ACCESS_KEY": filebase.SECRET,
    }
    for attempt in range(20):  # the volumes start a moment after the S3 side answers
        try:
            process(["restic", "-q", "init"], env=env)
            break
        except RuntimeError:
            if attempt == 19:
                raise
            time.sleep(1)
    source = ctx.fresh("network-source") / "memory"
    shutil.copytree(ctx.folder, source)
    line = Line("S3: restic", "encrypted")
    line.publish = process(["restic", "-q", "backup", source], env=env).seconds
    line.sent = _stored(url)
    rows = []
    for turn in range(3):
        path = sorted(source.iterdir())[turn * 41 + 5]
        path.write_bytes(changed(path.read_bytes(), turn))
        before = _stored(url)
        seconds = process(["restic", "-q", "backup", source], env=env).seconds
        rows.append({"seconds": seconds, "sent": _stored(url) - before})
    report.changes.append(("S3: restic", "encrypted", sorted(rows, key=lambda row: row["sent"])[1]))
    shutil.rmtree(env["RESTIC_CACHE_DIR"])  # a new device has none
    out = ctx.fresh("network-restic-out")
    line.fetch = process(["restic", "-q", "restore", "latest", "--target", out], env=env).seconds
    report.lines.append(line)
    ctx.say(f"{ctx.size:>7}  {line.name}: {line.publish:.2f} s, restore {line.fetch:.2f} s")


def _objects(url: str, prefix: str) -> list[tuple[str, int]]:
    from ipfsmem_providers.filebase.signing import RequestSigner

    from tests.servers import filebase

    target = f"{url}/{filebase.BUCKET}?list-type=2&max-keys=1000&prefix={urllib.parse.quote(prefix, safe='')}"
    signed = RequestSigner(filebase.KEY, filebase.SECRET).headers("GET", target)
    with urllib.request.urlopen(urllib.request.Request(target, headers=signed), timeout=30) as answer:
        text = answer.read().decode()
    if "<IsTruncated>true" in text:
        raise RuntimeError("more than 1,000 objects")
    return [
        (key, int(size))
        for key, size in re.findall(r"<Key>(.*?)</Key>.*?<Size>(\d+)</Size>", text, re.DOTALL)
    ]


def _stored(url: str) -> int:
    """Return the bytes of restic's objects."""
    return sum(size for _, size in _objects(url, "restic/"))


def _empty(url: str) -> None:
    """Delete our objects, so that the next vault of this wallet does not find them."""
    from ipfsmem_providers.filebase.signing import RequestSigner

    from tests.servers import filebase

    for key, _ in _objects(url, ""):
        if not key.startswith("restic/"):
            target = f"{url}/{filebase.BUCKET}/{urllib.parse.quote(key)}"
            signed = RequestSigner(filebase.KEY, filebase.SECRET).headers("DELETE", target)
            asked = urllib.request.Request(target, headers=signed, method="DELETE")
            urllib.request.urlopen(asked, timeout=30).close()


# -- the other services ------------------------------------------------------------------------------------------


def _plain_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings that can be passed to another process."""
    return {name: value for name, value in settings.items() if isinstance(value, str | int | float)}


def _filebase_rpc(ctx: Context, report: Report) -> None:
    from tests.servers import filebase
    from tests.unit.providers.services_lab import account

    with account("filebase-rpc") as at:
        settings = {**_plain_settings(at.settings), "filebase_partial": "1"}
        where: Where = [(f"filebase:{filebase.BUCKET}", settings)]
        _both(ctx, report, "simulated Filebase, RPC, partial uploads (`filebase_partial`)", where, _SEALED)


def _pinata(ctx: Context, report: Report) -> None:
    from tests.unit.providers.services_lab import account

    for kind in ("pinata-car", "pinata-free"):
        with account(kind) as at:
            how = "CAR" if kind == "pinata-car" else "folder"
            where: Where = [("pinata", _plain_settings(at.settings))]
            _both(ctx, report, f"simulated Pinata, {how}", where, _SEALED)


def _w3up(ctx: Context, report: Report) -> None:
    from tests.interop.w3up_lab import serving

    with serving() as service:
        space = service.space()
        where: Where = [(f"web3storage:{service.url}", _plain_settings(space.settings()))]
        _both(ctx, report, "w3up service (provider web3storage)", where, _SEALED)


def _latency(ctx: Context, report: Report) -> None:
    from bench.latency import measure

    report.latency += measure(min(ctx.size, 1_000), 100)
