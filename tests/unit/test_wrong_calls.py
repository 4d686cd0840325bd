"""Public methods called on a closed vault or with arguments of the wrong type raise our errors."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import ipfsmem
from ipfsmem import results
from ipfsmem.device.local_vaults import local_vaults
from ipfsmem.errors import ClosedError, IpfsmemError, UsageError
from ipfsmem.memory import Memory
from ipfsmem.mode import Mode
from ipfsmem.open_vault import creating
from ipfsmem.open_vault.method_group import MethodGroup

#: A value that no parameter accepts.
WRONG = object()
GROUPS = ("sessions", "facts", "values", "hidden", "graph", "dreams", "scopes", "usage", "folders", "bundles")
PARTS = (
    "timeline",
    *GROUPS,
    "plugins",
    "versions",
    "members",
    "agents",
    "providers",
    "vaults",
    "settings",
    "maintenance",
    "operations",
)
#: Methods that need something other than an open vault.
ALWAYS = {"close", "aclose", "load", "aload", "create", "recover", "reach", "open_foreign"}


def public(owner: type) -> list[str]:
    """Return its own methods, those of the part that it extends, and those generated for its declared
    operations."""
    return [
        name
        for kind in owner.__mro__
        if kind is owner or kind in MethodGroup.__subclasses__() or kind.__name__.endswith("Methods")
        for name, what in vars(kind).items()
        if not name.startswith("_") and inspect.isfunction(what)
    ]


def methods() -> Iterator[str]:
    for name in public(Memory):
        if name not in ALWAYS:
            yield name
    # A memory imports them on access.
    for module in (
        "groups",
        "linked_folders",
        "upkeep",
        "open_vault.plugins",
        "open_vault.syncing",
        "open_vault.versions",
    ):
        import_module(f"ipfsmem.{module}")
    every = [one for kind in MethodGroup.__subclasses__() for one in (kind, *kind.__subclasses__())]
    kinds = {kind.__name__.removeprefix("Memory").lower(): kind for kind in every}
    for part in PARTS:
        yield from (f"{part}.{name}" for name in public(kinds[part]))


METHODS = sorted(methods())


def method_of(memory: Memory, name: str) -> Callable[..., Any]:
    part, _, last = name.rpartition(".")
    found: Callable[..., Any] = getattr(getattr(memory, part) if part else memory, last)
    return found


def called(method: Callable[..., Any], *given: object, **named: object) -> None:
    """Call a method, and await its result if necessary."""
    answer = method(*given, **named)

    async def entered() -> None:
        async with answer:
            pass

    if inspect.isawaitable(answer):
        asyncio.run(_awaited(answer))
    elif hasattr(answer, "__aenter__"):
        asyncio.run(entered())


async def _awaited(answer: Any) -> None:
    await answer


def parameters(method: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that a caller passes."""
    every = inspect.signature(method).parameters.values()
    return [one for one in every if one.name != "self" and one.kind is not one.VAR_KEYWORD]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Memory.create("alex", "local", home=tmp_path_factory.mktemp("home")) as memory:
        memory.write("tone", "direct")
        yield memory
        assert list(memory) == ["tone"], "nothing that was called wrongly has done anything"


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """A vault that was opened and closed without any use."""
    home = tmp_path_factory.mktemp("home")
    with Memory.create("alex", "local", home=home) as memory:
        memory.write("tone", "direct")
    with Memory.load("alex", home=home) as memory:
        pass
    return memory


def test_all_parts_are_tested(memory: Memory) -> None:
    found = [
        name
        for name in dir(memory)
        if not name.startswith("_") and isinstance(getattr(memory, name), MethodGroup)
    ]
    assert sorted(PARTS) == sorted(found)
    assert len(METHODS) > 60


@pytest.mark.parametrize("name", METHODS)
def test_closed_memory_is_refused(closed: Memory, name: str) -> None:
    method = method_of(closed, name)
    given = ["x" for one in parameters(method) if one.default is one.empty and one.kind < one.VAR_POSITIONAL]
    named = {
        one.name: "x"
        for one in parameters(method)
        if one.default is one.empty and one.kind is one.KEYWORD_ONLY
    }
    with pytest.raises(ClosedError, match="the vault alex is closed") as said:
        called(method, *given, **named)
    assert "Memory.load" in said.value.hint


@pytest.mark.parametrize("name", METHODS)
def test_argument_of_wrong_type_is_named(memory: Memory, name: str) -> None:
    method = method_of(memory, name)
    every = parameters(method)
    for wrong in every:
        if wrong.name in ("unlock",) or wrong.annotation == "Any":
            continue  # any signer may unlock: the method itself reports what is missing
        given: list[object] = []
        named: dict[str, object] = {}
        for one in every:
            value = WRONG if one is wrong else "x"
            if one is not wrong and one.default is not one.empty:
                continue
            if one.kind is one.KEYWORD_ONLY or (
                one.kind is one.POSITIONAL_OR_KEYWORD and one.default is not one.empty
            ):
                named[one.name] = value
            else:
                given.append(value)
        with pytest.raises(UsageError, match=f"^{name.rpartition('.')[2]}: .* is .*, not "):
            called(method, *given, **named)


