"""The operations on the settings of this user: the effective ones, and changes of one value that leave comments and all else in the
file unchanged.

Tokens of providers are never shown, and never accepted on a command line, which every program of the machine can read.
"""

from __future__ import annotations

import contextlib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ipfsmem import config
from ipfsmem.answer import Answer
from ipfsmem.device import config_files
from ipfsmem.errors import ConfigError, FormatError, StorageError, UsageError
from ipfsmem.operation import Items, View, operation
from ipfsmem.setting_edit import with_value, without_value
from ipfsmem.setting_list import Described, all_settings, setting

_HIDDEN: Final = "(hidden)"


class SettingShown(Answer, frozen=True, kw_only=True):
    """A setting. `value`, `default`: None if unset; `source`: `file`, `default`, or the name of an environment variable; `about`: purpose;
    `takes`: accepted values, in words."""

    name: str
    value: str | int | float | bool | None
    default: str | int | float | bool | None
    unit: str
    source: str
    about: str
    takes: str


class SettingChanged(Answer, frozen=True, kw_only=True):
    """A setting as it is now, the file that it was written to, and whether that file changed."""

    file: str
    changed: bool
    setting: SettingShown


class SettingsFile(Answer, frozen=True, kw_only=True):
    """A settings file. `by`: what names it; `there`: whether it exists; `counts`: whether it is in use."""

    path: str
    by: str
    there: bool
    counts: bool


class SettingList(Items[SettingShown], frozen=True, kw_only=True):
    """Settings by name; those of providers without their values, which may be tokens. Iterating it yields `settings`."""

    settings: tuple[SettingShown, ...]


@operation(
    name="settings.list",
    summary="Show settings with values and descriptions",
    right="admin",
    about="user",
    raises=(
        "UsageError: there is no such setting.",
        "ConfigError: the settings file cannot be read, or is invalid.",
    ),
    audit="",
    command="config show",
    http="GET /v1/settings",
    ingests=False,
)
def list_(
    view: View | None,
    name: Annotated[
        str | None, Meta(description="Only this setting, or those whose names begin with it and a point.")
    ] = None,
) -> SettingList:
    """Show all settings, or those of one group or name: value, default, unit, source and description.

    Settings of providers are listed without their values, which may be tokens.
    """
    rows = settings_shown()
    if name is not None:
        rows = [one for one in rows if one.name == name or one.name.startswith(name + ".")]
        if not rows:
            setting(name)
    return SettingList(settings=tuple(rows))


@operation(
    name="settings.set",
    summary="Change a setting",
    right="admin",
    about="user",
    raises=(
        "UsageError: an unknown name, or an invalid value.",
        "ConfigError: the file is missing or already invalid, or a directory has no model that runs here.",
        "StorageError: the file cannot be written.",
        "ChangedError: another program changed it meanwhile.",
    ),
    audit="config set",
    command="config set",
    idempotent=True,
)
def set_(
    view: View | None,
    name: Annotated[str, Meta(description="Its name, as `settings.list` shows it.")],
    value: Annotated[
        str | None,
        Meta(description="Its value as text; None removes it from the file, so that its default applies."),
    ] = None,
) -> SettingChanged:
    """Change one setting in the settings file, and create the file if it does not exist.

    Comments and other settings stay as they are. Nothing is written if the resulting file would be invalid.
    """
    return set_setting(name, value)


def settings_files(environment: Mapping[str, str] | None = None) -> list[SettingsFile]:
    """Return the settings files in order of precedence: only the first is used."""
    override = (os.environ if environment is None else environment).get("IPFSMEM_CONFIG")
    files = [(Path(override), "IPFSMEM_CONFIG")] if override else []
    usual = config.usual_settings_file()
    files += [(usual, "the default path")] if usual is not None else []
    return [
        SettingsFile(path=str(path), by=by, there=path.exists(), counts=number == 0)
        for number, (path, by) in enumerate(files)
    ]


def settings_shown(environment: Mapping[str, str] | None = None) -> list[SettingShown]:
    """Return every setting with its value, default, unit, source and purpose. Raises ConfigError."""
    env = os.environ if environment is None else environment
    current = config.settings(env)
    in_file = _table_of(config.settings_file(env))
    rows = [_shown(one, current, in_file, env) for one in all_settings().values()]
    for kind, table in in_file.get("providers", {}).items():
        rows += [
            SettingShown(
                name=f"providers.{kind}.{name}",
                value=_HIDDEN,
                default=None,
                unit="",
                source="file",
                about=f"for the provider {kind}; never shown, as it may be a token",
                takes="what the provider says",
            )
            for name in table
        ]
    return rows


