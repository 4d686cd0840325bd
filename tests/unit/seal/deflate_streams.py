"""Raw deflate streams written bit by bit: valid ones as any compressor may write them, and invalid ones.

No code of zlib is used, so that a verdict does not depend on the writer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

END = 256
#: The order in which the lengths of the code lengths are written (RFC 1951, 3.2.7).
ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)
FIXED = [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8
Code = dict[int, tuple[int, int]]


class Bits:
    """Bits from the lowest of each byte on; Huffman codes are written from their highest bit."""

    def __init__(self) -> None:
        self.bits: list[int] = []

    def number(self, value: int, width: int) -> Bits:
        self.bits += [value >> at & 1 for at in range(width)]
        return self

    def code(self, code: Code, symbol: int) -> Bits:
        value, width = code[symbol]
        self.bits += [value >> at & 1 for at in reversed(range(width))]
        return self

    def stored(self, data: bytes, *, final: bool, check: int | None = None) -> Bits:
        """A stored block; `check` replaces the complement of the length."""
        self.number(final, 1).number(0, 2).align()
        self.number(len(data), 16).number(len(data) ^ 0xFFFF if check is None else check, 16)
        for byte in data:
            self.number(byte, 8)
        return self

    def align(self, fill: int = 0) -> Bits:
        while len(self.bits) % 8:
            self.bits.append(fill)
        return self

    def bytes(self, fill: int = 0) -> bytes:
        self.align(fill)
        octets = [self.bits[at : at + 8] for at in range(0, len(self.bits), 8)]
        return bytes(sum(bit << at for at, bit in enumerate(octet)) for octet in octets)


def canonical(lengths: Sequence[int]) -> Code:
    """The code of these lengths (RFC 1951, 3.2.2); an oversubscribed set yields codes nevertheless."""
    code: Code = {}
    value = 0
    for width in range(1, 16):
        for symbol, length in enumerate(lengths):
            if length == width:
                code[symbol] = (value & (1 << width) - 1, width)
                value += 1
        value <<= 1
    return code


def fixed(symbols: Iterable[int | tuple[int, int]], *, end: bool = True) -> bytes:
    """One final block with the fixed code: symbols, and (value, width) for raw bits between them."""
    bits = Bits().number(1, 1).number(1, 2)
    code = canonical(FIXED)
    for one in symbols:
        bits.number(*one) if isinstance(one, tuple) else bits.code(code, one)
    if end:
        bits.code(code, END)
    return bits.bytes()


def dynamic(
    literals: Sequence[int],
    distances: Sequence[int],
    symbols: Iterable[int | tuple[int, int]] = (),
    *,
    steps: Sequence[int | tuple[int, int]] | None = None,
    counts: tuple[int, int] | None = None,
    of_lengths: Sequence[int] | None = None,
    final: int = 1,
) -> Bits:
    """A block with its own code. `steps` replaces the plain lengths; `counts` replaces their numbers;
    `of_lengths` replaces the lengths of the code for lengths, which are five bits for all."""
    bits = Bits().number(final, 1).number(2, 2)
    hlit, hdist = counts or (len(literals), len(distances))
    bits.number(hlit - 257, 5).number(hdist - 1, 5).number(19 - 4, 4)
    # 13 codes of four bits and 6 of five fill the space exactly.
    lengths = list(of_lengths or [4] * 13 + [5] * 6)
    for symbol in ORDER:
        bits.number(lengths[symbol], 3)
    code = canonical(lengths)
    for step in steps if steps is not None else [*literals, *distances]:
        bits.number(*step) if isinstance(step, tuple) else bits.code(code, step)
    code = canonical(literals)
    for one in symbols:
        bits.number(*one) if isinstance(one, tuple) else bits.code(code, one)
    return bits


class Case(NamedTuple):
    """A stream and its output, None if refused."""

    name: str
    stream: bytes
    payload: bytes | None


def lengths(known: dict[int, int], size: int) -> list[int]:
    """`size` code lengths, 0 where none is named."""
    return [known.get(symbol, 0) for symbol in range(size)]


def cases() -> list[Case]:
    """Return streams short enough for any bound. Accepted ones inflate to 600 times the letter `a`."""
    text = b"a" * 600
    # A literal, then a match of 258 bytes at distance 1 twice and one of 83: a text that needs 1024 bytes
    # uncompressed.
    body: list[int | tuple[int, int]] = [97, 285, (0, 5), 285, (0, 5), 275, (0, 3), (0, 5), *[97] * 32]
    good = fixed(body)
    both = lengths({97: 2, 256: 2, 285: 2, 98: 2}, 286)
    rest = [97, 285, (0, 1), 285, (0, 1), *[97] * 83, 256]
    alone = lengths({97: 1, 256: 1}, 257)
    plain: list[int | tuple[int, int]] = [*[97] * 600, 256]
    flush = Bits().stored(b"", final=False)
    many = Bits()
    for _ in range(40):
        many.stored(b"", final=False)
    several = Bits().stored(b"a" * 17, final=False)
    several.bits += [0, 1, 0]
    several.code(canonical(FIXED), 97).number(0, 0)
    for _ in range(599 - 17):
        several.code(canonical(FIXED), 97)
    several.code(canonical(FIXED), END)
    several.stored(b"", final=True)
    return [
        Case("fixed code", good, text),
        Case("fixed code, the bits after the end are ones", _fill(body), text),
        Case("an empty stored block before it", _after(flush, body), text),
        Case("forty empty stored blocks before it", _after(many, body), text),
        Case("a stored block, a fixed one, an empty stored one at the end", several.bytes(), text),
        Case("own code", dynamic(both, [1, 1], rest).bytes(), text),
        Case("own code with one distance alone", dynamic(both, [1], rest).bytes(), text),
        Case("own code without any distance", dynamic(alone, [0], plain).bytes(), text),
        Case("own code, lengths told by repeating", _repeating(plain), text),
        Case("a block that has a code for its end alone before it", _after(_lone([256]), body), text),
        Case("a code of one bit alone, and the other bit", _after(_lone([(1, 1)]), body), None),
        Case("no byte at all", b"", None),
        Case("a byte after the end", good + b"\0", None),
        Case("another stream after the end", good + good, None),
        Case("without its last byte", good[:-1], None),
        Case("without the end of the block", fixed(body, end=False), None),
        Case("without a last block", flush.bytes() * 3, None),
        Case("cut inside a stored block", Bits().stored(text, final=True).bytes()[:300], None),
        Case("a block of the type that does not exist", _after(Bits().number(1, 1).number(3, 2), []), None),
        Case(
            "a stored block whose length is not repeated",
            Bits().stored(text, final=True, check=0).bytes(),
            None,
        ),
        Case("a distance before the start", fixed([97, 285, (1, 5), *[97] * 341]), None),
        Case("a match with nothing before it", fixed([285, (0, 5), *[97] * 342]), None),
        Case("length code 286 of the fixed code", fixed([*[97] * 600, 286]), None),
        Case("length code 287 of the fixed code", fixed([*[97] * 600, 287]), None),
        Case("distance code 30 of the fixed code", fixed([*[97] * 600, 257, (0b01111, 5)]), None),
        Case("distance code 31 of the fixed code", fixed([*[97] * 600, 257, (0b11111, 5)]), None),
        Case("287 lengths", dynamic(lengths({97: 1, 256: 1}, 287), [0], plain).bytes(), None),
        Case("288 lengths", dynamic(lengths({97: 1, 256: 1}, 288), [0], plain).bytes(), None),
        Case("31 distances", dynamic(alone, [0] * 31, plain).bytes(), None),
        Case("32 distances", dynamic(alone, [0] * 32, plain).bytes(), None),
        Case(
            "codes of lengths that overlap",
            dynamic(alone, [0], plain, of_lengths=[3] * 9 + [4] * 10).bytes(),
            None,
        ),
        Case(
            "codes of lengths that leave room", dynamic(alone, [0], plain, of_lengths=[5] * 19).bytes(), None
        ),
        Case(
            "codes of letters that overlap",
            dynamic(lengths({97: 1, 98: 1, 256: 1}, 257), [0], plain).bytes(),
            None,
        ),
        Case(
            "codes of letters that leave room",
            dynamic(lengths({97: 2, 256: 1}, 257), [0], plain).bytes(),
            None,
        ),
        Case("codes of distances that overlap", dynamic(both, [1, 1, 1], rest).bytes(), None),
        Case("codes of distances that leave room", dynamic(both, [2, 2], rest).bytes(), None),
        Case("one distance of two bits", dynamic(both, [2], rest).bytes(), None),
        Case("no code for the end", dynamic(lengths({97: 1, 98: 1}, 257), [0], plain[:-1]).bytes(), None),
        Case("the first length repeats the one before", _repeating(plain, first=True), None),
        Case("repeated lengths pass their number", _repeating(plain, more=True), None),
        Case(
            "a distance that has no code",
            dynamic(both, [1], [97, 285, (1, 1), *[97] * 341, 256]).bytes(),
            None,
        ),
        Case("a distance where there is no code for any", dynamic(both, [0], rest).bytes(), None),
        Case("with the header of zlib", b"\x78\x9c" + good, None),
        Case("with the header of gzip", bytes.fromhex("1f8b08000000000000ff") + good, None),
    ]


def long(count: int) -> bytes:
    """A stream of about two bits for each 258 letters: `count` times `a`."""
    whole, left = divmod(count - 1, 258)
    known = lengths({97: 2, 256: 2, 285: 1}, 286)
    return dynamic(known, [1], [97, *[285, (0, 1)] * whole, *[97] * left, 256]).bytes()


def bounds() -> list[tuple[str, bytes, int | None]]:
    """Streams that reach and exceed the limit of a memory file, and their outputs."""
    most = 983_040
    return [
        ("as long as a memory file may be", long(most), most),
        ("one byte longer", long(most + 1), None),
        ("ten times as long", long(most * 10), None),
        ("as long as it may be, without its last byte", long(most)[:-1], None),
        ("as long as it may be, and a byte after the end", long(most) + b"\0", None),
    ]


def _lone(symbols: Iterable[int | tuple[int, int]]) -> Bits:
    return dynamic(lengths({256: 1}, 257), [0], symbols, final=0)


def _fill(body: Iterable[int | tuple[int, int]]) -> bytes:
    bits = Bits().number(1, 1).number(1, 2)
    code = canonical(FIXED)
    for one in body:
        bits.number(*one) if isinstance(one, tuple) else bits.code(code, one)
    return bits.code(code, END).bytes(fill=1)


def _after(before: Bits, body: Iterable[int | tuple[int, int]]) -> bytes:
    bits = Bits()
    bits.bits = list(before.bits)
    bits.number(1, 1).number(1, 2)
    code = canonical(FIXED)
    for one in body:
        bits.number(*one) if isinstance(one, tuple) else bits.code(code, one)
    return bits.code(code, END).bytes()


def _repeating(plain: Iterable[int | tuple[int, int]], *, first: bool = False, more: bool = False) -> bytes:
    # 97 zeros, one bit for `a`, 158 zeros, one bit for the end, no distance.
    steps: list[int | tuple[int, int]] = [18, (97 - 11, 7), 1, 18, (138 - 11, 7), 18, (20 - 11, 7), 1, 0]
    if first:
        steps = [16, (0, 2), 18, (94 - 11, 7), *steps[2:]]
    if more:
        steps = [*steps[:-1], 18, (0, 7)]
    return dynamic(lengths({97: 1, 256: 1}, 257), [0], plain, steps=steps).bytes()
