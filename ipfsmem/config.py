"""Where things are and what was chosen: home directory, namespaces, settings (flag > environment > file).

Reads the settings file and knows the shape of a namespace's own `ipfsmem.json`; holds no secret and opens no memory.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from ipfsmem.errors import ConfigError
from ipfsmem.mode import Mode

CONFIG_FILE: Final = "ipfsmem.json"
DEFAULT_NAMESPACE: Final = "default"
_SETTINGS_MAX: Final = 1024 * 1024
_is_namespace = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}").fullmatch


class EmbeddingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[embeddings]` of the settings file: the model by which recall also goes. What is empty follows from the provider."""

    provider: str = ""
    model: str = ""
    base_url: str = ""
    #: Name of the environment variable with the key. The key itself stands in no file.
    api_key_env: str = ""
    #: Numbers of a vector that the model is asked for; 0: as many as it likes.
    dimensions: int = 0


class RecallSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[recall]` of the settings file: what counts how much when memories are ranked."""

    #: In place of the usual weight of a part, by its name; `ipfsmem recall --why` shows the parts.
    weights: dict[str, Annotated[float, msgspec.Meta(ge=-100, le=100)]] = {}
    #: Days after which half of a memory's recency is left.
    half_life_days: Annotated[float, msgspec.Meta(ge=0.01, le=36_500)] = 7.0


_Messages = Annotated[int, msgspec.Meta(ge=1, le=100_000)]


class SessionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[sessions]` of the settings file: how conversations are resumed, shown and compacted. Numbers of messages, unless
    a field says otherwise."""

    #: The last messages with which a session is resumed; a running one is cut to twice as many.
    resume: _Messages = 20
    #: Sessions that `session list` shows unless asked for all: the newest.
    shown: _Messages = 10
    #: Whether a session that has more than `compact_at` is compacted by itself when it is saved.
    compact: bool = True
    #: So many may stand without a summary, and so many of them stay as they are.
    compact_at: _Messages = 80
    compact_keep: _Messages = 20
    #: Tokens that may stand without a summary; 0: they are not counted.
    compact_tokens: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 0
    #: Characters of a summary.
    summary: Annotated[int, msgspec.Meta(ge=200, le=100_000)] = 4_000

    def __post_init__(self) -> None:
        if self.compact_keep >= self.compact_at:
            raise ValueError(
                f"compact_keep ({self.compact_keep}) is less than compact_at ({self.compact_at})"
            )


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[model]` of the settings file: the model that a person may let dream. What is empty follows from the provider."""

    provider: str = ""
    model: str = ""
    base_url: str = ""
    #: Name of the environment variable with the key. The key itself stands in no file.
    api_key_env: str = ""


class DreamSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[dream]` of the settings file: when a dream may begin by itself."""

    #: Whether one may at all; each memory is asked besides, with `ipfsmem dream on`.
    enabled: bool = False
    #: Hours that pass after one that ended well, and sessions that are written to meanwhile.
    hours: Annotated[float, msgspec.Meta(ge=0, le=100_000)] = 24.0
    sessions: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 3


_Entries = Annotated[int, msgspec.Meta(ge=0, le=100_000)]


class FactSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[facts]` of the settings file: how many entries of each kind stay in sight on this device. 0: as many as there are."""

    facts: _Entries = 1_000
    procedures: _Entries = 100
    episodes: _Entries = 500
    #: Which go out of sight first: what was written first, what was changed longest ago, what is least certain, or what is worth least.
    order: Literal["first", "oldest", "confidence", "salience"] = "oldest"
    #: Whether a category outside the closed list is refused.
    closed: bool = False


_Dollars = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]


class UsageSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[usage]` of the settings file: what models may cost a UTC day and month, in US dollars; 0: no limit. It is told, and
    stops nothing."""

    day_usd: _Dollars = 0.0
    month_usd: _Dollars = 0.0


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the settings file may say; every field has an environment variable IPFSMEM_<NAME>, and most have a flag."""

    home: str | None = None
    namespace: str | None = None
    provider: str | None = None
    label: str | None = None
    #: Whether memories are compressed before they are sealed, "on" or "off" (a boolean is taken too).
    compress: str | bool = True
    #: Settings and tokens of providers, a table `[providers.<kind>]` each. Only in this file: it is the user's own, and
    #: `ipfsmem.json` goes wherever the memory's folder goes.
    providers: dict[str, dict[str, Any]] = {}
    #: Only in this file: texts leave the device by it. None: recall goes by the model of the extra `semantic` where that is
    #: installed, which runs here, else by words alone. The environment can say no more than `off`.
    embeddings: EmbeddingSettings | None = None
    sessions: SessionSettings = SessionSettings()
    recall: RecallSettings = RecallSettings()
    dream: DreamSettings = DreamSettings()
    #: Only in this file: texts leave the device by it, when a person asks it. None: nothing asks one.
    model: ModelSettings | None = None
    facts: FactSettings = FactSettings()
    usage: UsageSettings = UsageSettings()

    def __repr__(self) -> str:
        """Without the tables of providers: they hold tokens."""
        return f"Settings(home={self.home!r}, namespace={self.namespace!r}, provider={self.provider!r}, label={self.label!r})"

    @property
    def compresses(self) -> bool:
        """Whether memories are compressed. Raises ConfigError for another word than on and off."""
        known = {"on": True, "off": False, True: True, False: False}
        if self.compress not in known:
            raise ConfigError(
                f"the setting compress is {self.compress!r}, which is neither on nor off",
                hint='Write compress = "off" in the settings file, or set IPFSMEM_COMPRESS=off.',
            )
        return known[self.compress]

    def of_provider(self, spec: str) -> Mapping[str, Any]:
        """The settings for a provider spec; a path without a kind is a `directory`."""
        kind, colon, _ = spec.partition(":")
        return self.providers.get(kind if colon or kind in self.providers else "directory", {})


#: So many bytes in hex; anything else is refused where it is read.
_Hex16 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
_Hex32 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class VaultConfig(msgspec.Struct, frozen=True):
    """What this device pins about its vault. Nothing here is secret."""

    #: Vault tag, 32 hex digits.
    tag: _Hex16
    #: Label in the wallet's message.
    name: str
    key_number: int
    #: Ethereum address in lower-case hex with 0x, None for a vault without a wallet.
    address: str | None
    #: Public admin and head (anchor) keys of the first root, hex.
    admin: _Hex32
    anchor: _Hex32
    #: Whether a passphrase went into the derivation.
    passphrase: bool = False


class RetentionRule(msgspec.Struct, frozen=True):
    """What a collection keeps: so many of the newest roots, and one a week for so many days."""

    roots: int
    days: int


class NamespaceConfig(msgspec.Struct, frozen=True):
    """The file `ipfsmem.json` of one memory on this device."""

    mode: Mode
    label: str
    v: int = 1
    #: Where it is published: provider specs, for instance a folder or `pinata`.
    providers: tuple[str, ...] = ()
    vault: VaultConfig | None = None
    #: Where the plain files are when not in `memory/` beside this file.
    memory_dir: str | None = None
    #: Mode `ipfs`: somebody has agreed that everything in it is public for good.
    public: bool = False
    #: What stays when superseded roots are collected once a day, with a sync; None: they are collected by `gc` only.
    collect: RetentionRule | None = None


#: The settings that are tables of the file, and have no environment variable.
_TABLES: Final = ("providers", "embeddings", "sessions", "recall", "facts", "dream", "usage")


def settings(environment: Mapping[str, str] | None = None, file: Path | None = None) -> Settings:
    """The settings file, overridden by the environment. Without a file at the usual place there are no settings.

    Raises ConfigError naming the file.
    """
    env = os.environ if environment is None else environment
    named = env.get("IPFSMEM_CONFIG") if file is None else None
    if file is None:
        file = Path(named) if named else _usual_file()
    known = Settings()
    try:
        text = _read(file) if file is not None else ""
        import tomllib

        known = msgspec.convert(tomllib.loads(text), Settings)
    except FileNotFoundError:
        if named:  # one that somebody named holds what they rely on: a provider, or where their memories are
            raise ConfigError(
                f"there is no settings file {file}, which IPFSMEM_CONFIG names",
                hint="Put the file there, or name another one, or unset IPFSMEM_CONFIG.",
            ) from None
    except (ValueError, OSError, RecursionError) as error:
        raise ConfigError(f"settings file {file} cannot be used: {error}") from None
    if env.get("IPFSMEM_EMBEDDINGS"):
        if env["IPFSMEM_EMBEDDINGS"] != "off":
            raise ConfigError(
                f"IPFSMEM_EMBEDDINGS is {env['IPFSMEM_EMBEDDINGS'][:40]!a}, and can only say off",
                hint="Which model recall goes by stands under [embeddings] in the settings file.",
            )
        known = msgspec.structs.replace(known, embeddings=EmbeddingSettings(provider="off"))
    names = [f for f in Settings.__struct_fields__ if f not in _TABLES]
    over = {f: env[f"IPFSMEM_{f.upper()}"] for f in names if env.get(f"IPFSMEM_{f.upper()}")}
    return msgspec.structs.replace(known, **over)


def _usual_file() -> Path | None:
    try:
        return _platform("config") / "config.toml"
    except RuntimeError:
        return None  # the system names no home, so there are no settings in it


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        data = opened.read(_SETTINGS_MAX + 1)
    if len(data) > _SETTINGS_MAX:
        raise ConfigError(f"settings file {file} has more than {_SETTINGS_MAX} bytes")
    return data.decode()


#: Where Linux has settings and data: the variable of the XDG Base Directory Specification, and the folder of the home without it.
_XDG: Final = {"config": ("XDG_CONFIG_HOME", ".config"), "data": ("XDG_DATA_HOME", ".local/share")}


def _platform(kind: str) -> Path:
    """Our folder where this system has settings ("config") or data. Raises RuntimeError where it names no home."""
    if sys.platform == "linux" and "ANDROID_ROOT" not in os.environ:
        variable, usual = _XDG[kind]
        named, home = os.environ.get(variable, ""), os.environ.get("HOME", "")
        if os.path.isabs(named):  # noqa: PTH117 - a path that is empty is none
            return Path(named) / "ipfsmem"
        if os.path.isabs(home):  # noqa: PTH117
            return Path(home) / usual / "ipfsmem"
    import platformdirs  # 6 ms, for what no two systems but Linux have in common

    return Path(
        platformdirs.user_config_dir("ipfsmem") if kind == "config" else platformdirs.user_data_dir("ipfsmem")
    )


def home(chosen: str | os.PathLike[str] | None, known: Settings | None = None) -> Path:
    """The home directory: an argument, else the settings, else the platform's data directory."""
    if chosen is None:
        chosen = (known or settings()).home
    if chosen is not None:
        return expanded(chosen)
    try:
        return _platform("data")
    except RuntimeError:
        raise _no_home() from None


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path with the home that `~` or `~NAME` at its beginning means. Raises ConfigError where the system names none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise _no_home(f"{os.fspath(path)} cannot be found: ") from None


