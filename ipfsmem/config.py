"""Reads the settings (flag > environment > file), the home directory and the configuration of a vault.

Parses the settings file and the file `ipfsmem.json` of a vault. Opens no vault.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from ipfsmem.errors import ConfigError
from ipfsmem.locations import DEFAULT_VAULT as DEFAULT_VAULT
from ipfsmem.locations import expanded as expanded
from ipfsmem.locations import is_vault_name as is_vault_name
from ipfsmem.locations import no_home, platform_folder
from ipfsmem.locations import vault_folder as vault_folder
from ipfsmem.mode import Mode

CONFIG_FILE: Final = "ipfsmem.json"
_SETTINGS_MAX: Final = 1024 * 1024


def _says(about: str, unit: str = "", *, ge: float | None = None, le: float | None = None) -> msgspec.Meta:
    """Return the metadata of a setting for `ipfsmem config show`: purpose, unit and range."""
    return msgspec.Meta(description=about, extra={"unit": unit}, ge=ge, le=le)


class EmbeddingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[embeddings]` of the settings file: the embedding model of recall. Empty fields have the default of the
    provider."""

    provider: Annotated[str, _says("provider of embeddings: openai, google, ollama, minilm, or off")] = ""
    model: Annotated[str, _says("model; empty: the provider's default")] = ""
    base_url: Annotated[str, _says("URL; empty: the provider's default")] = ""
    #: The name of an environment variable; the key itself is not in the file.
    api_key_env: Annotated[str, _says("environment variable with its API key; empty: the default")] = ""
    dimensions: Annotated[int, _says("dimensions of a vector; 0: the model's default", "numbers", ge=0)] = 0
    path: Annotated[
        str, _says("a directory with an ONNX model and its tokenizer, run here; excludes the settings above")
    ] = ""


class RecallSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[recall]` of the settings file: weights of the ranking."""

    #: Weights that replace the defaults, by the name of the part; `ipfsmem recall --explain` prints the parts.
    weights: dict[str, Annotated[float, _says("weight of this part of the score", ge=-100, le=100)]] = {}
    half_life_days: Annotated[float, _says("half-life of a memory's recency", "days", ge=0.01, le=36_500)] = (
        7.0
    )


class SessionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[sessions]` of the settings file: how conversations are resumed, shown and compacted."""

    resume: Annotated[
        int,
        _says(
            "number of messages that a session is resumed with; a running one is cut to twice the number",
            "messages",
            ge=1,
            le=100_000,
        ),
    ] = 20
    shown: Annotated[
        int,
        _says(
            "number of newest sessions in the list, unless all are requested", "sessions", ge=1, le=100_000
        ),
    ] = 10
    here_only: Annotated[bool, _says("whether new sessions stay on this device and are never published")] = (
        False
    )
    compact: Annotated[bool, _says("whether long sessions are compacted automatically when saved")] = True
    compact_at: Annotated[
        int, _says("messages before a session is compacted", "messages", ge=1, le=100_000)
    ] = 80
    compact_keep: Annotated[
        int, _says("messages that stay as they are when the rest is summarised", "messages", ge=1, le=100_000)
    ] = 20
    compact_tokens: Annotated[
        int, _says("size before a session is compacted; 0: no limit", "tokens", ge=0, le=100_000_000)
    ] = 0
    summary: Annotated[int, _says("maximum length of a summary", "characters", ge=200, le=100_000)] = 4_000

    def __post_init__(self) -> None:
        if self.compact_keep >= self.compact_at:
            raise ValueError(
                f"compact_keep ({self.compact_keep}) is less than compact_at ({self.compact_at})"
            )


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[model]` of the settings file: the chat model for dreams and summaries. Empty fields have the default of the
    provider."""

    provider: Annotated[str, _says("provider of the model for dreams: openai, google, ollama")] = ""
    model: Annotated[str, _says("model; empty: the provider's default")] = ""
    base_url: Annotated[str, _says("URL; empty: the provider's default")] = ""
    #: The name of an environment variable; the key itself is not in the file.
    api_key_env: Annotated[str, _says("environment variable with its API key; empty: the default")] = ""
    input_price: Annotated[
        float, _says("cost of input", "US dollars per million tokens", ge=0, le=1_000_000)
    ] = 0.0
    output_price: Annotated[
        float, _says("cost of output", "US dollars per million tokens", ge=0, le=1_000_000)
    ] = 0.0


class DreamSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[dream]` of the settings file: when a dream may start automatically."""

    enabled: Annotated[
        bool, _says("whether automatic dreams are allowed; each vault also needs dream on")
    ] = False
    hours: Annotated[float, _says("time between two automatic dreams", "hours", ge=0, le=100_000)] = 24.0
    sessions: Annotated[int, _says("sessions that must change between two", "sessions", ge=0, le=100_000)] = 3


class FactSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[facts]` of the settings file: maximum visible entries of each kind on this device. 0: no limit."""

    facts: Annotated[int, _says("maximum shown; 0: all", "facts", ge=0, le=100_000)] = 1_000
    procedures: Annotated[int, _says("maximum shown; 0: all", "procedures", ge=0, le=100_000)] = 100
    episodes: Annotated[int, _says("maximum shown; 0: all", "episodes", ge=0, le=100_000)] = 500
    order: Annotated[
        Literal["first", "oldest", "confidence", "salience"],
        _says("which are hidden first: oldest, longest unchanged, least certain, least relevant"),
    ] = "oldest"
    decay_rate: Annotated[
        float,
        _says(
            "share of a confidence that it loses per day without use; 0: none",
            "share a day",
            ge=0,
            le=1,
        ),
    ] = 0.01
    closed: Annotated[bool, _says("whether a category outside the closed list is refused")] = False


class UsageSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[usage]` of the settings file: budgets for models. Exceeding a budget is only reported."""

    day_usd: Annotated[
        float, _says("daily limit of model cost (UTC days); 0: no limit", "US dollars", ge=0, le=1_000_000)
    ] = 0.0
    month_usd: Annotated[
        float,
        _says("monthly limit of model cost (UTC months); 0: no limit", "US dollars", ge=0, le=1_000_000),
    ] = 0.0


class PluginSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[plugins]` of the settings file: the enabled plugins with memories of other programs."""

    on: Annotated[
        str, _says("names of enabled plugins, separated by commas; other installed ones do not run")
    ] = ""
    seconds: Annotated[float, _says("timeout of one call of a plugin", "seconds", ge=0.05, le=60)] = 2.0
    characters: Annotated[
        int, _says("maximum length of a plugin's text", "characters", ge=100, le=100_000)
    ] = 8_000

    @property
    def names(self) -> tuple[str, ...]:
        """Return the enabled plugins in order, each once."""
        return tuple(dict.fromkeys(name for one in self.on.split(",") if (name := one.strip())))


class ContextSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[context]` of the settings file: default sizes of context blocks."""

    tokens: Annotated[
        int,
        _says(
            "maximum length of a context block, also of the first one for an agent",
            "tokens",
            ge=200,
            le=200_000,
        ),
    ] = 2_000
    turn_tokens: Annotated[
        int, _says("maximum length of the block before a prompt", "tokens", ge=200, le=200_000)
    ] = 500
    facts: Annotated[
        int,
        _says(
            "tokens for facts in addition to the limit, if the caller sets none",
            "tokens",
            ge=0,
            le=100_000,
        ),
    ] = 8_000

    def of(self, layout: str) -> int:
        """Return the default size of a block of this layout, in tokens."""
        return self.turn_tokens if layout == "turn" else self.tokens


class UnlockSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[unlock]` of the settings file."""

    hours: Annotated[float, _says("default duration of unlock", "hours", ge=0.01, le=8_760)] = 8.0


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[agents]` of the settings file: one switch for the access of agents to all vaults on this device."""

    enabled: Annotated[
        bool,
        _says("whether agents may read and write (hooks, mcp, tools), and dreams may start"),
    ] = True


class OperationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[operations]` of the settings file: the audit log of operations on this device."""

    kept: Annotated[
        int,
        _says(
            "number of newest operations to keep for `ipfsmem vault log --operations`; 0: none",
            "operations",
            ge=0,
            le=100_000,
        ),
    ] = 1_000


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings file. Each field except tables has an environment variable IPFSMEM_<NAME>, and most have a flag."""

    home: Annotated[str, _says("folder of the vaults; default: the system's data folder")] | None = None
    vault: Annotated[str, _says("vault to use; default: default")] | None = None
    provider: Annotated[str, _says("provider of a new vault: a folder or a kind with its address")] | None = (
        None
    )
    label: Annotated[str, _says("label of this device; default: the host name")] | None = None
    compress: Annotated[
        str | bool, _says("whether memories are compressed before they are encrypted: on or off")
    ] = True
    #: Settings and tokens of providers, a table `[providers.<kind>]` for each kind. Never in `ipfsmem.json`, which is copied with
    #: the folder of a vault.
    providers: dict[str, dict[str, Any]] = {}
    #: Never in the environment, except for `off`: this setting sends texts to an endpoint. None: the local model of the extra
    #: `semantic` if it is installed, else recall by words only.
    embeddings: EmbeddingSettings | None = None
    sessions: SessionSettings = SessionSettings()
    recall: RecallSettings = RecallSettings()
    dream: DreamSettings = DreamSettings()
    #: Never in the environment: this setting sends texts to an endpoint, on a person's request. None: no chat model.
    model: ModelSettings | None = None
    facts: FactSettings = FactSettings()
    usage: UsageSettings = UsageSettings()
    #: Never in the environment: this setting runs programs of others.
    plugins: PluginSettings = PluginSettings()
    operations: OperationSettings = OperationSettings()
    agents: AgentSettings = AgentSettings()
    context: ContextSettings = ContextSettings()
    unlock: UnlockSettings = UnlockSettings()

    def __repr__(self) -> str:
        """Omit the tables of providers, which contain tokens."""
        return f"Settings(home={self.home!r}, vault={self.vault!r}, provider={self.provider!r}, label={self.label!r})"

    @property
    def compresses(self) -> bool:
        """Return whether memories are compressed. Raises ConfigError for a value other than on and off."""
        choices = {"on": True, "off": False, True: True, False: False}
        if self.compress not in choices:
            raise ConfigError(
                f"the setting compress is {self.compress!r}, which is neither on nor off",
                hint='Write compress = "off" in the settings file, or set IPFSMEM_COMPRESS=off.',
            )
        return choices[self.compress]

    def of_provider(self, spec: str) -> Mapping[str, Any]:
        """Return the settings for a provider spec; a path without a kind is a `directory`."""
        kind, colon, _ = spec.partition(":")
        return self.providers.get(kind if colon or kind in self.providers else "directory", {})


#: 16 and 32 bytes in hex; other values are refused on reading.
_Hex16 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
_Hex32 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class VaultConfig(msgspec.Struct, frozen=True):
    """Public values of the vault that this device pins."""

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
    #: Whether the keys were derived with a passphrase.
    passphrase: bool = False


class RetentionRule(msgspec.Struct, frozen=True):
    """The versions that `vault compact` keeps: a number of the newest, and one per week for a number of days."""

    roots: int
    days: int


class LocalVaultConfig(msgspec.Struct, frozen=True):
    """The file `ipfsmem.json` of one vault on this device."""

    mode: Mode
    label: str
    v: int = 1
    #: The specs of its providers, for instance a folder or `pinata`.
    providers: tuple[str, ...] = ()
    vault: VaultConfig | None = None
    #: The folder of the plain files, if it is not `memory/` next to this file.
    memory_dir: str | None = None
    #: Mode `ipfs`: whether a person agreed that all data is public permanently.
    public: bool = False
    #: Versions to keep when a daily sync deletes superseded ones; None: only `vault compact` deletes.
    collect: RetentionRule | None = None


