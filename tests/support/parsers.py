"""Every parser that exists in both languages, and inputs for it: seeded mutations, the same for the same
number.

Results of Python have the form that `web/tests/parsers.ts` returns."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from math import isinf
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

import msgspec
import yaml
from ipfsmem_providers.packs.object_store import FileInfo, Head, ObjectStore
from ipfsmem_providers.packs.pins import PackPins, tag_of

from ipfsmem.bundle import timeline
from ipfsmem.bundle.blob import Blob, read_blob
from ipfsmem.bundle.front_matter import front_matter
from ipfsmem.bundle.header import parse_tags, render_tags, write_header
from ipfsmem.bundle.header_edit import edit_memory
from ipfsmem.bundle.keys import is_key, is_scope, key_of_foreign_name, split_conflict_name
from ipfsmem.bundle.memory_file import MemoryFile, parse_fields, parse_memory, render_memory
from ipfsmem.bundle.program_events import read_move, read_vault
from ipfsmem.canonical import decode as decode_canonical
from ipfsmem.canonical import encode as encode_canonical
from ipfsmem.canonical import unb64 as strict_unb64
from ipfsmem.causal.cards import parse_card
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import MemoryName, SegmentName, parse_entry
from ipfsmem.causal.merge3 import merge_memory
from ipfsmem.content.car import car_bytes, read_car
from ipfsmem.content.cid import decode_cid, ipns_name, parse_cid, public_of_ipns_name, raw_cid
from ipfsmem.content.dagpb import decode_node, decode_unixfs
from ipfsmem.errors import FormatError, SignatureError, SignerError
from ipfsmem.memories.bundle_tree import read_tree
from ipfsmem.memories.importing import read_given
from ipfsmem.memories.part_lines import entries_of_files
from ipfsmem.published import ipns_data
from ipfsmem.published.ipns_record import value_target, verify_record
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.wallet.message import read_signature
from ipfsmem.wallet.recovery_words import from_words, to_words
from tests.interop.counterparts import run
from tests.support.plain import judging as plain

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"
REFUSED = {"refused": True}
#: Authors of the parts of the drawn session.
SESSION_DEVICE = "00aabbccddeeff11"
Rows = dict[str, Any]


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _memory(given: str) -> Any:
    data = unb64(given)
    file = parse_memory(data)
    assert parse_fields(data).fields == file.fields, "lists read another header than readers do"
    try:
        rendered = render_memory(file).decode()
    except FormatError:
        rendered = None
    return [[list(one) for one in file.fields.items()], file.body, rendered]


def _merge(given: list[str]) -> Any:
    base, a, b = map(unb64, given)
    merged = merge_memory(base, a, b)
    return None if merged is None else merged.decode()


def _lines(given: list[Any]) -> Any:
    events = timeline.parse_lines(unb64(given[0]), given[1])
    return [timeline.event_line(event).decode() for event in events]


def _instant(given: str) -> Any:
    try:
        return timeline.normal_ts(given)
    except FormatError:
        return None


def _key(given: str) -> Any:
    key, origin = key_of_foreign_name(given)
    split = split_conflict_name(given)
    return [is_key(given), is_scope(given), key, origin, split and list(split)]


def _entry(given: str) -> Any:
    name = parse_entry(given)
    if isinstance(name, MemoryName):
        return ["m", name.scope, f"{name.scope}/{name.key}".lstrip("/")]
    if isinstance(name, SegmentName):
        return ["t", name.scope, given[2:]]
    return ["c", name.scope, name.scope]


def _cid(given: str) -> Any:
    return list(bytes(parse_cid(given)))


def _card(given: str) -> Any:
    card = parse_card(unb64(given))
    return {
        "ids": [list(one) for one in card.ids],
        "into": card.into,
        "kind": card.kind,
        "title": card.title,
        "v": card.v,
    }


def _event(given: str) -> Any:
    event = timeline.parse_line(given.encode())
    move, vault = read_move(event), read_vault(event)
    return [
        move and [move.id, move.by, move.at, list(move.left), move.to],
        vault and [vault.address, vault.key_number, vault.name],
    ]


def _blob(given: str) -> Any:
    return _as_lists(read_blob(given.encode()))


def _export(given: str) -> Any:
    """An export that a person imports: its texts are always accepted."""
    return _as_lists(read_given(given)[""].blob)


def _as_lists(read: Blob) -> Any:
    files = sorted([key, body.decode()] for key, body in read.files.items())
    more, others = ([[key, body.decode()] for key, body in texts] for texts in (read.more, read.others))
    events = [timeline.event_line(event).decode() for event in read.events]
    return [files, more, others, events, read.index, len(read.problems)]


def session_part(body: str) -> str:
    """Return a part of the session `chat` with this body."""
    return f"---\ntype: session\nsession: chat\n---\n\n{body}\n"


def _session(given: list[str]) -> Any:
    parts = [
        {"key": f"session-chat-{SESSION_DEVICE}-{i}", "file": session_part(body)}
        for i, body in enumerate(given)
    ]
    return [[list(entry.place), _as_doubles(entry.item)] for entry in entries_of_files("chat", parts)]


def _as_doubles(value: Any) -> Any:
    """Return a JSON value with its numbers as a browser has and writes them."""

    def number(text: str) -> float | None:
        return None if isinf(float(text)) else float(text)

    return json.loads(
        json.dumps(value), parse_int=number, parse_float=number, parse_constant=lambda text: None
    )


def _render(given: Rows) -> Any:
    return render_memory(MemoryFile(dict(given["fields"]), given["body"])).decode()


def _edit(given: list[Any]) -> Any:
    data, changes, body, stamps = given
    return edit_memory(unb64(data), dict(changes), body, stamps=dict(stamps)).decode()


def _loaded(given: list[list[str]]) -> Any:
    """Check that other YAML readers read our header lines as the same texts, under the rules of YAML 1.1
    and 1.2."""
    fields = {name: value for name, value in given if value}
    lines = write_header(fields)
    wanted = {**fields, **({"tags": list(parse_tags(fields["tags"]))} if "tags" in fields else {})}
    wanted = {name: value for name, value in wanted.items() if value}
    loaded = yaml.safe_load(lines) or {}
    assert loaded == wanted, f"PyYAML reads {loaded!r} in {lines!r}"
    pairs = [[name, wanted[name]] for name in sorted(wanted)]
    return [pairs, pairs]


def _node(given: str) -> Any:
    node = decode_node(unb64(given))
    links = [[link.name, str(link.tsize), str(link.cid)] for link in node.links]
    return [links, None if node.data is None else b64(node.data)]


def _unixfs(given: str) -> Any:
    it = decode_unixfs(unb64(given))
    filesize = None if it.filesize is None else str(it.filesize)
    return [it.type, b64(it.data), filesize, list(map(str, it.blocksizes)), str(it.hash_type), str(it.fanout)]


def _car(given: str) -> Any:
    car = read_car(unb64(given))
    return [[b64(bytes(cid)) for cid in some] for some in (car.roots, [cid for cid, _ in car])]


def _record(given: list[str]) -> Any:
    record = verify_record(given[0], unb64(given[1]))
    return [record.value, str(record.sequence), str(record.validity), str(record.ttl)]


def _target(given: str) -> Any:
    to = value_target(given)
    return to if isinstance(to, str) else list(bytes(to))


#: For the drawn pins: the names that are requested, and the time of the request.
PIN_NAMES, PIN_TIME = ("a", "é"), 7


class _Folder:
    """Files in a folder of pins, for `PackPins`."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def files(self, prefix: str = "") -> dict[str, FileInfo]:
        return {file: FileInfo(len(data), 0, 0) for file, data in self._files.items()}

    def not_files(self, prefix: str = "") -> list[str]:
        return []

    def containing(self, part: str) -> frozenset[str]:
        return frozenset(file for file in self._files if part in file)

    def heads(self, files: list[str], length: int) -> dict[str, Head]:
        return {file: Head(self._files[file][:length], len(self._files[file])) for file in files}


