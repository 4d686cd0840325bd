"""The command group, and the code around every command: lazy import, help, errors, exit codes.

A command's module is imported when it runs, never for `--help`. Every error of ours becomes one line on stderr, its hint a
second one, and its exit code; with `--json` one JSON object on stderr, so that stdout has results only.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import click

from ipfsmem.cli import exit_at_once, flush_output
from ipfsmem.cli.light_imports import load_msgspec
from ipfsmem.ending_signals import ended_as_by_ctrl_c
from ipfsmem.errors import IpfsmemError, StorageError, UsageError

#: The first help, by group. The module of a command is `<name>_cmd`, of a subcommand `<group>_<name>_cmd`, its attribute
#: `command`.
FIRST: Final[dict[str, dict[str, str]]] = {
    "Start": {
        "init": "Create a vault, or restore your wallet's vault",
        "recover": "Restore a vault from its recovery phrase or wallet",
        "connect": "Connect an agent's program to this vault",
        "ui": "Open the vault in your browser",
    },
    "Memories": {
        "write": "Write a memory",
        "edit": "Edit a memory in your text editor",
        "read": "Read a memory",
        "list": "List memories",
        "recall": "Find the memories that match a question",
        "forget": "Forget a memory on every device",
        "undo": "Undo this device's last write or forget",
        "history": "List a memory's revisions",
    },
    "Sync": {
        "sync": "Pull, merge and publish",
        "status": "Show the vault's state and unpublished changes",
        "conflicts": "List conflicts, or show one",
        "resolve": "Resolve a conflict",
    },
}
#: All other commands, for `ipfsmem help all`.
MORE: Final[dict[str, dict[str, str]]] = {
    "More memory commands": {
        "restore": "Restore an earlier revision of a memory",
        "approve": "Approve a pending text",
        "context": "Print the context of an agent's session",
        "explain": "Explain why a memory does or does not match a question",
        "hide": "Hide memories on this device",
    },
    "Vaults": {
        "vault": "This device's copy of the vault and its versions",
        "export": "Export the vault to a file or a folder",
        "import": "Import an export, a folder of memory files, or a file",
        "open": "Read a published vault: an address, a folder or a CAR",
        "fork": "Copy the vault into a new one",
        "lock": "Lock this device's keys",
        "unlock": "Unlock this device's keys for a limited time",
    },
    "More commands": {
        "timeline": "Events, by day",
        "session": "Conversations",
        "fact": "Facts by category",
        "value": "Key-value pairs",
        "graph": "Entities and relations",
        "dream": "Clean-up of memories, with preview and undo",
        "usage": "Model usage and cost",
        "scope": "Named parts of the vault",
        "folder": "Linked folders of plain files",
        "provider": "Where encrypted blocks are stored",
        "member": "Devices, wallets and recovery phrases of the vault",
        "agent": "Agent keys, which open the vault in containers",
        "key": "Passphrase, recovery phrase and recovery sheet",
        "token": "Access tokens of the HTTP API",
        "index": "The index that recall searches",
        "config": "Settings",
        "plugin": "Memory plugins of other programs",
        "service": "Automatic sync, started at login",
        "serve": "Servers: HTTP and MCP for programs, a provider for devices",
        "format": "Low-level tools for files of the format",
    },
    "Other": {
        "demo": "Run a demo in a temporary folder",
        "disconnect": "Remove the settings that connect added to a program",
        "help": "Show help: all, wallets, exit-codes, or a command",
        "version": "Print the version",
    },
}
#: Commands that programs run, hidden from help. Settings of programs that an earlier version connected have `ipfsmem mcp`.
HIDDEN: Final = {"hook": "Run a hook of an agent's program", "mcp": "Serve the vault over MCP"}
#: Commands whose subcommands have a module each: the module, its attribute if that is not `command`, and a summary.
GROUPS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "serve": {
        "api": ("serve_api_cmd", "Serve the vault over HTTP"),
        "mcp": ("serve_mcp_cmd", "Serve the vault over MCP"),
        "peer": ("serve_peer_cmd", "Serve a folder as a provider for your other devices"),
    },
    "vault": {
        "list": ("vault_list_cmd", "List the vaults on this device"),
        "check": ("vault_check_cmd", "Check this device's copy"),
        "repair": ("vault_repair_cmd", "Restore the readable part of a damaged version"),
        "compact": ("vault_compact_cmd", "Free disk space here and at the providers"),
        "log": ("vault_log_cmd", "List the published versions that this device knows"),
        "diff": ("vault_diff_cmd", "Compare two published versions"),
        "move": ("vault_move_cmd", "Move to another provider, after checking all data there"),
        "remove": ("vault_remove_cmd", "Delete this device's copy of a vault"),
    },
    "index": {
        "status": ("index_status_cmd", "Show the size of the index and its pending updates"),
        "rebuild": ("index_rebuild_cmd", "Rebuild the index"),
    },
    "timeline": {
        "add": ("timeline_add_cmd", "Add an event"),
        "show": ("timeline_show_cmd", "Show the timeline"),
    },
    "folder": {
        "attach": ("folder_attach_cmd", "Link a folder"),
        "detach": ("folder_detach_cmd", "Unlink a folder; its files stay"),
        "list": ("folder_cmd:list_command", "List the linked folders"),
        "pause": ("folder_cmd:pause_command", "Pause a linked folder"),
        "resume": ("folder_cmd:resume_command", "Resume a paused folder, keeping its texts or the vault's"),
    },
    "format": {
        "cid": ("format_cid_cmd", "Print the IPFS address of a file or folder"),
        "inspect": ("format_inspect_cmd", "Show the contents of a file of the format"),
    },
}
#: The subcommands of each command that has some.
VERBS: Final[dict[str, tuple[str, ...]]] = {
    "session": ("list", "info", "create", "add", "resume", "search", "export", "compact", "status", "delete"),
    "fact": ("add", "list", "edit", "history", "delete", "restore"),
    "value": ("set", "get", "list", "delete", "clear", "sweep", "history", "restore"),
    "graph": ("add", "relate", "list", "relations", "search", "query", "path", "around", "export", "delete"),
    "dream": ("run", "show", "apply", "undo", "list", "status", "on", "off", "abort", "duplicates"),
    "usage": ("add", "show", "export", "budget"),
    "scope": ("list", "show", "make", "title", "into", "clear", "forget", "restore"),
    "provider": ("list", "add", "remove", "test", "policy", "check", "follow"),
    "member": ("list", "admit", "revoke", "rename", "rotate"),
    "agent": ("new", "list", "renew", "revoke"),
    "key": ("passphrase", "phrase", "sheet", "vaults", "derive"),
    "token": ("new", "list", "revoke"),
    "config": ("show", "set", "path"),
    "plugin": ("list", "test"),
    "service": ("install", "status", "uninstall"),
    **{name: (*commands,) for name, commands in GROUPS.items()},
}  # fmt: skip
#: Earlier names of commands, and their present ones.
RENAMED: Final = {
    "api": "serve api",
    "tokens": "token",
    "plugins": "plugin",
    "clear": "scope clear",
    "duplicates": "dream duplicates",
    "why": "explain",
    "keys": "member",
    "keys list": "member list",
    "keys unlock": "member admit",
    "keys revoke": "member revoke",
    "keys label": "member rename",
    "keys rotate": "member rotate",
    "keys passphrase": "key passphrase",
    "keys words": "key phrase",
    "keys sheet": "key sheet",
    "keys vaults": "key vaults",
    "keys derive": "key derive",
    "providers": "provider",
    "providers move": "vault move",
    "gc": "vault compact",
    "vacuum": "vault compact --only files",
    "cleanup": "vault compact --only leftovers",
    "check": "vault check",
    "salvage": "vault repair",
    "log": "vault log",
    "diff": "vault diff",
    "reindex": "index rebuild",
    "note": "timeline add",
    "attach": "folder attach",
    "detach": "folder detach",
    "folders": "folder",
    "folders accept": "folder resume --keep folder",
    "folders put-back": "folder resume --keep vault",
    "promote": "approve",
    "cid": "format cid",
    "inspect": "format inspect",
}
#: Groups that were commands, and the subcommand that replaced each.
REGROUPED: Final = {"serve": "peer", "timeline": "show"}
#: These, names of commands in other programs, and the command that does the same here.
INSTEAD: Final = {
    **RENAMED,
    "search": "recall",
    "find": "recall",
    "query": "recall",
    "show": "read",
    "get": "read",
    "cat": "read",
    "ls": "list",
    "add": "write",
    "set": "write",
    "put": "write",
    "remember": "write",
    "rm": "forget",
    "remove": "forget",
    "delete": "forget",
    "push": "sync",
    "pull": "sync",
    "create": "init",
    "clone": "init",
    "setup": "init",
    "login": "init",
    "merge": "resolve",
    "revert": "undo",
}
EXAMPLES: Final = (
    "ipfsmem init",
    'ipfsmem write tone --body "Say what is wrong first."',
    'ipfsmem recall "how to give feedback"',
)
SHORT: Final = {name: text for group in (*FIRST.values(), *MORE.values()) for name, text in group.items()}

#: Commands that are useful even if their output is lost. Every other command is refused before it begins if standard output is
#: closed; `init` and `key phrase` refuse only if they would show words.
USEFUL_WITHOUT_OUTPUT: Final = frozenset(
    [
        "write",
        "edit",
        "forget",
        "scope_clear",
        "restore",
        "approve",
        "undo",
        "timeline_add",
        "sync",
        "hook",
        "service_install",
        "service_uninstall",
        "import",
        "folder_attach",
        "folder_detach",
        "config_set",
        "connect",
        "disconnect",
        "resolve",
        "serve_peer",
        "unlock",
        "lock",
        "vault_repair",
        "vault_compact",
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
        "folder_pause",
        "folder_resume",
        "member_rename",
        "key_passphrase",
        "member_revoke",
        "member_rotate",
        "member_admit",
        "key_phrase",
        "init",
        "token_revoke",
        "provider_add",
        "provider_follow",
        "vault_move",
        "vault_remove",
        "provider_remove",
    ]
)

#: Maximum characters of a message; the middle of a longer one is cut.
_LONGEST: Final = 1200
UNEXPECTED: Final = 70
#: For Ctrl-C; for another signal higher by the difference of the numbers.
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141


#: Modules of commands that need no msgspec.
_WITHOUT_MSGSPEC: Final = ("format_cid_cmd",)


class ReaderGoneError(Exception):
    """The reader of our output closed it."""


def _imported(target: str) -> click.Command:
    if target not in _WITHOUT_MSGSPEC:
        load_msgspec()
    module, _, attribute = target.partition(":")
    command: click.Command = getattr(import_module(f"ipfsmem.cli.{module}"), attribute or "command")
    return command


class _Group(click.Group):
    """A command whose subcommands are imported on use."""

    def __init__(self, name: str) -> None:
        super().__init__(
            name, help=f"{SHORT[name]}.", context_settings={"help_option_names": ["-h", "--help"]}
        )
        self._table = GROUPS[name]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the table."""
        return [*self._table]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the subcommand; None for an unknown name."""
        return _imported(self._table[cmd_name][0]) if cmd_name in self._table else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Do as click does, but name the command that was probably meant."""
        from ipfsmem.cli.options import refuse_unknown_command

        refuse_unknown_command(ctx, args, self._table, otherwise=regrouped(ctx))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])


