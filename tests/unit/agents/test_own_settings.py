"""Settings: one description for reading and display, and a changed value leaves the rest of the file unchanged."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ipfsmem import config
from ipfsmem.agents.session_text import session_text
from ipfsmem.errors import ConfigError, FormatError, StorageError, UsageError
from ipfsmem.memories.context import tokens_of
from ipfsmem.memory import Memory
from ipfsmem.operations.settings import set_setting, settings_files, settings_shown
from ipfsmem.setting_edit import with_value, without_value
from ipfsmem.setting_list import all_settings, setting
from ipfsmem.tools import toolset
from tests.support.hints import Refused

FILE = """\
# mine
label = "desk"   # the grey one
provider = "https://me:word@box.example/dir?key=abc"

[sessions]
# how much is resumed
resume = 12 # twelve
[recall]
weights = { words = 2.5, "best" = 1.0 }   # tuned

[providers.pinata]
pinata_jwt = "s3cret-token"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(FILE)
    monkeypatch.setenv("IPFSMEM_CONFIG", str(path))
    return path


def test_read_settings_equal_the_described_ones() -> None:
    for one in all_settings().values():
        assert one.about, one.name
        assert bool(one.unit) == (one.kind in (int, float) and ".weights." not in one.name), one.name
        value = one.choices[0] if one.choices else {str: "off", bool: True}.get(one.kind, one.most or 5)
        if one.name.endswith("compact_keep"):
            value = 1
        assert config.read_settings(with_value("", one.name.split("."), value)), one.name
        if one.least is not None:
            with pytest.raises(ValueError, match="Expected"):
                config.read_settings(with_value("", one.name.split("."), one.least - 1))
    tables = {name.partition(".")[0] for name in all_settings()}
    assert tables == set(config.Settings.__struct_fields__) - {"providers"}


def test_described_default_applies_without_a_file(tmp_path: Path) -> None:
    env = {"IPFSMEM_CONFIG": str(tmp_path / "empty.toml")}
    Path(env["IPFSMEM_CONFIG"]).touch()
    known = config.settings(env)
    for one in settings_shown(env):
        assert (one.value, one.source) == (one.default, "default"), one.name
    assert known.sessions.resume == all_settings()["sessions.resume"].default == 20


def test_settings_shown_name_their_source_and_hide_tokens(file: Path) -> None:
    env = {"IPFSMEM_CONFIG": str(file), "IPFSMEM_LABEL": "lap", "IPFSMEM_EMBEDDINGS": "off"}
    found = {one.name: one for one in settings_shown(env)}
    assert (found["label"].value, found["label"].source) == ("lap", "IPFSMEM_LABEL")
    assert (found["embeddings.provider"].value, found["embeddings.provider"].source) == (
        "off",
        "IPFSMEM_EMBEDDINGS",
    )
    assert (found["sessions.resume"].value, found["sessions.resume"].default) == (12, 20)
    assert found["sessions.resume"].unit == "messages" and found["sessions.resume"].source == "file"
    assert (found["recall.weights.words"].value, found["recall.weights.words"].default) == (2.5, 2.5)
    assert found["providers.pinata.pinata_jwt"].value == "(hidden)"
    assert not [word for word in ("s3cret", "word@", "abc") if word in repr(list(found.values()))]


def test_variable_that_is_not_a_setting_is_ignored(file: Path) -> None:
    assert config.settings({"IPFSMEM_CONFIG": str(file), "IPFSMEM_MODEL": "x"}).model is None


def test_written_value_leaves_every_other_byte_unchanged(file: Path) -> None:
    done = set_setting("sessions.resume", "30")
    assert done.changed and done.setting.value == 30 and config.settings().sessions.resume == 30
    assert file.read_text() == FILE.replace("resume = 12 #", "resume = 30 #")
    assert not set_setting("sessions.resume", "30").changed
    set_setting("recall.weights.words", "3")
    assert "weights = { words = 3.0, best = 1.0 }   # tuned" in file.read_text()
    set_setting("sessions.compact", "off")
    assert "resume = 30 # twelve\ncompact = false\n[recall]" in file.read_text()
    set_setting("vault", "alex")
    assert file.read_text().startswith('# mine\nlabel = "desk"   # the grey one\nprovider = ')
    assert 'abc"\nvault = "alex"\n\n[sessions]' in file.read_text()
    set_setting("dream.hours", "12.5")
    assert file.read_text().endswith('"s3cret-token"\n\n[dream]\nhours = 12.5\n')


