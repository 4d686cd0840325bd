"""Read the weights of an ONNX file by name: the required subset of its format (protocol buffers; onnx.proto,
IR version 8).

Only a file with a known hash is read; anything unexpected is an error all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ipfsmem.errors import FormatError

if TYPE_CHECKING:
    from numpy import ndarray

#: Field numbers: the graph in a model, weights and nodes in a graph; a weight's dimensions, type, name,
#: bytes; a node's inputs and outputs.
_GRAPH, _NODE, _WEIGHTS = 7, 1, 5
_DIMENSIONS, _TYPE, _NAME, _BYTES = 1, 2, 8, 9
_IN, _OUT = 1, 2
#: The types that are used.
_TYPES: Final = {1: "<f4", 3: "i1"}


class Onnx(NamedTuple):
    """The weights of a model by name, and its nodes: inputs and outputs in order."""

    weights: dict[str, ndarray]
    nodes: list[tuple[list[str], list[str]]]


def read_onnx(data: bytes) -> Onnx:
    """Return the weights and nodes. Raises FormatError."""
    weights, nodes = dict[str, "ndarray"](), list[tuple[list[str], list[str]]]()
    try:
        for number, graph in _fields(memoryview(data)):
            if number != _GRAPH or isinstance(graph, int):
                continue
            for kind, value in _fields(graph):
                if isinstance(value, int):
                    continue
                if kind == _WEIGHTS:
                    name, array = _tensor(value)
                    if array is not None:
                        weights[name] = array
                elif kind == _NODE:
                    ends: dict[int, list[str]] = {_IN: [], _OUT: []}
                    for field, text in _fields(value):
                        if field in ends and not isinstance(text, int):
                            ends[field].append(bytes(text).decode())
                    nodes.append((ends[_IN], ends[_OUT]))
    except (IndexError, ValueError) as error:
        raise FormatError(f"not a readable ONNX file: {error}") from None
    return Onnx(weights, nodes)


def _tensor(data: memoryview) -> tuple[str, ndarray | None]:
    import numpy

    shape: list[int] = []
    kind, name, raw = 0, "", memoryview(b"")
    for field, value in _fields(data):
        if field == _DIMENSIONS:
            shape += [value] if isinstance(value, int) else _packed(value)
        elif field == _TYPE and isinstance(value, int):
            kind = value
        elif field == _NAME and not isinstance(value, int):
            name = bytes(value).decode()
        elif field == _BYTES and not isinstance(value, int):
            raw = value
    if kind not in _TYPES:
        return name, None
    return name, numpy.frombuffer(raw, dtype=_TYPES[kind]).reshape(shape)


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield each field of a message: its number, and its value or bytes."""
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _number(data, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, at = _number(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of kind {kind}")
        if at + size > len(data):
            raise ValueError("it ends too early")
        yield tag >> 3, data[at : at + size]
        at += size


def _packed(data: memoryview) -> list[int]:
    values, at = list[int](), 0
    while at < len(data):
        value, at = _number(data, at)
        values.append(value)
    return values


def _number(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")
