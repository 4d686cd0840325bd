"""`ipfsmem write`: sources, header, refusals."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from hashlib import sha256
from pathlib import Path

import pytest

from ipfsmem.cli import write_work
from tests.support.cli_lab import Cli


def test_write_reads_its_text_from_an_option_a_file_or_stdin(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("from a file\n")
    cli.ok("write", "a", "--body", "from a flag")
    cli.ok("write", "b", "--file", str(tmp_path / "text"))
    cli.ok("write", "c", "-", stdin=b"from standard input\n")
    cli.ok("write", "d", "--file", "-", stdin=b"the same\n")
    bodies = [cli.ok("read", key, "--body").out for key in "abcd"]
    assert bodies == ["from a flag\n", "from a file\n", "from standard input\n", "the same\n"]


def test_printed_hash_is_that_of_the_read_output(cli: Cli) -> None:
    printed = cli.ok("write", "tone", "--body", "direct").out.strip()
    assert printed == sha256(cli.ok("read", "tone").out_bytes).hexdigest()
    as_json = cli.ok("write", "tone", "--body", "more direct", "--json").json
    assert as_json["sha256"] == sha256(cli.ok("read", "tone").out_bytes).hexdigest()


def test_write_keeps_header_fields_not_given(cli: Cli) -> None:
    cli.ok(
        "write", "tone", "--body", "direct", "--name", "Tone", "--description", "how", "--type", "feedback",
        "--tag", "style", "--tag", "voice", "--set", "decay=30d",
    )  # fmt: skip
    cli.ok("write", "tone", "--description", "in one line", "--set", "decay=", "--set", "mood=calm")
    found = cli.ok("read", "tone", "--json").json
    assert found["body"] == "direct"
    assert {k: found["fields"].get(k) for k in ("name", "description", "type", "tags", "decay", "mood")} == {
        "name": "Tone", "description": "in one line", "type": "feedback", "tags": "[style, voice]",
        "decay": None, "mood": "calm",
    }  # fmt: skip


def test_write_of_a_whole_file_stores_its_exact_bytes(cli: Cli) -> None:
    data = b"---\nname: Odd\nown: kept\n---\n\n\n  body\n\n\n"
    cli.ok("write", "odd", "--whole", "-", stdin=data)
    assert cli.ok("read", "odd").out_bytes == data


def test_write_refuses_a_text_changed_since_it_was_shown(cli: Cli) -> None:
    first = cli.ok("write", "tone", "--body", "one", "--new").out.strip()
    second = cli.ok("write", "tone", "--body", "two", "--if-match", first).out.strip()
    result = cli.fails(6, "write", "tone", "--body", "three", "--if-match", first)
    assert second in result.err
    cli.fails(6, "write", "tone", "--body", "three", "--new")
    cli.fails(6, "write", "other", "--body", "x", "--if-match", first)
    cli.fails(2, "write", "tone", "--body", "x", "--if-match", "abc")
    assert cli.ok("read", "tone", "--body").out == "two\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["tone"],
        ["tone", "+"],
        ["tone", "--body", "x", "-"],
        ["tone", "--body", "x", "--file", "f"],
        ["tone", "--whole", "--body", "x", "--name", "N"],
        ["tone", "--whole"],
        ["tone", "--body", "x", "--set", "nothing"],
        ["tone", "--body", "x", "--type", "mood"],
        ["tone", "--body", "x", "--new", "--if-match", "0" * 64],
    ],
)
def test_write_refuses_options_that_exclude_each_other(cli: Cli, arguments: list[str]) -> None:
    cli.fails(2, "write", *arguments)
    assert cli.ok("list").out == ""


@pytest.mark.parametrize("key", ["a/b", "../up", "Upper", "memory", "con", "", "a" * 65, "a\nb", "ä"])
def test_write_refuses_invalid_keys(cli: Cli, key: str) -> None:
    cli.fails(12, "write", "--body", "x", "--", key)


def test_write_refuses_a_text_that_is_not_utf8(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("Größe".encode("latin-1"))
    for more in ([], ["--whole"]):
        result = cli.fails(10, "write", "tone", "--file", str(tmp_path / "latin"), *more)
        assert "UTF-8" in result.err
    assert cli.ok("list").out == ""


def test_write_refuses_an_option_that_is_not_utf8(cli: Cli) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ipfsmem.cli", "write", "tone", "--home", str(cli.home), "--body", b"\xff\xfe"],
        capture_output=True, timeout=60, env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert done.returncode == 10 and done.stderr.startswith(b"ipfsmem: ") and b"Traceback" not in done.stderr


def test_write_refuses_text_or_header_over_the_limit(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * (960 * 1024 + 1))
    cli.fails(11, "write", "tone", "--file", str(tmp_path / "long"))
    cli.fails(11, "write", "tone", "-", stdin=b"x" * (960 * 1024 + 1))
    cli.fails(11, "write", "tone", "--body", "x", "--description", "y" * 4100)
    (tmp_path / "header").write_bytes(b"---\nname: " + b"n" * 4200 + b"\n---\n\nbody\n")
    cli.fails(11, "write", "tone", "--whole", "--file", str(tmp_path / "header"))
    assert cli.ok("list").out == ""


def test_write_refuses_unreadable_files(cli: Cli, tmp_path: Path) -> None:
    cli.fails(4, "write", "tone", "--file", str(tmp_path / "missing"))
    cli.fails(2, "write", "tone", "--file", str(tmp_path))


def test_write_without_a_vault_suggests_init(bare: Cli) -> None:
    assert "ipfsmem init" in bare.fails(4, "write", "tone", "--body", "x").err


def test_full_disk_keeps_the_former_text(cli: Cli) -> None:
    import resource

    cli.ok("write", "tone", "--body", "before")

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

    done = subprocess.run(
        [sys.executable, "-m", "ipfsmem.cli", "write", "tone", "-", "--home", str(cli.home)],
        input=b"after " * 150_000, capture_output=True, timeout=60, preexec_fn=small,
    )  # fmt: skip
    assert done.returncode == 30 and done.stdout == b"", done
    assert len(done.stderr.splitlines()) == 2 and done.stderr.startswith(b"ipfsmem: ")
    assert cli.ok("read", "tone", "--body").out == "before\n"


def test_full_output_device_is_reported_in_one_line(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "x")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ipfsmem.cli", "read", "tone", "--home", str(cli.home)],
            stdout=full, stderr=subprocess.PIPE, timeout=60,
        )  # fmt: skip
    assert done.returncode == 30 and b"the disk is full" in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.slow
def test_concurrent_writes_are_all_stored(cli: Cli) -> None:
    command = [sys.executable, "-m", "ipfsmem.cli", "write", "--home", str(cli.home)]
    many = [subprocess.Popen([*command, f"k{n}", "--body", f"text {n}"]) for n in range(6)]
    assert [process.wait(60) for process in many] == [0] * 6
    assert [item["key"] for item in cli.ok("list", "--json").json["memories"]] == [f"k{n}" for n in range(6)]


def test_write_of_read_output_is_a_whole_file(cli: Cli) -> None:
    """A pipe from `read` to `write` must not nest a second header."""
    cli.ok("write", "tone", "--body", "direct", "--name", "Tone", "--type", "feedback")
    before = cli.ok("read", "tone").out_bytes
    cli.ok("write", "tone", "-", stdin=before.replace(b"direct", b"kind"))
    assert cli.ok("read", "tone").out_bytes == before.replace(b"direct", b"kind")
    cli.ok("write", "copy", "--body", before.decode())
    assert cli.ok("read", "copy").out_bytes == before
    odd = cli.ok("write", "odd", "--body-only", "-", stdin=before) and cli.ok("read", "odd").out_bytes
    assert odd.count(b"name: Tone") == 1 and odd.startswith(b"---\ncreated: ")
    assert cli.ok("read", "odd", "--body").out_bytes == before
    cli.ok("write", "odd2", "-", stdin=odd)
    assert cli.ok("read", "odd2").out_bytes == odd
    cli.fails(2, "write", "tone", "-", "--name", "Other", stdin=before)
    assert cli.ok("read", "tone").out_bytes == before.replace(b"direct", b"kind")


def test_empty_input_does_not_replace_a_text(cli: Cli) -> None:
    """A failed program before the pipe causes this."""
    cli.ok("write", "tone", "--body", "direct")
    before = cli.ok("read", "tone").out_bytes
    for arguments in (("-",), ("--file", "-"), ("--body", ""), ("--whole", "-")):
        cli.fails(2, "write", "tone", *arguments, stdin=b" \n")
    assert cli.ok("read", "tone").out_bytes == before
    cli.ok("write", "tone", "--empty", "-", stdin=b"")
    assert cli.ok("read", "tone", "--body").out == "\n"
    cli.ok("write", "tone", "--body", "---")
    assert cli.ok("read", "tone", "--body").out == "---\n"


def test_options_are_refused_before_stdin_is_read(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: str, what: str) -> bytes:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr(write_work, "read_text", read)
    cli.fails(2, "write", "tone", "-", "--set", "created=never")
    cli.fails(2, "write", "tone", "-", "--new", "--if-match", "0" * 64)
    cli.fails(2, "write", "tone", "--file", "-", "--whole", "--name", "Tone")
    cli.fails(2, "write", "tone", "--body", "x", "-")


@pytest.mark.parametrize(
    "header",
    [
        b"---\nname: rule\nmetadata:\n  type: feedback\n  originSessionId:\n  note: said: ask\n---\n\n",
        b"---\r\nname: rule\r\ntags:\r\n  - a # why\r\n---\r\n\r\n",
        b"---\n# kept\nstatus: draft\nstatus: final\n---\n",
        b"+++\ntitle = 'rule'\n[extra]\nx = 1\n+++\n\n",
        b'{\n  "title": "rule"\n}\n\n',
        b"---\ntitle: A: B\ntags:\n  - &x a\n  - *x\n---\n\n",
        b"---\n" + b"".join(b"key%d:\n  - value\n" % number for number in range(400)) + b"---\n\n",
    ],
    ids=["empty-field", "crlf-list", "doubled", "toml", "json", "broken-yaml", "long-yaml"],
)
def test_write_of_a_body_keeps_every_line_of_the_header(cli: Cli, header: bytes) -> None:
    cli.ok("write", "rule", "-", stdin=header + b"Ask before you deploy.\n")
    listed = cli.ok("list", "--json").json["memories"]
    cli.ok("write", "rule", "--body", "Ask twice.")
    found = cli.ok("read", "rule").out_bytes
    assert b"Ask twice." in found and b"before you deploy" not in found
    rest = iter(found.splitlines())
    assert all(line in rest for line in header.splitlines() if not line.startswith(b"updated"))
    (before,), (after,) = listed, cli.ok("list", "--json").json["memories"]
    assert after["tags"] == before["tags"]
    assert before["fields"].items() <= {**after["fields"], "updated": before["fields"].get("updated")}.items()


def test_field_of_a_toml_header_cannot_be_changed_alone(cli: Cli) -> None:
    text = b"+++\ntitle = 'rule'\n+++\n\nAsk.\n"
    cli.ok("write", "rule", "-", stdin=text)
    refused = cli("write", "rule", "--description", "in one line")
    assert refused.code != 0 and "cannot be changed one by one" in refused.err and "as a whole" in refused.err
    assert cli.ok("read", "rule").out_bytes.endswith(text)


def test_import_of_one_name_in_nfc_and_nfd_makes_one_memory(cli: Cli, tmp_path: Path) -> None:
    for form in ("NFC", "NFD"):
        (tmp_path / form).mkdir()
        (tmp_path / form / unicodedata.normalize(form, "Café résumé.md")).write_text("espresso machine\n")  # type: ignore[arg-type]
        cli.ok("import", str(tmp_path / form))
    (one,) = cli.ok("list", "--json").json["memories"]
    assert one["key"].startswith("caf_r_sum")
    assert not cli.ok("conflicts", "--json").json["conflicts"]
