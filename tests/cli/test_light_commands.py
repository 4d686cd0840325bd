"""Commands that hooks and agents call often load few modules: imports take most of their time."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from ipfsmem.causal import value
from ipfsmem.cli.light_imports import _Inspect
from ipfsmem.device import access_counts, state
from ipfsmem.errors import NotFoundError
from ipfsmem.memory import Memory
from ipfsmem.ring import keyring, statements
from ipfsmem.seal import secret_file

#: Prints the modules that are loaded when a command ends.
LOADED = """
import json, sys
from ipfsmem.cli import main
if sys.argv[1] == "hook":  # a busy machine takes longer than an agent waits
    from ipfsmem.agents import hooks
    hooks.BOUNDS, hooks._BOUND = {}, 60.0
code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""
#: Modules that load slowly, and those that only a provider needs.
HEAVY = {
    "asyncio",
    "aiohttp",
    "eth_account",
    "importlib.metadata",
    "multiformats",
    "concurrent.futures",
}
ELSEWHERE = (
    "agents",
    "exchange",
    "mcp",
    "tools",
    "adapters",
    "http",
    "published",
    "open_vault.creating",
    "open_vault.syncing",
    "sync.engine",
    "provider.opening",
    "results",
)
#: Modules that only vaults with plain files, a passphrase or unpublished data need.
RARELY_NEEDED = {
    "ipfsmem.files.working_copy",
    "ipfsmem.device.tables.tracked_files",
    "ipfsmem.device.root_folders",
    "ipfsmem.device.unlocked",
    "ipfsmem.causal.merge3",
    "ipfsmem.wallet.message",
    "ipfsmem.wallet.passphrases",
    "ipfsmem.sync.report",
    "ipfsmem.provider.contract",
    "ipfsmem.vault.owner",
}
#: For the standard folders of other systems.
NOT_ON_LINUX = {"platformdirs", "tempfile", "random"}
#: Modules that a read or a write of a text does not need.
NOT_FOR_TEXTS = {"ipfsmem.bundle.timeline", "ipfsmem.memories.scopes", "ipfsmem.wordlist", "rfc8785"}
#: Modules that recall without a model does not need.
NOT_WITHOUT_MODEL = {
    "ipfsmem.memories.meaning",
    "ipfsmem.memories.event_search",
    "ipfsmem.memories.part_lines",
    "ipfsmem.memories.session_reader",
    "ipfsmem.memories.sessions",
    "numpy",
}
#: Imports of click and msgspec for functions that no command calls.
UNUSED_BY_LIBRARIES = {"typing_extensions", "inspect"}
#: Command-line modules that a hook does not need.
NOT_FOR_HOOKS = {"click", "ipfsmem.cli.app", "ipfsmem.cli.context"}
#: Modules for listing events, which a hook does not need.
NOT_FOR_EVENTS = {"ipfsmem.device.events", "ipfsmem.memories.context_talk"}
#: Modules for reading, which a hook that only starts a sync does not need.
NOT_FOR_SYNC_HOOKS = {"msgspec", "hashlib", "inspect", "ipfsmem.config", "ipfsmem.memory"}


