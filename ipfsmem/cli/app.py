"""The group of commands and what happens around every one of them: lazy import, help, errors, exit codes.

A command's module is imported when it runs, never for `--help`. Every error of ours becomes one line on stderr, its
hint a second one, and its exit code; with `--json` one JSON object on stderr, so that stdout holds results only.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import click

from ipfsmem.ending_signals import ended_as_by_ctrl_c
from ipfsmem.errors import IpfsmemError, StorageError, UsageError

#: What is offered, in the order of `ipfsmem --help`. The module of a command is `<name>_cmd`, its attribute `command`.
SECTIONS: Final[dict[str, dict[str, str]]] = {
    "Begin": {
        "demo": "See the whole thing work, in a temporary folder.",
        "init": "Make a memory on this device, or bring the wallet's memory here.",
        "recover": "Bring a memory back with its 24 recovery words.",
    },
    "Memories": {
        "write": "Write a memory.",
        "read": "Print a memory.",
        "list": "List all memories.",
        "recall": "Find the memories that fit a question.",
        "why": "Why a memory fits a question, or does not.",
        "context": "What a model is given at the start of a session.",
        "forget": "Forget a memory, on every device.",
        "clear": "Forget all memories or sessions of a scope, after a question.",
        "history": "The texts that a memory has had.",
        "restore": "Bring an older text of a memory back.",
        "scope": "Named parts of this memory: list, show, title, forget, restore.",
        "promote": "Make a text of others your own word.",
        "undo": "Undo the last write or forget of this device.",
        "note": "Add an event to the timeline.",
        "timeline": "Show the timeline.",
        "session": "Conversations: list, resume, search, compact and more.",
        "fact": "Sentences with a category: add, list, history and more.",
        "value": "Values under free keys: set, get, list, delete and more.",
        "graph": "Entities and relations: add, search, path, export and more.",
        "usage": "What models were used for and what it cost: add, show, export.",
        "hide": "Leave memories out of lists and answers on this device.",
    },
    "In, out and across": {
        "sync": "Take in what other devices published, publish what is new.",
        "export": "Write the whole memory to a file or a folder.",
        "import": "Take in an export, a folder of memory files, or one file.",
        "fork": "Copy a memory into a new one of its own.",
        "open": "Read what somebody published: an address, a folder or a CAR.",
    },
    "On your disk": {
        "attach": "Link a folder of plain files to this memory.",
        "detach": "Unlink a folder; its files stay.",
        "folders": "Linked folders: list, pause, accept, put-back.",
    },
    "With agents": {
        "connect": "Let an agents' program use this memory.",
        "disconnect": "Take out of its settings what connect added.",
        "mcp": "Serve the memory to programs that speak MCP.",
        "api": "Serve the memory to programs over HTTP.",
        "tokens": "Who may ask it over HTTP: new, list, revoke.",
        "plugins": "Memories of other programs beside this one: list, test.",
        "hook": "What agents' programs run at their events.",
        "service": "Sync by itself, from the moment that you log in.",
    },
    "Look after it": {
        "ui": "The memory as a page in your browser.",
        "status": "What is here, and what waits to be published.",
        "config": "The settings: show, set, and where their file is.",
        "log": "The published versions that this device knows.",
        "diff": "What changed between two published versions, or since the last.",
        "conflicts": "Texts that were written at the same time.",
        "resolve": "Settle a conflict.",
        "unlock": "Open it without its passphrase for a while.",
        "lock": "Ask for the passphrase again from now on.",
        "keys": "Members: list, unlock, revoke, label, passphrase and more.",
        "providers": "Where it is published: list, add, test, check, move and more.",
        "serve": "Be a provider for your other devices.",
        "check": "Check this memory and say what to do.",
        "salvage": "Bring back what can be read of what is damaged.",
        "gc": "Let go of old versions, with a reason for each.",
        "vacuum": "Compact what it takes on this disk.",
        "cleanup": "Take away what is old here and can be made anew.",
        "index": "What recall keeps, so that its answers come at once: status.",
        "duplicates": "Memories that say nearly the same.",
        "dream": "Tidy up; see it before, take it back after.",
        "reindex": "Make the index of recall anew.",
    },
    "Formats": {
        "cid": "The IPFS address (root CID) of any file or folder, and its CAR.",
        "inspect": "What is inside a file of the format, with the format's words.",
    },
}
SHORT: Final = {name: text for section in SECTIONS.values() for name, text in section.items()}

#: Commands that do something useful even when nobody gets what they print. Every other command is refused before it begins when
#: standard output is closed. `init` and `keys words` refuse by themselves where they would show words.
USEFUL_WITHOUT_OUTPUT: Final = frozenset(
    [
        "write",
        "forget",
        "clear",
        "restore",
        "promote",
        "undo",
        "note",
        "sync",
        "hook",
        "service_install",
        "service_uninstall",
        "import",
        "attach",
        "detach",
        "config_set",
        "connect",
        "disconnect",
        "resolve",
        "serve",
        "unlock",
        "lock",
        "salvage",
        "gc",
        "vacuum",
        "cleanup",
        "export",
        "fork",
        "recover",
        "dream_abort",
        "dream_apply",
        "dream_off",
        "dream_on",
        "dream_run",
        "dream_undo",
        "session_add",
        "session_compact",
        "session_create",
        "session_delete",
        "fact_add",
        "graph_add",
        "usage_add",
        "graph_relate",
        "graph_delete",
        "fact_edit",
        "fact_delete",
        "fact_restore",
        "value_set",
        "value_delete",
        "value_clear",
        "value_sweep",
        "value_restore",
        "hide",
        "scope_forget",
        "scope_into",
        "scope_make",
        "scope_restore",
        "scope_title",
        "folders_accept",
        "folders_pause",
        "folders_put-back",
        "keys_label",
        "keys_passphrase",
        "keys_revoke",
        "keys_rotate",
        "keys_unlock",
        "keys_words",
        "init",
        "tokens_revoke",
        "providers_add",
        "providers_follow",
        "providers_move",
        "providers_remove",
    ]
)

#: A message is cut in its middle beyond so many characters.
_LONGEST: Final = 1200
UNEXPECTED: Final = 70
#: By Ctrl-C; by another signal as much more as its number is.
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141


class ReaderGoneError(Exception):
    """Whoever read our output has had enough."""


class Commands(click.Group):
    """Finds commands by name and imports them when they are used."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. A broken pipe is ours to judge: click would exit with 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGoneError from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it; an option given twice is refused, as behind the command."""
        from ipfsmem.cli.options import refuse_repeated_options

        if not ctx.resilient_parsing:
            refuse_repeated_options(self, ctx, args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the help."""
        return [*SHORT]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None when there is no such name."""
        if cmd_name not in SHORT:
            return None
        command: click.Command = import_module(f"ipfsmem.cli.{cmd_name}_cmd").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with the name that was probably meant."""
        from ipfsmem.cli.options import refuse_unknown_command

        refuse_unknown_command(ctx, args, SHORT)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The sections, from the table alone."""
        width = max(map(len, SHORT))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Every command has --json, --namespace and --home. An error with --json says its kind and exit code.",
)
@click.option("--version", is_flag=True, help="Print the version.")
@click.option("-n", "--namespace", metavar="NAME", help="Which memory (IPFSMEM_NAMESPACE; default: default).")
@click.option("--home", metavar="DIR", help="Where memories are kept on this device (IPFSMEM_HOME).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def group(ctx: click.Context, version: bool, namespace: str | None, home: str | None, as_json: bool) -> None:
    """Private, portable memory for AI agents.

    Markdown files encrypted for you alone, kept on IPFS or in any folder, merged without losing a word.
    Begin with: ipfsmem demo
    """
    for option, given in (("--namespace", namespace), ("--home", home)):
        if given is not None and not given.strip():
            raise click.BadParameter("it is empty", ctx, param_hint=f"'{option}'")
    ctx.obj |= {"namespace": namespace, "home": home, "as_json": as_json}


def run(arguments: Sequence[str] | None = None, *, ends: bool = False) -> int:
    """Run one command and answer its exit code; every error is printed here and nowhere else. `ends`: this is the whole program. One
    that only read ends at once: Python would take what was read apart first, object by object."""
    about: dict[str, Any] = {}  # which memory this call named, for what it says to do next
    with ended_as_by_ctrl_c():
        code = _run(arguments, about)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # It was told, where it could be. Python would say it again in its own way, and end with a code of its own.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["hook"]:
        return 0  # to a program another code means: stop the agent
    if ends and about.get("reads") and "threading" in sys.modules:
        import threading

        if threading.active_count() == 1:
            os._exit(code)
    return code


def _run(arguments: Sequence[str] | None, about: dict[str, Any]) -> int:
    _have_streams()
    for stream in (sys.stdout, sys.stderr):
        _have_every_letter(stream)
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given[: given.index("--")] if "--" in given else "--json" in given
    try:
        if output_is_closed() and (given[:1] == ["--version"] or not {"-h", "--help"}.isdisjoint(given)):
            raise output_closed_error("this")
        if given == ["--version"]:
            from importlib.metadata import version

            click.echo(f"ipfsmem {version('ipfsmem')}")
            sys.stdout.flush()
            return 0
        code = group.main(args=given, prog_name="ipfsmem", standalone_mode=False, obj=about)
        sys.stdout.flush()
    except IpfsmemError as error:
        from ipfsmem.cli.hint_commands import with_call_options

        hint = with_call_options(error.hint, about)
        return _report(error.kind, str(error), hint, error.exit_code, as_json)
    except click.exceptions.NoArgsIsHelpError as error:
        if as_json:
            return _report("UsageError", "Missing command.", _usage_hint(error), 2, as_json)
        click.echo(error.ctx.get_help())  # where a pager can have it; nothing was asked, so nothing was done
        return 2
    except click.ClickException as error:
        return _report("UsageError", error.format_message(), _usage_hint(error), 2, as_json)
    except (click.Abort, KeyboardInterrupt) as error:
        import warnings

        warnings.simplefilter("ignore", RuntimeWarning)  # of what had not begun when it was interrupted
        by = error if isinstance(error, KeyboardInterrupt) else error.__cause__
        number = by.args[0] if isinstance(by, KeyboardInterrupt) and by.args else signal.SIGINT
        said = "interrupted; nothing that was acknowledged is lost"
        return _report("Interrupted", said, "", INTERRUPTED - signal.SIGINT + number, as_json)
    except (ReaderGoneError, BrokenPipeError):
        return BROKEN_PIPE
    except OSError as error:
        if os.environ.get("IPFSMEM_DEBUG"):
            raise
        return _report("StorageError", _os_error(error), StorageError.hint, StorageError.exit_code, as_json)
    except Exception as error:
        if os.environ.get("IPFSMEM_DEBUG"):
            raise
        text = f"unexpected {type(error).__name__}: {error}"
        return _report(
            "Unexpected", text, "Run it again with IPFSMEM_DEBUG=1 for the traceback.", 70, as_json
        )
    return code if isinstance(code, int) else 0


def _have_streams() -> None:
    """Open the null device for each standard stream that the parent closed: no command has to ask whether it is there, and no
    file of ours gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - as long as the program runs
            getattr(sys, name).closed_at_start = True


def output_is_closed() -> bool:
    """Whether standard output was closed by whoever started this."""
    return bool(getattr(sys.stdout, "closed_at_start", False))


def output_closed_error(what: str) -> UsageError:
    """The refusal of a command whose result is what it prints."""
    return UsageError(
        f"standard output is closed, so nobody would get what {what} prints: nothing was done",
        hint="Open it, or send it to a file: > FILE. What is not wanted goes to /dev/null.",
    )


def _have_every_letter(stream: Any) -> None:
    """Let a stream take every letter, where the system's encoding does not (Windows writes cp1252 into pipes and files): UTF-8
    for programs, replacement marks on a person's screen."""
    if str(getattr(stream, "encoding", "utf-8")).lower().replace("-", "") == "utf8" or not hasattr(
        stream, "reconfigure"
    ):
        return
    if stream.isatty():
        stream.reconfigure(errors="replace")
    else:
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _os_error(error: OSError) -> str:
    from ipfsmem.device.atomic_files import reason

    try:
        sys.stdout.flush()
    except OSError as refused:
        return f"standard output cannot be written: {reason(refused)}"
    where = f" {error.filename}" if error.filename is not None else ""
    return f"the system refused{where}: {reason(error)}"


def _usage_hint(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    return f"See: {ctx.command_path} --help" if ctx is not None else ""


def _report(kind: str, message: str, hint: str, code: int, as_json: bool) -> int:
    from ipfsmem.cli.printing import clean, to_json

    if len(message) > _LONGEST:  # what somebody typed or pasted, most likely
        message = f"{message[: _LONGEST - 300]} ... {message[-200:]}"
    if as_json:
        from ipfsmem.results import Failed, Failure

        text = to_json(Failed(error=Failure(kind=kind, message=message, hint=hint, exit_code=code)))
    else:
        text = f"ipfsmem: {one_line(clean(message))}"
        if hint:
            text += f"\n{one_line(clean(hint))}"
    try:
        click.echo(text, err=True)
    except OSError:
        pass  # nobody listens
    return code


def one_line(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())
