"""Public sets of questions read from files that somebody has: LoCoMo, LongMemEval and ConvoMem (JSON), BEIR and BEAM (a folder).

None ships here. Every reader gives collections: entries that are searched together, with the questions about them. A file of
another kind is a `SetError` in plain words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench.retrieval_talk import Collection, Question
from ipfsmem.recall.index import Document

#: LoCoMo's category of questions that nothing in the conversation answers.
_UNANSWERED = 5
_session_key = re.compile(r"session_(\d+)")
_turn_id = re.compile(r"D:?(\d+):(\d+)")
#: What BEAM's generator leaves at the end of a user's message: "->-> 1,4".
_mark = re.compile(r"\s*->->\s*[\d,\s]*$")
_JSON = "LoCoMo's, LongMemEval's or ConvoMem's file as it was published"


class SetError(Exception):
    """A file or folder that is no set of these kinds, in words."""


def read(path: Path) -> tuple[list[Collection], str]:
    """The collections at a path, and the SHA-256 of the data; of a folder that of its files one after the other, by name."""
    try:
        if path.is_dir():
            chats = _chats(path)
            return _beam(path, chats) if chats else _beir(path)
        data = path.read_bytes()
        found = json.loads(data)
    except OSError as error:
        raise SetError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise SetError(f"{path} is not JSON in UTF-8. Give {_JSON}.") from None
    if isinstance(found, dict) and "evidence_items" in found:
        found = [found]
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise SetError(f"{path} is not a list of objects. Give {_JSON}.")
    readers: dict[str, Callable[[dict[str, Any], str], list[Collection]]] = {
        "haystack_sessions": _longmemeval,
        "conversation": _locomo,
        "evidenceItems": _convomem,
        "evidence_items": _convomem,
    }
    reader = next((one for key, one in readers.items() if key in found[0]), None)
    if reader is None:
        raise SetError(
            f"{path} is of an unknown kind: its first object has none of {', '.join(readers)}. Give {_JSON}."
        )
    name = "/".join([*(part for part in path.parent.parts if part.endswith("_evidence")), path.stem])
    collections = list[Collection]()
    for number, one in enumerate(found):
        try:
            made = reader(one, f"{name}/{number}")
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SetError(f"{path}: object {number} is not as its kind has it: {_what(error)}.") from None
        collections += [each for each in made if each.questions]
    return _some(collections, path), sha256(data).hexdigest()


def _what(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def _some(collections: list[Collection], path: Path) -> list[Collection]:
    if not collections:
        raise SetError(f"{path} has no question with an answer among its entries.")
    return collections


def _locomo(sample: dict[str, Any], name: str) -> list[Collection]:
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
            text = _text(turn["text"])
            if turn.get("blip_caption"):
                text += f" [{turn['blip_caption']}]"
            id, speaker = f"{name}/{_plain(turn['dia_id'])}", _text(turn["speaker"])
            documents.append(Document(id, text, speaker, f"{name}/{number}", day))
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
    return [Collection(name, tuple(documents), tuple(questions))]


def _plain(turn: str) -> str:
    """The id of a turn as the evidence names it."""
    found = _turn_id.fullmatch(turn)
    if found is None:
        raise ValueError(f"{turn!r} is no id of a turn")
    return f"D{found[1]}:{int(found[2])}"


def _longmemeval(asked: dict[str, Any], name: str) -> list[Collection]:
    """One question and its sessions. Where no turn is marked, all turns of the sessions with the answer are."""
    answers = set(asked["answer_session_ids"])
    documents: list[Document] = []
    exchanges, exchange = dict[str, str](), ""
    marked: dict[str, int] = {}
    of_sessions: dict[str, int] = {}
    sessions = zip(
        asked["haystack_session_ids"], asked["haystack_dates"], asked["haystack_sessions"], strict=True
    )
    for number, (session, told, turns) in enumerate(sessions):
        for at, turn in enumerate(turns):
            id = f"{name}/{number}/{at}"
            documents.append(Document(id, _text(turn["content"]), "", f"{name}/{number}", _slashed(told)))
            exchange = id if turn["role"] == "user" or not at else exchange
            exchanges[id] = exchange
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
    return [Collection(name, tuple(documents), tuple(questions), "", exchanges)]


def _convomem(case: dict[str, Any], name: str) -> list[Collection]:
    """Of a mixed test case one collection with its questions; of a file of evidence one for each item, with its own conversations.

    The message that has the text of a piece of evidence answers; a question that nothing answers (`abstention_evidence`) is left
    out. The set has no dates.
    """
    mixed = "evidenceItems" in case
    items = case["evidenceItems" if mixed else "evidence_items"]
    together = [(f"{name}", case["conversations"], items)] if mixed else []
    for number, item in enumerate([] if mixed else items):
        together.append((f"{name}/{number}", item["conversations"], [item]))
    made = []
    for called, conversations, asked in together:
        documents, exchanges, by_text = list[Document](), dict[str, str](), dict[str, list[str]]()
        for number, conversation in enumerate(conversations):
            exchange = ""
            for at, message in enumerate(conversation["messages"]):
                id, text = f"{called}/c{number}/{at}", _text(message["text"]).strip()
                documents.append(Document(id, text, "", f"{called}/c{number}"))
                exchange = id if _text(message["speaker"]).lower() == "user" or not at else exchange
                exchanges[id] = exchange
                by_text.setdefault(text, []).append(id)
        questions = []
        for item in asked:
            wanted = [_text(one["text"]).strip() for one in item["message_evidences"]]
            relevant = {id: 1 for text in wanted for id in by_text.get(text, ())}
            kind = name.split("/")[0] if name.split("/")[0].endswith("_evidence") else _text(item["category"])
            if relevant and "abstention" not in kind.lower():
                questions.append(Question(_text(item["question"]), relevant, kind, date.today()))
        made.append(Collection(called, tuple(documents), tuple(questions), "", exchanges))
    return made


def _chats(folder: Path) -> list[Path]:
    """The conversations of a folder of BEAM: itself, or those in it, by number."""
    if (folder / "chat.json").is_file():
        return [folder]
    found = [one for one in folder.iterdir() if (one / "chat.json").is_file()]
    return sorted(found, key=lambda one: (len(one.name), one.name))


def _beam(folder: Path, chats: Sequence[Path]) -> tuple[list[Collection], str]:
    """Each conversation with its questions of all abilities; a batch is a session. Questions without a source are left out."""
    hashed = sha256()
    collections = []
    for chat in chats:
        here = list[Any]()
        for file in (chat / "chat.json", chat / "probing_questions" / "probing_questions.json"):
            try:
                data = file.read_bytes()
                here.append(json.loads(data))
            except OSError as error:
                raise SetError(
                    f"{file} cannot be read: {error.strerror}. A BEAM conversation has chat.json and "
                    "probing_questions/probing_questions.json."
                ) from None
            except (ValueError, RecursionError):
                raise SetError(f"{file} is not JSON in UTF-8.") from None
            hashed.update(data)
        try:
            collections.append(_beam_chat(here[0], here[1], chat.name))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SetError(f"{chat} is not as BEAM has it: {_what(error)}.") from None
    return _some([one for one in collections if one.questions], folder), hashed.hexdigest()


def _beam_chat(chat: list[dict[str, Any]], asked: dict[str, list[dict[str, Any]]], name: str) -> Collection:
    """One conversation. That of ten million tokens has plans, each a list of batches; numbers of messages may occur twice."""
    batches = [one for part in chat for one in ([part] if "turns" in part else _plan(part))]
    documents, exchanges, exchange = list[Document](), dict[str, str](), ""
    by_number: dict[int, list[str]] = {}
    day: date | None = None
    for number, batch in enumerate(batches):
        exchange = ""
        for turn in batch["turns"]:
            for message in turn:
                if message.get("time_anchor"):
                    day = datetime.strptime(message["time_anchor"], "%B-%d-%Y").date()
                id = f"{name}/{number}/{len(documents)}"
                text = _mark.sub("", _text(message["content"]))
                documents.append(Document(id, text, "", f"{name}/{number}", day))
                exchange = id if message["role"] == "user" or not exchange else exchange
                exchanges[id] = exchange
                by_number.setdefault(message["id"], []).append(id)
    questions = []
    for ability, some in asked.items():
        for one in some if ability != "abstention" else ():
            sources = _numbers(one.get("source_chat_ids"))
            relevant = {id: 1 for number in sources for id in by_number.get(number, ())}
            if relevant:
                questions.append(Question(_text(one["question"]), relevant, ability, day or date.today()))
    return Collection(name, tuple(documents), tuple(questions), "", exchanges)


def _plan(part: dict[str, Any]) -> list[dict[str, Any]]:
    """The batches of a part that is named after its plan; the others are null."""
    if not all(key.startswith("plan-") for key in part):
        raise ValueError("a part of the chat has neither turns nor plan-1, plan-2, ...")
    return [batch for batches in part.values() if batches for batch in batches]


def _numbers(sources: Any) -> list[int]:
    """The numbers of messages in lists and objects of any depth."""
    if isinstance(sources, dict):
        sources = list(sources.values())
    if isinstance(sources, list):
        return [number for one in sources for number in _numbers(one)]
    return [sources] if isinstance(sources, int) else []


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
