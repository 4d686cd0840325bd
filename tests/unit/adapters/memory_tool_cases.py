"""Cases of the memory tool, from the tests of the package `anthropic` for its own file-system tool. Contains
no tests.

Source: anthropics/anthropic-sdk-python, tests/lib/tools/memory_tools/test_filesystem.py at commit
7b0add32bd5fc59ad0fa277ef6982ee1df1eed7a (61 tests: 30 of the synchronous tool, 31 of the asynchronous one)
and test_create_short_writes.py (2). 26 of the 30 are included, each run both ways. Omitted are three about
links (there is no disk), one of a file with a million lines (over the limit of 960 KiB), one of a private
method, and the two about `os.write`."""

from __future__ import annotations

from typing import Any, NamedTuple


class Case(NamedTuple):
    """Preceding commands, the tested command, its answer (`says`) or refusal, and the resulting files."""

    name: str
    given: list[dict[str, Any]]
    when: dict[str, Any]
    says: str | None = None
    refused: str | None = None
    files: dict[str, str] | None = None


def create(path: str, text: str) -> dict[str, Any]:
    return {"command": "create", "path": path, "file_text": text}


def view(path: str, *lines: int) -> dict[str, Any]:
    return {"command": "view", "path": path, **({"view_range": list(lines)} if lines else {})}


def replace(path: str, old: str, new: str) -> dict[str, Any]:
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


def insert(path: str, line: int, text: str) -> dict[str, Any]:
    return {"command": "insert", "path": path, "insert_line": line, "insert_text": text}


def delete(path: str) -> dict[str, Any]:
    return {"command": "delete", "path": path}


def rename(old: str, new: str) -> dict[str, Any]:
    return {"command": "rename", "old_path": old, "new_path": new}


def _numbered(*lines: tuple[int, str]) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in lines)


NONE = "/memories/nonexistent.txt"
NOT_THERE = f"The path {NONE} does not exist. Please provide a valid path."
TWO = create("/memories/insert_test.txt", "Line 1\nLine 2")
_FIVE = "\n".join(f"Line {number}" for number in range(1, 6))
_EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"