#: The type of each setting. Only the tables in a file are converted, because each takes msgspec half a millisecond.
_TYPES: Final[dict[str, Any]] = {
    **dict.fromkeys(("home", "vault", "provider", "label"), str),
    "compress": str | bool,
    "providers": dict[str, dict[str, Any]],
    "embeddings": EmbeddingSettings,
    "sessions": SessionSettings,
    "recall": RecallSettings,
    "dream": DreamSettings,
    "model": ModelSettings,
    "facts": FactSettings,
    "usage": UsageSettings,
    "plugins": PluginSettings,
    "operations": OperationSettings,
    "agents": AgentSettings,
    "context": ContextSettings,
    "unlock": UnlockSettings,
}
#: The environment variable of each setting outside the tables.
VARIABLES: Final = {
    name: f"IPFSMEM_{name.upper()}" for name in ("home", "vault", "provider", "label", "compress")
}


def settings(environment: Mapping[str, str] | None = None, file: Path | None = None) -> Settings:
    """Return the settings of the file, overridden by the environment. A missing file at the default path is an empty one.

    Raises ConfigError naming the file.
    """
    env = os.environ if environment is None else environment
    chosen = env.get("IPFSMEM_CONFIG") if file is None else None
    if file is None:
        file = settings_file(env)
    loaded = Settings()
    try:
        loaded = read_settings(settings_text(file) if file is not None else "")

    except FileNotFoundError:
        if (
            chosen
        ):  # a missing file that the user named is an error: it would have a provider or the home directory
            raise ConfigError(
                f"there is no settings file {file}, which IPFSMEM_CONFIG names",
                hint="Put the file there, or name another one, or unset IPFSMEM_CONFIG.",
            ) from None
    except (ValueError, OSError, RecursionError) as error:
        raise unusable_file(file, error) from None
    if env.get("IPFSMEM_EMBEDDINGS"):
        if env["IPFSMEM_EMBEDDINGS"] != "off":
            raise ConfigError(
                f"IPFSMEM_EMBEDDINGS is {env['IPFSMEM_EMBEDDINGS'][:40]!a}, and can only say off",
                hint="Set the model under [embeddings] in the settings file.",
            )
        loaded = msgspec.structs.replace(loaded, embeddings=EmbeddingSettings(provider="off"))
    over = {name: env[variable] for name, variable in VARIABLES.items() if env.get(variable)}
    return msgspec.structs.replace(loaded, **over)


def chosen_vault(chosen: str | None, loaded: Settings, environment: Mapping[str, str] | None = None) -> str:
    """Return the name of the vault to use: the given one, else that of the environment or the settings file, else `default`.

    Raises ConfigError if only the former variable names one.
    """
    env = os.environ if environment is None else environment
    if not chosen and env.get("IPFSMEM_NAMESPACE") and not env.get("IPFSMEM_VAULT"):
        # Ignoring the variable would open another vault than the user named.
        raise ConfigError(
            "IPFSMEM_NAMESPACE was renamed to IPFSMEM_VAULT",
            hint="Set IPFSMEM_VAULT instead, and unset IPFSMEM_NAMESPACE.",
        )
    return chosen or loaded.vault or DEFAULT_VAULT


def unusable_file(file: Path | None, error: Exception) -> ConfigError:
    """Return the error for a settings file that `read_settings` refused with `error`."""
    message = f"settings file {file} cannot be used: {error}"
    if isinstance(error, RenamedSettingError):
        return ConfigError(message, hint=f"Rename `namespace` in {file} to `vault`.")
    return ConfigError(message)


class RenamedSettingError(ValueError):
    """A settings file has the former name of the setting `vault`."""


