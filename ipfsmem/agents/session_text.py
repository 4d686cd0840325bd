"""Build the context of an agent at the start of a session and before a prompt, from the default scope and its
project's.

Only a connected folder gets the memories of its project (`agents/projects.py`). Memories in an adopted folder, which
the program reads directly, are not repeated.
"""

from __future__ import annotations

import contextlib
import os
import re
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

from ipfsmem.agents.projects import find_connected
from ipfsmem.config import settings
from ipfsmem.device.project_folders import ProjectFolder
from ipfsmem.errors import StorageError, UsageError
from ipfsmem.files.projects import Project, project_at
from ipfsmem.lazy_pattern import lazy_pattern
from ipfsmem.memories.context import tokens_of
from ipfsmem.memories.context_layouts import LEAST_TOKENS
from ipfsmem.memory import Memory
from ipfsmem.open_vault.audit import acting_as, collecting_doubts, with_doubts

#: A note about the MCP tools, after the memories at the start of a session.
TOOLS: Final = (
    "Tools of the server ipfsmem: recall finds memories by words; read_memory reads one by the key that begins its line above; "
    "list_memories lists them; remember saves or changes one; forget deletes one; resolve_conflict settles edits of several "
    "devices.\n"
)
#: A note after a prompt, if a text is cut or had no room.
_WHOLE: Final = "read_memory, a tool of the server ipfsmem, reads a memory whole by its key.\n"
_CUT: Final = ("\n> (cut here: ", " had no room here")
#: A line of an index. Its link leads to a file in a folder that an agent may lack.
_LINKED: Final = lazy_pattern(r"^> - \[((?:[^\\\]]|\\.)*)\]\(([^()\n]+)\.md\)", re.MULTILINE)
#: Characters used of the end of a long prompt, and of its beginning.
_ENDS = 400


class SessionText(msgspec.Struct, frozen=True):
    """The text for the model, empty without one; notices for a person about the folders of the project; and a keyed hash of the
    text, to recognise the same text on this device."""

    text: str = ""
    lines: tuple[str, ...] = ()
    mark: str = ""


def session_text(
    vault_name: str, home: Path, folder: str, program: str, max_tokens: int, passphrase: str | None = None
) -> SessionText:
    """Return the context of an agent in a folder.

    Raises PassphraseError while the keys of the vault are locked, NotFoundError, StorageError.
    """
    if not settings().agents.enabled:
        return SessionText(
            lines=("agents are switched off in the settings: ipfsmem config set agents.enabled true",)
        )
    with (
        _opened(vault_name, home, passphrase) as memory,
        acting_as("hook", program),
        collecting_doubts() as doubts,
    ):
        scope, row = _scope(memory, folder, program)
        lines = (*_paused(memory, row), *_not_connected(memory, row, folder, program))
        text = text_of(memory.scope(scope), max_tokens)
        if text and doubts:
            text = f"{with_doubts(text, doubts)}\n"
        mark = blake2b(
            text.encode(), digest_size=16, key=memory.replica.device.row_key, person=b"session text"
        )
        return SessionText(text, lines, mark.hexdigest())


def text_of(memory: Memory, max_tokens: int) -> str:
    """Return the context of a scope and a note on the tools, in at most this many tokens; empty without memories."""
    text = memory.context(max_tokens=_beside_tools(max_tokens), plugins=False).text
    return f"{_LINKED.sub(_by_key, text)}\n{TOOLS}" if text else ""


def _opened(vault_name: str, home: Path, passphrase: str | None) -> Memory:
    """Open the vault, read-only if its disk is full or read-only. Raises as `Memory.load`."""
    try:
        return Memory.load(vault_name, home=home, passphrase=passphrase)
    except StorageError as error:
        from ipfsmem.device.connection import DatabaseDamagedError

        if not isinstance(error, DatabaseDamagedError):
            with contextlib.suppress(StorageError):
                return Memory.load_damaged(vault_name, home=home, passphrase=passphrase)
        raise


def _beside_tools(max_tokens: int) -> int:
    """Return the token budget of the memories."""
    return max(LEAST_TOKENS, max_tokens - tokens_of(TOOLS))


def _by_key(line: re.Match[str]) -> str:
    """Return the beginning of an index line with its key instead of the link."""
    name, key = line[1], line[2]
    return f"> - {key}" if name == key else f"> - {key}: {name}"


class PromptText(msgspec.Struct, frozen=True):
    """The memories for a prompt, empty without new ones, and the marks of the texts in it. `ready`: False if the search is
    incomplete, as the index must be built first."""

    text: str = ""
    marks: tuple[str, ...] = ()
    ready: bool = True