def _pins(given: list[str]) -> Any:
    pins = PackPins(cast("ObjectStore", _Folder({given[0]: unb64(given[1])})), lambda: PIN_TIME)
    return [[[str(pin.cid), pin.created] for pin in pins.named(name)] for name in PIN_NAMES]


def _scope_file(given: str) -> Any:
    files = {"scopes/work/scope.json": unb64(given), "memory/a.md": b"a"}
    part = read_tree(files, lambda name, most: files[name])["work"]
    card = json.loads(msgspec.json.encode(part.card)) if part.card is not None else None
    return [card, sorted(part.blob.forgotten), len(part.blob.problems)]


def _signature(given: str) -> Any:
    """Return the input of `normalise_signature`; a signature of another length is refused there."""
    found = read_signature(given)
    if len(found) != 65:
        raise SignerError("of another length")
    return list(found)


def _tags(given: str) -> Any:
    return [list(parse_tags(given)), render_tags(parse_tags(given))]


PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "memory": _memory,
    "render": _render,
    "edit": _edit,
    "front": front_matter,
    "loaded": _loaded,
    "tags": _tags,
    "merge": _merge,
    "lines": _lines,
    "instant": _instant,
    "own_id": lambda given: (split := timeline.split_own_id(given)) and list(split),
    "key": _key,
    "entry": _entry,
    "cid": _cid,
    "cid_bytes": lambda given: str(decode_cid(unb64(given))),
    "ipns_name": lambda given: list(public_of_ipns_name(given)),
    "clock": hlc_ms,
    "card": _card,
    "canonical": lambda given: decode_canonical(unb64(given), "it") is not ...,
    "event": _event,
    "blob": _blob,
    "export": _export,
    "session": _session,
    "node": _node,
    "unixfs": _unixfs,
    "car": _car,
    "record": _record,
    "target": _target,
    "pins": _pins,
    "words": lambda given: list(from_words(given)),
    "signature": _signature,
    "base64url": lambda given: list(strict_unb64(given, "it")),
    "scope_file": _scope_file,
}


