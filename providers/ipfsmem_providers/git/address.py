"""The address of a branch in a git repository: parsed, and refused where the `git` program would do more than connect.

    https://host/me/memory.git      ssh://[user@]host[:port]/path      [user@]host:path
    /path/of/repository.git         file:///path/of/repository.git
    each with `#branch` or `#refs/...`; without it the branch is `ipfsmem`
    origin, or another remote of the repository around the working directory, is looked up by remotes.py

`http://` and `git://` are unauthenticated and accepted for this machine only. Pure.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ipfsmem.errors import ConfigError

#: The branch without one in the address.
BRANCH: Final = "ipfsmem"
#: The ref in a repository of other work without one in the address: web pages and normal clones omit it.
SHARED_REF: Final = "refs/ipfsmem/main"
EXAMPLES: Final = "For instance git:https://github.com/me/memory.git, git:git@host:me/memory.git or git:/media/stick/memory.git."
_HOST: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
_USER: Final = r"[A-Za-z0-9_][A-Za-z0-9._+-]*"
_URL: Final = re.compile(rf"(https|http|git|ssh)://(?:({_USER})@)?({_HOST})(:[0-9]{{1,5}})?(/[^\s?]+)")
_SCP: Final = re.compile(rf"(?:({_USER})@)?({_HOST}):(?!-)([^\s:?]+)")
_COMPONENT: Final = r"(?![.-])(?:(?!\.\.)[A-Za-z0-9._+-])+(?<!\.lock)(?<!\.)"
_REF: Final = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


class GitAddress(NamedTuple):
    """One ref of one repository."""

    url: str  #: as the git program gets it; a path is absolute
    ref: str  #: full name
    kind: str  #: https, http, git, ssh or file

    @property
    def shown(self) -> str:
        """Return the address as a spec without `git:`; it has no secrets."""
        branch = self.ref.removeprefix("refs/heads/")
        return self.url if branch == BRANCH else f"{self.url}#{branch}"

    @property
    def branch(self) -> str:
        """Return the branch, or the full name of another ref, for people."""
        return self.ref.removeprefix("refs/heads/")


def parse(rest: str) -> GitAddress:
    """Parse the part of a spec after `git:`. Raises ConfigError, without repeating a password."""
    url, ref = split_ref(rest)
    if not url or not url.isprintable() or url.startswith(("-", "//")) or "::" in url.partition("/")[0]:
        raise _unusable("not the address of a repository")
    if url.startswith(("/", "~", "./", "../", "file:")) or url in (".", ".."):
        return GitAddress(_path(url), ref, "file")
    if "://" in url:
        return _of_url(url, ref)
    scp = _SCP.fullmatch(url)
    if scp is None or (len(scp[2]) == 1 and scp[1] is None):
        raise _unusable("not the address of a repository")
    return GitAddress(url, ref, "ssh")


def split_ref(rest: str, *, default: str = f"refs/heads/{BRANCH}") -> tuple[str, str]:
    """Return what is before the `#`, and the full name of the ref after it. Raises ConfigError for an unusable ref."""
    url, mark, ref = rest.strip().rpartition("#")
    if not mark:
        return ref, default
    if not _REF.fullmatch(ref) or ref.startswith(("refs/tags/", "refs/remotes/")) or ref.count("/") > 8:
        raise ConfigError(
            "the text after # is not a branch",
            hint=f"{EXAMPLES[:-1]}, each with #branch or #refs/ipfsmem/main.",
        )
    return url, ref if ref.startswith("refs/") else f"refs/heads/{ref}"


def _of_url(url: str, ref: str) -> GitAddress:
    parsed = _URL.fullmatch(url)
    if parsed is None:
        if "@" in url:
            raise _unusable("not an address without a password; passwords in addresses are refused")
        raise _unusable("not the address of a repository")
    kind, user, host, _, path = parsed.groups()
    if user is not None and kind != "ssh":
        raise ConfigError(
            "the address of the git repository holds a user name or a token: it would be shown and stored",
            hint="Leave it out: the git program takes it from its credential helper, or set GIT_TOKEN.",
        )
    if kind in ("http", "git") and host.lower() not in _LOOPBACK:
        raise ConfigError(f"{kind}:// is neither encrypted nor authenticated", hint="Use https:// or ssh.")
    if path.startswith("/-") or "/../" in path:
        raise _unusable("not the address of a repository")
    return GitAddress(url, ref, kind)


def _path(text: str) -> str:
    if text.startswith("file:"):
        parsed = urlsplit(text)
        if parsed.netloc not in ("", "localhost") or not parsed.path.startswith("/") or parsed.query:
            raise _unusable("not the path of a repository on this machine")
        text = unquote(parsed.path)
        if text.startswith("//"):
            raise _unusable("not the path of a repository on this machine")
    try:
        return str(Path(text).expanduser().absolute())
    except (RuntimeError, ValueError):
        raise _unusable("not the path of a repository on this machine") from None


def _unusable(what: str) -> ConfigError:
    return ConfigError(f"the text after git: is {what}", hint=EXAMPLES)