def test_class_methods_check_their_arguments(tmp_path: Path) -> None:
    for method in (Memory.load, Memory.aload, Memory.create, Memory.recover):
        needed: dict[str, Any] = {"provider": str(tmp_path), "unlock": "x"}
        for wrong in (
            {"mode": 5},
            {"provider": 5},
            {"passphrase": True},
            {"home": 5},
            {"public_ok": "yes"},
            {"unlock": 5},
        ):
            with pytest.raises(UsageError):
                called(method, "alex", **{"home": tmp_path, "mode": "encrypted-ipfs", **needed, **wrong})
        with pytest.raises(UsageError, match="vault is a text or None, not int"):
            called(method, 5, **needed)
    with pytest.raises(UsageError, match="source is a text, not int"):
        called(Memory.open_foreign, 5)


@pytest.mark.parametrize("provider", [0, 5, b"folder", {"folder"}, [5], ["folder", None]], ids=repr)
@pytest.mark.parametrize("mode", list(Mode))
def test_wrong_provider_is_refused_before_anything_is_created(
    tmp_path: Path, provider: object, mode: Mode
) -> None:
    wallet: Any = {"unlock": ipfsmem.RawKeySigner(b"\x22" * 32), "home": tmp_path}
    calls: list[Callable[[], object]] = [
        lambda: called(Memory.load, "alex", mode, provider=provider, passphrase=False, **wallet),
        lambda: called(Memory.aload, "alex", mode, provider=provider, passphrase=False, **wallet),
        lambda: called(Memory.reach, provider),
        lambda: called(Memory.open_foreign, "name", provider=provider),
    ]
    if mode.on_disk:
        calls.append(
            lambda: called(Memory.create, "alex", mode, provider=provider, passphrase=False, **wallet)
        )
    for call in calls:
        with pytest.raises(UsageError, match="provider is a text, an open provider or a list of these, not "):
            call()
    assert not list(tmp_path.iterdir())


def test_wrong_argument_for_an_existing_vault_is_refused(tmp_path: Path) -> None:
    Memory.create("alex", "local", home=tmp_path).close()
    for wrong in ({"provider": 0}, {"provider": [5]}, {"unlock": 0}, {"unlock": "x"}):
        given: dict[str, Any] = {"home": tmp_path, **wrong}
        for mode in (None, "none", "local"):
            with pytest.raises(UsageError):
                Memory.load("alex", mode, **given)


def test_text_is_not_accepted_as_a_list_of_texts(memory: Memory) -> None:
    with pytest.raises(UsageError, match=r"write: tags is a list of texts or None, not str"):
        memory.write("tone", "direct", tags="music")
    with pytest.raises(UsageError, match=r"sync: allow is a list of texts, not str"):
        asyncio.run(memory.sync(allow="tone"))
    with pytest.raises(UsageError, match="is a mapping of texts"):
        memory.write("tone", "direct", fields={"a": 5})  # type: ignore[dict-item]


def test_event_data_that_is_not_json_is_refused(memory: Memory) -> None:
    for data in (object(), {1, 2}, b"bytes", float("nan"), "\ud800"):
        with pytest.raises(IpfsmemError):
            memory.note("waved", what=data)


def test_former_argument_of_a_vaults_name_is_refused_with_the_present_one(tmp_path: Path) -> None:
    with Memory.create(vault="alex", home=tmp_path) as memory:
        calls: tuple[Callable[..., Any], ...] = (
            Memory.create,
            Memory.load,
            Memory.aload,
            Memory.recover,
            Memory.load_damaged,
            memory.fork,
        )
        for call in calls:
            with pytest.raises(UsageError, match=r"^\w+: the argument namespace was renamed to vault$"):
                call(namespace="other")
        memory.fork(vault="other").close()
    assert sorted(local_vaults(tmp_path)) == ["alex", "other"]
    with Memory.load(vault="other", home=tmp_path) as memory:
        assert memory.status().vault_name == "other"


