"""Deep JSON is an error, not a crash, also where another package has raised Python's recursion limit."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem import canonical
from ipfsmem.canonical import MAX_DEPTH, check_depth
from ipfsmem.errors import FormatError

PROGRAM = """
import sys, hashlib
import msgspec
sys.setrecursionlimit(100_000)
class Loose(msgspec.Struct):
    known: int = 0
from ipfsmem import canonical
from ipfsmem.adapters.store_items import value_of
from ipfsmem.bundle import blob, timeline
from ipfsmem.bundle.front_matter import front_matter
from ipfsmem.causal import tree
from ipfsmem.errors import FormatError
from ipfsmem.exchange.lenient import Fields
from ipfsmem.memories.part_lines import items_of_files
for deep in (b"[" * 500_000, b'{"a":' * 500_000, b'{"e":{"m/a":' + b"[" * 500_000):
    for read in (
        lambda d: canonical.decode(d, "it"), blob.read_blob,
        lambda d: tree.parse_node("", d, hashlib.sha256(d).digest()),
    ):
        try:
            read(deep)
        except FormatError:
            continue
        sys.exit("accepted")
    assert timeline.parse_line(deep)["type"] == "raw"
    try:
        canonical.read_json(deep, Loose)
        sys.exit("accepted")
    except msgspec.DecodeError:
        pass
deep = "[" * 200_000
for line in ('{"at":1,"item":{"a":' + deep, '{"at":1,"item":{},"a":' + deep, '{"at":1,"piece":[0,1],"text":"' + deep + '"}'):
    part = "---\\ntype: session\\nsession: chat\\n---\\n\\n" + line + "\\n"
    assert items_of_files("chat", [{"key": "session-chat-" + "0" * 16 + "-0", "file": part}]) == []
deep = '{"a":' * 100_000 + "1" + "}" * 100_000
assert front_matter(deep + "\\n\\nbody\\n") == "" and value_of(deep.encode()) is None and Fields({"it": deep}).mapping("it") == {}
print("alive")
"""


def test_json_readers_survive_a_raised_recursion_limit() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "alive"), done.stderr[-500:]


def test_json_deeper_than_recursion_limit_is_a_decode_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        canonical.read_json(b"[" * 1_500 + b"]" * 1_500)


def test_unterminated_string_is_scanned_once() -> None:
    def seconds(count: int) -> float:
        data = b"[" * (MAX_DEPTH + 1) + b'"' + b'\\"' * count
        start = time.process_time()
        with pytest.raises(FormatError):
            check_depth(data, "it")
        return time.process_time() - start

    assert seconds(64_000) < 40 * max(seconds(8_000), 0.002)


def test_wallets_do_not_change_the_recursion_limit() -> None:
    program = """
import sys
from ipfsmem.wallet.signers import MnemonicSigner
before = sys.getrecursionlimit()
MnemonicSigner("test test test test test test test test test test test junk")
from ipfsmem.wallet import signers
try:
    signers._open_keystore(b"{}", "x", "it")
except Exception:
    pass
sys.exit(before != sys.getrecursionlimit())
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@given(st.text(alphabet='[]{}"\\a', max_size=40))
def test_brackets_in_strings_are_not_counted(text: str) -> None:
    check_depth(json.dumps([text] * (MAX_DEPTH + 1)).encode(), "it")


def test_json_deeper_than_the_limit_is_refused() -> None:
    check_depth(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, "it")
    with pytest.raises(FormatError, match="deeper"):
        check_depth(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "it")


def test_text_that_is_not_unicode_is_a_decode_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        canonical.read_json(b'{"a":"\xb9"}')


def test_foreign_json_is_read_in_one_module() -> None:
    """External bytes are decoded by `read_json`, or after a check_depth."""
    root = Path(__file__).parents[2]
    own = {
        "config.py",
        "forwarding.py",
        "replica.py",
        "names.py",
        "commits.py",
        "state.py",
        "writing.py",
        "scan.py",
        "secret_check.py",
    }
    own |= {"psa_requests.py", "canonical.py", "blob.py"}
    own |= {"unlocked.py", "last_change.py"}  # only this user seals them
    for path in [*root.glob("ipfsmem/**/*.py"), *root.glob("providers/**/*.py")]:
        text = path.read_text("utf-8")
        assert "msgspec.json.decode(" not in text or path.name in own, f"{path} decodes JSON by itself"
