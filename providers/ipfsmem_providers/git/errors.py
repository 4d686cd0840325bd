"""Messages of the git program and of git hosts as our errors, each with the next step. Pure."""

from __future__ import annotations

import re
from typing import Final

from ipfsmem.errors import ProviderError, ProviderRefused, ProviderUnavailable

#: Credentials in an address, in messages of programs and servers.
_SECRET: Final = re.compile(r"(?<=//)[^/\s@]*@")
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]+")
_LINE_MAX: Final = 200
#: Last lines that do not give the reason.
_SUMMARIES: Final = ("could not read from remote", "failed to push some refs")
_ACCESS: Final = (
    "Check that the account may read and write this repository. For https, store a token with `git credential approve` or "
    "set GIT_TOKEN; for ssh, load the key into the agent."
)
OTHER_HINT: Final = (
    "Name another branch, which is created: git:ADDRESS#branch. A private repository of its own is best."
)
OLD_HINT: Final = "Install git 2.32 or newer."
_RULES: Final = "the host's rules forbid pushes to this branch"
RULES_HINT: Final = "Exempt the branch from the rules, or name another one: git:ADDRESS#branch."
#: Phrases of a message in lower case, whether the failure is permanent, our message, and the next step.
_KNOWN: Final[tuple[tuple[tuple[str, ...], bool, str, str], ...]] = (
    (
        ("host key verification failed",),
        True,
        "the host's ssh key is not known on this machine",
        "Connect once with ssh and compare the key's fingerprint, or add it to ~/.ssh/known_hosts.",
    ),
    (
        ("gh001", "exceeds github's file size limit", "larger than the maximum", "file size limit", "pack exceeds"),
        True,
        "the host refuses files of this size",
        "Ask the host for its limit on file sizes, or use another provider.",
    ),
    (
        ("gh008", "git lfs", "lfs objects"),
        True,
        "the host requires Git LFS for files of this kind",
        "Turn that rule off for this repository, or name another repository.",
    ),
    (
        ("mismatched algorithms", "does not support this repository's hash algorithm"),
        True,
        "the repository has another object format",
        "Name a repository made by: git init --bare --object-format=sha1 PATH",
    ),
    (
        ("out of memory", "cannot allocate memory", "over limit"),
        False,
        "the data of the host needs more memory than git may use",
        "Free memory on this device. If there is enough, check who else writes to this repository.",
    ),
    (("protected branch",), True, _RULES, RULES_HINT),  # also where "not allowed to push" precedes it
    (
        ("marked as read only", "deploy key", "is read-only", "read only", "not allowed to push", "write access to repository not granted"),
        True,
        "the key or token may read this repository and not write",
        "Allow the deploy key or token to write, or use another one.",
    ),
    (
        ("no space left", "disk quota", "quota exceeded", "over quota"),
        False,
        "no space is left in the repository",
        "Free space there.",
    ),
    (
        ("rate limit", "too many requests", " 429"),
        False,
        "the host received too many requests",
        "Sync again in a while.",
    ),
    (
        ("gh006", "gh013", "pre-receive hook declined", "hook declined", "push declined"),
        True,
        _RULES,
        RULES_HINT,
    ),
    (
        ("dubious ownership",),
        True,
        "another user owns the repository",
        "Run: git config --global --add safe.directory PATH",
    ),
    (
        ("permission denied (", "permission to", "authentication failed", "could not read username", "could not read password",
         "terminal prompts disabled", "invalid username or", "access denied", "not authorized", "returned error: 401",
         "returned error: 403", "insufficient permission", "service not enabled"),
        True,
        "the host refuses access",
        _ACCESS,
    ),
    (
        ("repository not found", "does not appear to be a git repository", "not a git repository", "returned error: 404",
         "repository does not exist", "project you were looking for could not be found", "not exported"),
        True,
        "there is no such repository, or this account may not see it",
        "Create an empty private repository at the host, and check the address. On this machine: git init --bare PATH",
    ),
    (
        ("certificate", "ssl ", "gnutls"),
        False,
        "the host's certificate cannot be verified",
        "Check this machine's clock and its certificates.",
    ),
    (
        ("could not resolve", "name or service not known", "temporary failure in name resolution", "unable to look up"),
        False,
        "the host's name cannot be resolved",
        "Check the address and the network.",
    ),
    (
        ("connection refused", "connection reset", "timed out", "could not connect", "failed to connect", "couldn't connect",
         "returned error: 5", "hung up unexpectedly", "early eof", "rpc failed", "network is unreachable", "no route to host"),
        False,
        "the host does not answer",
        "Sync again in a while.",
    ),
    (("unknown option", "unknown switch"), True, "the git program is too old", OLD_HINT),
)  # fmt: skip

