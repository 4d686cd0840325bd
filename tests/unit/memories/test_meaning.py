"""Recall by meaning: vectors of one model, stored sealed; when the endpoint fails, recall uses words and
reports it once."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ipfsmem.device.derived_file import DerivedFiles
from ipfsmem.errors import ConfigError, ProviderError, StorageError, UsageError
from ipfsmem.memories.kept_vectors import EARLIER_FILE, StoredVectors, _opened, prepared, vector_files
from ipfsmem.memories.living import Living
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.query_embedding import QueryEmbedding
from ipfsmem.memories.search_index import index_of
from ipfsmem.memory import Memory
from ipfsmem.operations.recall import Recalled
from ipfsmem.recall.embedder import EmbedderIdentity
from ipfsmem.recall.vectors import Vectors
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.servers.embeddings import EmbeddingsServer
from tests.servers.threaded import serve
from tests.support.device_lab import load
from tests.support.found import FoundTexts, found_in
from tests.support.hints import Refused
from tests.support.kept_vectors import load_kept, load_vectors, vectors_file
from tests.support.patience import PATIENCE

Name = Callable[..., None]


@pytest.fixture
def server() -> EmbeddingsServer:
    return EmbeddingsServer({"hashed-words": 256, "other-words": 128})


@pytest.fixture
def url(server: EmbeddingsServer) -> Iterator[str]:
    with serve(server.app) as address:
        yield f"{address}/v1"


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Name:
    """A function that writes the table `[embeddings]`."""
    file = tmp_path / "config.toml"
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    monkeypatch.delenv("IPFSMEM_EMBEDDINGS")
    file.write_text('[embeddings]\nprovider = "off"\n')

    def write(**table: str | int) -> None:
        lines = [f"{field} = {json.dumps(value)}" for field, value in table.items()]
        file.write_text("\n".join(["[embeddings]", *(lines or ['provider = "off"']), ""]))

    return write


@pytest.fixture
def memory(tmp_path: Path, name: Name) -> Iterator[Memory]:
    with Memory.create("m", "local", home=tmp_path / "home") as made:
        made.write("drinks", "An espresso machine stands in the kitchen")
        made.write("travel", "The train to Lisbon leaves at nine")
        yield made


def wait_for_vectors(memory: Memory, count: int, dimension: int = 256) -> None:
    """Ask until `count` vectors are stored."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        memory.recall("kitchen")
        kept = load_vectors(memory.replica)
        if kept is not None and len(kept) == count and kept.dimension == dimension:
            return
        time.sleep(0.02)
    raise AssertionError(f"no {count} vectors came")


def keys(found: Any) -> list[str]:
    return [hit.key for hit in found.hits]


def test_paraphrase_without_a_common_word_is_found(memory: Memory, name: Name, url: str) -> None:
    assert keys(memory.recall("wayfaring")) == []
    name(model="hashed-words", base_url=url)
    assert "on this machine" in memory.recall("kitchen").notice
    wait_for_vectors(memory, 2)
    found = memory.recall("lisboa trains", explain=True)
    assert keys(found)[0] == "travel" and found.by_meaning
    assert found.hits[0].parts["meaning"] == pytest.approx(
        7.5 / 2
    )  # as much as words, though "lisboa" is a typo
    assert keys(memory.recall("expresso machines", threshold=0.25)) == ["drinks"]
    assert keys(memory.recall("kitchen", threshold=1.0)) == []


def test_vectors_are_ignored_below_nine_of_ten_searched_texts(memory: Memory) -> None:
    for n in range(8):
        memory.write(f"note_{n}", f"The roof was painted on day {n}")
    vectors, parts = Vectors(EmbedderIdentity("test", "given", "00")), [MemoryStore(memory.replica)]
    with memory.replica.reading():
        kept_by = dict(index_of(parts).vectors)
    near = {kept_by[key]: [1.0, n / 10] for n, key in enumerate(sorted(kept_by)) if key != "drinks"}

    def asked(some: int) -> FoundTexts:
        vectors.add(dict(list(near.items())[:some]))
        said = QueryEmbedding(vectors.comparable(), "", question=[1.0, 0.0])
        return found_in(parts, "espresso", said=said, explain=True)

    few = asked(8)
    assert not few.matches.by_meaning and [hit.reading.key for hit in few.hits] == ["drinks"]
    enough = asked(9)
    assert enough.matches.by_meaning and len(enough.hits) == 10 and "meaning" in enough.hits[1].parts


