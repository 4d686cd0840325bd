"""Project folders, git repositories and Claude Code memory folders for tests of agent programs."""

from __future__ import annotations

import json
from pathlib import Path

from ipfsmem.agents.claude_folders import ClaudeHome, project_name

ORIGIN = "https://github.com/acme/api.git"


def repository(folder: Path, origin: str | None = ORIGIN, *, more: str = "") -> Path:
    """Create a repository as `git init` and `git remote add` leave it; the path contains no symbolic
    links."""
    git = folder / ".git"
    for part in ("objects", "refs"):
        (git / part).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    remote = f'[remote "origin"]\n\turl = {origin}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'
    (git / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
        + (remote if origin is not None else "")
        + more
    )
    return folder.resolve()


def worktree(main: Path, folder: Path, *, back: Path | None = None) -> Path:
    """Create a further working tree as `git worktree add` does. `back`: where its entry points back to."""
    entry = main / ".git" / "worktrees" / folder.name
    entry.mkdir(parents=True)
    folder.mkdir(parents=True, exist_ok=True)
    (entry / "commondir").write_text("../..\n")
    (entry / "gitdir").write_text(f"{back or folder / '.git'}\n")
    (entry / "HEAD").write_text("ref: refs/heads/other\n")
    (folder / ".git").write_text(f"gitdir: {entry}\n")
    return folder.resolve()


class Claude:
    """The files of Claude Code on one machine: its configuration folder with one memory folder per
    project."""

    def __init__(self, home: Path) -> None:
        self.folder = home / ".claude"
        self.folder.mkdir(parents=True)
        self.state = home / ".claude.json"
        self.home = ClaudeHome(self.folder, self.state)
        self._known: dict[str, object] = {}

    def used_in(self, project: Path) -> Path:
        """Start Claude Code in a project; return the project's memory folder."""
        self._known[str(project)] = {"allowedTools": [], "history": []}
        self.state.write_text(json.dumps({"numStartups": 3, "projects": self._known}))
        return self.folder / "projects" / project_name(str(project)) / "memory"

    def remembers(self, project: Path, key: str, body: str, description: str = "said") -> Path:
        """Write a memory as Claude Code does: a file with a header, and a line in MEMORY.md."""
        folder = self.used_in(project)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{key}.md"
        file.write_text(
            f"---\nname: {key}\ndescription: {description}\nmetadata:\n  type: project\n---\n\n{body}\n",
            "utf-8",
        )
        index = folder / "MEMORY.md"
        lines = index.read_text("utf-8") if index.exists() else ""
        line = f"- [{key}]({key}.md) — {description}\n"
        if line not in lines:
            index.write_text(lines + line, "utf-8")
        return file