def regrouped(ctx: click.Context) -> str:
    """Return the command that replaced the one whose name is this group's; "" for any other group."""
    name = ctx.command.name if isinstance(ctx.command, _Group) else None
    return f"{ctx.command_path} {REGROUPED[name]}" if name in REGROUPED else ""


class Commands(click.Group):
    """Finds commands by name and imports them on use."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. A broken pipe is raised as ReaderGoneError: click would exit with 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGoneError from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Do as click does, but refuse a repeated option, as after the command."""
        from ipfsmem.cli.options import refuse_repeated_options

        if not ctx.resilient_parsing:
            refuse_repeated_options(self, ctx, args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the help."""
        return [*SHORT]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command; None for an unknown name."""
        if cmd_name in GROUPS:
            return _Group(cmd_name)
        if cmd_name == "mcp":
            return _imported(GROUPS["serve"]["mcp"][0])
        return _imported(f"{cmd_name}_cmd") if cmd_name in SHORT or cmd_name in HIDDEN else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Do as click does, but name the command that was probably meant."""
        from ipfsmem.cli.options import refuse_unknown_command

        refuse_unknown_command(ctx, args, {**SHORT, **HIDDEN}, INSTEAD)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the everyday commands, from the table alone, examples and options."""
        write_groups(formatter, FIRST)
        with formatter.section("Examples"):
            for example in EXAMPLES:
                formatter.write(f"  {example}\n")
        click.Command.format_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Name the full help."""
        formatter.write("\nMore: `ipfsmem help all`\n")


def write_groups(formatter: click.HelpFormatter, groups: dict[str, dict[str, str]]) -> None:
    """Write commands with their summaries, by group, and their subcommands."""
    width = max(len(name) for commands in groups.values() for name in commands)
    for title, commands in groups.items():
        with formatter.section(title):
            formatter.write_dl(
                [
                    (name.ljust(width), f"{text}: {', '.join(VERBS[name])}" if name in VERBS else text)
                    for name, text in commands.items()
                ]
            )


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--version", is_flag=True, help="Print the version.")
@click.option("--vault", metavar="NAME", help="Vault to use (IPFSMEM_VAULT; default: default).")
@click.option("-n", "--namespace", "vault_name", metavar="NAME", hidden=True)  # the earlier name of --vault
@click.option("--home", metavar="DIR", help="Folder of this device's vaults (IPFSMEM_HOME).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--verbose", is_flag=True, help="Print requests to providers on standard error.")
@click.pass_context
def group(
    ctx: click.Context,
    version: bool,
    vault: str | None,
    vault_name: str | None,
    home: str | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Your agent's memory, on all your machines, end-to-end encrypted."""
    for option, value in (("--vault", vault), ("--namespace", vault_name), ("--home", home)):
        if value is not None and not value.strip():
            raise click.BadParameter("must not be empty", ctx, param_hint=f"'{option}'")
    ctx.obj |= {
        "vault": vault,
        "vault_name": vault_name,
        "home": home,
        "as_json": as_json,
        "verbose": verbose,
    }


def find_command(*path: str) -> click.Command | None:
    """Import and return the command of these names; None if it is unknown."""
    from ipfsmem.cli.hint_commands import command_in

    return command_in(group, path)


def run(arguments: Sequence[str] | None = None, *, ends: bool = False) -> int:
    """Run one command and return its exit code; errors are printed only here. `ends`: this is the whole program."""
    about: dict[str, Any] = {"ends": ends}  # also has the memory that this call named, for its hints
    with ended_as_by_ctrl_c():
        code = _run(arguments, about)
    flush_output()
    argv = sys.argv[1:] if arguments is None else arguments
    if argv[:1] == ["hook"]:
        return 0  # other codes tell the program to stop the agent
    if ends and about.get("reads"):
        exit_at_once(code)
    return code


def report_error(error: BaseException, arguments: Sequence[str], about: dict[str, Any]) -> int:
    """Print the error of a call that ran without click (`cli/direct.py`), and return its exit code."""
    return _run(arguments, about, error)


def _run(arguments: Sequence[str] | None, about: dict[str, Any], failed: BaseException | None = None) -> int:
    _have_streams()
    for stream in (sys.stdout, sys.stderr):
        _have_every_letter(stream)
    argv = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in argv[: argv.index("--")] if "--" in argv else "--json" in argv
    try:
        if failed is not None:
            if isinstance(failed, KeyboardInterrupt) and not as_json:
                click.echo(err=True)  # as click does: the terminal shows ^C on the present line
            raise failed
        if output_is_closed() and (argv[:1] == ["--version"] or not {"-h", "--help"}.isdisjoint(argv)):
            raise output_closed_error("this")
        if argv == ["--version"]:
            from importlib.metadata import version

            click.echo(f"ipfsmem {version('ipfsmem')}")
            sys.stdout.flush()
            return 0
        code = group.main(args=argv, prog_name="ipfsmem", standalone_mode=False, obj=about)
        sys.stdout.flush()
    except IpfsmemError as error:
        from ipfsmem.cli.hint_commands import with_call_options

        hint = with_call_options(error.hint, about, group)
        return _report(error.kind, str(error), hint, error.exit_code, as_json)
    except click.exceptions.NoArgsIsHelpError as error:
        if as_json:
            return _report("UsageError", "Missing command.", _usage_hint(error), 2, as_json)
        click.echo(error.ctx.get_help())  # on stdout, for a pager; the command did nothing
        return 2
    except click.ClickException as error:
        return _report("UsageError", error.format_message(), _usage_hint(error), 2, as_json)
    except (click.Abort, KeyboardInterrupt) as error:
        if isinstance(error.__cause__, EOFError):  # click treats each as the end of a terminal's input
            return _report_unexpected(error.__cause__, as_json)
        import warnings

        warnings.simplefilter("ignore", RuntimeWarning)  # of coroutines that had not begun
        by = error if isinstance(error, KeyboardInterrupt) else error.__cause__
        number = by.args[0] if isinstance(by, KeyboardInterrupt) and by.args else signal.SIGINT
        message = "interrupted; nothing that was acknowledged is lost"
        return _report("Interrupted", message, "", INTERRUPTED - signal.SIGINT + number, as_json)
    except (ReaderGoneError, BrokenPipeError):
        return BROKEN_PIPE
    except OSError as error:
        if os.environ.get("IPFSMEM_DEBUG"):
            raise
        return _report("StorageError", _os_error(error), StorageError.hint, StorageError.exit_code, as_json)
    except Exception as error:
        return _report_unexpected(error, as_json)
    return code if isinstance(code, int) else 0


def _report_unexpected(error: Exception, as_json: bool) -> int:
    """Report a bug; raise it if IPFSMEM_DEBUG is set."""
    if os.environ.get("IPFSMEM_DEBUG"):
        raise error
    text = f"unexpected {type(error).__name__}: {error}"
    return _report("Unexpected", text, "Run it again with IPFSMEM_DEBUG=1 for the traceback.", 70, as_json)


def _have_streams() -> None:
    """Open the null device for each standard stream that the parent closed: commands need no check, and no file of ours gets
    its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - as long as the program runs
            getattr(sys, name).closed_at_start = True


def output_is_closed() -> bool:
    """Tell whether the caller of this program closed standard output."""
    return bool(getattr(sys.stdout, "closed_at_start", False))


def output_closed_error(what: str) -> UsageError:
    """Return the error for a command whose output would be lost."""
    return UsageError(
        f"standard output is closed, so the output of {what} would be lost: nothing was done",
        hint="Open it, or redirect it: > FILE, or > /dev/null.",
    )


def _have_every_letter(stream: Any) -> None:
    """Make a stream accept every character if the system's encoding does not (Windows: cp1252 in pipes and files): UTF-8 for
    programs, replacement characters on a terminal."""
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
    path = f" {error.filename}" if error.filename is not None else ""
    return f"system error{path}: {reason(error)}"


def _usage_hint(error: click.ClickException) -> str:
    from ipfsmem.cli.options import UnknownCommandError

    if isinstance(error, UnknownCommandError) and error.instead:
        return f"Use: {error.instead}"
    ctx = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and ctx is not None and (command := regrouped(ctx)):
        return f"Use: {command}"
    return f"See: {ctx.command_path} --help" if ctx is not None else ""


def _report(kind: str, message: str, hint: str, code: int, as_json: bool) -> int:
    from ipfsmem.cli.printing import clean, to_json

    if len(message) > _LONGEST:  # probably typed or pasted text
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
        pass  # stderr is closed
    return code


def one_line(text: str) -> str:
    """Return the text without line breaks."""
    return " ".join(text.split())