#: Parsers of data from providers, wallets and bundles, drawn one by one.
OF_PROVIDERS = (
    "node",
    "unixfs",
    "car",
    "record",
    "target",
    "pins",
    "words",
    "signature",
    "base64url",
    "scope_file",
)


def judged(parser: str, given: Any) -> Any:
    """Return Python's result for an input as a JSON value."""
    try:
        return PARSERS[parser](given)
    except (FormatError, SignatureError, SignerError):
        return REFUSED
    except AssertionError as error:
        return {"fault": str(error)}


def _vectors(name: str) -> Rows:
    return json.loads((VECTORS / f"{name}.json").read_text("utf-8"))


#: Pieces that are inserted anywhere: each is an end, a mark, a space or nothing to some parser.
BITS = (
    *"\n\r\t \x00\x07\x0b\x0c\x1c\x1f\x7f\x85\xa0\xad\u2028\u2029\ufeff\ufffe\uffff\u200b\u3000",
    *"-:#\"'[]{},|>?&*!%@`~=<+._/\\0123456789aZ",
    "\r\n", "\n\n", "---", "\n---\n", "\n---\r\n", "...", "+++", ": ", " #", "- ", "''", '\\"', "\\u00e9", "\\ud800", "\\x41", "<<",
    "  ", "metadata:\n", "\n  ", "\n# ", "null", "true", "no", "1e3", "0x1F", "12:30", "2026-01-01", "é", "e\u0301", "İ", "ß", "😀",
)  # fmt: skip
NAMES = (
    "name",
    "description",
    "type",
    "tags",
    "updated",
    "comment",
    "metadata",
    "x",
    "a b",
    '"q"',
    "'s'",
    "<<",
    "status",
    "é",
)
VALUES = (
    "", "x", "a: b", "a # b", "'it''s'", '"q\\n"', "[a, b]", "[", "{a: 1}", "|", ">", "|-", "~", "no", "1.10", "- a", "&a x", "*a",
    "!!str x", "user", "\ttab", "two words", '"a" b', "# c", "2026-01-01", "12:30", "\\", "x:", ":", "?", "%", "@", "`", "a\x85b", "\u2028",
)  # fmt: skip
_ENDS = ("\n",) * 12 + ("\r\n", "\r", " \n", "\t\r\n", "\n\n", "\n\r\n")

#: Texts that some YAML reader does not read as text.
TYPED = (
    "no", "Yes", "ON", "off", "y", "N", "true", "FALSE", "null", "Null", "~", "<<", "=", "1", "-1", "+1", "0", "007", "0123", "1.10", "1.", ".5", "1e3", "1E-3",
    "1.5e+10", "0x1F", "0o17", "0b101", "1_000", "1__0.5", ".inf", "-.INF", "+.inf", ".NaN", "12:30", "12:30:45", "190:20:30.15", "1:2:3:4", "2026-01-01", "2026-1-2",
    "2026-13-45", "2026-01-01T10:00:00Z", "2026-01-01t1:2:3", "2026-01-01 10:00:00.5 +2", "1.10.2", "30d", "1e", "0x", "08", "0o8", "192.168.0.1", "a:b", "http://x.y/z",
    "1,000", "12e03", "685_230.15", "685.230_15e+03", "-0", "---", "...", "- x", "? x", "x", "a b", "#", "!x", "%x",
)  # fmt: skip
#: Beginnings of files as other programs write them.
FRONTS = (
    "+++\ntitle = 'A'\n[extra]\nx = 1\n+++\n\nbody\n", "---\na: &x 1\nb: *x\n---\n\nbody\n", "---\n# c\ntitle: A: B\ntags:\n  - x\n...\nbody\n",
    '{\n  "title": "A",\n  "tags": ["x"]\n}\n\nbody\n', ";;;\n{\"a\": 1}\n;;;\nbody", "---toml\na = 1\n---\nbody", "---\nprose\n---\nmore",
    "---\n- a: b\n---\nmore", '{"a": 1}\n{"b": 2}\n', "---\r\na: !x 1\r\n---\r\n\r\nbody\r\n", "---\rname: x\r---\rbody", "+++\n+++\nb", '{"a":1}\n',
    '{"a":' + "[" * 511 + "]" * 511 + "}\n\nbody\n", '{"a":' + "[" * 512 + "]" * 512 + "}\n\nbody\n",
    "---\n%YAML 1.2\na: b\n---\nbody\n", "---\n{a: &x 1}\n---\n", "---\norigin_name: X.md\n---\n\n+++\na = 1\n+++\nbody\n",
)  # fmt: skip


