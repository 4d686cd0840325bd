"""The sources of secrets: a file descriptor, the environment, a prompt on a terminal. Never the command line.

Nothing here stores, prints or logs one. Without a terminal there is no prompt.
"""

from __future__ import annotations

import os
import sys
from functools import cache

from ipfsmem.errors import PassphraseError, UsageError

MAX_SECRET = 64 * 1024
#: Minimum length of a server's token, so that it cannot be guessed.
MIN_TOKEN = 16


def can_ask() -> bool:
    """Tell whether a person can be asked."""
    return bool(sys.stdin.isatty() and sys.stderr.isatty())


@cache
def from_descriptor(fd: int) -> str:
    """Return the text from a file descriptor, without its last line break; each is read once.

    Raises UsageError if it is unreadable or not text.
    """
    try:
        with os.fdopen(fd, "rb", closefd=fd > 2) as file:
            data = file.read(MAX_SECRET + 1)
    except OSError as error:
        raise UsageError(f"file descriptor {fd} cannot be read: {error.strerror}") from None
    except (OverflowError, TypeError):  # a number that cannot be a descriptor
        raise UsageError(f"file descriptor {fd} cannot be read: there is no such descriptor") from None
    if len(data) > MAX_SECRET:
        raise UsageError(f"file descriptor {fd} has more than {MAX_SECRET} bytes")
    try:
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise UsageError(f"file descriptor {fd} is not UTF-8 text") from None


def from_fd_or_environment(fd: int | None, variable: str) -> str | None:
    """Return a secret from a descriptor or an environment variable, None without one."""
    return from_descriptor(fd) if fd is not None else os.environ.get(variable) or None


def server_token(fd: int | None, variable: str, *, hint: str) -> str | None:
    """Return the token of a server from a descriptor or an environment variable, None without one. Raises UsageError for one
    that could be guessed, with `hint`."""
    text = from_fd_or_environment(fd, variable)
    token = text.strip() if text is not None else None  # files and variables have line ends; headers cannot
    if token is not None and len(token) < MIN_TOKEN:
        raise UsageError(f"token too short: at least {MIN_TOKEN} characters", hint=hint)
    return token


def other_ways(variable: str, flag: str) -> str:
    """Return a hint on the sources of a secret other than the passphrase of this device's keys, which PassphraseError covers."""
    return f"Enter it at the prompt, or pass it in {variable} or with {flag}."


def ask(prompt: str, *, twice: bool = False, otherwise: str | None = None) -> str:
    """Prompt on the terminal, without echo. `twice`: a new secret, which must be strong, and is typed twice.

    Raises PassphraseError without a terminal or input, with the hint `otherwise`.
    """
    from ipfsmem.cli.light_imports import load_click
    from ipfsmem.wallet.passphrases import require_strong

    load_click()
    import click

    if not can_ask():
        raise PassphraseError(f"{prompt} is required, and there is no terminal", hint=otherwise)
    while True:
        answer: str = click.prompt(
            prompt[0].upper() + prompt[1:], hide_input=True, err=True, default="", show_default=False
        )
        if not answer:
            raise PassphraseError(f"{prompt}: no input", hint=otherwise)
        if not twice:
            return answer
        try:
            require_strong(answer)
        except PassphraseError as error:
            click.echo(f"{error.diagnostics()}\nTry again.", err=True)
            continue
        if answer == click.prompt("Repeat it", hide_input=True, err=True, default="", show_default=False):
            return answer
        click.echo("They differ. Try again.", err=True)
