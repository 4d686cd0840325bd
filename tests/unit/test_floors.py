"""The layers of the architecture: packages import lower layers only, and heavy packages only inside functions."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tests.support.statements import statements

PACKAGE = Path(__file__).parents[2] / "ipfsmem"
PROVIDERS = Path(__file__).parents[2] / "providers" / "ipfsmem_providers"
#: The packages from the ground up. A package imports packages below its own floor only; those of one floor do
#: not import each other.
FLOORS = (
    ("errors", "lazy_pattern"),
    ("locations", "mode"),
    (
        "answer",
        "canonical",
        "config",
        "ending_signals",
        "file_durability",
        "in_thread",
        "invisible_characters",
        "loopback",
        "recall",
        "setting_edit",
        "wording",
        "wordlist",
    ),
    ("bundle", "content", "seal", "sessions", "setting_list"),
    ("dream", "facts", "graph", "wallet"),
    ("ring",),
    ("causal",),
    ("device",),
    ("memories",),
    ("published", "files", "exchange", "plugins"),
    ("provider",),
    ("sync",),
    ("vault",),
    ("results",),
    ("open_vault",),
    ("operation",),
    ("operations",),
    ("methods",),
    ("groups", "linked_folders", "upkeep"),
    ("memory",),
    ("agents", "holding", "tools"),
    ("compat",),
    ("adapters", "demo", "http", "mcp", "testing", "vaults_here"),
    ("api",),
    ("cli",),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
#: Pure values and functions: no disk, clock, randomness or network.
PURE = (
    "bundle",
    "content",
    "seal",
    "wallet",
    "ring",
    "causal",
    "recall",
    "sessions",
    "dream",
    "facts",
    "graph",
)
HEAVY = {"cryptography", "eth_account", "eth_keys", "aiohttp", "keyring", "multiformats", "watchfiles"}
HEAVY |= {"mcp", "pydantic", "anthropic", "langgraph", "llama_index", "agents", "pydantic_ai"}
#: Modules that consist of subclasses of one package, and are imported inside functions.
CLASSES_OF = {
    "anthropic_tool": {"anthropic", "pydantic"},
    "langgraph_store": {"langgraph"},
    "llama_index_block": {"llama_index"},
    "pydantic_ai_history": {"pydantic_ai"},
}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


class Imports(NamedTuple):
    """Names of the modules that a file imports: at import time, and anywhere."""

    at_once: set[str]
    at_all: set[str]


#: The modules that an import can mean, and the module it loads if they are names of that module.
Meaning: TypeAlias = tuple[set[str], str]


class Source(NamedTuple):
    """Parts of a module's tree, which is not kept itself, because each garbage collection would traverse
    it."""

    imports: Imports
    meanings: list[Meaning]
    classes: list[str]


@cache
def source(path: Path) -> Source:
    """Parse a file once for all tests of this file, which one worker runs."""
    tree = ast.parse(path.read_text("utf-8"))
    return Source(
        Imports(top_level_imports(tree), all_imports(tree)),
        meanings(tree),
        [node.name for node in statements(tree) if isinstance(node, ast.ClassDef)],
    )


def imports(path: Path) -> Imports:
    return source(path).imports


def top_level_imports(tree: ast.Module) -> set[str]:
    """Modules that importing this file imports: not those inside functions or under TYPE_CHECKING."""
    found: set[str] = set()

    def visit(body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
                visit(node.body)
                visit(node.orelse)
            elif isinstance(node, ast.Try):
                visit(node.body)

    visit(tree.body)
    return found


def all_imports(tree: ast.Module) -> set[str]:
    nodes = list(statements(tree))
    names = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    return names | {n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.module}


MODULES = [p for p in sorted(PACKAGE.rglob("*.py")) if p.parent != PACKAGE or p.name != "__init__.py"]
assert len(MODULES) > 500


def test_packages_import_lower_layers_only() -> None:
    wrong = []
    for path in MODULES:
        room = room_of(path)
        floor = FLOOR[room]
        for name in imports(path).at_all:
            if not name.startswith("ipfsmem"):
                continue
            if name.startswith("ipfsmem_providers"):
                wrong.append(f"{path} imports a provider")
                continue
            parts = name.split(".")
            if len(parts) < 2 or parts[1] == room:
                continue
            other = parts[1]
            if other not in FLOOR:  # a name of the package itself, such as __version__
                continue
            if FLOOR[other] >= floor:
                wrong.append(f"{path}: {room} (floor {floor}) imports {other} (floor {FLOOR[other]})")
    assert not wrong, "\n".join(wrong)


def test_heavy_packages_are_imported_where_used() -> None:
    wrong = {}
    for path in MODULES:
        heavy = (
            HEAVY - {"aiohttp"} if room_of(path) in ("api", "http") else HEAVY
        )  # servers, imported when one is started
        found = {name.split(".")[0] for name in imports(path).at_once}
        if at_once := found & (heavy - CLASSES_OF.get(path.stem, set())):
            wrong[str(path)] = at_once
    assert not wrong


def module_name(path: Path) -> str:
    package, root = (PACKAGE, "ipfsmem") if PACKAGE in path.parents else (PROVIDERS, "ipfsmem_providers")
    return ".".join((root, *path.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")


def meanings(tree: ast.Module) -> list[Meaning]:
    """The imports of a file, also inside functions and under TYPE_CHECKING."""
    found: list[Meaning] = []
    for node in statements(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append(({f"{node.module}.{alias.name}" for alias in node.names}, node.module))
        elif isinstance(node, ast.Import):
            found += [(set(), alias.name) for alias in node.names]
    return found


def imported_modules(found: Iterable[Meaning], known: Set[str]) -> set[str]:
    """Return those of the known modules that the imports load."""
    return {name for names, module in found for name in names & known or {module} & known}


def in_circles(arrows: Mapping[str, Collection[str]]) -> set[str]:
    """Return the modules that remain after repeatedly removing those that import none of the others, and
    those that none imports."""
    left = {name: set(arrows[name]) for name in arrows}
    while True:
        imported = {name for names in left.values() for name in names}
        ends = {name for name, names in left.items() if not names or name not in imported}
        if not ends:
            return set(left)
        left = {name: names - ends for name, names in left.items() if name not in ends}


def test_modules_have_no_import_cycle() -> None:
    paths = {module_name(path): path for path in (*MODULES, *PROVIDERS.rglob("*.py"))}
    paths = {name: path for name, path in paths.items() if path.name != "__init__.py"}
    arrows = {
        name: imported_modules(source(path).meanings, paths.keys()) - {name} for name, path in paths.items()
    }
    assert len(arrows) > 700
    assert not in_circles(arrows)


def test_cycles_of_types_and_in_functions_are_found() -> None:
    tree = ast.parse("if TYPE_CHECKING:\n    from a.two import Two\ndef f():\n    from a.three import g\n")
    modules = {"a.two", "a.three"}
    assert imported_modules(meanings(tree), modules) == modules
    arrows = {"a.one": {"a.two"}, "a.two": {"a.three"}, "a.three": {"a.two", "a.four"}, "a.four": set[str]()}
    assert in_circles(arrows) == {"a.two", "a.three"}
    assert not in_circles({**arrows, "a.three": {"a.four"}})


def test_providers_import_the_contract_only() -> None:
    allowed = (
        "ipfsmem.canonical",
        "ipfsmem.content",
        "ipfsmem.errors",
        "ipfsmem.device.directory_handle",  # a folder held open: one path through links, not two
        "ipfsmem.device.lock",  # a cache repository that programs on this device share
        "ipfsmem.device.shared_folder",
        "ipfsmem.provider.base",
        "ipfsmem.provider.contract",
        "ipfsmem.provider.small_objects",  # names and limits of the contract
        "ipfsmem.published.ipns_record",
        "ipfsmem.dream.chat",  # the contract of a model that answers
        "ipfsmem.recall.embedder",  # the contract of an embedding model
        "ipfsmem.recall.vectors",
    )
    paths = sorted(PROVIDERS.rglob("*.py"))
    assert len(paths) > 50
    wrong = [
        f"{path.name} imports {name}"
        for path in paths
        for name in imports(path).at_all
        if name.startswith("ipfsmem.")
        and name not in ("ipfsmem.provider", "ipfsmem.published")
        and not name.startswith(allowed)
    ]
    assert not wrong, "\n".join(wrong)


def test_pure_packages_do_no_io() -> None:
    """No clock, socket, process or randomness in the pure rooms; files only where signers read keystores."""
    wrong = {}
    for path in MODULES:
        if room_of(path) not in PURE:
            continue
        names = {name.split(".")[0] for name in imports(path).at_all}
        banned = {"time", "random", "secrets", "socket", "subprocess", "sqlite3", "asyncio", "shutil"}
        if path.name != "signers.py":
            banned |= {"pathlib", "os", "io", "tempfile"}
        if names & banned:
            wrong[str(path)] = names & banned
    assert not wrong


def test_opening_a_vault_imports_no_wallet() -> None:
    code = "import sys, ipfsmem.memory; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not HEAVY & set(out.split())


def _public_classes() -> Iterator[tuple[str, float, str]]:
    """Yield name, floor and module of each public class; all providers are one floor of their own."""
    for top in (PACKAGE, PROVIDERS):
        for path in sorted(top.rglob("*.py")):
            room = path.relative_to(top).parts[0].removesuffix(".py")
            for name in source(path).classes:
                if not name.startswith("_"):
                    yield name, FLOOR[room] if top == PACKAGE else len(FLOORS) + 1, str(path)


def test_public_class_names_differ_on_a_floor_and_its_neighbours() -> None:
    seen: dict[str, list[tuple[float, str]]] = {}
    wrong = []
    for name, floor, module in _public_classes():
        twins = [other for near, other in seen.get(name, []) if abs(near - floor) <= 1]
        if twins:
            wrong.append(f"class {name} of {module} is also in {', '.join(twins)}")
        seen.setdefault(name, []).append((floor, module))
    assert not wrong, "\n".join(wrong)