def context_tokens(layout: str) -> int:
    """Return the default length of a context block of this layout, in tokens. Invalid settings are ignored."""
    try:
        return settings().context.of(layout)
    except ConfigError:
        return ContextSettings().of(layout)


def tokens_beside_for_facts() -> int:
    """Return the default number of further tokens for facts in a context block."""
    try:
        return settings().context.facts
    except ConfigError:
        return ContextSettings().facts


def refuse_agents_switched_off() -> None:
    """Raise ConfigError if the settings deny agents access to all vaults."""
    if not settings().agents.enabled:
        raise ConfigError(
            "agents are switched off in the settings: nothing was read or saved",
            hint="Allow it again: ipfsmem config set agents.enabled true",
        )


@functools.lru_cache(maxsize=4)
def read_settings(text: str) -> Settings:
    """Parse a settings file; cached, as a server reads it for each answer. Raises ValueError (of `tomllib` or `msgspec`), RecursionError."""
    if not text.strip():
        return Settings()
    import tomllib

    table = tomllib.loads(text)
    if "namespace" in table:
        raise RenamedSettingError("the setting namespace was renamed to vault")
    try:
        return Settings(**{name: msgspec.convert(value, _TYPES[name]) for name, value in table.items()})
    except (KeyError, msgspec.ValidationError):  # reported with the name of the file
        return msgspec.convert(table, Settings)


def settings_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """Return the settings file: the path in IPFSMEM_CONFIG, else the default path; None if the system names no home directory."""
    chosen = (os.environ if environment is None else environment).get("IPFSMEM_CONFIG")
    return Path(chosen) if chosen else usual_settings_file()


def usual_settings_file() -> Path | None:
    """Return the default path of the settings file; None if the system names no home directory."""
    try:
        return platform_folder("config") / "config.toml"
    except RuntimeError:
        return None


def settings_text(file: Path) -> str:
    """Read a settings file. Raises OSError, ValueError, and ConfigError for a file that is too long."""
    with file.open("rb") as opened:
        data = opened.read(_SETTINGS_MAX + 1)
    if len(data) > _SETTINGS_MAX:
        raise ConfigError(f"settings file {file} has more than {_SETTINGS_MAX} bytes")
    return data.decode()


def home(chosen: str | os.PathLike[str] | None, loaded: Settings | None = None) -> Path:
    """Return the home directory of ipfsmem: the argument, else that in the settings, else the platform's data directory."""
    if chosen is None:
        chosen = (loaded or settings()).home
    if chosen is not None:
        return expanded(chosen)
    try:
        return platform_folder("data")
    except RuntimeError:
        raise no_home() from None


def user_home() -> Path:
    """Return the home directory of this user. Raises ConfigError if the system names none."""
    try:
        folder = Path.home()
    except RuntimeError:
        raise no_home() from None
    if not folder.is_absolute():
        raise no_home(f"HOME is {str(folder)!r}, which depends on where one stands: ")
    return folder


class _Kind(msgspec.Struct):
    """Fields of every format version, read first to tell another version from a damaged file."""

    mode: str
    v: int = 1


def parse_local_vault(data: bytes, path: Path) -> LocalVaultConfig:
    """Parse `ipfsmem.json`. Raises ConfigError."""
    try:
        kind = msgspec.json.decode(data, type=_Kind)
        if kind.v != 1 or kind.mode not in tuple(Mode):
            raise ConfigError(
                f"{path} is for another version of ipfsmem (version {kind.v}, mode {kind.mode!r})"
            )
        return msgspec.json.decode(data, type=LocalVaultConfig)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None


def render_local_vault(config: LocalVaultConfig) -> bytes:
    """Render `ipfsmem.json` with indentation. Raises ConfigError for a name that is not Unicode text."""
    try:
        return msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n"
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{error.object!a} is not Unicode text, and cannot be written down", hint="Choose another name."
        ) from None
