"""Public sets of questions read from files that somebody has: LoCoMo and LongMemEval (JSON), BEIR (a folder). None ships here.

Every reader gives collections: entries that are searched together, with the questions about them. A file that is none of these
is a `SetError` in plain words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench.retrieval_set import Collection, Question
from ipfsmem.recall.index import Document

#: LoCoMo's category of questions that nothing in the conversation answers.
_UNANSWERED = 5
_session_key = re.compile(r"session_(\d+)")
_turn_id = re.compile(r"D:?(\d+):(\d+)")


class SetError(Exception):
    """A file or folder that is no set of these kinds, in words."""


def read(path: Path) -> tuple[list[Collection], str]:
    """The collections at a path, and the SHA-256 of the data; of a folder that of its files one after the other, by name."""
    try:
        if path.is_dir():
            return _beir(path)
        data = path.read_bytes()
        found = json.loads(data)
    except OSError as error:
        raise SetError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise SetError(
            f"{path} is no JSON in UTF-8. Give LoCoMo's or LongMemEval's file as it was published."
        ) from None
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise SetError(
            f"{path} is no list of objects. Give LoCoMo's or LongMemEval's file as it was published."
        )
    if "haystack_sessions" not in found[0] and "conversation" not in found[0]:
        raise SetError(
            f"{path} is of no known kind: its first object has neither conversation nor haystack_sessions."
        )
    reader = _longmemeval if "haystack_sessions" in found[0] else _locomo
    collections = []
    for number, one in enumerate(found):
        try:
            made = reader(one, f"{path.stem}/{number}")
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SetError(f"{path}: object {number} is not as its kind has it: {_what(error)}.") from None
        if made.questions:
            collections.append(made)
    return _some(collections, path), sha256(data).hexdigest()


def _what(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def _some(collections: list[Collection], path: Path) -> list[Collection]:
    if not collections:
        raise SetError(f"{path} has no question with an answer among its entries.")
    return collections


def _locomo(sample: dict[str, Any], name: str) -> Collection:
    """One conversation. A picture counts by its caption; questions without an answer there are left out."""
    conversation = sample["conversation"]
    numbers = sorted(int(found[1]) for key in conversation if (found := _session_key.fullmatch(key)))
    documents: list[Document] = []
    today = date.min
    for number in numbers:
        day = datetime.strptime(
            conversation[f"session_{number}_date_time"].partition(" on ")[2], "%d %B, %Y"
        ).date()
        today = max(today, day)
        for turn in conversation[f"session_{number}"]:
            text = f"{turn['speaker']}: {turn['text']}"
            if turn.get("blip_caption"):
                text += f" [{turn['blip_caption']}]"
            documents.append(
                Document(f"{name}/{_plain(turn['dia_id'])}", text, group=f"{name}/{number}", at=day)
            )
    there = {one.id for one in documents}
    questions = []
    for asked in sample["qa"]:
        named = [
            f"{name}/D{one[1]}:{int(one[2])}"
            for text in asked.get("evidence", ())
            for one in _turn_id.finditer(text)
        ]
        relevant = {id: 1 for id in named if id in there}
        if relevant and asked["category"] != _UNANSWERED:
            questions.append(
                Question(_text(asked["question"]), relevant, f"category {asked['category']}", today)
            )
    return Collection(name, tuple(documents), tuple(questions))


def _plain(turn: str) -> str:
    """The id of a turn as the evidence names it."""
    found = _turn_id.fullmatch(turn)
    if found is None:
        raise ValueError(f"{turn!r} is no id of a turn")
    return f"D{found[1]}:{int(found[2])}"


def _longmemeval(asked: dict[str, Any], name: str) -> Collection:
    """One question and its sessions. Where no turn is marked, all turns of the sessions with the answer are."""
    answers = set(asked["answer_session_ids"])
    documents: list[Document] = []
    marked: dict[str, int] = {}
    of_sessions: dict[str, int] = {}
    sessions = zip(
        asked["haystack_session_ids"], asked["haystack_dates"], asked["haystack_sessions"], strict=True
    )
    for number, (session, told, turns) in enumerate(sessions):
        for at, turn in enumerate(turns):
            id = f"{name}/{number}/{at}"
            documents.append(
                Document(
                    id,
                    f"{turn['role']}: {_text(turn['content'])}",
                    group=f"{name}/{number}",
                    at=_slashed(told),
                )
            )
            if turn.get("has_answer"):
                marked[id] = 1
            if session in answers:
                of_sessions[id] = 1
    questions = []
    if not asked["question_id"].endswith("_abs") and (marked or of_sessions):
        today = _slashed(asked["question_date"])
        questions.append(
            Question(_text(asked["question"]), marked or of_sessions, asked["question_type"], today)
        )
    return Collection(name, tuple(documents), tuple(questions))


def _slashed(told: str) -> date:
    return datetime.strptime(told[:10], "%Y/%m/%d").date()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _beir(folder: Path) -> tuple[list[Collection], str]:
    """Every file of qrels/ together; the title of a text is its header."""
    files = [folder / "corpus.jsonl", folder / "queries.jsonl", *sorted((folder / "qrels").glob("*.tsv"))]
    for file in files[:2]:
        if not file.is_file():
            raise SetError(
                f"{folder} has no {file.name}. A BEIR folder has corpus.jsonl, queries.jsonl and qrels/*.tsv."
            )
    if len(files) < 3:
        raise SetError(
            f"{folder} has no qrels/*.tsv. A BEIR folder has corpus.jsonl, queries.jsonl and qrels/*.tsv."
        )
    hashed = sha256()
    for file in files:
        hashed.update(file.read_bytes())
    documents = tuple(Document(one["_id"], one["text"], one.get("title", "")) for one in _lines(files[0]))
    there = {one.id for one in documents}
    relevant: dict[str, dict[str, int]] = {}
    for file in files[2:]:
        for number, line in enumerate(_utf8(file).splitlines()):
            fields = line.split("\t")
            if number == 0 and fields[-1] == "score":
                continue
            try:
                query, document, grade = fields
                if int(grade) > 0 and document in there:
                    relevant.setdefault(query, {})[document] = int(grade)
            except ValueError:
                raise SetError(
                    f"{file}: line {number + 1} is not a query, a text and a number with tabs between."
                ) from None
    questions = tuple(
        Question(one["text"], relevant[one["_id"]], "", date.today())
        for one in _lines(files[1])
        if one["_id"] in relevant
    )
    return _some(
        [Collection(folder.name, documents, questions)] if questions else [], folder
    ), hashed.hexdigest()


def _lines(file: Path) -> Iterator[dict[str, str]]:
    for number, line in enumerate(_utf8(file).splitlines()):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not all(isinstance(found.get(key), str) for key in ("_id", "text")):
            raise SetError(f"{file}: line {number + 1} is no JSON object with _id and text.")
        yield found


def _utf8(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except ValueError:
        raise SetError(f"{file} is not in UTF-8.") from None
