"""`read` and `write` as agents call them, parsed without click, which takes a seventh of a read. Any other call, and every invalid one,
is left to `cli/app.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ipfsmem.cli import exit_at_once, flush_output
from ipfsmem.cli.light_imports import load_click, load_msgspec
from ipfsmem.cli.printing import is_utf8
from ipfsmem.ending_signals import ended_as_by_ctrl_c

if TYPE_CHECKING:
    from ipfsmem.cli.context import CommandContext
    from ipfsmem.cli.derived import Steps

#: Options with a value of every command here, and the parameters that they set.
_SHARED: Final = {"--vault": "vault_name", "--home": "home", "--scope": "scope"}
#: By command: its own options with a value, its flags, and the arguments that it has without any option.
_OPTIONS: Final[dict[str, tuple[dict[str, str], dict[str, str], dict[str, Any]]]] = {
    "read": ({}, {"--body": "only_body"}, {"only_body": False, "alternative": None, "root": None}),
    "write": (
        {"--body": "body", "--name": "name", "--description": "description", "--type": "type"},
        {"--new": "new"},
        {
            "body": None,
            "name": None,
            "description": None,
            "new": False,
            "type": None,
            "tags": None,
            "if_match": None,
            "source": None,
            "file": None,
            "whole": None,
            "empty_ok": False,
            "fields": (),
            "by_type": False,
        },
    ),
}
#: With one of these in the environment, click or the log of requests has work of its own.
_LEFT: Final = ("IPFSMEM_DEBUG", "IPFSMEM_LOG", "_IPFSMEM_COMPLETE")


#: One call: the command, the given options that every command has, whether it prints JSON, and the command's own arguments.
DirectCall = tuple[str, dict[str, str], bool, dict[str, Any]]


def direct_call(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> DirectCall | None:
    """Return the call of these words of the command line; None if only click can parse them."""
    if not words or words[0] not in _OPTIONS or any(name in environment for name in _LEFT):
        return None
    if sys.stdin is None or not (is_utf8(sys.stdout) and is_utf8(sys.stderr)):
        return None
    valued, flags, arguments = _OPTIONS[words[0]]
    shared: dict[str, str] = {}
    own: dict[str, Any] = {}
    as_json = False
    rest = iter(words[1:])
    for word in rest:
        if word == "--json":
            as_json = True
        elif word in flags:
            own[flags[word]] = True
        elif word in _SHARED or word in valued:
            value = next(rest, "")
            options, name = (shared, _SHARED[word]) if word in _SHARED else (own, valued[word])
            if name in options or not _is_plain(value):
                return None
            options[name] = value
        elif "key" in own or not _is_plain(word):
            return None
        else:
            own["key"] = word
    if "key" not in own or ("type" in own and not _is_type(own["type"])):
        return None
    return words[0], shared, as_json, arguments | own


def _is_type(word: str) -> bool:
    load_msgspec()
    from ipfsmem.bundle.memory_file import TYPES

    return word in TYPES


def _is_plain(word: str) -> bool:
    """Whether click reads a word as a value wherever it is."""
    return bool(word.strip()) and not word.startswith("-")


def run_direct(call: DirectCall, words: Sequence[str], *, ends: bool) -> int:
    """Run a call as `cli/app.py` does, and return its exit code. `ends`: this is the whole program."""
    command, shared, as_json, arguments = call
    about: dict[str, Any] = {"ends": ends, "vault_name": None, "home": None, "scope": None, **shared}
    about |= {"as_json": as_json, "verbose": False, "reads": command == "read"}
    with ended_as_by_ctrl_c():
        try:
            load_msgspec()
            steps, context = _steps(command), _context(about)
            steps.work(context, {**arguments})
            context.refuse_left_out()
            sys.stdout.flush()
            code = 0
        except BaseException as error:  # also Ctrl-C; all are reported as those of any command
            load_click()
            from ipfsmem.cli.app import report_error

            code = report_error(error, words, about)
    flush_output()
    if ends and about["reads"]:
        exit_at_once(code)
    return code


def _steps(command: str) -> Steps:
    if command == "read":
        from ipfsmem.cli.read_work import STEPS
    else:
        from ipfsmem.cli.write_work import STEPS
    return STEPS


def _context(about: Mapping[str, Any]) -> CommandContext:
    from ipfsmem.cli.context import CommandContext

    scope = about["scope"]
    return CommandContext(
        about["vault_name"],
        about["home"],
        about["as_json"],
        None,
        scope=scope if scope is not None else os.environ.get("IPFSMEM_SCOPE") or None,
        about_texts=True,
        reads=about["reads"],
        ends=about["ends"],
        options=about,
    )