def header_file(r: Random) -> bytes:
    """Return a file with a header as people and programs write them, or nearly so."""
    end = r.choice(_ENDS[:1] * 4 + ("\r\n", "\r"))
    lines = []
    for _ in range(r.randrange(7)):
        name, value = r.choice(NAMES), r.choice(VALUES)
        kind = r.random()
        if kind < 0.5:
            lines.append(f"{name}: {value}")
        elif kind < 0.58:
            lines += [
                f"{name}:",
                *(f"{r.choice(('', '  ', '    '))}- {r.choice(VALUES)}" for _ in range(r.randrange(3))),
            ]
        elif kind < 0.72:
            block = r.choice(("metadata", "metadata", name))
            lines.append(f"{block}:")
            indent = r.choice(("  ", " ", "    ", "\t"))
            for _ in range(r.randrange(4)):
                deeper = "  " if r.random() < 0.1 else ""
                lines.append(
                    f"{indent}{deeper}{r.choice(NAMES)}: {r.choice(VALUES)}".rstrip()
                    if r.random() < 0.8
                    else f"{indent}# c"
                )
        elif kind < 0.74:
            lines += [f"{name}: [", f"  {value},", r.choice(("]", "  ]", "]]", "}", "], "))]
        elif kind < 0.8:
            lines.append(r.choice(("# note", "  # aside", "#", "", " ", "\t", "#a#b")))
        elif kind < 0.88:
            lines += [
                f"{name}: {r.choice(('|', '>', '|-', '>+', ''))}",
                *(f"  {r.choice(VALUES)}" for _ in range(r.randrange(3))),
            ]
        else:
            lines.append(f"{name}{r.choice((':', ' :', ':  ', '', ' '))}{value}")
    mixed = r.random() < 0.15
    ends = [r.choice(_ENDS) if mixed else end for _ in range(len(lines) + 3)]
    text = r.choice(("", "", "", "", "\ufeff")) + r.choice(("---",) * 8 + ("--- ", "----", "+++")) + ends[0]
    text += "".join(line + ends[i + 1] for i, line in enumerate(lines))
    text += r.choice(("---",) * 8 + ("---\t", "--- \r", "...", "---x", ""))
    text += (
        ends[-2]
        + r.choice(("", end, end, "\n", "\r\n"))
        + r.choice(("body", "", "a\r\nb", "---\nx: y\n---\n", "\n\nb\n\n"))
    )
    return (text + r.choice(("", end, "\n"))).encode()


#: Pieces of a header that is not flat, likelier ones repeated.
_PIECES_OF_YAML = (
    *("a", "b", "x#y", "é", "😀", "a: ", '"q": ', "a:", "~", ".", "=", "<<", "1", "\\n", "%", "!", "*", "@", "&"),
    *("[", "]", "{", "}", ",", ", ", ":", ": ", " :", '"q"', "'s'", '"', "'", "?", "|", ">", "|-", "-", "- ", "- - ") * 2,
    *("[", "]", "{", "}", ",", "#", " # c", " ", "  ", "\t", " \t", "\n", "\n  ", "\n    ", "\n   ", "\n  - ", "\n  k: ", "\n#m", "\n\n") * 2,
)  # fmt: skip


def yaml_file(r: Random) -> bytes:
    """Return a file with a header of pieces of YAML, mostly one that is not flat."""
    made = "".join(r.choices(_PIECES_OF_YAML, k=r.randrange(1, 9)))
    opening, closing = r.choice(("[]", "{}"))
    line = r.choice(
        (
            f"t: {opening}{made}{closing}",
            f"t: {opening}{made}{closing}",
            f"t: {opening}a\n  {made}\n  {closing}",
            f"t:\n  - {made}",
            f"t:\n  k: {made}",
            f"t:\n  {made}",
        )
    )
    more = r.choice(("", "name: X\n", "l:\n - x\n"))
    return f"---\n{line}\n{more}---\n\nb\n".encode()