def test_question_is_not_embedded_while_few_searched_texts_have_vectors(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 2)
    assert memory.recall("the first question").by_meaning and "the first question" in server.texts
    server.refuses = lambda text: 400 * ("refused" in text)
    memory.write("plans", "A text that is refused")
    memory.recall("a question that is refused")
    wait_until_idle(memory)
    for question in ("the second question", "in which kitchen"):
        found = memory.recall(question)
        assert not found.by_meaning and question not in server.texts
    assert memory.why("drinks", "why this kitchen").place and "why this kitchen" not in server.texts
    assert keys(memory.recall("espresso machines", threshold=0.25)) == ["drinks"]
    assert "espresso machines" in server.texts
    memory.forget("plans")
    assert memory.recall("the last question").by_meaning and "the last question" in server.texts


def test_fact_is_embedded_once(memory: Memory, name: Name, url: str, server: EmbeddingsServer) -> None:
    name(model="hashed-words", base_url=url)
    memory.facts.add("The user likes espresso from the machine")
    wait_for_vectors(memory, 3)
    server.texts.clear()
    added = memory.facts.add("The user really likes espresso from that machine")
    assert added is not None and added.by == "meaning"
    assert server.texts.count("The user really likes espresso from that machine") == 1


def test_new_or_changed_texts_are_embedded_and_forgotten_ones_erased(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 2)
    server.texts.clear()
    memory.write("travel", "The ferry to Oslo leaves at ten")
    memory.write("third", "A third text")
    wait_for_vectors(memory, 3)
    sent = [text for text in server.texts if "\n" in text]
    assert sorted(text.split("\n")[0].split()[0] for text in sent) == ["third", "travel"]
    before = load_vectors(memory.replica)
    assert before is not None
    memory.forget("travel")
    after = load_vectors(memory.replica)
    assert after is not None and len(after) == 2 and set(after.ids) < set(before.ids)


def test_another_model_replaces_all_vectors_and_two_are_never_mixed(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 2)
    name(model="other-words", base_url=url)
    said = [line for line in memory.status().notices if "other-words" in line]
    assert "the earlier model hashed-words are not used" in said[0] and "2 texts not embedded yet" in said[0]
    assert "again because the earlier model was hashed-words" in memory.recall("kitchen").notice
    until = time.monotonic() + 60
    while time.monotonic() < until:
        kept = load_vectors(memory.replica)
        assert kept is not None
        assert {"hashed-words": 256, "other-words": 128}[kept.identity.name] == kept.dimension
        if kept.identity.name == "other-words" and len(kept) == 2:
            break
        time.sleep(0.02)
    else:
        raise AssertionError("the new model made no vectors")
    assert keys(memory.recall("lisboa trains"))[0] == "travel"


@pytest.mark.parametrize("before", [False, True], ids=["the first vectors", "later ones"])
def test_forgotten_text_keeps_no_vector_in_a_temporary_file(memory: Memory, before: bool) -> None:
    folder = memory.replica.folder
    assert folder is not None
    kept = StoredVectors(Vectors(EmbedderIdentity("some", "1", "00")), [])
    for put in [True, False] if before else [False]:
        ready = prepared(memory.replica, kept)
        assert ready is not None
        if put:
            ready.put()
    assert [path for path in folder.iterdir() if path.suffix == ".tmp"]
    memory.forget("travel")
    assert [path.name for path in folder.iterdir() if path.suffix == ".tmp"] == []


def test_vectors_of_two_models_are_kept_and_forgotten_ones_erased(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    """As when an older and a newer program use one vault."""
    models = {"hashed-words": 256, "other-words": 128}
    for model, dimension in models.items():
        name(model=model, base_url=url)
        wait_for_vectors(memory, 2, dimension)
    assert memory.replica.folder is not None
    folder = memory.replica.folder.parent
    memory.close()
    server.texts.clear()
    for model in (*models, *models):
        name(model=model, base_url=url)
        with Memory.load("m", home=folder) as again:
            assert keys(again.recall("lisboa trains"))[0] == "travel"
            assert again.maintenance.reindex().without_vector == 0
    assert server.texts and not [text for text in server.texts if "\n" in text]
    name()
    with Memory.load("m", home=folder) as again:
        times = [path.stat().st_mtime for path in vector_files(again.replica)]
        again.forget("travel")
        files = vector_files(again.replica)
        assert [path.stat().st_mtime for path in files] == times and len(files) == 2
        assert sorted(again.maintenance.vacuum().after)[:2] == sorted(path.name for path in files)
        left = [_opened(again.replica, path) for path in files]
        assert sorted(kept.vectors.identity.name for kept in left if kept) == sorted(models)
        assert [len(kept.vectors) for kept in left if kept] == [1, 1]


def test_vectors_of_other_models_are_few_and_deleted_after_a_week(
    memory: Memory, name: Name, url: str
) -> None:
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 2)
    own = vectors_file(memory.replica)
    now = own.stat().st_mtime
    others = [own.with_name(f"recall-{n:016x}.vectors") for n in range(4)]
    for days, path in enumerate(others):
        path.write_bytes(b"another program reads this")
        os.utime(path, (now - days * 86_400, now - days * 86_400))
    memory.write("third", "A third text")
    wait_for_vectors(memory, 3)
    assert [path.exists() for path in others] == [True, True, False, False]
    os.utime(others[1], (now - 8 * 86_400, now - 8 * 86_400))
    memory.write("fourth", "A fourth text")
    wait_for_vectors(memory, 4)
    assert [path.exists() for path in others] == [True, False, False, False]


