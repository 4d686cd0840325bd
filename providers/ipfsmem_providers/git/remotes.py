"""The address of a remote of the repository around the working directory, such as `origin`. Changes nothing there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

from ipfsmem.errors import ConfigError
from ipfsmem_providers.git.address import SHARED_REF, GitAddress, parse, split_ref
from ipfsmem_providers.git.errors import last_line
from ipfsmem_providers.git.program import find_git, user_environment

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
#: The part of a URL before the host: a user, a token, a password.
_ACCOUNT: Final = re.compile(r"(?<=://)[^/?#]*@")
#: The remote that every clone has; other names that no repository knows are mistyped addresses.
_USUAL: Final = "origin"
_SECONDS: Final = 10.0


def remote_name(rest: str) -> str:
    """Return the name of the remote if the text after `git:` is one; "" for an address."""
    name = rest.strip().partition("#")[0]
    return name if _NAME.fullmatch(name) else ""


def address_of(rest: str) -> GitAddress:
    """Return an address, or the current address of the remote named by `rest`. Raises ConfigError."""
    return remote_address(rest) if remote_name(rest) else parse(rest)


def require_address(rest: str) -> None:
    """Raise ConfigError for the name of a remote, which refers to another repository in another folder."""
    if name := remote_name(rest):
        if name != _USUAL:
            parse(rest)  # refuses it
        raise ConfigError(
            f"git:{name} names a remote of the repository around the current folder, not a provider",
            hint="Add it with a warning: ipfsmem provider add SPEC. Or name the address: git:ADDRESS#refs/ipfsmem/main",
        )


def remote_address(rest: str) -> GitAddress:
    """Return the current address of the remote named by `rest`, with its ref: `SHARED_REF` unless `rest` names one.

    Raises ConfigError without repository or remote, and for an address that is refused.
    """
    name, ref = remote_name(rest), split_ref(rest, default=SHARED_REF)[1]
    if not (git := find_git()):
        raise ConfigError("the git program is not installed", hint="Install git: https://git-scm.com")
    here = Path.cwd()
    code, top = _ask(git, "rev-parse", "--show-toplevel")
    if code:
        code, top = _ask(git, "rev-parse", "--absolute-git-dir")  # a bare repository
    if code and "dubious ownership" in top:
        raise ConfigError(
            f"another user owns the git repository around {here}",
            hint="Run: git config --global --add safe.directory PATH",
        )
    if code and name == _USUAL:
        raise ConfigError(
            f"git:{name} names a remote, and {here} is not in a git repository",
            hint="Run the command inside the repository, or name the address: git:ADDRESS",
        )
    code, output = (code, "") if code else _ask(git, "remote", "get-url", "--push", "--all", name)
    if code and name != _USUAL:
        return parse(rest)  # refuses it
    if code:
        raise ConfigError(
            f"the git repository {top} has no remote {name}",
            hint=f"Add one: git remote add {name} ADDRESS",
        )
    urls = output.splitlines()
    if len(urls) != 1:
        raise ConfigError(
            f"the remote {name} of {top} has {len(urls)} addresses to push to",
            hint="Name one of them: git:ADDRESS#refs/ipfsmem/main",
        )
    url = os.path.normpath(Path(top, urls[0])) if urls[0].startswith(("./", "../")) else urls[0]
    return _checked(name, url, ref)


def _checked(name: str, url: str, ref: str) -> GitAddress:
    try:
        return parse(url)._replace(ref=ref)
    except ConfigError as error:
        clean = _ACCOUNT.sub("", url)
        if clean == url:
            raise ConfigError(
                f"the address of the remote {name} cannot be used: {error}", hint=error.hint
            ) from None
        raise ConfigError(
            f"the address of the remote {name} holds a user name, a token or a password: it would be shown and stored",
            hint=f"Name the address without it: {_spec(clean, ref)}. The git program takes the account from its "
            "credential helper, or set GIT_TOKEN.",
        ) from None


def _spec(url: str, ref: str) -> str:
    try:
        return f"git:{parse(url)._replace(ref=ref).shown}"
    except ConfigError:
        return "git:ADDRESS"


def warning(rest: str) -> str:
    """Return the warning for a remote, or for a ref that is not a branch: the address, and who can access it; "" for the branch of
    an address. Raises ConfigError."""
    address, name = address_of(rest), remote_name(rest)
    is_branch = address.ref.startswith("refs/heads/")
    if is_branch and not name:
        return ""
    return (
        f"{address.url}{f' ({name})' if name else ''} is a repository of other work; the vault is stored there in "
        f"{'branch ' if is_branch else ''}{address.branch}. Everyone who can read the repository can copy the stored data"
        f"{' (each clone does)' if is_branch else ', though normal clones omit it,'} and sees its sizes, times and file names; encrypted texts stay "
        "unreadable. Everyone who can push there can delete it. Copies stay in clones, mirrors and backups. It is not known "
        "whether the repository is public. A private repository for the vault alone is better."
    )


def _ask(git: str, *args: str) -> tuple[int, str]:
    """Return the exit code and output of git; after a failure the most informative line."""
    try:
        done = subprocess.run(
            [git, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, env=user_environment(),
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"the git program cannot be started: {error}") from None
    if done.returncode:
        return done.returncode, last_line(done.stderr.decode(errors="replace"))
    return 0, os.fsdecode(done.stdout).strip()
