"""Raw deflate inside sealed memories: making a stream, and one verdict for all readers on a stream (format section 3).

An object that one reader takes and another refuses could push an honest object out of its place. So a stream is taken only
when it is finished, nothing follows it, and it inflates to no more than a memory file may have. Which texts are compressed
is decided in `objects`; two compressors need not agree on bytes.
"""

from __future__ import annotations

import zlib
from typing import Final

from ipfsmem.errors import OpenError

#: Most bytes that a stream may come to (format section 8): a whole memory file.
MAX_INFLATED: Final = 983_040
#: RFC 1951 without a header, over the whole window that the RFC allows.
_RAW: Final = -15
#: 1 costs a sixth less time than 6 and leaves 2 % more bytes, measured over notes of a median of 850 bytes.
_LEVEL: Final = 6


def deflate(data: bytes, level: int = _LEVEL) -> bytes:
    """`data` as one raw deflate stream. Two versions of a compressor may give two streams: bytes prove nothing here."""
    return zlib.compress(data, level, _RAW)


def inflate(stream: bytes) -> bytes:
    """The bytes that a stream inflates to. Raises OpenError for a stream that is not finished, that something follows, or that
    inflates to more than MAX_INFLATED bytes."""
    inflater = zlib.decompressobj(_RAW)
    try:
        # One byte more than allowed is asked for, so that a stream which goes on is noticed, whatever it would come to.
        data = inflater.decompress(stream, MAX_INFLATED + 1)
    except zlib.error:
        raise OpenError from None
    if not inflater.eof or inflater.unused_data or len(data) > MAX_INFLATED:
        raise OpenError
    return data
