"""Names and limits of small objects."""

from __future__ import annotations

import hashlib

import pytest

from ipfsmem.errors import FormatError, ProviderRefused
from ipfsmem.provider.small_objects import (
    LISTED_MAX,
    SMALL_BATCH,
    SMALL_MAX,
    is_small,
    listed,
    parse_small_name,
    require_boxes,
    require_names,
    require_small,
    small_box,
    small_name,
)

BOX = small_box(bytes(32))
DIGEST = hashlib.sha256(b"x").hexdigest()


def test_box_of_a_vault_is_derived_from_its_anchor() -> None:
    assert hashlib.sha256(b"ipfsmem/v1/small\0" + bytes(32)).hexdigest()[:32] == BOX
    require_boxes([BOX, "0123456789abcdef"])


def test_name_has_box_label_and_digest_of_content() -> None:
    name = small_name(BOX, "a1.b-2.3", b"x")
    assert name == f"{BOX}/a1.b-2.3.{DIGEST}"
    assert parse_small_name(name) == (BOX, "a1.b-2.3", DIGEST)
    assert is_small(name, b"x") and not is_small(name, b"y")


@pytest.mark.parametrize(
    "name",
    [
        "",
        f"{BOX}/{DIGEST}",
        f"{BOX}/.{DIGEST}",
        f"{BOX}/a..b.{DIGEST}",
        f"{BOX}/../b.{DIGEST}",
        f"{BOX}/a/b.{DIGEST}",
        f"{BOX}/A.{DIGEST}",
        f"{BOX}/a.{DIGEST.upper()}",
        f"{BOX}/a.{DIGEST}\n",
        f"{BOX}/a\0.{DIGEST}",
        f"{BOX}/é.{DIGEST}",
        f"{BOX}/{'a' * 65}.{DIGEST}",
        f"{BOX[:15]}/a.{DIGEST}",
        f"{BOX}0/a.{DIGEST}",
        f"{BOX[:15]}./a.{DIGEST}",
    ],
)
def test_other_texts_are_not_names(name: str) -> None:
    assert parse_small_name(name) is None and not is_small(name, b"x")
    with pytest.raises(ProviderRefused):
        require_names([name])


def test_empty_or_too_large_small_object_is_refused() -> None:
    for data in (b"", bytes(SMALL_MAX + 1)):
        with pytest.raises(FormatError):
            small_name(BOX, "a", data)
        with pytest.raises(ProviderRefused):
            require_small(f"{BOX}/a.{hashlib.sha256(data).hexdigest()}", data)
    largest = bytes(SMALL_MAX)
    require_small(small_name(BOX, "a" * 64, largest), largest)
    with pytest.raises(FormatError):
        small_name(BOX, "a" * 65, b"x")


@pytest.mark.parametrize("box", ["", "0" * 15, "0" * 33, "0" * 15 + "/", "0" * 15 + "A"])
def test_other_texts_are_not_boxes(box: str) -> None:
    with pytest.raises(ProviderRefused):
        require_boxes([box])


def test_long_batches_are_refused() -> None:
    with pytest.raises(ProviderRefused):
        require_names([f"{BOX}/{n}.{DIGEST}" for n in range(SMALL_BATCH + 1)])
    with pytest.raises(ProviderRefused):
        require_boxes([f"{n:016}" for n in range(SMALL_BATCH + 1)])


def test_flooded_box_hides_no_object_of_another_box() -> None:
    other = small_box(b"o" * 32)
    flood = [(f"{BOX}/{n:06}.{DIGEST}", 1) for n in range(LISTED_MAX + 5)]
    mine = [(f"{other}/{n}.{DIGEST}", n) for n in (1, SMALL_MAX)]
    odd = [(f"{other}/large.{DIGEST}", SMALL_MAX + 1), (f"{other}/empty.{DIGEST}", 0), ("noise", 1)]
    found = listed([*flood[::-1], *mine, *odd], [BOX, other])
    assert [*found] == sorted(found)
    assert {name: size for name, size in found.items() if name.startswith(other)} == dict(mine)
    assert [name for name in found if name.startswith(BOX)] == [name for name, _ in flood[:LISTED_MAX]]
    assert listed([*flood, *mine], [other]) == dict(mine)
