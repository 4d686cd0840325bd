"""Vectors of texts from a model in a directory of the user's (`embeddings.path`): ONNX weights and a tokenizer, run by onnxruntime on
this machine. Nothing is downloaded.

The layout is that of sentence-transformers: model.onnx (or onnx/model.onnx), tokenizer.json, and the files that say how many
tokens are read (sentence_bert_config.json, tokenizer_config.json), how their vectors become one (1_Pooling/config.json), and
what is put before questions and texts (config_sentence_transformers.json; for E5 and BGE, whose files leave it out, by name).
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.recall.embedder import EmbedderIdentity
from ipfsmem.recall.vectors import MAX_DIMENSION

_HINT: Final = "Name another directory: ipfsmem config set embeddings.path DIR. Or use none: ipfsmem config set embeddings.path --default"
_INSTALL: Final = "pip install 'ipfsmem[onnx]'"
_SCHEME: Final = "1"  # another when the same text gets another vector
#: Tokens processed together, and number of texts: attention grows with the square of a text's length.
_TOKENS, _TOGETHER = 4_096, 16
#: Maximum tokens of a text if the model's files do not specify it.
_USUAL: Final = 512
_CONFIG_MAX: Final = 64 * 1024 * 1024
#: A model up to this size is hashed whole, of a larger one as many blocks spread over it.
_WHOLE, _BLOCK, _BLOCKS = 256 * 1024 * 1024, 256 * 1024, 256
#: Nanoseconds after which a file that was written shows it by its time.
_TICK: Final = 2_000_000_000
_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_POOLINGS: Final = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
#: Prefixes of questions and texts, by name, for models whose files lack them.
_FAMILIES: Final = (
    (re.compile(r"(^|[-_/])e5[-_].*instruct"), "Instruct: Given a question, retrieve passages that answer it\nQuery: ", ""),
    (re.compile(r"(^|[-_/])e5[-_]"), "query: ", "passage: "),
    (re.compile(r"(^|[-_/])bge-(small|base|large)-en"), "Represent this sentence for searching relevant passages: ", ""),
    (re.compile(r"(^|[-_/])bge-(small|base|large)-zh"), "为这个句子生成表示以用于检索相关文章：", ""),
)  # fmt: skip


class _Plan(NamedTuple):
    """The contents of a directory's files."""

    model: Path
    files: tuple[Path, ...]
    #: How token vectors are pooled; "" if unspecified.
    pooling: str
    #: Whether something other than pooling and normalising comes after it.
    more: bool
    tokens: int
    padding: int
    question: str
    text: str


class _Loaded(NamedTuple):
    session: Any
    tokenizer: Any
    inputs: tuple[str, ...]
    output: str
    pooling: str


_loading = threading.Lock()
#: Cache of directories by path and state of their files; of loaded models by hash.
_known: dict[tuple[object, ...], tuple[_Plan, EmbedderIdentity]] = {}
_loaded: dict[str, _Loaded] = {}