#: Numbers, and replacements for them, as programs write them in lines of a session.
_NUMBERS = (
    "0", "1", "2", "7", "1.0", "1e0", "0.1e1", "10E-1", "1e3", "-0", "-0.0", "-1", "0.5", "01", "1.", "+1", "1e400", "-1e400", "1" * 30, "1" * 5_000, "9007199254740991",
    "9007199254740992", "9007199254740991.4", "9007199254740991.5", "0.99999999999999999999", "null", "true", "false", '"1"', '""', "[]", "[1]", "{}", "NaN", "Infinity",
)  # fmt: skip
_ITEMS = (
    '{"role":"user","content":"one"}', '{"content":"\\ud83d"}', '{"content":"\\ud83d\\ude00"}', '{"a":1,"a":2}', '{"a":NaN}', '{"a":1e400,"b":-0,"c":1.0}', "{}", "null", "[]", "7",
    '"x"', "[{}]", '{"a":[[{}]]}', '{"__proto__":{"at":1}}', '{"a":"\\u12"}', '{"a":' + "[" * 509 + "]" * 509 + "}", '{"a":' + "[" * 510 + "]" * 510 + "}",
    '{"a":' + "[" * 511 + "]" * 511 + "}", '{"a":"' + "[" * 600 + '"}', '{"a":"\\"' + "[" * 600 + '"}', '{"a":' + "1" * 5_000 + "}", '{ "a" : 1 }',
)  # fmt: skip
_PIECES = (
    '{"con',
    'tent":',
    '"x"}',
    "{}",
    "[]",
    "",
    '{"a":NaN}',
    '"\ud83d',
    "\ude00",
    '\ud83d"}',
    "{",
    "}",
    '{"a":' + "[" * 511,
    "]" * 511 + "}",
    "]" * 511,
    "]}",
)


def session_line(r: Random) -> str:
    """Return a line of a part of a session, or nearly one."""

    def number() -> str:
        return r.choice(_NUMBERS[:4] if r.random() < 0.6 else _NUMBERS)

    def device() -> str:
        return json.dumps(
            r.choice(
                (SESSION_DEVICE,) * 5 + (SESSION_DEVICE[:-1], SESSION_DEVICE.upper(), [SESSION_DEVICE], 7)
            )
        )

    kinds: dict[str, Callable[[], str]] = {
        "item": lambda: r.choice(_ITEMS),
        "gone": lambda: f"[{number()},{device()},{number()}]" if r.random() < 0.8 else number(),
        "piece": lambda: f"[{number()},{number()}]" if r.random() < 0.9 else f"[{number()},2,{number()}]",
        "text": lambda: json.dumps(r.choice(_PIECES)) if r.random() < 0.9 else number(),
        "at": number,
        "n": number,
        "more": lambda: r.choice((*_ITEMS, *_NUMBERS)),
    }
    names = [
        "at",
        *r.choice((("item",),) * 3 + (("gone",), ("piece", "text"), ("piece", "text"), ("item", "n"))),
    ]
    for _ in range(r.choice((0, 0, 0, 1, 1, 2))):
        names.insert(r.randrange(len(names) + 1), r.choice(list(kinds)))
    if r.random() < 0.1:
        names.remove(r.choice(names))
    fields = [
        f"{json.dumps(name)}:{'null' if name != 'at' and r.random() < 0.1 else kinds[name]()}"
        for name in names
    ]
    line = "{" + ",".join(fields) + "}"
    return mutated(r, line) if r.random() < 0.1 else line


def mutated(r: Random, text: str) -> str:
    for _ in range(r.choice((0, 1, 1, 1, 2, 3, 5))):
        at, to = sorted((r.randrange(len(text) + 1), r.randrange(len(text) + 1)))
        kind = r.random()
        if kind < 0.5:
            text = text[:at] + r.choice(BITS) + text[at:]
        elif kind < 0.65:
            text = text[:at] + text[at + 1 :]
        elif kind < 0.8:
            text = text[:at] + r.choice(BITS) + text[at + 1 :]
        elif kind < 0.9:
            text = text[:at] + text[at : min(to, at + 40)] * 2 + text[min(to, at + 40) :]
        else:
            text = text[:at] + text[min(to, at + 8) :]
    return text


def _mutated_bytes(r: Random, data: bytes) -> bytes:
    made = bytearray(data)
    for _ in range(r.choice((0, 1, 1, 2, 4))):
        at = r.randrange(len(made) + 1)
        kind = r.random()
        if kind < 0.4:
            made[at : at + 1] = bytes([r.randrange(256)])
        elif kind < 0.6:
            made[at:at] = bytes([r.choice((0, 1, 0x12, 0x20, 0x55, 0x70, 0x7F, 0x80, 0xFF))])
        elif kind < 0.8:
            del made[at : at + r.randrange(1, 4)]
        else:
            made[at:at] = made[: r.randrange(6)]
    return bytes(made)