def test_removed_value_restores_the_default_and_leaves_no_empty_table(file: Path) -> None:
    """An empty `[embeddings]` would still enable a model."""
    set_setting("embeddings.provider", "ollama")
    set_setting("vault", "alex")
    for name in ("embeddings.provider", "vault"):
        set_setting(name, None)
    assert file.read_text() == FILE
    assert config.settings({"IPFSMEM_CONFIG": str(file)}).embeddings is None
    for part in ("words", "best"):
        set_setting(f"recall.weights.{part}", None)
    assert "weights" not in file.read_text() and config.settings().recall.weights == {}
    assert not set_setting("usage.day_usd", None).changed


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("session.resume", "3", "perhaps sessions.resume"),
        ("resume", "3", "perhaps sessions.resume"),
        ("sessions.resume", "0", "from 1 to 100,000"),
        ("sessions.resume", "2.5", "a whole number"),
        ("sessions.compact_keep", "90", "the change would make it unusable"),
        ("dream.hours", "nan", "a number from 0"),
        ("facts.order", "newest", "one of first, oldest"),
        ("facts.closed", "maybe", "true or false"),
        ("recall.weights.words", "-1", "the change would make it unusable"),
        ("recall.weights.covers", "1", "perhaps recall.weights.cover"),
        ("providers.pinata.pinata_jwt", "x", "no arguments of a command"),
        ("label", "a\udcff", "label takes"),
        ("sessions", "1", "unknown setting"),
        ("", "1", "unknown setting"),
    ],
)
def test_invalid_setting_is_refused_and_nothing_is_written(
    file: Path, name: str, text: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        set_setting(name, text)
    assert file.read_text() == FILE


def test_damaged_missing_or_read_only_settings_file_is_unchanged(file: Path) -> None:
    file.write_text("[sessions\n")
    with pytest.raises(ConfigError, match="not TOML"):
        set_setting("sessions.resume", "3")
    assert file.read_text() == "[sessions\n"
    file.write_text("[sessions]\nresume = 'x'\n")
    set_setting("sessions.resume", "3")  # a new value replaces an invalid one
    assert config.settings().sessions.resume == 3
    file.chmod(0o400)
    with pytest.raises(StorageError, match="read-only"):
        set_setting("sessions.resume", "4")
    file.unlink()
    with pytest.raises(ConfigError, match="there is no settings file"):
        set_setting("sessions.resume", "4")
    assert not file.exists()


def test_former_name_of_the_vault_setting_is_refused_with_the_new_one(file: Path) -> None:
    old = {"IPFSMEM_NAMESPACE": "work"}
    with pytest.raises(ConfigError, match="renamed to IPFSMEM_VAULT"):
        config.chosen_vault(None, config.Settings(vault="own"), old)
    assert config.chosen_vault("mine", config.Settings(), old) == "mine"
    both = {**old, "IPFSMEM_VAULT": "new"}
    assert config.chosen_vault(None, config.settings(both), both) == "new"
    with pytest.raises(UsageError, match="renamed to vault"):
        setting("namespace")
    file.write_text('namespace = "work"\n')
    for refused in (
        config.settings,
        lambda: set_setting("vault", "work"),
        lambda: set_setting("label", None),
    ):
        with pytest.raises(
            ConfigError, match="cannot be used: the setting namespace was renamed to vault"
        ) as caught:
            refused()
        assert caught.value.hint == f"Rename `namespace` in {file} to `vault`."
    assert file.read_text() == 'namespace = "work"\n'


def test_command_with_a_vault_name_ignores_the_former_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPFSMEM_NAMESPACE", "work")
    with Memory.create("default", "local", home=tmp_path) as memory:
        memory.write("tone", "short")
    with Memory.load("default", home=tmp_path) as memory:
        assert memory.read("tone")
    for refused in (
        Memory.load,
        Memory.load_damaged,
        lambda **options: Memory.create(mode="local", **options),
    ):
        with pytest.raises(ConfigError, match="renamed to IPFSMEM_VAULT"):
            refused(home=tmp_path)


@pytest.mark.parametrize("name", ["a b", "../../x", ""])
def test_invalid_name_of_a_vault_is_not_set(file: Path, name: str) -> None:
    with pytest.raises(UsageError, match="not a valid vault name"):
        set_setting("vault", name)
    assert file.read_text() == FILE
    set_setting("vault", "work")
    assert config.settings().vault == "work"


def test_default_settings_file_is_created_and_a_link_stays_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IPFSMEM_CONFIG", raising=False)
    usual, env = tmp_path / "ipfsmem" / "config.toml", {}
    monkeypatch.setattr(config, "usual_settings_file", lambda: usual)
    assert [(one.path, one.there, one.counts) for one in settings_files(env)] == [(str(usual), False, True)]
    set_setting("sessions.resume", "3", env)
    assert usual.read_text() == "[sessions]\nresume = 3\n" and usual.stat().st_mode & 0o777 == 0o600
    real = tmp_path / "real.toml"
    usual.rename(real)
    usual.symlink_to(real)
    set_setting("sessions.resume", "4", env)
    assert usual.is_symlink() and real.read_text() == "[sessions]\nresume = 4\n"
    files = settings_files({"IPFSMEM_CONFIG": str(real)})
    assert [(one.path, one.counts) for one in files] == [(str(real), True), (str(usual), False)]


@pytest.mark.parametrize(
    "text",
    [
        'note = """\n[sessions]\nresume = 1\n"""\n',
        "sessions.resume = 1\n",
        "sessions = { resume = 1 } # so\n",
        "[sessions]\r\nresume = 1\r\n",
        "[ sessions ]\nresume=1",
        '[sessions]\n"resume" = 1\n',
        "[[x]]\nresume = 1\n",
        "",
    ],
)
def test_value_is_written_into_any_form_of_table_or_refused(text: str) -> None:
    before = tomllib.loads(text)
    try:
        after = with_value(text, ("sessions", "resume"), 7)
    except FormatError:
        assert "sessions = {" in text or '"resume"' in text
        return
    assert tomllib.loads(after) == {**before, "sessions": {"resume": 7}}
    assert not before.get("sessions") or len(after.splitlines()) == len(text.splitlines())
    assert "sessions" not in tomllib.loads(without_value(after, ("sessions", "resume")))


def test_context_length_for_models_follows_the_settings(file: Path, tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory:
        for number in range(200):
            memory.write(f"memory-{number}", "x", description="a description of some length " * 3)
        usual = memory.context()
        set_setting("context.tokens", "300")
        set_setting("context.turn_tokens", "200")
        assert memory.context().tokens <= 300 < usual.tokens <= 2_000
        assert memory.context("memory", layout="turn").tokens <= 200
        assert memory.context(max_tokens=1_000).tokens > 300
        (tool,) = toolset(memory, ["context"])
        assert tokens_of(tool.call().text) <= 300
        text = session_text("m", tmp_path, str(tmp_path), "claude-code", config.context_tokens("index")).text
        assert 0 < tokens_of(text) <= 300
        file.write_text("[context\n")
        assert memory.context().tokens == usual.tokens  # unusable settings do not hide the tools


@pytest.mark.parametrize("name", ["embeddings.provider", "model.provider"])
def test_unknown_model_provider_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text("")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    with Refused("Supported: VALUE."):
        set_setting(name, "bogus")
    assert file.read_text() == ""
    set_setting(name, "openai")
    assert "openai" in file.read_text()
