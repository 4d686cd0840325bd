"""The examples and tables of docs/reference and the guides are true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.cli.app import GROUPS, RENAMED, SHORT, find_command
from ipfsmem.device.kernel_keyring import has_kernel_keyring
from ipfsmem.sync.report import MOST_NAMED, Notice
from tests.support import console_page, effort
from tests.support.cli_lab import KEY, Cli
from tests.support.console_page import Step
from tests.support.extras import need_extra
from tests.support.ports import free_port

DOCS = Path(__file__).parents[2] / "docs"
#: tests/cli/test_week.py plays the week on two devices.
GUIDES = sorted(set((DOCS / "guides").glob("*.md")) - {DOCS / "guides" / "week.md"})


HAS_KEYRING = has_kernel_keyring()
#: Vaults that only their own examples name: these examples depend on no others and run in a separate folder.
SEPARATE = ("second", "copy", "notes", "page", "served", "linked", "spare")
#: All other examples.
MAIN_STORY = "laptop and phone"
#: Run with a real start of the program for each command. (test_cli_demo starts `demo`.)
WITH_REAL_STARTS = (MAIN_STORY, "demo", *SEPARATE) if effort.THOROUGH else ("served",)


def examples() -> dict[str, list[Step]]:
    """Return the commands of the page and their output by story, in the page's order."""
    found: dict[str, list[Step]] = {}
    for steps in console_page.blocks((DOCS / "reference" / "cli.md").read_text("utf-8")):
        commands = "\n".join(command for command, _ in steps)
        if not HAS_KEYRING and re.search(r"ipfsmem (un)?lock\b", commands):
            continue  # a container that forbids the kernel's keyring
        named = set(re.findall(r"--vault (\w+)", commands)) & set(SEPARATE)
        story = "demo" if commands.startswith("ipfsmem demo") else named.pop() if named else MAIN_STORY
        assert not named, commands
        found.setdefault(story, []).extend(steps)
    return found


EXAMPLES = examples()
#: The common setup of all stories: provider and homes.
BEFORE = [step for step in EXAMPLES[MAIN_STORY] if re.match(r"mkdir stick|export IPFSMEM_HOME", step[0])]


def test_every_documented_example_is_run_in_its_own_vault() -> None:
    assert len(BEFORE) == 2
    assert set(EXAMPLES) == {MAIN_STORY, "demo", *SEPARATE}


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with console_page.forks(tmp_path_factory.mktemp("forks")) as program:
        yield program


@pytest.mark.parametrize("story", EXAMPLES)
def test_examples_of_the_command_line_page_print_the_documented_output(
    tmp_path: Path, story: str, forks: str
) -> None:
    if story == "linked":
        need_extra("mcp", "mcp")
    steps = EXAMPLES[story] if EXAMPLES[story][0] in BEFORE else BEFORE + EXAMPLES[story]
    port = str(free_port())  # so that concurrent runs do not share it
    steps = [
        (command.replace("8793", port), [line.replace("8793", port) for line in lines])
        for command, lines in steps
    ]
    console_page.play(steps, tmp_path, console_page.PROGRAM if story in WITH_REAL_STARTS else forks)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_commands_of_the_guides_print_the_documented_output(tmp_path: Path, guide: Path, forks: str) -> None:
    if guide.stem == "agents":
        need_extra("mcp", "mcp")
    steps = [step for block in console_page.blocks(guide.read_text("utf-8")) for step in block]
    assert len(steps) > 5
    console_page.play(steps, tmp_path, forks)


def test_every_command_has_a_section_with_an_example() -> None:
    text = (DOCS / "reference" / "cli.md").read_text("utf-8")
    sections = dict(re.findall(r"^### ([\w ]+)\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE))
    names = {*SHORT, "hook"} - GROUPS.keys()
    assert set(sections) == names | {f"{group} {name}" for group in GROUPS for name in GROUPS[group]}
    for name, section in sections.items():
        assert re.search(rf"^\$ .*\bipfsmem {name}\b", section, re.MULTILINE), name


def test_table_of_former_names_has_each_renamed_command() -> None:
    table = (
        (DOCS / "reference" / "cli.md")
        .read_text("utf-8")
        .partition("## Earlier names\n")[2]
        .partition("\n## ")[0]
    )
    rows = dict(re.findall(r"^\| `([a-z]+)` \| (.+) \|$", table, re.MULTILINE))
    assert len(rows) == 63
    for name, now in rows.items():
        if now == "the same":
            assert name in SHORT and name not in RENAMED, name
            continue
        (present, *_) = re.findall(r"`([a-z ]+)`", now)
        assert find_command(*present.split()) is not None, now
    for name, present in RENAMED.items():
        assert f"`{present}`" in rows[name.split()[0]], name


def test_documented_json_fields_are_those_that_are_printed(sealed: Cli) -> None:
    rows = re.search(r"\n## JSON\n(.*?)\n## ", (DOCS / "reference" / "cli.md").read_text("utf-8"), re.DOTALL)
    assert rows is not None
    found = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", rows[1], re.MULTILINE))
    fields = {
        name: set(re.findall(r"`(\w+)`", re.sub(r"\([^()]*\)", "", text))) for name, text in found.items()
    }
    members = sealed.ok("member", "list", "--json").json
    assert fields["`member list`"] == set(members)
    assert fields["a member"] == set(members["members"][0])
    assert fields["`key derive`"] == set(sealed.ok("key", "derive", "--json", stdin=KEY.encode()).json)
    assert fields["a notice"] == set(Notice.__struct_fields__)
    said = sealed.ok("sync", "--json").json
    assert fields["`sync`"] == set(said)
    assert fields["`report` of `sync`, `member admit`, `member rotate`"] <= set(said["report"])
    assert MOST_NAMED == 20