def prompt_text(
    vault_name: str,
    home: Path,
    folder: str,
    program: str,
    prompt: str,
    without: frozenset[str],
    session: str = "",
    passphrase: str | None = None,
) -> PromptText:
    """Return the memories, messages and events for a prompt in a folder, except those already shown to the session (by their
    marks) and the messages of the session of this name.

    Raises PassphraseError while the keys of the vault are locked, NotFoundError, StorageError.
    """
    query = asked(prompt)
    if not query or not settings().agents.enabled:
        return PromptText()
    # By words and without plugins: a model may take longer than a hook's time limit.
    with (
        _opened(vault_name, home, passphrase) as memory,
        acting_as("hook", program),
        collecting_doubts() as doubts,
    ):
        scope, _ = _scope(memory, folder, program)
        there = memory.scope(scope)
        ready = there.readiness()
        if not ready.something:
            return PromptText(ready=False)
        block = there.context(
            query, layout="turn", exclude=without, by_meaning=False, plugins=False, running=session
        )
        whole = _WHOLE if any(words in block.text for words in _CUT) else ""
        text = block.text + whole
        if text and doubts:
            text = f"{with_doubts(text, doubts)}\n"
        return PromptText(text, block.marks, ready.everything)


def asked(prompt: str) -> str:
    """Return the query for a prompt: its end and its beginning, which have the question if much is pasted. Empty with fewer
    than two significant words, unless one is an identifier, or of a script with short words."""
    from ipfsmem.recall.function_words import prompt_weight
    from ipfsmem.recall.terms import terms

    query = prompt if len(prompt) <= 2 * _ENDS else f"{prompt[-_ENDS:]} {prompt[:_ENDS]}"
    words = set(terms(query))
    return (
        query
        if prompt_weight(query) >= 2 or any(len(word) >= 3 and not word.isascii() for word in words)
        else ""
    )


def _scope(memory: Memory, folder: str, program: str) -> tuple[str, ProjectFolder | None]:
    """Return the scope that an agent reads in addition to the default scope: its project's, unless the program reads
    that scope's folder itself."""
    row: ProjectFolder | None = None
    adopted = False
    # A folder that was removed, or is unreadable, belongs to no project.
    with contextlib.suppress(UsageError, StorageError):
        project, row = find_connected(memory, folder)
        attached = set(memory.folders.paths())
        adopted = (
            row is not None
            and row.path == str(project.folder)  # else it was moved, and the program uses another folder
            and row.adopted.get(program) in attached
            and not _keeps_own_folder(program, project, attached)
        )
    return "" if row is None or adopted else memory.scopes.target(row.scope), row


def make_ready(memory: Memory, folder: str) -> None:
    """Build the index for prompts in a folder, which exceeds a hook's time limit."""
    project, row = "", None
    if folder:
        project, row = _scope(memory, folder, "")
    for scope in dict.fromkeys((project, "") if row is None or row.adopted else (project,)):
        memory.scope(scope).make_ready()


def _not_connected(memory: Memory, row: ProjectFolder | None, folder: str, program: str) -> list[str]:
    """Return the command that connects an unconnected project."""
    if row is not None:
        return []
    from ipfsmem.files.attaching import is_too_wide

    with contextlib.suppress(UsageError, StorageError):
        project = project_at(folder)
        if project.repository is not None and not is_too_wide(project.folder):
            vault_option = "" if memory.vault == "default" else f" --vault {memory.vault}"
            import shlex

            place = shlex.quote(str(project.folder))
            command = f"ipfsmem connect {program or 'claude-code'} --project {place}{vault_option}"
            return [f"this project is not connected: {command}"]
    return []


def _keeps_own_folder(program: str, project: Project, attached: set[str]) -> bool:
    """Tell whether the program has an unlinked memory folder for this working tree: it reads that one then, not that of the
    first working tree."""
    repository = project.repository
    if program != "claude-code" or repository is None or repository.tree == repository.root:
        return False
    from ipfsmem.agents.claude_folders import ClaudeHome, memory_files, project_name  # few sessions run there

    place = ClaudeHome.of(os.environ).folder / "projects" / project_name(str(repository.tree)) / "memory"
    return str(place) not in attached and memory_files(place) > 0


def _paused(memory: Memory, row: ProjectFolder | None) -> list[str]:
    paths = set(row.adopted.values()) if row is not None else set()
    if not paths:
        return []
    return [
        f"{one.path} is {one.state}: ipfsmem folder list"
        for one in memory.folders.list()
        if one.path in paths and one.state != "ok"
    ]