@pytest.mark.parametrize(
    ("call", "most"),
    [
        (("read", "tone"), 90),
        (("write", "tone", "--body", "short"), 104),
        (("timeline", "add", "said"), 103),
        (("list",), 96),  # with the headers that an earlier list stored
        (("context",), 118),
        (("recall", "direct"), 126),  # without a model
        (("hook", "session-start", "--program", "claude-code"), 131),
        (("hook", "prompt", "--program", "claude-code"), 141),
        (("hook", "stop", "--program", "claude-code"), 15),
    ],
    ids=lambda given: " ".join(given[:2]) if isinstance(given, tuple) else "",
)
def test_agent_commands_load_no_provider_module(tmp_path: Path, call: tuple[str, ...], most: int) -> None:
    (tmp_path / "stick").mkdir()
    where = {"provider": str(tmp_path / "stick"), "passphrase": False, "home": tmp_path / "home"}
    with Memory.create("default", "encrypted-ipfs", **where) as memory:
        memory.write("tone", "direct")
    command = [
        sys.executable,
        "-c",
        LOADED,
        *call,
        "--home",
        str(tmp_path / "home"),
    ]  # as `connect` writes it
    said = json.dumps(
        {"session_id": "a", "cwd": str(tmp_path), "source": "startup", "prompt": "a direct tone"}
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith("IPFSMEM_")}
    plain |= {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    if call[0] == "recall":
        plain["IPFSMEM_EMBEDDINGS"] = "off"
    done = subprocess.run(
        command, input=said, capture_output=True, text=True, timeout=60, check=True, env=plain
    )
    code, loaded = json.loads(done.stderr.splitlines()[-1])
    assert not code, done.stderr
    assert sorted(HEAVY & set(loaded)) == []
    assert sorted(UNUSED_BY_LIBRARIES & set(loaded)) == [], "a seventh of a read"
    assert sys.platform != "linux" or "platform" not in loaded
    ours = [name for name in loaded if name.startswith("ipfsmem.")]
    allowed = "agents" if call[0] == "hook" else None
    elsewhere = tuple(room for room in ELSEWHERE if room != allowed)
    assert [name for name in ours if name.removeprefix("ipfsmem.").startswith(elsewhere)] == []
    if call[0] == "hook":
        assert sorted(NOT_FOR_HOOKS & set(loaded)) == []
        assert sorted(NOT_FOR_EVENTS & set(loaded)) == []
    if call[0] == "recall":
        assert sorted(NOT_WITHOUT_MODEL & set(loaded)) == []
    if call[1:2] == ("stop",):
        assert sorted(NOT_FOR_SYNC_HOOKS & set(loaded)) == []
    if call[0] != "hook":
        assert (
            sorted((RARELY_NEEDED | (NOT_ON_LINUX if sys.platform == "linux" else set())) & set(loaded)) == []
        )
    if call[0] in ("read", "write", "list"):
        assert sorted(NOT_FOR_TEXTS & set(loaded)) == []
    if call[0] in ("read", "write"):
        assert sorted({"click", "ipfsmem.cli.app", "ipfsmem.cli.options"} & set(loaded)) == []
    assert most * 3 // 4 < len(ours) <= most, "more than it was: look what it is needed for"


@pytest.mark.parametrize(
    "module", [access_counts, keyring, secret_file, state, statements, value], ids=lambda one: one.__name__
)
def test_structs_that_a_read_decodes_have_types_for_annotations(module: ModuleType) -> None:
    structs = [
        one for one in vars(module).values() if isinstance(one, type) and issubclass(one, msgspec.Struct)
    ]
    ours = [one for one in structs if one.__module__ == module.__name__]
    texts = [hint for one in ours for hint in one.__annotations__.values() if isinstance(hint, str)]
    assert ours and texts == [], "Python compiles each text: a twentieth of a read"


@pytest.mark.parametrize(
    ("call", "most"),
    [
        (("vault", "check"), 25),
        (("folder", "attach"), 40),
        (("provider", "list"), 68),
        (("member", "list"), 65),
        (("config", "set"), 50),
        (("index", "status"), 25),
        (("import",), 30),
        (("scope", "list"), 40),
        (("dream", "run"), 40),
        (("fact", "list"), 40),
        (("value", "get"), 40),
        (("approve",), 40),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_help_of_a_command_loads_no_result_types(call: tuple[str, ...], most: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *call, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    code, loaded = json.loads(done.stderr.splitlines()[-1])
    ours = {name.removeprefix("ipfsmem.") for name in loaded if name.startswith("ipfsmem.")}
    assert not code and len(ours) <= most
    assert not {"vault.check", "results", "sync.presence", "sync.removals", "files.working_copies"} & ours


@pytest.mark.parametrize("event", ["session-start", "prompt", "stop"])
def test_hook_with_a_settings_file_loads_no_typing_extensions(tmp_path: Path, event: str) -> None:
    Memory.create("default", "local", home=tmp_path / "home").close()
    (tmp_path / "settings.toml").write_text('[embeddings]\nprovider = "off"\n')
    command = [sys.executable, "-c", LOADED, "hook", event, "--program", "claude-code"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("IPFSMEM_")}
    plain |= {"IPFSMEM_CONFIG": str(tmp_path / "settings.toml"), "IPFSMEM_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        command,
        input=json.dumps({"session_id": "a", "cwd": str(tmp_path), "prompt": "a direct tone"}),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=plain | {"HOME": str(tmp_path)},
    )
    _, loaded = json.loads(done.stderr.splitlines()[-1])
    assert not {"typing_extensions", "inspect"} & set(loaded)


@pytest.mark.parametrize(
    "doc",
    [
        "Print JSON.",
        "",
        "  ",
        " two  words ",
        "a\ttab",
        "one\n  two\n\n",
        "\n  one\n    two",
        "\x1f a\x0c",
        "\u00a0a",
        "é b ",
    ],
)
def test_help_texts_are_unindented_like_inspect_does(doc: str) -> None:
    assert _Inspect.cleandoc(doc) == inspect.cleandoc(doc)


def test_replaced_inspect_functions_are_those_of_python() -> None:
    module = _Inspect("inspect")
    assert module.isfunction is inspect.isfunction
    with pytest.raises(AttributeError, match="nothing"):
        _ = module.nothing


def test_excluded_modules_are_imported_whole_afterwards() -> None:
    code = r"""
import sys
from ipfsmem.cli.light_imports import load_click, load_msgspec
load_click()
load_msgspec()
assert not {"inspect", "typing_extensions"} & sys.modules.keys()
import inspect, platform, typing_extensions
assert inspect.signature and platform.machine() and typing_extensions.TypedDict
import click, msgspec, uuid
assert click.Option(["--a"], help="Two\n  lines.").help == "Two\nlines." and uuid.uuid4().version == 4
assert msgspec.inspect.type_info(int) == msgspec.inspect.IntType()
assert msgspec.json.schema(list[int]) == {"type": "array", "items": {"type": "integer"}}
assert msgspec.json.decode(b'{"a":1}', type=msgspec.defstruct("A", [("a", int)])).a == 1
"""
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


@pytest.mark.parametrize(
    "needs",
    [
        "import inspect\nSIGNATURE = inspect.signature(len)",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    a: int",
        "from inspect import nothing_of_this_name",
        "import inspect\nassert type(inspect).__name__ == 'module'",
        "from typing_extensions import TypedDict",
    ],
)
def test_library_that_needs_more_is_imported_with_python_modules(tmp_path: Path, needs: str) -> None:
    for name in ("click", "msgspec"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"{needs}\nDONE = True\n")
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from ipfsmem.cli.light_imports import load_click, load_msgspec
load_click()
load_msgspec()
import inspect
assert inspect.__spec__.name == "inspect" and sys.modules.get("typing_extensions", True)
for name in ("click", "msgspec"):
    try:
        print(__import__(name).DONE)
    except ImportError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    refused = "cannot import name 'nothing_of_this_name'"
    assert all(line == "True" or line.startswith(refused) for line in done.stdout.splitlines())
    assert (refused in done.stdout) == ("nothing" in needs) and len(done.stdout.splitlines()) == 2


def test_failed_write_loads_click_without_modules_for_other_programs(tmp_path: Path) -> None:
    Memory.create("default", "local", home=tmp_path / "home").close()
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "write", "A", "--body", "x"],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "IPFSMEM_HOME": str(tmp_path / "home")},
    )
    _, loaded = json.loads(done.stderr.splitlines()[-1])
    assert "click" in loaded and not UNUSED_BY_LIBRARIES & set(loaded), done.stderr


def test_noting_a_missing_text_loads_no_sync_modules() -> None:
    """A read imports this module to note that the text is missing."""
    code = "import json, sys; import ipfsmem.sync.local_repair; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert not (HEAVY | {"ipfsmem.sync.report", "ipfsmem.provider.contract"}) & loaded
    assert not [name for name in loaded if name.startswith(tuple(f"ipfsmem.{one}" for one in ELSEWHERE))]


def test_sync_loads_no_ranking_and_no_status_modules(tmp_path: Path) -> None:
    (tmp_path / "stick").mkdir()
    where = {"provider": str(tmp_path / "stick"), "passphrase": False, "home": tmp_path / "home"}
    Memory.create("default", "encrypted-ipfs", **where).close()
    command = [sys.executable, "-c", LOADED, "--home", str(tmp_path / "home"), "sync"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    code, loaded = json.loads(done.stderr.splitlines()[-1])
    assert not code, done.stderr
    assert "ipfsmem.sync.engine" in loaded
    assert {"ipfsmem.recall.ranking", "ipfsmem.operations.vault_status"}.isdisjoint(loaded)


#: Runs a program as `ipfsmem` runs, and reports when Python cleans it up.
WHOLE = """
import atexit, sys
atexit.register(lambda: print("taken apart", file=sys.stderr))
from ipfsmem.cli import main
sys.exit(main())
"""


def test_reading_command_exits_without_cleanup_after_its_output(tmp_path: Path) -> None:
    long = "\n".join(f"line {number} of a long text" for number in range(20_000))
    with Memory.create("default", "local", home=tmp_path / "home") as memory:
        memory.write("long", long)

    def done(*call: str) -> tuple[int, str, bool]:
        command = [sys.executable, "-c", WHOLE, "--home", str(tmp_path / "home"), *call]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return ran.returncode, ran.stdout, "taken apart" in ran.stderr

    code, said, apart = done("read", "long")
    assert (code, apart) == (0, False) and long in said
    code, said, apart = done("recall", "line", "--json")
    assert (code, apart) == (0, False) and json.loads(said)["hits"][0]["key"] == "long"
    assert done("read", "none")[::2] == (NotFoundError.exit_code, False)
    assert done("write", "short", "--body", "a text")[::2] == (0, True)
    assert done("read", "short")[::2] == (0, False)