def user_home() -> Path:
    """The home of this user, where other programs keep what is theirs. Raises ConfigError where the system names none."""
    try:
        found = Path.home()
    except RuntimeError:
        raise _no_home() from None
    if not found.is_absolute():
        raise _no_home(f"HOME is {str(found)!r}, which depends on where one stands: ")
    return found


def _no_home(why: str = "") -> ConfigError:
    return ConfigError(
        f"{why}the system names no home folder for this user",
        hint="Set HOME to the whole path of one. Where memories are can also be said with --home DIR (in Python: home=).",
    )


def is_namespace(name: str) -> bool:
    """Whether this can be the name of a memory on this device."""
    return bool(_is_namespace(name))


def namespace_folder(home: Path, namespace: str) -> Path:
    """The directory of one memory. Raises ConfigError for a name that cannot be one."""
    if not _is_namespace(namespace):
        raise ConfigError(
            f"{namespace!r} is not a namespace",
            hint="A namespace is 1 to 64 characters of a-z, 0-9, _ and -, starting with a letter or digit.",
        )
    return home / namespace


class _Kind(msgspec.Struct):
    """What every version of the file says. It is read first, so that a file of another version is told from a damaged one."""

    mode: str
    v: int = 1


def parse_namespace(data: bytes, path: Path) -> NamespaceConfig:
    """Read `ipfsmem.json`. Raises ConfigError."""
    try:
        kind = msgspec.json.decode(data, type=_Kind)
        if kind.v != 1 or kind.mode not in tuple(Mode):
            raise ConfigError(
                f"{path} is for another version of ipfsmem (version {kind.v}, mode {kind.mode!r})"
            )
        return msgspec.json.decode(data, type=NamespaceConfig)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None


def render_namespace(config: NamespaceConfig) -> bytes:
    """The bytes of `ipfsmem.json`, made for people to read. Raises ConfigError for a name that is not Unicode text."""
    try:
        return msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n"
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{error.object!a} is not Unicode text, and cannot be written down", hint="Choose another name."
        ) from None
