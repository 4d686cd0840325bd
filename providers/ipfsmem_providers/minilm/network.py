"""all-MiniLM-L6-v2 in NumPy: six layers of BERT (Devlin et al. 2018) over 384 numbers a piece, their mean, of length 1.

Texts of a batch stand one after the other, without padding: all but attention, which is of each text alone, is one product for
all. The weights are signed bytes with a scale for each column, made numbers once; those of the word list stay bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ipfsmem.errors import FormatError
from ipfsmem_providers.minilm.onnx_weights import Onnx

if TYPE_CHECKING:
    from numpy import ndarray

DIMENSION: Final = 384
LAYERS: Final = 6
_HEADS: Final = 12
_SMALL: Final = 1e-12
_PRODUCTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


class _Linear(NamedTuple):
    weight: Any
    bias: Any


class _Norm(NamedTuple):
    weight: Any
    bias: Any


class _Layer(NamedTuple):
    #: Query, key and value side by side.
    asked: _Linear
    answered: _Linear
    attended: _Norm
    wide: _Linear
    narrow: _Linear
    ended: _Norm


class Network:
    """The model, ready to be asked."""

    def __init__(self, onnx: Onnx) -> None:
        """Raises FormatError where it is another network."""
        try:
            self._words = onnx.weights["inner.embeddings.word_embeddings.weight_q"]
            self._scales = onnx.weights["inner.embeddings.word_embeddings.weight_scale"]
            places = onnx.weights["inner.embeddings.position_embeddings.weight_q"].astype("f4")
            places *= onnx.weights["inner.embeddings.position_embeddings.weight_scale"]
            self._places = places + onnx.weights["inner.embeddings.token_type_embeddings.weight"][0]
            self._begun = _norm(onnx, "inner.embeddings.LayerNorm")
            by_bias = _products(onnx)
            self._layers = [_layer(onnx, by_bias, number) for number in range(LAYERS)]
        except KeyError as error:
            raise FormatError(f"this network has no {error}") from None

    def vectors(self, texts: Sequence[Sequence[int]]) -> ndarray:
        """A vector of length 1 for each text, given as numbers of its pieces, at least one and at most 512."""
        import numpy

        ends = numpy.cumsum([len(text) for text in texts])
        spans = [slice(int(end) - len(text), int(end)) for text, end in zip(texts, ends, strict=True)]
        pieces = numpy.concatenate([numpy.asarray(text) for text in texts])
        x = self._words[pieces].astype("f4") * self._scales[pieces]
        for span in spans:
            x[span] += self._places[: span.stop - span.start]
        x = _normed(x, self._begun)
        for layer in self._layers:
            x = self._through(layer, x, spans)
        means = numpy.stack([x[span].mean(axis=0) for span in spans])
        return numpy.asarray(means / numpy.linalg.norm(means, axis=1, keepdims=True))

    def _through(self, layer: _Layer, x: Any, spans: Sequence[slice]) -> Any:
        import numpy

        asked = x @ layer.asked.weight
        asked += layer.asked.bias
        mixed = numpy.empty_like(x)
        for span in spans:
            size = span.stop - span.start
            query, key, value = (
                asked[span].reshape(size, 3, _HEADS, DIMENSION // _HEADS).transpose(1, 2, 0, 3)
            )
            weights = query @ key.transpose(0, 2, 1)
            weights -= weights.max(axis=-1, keepdims=True)
            numpy.exp(weights, out=weights)
            weights /= weights.sum(axis=-1, keepdims=True)
            mixed[span] = (weights @ value).transpose(1, 0, 2).reshape(size, DIMENSION)
        x = _normed(mixed @ layer.answered.weight + layer.answered.bias + x, layer.attended)
        wide = x @ layer.wide.weight
        wide += layer.wide.bias
        return _normed(_gelu(wide) @ layer.narrow.weight + layer.narrow.bias + x, layer.ended)


def _products(onnx: Onnx) -> dict[str, Any]:
    """The matrix of each linear step, by the name of its bias: the steps that add one take what a product of `val_N` gave."""
    made = {
        outs[0]: ins[1]
        for ins, outs in onnx.nodes
        if len(ins) == 2 and f"{ins[1]}_q" in onnx.weights and outs
    }
    found = {}
    for ins, _ in onnx.nodes:
        if len(ins) == 2 and ins[0] in made and ins[1].endswith(".bias"):
            name = made[ins[0]]
            found[ins[1]] = onnx.weights[f"{name}_q"].astype("f4") * onnx.weights[f"{name}_scale"]
    return found


def _linear(onnx: Onnx, by_bias: dict[str, Any], name: str) -> _Linear:
    return _Linear(by_bias[f"{name}.bias"], onnx.weights[f"{name}.bias"])


def _norm(onnx: Onnx, name: str) -> _Norm:
    return _Norm(onnx.weights[f"{name}.weight"], onnx.weights[f"{name}.bias"])


def _layer(onnx: Onnx, by_bias: dict[str, Any], number: int) -> _Layer:
    import numpy

    at = f"inner.encoder.layer.{number}"
    query, key, value, answered, wide, narrow = (_linear(onnx, by_bias, f"{at}.{name}") for name in _PRODUCTS)
    part = 1 / sqrt(DIMENSION // _HEADS)  # what attention divides by goes into the query
    asked = _Linear(
        numpy.concatenate([query.weight * numpy.float32(part), key.weight, value.weight], axis=1),
        numpy.concatenate([query.bias * numpy.float32(part), key.bias, value.bias]),
    )
    attended, ended = _norm(onnx, f"{at}.attention.output.LayerNorm"), _norm(onnx, f"{at}.output.LayerNorm")
    return _Layer(asked, answered, attended, wide, narrow, ended)


def _normed(x: Any, norm: _Norm) -> Any:
    import numpy

    x = x - x.mean(axis=-1, keepdims=True)
    x /= numpy.sqrt((x * x).mean(axis=-1, keepdims=True) + numpy.float32(_SMALL))
    x *= norm.weight
    x += norm.bias
    return x


def _gelu(x: Any) -> Any:
    """x times the share of a normal distribution below it, by Abramowitz and Stegun 7.1.26: off by less than 2e-7."""
    import numpy

    far = numpy.abs(x)
    far *= numpy.float32(1 / sqrt(2))
    t = far * numpy.float32(0.3275911)
    t += 1
    numpy.reciprocal(t, out=t)
    sum = t * numpy.float32(1.061405429)
    for term in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        sum += numpy.float32(term)
        sum *= t
    far *= far
    numpy.negative(far, out=far)
    numpy.exp(far, out=far)
    sum *= far  # 1 - erf(|x| / sqrt 2)
    sum *= numpy.float32(-0.5)
    sum += 1  # the share below |x|
    below = numpy.where(x < 0, 1 - sum, sum)
    below *= x
    return below
