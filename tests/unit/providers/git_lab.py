"""A bare git repository, and providers for it, each with its own cache repository as on another device."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from ipfsmem_providers.git import GitProvider

from tests.interop.counterparts import need_program
from tests.servers.threaded import serve


def git(folder: Path, *args: str, data: bytes | None = None) -> str:
    """Run git in a repository, and return what it prints."""
    command = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.org", *args]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode().strip()


class Repository:
    """A bare repository at `path`; `url` is how providers reach it."""

    def __init__(self, folder: Path, url: str = "") -> None:
        need_program("git")
        self.folder, self.path = folder, folder / "memory.git"
        self._caches = itertools.count()
        subprocess.run(["git", "init", "-q", "--bare", self.path], check=True)
        self.url = url or str(self.path)

    def open(
        self, settings: Mapping[str, Any] | None = None, *, ref: str = "", cache: str = ""
    ) -> GitProvider:
        """A provider of another device, or of the one with the cache `cache`."""
        at = self.folder / (cache or f"cache{next(self._caches)}")
        return GitProvider(f"{self.url}{ref}", {"git_cache": at, **(settings or {})})

    def git(self, *args: str, data: bytes | None = None) -> str:
        """Run git in the repository, and return what it prints."""
        return git(self.path, *args, data=data)

    def commits(self, ref: str = "refs/heads/ipfsmem") -> int:
        """The number of commits of the branch."""
        return int(self.git("rev-list", "--count", ref))


@contextlib.contextmanager
def git_over_http(
    folder: Path, middlewares: list[Any], allows: Callable[[web.Request], bool] = lambda _: True
) -> Iterator[Repository]:
    """A new bare repository behind `git http-backend`; requests that it does not allow are answered 401."""
    repository = Repository(folder)
    repository.git("config", "http.receivepack", "true")

    async def handle(request: web.Request) -> web.StreamResponse:
        if not allows(request):
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="git"'})
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
        }
        process = await asyncio.create_subprocess_exec(
            "git", "http-backend", env=environment, stdin=-1, stdout=-1, stderr=-3
        )
        out, _ = await process.communicate(await request.read())
        head, _, body = out.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(fields.pop("Status", "200").split(" ")[0])
        return web.Response(status=status, body=body, headers=fields)

    def app() -> web.Application:
        made = web.Application(client_max_size=1 << 30, middlewares=middlewares)
        made.router.add_route("*", "/{tail:.*}", handle)
        return made

    with serve(app) as url:
        repository.url = f"{url}/{repository.path.name}"
        yield repository