class DirectoryEmbedder:
    """See ipfsmem.recall.embedder.Embedder."""

    #: Models differ in how similar unrelated texts are, and their files do not say it.
    unrelated = -1.0
    waits = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """`settings`: `path`, as the user wrote it; `question`: whether questions are embedded.

        Raises ConfigError when a file is missing or damaged, a package is not installed, or another setting
        names another model.
        """
        for name in ("provider", "model", "base_url", "dimensions"):
            if settings.get(name):
                raise ConfigError(
                    f"embeddings.path and embeddings.{name} cannot both be set",
                    hint=f"Remove the other from the settings file: ipfsmem config set embeddings.{name} --default",
                )
        self._folder = Path(settings["path"]).expanduser()
        absent = [name for name in ("onnxruntime", "tokenizers", "numpy") if find_spec(name) is None]
        if absent:
            raise ConfigError(
                f"the model in {self._folder} cannot be run: {' and '.join(absent)} is not installed",
                hint=_INSTALL,
            )
        self._plan, self.identity = _look(self._folder)
        self._prefix = self._plan.question if settings.get("question") else self._plan.text

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See the contract. Raises ConfigError for files that onnxruntime or tokenizers refuse,
        ProviderRefused when the model fails on one of these texts."""
        loaded = _load(self._folder, self._plan, self.identity)
        try:
            tokens = [
                one.ids for one in loaded.tokenizer.encode_batch([self._prefix + text for text in texts])
            ]
            rows: list[list[float]] = [[]] * len(texts)
            for some in _batches(tokens):
                vectors = _vectors(loaded, [tokens[at] for at in some], self._plan.padding)
                for at, vector in zip(some, vectors, strict=True):
                    rows[at] = vector
        except ConfigError:
            raise
        except (
            Exception
        ) as error:  # onnxruntime and tokenizers raise plain exceptions when they refuse a file
            broken = _broken(self._folder, f"it does not run: {_line(error)}")
            raise ProviderRefused(str(broken), hint=_HINT) from None
        return rows

    def knows(self, question: str) -> float:
        """See the contract: the user chose the model for their language."""
        return 1.0

    async def close(self) -> None:
        """Do nothing: nothing is open."""


# -- what a directory holds --------------------------------------------------------------------------------------


def _look(folder: Path) -> tuple[_Plan, EmbedderIdentity]:
    """Return a directory's plan and model identity; re-read only when a file changed."""
    plan = _plan(folder)
    try:
        state = tuple((str(file), *_stamp(file)) for file in plan.files)
        if state in _known:
            return _known[state]
        entry = plan, _identity(folder, plan)
    except OSError as error:
        raise _broken(folder, f"{error.filename}: {error.strerror}") from None
    # A file just written may be rewritten within one tick of the clock, and look the same.
    if max(stamp[2] for stamp in state) < time.time_ns() - _TICK:
        _known[state] = entry
    return entry


