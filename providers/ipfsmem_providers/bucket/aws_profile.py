"""Profiles of the AWS tools: keys, region and endpoint in `~/.aws/credentials` and `~/.aws/config`. Runs no program."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from ipfsmem.errors import ConfigError
from ipfsmem_providers.settings import setting

#: Settings by which a profile has its keys made by a program or another service.
_MADE: Final = ("credential_process", "sso_session", "sso_start_url", "role_arn", "login_session")


class Profile(NamedTuple):
    """A profile with keys."""

    name: str
    key: str
    secret: str
    token: str  #: of temporary keys; "" for lasting ones
    region: str
    endpoint: str  #: URL of its server; "" for AWS

    def fits(self, endpoint: str, *, named: bool) -> bool:
        """Return whether its keys may sign requests to a server; "" is AWS, or the profile's own server.

        A server that the profile does not name gets no session token, and requires that the user named the profile.
        """
        host = urlsplit(endpoint).netloc
        if not host or host == urlsplit(self.endpoint).netloc:
            return True
        if not self.endpoint and is_aws(endpoint):
            return True
        return named and not self.token


def is_aws(endpoint: str) -> bool:
    """Return whether a server belongs to AWS."""
    host = (urlsplit(endpoint).hostname or "").removesuffix(".cn")
    return host == "amazonaws.com" or host.endswith(".amazonaws.com")


def profile(settings: Mapping[str, Any], endpoint: str) -> Profile | None:
    """Return the profile that AWS_PROFILE names, else `default`, for the server at `endpoint`; None without one.

    ConfigError for a named profile that does not exist or cannot be used there, and for unreadable files.
    """
    chosen_name = setting(settings, "AWS_PROFILE") or setting(settings, "AWS_DEFAULT_PROFILE")
    name = chosen_name or "default"
    options = {**_section(settings, "config", name), **_section(settings, "credentials", name)}
    if not options:
        if chosen_name:
            raise ConfigError(
                f"the profile {name!r} is not in ~/.aws/config or ~/.aws/credentials",
                hint="Set AWS_PROFILE to one of: aws configure list-profiles",
            )
        return None
    key, secret = options.get("aws_access_key_id", ""), options.get("aws_secret_access_key", "")
    if not key or not secret:
        if chosen_name or any(options.get(one) for one in _MADE):
            raise ConfigError(
                f"the profile {name!r} has no keys of its own",
                hint="Put the keys that AWS makes for it into the environment; this prints them: aws configure export-credentials",
            )
        return None
    result = Profile(
        name,
        key,
        secret,
        options.get("aws_session_token", ""),
        options.get("region", ""),
        options.get("endpoint_url", ""),
    )
    if result.fits(endpoint, named=bool(chosen_name)):
        return result
    if chosen_name:
        raise ConfigError(
            f"the profile {name!r} has temporary keys, which are not sent to {urlsplit(endpoint).netloc}",
            hint="Set AWS_PROFILE to a profile with endpoint_url, or with lasting keys of that service.",
        )
    return None


def _section(settings: Mapping[str, Any], file: str, name: str) -> dict[str, str]:
    variable = "AWS_CONFIG_FILE" if file == "config" else "AWS_SHARED_CREDENTIALS_FILE"
    path = Path(setting(settings, variable) or f"~/.aws/{file}")
    section = f"profile {name}" if file == "config" and name != "default" else name
    # AWS's tools accept doubled sections and values without a name; `default_section` keeps [default] ordinary.
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, default_section="")
    try:
        parser.read_string(path.expanduser().read_text("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, RuntimeError, ValueError, configparser.Error) as error:
        reason = type(error).__name__
    else:
        pairs = parser.items(section) if parser.has_section(section) else []
        return {option: value.strip() for option, value in pairs if value}
    # Outside `except`: the parser's error repeats lines, which may have secrets.
    raise ConfigError(
        f"{path} cannot be read ({reason})", hint=f"Correct that file, or name another one with {variable}."
    )