def _seeds() -> dict[str, list[Any]]:
    files, keys, cids = _vectors("memory_file"), _vectors("keys"), _vectors("cids")
    lines, cards, nodes = _vectors("timeline"), _vectors("scopes"), _vectors("dagpb")
    cids_of = [raw_cid(sha256(text).digest()) for text in (b"one", b"two")]
    texts = [row["file"] for row in files["read"]] + [row["file"] for row in files["render"]]
    return {
        "memory": texts,
        "render": [{"fields": row["fields"], "body": row["body"]} for row in files["render"]],
        "tags": [dict(row["fields"]).get("tags", "a, b") for row in files["read"]],
        "merge": [[row["base"], row["a"], row["b"]] for row in _vectors("merge3")["memories"]],
        "lines": [bytes.fromhex(row["line_hex"]) for row in lines["parse"]]
        + [row["line"].encode() for row in lines["lines"]],
        "instant": [row["ts"] for row in lines["instants"]] + lines["bad_instants"],
        "own_id": [row["id"] for row in lines["own_ids"]],
        "key": keys["valid"] + keys["invalid"] + keys["scopes"] + [row["name"] for row in keys["foreign"] + keys["conflict_names"]],
        "entry": [row["name"] for row in cards["names"]] + cards["refused_names"] + ["m/a", "m/s/a", "c/s", "t/2026-01-01/0123456789abcdef/0", "t/s/2026-02-29/0123456789abcdef/10"],
        "cid": [text for text in _texts_in(cids) if 4 < len(text) < 140 and " " not in text],
        "card": [text for text in _texts_in(cards) if text.startswith('{"')]
        + ['{"ids":[["id","0123456789abcdef0123456789abcdef"],["remote","example.org/a/b","x/y"]],"into":null,"kind":"workspace","title":"T","v":1}'],
        "clock": ["0" * 16, "0197" * 4, "f" * 16],
        "event": [row["event"] for row in _vectors("program_events")["rows"]],
        "blob": [row["blob"] for row in _vectors("blob")["read"]],
        "node": [bytes.fromhex(row["block"]) for name in ("valid", "accepted", "refused") for row in nodes[name]],
        "unixfs": [bytes.fromhex(row["message"]) for name in ("unixfs", "unixfs_accepted", "unixfs_refused") for row in nodes[name]],
        "car": [car_bytes([cids_of[0]], [(cid, cid_text) for cid, cid_text in zip(cids_of, (b"one", b"two"), strict=True)])],
        "target": [f"/{kind}/{text}" for kind in ("ipfs", "ipns") for text in _texts_in(cids) if 4 < len(text) < 140 and " " not in text],
        "words": [" ".join(to_words(bytes([n] * 32))) for n in range(3)],
        "signature": ["0x" + "0a" * 65, "0A" * 65],
        "base64url": ["AQID", "AQI", "AQ", "", "_-8"],
        "scope_file": [
            text for row in _vectors("scope_trees")["read"] for path, text in row["tree"].items() if path.endswith("scope.json") and text.startswith("{")
        ] + ['{"card":{"ids":[["id","0123456789abcdef0123456789abcdef"]],"into":null,"kind":"user","title":"T","v":1},"forgotten":["a","b"],"v":1}'],
    }  # fmt: skip


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts_in(one)]


def _changed(r: Random, value: Any) -> Any:
    """Return a JSON value with one change."""
    odd = (None, True, 0, 1, -1, 2**31, 2**53, 1.5, "", "x", [], {}, "\x85", "0123456789abcdef-1")
    if isinstance(value, dict) and value and r.random() < 0.8:
        name = r.choice(list(value))
        if r.random() < 0.1:
            return {key: one for key, one in value.items() if key != name}
        return {**value, name: _changed(r, value[name])}
    if isinstance(value, list) and value and r.random() < 0.8:
        at = r.randrange(len(value))
        return [*value[:at], _changed(r, value[at]), *value[at + 1 :]]
    if isinstance(value, str) and r.random() < 0.8:
        return mutated(r, value)
    return r.choice(odd)


#: Not a parser of its own: headers of pieces of YAML, for the parser of memory files.
PIECES = "pieces"


def inputs(seed: int, count: int, only: str | None = None) -> Iterator[tuple[str, Any]]:
    """Return `count` inputs, each with its parser; headers most often, because they have most forms."""
    r, seeds = Random(seed), _seeds()
    if only == PIECES:
        yield from (("memory", b64(yaml_file(r))) for _ in range(count))
        return
    mixed = [name for name in PARSERS if name not in OF_PROVIDERS]
    names = [only] if only else ["memory"] * 8 + ["edit"] * 6 + ["merge"] * 2 + mixed
    for _ in range(count):
        parser = r.choice(names)
        yield parser, _input(r, parser, seeds)


