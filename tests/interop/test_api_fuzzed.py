"""The OpenAPI document under a third-party validator, and every route under an API fuzzer: schemathesis draws
valid and invalid requests from the document, and validates each answer.

Both are installed into the cache where counterparts are required; otherwise this is skipped."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.counterparts import cached_where_asked, missing, run
from tests.support.api_lab import TOKEN, Client, Lab, opener
from tests.support.effort import THOROUGH, cases

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PACKAGES = ("schemathesis==4.32.5", "openapi-spec-validator==0.9.0")
CHECKS = "not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance"
VALIDATE = (
    "import json, sys; from openapi_spec_validator import validate; validate(json.load(open(sys.argv[1])))"
)


@pytest.fixture(scope="module")
def python() -> Path:
    """A Python with both packages."""

    def install(target: Path) -> None:
        run([sys.executable, "-m", "venv", target])
        run(
            [
                target / "bin" / "python",
                "-m",
                "pip",
                "install",
                "-q",
                "--disable-pip-version-check",
                *PACKAGES,
            ]
        )

    key = "-".join(one.partition("==")[2] for one in PACKAGES)
    try:
        return cached_where_asked("fuzzer", key, install) / "bin" / "python"
    except (AssertionError, OSError) as error:
        missing(f"the fuzzer is not installed: {error}")


def lived(home: Path) -> None:
    with opener(home)() as memory:
        memory.write("tone", "Be brief.")
        memory.graph.add("Ada", "person", ["writes programs"])
        memory.graph.add("Acme", "company")
        memory.graph.relate("Ada", "works_at", "Acme")
        memory.facts.add("Likes tea", "preference")
        memory.sessions.add("talk", [{"role": "user", "content": "hi"}])
        memory.usage.add(model="large", cost_usd=1)
        memory.scope("work").write("plan", "Go.")


def test_fuzzed_requests_get_no_server_error_and_no_undocumented_answer(tmp_path: Path, python: Path) -> None:
    lived(tmp_path)
    document = tmp_path / "openapi.json"

    async def ask(client: Client) -> None:
        url = str(client._base_url).rstrip("/")
        async with client.get("/v1/openapi.json") as got:
            said = await got.json()
        document.write_text(json.dumps(said), "utf-8")
        await asyncio.to_thread(run, [python, "-c", VALIDATE, document])
        fuzzed = await asyncio.to_thread(
            subprocess.run,
            [
                *(python, "-m", "schemathesis.cli", "run", document, "--url", url),
                *("-H", f"Authorization: Bearer {TOKEN}", "--checks", CHECKS, "--phases", "coverage,fuzzing"),
                *("--request-timeout", "60"),  # other tests may use the processor
                *("--max-examples", str(cases(2, 25)), "--generation-database", "none"),
                *(() if THOROUGH else ("--seed", "14")),
                *("--exclude-path", "/v1/changes"),  # a stream that stays open
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        told = fuzzed.stdout
        assert fuzzed.returncode == 0, told[-6000:] + fuzzed.stderr[-2000:]
        routes = sum(len(at) for at in said["paths"].values())
        assert f"Tested: {routes - 1}" in told, told[-2000:]

    Lab(tmp_path).run(ask)
