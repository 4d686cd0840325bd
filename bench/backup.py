"""Encrypting backup tools on the same files, where they are installed: restic and borg.

They solve another problem (no merge, no wallet, one writer); in common are reading, encrypting, storing
and restoring ten thousand small files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median as middle

from bench.context import Context
from bench.corpus import changed
from bench.measure import folder_bytes, process

Command = Sequence[str | Path]
_SECRET = "a passphrase of the bench"


class Tool:
    """One program: how to create a repository, back up a folder, and restore it."""

    def __init__(
        self,
        name: str,
        env: dict[str, str],
        init: Callable[[Path], Command],
        backup: Callable[[Path, Path, int], Command],
        restore: Callable[[Path, Path], Command],
    ) -> None:
        self.name = name
        self.env = env
        self.init = init
        self.backup = backup
        self.restore = restore


def _tools(work: Path) -> list[Tool]:
    return [
        Tool(
            "restic",
            {"RESTIC_PASSWORD": _SECRET, "RESTIC_CACHE_DIR": str(work / "restic-cache")},
            lambda repo: ["restic", "-q", "init", "-r", repo],
            lambda repo, folder, _: ["restic", "-q", "backup", "-r", repo, folder],
            lambda repo, out: ["restic", "-q", "restore", "latest", "-r", repo, "--target", out],
        ),
        Tool(
            "borg",
            {"BORG_PASSPHRASE": _SECRET, "BORG_BASE_DIR": str(work / "borg-base")},
            lambda repo: ["borg", "init", "-e", "repokey-blake2", repo],
            lambda repo, folder, turn: ["borg", "create", f"{repo}::run{turn}", folder],
            lambda repo, out: ["borg", "extract", f"{repo}::run0"],
        ),
    ]


def backup(ctx: Context) -> None:
    """Measure a first run, a run after one changed file (time and bytes), and a restore."""
    for tool in _tools(ctx.work):
        if shutil.which(tool.name) is None:
            ctx.skip(f"{tool.name}: backup", "not installed")
            continue
        _measure(ctx, tool)


def _measure(ctx: Context, tool: Tool) -> None:
    source = ctx.work / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ctx.folder, source)
    runs, repo, first = ctx.runs(3), Path(), []
    for _ in range(runs):
        repo = ctx.fresh(f"{tool.name}-repo") / "r"
        process(tool.init(repo), env=tool.env)
        first.append(process(tool.backup(repo, source, 0), env=tool.env))
    ctx.add(
        f"{tool.name}: first backup",
        middle(d.seconds for d in first),
        runs=runs,
        bytes=folder_bytes(repo),
        rss_mb=round(max(d.rss_mb for d in first)),
        note="whole process",
    )
    again, grown = [], []
    names = sorted(source.iterdir())
    for turn in range(1, 6):
        path = names[turn * 41 % len(names)]
        path.write_bytes(changed(path.read_bytes(), turn))
        before = folder_bytes(repo)
        again.append(process(tool.backup(repo, source, turn), env=tool.env))
        grown.append(folder_bytes(repo) - before)
    ctx.add(
        f"{tool.name}: backup of one change",
        middle(d.seconds for d in again),
        runs=5,
        bytes=int(middle(grown)),
        note="whole process; growth of the repository in bytes",
    )
    back = []
    for _ in range(runs):
        out = ctx.fresh(f"{tool.name}-out")
        back.append(process(tool.restore(repo, out), env=tool.env, cwd=out))
    ctx.add(
        f"{tool.name}: restore",
        middle(d.seconds for d in back),
        runs=runs,
        note="whole process, to plain files",
    )
    for path in (source, repo.parent, out):
        shutil.rmtree(path)
