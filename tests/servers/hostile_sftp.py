"""A lying SFTP server, as the program behind a pipe: `python hostile_sftp.py KIND`. It claims that every
file exists."""

from __future__ import annotations

import struct
import sys

ENDLESS = 0x7FFFFFFFFFFFFFFF
_FILE, _FOLDER = 0o100644, 0o040755


def _text(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _attributes(size: int, mode: int) -> bytes:
    return struct.pack(">IQIII", 1 | 4 | 8, size, mode, 1, 1)


def _send(kind: int, number: bytes, body: bytes) -> None:
    sys.stdout.buffer.write(_text(bytes([kind]) + number + body))
    sys.stdout.buffer.flush()


def _status(number: bytes, code: int, message: bytes = b"") -> None:
    _send(101, number, struct.pack(">I", code) + _text(message) + _text(b""))


def _packet() -> bytes:
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        sys.exit()
    return sys.stdin.buffer.read(struct.unpack(">I", head)[0])


def _list(kind: str, number: bytes) -> None:
    if kind == "endless list":
        entries = b"".join(_text(b"%d" % n) + _text(b"") + _attributes(1, _FILE) for n in range(500))
        _send(104, number, struct.pack(">I", 500) + entries)
    elif kind == "empty names":
        _send(104, number, struct.pack(">I", 0))
    elif kind == "more names than sent":
        _send(104, number, struct.pack(">I", 0xFFFFFFFF) + _text(b"one") + _text(b"") + _attributes(1, _FILE))
    elif kind == "wrong number":
        _status(struct.pack(">I", 0xDEAD), 1)
    elif kind == "long name":
        _send(104, number, struct.pack(">I", 1) + struct.pack(">I", 0xFFFFFFF0) + b"short")
    elif kind == "many attributes":
        more = struct.pack(">II", 0x80000000, 0xFFFFFFFF)
        _send(104, number, struct.pack(">I", 1) + _text(b"one") + _text(b"") + more)
    elif kind == "huge packet":
        sys.stdout.buffer.write(b"\x7f\xff\xff\xff" + bytes(1 << 20))
        sys.stdout.buffer.flush()
    elif kind == "empty packet":
        sys.stdout.buffer.write(bytes(4))
        sys.stdout.buffer.flush()
    elif kind == "no names but no end":
        _status(number, 0)
    elif kind == "wrong type":
        _send(103, number, _text(b"data"))
    elif kind == "vanishes":
        _status(number, 2)
    elif kind == "end":
        sys.exit()
    elif kind == "escapes":
        _status(number, 4, b"\x1b[2J\r\n" + b"x" * 100_000)
    else:
        _status(number, 1)


def _serve(kind: str) -> None:
    _packet()
    sys.stdout.buffer.write(_text(bytes([2]) + struct.pack(">I", 2 if kind == "old version" else 3)))
    sys.stdout.buffer.flush()
    is_made, written = False, 0
    while True:
        packet = _packet()
        number = packet[1:5]
        match packet[0]:
            case 3 | 11 if kind == "vague" and not is_made:
                _status(number, 4)
            case 7 if kind == "vague":
                if b"/.new-" in packet and is_made:
                    _send(105, number, _attributes(written, _FILE))
                else:
                    _status(number, 2)
            case 6 if kind == "vague":
                written += struct.unpack(">I", packet[-7:-3])[0]  # of 3 bytes
                _status(number, 0)
            case 13 if kind == "vague":
                _status(number, 4)
            case 14:
                is_made = True
                _status(number, 0)
            case 3 | 11:
                _send(102, number, _text(b"handle"))
            case 5:
                asked = struct.unpack(">I", packet[-4:])[0]
                if kind == "more than asked":
                    _send(103, number, _text(bytes(asked + 1)))
                elif kind == "drip":
                    _send(103, number, _text(b"x"))
                elif kind == "empty data":
                    _send(103, number, _text(b""))
                else:
                    _send(103, number, _text(bytes(asked)))
            case 17 if kind == "no permission" and packet.endswith(b"/."):
                _status(number, 3)
            case 17 if kind == "gone meanwhile":
                _status(number, 2)
            case 7 | 8 | 17:
                _send(105, number, _attributes(ENDLESS, _FOLDER if packet[0] == 17 else _FILE))
            case 12:
                _list(kind, number)
            case _:
                _status(number, 0)


if __name__ == "__main__":
    _serve(sys.argv[1])