#: The allowed values of these settings, in lower case.
_NAMES = {
    "embeddings.provider": ("openai", "anthropic", "google", "ollama", "minilm", "off"),
    "model.provider": ("openai", "google", "ollama"),
}

#: Before this setting is written, its model is loaded as a test.
_MODEL_DIRECTORY = "embeddings.path"


def set_setting(name: str, text: str | None, environment: Mapping[str, str] | None = None) -> SettingChanged:
    """Write one value to the settings file in use, or with None remove it, so that its default applies. Creates the file at its
    default path if it is missing. Nothing is written unless the file is valid afterwards.

    Raises UsageError for an unknown name or an invalid value, ConfigError for a file that is already invalid or is missing, or
    for a directory without a model that runs here, StorageError, ChangedError.
    """
    env = os.environ if environment is None else environment
    one = setting(name)
    value = None if text is None else one.value(text)
    if name == _MODEL_DIRECTORY and value:
        # Absolute, as commands run in other directories.
        value = str(Path(str(value)).expanduser().absolute())
    choices = _NAMES.get(name, ())
    if choices and value and str(value).lower() not in choices:
        raise UsageError(f"unknown provider {value!r} for {name}", hint=f"Supported: {', '.join(choices)}.")
    if name == "vault" and value is not None:
        try:
            config.vault_folder(Path(), str(value))
        except ConfigError as error:
            raise UsageError(str(error), hint=error.hint) from None
    path = config.settings_file(env)
    if path is None:
        raise ConfigError("the system names no home folder for this user, so a settings file has no path")
    file = config_files.read(path)
    if file.data is None and env.get("IPFSMEM_CONFIG"):
        config.settings(env)  # reports a missing named file
    if file.data is not None and not file.mode & 0o222:
        raise StorageError(
            f"{path} is read-only; it is probably managed by another program (a dotfile manager)"
        )
    before, after = _edited(path, file.data or b"", one, value)
    if name == _MODEL_DIRECTORY and value:
        from ipfsmem.provider.contract import open_embedder

        chosen = config.read_settings(after).embeddings
        open_embedder(msgspec.structs.asdict(chosen) if chosen is not None else None)
    if after != before:
        config_files.replace(file, after.encode())
    now = config.settings(env)
    return SettingChanged(
        file=str(path), changed=after != before, setting=_shown(one, now, tomllib.loads(after), env)
    )


def _edited(path: Path, data: bytes, one: Described, value: Any) -> tuple[str, str]:
    way = one.name.split(".")
    try:
        before = data.decode()
        after = without_value(before, way) if value is None else with_value(before, way, value)
    except (FormatError, UnicodeDecodeError) as error:
        raise ConfigError(f"settings file {path} was not changed: {error}") from None
    try:
        _check(after)
    except (ValueError, RecursionError, ConfigError) as error:
        try:
            _check(before)
        except (ValueError, RecursionError, ConfigError) as earlier:
            raise config.unusable_file(path, earlier) from None
        raise UsageError(
            f"settings file {path} was not changed, as the change would make it unusable: {error}"
        ) from None
    return before, after


def _check(text: str) -> None:
    parsed = config.read_settings(text)
    from ipfsmem.recall.ranking import weigh

    weigh(parsed.recall.weights, parsed.recall.half_life_days)


def _table_of(path: Path | None) -> dict[str, Any]:
    """Return the content of the file, which `config.settings` has just read."""
    with contextlib.suppress(FileNotFoundError):
        return tomllib.loads(config.settings_text(path)) if path is not None else {}
    return {}


def _shown(
    one: Described, current: config.Settings, table: Mapping[str, Any], env: Mapping[str, str]
) -> SettingShown:
    value, source = one.default, "default"
    in_file = _at(table, one.name)
    if one.variable is not None and env.get(one.variable):
        source, value = one.variable, env[one.variable]
    elif in_file is not None:
        source, value = "file", in_file
    if one.name == "compress":
        value = current.compresses
    if isinstance(value, str):
        from ipfsmem.vault.sheet import public_spec

        value = public_spec(value, current.providers)
    return SettingShown(
        name=one.name,
        value=value,
        default=one.default,
        unit=one.unit,
        source=source,
        about=one.about,
        takes=one.takes,
    )


def _at(table: Mapping[str, Any], name: str) -> Any:
    value: Any = table
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
