"""all-MiniLM-L6-v2 in NumPy: six BERT layers (Devlin et al. 2018) over 384 numbers per piece, averaged, normalised.

Texts of a batch are concatenated without padding: all but attention is one product. Weights are signed bytes
with a scale per column; those of the word list stay bytes. For a single question the others are expanded
layer by layer in a cache-sized buffer: keeping all takes three times as long as passing through them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


class _Stored(NamedTuple):
    """A linear step as stored in the file."""

    weight: Any
    scale: Any
    bias: Any


class _Linear(NamedTuple):
    weight: Any
    bias: Any


class _Norm(NamedTuple):
    weight: Any
    bias: Any


class _StoredLayer(NamedTuple):
    #: In the order of `_PRODUCTS`.
    steps: list[_Stored]
    attended: _Norm
    ended: _Norm


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
        """Read the weights. Raises FormatError for another network."""
        try:
            self._words = onnx.weights["inner.embeddings.word_embeddings.weight_q"]
            self._scales = onnx.weights["inner.embeddings.word_embeddings.weight_scale"]
            places = onnx.weights["inner.embeddings.position_embeddings.weight_q"].astype("f4")
            places *= onnx.weights["inner.embeddings.position_embeddings.weight_scale"]
            self._places = places + onnx.weights["inner.embeddings.token_type_embeddings.weight"][0]
            self._begun = _norm(onnx, "inner.embeddings.LayerNorm")
            by_bias = _products(onnx)
            self._stored = [_stored(onnx, by_bias, number) for number in range(LAYERS)]
            self._asked, self._layers = 0, list[_Layer]()
        except KeyError as error:
            raise FormatError(f"this network has no {error}") from None

    def vectors(self, texts: Sequence[Sequence[int]]) -> ndarray:
        """Return a vector of length 1 for each text, given as 1 to 512 piece numbers."""
        import numpy

        ends = numpy.cumsum([len(text) for text in texts])
        spans = [slice(int(end) - len(text), int(end)) for text, end in zip(texts, ends, strict=True)]
        pieces = numpy.concatenate([numpy.asarray(text) for text in texts])
        x = self._words[pieces].astype("f4") * self._scales[pieces]
        for span in spans:
            x[span] += self._places[: span.stop - span.start]
        x = _normed(x, self._begun)
        for layer in self._in_order():
            x = self._through(layer, x, spans)
        means = numpy.stack([x[span].mean(axis=0) for span in spans])
        return numpy.asarray(means / numpy.linalg.norm(means, axis=1, keepdims=True))

    def _in_order(self) -> Iterable[_Layer]:
        """Return the layers; of the first question none is kept."""
        import numpy

        self._asked += 1
        if self._asked == 1:
            room = numpy.empty(_layer_size(self._stored[0]), dtype="f4")
            return (_layer(stored, room) for stored in self._stored)
        if not self._layers:
            self._layers = [_layer(one, numpy.empty(_layer_size(one), dtype="f4")) for one in self._stored]
        return self._layers

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


def _products(onnx: Onnx) -> dict[str, str]:
    """Map each linear step's bias to the name of its matrix: steps with a bias use the product in a `val_N`."""
    outputs = {
        outs[0]: ins[1]
        for ins, outs in onnx.nodes
        if len(ins) == 2 and f"{ins[1]}_q" in onnx.weights and outs
    }
    weights = {}
    for ins, _ in onnx.nodes:
        if len(ins) == 2 and ins[0] in outputs and ins[1].endswith(".bias"):
            weights[ins[1]] = outputs[ins[0]]
    return weights


def _norm(onnx: Onnx, name: str) -> _Norm:
    return _Norm(onnx.weights[f"{name}.weight"], onnx.weights[f"{name}.bias"])


def _stored(onnx: Onnx, by_bias: dict[str, str], number: int) -> _StoredLayer:
    at = f"inner.encoder.layer.{number}"
    steps = []
    for product in _PRODUCTS:
        bias = f"{at}.{product}.bias"
        name = by_bias[bias]
        steps.append(_Stored(onnx.weights[f"{name}_q"], onnx.weights[f"{name}_scale"], onnx.weights[bias]))
    return _StoredLayer(
        steps, _norm(onnx, f"{at}.attention.output.LayerNorm"), _norm(onnx, f"{at}.output.LayerNorm")
    )


def _layer_size(stored: _StoredLayer) -> int:
    return sum(step.weight.size for step in stored.steps)


def _layer(stored: _StoredLayer, room: Any) -> _Layer:
    """Return a layer with its weights in `room`."""
    import numpy

    query, key, value, answered, wide, narrow = stored.steps
    asked, at = room[: 3 * query.weight.size].reshape(DIMENSION, 3 * DIMENSION), 3 * query.weight.size
    for place, step in enumerate((query, key, value)):
        numpy.multiply(step.weight, step.scale, out=asked[:, place * DIMENSION : (place + 1) * DIMENSION])
    # Attention's divisor is folded into the query.
    part = numpy.float32(1 / sqrt(DIMENSION // _HEADS))
    asked[:, :DIMENSION] *= part
    steps = []
    for step in (answered, wide, narrow):
        weight = room[at : at + step.weight.size].reshape(step.weight.shape)
        at += step.weight.size
        steps.append(_Linear(numpy.multiply(step.weight, step.scale, out=weight), step.bias))
    bias = numpy.concatenate([query.bias * part, key.bias, value.bias])
    return _Layer(_Linear(asked, bias), steps[0], stored.attended, steps[1], steps[2], stored.ended)


def _normed(x: Any, norm: _Norm) -> Any:
    import numpy

    x = x - x.mean(axis=-1, keepdims=True)
    x /= numpy.sqrt((x * x).mean(axis=-1, keepdims=True) + numpy.float32(_SMALL))
    x *= norm.weight
    x += norm.bias
    return x


def _gelu(x: Any) -> Any:
    """Return x times the share of a normal distribution below it, by Abramowitz and Stegun 7.1.26: off by
    less than 2e-7."""
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