CASES = [
    Case(
        "create",
        [],
        create("/memories/test_file.txt", "Hello, World!"),
        "File created successfully at: /memories/test_file.txt",
        files={"test_file.txt": "Hello, World!"},
    ),
    Case(
        "create nested directories",
        [],
        create("/memories/deep/nested/file.txt", "Nested file"),
        "File created successfully at: /memories/deep/nested/file.txt",
        files={"deep/nested/file.txt": "Nested file"},
    ),
    Case(
        "create where a file is",
        [create("/memories/existing.txt", "Original")],
        create("/memories/existing.txt", "New"),
        refused="File /memories/existing.txt already exists",
        files={"existing.txt": "Original"},
    ),
    Case(
        "view file",
        [create("/memories/view_test.txt", "Line 1\nLine 2\nLine 3")],
        view("/memories/view_test.txt"),
        "Here's the content of /memories/view_test.txt with line numbers:\n"
        + _numbered((1, "Line 1"), (2, "Line 2"), (3, "Line 3")),
    ),
    Case(
        "view directory",
        [create("/memories/dir/file1.txt", "File 1"), create("/memories/dir/file2.txt", "File 2")],
        view("/memories/dir"),
        "Here're the files and directories up to 2 levels deep in /memories/dir, excluding hidden items:\n"
        "12B\t/memories/dir\n6B\t/memories/dir/file1.txt\n6B\t/memories/dir/file2.txt",
    ),
    Case(
        "view file with range",
        [create("/memories/range_test.txt", _FIVE)],
        view("/memories/range_test.txt", 2, 4),
        "Here's the content of /memories/range_test.txt with line numbers:\n"
        + _numbered((2, "Line 2"), (3, "Line 3"), (4, "Line 4")),
    ),
    Case("view what is not there", [], view(NONE), refused=NOT_THERE),
    Case(
        "str_replace",
        [create("/memories/replace_test.txt", "Line 1\nOld Text\nLine 3")],
        replace("/memories/replace_test.txt", "Old Text", "New Text"),
        _EDITED + _numbered((1, "Line 1"), (2, "New Text"), (3, "Line 3")),
        files={"replace_test.txt": "Line 1\nNew Text\nLine 3"},
    ),
    Case(
        "str_replace of what is not in it",
        [create("/memories/replace_test.txt", "Hello, World!")],
        replace("/memories/replace_test.txt", "NotFound", "Python"),
        refused="No replacement was performed, old_str `NotFound` did not appear verbatim in /memories/replace_test.txt.",
    ),
    Case(
        "str_replace of what is in it twice",
        [create("/memories/replace_test.txt", "Hello\nMiddle\nHello")],
        replace("/memories/replace_test.txt", "Hello", "Hi"),
        refused="No replacement was performed. Multiple occurrences of old_str `Hello` in lines: 1, 3. Please ensure it is unique",
    ),
    Case("str_replace where no file is", [], replace(NONE, "old", "new"), refused=NOT_THERE),
    Case(
        "insert",
        [TWO],
        insert("/memories/insert_test.txt", 1, "Inserted Line"),
        "The file /memories/insert_test.txt has been edited.",
        files={"insert_test.txt": "Line 1\nInserted Line\nLine 2\n"},
    ),
    Case(
        "insert at the beginning",
        [TWO],
        insert("/memories/insert_test.txt", 0, "First Line"),
        "The file /memories/insert_test.txt has been edited.",
        files={"insert_test.txt": "First Line\nLine 1\nLine 2\n"},
    ),
    Case(
        "insert at the end",
        [TWO],
        insert("/memories/insert_test.txt", 2, "Last Line"),
        "The file /memories/insert_test.txt has been edited.",
        files={"insert_test.txt": "Line 1\nLine 2\nLast Line\n"},
    ),
    Case("insert where no file is", [], insert(NONE, 0, "text"), refused=NOT_THERE),
    Case(
        "insert at a line that it does not have",
        [TWO],
        insert("/memories/insert_test.txt", 10, "text"),
        refused="Invalid `insert_line` parameter: 10. It should be within the range [0, 2].",
    ),
    Case(
        "delete",
        [create("/memories/delete_me.txt", "To be deleted")],
        delete("/memories/delete_me.txt"),
        "Successfully deleted /memories/delete_me.txt",
        files={},
    ),
    Case(
        "delete directory",
        [create("/memories/subdir/file.txt", "Content")],
        delete("/memories/subdir"),
        "Successfully deleted /memories/subdir",
        files={},
    ),
    Case("delete what is not there", [], delete(NONE), refused=f"The path {NONE} does not exist"),
    Case("delete the root", [], delete("/memories"), refused="Cannot delete the /memories directory itself"),
    Case(
        "rename",
        [create("/memories/old_name.txt", "Original content")],
        rename("/memories/old_name.txt", "/memories/new_name.txt"),
        "Successfully renamed /memories/old_name.txt to /memories/new_name.txt",
        files={"new_name.txt": "Original content"},
    ),
    Case(
        "rename into a folder",
        [create("/memories/file.txt", "Content")],
        rename("/memories/file.txt", "/memories/nested/dir/file.txt"),
        "Successfully renamed /memories/file.txt to /memories/nested/dir/file.txt",
        files={"nested/dir/file.txt": "Content"},
    ),
    Case(
        "rename what is not there",
        [],
        rename(NONE, "/memories/new.txt"),
        refused=f"The path {NONE} does not exist",
    ),
    Case(
        "rename onto a file",
        [create("/memories/file1.txt", "File 1"), create("/memories/file2.txt", "File 2")],
        rename("/memories/file1.txt", "/memories/file2.txt"),
        refused="The destination /memories/file2.txt already exists",
        files={"file1.txt": "File 1", "file2.txt": "File 2"},
    ),
    Case(
        "a path that is not below /memories",
        [],
        create("/invalid/path.txt", "Invalid"),
        refused="Path must start with /memories, got: /invalid/path.txt",
    ),
    Case(
        "a path that climbs out",
        [],
        create("/memories/../../../etc/passwd", "Escape attempt"),
        refused="Path /memories/../../../etc/passwd would escape /memories directory",
    ),
]