def test_sealed_vault_stores_no_readable_words_or_vectors(tmp_path: Path, name: Name, url: str) -> None:
    name(model="hashed-words", base_url=url)
    home = tmp_path / "sealed"
    with Memory.create(
        "m", "encrypted-ipfs", home=home, provider=str(tmp_path / "at"), passphrase=False
    ) as memory:
        memory.write("drinks", "An espresso machine stands in the kitchen")
        wait_for_vectors(memory, 1)
        kept = load_vectors(memory.replica)
        assert kept is not None
        (row,) = kept._rows.values()
        stored = vectors_file(memory.replica).read_bytes()
        assert row not in stored and b"hashed-words" not in stored and kept.dump()[:40] not in stored
    with Memory.load("m", home=home) as memory:
        again = load_vectors(memory.replica)
        assert again is not None and again.dump() == kept.dump()
        assert memory.recall("espressos").by_meaning


def test_temporarily_unreadable_vectors_are_not_recomputed(
    memory: Memory, name: Name, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with too many open files."""
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 2)

    def too_many_files(path: Path, begin: int, limit: int) -> tuple[bytes, bytes]:
        raise StorageError(f"cannot read {path}: Too many open files")

    with monkeypatch.context() as busy:
        busy.setattr("ipfsmem.device.derived_file.read_in_two_parts", too_many_files)
        assert load_vectors(memory.replica) is None
    kept = load_vectors(memory.replica)
    assert kept is not None and len(kept) == 2


def _garbage(answer: dict[str, Any]) -> web.Response:
    return web.Response(text="<html>a portal</html>", content_type="text/html")


def _nan(answer: dict[str, Any]) -> web.Response:
    answer["data"][0]["embedding"][0] = float("nan")
    return web.json_response(answer)


def _zero(answer: dict[str, Any]) -> web.Response:
    answer["data"][0]["embedding"] = [0.0] * 256
    return web.json_response(answer)


def _fewer(answer: dict[str, Any]) -> web.Response:
    del answer["data"][0]
    return web.json_response(answer)


def _shorter(answer: dict[str, Any]) -> web.Response:
    for one in answer["data"]:
        one["embedding"] = one["embedding"][:100]
    return web.json_response(answer)


def _huge(answer: dict[str, Any]) -> web.Response:
    return web.Response(body=b" " * (1 << 20), content_type="application/json")


def _elsewhere(answer: dict[str, Any]) -> web.Response:
    return web.Response(status=307, headers={"Location": "http://127.0.0.1:9/v1/embeddings"})


def _refuses(answer: dict[str, Any]) -> web.Response:
    return web.json_response({"error": {"message": "no credit"}}, status=402)


ILL = (_garbage, _nan, _zero, _fewer, _shorter, _huge, _elsewhere, _refuses)


@pytest.mark.parametrize("ill", ILL, ids=lambda one: one.__name__)
def test_recall_falls_back_to_words_with_one_notice_if_endpoint_fails(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer, ill: Any
) -> None:
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 2)
    server.sick = ill
    found = memory.recall("kitchen")
    assert keys(found) == ["drinks"] and not found.by_meaning
    assert "recall ranks by words only" in found.notice
    asked = len(server.asked)
    again = memory.recall("kitchen")
    assert keys(again) == ["drinks"] and again.notice == "" and len(server.asked) == asked
    with pytest.raises(ProviderError):
        memory.recall("kitchen", threshold=0.1)


def test_text_refused_by_the_model_delays_no_other_vector(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    for n in range(20):
        memory.write(f"bread{n}", f"Loaf number {n}")
    memory.write("refused", "POISON")
    memory.write("long", "sourdough " * 300 + "TOO LONG")
    server.refuses = lambda text: 400 if "POISON" in text or "TOO LONG" in text else 0
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 23)
    found = memory.maintenance.reindex()
    assert (found.vectors, found.without_vector) == (23, 1)
    assert found.problem == "the model rejected 1 text; recall finds them by words only"
    asked = len(server.asked)
    # One further request: whether the model still has the same dimensions.
    assert memory.maintenance.reindex().without_vector == 1 and len(server.asked) == asked + 1
    assert keys(memory.recall("poison"))[:1] == ["refused"]
    assert keys(memory.recall("lisboa trains"))[:1] == ["travel"]
    assert keys(memory.recall("sourdoughs"))[:1] == ["long"]  # matched by its beginning


def test_question_refused_by_the_model_blocks_no_other_question(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    server.refuses = lambda text: 400 if "POISON" in text else 0
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 2)
    refused = memory.recall("POISON kitchen")
    assert keys(refused) == ["drinks"] and not refused.by_meaning
    assert "query ranked by words only" in refused.notice
    with pytest.raises(ProviderError):
        memory.recall("POISON kitchen", threshold=0.1)
    assert memory.recall("lisboa trains").by_meaning


def test_endpoint_that_refuses_everything_is_not_asked_for_each_text(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    server.refuses = lambda text: 403
    name(model="hashed-words", base_url=url)
    assert "answered 403" in memory.maintenance.reindex().problem
    assert server.refused == 2  # the texts, and then one that every model accepts


@pytest.mark.usefixtures("short_pauses")
def test_unreachable_endpoint_or_missing_key_is_not_an_error(
    memory: Memory, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    name(model="hashed-words", base_url="http://127.0.0.1:9/v1")
    assert keys(memory.recall("kitchen")) == ["drinks"]
    monkeypatch.delenv("MY_KEY", raising=False)
    name(model="hashed-words", base_url="http://127.0.0.1:9/v1", api_key_env="MY_KEY")
    found = memory.recall("kitchen")
    assert keys(found) == ["drinks"] and "MY_KEY is not set" in found.notice
    with pytest.raises(ConfigError, match="MY_KEY is not set") as caught:
        memory.recall("kitchen", threshold=0.5)
    assert caught.value.hint == "export MY_KEY=<the key>"
    monkeypatch.setenv("MY_KEY", "a-key")
    until = time.monotonic() + 60
    while True:  # now a request is sent, and nobody answers
        with pytest.raises((ProviderError, UsageError)) as told:
            memory.recall("kitchen", threshold=0.5)
        if isinstance(told.value, ProviderError):
            break
        assert time.monotonic() < until
        time.sleep(0.02)


def test_api_key_is_read_from_its_variable_and_sent_to_one_address(
    tmp_path: Path, memory: Memory, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = EmbeddingsServer(key="a-long-key")
    with serve(server.app) as address:
        monkeypatch.setenv("MY_KEY", "a-long-key")
        name(model="hashed-words", base_url=f"{address}/v1", api_key_env="MY_KEY")
        wait_for_vectors(memory, 2)
        monkeypatch.setenv("MY_KEY", "another-key")
        said = memory.recall("kitchen").notice
        assert "recall ranks by words only" in said and "another-key" not in said
    name(model="hashed-words", base_url="http://127.0.0.1:9/v1", api_key="a-long-key")
    assert "unknown field `api_key`" in memory.recall("kitchen").notice
    name(model="hashed-words", base_url="http://:a-long-key@127.0.0.1:9/v1")
    said = memory.recall("kitchen").notice
    assert "keys are not allowed in a file" in said and "a-long-key" not in said


def test_status_names_the_embedding_host_and_whether_it_is_local(memory: Memory, name: Name) -> None:
    assert not [line for line in memory.status().notices if "model" in line]
    name(provider="ollama")
    (said,) = [line for line in memory.status().notices if "nomic-embed-text" in line]
    assert "on this machine" in said and "WARNING" not in said
    name(model="m", base_url="http://192.0.2.1/v1")
    (said,) = [line for line in memory.status().notices if "192.0.2.1" in line]
    assert "WARNING: texts and queries are sent to" in said and "not encrypted" in said
    name(model="m", base_url="https://192.0.2.1/v1")
    (said,) = [line for line in memory.status().notices if "192.0.2.1" in line]
    assert "WARNING: texts and queries are sent to" in said and "not encrypted" not in said
    name(provider="someone")
    assert [line for line in memory.status().notices if "unknown provider 'someone' for embeddings" in line]


@pytest.mark.parametrize(
    ("provider", "variable", "model", "host"),
    [
        ("openai", "OPENAI_API_KEY", "text-embedding-3-small", "api.openai.com"),
        # Google turned off text-embedding-004, InitRunner's default, on 14 January 2026.
        ("google", "GOOGLE_API_KEY", "gemini-embedding-001", "generativelanguage.googleapis.com"),
        ("ollama", "", "nomic-embed-text", "127.0.0.1"),
    ],
)
def test_provider_has_a_default_model_that_settings_override(
    memory: Memory,
    name: Name,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
    variable: str,
    model: str,
    host: str,
) -> None:
    def said() -> str:
        return "\n".join(memory.status().notices)

    if variable:
        monkeypatch.delenv(variable, raising=False)
        name(provider=provider)
        assert f"{variable} is not set" in said()
        monkeypatch.setenv(variable, "a key")
    name(provider=provider)
    assert model in said() and host in said()
    name(provider=provider, model="my-own")
    assert "my-own" in said() and model not in said() and host in said()


def test_threshold_requires_a_model_and_is_a_cosine(memory: Memory, name: Name) -> None:
    with pytest.raises(UsageError, match="none is set"):
        memory.recall("kitchen", threshold=0.5)
    with pytest.raises(UsageError) as caught:
        memory.recall("kitchen", threshold=0.5)
    name(
        **dict([caught.value.hint.partition("instance ")[2].partition(",")[0].replace('"', "").split(" = ")])
    )
    assert [line for line in memory.status().notices if "nomic-embed-text" in line]
    with pytest.raises(UsageError, match="-1 to 1"):
        memory.recall("kitchen", threshold=1.5)


def test_threshold_right_after_a_write_finds_the_new_text(memory: Memory, name: Name, url: str) -> None:
    name(model="hashed-words", base_url=url)
    assert keys(memory.recall("espresso", threshold=0.2)) == ["drinks"]
    memory.write("guests", name="Guests", description="what they drink", body="Guests drink espresso, too.")
    assert sorted(keys(memory.recall("espresso", threshold=0.2))) == ["drinks", "guests"]


def test_threshold_in_an_empty_vault_finds_nothing(memory: Memory, name: Name, url: str) -> None:
    name(model="hashed-words", base_url=url)
    for one in memory.list():
        memory.forget(one.key)
    assert keys(memory.recall("espresso", threshold=0.2)) == []


def test_changed_vector_length_under_same_name_is_another_model(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 2)
    server.models["hashed-words"] = 100
    with pytest.raises(ProviderError, match="returns vectors of another model or dimension"):
        memory.recall("kitchen", threshold=0.1)
    kept = load_vectors(memory.replica)
    assert kept is not None and kept.dimension == 256
    name(model="hashed-words", base_url=url, dimensions=100)
    with Memory.load("m", home=memory.replica.folder.parent) as again:  # type: ignore[union-attr]
        wait_for_vectors(again, 2, 100)
        kept = load_vectors(again.replica)
        assert kept is not None and kept.dimension == 100
        assert keys(again.recall("kitchen", threshold=0.1)) == ["drinks"]


def test_embeddings_without_a_provider_follow_that_of_the_model(
    memory: Memory, tmp_path: Path, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    file = tmp_path / "config.toml"
    agent = '[model]\nprovider = "openai"\n'
    file.write_text(f"[embeddings]\ndimensions = 64\n{agent}")
    (said,) = [line for line in memory.status().notices if "text-embedding-3-small" in line]
    assert "sent to api.openai.com, which can read them" in said
    file.write_text(f'[embeddings]\nprovider = "ollama"\n{agent}')
    assert [line for line in memory.status().notices if "nomic-embed-text" in line]
    # A model that is named for dreams alone does not get all texts.
    file.write_text(agent)
    assert not [line for line in memory.status().notices if "api.openai.com" in line]


def test_reindex_with_other_dimensions_rebuilds_all_vectors(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 2)
    server.models["hashed-words"] = 100
    with Refused(
        "Rebuild all vectors: ipfsmem index rebuild. Or set model or dimensions under [embeddings] in the settings file."
    ):
        memory.recall("kitchen", threshold=0.1)
    assert memory.maintenance.reindex().problem == ""
    kept = load_vectors(memory.replica)
    assert kept is not None and kept.dimension == 100 and len(kept) == 2
    assert keys(memory.recall("kitchen", threshold=0.1)) == ["drinks"]


def test_collection_erases_vectors_of_forgotten_scope_without_a_model(
    tmp_path: Path, name: Name, url: str
) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    with Memory.create(
        "p", "encrypted-ipfs", provider=str(stick), passphrase=False, home=tmp_path / "home"
    ) as memory:
        memory.write("a", "tea")
        memory.scope("work").write("b", "milk")
        name(model="hashed-words", base_url=url)
        wait_for_vectors(memory, 2)
        name()
        memory.scopes.forget("work")
        asyncio.run(memory.sync())
        asyncio.run(memory.maintenance.gc())
        left = load_vectors(memory.replica)
        assert left is not None and len(left) == 1


PET = "We adopted a puppy from the shelter"


def ask_until(
    memory: Memory, true: Callable[[Recalled], bool], question: str = "puppies", **how: Any
) -> Recalled:
    """Ask until the answer is as expected."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = memory.recall(question, **how)
        if true(found):
            return found
        time.sleep(0.02)
    raise AssertionError(f"no such answer came to {question}, {how}")


def test_messages_and_events_are_found_by_meaning_once_requested(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    name(model="hashed-words", base_url=url)
    memory.sessions.add("talk", [{"role": "user", "content": PET}, {"role": "assistant", "content": "Nice!"}])
    memory.note("note", text="The roof was mended", speaker="Ana")
    wait_for_vectors(memory, 3)  # a part of a session is a file too
    assert not [text for text in server.texts if text.startswith(PET)]
    server.texts.clear()
    memory.recall("anything", kind="message")
    found = ask_until(memory, lambda one: one.by_meaning, kind="message", explain=True)
    assert found.moments[0].text == PET and "meaning" in found.moments[0].parts
    sent = [text for text in server.texts if text not in ("puppies", "anything")]
    assert sorted(sent) == [PET, f"{PET}\nNice!"]
    server.texts.clear()
    assert ask_until(memory, lambda one: one.by_meaning, "mended", kind="event").moments
    assert [text for text in server.texts if text.startswith("Ana")] == ["Ana: The roof was mended"]
    assert ask_until(memory, lambda one: one.by_meaning, kind="all").moments
    server.refuses = lambda text: 400 if "otter" in text else 0
    memory.sessions.add("other", [{"role": "user", "content": f"The otter number {n}"} for n in range(9)])
    assert memory.maintenance.reindex().without_vector >= 9
    assert not memory.recall("puppies", kind="message").by_meaning
    assert not memory.recall("puppies", kind="all").by_meaning
    assert memory.recall("lisboa trains").by_meaning


def test_message_with_a_new_neighbour_is_embedded_again(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    name(model="hashed-words", base_url=url)
    memory.sessions.add("talk", [{"role": "user", "content": text} for text in ("one", "two", "three")])
    memory.recall("anything", kind="message")
    assert memory.maintenance.reindex().without_vector == 0
    server.texts.clear()
    memory.sessions.pop("talk")
    memory.sessions.add("talk", [{"role": "user", "content": "four"}])
    memory.recall("anything", kind="message")
    assert memory.maintenance.reindex().without_vector == 0
    assert {text for text in server.texts if "\n" in text and " " not in text} == {"two\nfour"}
    memory.sessions.add(
        "talk", [{"role": "user", "content": "x" * 595}, {"role": "user", "content": "last one"}]
    )
    assert memory.maintenance.reindex().without_vector == 0
    assert {"four\n" + "x" * 595, "last one"} <= set(server.texts)  # the last two are too long together
    assert memory.recall("anything", kind="message").by_meaning


def test_forgotten_text_of_any_kind_loses_its_vector(
    tmp_path: Path, memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    name(model="hashed-words", base_url=url)
    work = memory.scope("work")
    for scope in (memory, work):
        scope.sessions.add("talk", [{"role": "user", "content": PET}, {"role": "user", "content": "Nice!"}])
        scope.note("note", text="The roof was mended")
    memory.sessions.add("other", [{"role": "user", "content": "Something else"}])
    memory.recall("anything", kind="all")
    assert memory.maintenance.reindex().without_vector == 0

    def kept() -> set[bytes]:
        found = load_vectors(memory.replica)
        assert found is not None
        return set(found.ids)

    before = kept()
    assert memory.sessions.forget("talk")
    assert len(before - kept()) == 3  # the part as a file, and both messages
    with Memory.load("m", home=tmp_path / "home") as other:
        other.scopes.forget("work")
    assert len(before - kept()) == 3 + 4
    server.texts.clear()
    memory.maintenance.reindex()
    assert not [text for text in server.texts if PET in text]


def test_vectors_of_an_earlier_version_are_used(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    """They cover memories only."""
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 2)
    kept = load_vectors(memory.replica)
    assert kept is not None and memory.replica.folder is not None
    memory.close()
    vectors_file(memory.replica).unlink()
    path = memory.replica.folder / EARLIER_FILE
    earlier = DerivedFiles(b"ipfsmem recall vectors 1", b"ipfsmem/vectors")
    assert earlier.save(memory.replica, path, kept.dump())
    with Memory.load("m", home=memory.replica.folder.parent) as again:
        server.texts.clear()
        assert again.recall("lisboa trains").by_meaning
        assert again.maintenance.reindex().without_vector == 0
        assert not [text for text in server.texts if "\n" in text]
        again.write("third", "A third text")
        wait_for_vectors(again, 3)  # in the file of the model
        assert len(vector_files(again.replica)) == 2 and path.exists()


def searches_for_missing(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets an item for each search for missing vectors."""
    seen: list[str] = []
    follow = Living.follow

    def watched(living: Living) -> Any:
        seen.append("looked")
        return follow(living)

    monkeypatch.setattr(Living, "follow", watched)
    return seen


def wait_until_idle(memory: Memory) -> None:
    """Wait until no thread computes vectors."""
    for thread in threading.enumerate():
        if thread.name == "ipfsmem-vectors":
            thread.join(PATIENCE)
            assert not thread.is_alive()


def test_process_with_complete_vectors_searches_for_no_missing_ones(
    memory: Memory, name: Name, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 2)
    wait_until_idle(memory)
    memory.close()
    assert memory.replica.folder is not None
    home, seen = memory.replica.folder.parent, searches_for_missing(monkeypatch)
    with Memory.load("m", home=home) as again:
        assert again.recall("lisboa trains").by_meaning
        wait_until_idle(again)
        assert not seen
        again.write("pets", "Our greyhound is called Biscuit")
        wait_for_vectors(again, 3)
        wait_until_idle(again)
    assert seen
    seen.clear()
    with Memory.load("m", home=home) as again:
        again.recall("lisboa trains")
        wait_until_idle(again)
        assert not seen
        again.recall("lisboa trains", kind="message")
        wait_until_idle(again)
    assert seen, "of messages nobody had asked before"


@pytest.mark.parametrize("what", ["another process wrote", "the vectors went", "they were of another model"])
def test_note_of_complete_vectors_is_valid_for_its_state_file_and_model(
    memory: Memory, name: Name, url: str, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    name(model="hashed-words", base_url=url)
    wait_for_vectors(memory, 2)
    wait_until_idle(memory)
    memory.close()
    folder, count, dimension = memory.replica.folder, 2, 256
    assert folder is not None
    if what == "another process wrote":
        name()
        with Memory.load("m", home=folder.parent) as other:
            other.write("pets", "Our greyhound is called Biscuit")
        name(model="hashed-words", base_url=url)
        count = 3
    elif what == "the vectors went":
        vectors_file(memory.replica).unlink()
    else:
        name(model="other-words", base_url=url)
        dimension = 128
    with Memory.load("m", home=folder.parent) as again:
        wait_for_vectors(again, count, dimension)


def test_text_refused_by_model_is_retried_after_change_or_on_demand(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    name(model="hashed-words", base_url=url)
    server.refuses = lambda text: 400 if "Lisbon" in text else 0
    assert memory.maintenance.reindex().without_vector == 1
    wait_until_idle(memory)
    memory.close()
    server.refuses = lambda text: 0
    assert memory.replica.folder is not None
    home = memory.replica.folder.parent
    with Memory.load("m", home=home) as again:
        again.write("new", "A text of its own")
        wait_for_vectors(again, 2)
        assert not any("Lisbon" in text for text in server.texts[-1:])
        travel = again.read("travel")
        assert travel is not None
        again.write("travel", "The train to Porto leaves at nine", if_match=travel.sha256)
        wait_for_vectors(again, 3)
    server.refuses = lambda text: 400 if "Porto" in text else 0
    with Memory.load("m", home=home) as again:
        again.write("other", "The bus to Porto leaves at ten")
        assert again.maintenance.reindex().without_vector == 1
    server.refuses = lambda text: 0
    with Memory.load("m", home=home) as again:
        assert again.maintenance.reindex().without_vector == 0


def test_sealed_vectors_and_session_names_are_not_readable_on_disk(
    tmp_path: Path, name: Name, url: str
) -> None:
    name(model="hashed-words", base_url=url)
    home = tmp_path / "sealed"
    with Memory.create(
        "m", "encrypted-ipfs", home=home, provider=str(tmp_path / "at"), passphrase=False
    ) as memory:
        memory.sessions.add("marmalade", [{"role": "user", "content": PET}])
        memory.scope("quinces").note("note", text="The roof was mended")
        memory.recall("anything", kind="all")
        assert memory.maintenance.reindex().without_vector == 0
        kept = load_kept(memory.replica)
        assert kept is not None and {one.name for one in kept.spoken} >= {"marmalade"}
        assert {one.scope for one in kept.spoken} == {"", "quinces"}
        rows = list(kept.vectors._rows.values())
    files = [one for one in (home, tmp_path / "at") for one in one.rglob("*") if one.is_file()]
    assert len(rows) > 2
    assert {".vectors", ".whole"} <= {file.suffix for file in files if file.match("m/recall-*")}
    for file in files:
        stored = file.read_bytes()
        assert not any(row in stored for row in rows)
        assert not any(word in stored for word in (b"marmalade", b"quinces", b"puppy", b"mended"))


def test_concurrent_saves_keep_both_vectors_and_no_forgotten_ones(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer
) -> None:
    """Each process rereads the state and the file before it replaces it."""
    name(model="hashed-words", base_url=url)
    memory.sessions.add("talk", [{"role": "user", "content": PET}])
    memory.recall("anything", kind="message")
    assert memory.maintenance.reindex().without_vector == 0
    assert memory.replica.folder is not None
    with Memory.load("m", home=memory.replica.folder.parent) as other:
        other.recall("anything", kind="message")
        assert other.maintenance.reindex().without_vector == 0
        before = load_vectors(memory.replica)
        assert before is not None
        memory.sessions.forget("talk")
        memory.write("mine", "The ferry to Oslo")
        assert memory.maintenance.reindex().without_vector == 0
        other.write("theirs", "The plane to Rome")
        assert other.maintenance.reindex().without_vector == 0
    after = load_vectors(memory.replica)
    assert after is not None and len(set(before.ids) - set(after.ids)) == 2  # the part, and the message
    with memory.replica.reading():
        there = set(index_of([MemoryStore(memory.replica)]).vectors.values())
    assert len(there) == 4 and there <= set(after.ids)


def test_vector_of_memory_forgotten_during_save_is_not_restored(
    memory: Memory, name: Name, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name(model="hashed-words", base_url=url)
    memory.sessions.add("talk", [{"role": "user", "content": PET}])
    memory.recall("anything", kind="message")
    assert memory.maintenance.reindex().without_vector == 0
    for thread in threading.enumerate():
        if thread.name == "ipfsmem-vectors":
            thread.join()  # the single call below stores everything
    before = load_vectors(memory.replica)
    assert before is not None and memory.replica.folder is not None
    memory.write("third", "A third text")
    times = []

    def meanwhile(replica: Any, kept: Any) -> Any:
        made = prepared(replica, kept)
        times.append(len(kept.vectors))
        if len(times) == 1:
            other.sessions.forget("talk")
        return made

    with Memory.load("m", home=memory.replica.folder.parent) as other:
        monkeypatch.setattr("ipfsmem.memories.meaning.prepared", meanwhile)
        assert memory.maintenance.reindex().without_vector == 0
    after = load_vectors(memory.replica)
    assert after is not None and len(set(before.ids) - set(after.ids)) == 2 and len(times) > 1


def test_vectors_are_stored_while_those_of_the_previous_model_are_pending(
    memory: Memory, name: Name, url: str, server: EmbeddingsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go = threading.Event(), threading.Event()

    def waiting(replica: Any, kept: Any) -> Any:
        made = prepared(replica, kept)
        if len(kept.vectors) == 1:
            time.sleep(0.1)  # after such a long save the next one is the last
        elif not reached.is_set():
            reached.set()
            assert go.wait(PATIENCE)
        return made

    monkeypatch.setattr("ipfsmem.memories.meaning._FIRST", 1)
    monkeypatch.setattr("ipfsmem.memories.meaning.prepared", waiting)
    name(model="hashed-words", base_url=url)
    memory.recall("anything")
    assert reached.wait(PATIENCE)
    name(model="other-words", base_url=url)
    memory.recall("anything")
    go.set()
    for thread in threading.enumerate():
        if thread.name == "ipfsmem-vectors":
            thread.join(PATIENCE)
    server.refuses = lambda text: 400 if "espresso" in text else 0
    memory.maintenance.reindex()
    models = [found.vectors.identity.name for path in vector_files(memory.replica) if (found := _opened(memory.replica, path))]  # fmt: skip
    assert "other-words" in models


@pytest.mark.parametrize("fails", [False, True], ids=["sync", "sync that cannot publish"])
def test_vectors_of_texts_forgotten_elsewhere_are_erased_by_a_sync(
    fails: bool, tmp_path: Path, name: Name, url: str
) -> None:
    """Also those of former models."""
    provider, wallet = SimProvider(SimCloud()), Unlock(RawKeySigner(bytes(31) + b"\x0e"))
    with load(tmp_path, "a", provider, wallet=wallet) as a:
        a.write("drinks", "An espresso machine stands in the kitchen")
        a.write("travel", "The train to Lisbon leaves at nine")
        a.sessions.add("talk", [{"role": "user", "content": PET}])
        asyncio.run(a.sync())
        models = {"hashed-words": 256, "other-words": 128}
        for model in models:
            name(model=model, base_url=url)
            a.recall("anything", kind="all")
            assert a.maintenance.reindex().without_vector == 0
        files = vector_files(a.replica)
        with load(tmp_path, "b", provider, wallet=wallet) as b:
            asyncio.run(b.sync())
            b.forget("travel")
            b.sessions.forget("talk")
            asyncio.run(b.sync())
        if fails:
            a.write("more", "Nobody takes this")
            provider.faults.reset_after = 0
            with pytest.raises(ProviderError):
                asyncio.run(a.sync())
        else:
            asyncio.run(a.sync())
        assert a.read("travel") is None and set(vector_files(a.replica)) == set(files)
        kept = [found.vectors for path in files if (found := _opened(a.replica, path)) is not None]
        assert sorted(one.identity.name for one in kept) == sorted(models)
        assert [len(one) for one in kept] == [1, 1]
