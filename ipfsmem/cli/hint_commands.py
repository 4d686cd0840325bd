"""Hints for the command line: without the part for Python, and their commands with the vault and scope of this call.

A person who passed --vault, --home or --scope and runs a hint as printed reaches the same vault.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from ipfsmem.cli.printing import clean

#: Commands that use no vault on this device.
_ANYWHERE: Final = frozenset(("demo", "config", "format", "help", "open", "serve peer", "version"))
_COMMAND: Final = re.compile(r"(?<![\w./-])ipfsmem ([a-z]+)(?![\w-])(?: ([a-z-]+)(?![\w.]))?")
#: A command in such a clause is for another device, where other names may apply.
_ELSEWHERE: Final = re.compile(r"\b(?:[Aa]|[Aa]nother|that) device\b|\b[Oo]n devices\b|\btakes them along\b")
#: The same advice for callers from Python.
_FOR_PYTHON: Final = re.compile(r" \(in Python: (?:[^()]|\([^()]*\))*\)|; in Python: [^()]*(?=\))")
#: A word quoted by `shlex.quote`: the name of a folder may look like a command, or have a full stop.
_QUOTED: Final = re.compile(r"""(?<!\S)'[^']*'(?:"'"'[^']*')*""")
#: The start of a clause, and the end of a command.
_BEGINS: Final = re.compile(r"[.;(\n]")
_ENDS: Final = re.compile(r"[.;)\n](?:\s|$)|, (?:or|then)\b")


def advice(text: str) -> str:
    """Return a text for a terminal: clean, and its commands with the vault, home and scope of this call."""
    ctx = click.get_current_context(silent=True)
    if ctx is None:
        return without_python(clean(text))
    root = ctx.find_root()
    return with_call_options(clean(text), root.obj if isinstance(root.obj, Mapping) else {}, root.command)


def without_python(text: str) -> str:
    """Return a hint without its part for callers from Python."""
    return _FOR_PYTHON.sub("", text)


def command_in(root: click.Command, path: Sequence[str]) -> click.Command | None:
    """Import and return the command of these names; None if it is unknown."""
    command: click.Command | None = root
    for name in path:
        command = (
            command.get_command(click.Context(command), name) if isinstance(command, click.Group) else None
        )
    return command


def with_call_options(text: str, options: Mapping[str, Any], root: click.Command) -> str:
    """Return the text without its part for Python, its commands with the `vault_name`, `home` and `scope` that were given as
    flags, unless they name their own. `root`: the command of the program."""
    text = without_python(text)
    if not options.get("vault_name") and not options.get("home") and options.get("scope") is None:
        return text
    original, text = text, _QUOTED.sub(lambda word: "'" * len(word[0]), text)

    names = root.list_commands(click.Context(root)) if isinstance(root, click.Group) else []

    def with_flags(match: re.Match[str]) -> str:
        name, path = match[1], [match[1]]
        if match[2] is not None and command_in(root, match.groups()) is not None:
            path.append(match[2])
        begins = max((mark.end() for mark in _BEGINS.finditer(text, 0, match.start())), default=0)
        if (
            name not in names
            or {name, " ".join(path)} & _ANYWHERE
            or _ELSEWHERE.search(text, begins, match.start())
        ):
            return match[0]
        end = match.end(len(path))
        ends = _ENDS.search(text, end)
        tokens = text[end : ends.start() if ends else None].split()
        words = ["ipfsmem"]
        for option, value, earlier in (
            ("--vault", options.get("vault_name"), "-n"),
            ("--home", options.get("home"), ""),
        ):
            if value and not {option, earlier} & set(tokens):
                words += [option, shlex.quote(value)]
        words += path
        if options.get("scope") is not None and "--scope" not in tokens and _is_scoped(root, path):
            words += ["--scope", shlex.quote(options["scope"])]
        return " ".join(words) + original[end : match.end()]

    parts, at = [], 0
    for match in _COMMAND.finditer(text):
        parts += [original[at : match.start()], with_flags(match)]
        at = match.end()
    return "".join((*parts, original[at:]))


def _is_scoped(root: click.Command, path: Sequence[str]) -> bool:
    command = command_in(root, path)
    return command is not None and any("--scope" in param.opts for param in command.params)