def _input(r: Random, parser: str, seeds: Mapping[str, list[Any]]) -> Any:
    if parser == "memory":
        made = (
            header_file(r)
            if r.random() < 0.5
            else mutated(r, r.choice(seeds["memory"])).encode("utf-8", "replace")
        )
        return b64(_mutated_bytes(r, made) if r.random() < 0.05 else made)
    if parser == "edit":
        body = r.choice(
            (None, "", "new", "two\nlines\n", "\n\nlate", "a\r\nb", "---\nx: y\n---\nz", "+++\na = 1\n+++\n")
        )
        changes = [[r.choice(NAMES), r.choice(VALUES)] for _ in range(r.choice((0, 0, 1, 1, 2)))]
        stamps = [["created", "2026-01-02"], ["updated", "2026-01-03"]] if r.random() < 0.6 else []
        data = (
            _input(r, "memory", seeds)
            if r.random() < 0.8
            else b64(_utf8(mutated(r, r.choice(FRONTS))).encode())
        )
        return [data, changes, body, stamps]
    if parser == "front":
        return _utf8(mutated(r, r.choice(FRONTS)))
    if parser == "merge":
        base = header_file(r).decode() if r.random() < 0.5 else r.choice(r.choice(seeds["merge"]))
        return [b64(mutated(r, base).encode()) for _ in range(3)]
    if parser == "render":
        fields = {
            r.choice(NAMES) + r.choice(("", "", r.choice(BITS))): mutated(r, r.choice(VALUES))
            for _ in range(r.randrange(5))
        }
        return {"fields": list(fields.items()), "body": mutated(r, "a\nb")}
    if parser == "loaded":
        texts = [
            r.choice(TYPED)
            if r.random() < 0.4
            else mutated(r, r.choice(TYPED if r.random() < 0.7 else VALUES))
            for _ in range(4)
        ]
        names = [
            name
            for name in texts[:2]
            if name and name not in ("created", "updated", "expires", "important", "confidence", "tags")
        ]
        fields = {
            **{_utf8(name): "x" for name in names},
            "name": _utf8(texts[2]),
            "x": _utf8(texts[3]),
            "tags": render_tags(map(_utf8, texts)),
        }
        return [list(pair) for pair in fields.items()]
    if parser == "tags":
        return mutated(r, r.choice(seeds["tags"]))
    if parser == "lines":
        line = r.choice(seeds["lines"])
        try:
            line = mutated(r, line.decode()).encode()
        except UnicodeDecodeError:
            line = _mutated_bytes(r, line)
        return [b64(line), r.choice((None, "2026-04-15"))]
    if parser == "session":
        return [_utf8("\n".join(session_line(r) for _ in range(r.randrange(1, 6)))) for _ in range(2)]
    if parser in ("card", "canonical"):
        text = r.choice(seeds["card"])
        made = mutated(r, text) if r.random() < 0.5 else _as_card(r, text)
        return b64(made.encode("utf-8", "replace"))
    if parser == "cid_bytes":
        return b64(_mutated_bytes(r, bytes.fromhex("01551220") + r.randbytes(32)))
    if parser in ("cid", "ipns_name"):
        text = r.choice(seeds["cid"])
        if r.random() < 0.3:
            text = (
                "".join(c.upper() if r.random() < 0.5 else c for c in text)
                if r.random() < 0.5
                else text.upper()
            )
        return mutated(r, text)
    if parser == "event":
        return json.dumps(_changed(r, r.choice(seeds["event"])))
    if parser in ("node", "unixfs", "car"):
        return b64(_mutated_bytes(r, r.choice(seeds[parser])))
    if parser == "record":
        return _record_of(r)
    if parser == "pins":
        return _pins_of(r)
    if parser == "scope_file":
        text = r.choice(seeds["scope_file"])
        return b64(
            (mutated(r, text) if r.random() < 0.4 else json.dumps(_changed(r, json.loads(text)))).encode(
                "utf-8", "replace"
            )
        )
    if parser in ("blob", "export"):
        text = r.choice(seeds["blob"])
        try:
            value = json.loads(text)
        except ValueError:
            return _utf8(mutated(r, text))
        return _utf8(mutated(r, text)) if r.random() < 0.4 else json.dumps(_changed(r, value))
    return mutated(r, r.choice(seeds[parser]))


#: The owner of the drawn record.
_RECORD_SEED = b"\x01" * 32


