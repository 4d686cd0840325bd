"""Runs an aiohttp application on a free port of 127.0.0.1: in a thread, for tests with their own event
loops, or in the current loop."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web


@contextlib.asynccontextmanager
async def serve_here(app: web.Application, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Yield the URL of the application in this loop, https with `tls`; shut it down at the end."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.contextmanager
def serve(make: Callable[[], web.Application], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Yield the URL of the application that `make` builds inside a thread, https with `tls`; shut it down
    at the end."""
    ready = threading.Event()
    url: list[str] = []
    stop: list[Callable[[], object]] = []

    async def main() -> None:
        async with serve_here(make(), tls) as address:
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()
            stop.append(lambda: loop.call_soon_threadsafe(ended.set))
            url.append(address)
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield url[0]
    finally:
        stop[0]()
        thread.join(60)


def own_certificate(folder: Path) -> ssl.SSLContext:
    """Return TLS settings of a local server with a self-signed certificate; its files are in `folder`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    (folder / "key.pem").write_bytes(
        key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "certificate.pem").write_bytes(signed.public_bytes(form))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return tls