def test_memory_behaves_like_a_mapping(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        assert memory and len(memory) == 0 and list(memory) == [] and "tone" not in memory
        memory.write("tone", "direct")
        memory.scope("work").write("style", "short")
        assert "tone" in memory and "style" not in memory and "no key!" not in memory and 5 not in memory
        assert len(memory) == 1 and list(memory) == ["tone"] and list(memory.scope("work")) == ["style"]
        assert repr(memory) == "<Memory alex, local>" and repr(memory.members) == "<Members of alex>"
        assert repr(memory.scope("work")) == "<Memory alex, local, scope work>"
        memory.forget("tone")
        assert "tone" not in memory and len(memory) == 0
    assert repr(memory) == "<Memory alex, local, closed>"
    for ask in (lambda: "tone" in memory, lambda: len(memory), lambda: list(memory)):
        with pytest.raises(ClosedError):
            ask()


def test_secrets_are_absent_from_repr(tmp_path: Path) -> None:
    key = ipfsmem.RawKeySigner(b"\x31" * 32)
    unlock = ipfsmem.Unlock(key, passphrase="correct horse battery")
    (tmp_path / "stick").mkdir()
    where = {"provider": str(tmp_path / "stick"), "passphrase": False, "home": tmp_path}
    with Memory.create("alex", "encrypted-ipfs", unlock=unlock, **where) as memory:  # type: ignore[arg-type]
        words = memory.recovery_words
        new = asyncio.run(memory.members.new_words())
        begun = results.Begun.of(
            memory.status(),
            restored=False,
            keystore=None,
            recovery_words=words,
            unlisted="",
            vaults=[],
            sync=None,
        )
        parts = [getattr(memory, name) for name in PARTS]
        shown = " ".join(
            map(repr, (unlock, memory, new, begun, memory.members.list(), memory.status(), *parts))
        )
    assert words is not None and begun.recovery_words == words
    assert not any(
        " ".join(pair) in shown or repr(pair)[1:-1] in shown for pair in (words[:2], new.words[:2])
    )
    assert "correct horse" not in shown and repr(unlock).startswith("Unlock(RawKeySigner(0x")
    assert "recovery_words=..." in repr(begun) and "24 words" in repr(new)


def test_hint_about_a_closed_vault_works(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        memory.write("tone", "direct")
    with pytest.raises(ClosedError) as said:
        memory.read("tone")
    assert said.value.hint == "Open it again (in Python: Memory.load)."
    with Memory.load("alex", home=tmp_path) as memory:
        assert "tone" in memory


def test_event_field_may_have_any_name_and_type(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        memory.note("visited", kind=3)
        memory.note("visited", kind=[4])
        assert [one["kind"] for one in memory.timeline.read()] == [3, [4]]


def test_tags_from_an_iterator_are_written(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        assert (
            "tags: [work, home]"
            in memory.write("tone", "direct", tags=(tag for tag in ("work", "home"))).text
        )
        assert "work" not in memory.write("tone", tags=()).text


def test_vault_opened_for_reading_is_never_published(tmp_path: Path) -> None:
    (tmp_path / "stick").mkdir()
    key = ipfsmem.RawKeySigner(b"\x22" * 32)
    where = {"provider": str(tmp_path / "stick"), "home": tmp_path / "home"}
    with Memory.create("alex", "encrypted-ipfs", unlock=key, passphrase=False, **where) as memory:
        memory.write("tone", "direct")
        asyncio.run(memory.sync())
        root, members = memory.status().root, len(memory.members.list())
    with Memory.load_damaged("alex", home=tmp_path / "home") as rescued:
        assert rescued.read("tone") is not None
        with pytest.raises(UsageError, match="is open for reading only"):
            asyncio.run(rescued.sync(str(tmp_path / "stick")))
        with pytest.raises(UsageError, match="is open for reading only"):
            rescued.providers.add(str(tmp_path / "stick"))
    with Memory.load("alex", home=tmp_path / "home") as memory:
        asyncio.run(memory.sync())
        assert memory.status().root == root and len(memory.members.list()) == members


@pytest.mark.parametrize("brought", [False, True])
def test_cancelled_call_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brought: bool
) -> None:
    (tmp_path / "stick").mkdir()
    where: dict[str, Any] = {
        "provider": str(tmp_path / "stick"),
        "unlock": ipfsmem.RawKeySigner(b"\x22" * 32),
        "passphrase": False,
    }
    if brought:
        with Memory.create("alex", "encrypted-ipfs", home=tmp_path / "other", **where) as memory:
            asyncio.run(memory.sync())
    name = "begin_replica" if brought else "create_replica"
    real, begun, go_on = getattr(creating, name), threading.Event(), threading.Event()

    def held(folder: Path | None, *args: Any, **named: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return real(folder, *args, **named)

    async def work() -> None:
        task = asyncio.ensure_future(
            Memory.aload("alex", "encrypted-ipfs", home=tmp_path / "home", create=True, **where)
        )
        await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    with monkeypatch.context() as patch:
        patch.setattr(creating, name, held)
        asyncio.run(work())
    assert not (tmp_path / "home" / "alex").exists()
    with Memory.load("alex", "encrypted-ipfs", home=tmp_path / "home", create=True, **where) as memory:
        assert brought or memory.recovery_words