def _record_of(r: Random) -> list[str]:
    """Return a name and a record that its key signed, with data and fields that may break any rule."""
    signer = Signer25519(_RECORD_SEED)
    until = (
        mutated(
            r,
            r.choice(("2027-01-01T00:00:00.000000000Z", "2027-02-29T23:59:59Z", "0001-01-01T00:00:00+00:01")),
        )
        if r.random() < 0.4
        else "2027-01-01T00:00:00Z"
    )
    value = mutated(r, "/ipfs/bafkqaaa") if r.random() < 0.3 else "/ipfs/bafkqaaa"
    sequence, ttl = (
        r.choice((0, 1, 23, 24, 255, 256, 2**32, 2**63 - 1, 2**63)),
        r.choice((0, 300, 2**63 - 1, 2**64 - 1)),
    )
    data = ipns_data.encode(value.encode("utf-8", "replace"), until.encode("utf-8", "replace"), sequence, ttl)
    if r.random() < 0.3:
        data = _mutated_bytes(r, data)
    fields = [
        (1, value.encode("utf-8", "replace")), (2, b"s"), (3, 0), (4, until.encode("utf-8", "replace")), (5, sequence), (6, ttl),
        (7, b"\x08\x01\x12\x20" + signer.public), (8, signer.sign(b"ipns-signature:" + data)), (9, data), (11, b"x"), (12, 5),
    ]  # fmt: skip
    fields = [one for one in fields if one[0] in (8, 9) or r.random() < 0.5]
    if r.random() < 0.1:
        fields.append(r.choice(fields))
    if r.random() < 0.3:
        r.shuffle(fields)
    record = b"".join(
        _varint(tag << 3) + _varint(said) if isinstance(said, int) else _varint(tag << 3 | 2) + _varint(len(said)) + said
        for tag, said in fields
    )  # fmt: skip
    return [ipns_name(signer.public), b64(_mutated_bytes(r, record) if r.random() < 0.2 else record)]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _pins_of(r: Random) -> list[str]:
    """Return the name and content of a file of pins."""
    cid = str(raw_cid(sha256(b"x").digest()))

    def line() -> bytes:
        pin = {"cid": cid, "created": r.choice((0, 5, 7, 9, 2**53 - 1, 2**53)), "name": r.choice((*PIN_NAMES, "b", "a" * 255, "é" * 256)), "v": 1}  # fmt: skip
        kind = r.random()
        if kind < 0.5:
            return encode_canonical(pin)
        if kind < 0.7:
            return json.dumps(_changed(r, pin)).encode()
        return mutated(r, r.choice((json.dumps(pin), encode_canonical(pin).decode()))).encode(
            "utf-8", "replace"
        )

    end = r.choice((b"\n", b"\n", b"\r\n", b"\r", b"\n\n", b"\x0b", b"\xe2\x80\xa8"))
    data = end.join(line() for _ in range(r.randrange(4))) + r.choice((b"", end))
    if r.random() < 0.5:
        return [f"{'0' * 64}.pins", b64(data)]
    named = r.choice((cid, cid, cid, cid.upper(), "Qm" + "a" * 44, "x"))
    return [f"{named}.{tag_of(r.choice(PIN_NAMES))}.json", b64(line() if r.random() < 0.8 else data)]


def _utf8(text: str) -> str:
    """Return a text as a file can hold it."""
    return text.encode("utf-8", "replace").decode()


def _as_card(r: Random, text: str) -> str:
    """Return a card in canonical form with a changed value: most mutations of a text are refused for their
    form alone."""
    try:
        value = _changed(r, json.loads(text))
    except ValueError:
        return text
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


class Difference(NamedTuple):
    """An input for which the implementations return different results; `plain` is that of
    `tests.support.plain`."""

    parser: str
    given: Any
    python: Any
    typescript: Any
    plain: Any


def _as_json(value: Any) -> Any:
    return value if value is plain.UNKNOWN else json.loads(json.dumps(value))


def plain_differences(seed: int, count: int) -> list[Difference]:
    """Return the differences between this package and the plain reader in `count` inputs."""
    found = []
    for parser, one in inputs(seed, count):
        read = _as_json(plain.judged(parser, one))
        if read is not plain.UNKNOWN and read != (python := _as_json(judged(parser, one))):
            found.append(Difference(parser, one, python, None, read))
    return found


def differences(
    node: str, program: Path, scratch: Path, seed: int, count: int, only: Iterable[str | None] = (None,)
) -> list[Difference]:
    """Return the differences between the implementations in `count` inputs of each of these parsers (None:
    all except those of providers). TypeScript reads all of them in one process."""
    given = [one for parser in only for one in inputs(seed, count, parser)]
    file = scratch / f"inputs-{seed}.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in given), "utf-8")
    lines = run([node, program, file]).split("\n")
    assert len(lines) == len(given), "not every input was judged"
    found = []
    for (parser, one), line in zip(given, lines, strict=True):
        python, typescript = _as_json(judged(parser, one)), json.loads(line)
        read = _as_json(plain.judged(parser, one))
        if python != typescript or read not in (python, plain.UNKNOWN):
            found.append(Difference(parser, one, python, typescript, read))
    return found
