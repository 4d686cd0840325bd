"""The tables of threats name existing tests, and their claims about installed packages hold."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

from tests.support.statements import statements

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "internals" / "security"
PAGES = {path.name: path.read_text("utf-8") for path in sorted(FOLDER.glob("threats*.md"))}
TEXT = "\n".join(PAGES.values())
#: Threats, by number, in the order of their page.
NUMBERS = {
    name: [int(number) for number in re.findall(r"^\| (\d+) \|", text, re.M)] for name, text in PAGES.items()
}
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", TEXT)))


@cache
def functions(path: Path) -> frozenset[str]:
    """Names of the test functions and test classes of a module."""
    tree = ast.parse(path.read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return frozenset(node.name for node in statements(tree) if isinstance(node, kinds))


def test_named_tests_exist() -> None:
    assert len(NAMED) > 400
    absent = []
    for name in NAMED:
        path, function = name.split("::")
        if not (ROOT / path).is_file() or function not in functions(ROOT / path):
            absent.append(name)
    assert not absent


def test_every_threat_has_a_row() -> None:
    planned = PAGES["threats.md"].split("## Not built yet")[1]
    numbers = {number for page in NUMBERS.values() for number in page}
    assert set(range(1, 33)) <= numbers and len(numbers) >= 120
    wrong = []
    for line in TEXT.splitlines():
        if re.match(r"\| \d+ \|", line):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) != 5 or not all(cells) or "::test_" not in cells[3]:
                wrong.append(line)
    assert not wrong, "five cells, of which the fourth names a test"
    assert not re.search(r"::test_", planned), "what is not built claims a test"


def test_threat_numbers_are_unique_and_ordered() -> None:
    numbers = [number for page in NUMBERS.values() for number in page]
    assert len(numbers) == len(set(numbers))
    assert all(page == sorted(page) for page in NUMBERS.values())


def test_every_page_of_threats_is_linked() -> None:
    linked = set(re.findall(r"\]\((threats-\w+\.md)\)", PAGES["threats.md"]))
    assert linked == {name for name, numbers in NUMBERS.items() if numbers}
    assert "(docs/internals/security/threats.md)" in (ROOT / "SECURITY.md").read_text("utf-8")


def test_every_locked_package_has_hashes() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))
    wrong = []
    for package in lock["package"]:
        if "editable" in package.get("source", {}):
            continue
        files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else ())]
        if not files or not all(file["hash"].startswith("sha256:") for file in files):
            wrong.append(package["name"])
    assert not wrong


def test_libsodium_is_not_a_vulnerable_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "pynacl>=1.6.2" in project["dependencies"]
    from importlib.metadata import version

    assert tuple(map(int, version("pynacl").split(".")[:3])) >= (1, 6, 2)


def test_required_aiohttp_has_no_known_vulnerabilities() -> None:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    (aiohttp,) = [one for one in asked if one.startswith("aiohttp")]
    assert aiohttp == "aiohttp>=3.14.3"
    assert f'{{ name = "aiohttp", specifier = "{aiohttp.removeprefix("aiohttp")}" }}' in (
        ROOT / "uv.lock"
    ).read_text("utf-8")


def test_every_required_package_is_imported() -> None:
    named = {"eth-account": "eth_account", "pynacl": "nacl", "pyyaml": "yaml"}
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    names = [re.split(r"[<>=~ ]", one, maxsplit=1)[0].lower() for one in asked]
    code = "\n".join(
        path.read_text("utf-8")
        for folder in ("ipfsmem", "providers")
        for path in (ROOT / folder).rglob("*.py")
    )
    unused = [
        name
        for name in names
        if not re.search(rf"^\s*(?:from|import) {named.get(name, name)}\b", code, re.MULTILINE)
    ]
    assert not unused