def _stamp(file: Path) -> tuple[int, int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _plan(folder: Path) -> _Plan:
    if not folder.is_dir():
        raise _broken(folder, "it is not a directory")
    model = _weights(folder)
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        raise _broken(folder, "tokenizer.json is missing")
    names = (
        "config.json",
        "tokenizer_config.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
    )
    config, of_tokens, of_lengths, of_prompts = (_read(folder, name) for name in names)
    modules = _modules(folder)
    pooled = next((path for kind, path in modules if kind == "Pooling"), "1_Pooling")
    question, text = _prompts(folder, of_prompts, config)
    files = [
        model,
        *sorted(model.parent.glob(f"{model.name}_data*")),
        *sorted(model.parent.glob(f"{model.name}.data")),
    ]
    others = ("modules.json", f"{pooled}/config.json", *names)
    files += [tokenizer, *(folder / name for name in others if (folder / name).is_file())]
    return _Plan(
        model,
        tuple(files),
        _pooling(folder, _read(folder, f"{pooled}/config.json")),
        any(kind not in ("Transformer", "Pooling", "Normalize") for kind, _ in modules),
        _length(of_lengths, of_tokens, config),
        _number(config.get("pad_token_id")) or 0,
        question,
        text,
    )


def _weights(folder: Path) -> Path:
    """Return the model file: model.onnx if there are several."""
    for place in (folder, folder / "onnx"):
        files = sorted(place.glob("*.onnx"))
        usual = place / "model.onnx"
        if usual in files or len(files) == 1:
            return usual if usual in files else files[0]
        if files:
            raise _broken(
                folder,
                f"it has {len(files)} models and none is named model.onnx: {', '.join(one.name for one in files[:4])}",
            )
    raise _broken(folder, "model.onnx and onnx/model.onnx are missing")


def _read(folder: Path, name: str) -> dict[str, Any]:
    """Return a settings file; {} if absent."""
    value = _json(folder, name)
    if value is not None and not isinstance(value, dict):
        raise _broken(folder, f"{name} is not a JSON object")
    return value or {}


def _json(folder: Path, name: str) -> Any:
    try:
        with (folder / name).open("rb") as file:
            data = file.read(_CONFIG_MAX + 1)
        if len(data) > _CONFIG_MAX:
            raise _broken(folder, f"{name} is larger than 64 MiB")
        return json.loads(data)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _broken(folder, f"{name} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise _broken(folder, f"{name} is not JSON in UTF-8") from None


def _modules(folder: Path) -> list[tuple[str, str]]:
    """Return the steps of a model of sentence-transformers, each with its folder."""
    rows = _json(folder, "modules.json")
    if rows is None:
        return []
    if not isinstance(rows, list) or not all(isinstance(one, dict) for one in rows):
        raise _broken(folder, "modules.json is not a list of objects")
    steps = [(str(one.get("type", "")).rpartition(".")[2], str(one.get("path", ""))) for one in rows]
    if any(Path(path).is_absolute() or ".." in Path(path).parts for _, path in steps):
        raise _broken(folder, "modules.json names a path outside of the directory")
    return steps


def _pooling(folder: Path, config: Mapping[str, Any]) -> str:
    names = [name for key, name in _POOLINGS.items() if config.get(key) is True]
    if isinstance(config.get("pooling_mode"), str):
        names = [config["pooling_mode"]]
    others = [
        key
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value is True and key not in _POOLINGS
    ]
    if others or len(names) > 1 or any(one not in _POOLINGS.values() for one in names):
        raise _broken(folder, f"its pooling is not supported: {', '.join([*names, *others])}")
    return names[0] if names else ""


def _prompts(folder: Path, section: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the prefixes of questions and of texts."""
    prompts = section.get("prompts")
    if isinstance(prompts, dict) and prompts:
        usual = prompts.get(str(section.get("default_prompt_name")), "")
        question = prompts.get("query", usual)
        text = next((prompts[name] for name in ("document", "passage", "corpus") if name in prompts), usual)
        if not isinstance(question, str) or not isinstance(text, str):
            raise _broken(folder, "a prompt in config_sentence_transformers.json is not a text")
        return question, text
    for name in (str(config.get("_name_or_path", "")), _name(folder)):
        for family, question, text in _FAMILIES:
            if family.search(name.lower()):
                return question, text
    return "", ""


def _length(of_lengths: Mapping[str, Any], of_tokens: Mapping[str, Any], config: Mapping[str, Any]) -> int:
    """Return the maximum tokens of a text. Without a known limit, files contain a huge number."""
    position = _number(config.get("max_position_embeddings"))
    # RoBERTa's positions begin after that of padding.
    positions = (
        position - 2 if config.get("model_type") in ("roberta", "xlm-roberta", "camembert") else position
    )
    lengths = [
        _number(of_lengths.get("max_seq_length")),
        _number(of_tokens.get("model_max_length")),
        positions,
    ]
    return min([one for one in lengths if 2 < one < 1_000_000], default=_USUAL)


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _identity(folder: Path, plan: _Plan) -> EmbedderIdentity:
    """Return a hash of all on which vectors depend, so another model at the same path is another one."""
    hashed = sha256(f"{_SCHEME}\n{plan.pooling}\n{plan.tokens}\n{plan.question}\n{plan.text}".encode())
    for file in plan.files:
        hashed.update(f"\n{file.relative_to(folder)}\n".encode())
        for block in _blocks(file):
            hashed.update(block)
    return EmbedderIdentity(_name(folder), "ONNX in a directory", hashed.hexdigest())


def _name(folder: Path) -> str:
    """Return the model's name: the directory's, or in a Hugging Face cache the repository's."""
    path = folder.absolute()
    if path.parent.name == "snapshots" and path.parent.parent.name.startswith("models--"):
        return path.parent.parent.name.rpartition("--")[2]
    return path.name or "model"


def _blocks(file: Path) -> Iterator[bytes]:
    size = file.stat().st_size
    yield f"{size}\n".encode()
    with file.open("rb") as opened:
        if size <= _WHOLE:
            while block := opened.read(_BLOCK):
                yield block
            return
        for number in range(_BLOCKS):
            opened.seek((size - _BLOCK) * number // (_BLOCKS - 1))
            yield opened.read(_BLOCK)


def _broken(folder: Path, why: str) -> ConfigError:
    return ConfigError(f"the model in {folder} cannot be used: {why}", hint=_HINT)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


# -- run ---------------------------------------------------------------------------------------------------------


def _load(folder: Path, plan: _Plan, identity: EmbedderIdentity) -> _Loaded:
    """Return the model, read once in this process."""
    with _loading:
        if identity.hash not in _loaded:
            try:
                import onnxruntime
                from tokenizers import Tokenizer

                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = max(1, (os.cpu_count() or 1) // 2)
                # Waiting threads must not keep the machine busy, nor its messages mix with ours.
                options.add_session_config_entry("session.intra_op.allow_spinning", "0")
                options.log_severity_level = 4
                session = onnxruntime.InferenceSession(
                    str(plan.model), options, providers=["CPUExecutionProvider"]
                )
                tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
                tokenizer.no_padding()
                tokenizer.enable_truncation(plan.tokens)
            except Exception as error:  # as above
                raise _broken(folder, f"it cannot be loaded: {_line(error)}") from None
            _loaded[identity.hash] = _fitting(folder, plan, session, tokenizer)
        return _loaded[identity.hash]


def _fitting(folder: Path, plan: _Plan, session: Any, tokenizer: Any) -> _Loaded:
    """Match inputs and outputs: the text's vector if the model returns one, else those of its tokens."""
    inputs = tuple(one.name for one in session.get_inputs())
    unknown = sorted(set(inputs) - _INPUTS)
    if unknown or "input_ids" not in inputs:
        raise _broken(folder, f"it takes {', '.join(unknown) or 'no input_ids'}, which is not supported")
    outputs = {one.name: len(one.shape) for one in session.get_outputs()}
    for name in ("sentence_embedding", *outputs):
        if outputs.get(name) == 2:
            return _Loaded(session, tokenizer, inputs, name, "")
    if plan.more:
        raise _broken(
            folder, "modules.json has a step after pooling, and the ONNX file gives no sentence_embedding"
        )
    if not plan.pooling:
        raise _broken(folder, "1_Pooling/config.json is missing, so how to pool is not known")
    for name in ("last_hidden_state", "token_embeddings", *outputs):
        if outputs.get(name) == 3:
            return _Loaded(session, tokenizer, inputs, name, plan.pooling)
    raise _broken(folder, "it returns vectors neither of a text nor of its tokens")


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield indexes of texts of similar length to be processed together."""
    some: list[int] = []
    for at in sorted(range(len(tokens)), key=lambda at: len(tokens[at])):
        if some and (len(some) == _TOGETHER or (len(some) + 1) * len(tokens[at]) > _TOKENS):
            yield some
            some = []
        some.append(at)
    if some:
        yield some


def _vectors(loaded: _Loaded, tokens: Sequence[Sequence[int]], padding: int) -> list[list[float]]:
    import numpy

    longest = max(1, *map(len, tokens))
    ids = numpy.full((len(tokens), longest), padding, numpy.int64)
    mask = numpy.zeros((len(tokens), longest), numpy.int64)
    for row, one in enumerate(tokens):
        ids[row, : len(one)], mask[row, : len(one)] = one, 1
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
    (vectors,) = loaded.session.run([loaded.output], {name: inputs[name] for name in loaded.inputs})
    vectors = numpy.asarray(vectors, numpy.float64)
    if loaded.pooling == "cls":
        vectors = vectors[:, 0]
    elif loaded.pooling == "lasttoken":
        vectors = vectors[numpy.arange(len(tokens)), numpy.maximum(mask.sum(1) - 1, 0)]
    elif loaded.pooling == "max":
        vectors = numpy.where(mask[:, :, None] == 1, vectors, -numpy.inf).max(1)
    elif loaded.pooling == "mean":
        vectors = (vectors * mask[:, :, None]).sum(1) / numpy.maximum(mask.sum(1), 1)[:, None]
    length = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    if (
        vectors.ndim != 2
        or not 0 < vectors.shape[1] <= MAX_DIMENSION
        or not numpy.isfinite(vectors).all()
        or not length.all()
    ):
        raise ValueError("a vector is empty, too long, or has numbers that are not finite")
    return [[float(number) for number in row] for row in vectors / length]
