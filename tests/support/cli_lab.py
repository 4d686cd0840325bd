"""Runs commands in this process with their own streams, home and environment."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.cli import main, secret_input

#: The public Hardhat account 0.
KEY = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
OTHER_KEY = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"


class Result:
    """The exit code and output of a command."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code, self.out_bytes, self.err_bytes = code, out, err
        self.out, self.err = out.decode(), err.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err)["error"]

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n--\n{self.err}"


class _Stream(io.BytesIO):
    def close(self) -> None:
        """Stay readable after the wrapper around it is closed."""


class Cli:
    """One device: a home, and commands on it."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, stdin: bytes = b"", key: str = "") -> Result:
        """Run a command; `key` is piped in as a raw wallet key."""
        secret_input.from_descriptor.cache_clear()
        given = list(arguments)
        if key:
            given += ["--raw-key-fd", str(pipe(key)), "--i-know-raw-keys"]
        out, err = _Stream(), _Stream()
        with self._monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(_Stream(stdin), "utf-8"))
            patch.setattr(sys, "stdout", io.TextIOWrapper(out, "utf-8"))
            patch.setattr(sys, "stderr", io.TextIOWrapper(err, "utf-8"))
            patch.setenv("IPFSMEM_HOME", str(self.home))
            code = main(given)
            sys.stdout.flush()
            sys.stderr.flush()
        return Result(code, out.getvalue(), err.getvalue())

    def ok(self, *arguments: str, stdin: bytes = b"", key: str = "") -> Result:
        result = self(*arguments, stdin=stdin, key=key)
        assert result.code == 0, result
        return result

    def fails(self, code: int, *arguments: str, stdin: bytes = b"", key: str = "") -> Result:
        """Check the exit code: an error message (perhaps with a hint) on stderr, nothing on stdout, no
        traceback."""
        result = self(*arguments, stdin=stdin, key=key)
        assert result.code == code, result
        assert result.out == "", result
        lines = result.err.splitlines()
        told = [line for line in lines if not line.startswith("Mode ")]
        assert 1 <= len(told) <= 2 and told[0].startswith("ipfsmem: "), result
        assert "Traceback" not in result.err
        return result


def pipe(text: str) -> int:
    """Return a descriptor from which the text can be read."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    return reading


def program(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the program in a new process."""
    return subprocess.run(
        [sys.executable, "-m", "ipfsmem.cli", *arguments], capture_output=True, timeout=60, **options
    )
