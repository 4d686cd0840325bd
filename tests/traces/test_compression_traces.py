"""Compressed and uncompressed objects of one text, on several devices (format section 3)."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from ipfsmem.causal.value import Loc
from ipfsmem.device.codec import SealedCodec
from ipfsmem.errors import ConfigError
from ipfsmem.memory import Memory
from ipfsmem.seal.compression import deflate
from tests.support.device_lab import Forger, Lab, body, lab_in, replaced, same

LONG = "\n".join(f"{n}. The user wants the answer first and the reasons after it." for n in range(60))


@pytest.fixture
def lab(tmp_path):
    with lab_in(tmp_path) as made:
        yield made


def place(memory: Memory, key: str) -> Loc:
    """Return the location of the only text of a key."""
    (value,) = memory.replica.store.entry(f"m/{key}").values()
    assert value.loc is not None
    return value.loc


def sealed_again(memory: Memory, key: str, how: str) -> tuple[str, bytes]:
    """Return the text of a key as sealed with another compressor, or with none."""
    ((_, value),) = memory.replica.store.entry(f"m/{key}").items()
    data = memory.replica.store.body(f"m/{key}", value)
    codec = memory.replica.codec
    assert data is not None and isinstance(codec, SealedCodec)
    sealer = codec.sealers(codec.ek)[0]
    stored = sealer.seal(3, key, data) if how == "off" else sealer.seal_deflated(key, deflate(data, int(how)))
    return codec.ek, stored


@pytest.mark.parametrize("order", list(itertools.permutations("abc")), ids="".join)
def test_one_text_sealed_by_two_compressors_at_one_dot(order: tuple[str, ...], lab: Lab) -> None:
    """One text sealed by two compressors at one dot: one location in the end."""
    from hashlib import sha256

    a, b, c = lab.three()
    a.write("tone", LONG)
    lab.settle(a, b, c)
    ((under, value),) = a.replica.store.entry("m/tone").items()
    places = {place(a, "tone")}
    for memory, how in ((b, "1"), (c, "off")):
        ek, stored = sealed_again(memory, "tone", how)
        digest = sha256(stored)
        loc = Loc(ek, digest.hexdigest(), len(stored))
        places.add(loc)
        forger = Forger(memory)
        forger.put({"m/tone": {under: replaced(value, loc=loc)}}, blocks=[(digest.digest(), stored)])
        forger.publish()
    assert len(places) == 3
    devices = {"a": a, "b": b, "c": c}
    lab.settle(*(devices[name] for name in order))
    same(a, b, c)
    best = max(places, key=lambda loc: (loc.sha, loc.size))
    assert {place(memory, "tone") for memory in (a, b, c)} == {best}
    assert body(c, "tone") == LONG and not c.conflicts()


def test_object_with_false_compression_never_replaces_a_valid_object(lab: Lab) -> None:
    """An object that does not open by the rules is not a location, however great its hash."""
    from hashlib import sha256

    a, b, _ = lab.three()
    a.write("tone", LONG)
    lab.settle(a, b)
    good = place(a, "tone")
    ((under, value),) = b.replica.store.entry("m/tone").items()
    data = b.replica.store.body("m/tone", value)
    codec = b.replica.codec
    assert data is not None and isinstance(codec, SealedCodec)
    for n in range(64):
        # Bytes after the end of the stream, which some inflaters ignore.
        stored = codec.sealers(codec.ek)[0].seal_deflated("tone", deflate(data) + bytes([n]))
        if sha256(stored).hexdigest() > good.sha:
            break
    digest = sha256(stored)
    forger = Forger(b)
    bad = Loc(codec.ek, digest.hexdigest(), len(stored))
    forger.put({"m/tone": {under: replaced(value, loc=bad)}}, blocks=[(digest.digest(), stored)])
    forger.publish()
    lab.sync(a)
    assert place(a, "tone") == good and body(a, "tone") == LONG
    lab.settle(a, b)
    assert place(b, "tone") == good and body(b, "tone") == LONG


def test_location_with_a_wrong_size_is_ignored(lab: Lab) -> None:
    """Folders state the size from the location."""
    a, b, _ = lab.three()
    a.write("tone", LONG)
    lab.settle(a, b)
    good = place(a, "tone")
    ((under, value),) = b.replica.store.entry("m/tone").items()
    forger = Forger(b)
    forger.put({"m/tone": {under: replaced(value, loc=Loc(good.ek, good.sha, good.size + 1))}})
    forger.publish()
    lab.settle(a, b)
    assert place(a, "tone") == place(b, "tone") == good


def test_text_with_a_secret_is_stored_uncompressed(lab: Lab) -> None:
    a = lab.create("a")
    a.write("prose", LONG)
    a.write("secret", LONG + "\npassword = correct-horse-9\n")
    assert place(a, "prose").size < 1000
    assert place(a, "secret").size > len(LONG)


def test_compression_can_be_disabled(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the environment and in the settings file; compressed objects still open."""
    a = lab.create("a")
    a.write("before", LONG)
    for way in ("environment", "file"):
        if way == "environment":
            monkeypatch.setenv("IPFSMEM_COMPRESS", "off")
        else:
            monkeypatch.delenv("IPFSMEM_COMPRESS")
            file = tmp_path / "config.toml"
            file.write_text("compress = false\n")
            monkeypatch.setenv("IPFSMEM_CONFIG", os.fspath(file))
        a.close()
        a = lab.open("a")
        a.write(way, LONG)
        assert place(a, way).size > len(LONG)
        assert body(a, "before") == LONG and place(a, "before").size < 1000
    monkeypatch.setenv("IPFSMEM_COMPRESS", "sometimes")
    with pytest.raises(ConfigError, match="neither on nor off"):
        lab.open("a")