#: Phrases of git's messages about a damaged repository.
_LOCAL: Final = (
    "loose object", "object file", "is corrupt", "bad object", "unable to read ", "missing blob", "missing tree",
    "missing commit", "unable to parse", "invalid object", "bad tree object", "failed to read object", "packfile", "pack has",
    "not a valid object", "unable to find", "broken link", "not a git repository", "bad config", "garbage at end", "object corrupt",
    "inflate: data stream error", "unknown repository extension", "bad signature", "no such ref", "reference broken", "bad ref",
    "bad shallow line",
)  # fmt: skip
#: Phrases of git's messages about this device, such as a full disk: they never lead to a deletion.
_DEVICE: Final = (
    "no space left", "disk quota", "permission denied", "read-only file system", "too many open files", "resource temporarily",
    "cannot fork", "out of memory", "cannot allocate", "over limit", "input/output error", ": not found", "unable to create thread",
    "file too large",
)  # fmt: skip


def explain(where: str, stderr: str) -> ProviderError:
    """Return the error for a failed command that connected to a host, with one line of the host's message."""
    lower = stderr.lower()
    quoted = last_line(stderr)
    for words, permanent, text, hint in _KNOWN:
        if any(word in lower for word in words):
            kind = ProviderRefused if permanent else ProviderUnavailable
            return kind(f"{where}: {text} ({quoted})", hint=hint)
    return ProviderUnavailable(
        f"{where}: the git program failed ({quoted})", hint="Try again, or run: git ls-remote ADDRESS"
    )


def is_damage(stderr: str) -> bool:
    """Return whether a command on this device failed because the cache repository is damaged."""
    lower = stderr.lower()
    return not is_of_device(stderr) and any(word in lower for word in _LOCAL)


def is_of_device(stderr: str) -> bool:
    """Return whether a command failed because this device is full, not writable or out of resources."""
    lower = stderr.lower()
    return any(word in lower for word in _DEVICE)


def local_failure(stderr: str) -> str:
    """Return the message of a command about objects or files, or "". They are on this device, or in a repository at a path or behind
    ssh, whose messages look the same."""
    own = [line for line in stderr.splitlines() if not line.lower().startswith("remote:")]
    failures = [line for line in own if any(word in line.lower() for word in _LOCAL)]
    return last_line(([line for line in own if is_of_device(line)] or failures)[0]) if failures else ""


def last_line(stderr: str) -> str:
    """Return the line of a message that says most: printable, short, and without credentials."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", stderr) if line.strip()]
    marked = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", "!"))]
    telling = (
        [line for line in marked if not any(words in line.lower() for words in _SUMMARIES)] or marked or lines
    )
    text = telling[-1] if telling else "no message"
    for word in ("Permission denied", "Host key verification failed", "Connection refused", "timed out"):
        text = next((line for line in lines if word in line), text)
    text = re.sub(r"^(fatal|error|remote): *", "", text)
    return _UNPRINTABLE.sub(" ", _SECRET.sub("", text))[:_LINE_MAX].strip() or "no message"
