"""Messages of the ssh program as our errors, each with the next step. Pure."""

from __future__ import annotations

import re
from typing import Final

from ipfsmem.errors import ProviderError, ProviderRefused, ProviderUnavailable

SHELL_HINT: Final = "Let the startup files of the shell there, such as ~/.bashrc, print nothing in sessions without a terminal."
INSTALL_HINT: Final = "Install OpenSSH: on Debian and Ubuntu the package openssh-client, on Windows the optional feature OpenSSH Client."
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]+")
_LINE_MAX: Final = 200
#: Words of a message in lower case, whether the failure is permanent, what we say, and the next step.
_KNOWN: Final[tuple[tuple[tuple[str, ...], bool, str, str], ...]] = (
    (
        ("remote host identification has changed", "has changed and you have requested", "revoked host key"),
        True,
        "the host shows another ssh key than it had before: another machine may answer for it",
        "Compare the key's fingerprint with the one that the host's owner names. Only if that is right, run: ssh-keygen -R HOST",
    ),
    (
        ("host key verification failed", "no matching host key"),
        True,
        "the host's ssh key is not known on this machine",
        "Connect once with ssh and compare the key's fingerprint, or add it to ~/.ssh/known_hosts.",
    ),
    (
        ("bad configuration option", "bad owner or permissions", "terminating,", "unsupported option", "missing argument", "bad port", "unknown option"),
        True,
        "the ssh program cannot read its configuration",
        "Mend the line of ~/.ssh/config that the message names, then run: ssh HOST",
    ),
    (
        ("permission denied", "too many authentication failures", "no more authentication methods", "no supported authentication"),
        True,
        "the host refuses the login",
        "`ssh HOST` must log in without a question: load the key into the agent with ssh-add, or name it and the user in ~/.ssh/config.",
    ),
    (
        ("subsystem request failed",),
        True,
        "the host offers no SFTP to this user",
        "Turn on the subsystem sftp in the configuration of its SSH server.",
    ),
    (
        ("could not resolve", "name or service not known", "temporary failure in name resolution"),
        False,
        "the host's name cannot be resolved",
        "Check the address and the network.",
    ),
    (
        ("timed out", "timeout", "connection refused", "connection reset", "connection closed", "closed by", "no route to host",
         "network is unreachable", "broken pipe", "not responding", "kex_exchange", "banner"),
        False,
        "the host does not answer",
        "Sync again in a while.",
    ),
)  # fmt: skip


def explain(where: str, stderr: str) -> ProviderError:
    """Return the error for a connection that was not made. What ssh said is quoted, cut to a line."""
    lower = stderr.lower()
    for words, permanent, text, hint in _KNOWN:
        if any(word in lower for word in words):
            kind = ProviderRefused if permanent else ProviderUnavailable
            return kind(f"{where}: {text} ({_line(stderr, words)})", hint=hint)
    return ProviderUnavailable(
        f"{where}: the ssh program ended ({_line(stderr, ())})", hint="Try again, or run: ssh HOST"
    )


def _line(stderr: str, words: tuple[str, ...]) -> str:
    """Return the line of a message that says most: printable and short."""
    lines = [line.strip(" @\t") for line in re.split(r"[\r\n]+", stderr) if line.strip(" @\t")]
    telling = [line for line in lines if any(word in line.lower() for word in words)] or lines
    return _UNPRINTABLE.sub(" ", telling[-1] if telling else "")[:_LINE_MAX].strip() or "no message"
