"""The shape of the made set, shared by both halves: questions, collections, sessions of turns, and long answers of an agent.

No sentence of a collection stands here: each half has its own topics and templates.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from ipfsmem.recall.index import Document

TUNE, REPORT = "tune", "report"


class Question(NamedTuple):
    """What is asked, and the entries that answer it."""

    text: str
    #: How well each entry answers, by id; more than 0.
    relevant: dict[str, int]
    kind: str
    today: date
    #: What an entry says and the question does not, in a made set; "" where that is not known.
    answer: str = ""
    #: Other phrasings, which an agent that has read nothing yet passes in addition to the text.
    phrasings: tuple[str, ...] = ()
    #: What an agent asks once it has read the first of several hops: the id of that entry, and the text.
    then: tuple[str, str] | None = None


class Collection(NamedTuple):
    """Entries that are searched together, and the questions about them."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    #: The half to which it belongs; "": drawn from names.
    half: str = ""
    #: Of a conversation with an agent the exchange of each entry, a question and its answer, by id: scored in place of its session.
    exchanges: dict[str, str] = {}  # noqa: RUF012


class Turn(NamedTuple):
    """One message: who speaks, "" in talk with an agent, and a key where a question asks for it."""

    speaker: str
    text: str
    key: str = ""
    #: The agent's answer to the turn before, not a message of the user.
    answers: bool = False


class Aspect(NamedTuple):
    """Something that a user asks an agent about each of several things, and asks for again later."""

    #: What is asked in the conversation; may have {t}, the thing.
    ask: str
    #: The fact in two or three words, for a row of a table or a line of code.
    label: str
    #: The fact as a sentence with {v}.
    fact: str
    #: What is asked much later, with {t} and no word of {v}.
    later: str
    values: tuple[str, ...]


class Own(NamedTuple):
    """Something that a user tells an agent about a thing."""

    told: str
    later: str
    values: tuple[str, ...]


class Topic(NamedTuple):
    """What a user and an agent talk about: several things of one kind, and what can be asked of each."""

    #: Names of the things, each with something else that it is known by: told in another session, for questions over two hops.
    things: tuple[tuple[str, str], ...]
    aspects: tuple[Aspect, ...]
    own: tuple[Own, ...]
    nouns: tuple[str, ...]
    #: Sentences with {a} and {b}, two nouns, and {n}, a number.
    sentences: tuple[str, ...]
    #: Lines of code with the same.
    code: tuple[str, ...]


class Manner(NamedTuple):
    """How an agent writes."""

    openings: tuple[str, ...]
    headings: tuple[str, ...]
    closings: tuple[str, ...]
    bullet: str
    fence: str
    #: A line of code that says a label and a value, with {l} and {v}.
    assigns: str
    #: What it answers to what says nothing.
    small: tuple[tuple[str, str], ...]
    #: How the other name of a thing is told: {t} and {o}.
    known_by: str
    #: What the agent says to what it is only told.
    noted: tuple[str, ...]


class Talk:
    """One collection that is being made: sessions of runs of turns that stay together, memory files, questions."""

    def __init__(self, name: str, half: str, start: date, sessions: int, gap: int) -> None:
        self.rng = random.Random(name)
        self.name, self.half = name, half
        self.days = [start + timedelta(days=gap * n + self.rng.randrange(gap)) for n in range(sessions)]
        self.today = self.days[-1] + timedelta(days=12)
        self._opening: dict[int, list[Turn]] = {}
        self._runs: list[list[list[Turn]]] = [[] for _ in range(sessions)]
        self._files: list[Document] = []
        self._asked: list[Question] = []

    def open(self, session: int, *turns: Turn) -> None:
        """The turns with which a session begins."""
        self._opening[session] = list(turns)

    def say(self, session: int, *turns: Turn) -> None:
        """Turns of a session that follow each other."""
        self._runs[session].append(list(turns))

    def ask(
        self,
        text: str,
        kind: str,
        *keys: str,
        answer: str = "",
        phrasings: tuple[str, ...] = (),
        then: str = "",
    ) -> None:
        """A question, answered by the turns or files with these keys; of several hops `then` is asked after the first key was read."""
        relevant = {f"{self.name}/{key}": 1 for key in keys}
        follows = (f"{self.name}/{keys[0]}", then) if then else None
        self._asked.append(Question(text, relevant, kind, self.today, answer, phrasings, follows))

    def file(self, key: str, name: str, description: str, text: str, age: int) -> None:
        """A memory file, last changed so many days ago."""
        header = f"{name}\n{description}" if name else ""
        at = self.today - timedelta(days=age)
        self._files.append(Document(f"{self.name}/{key}", text, header, "", at, True))

    def collection(self, small: Callable[[int], Sequence[Turn]] = lambda session: ()) -> Collection:
        """All of it, the runs of a session in a random order, before each what `small` says."""
        documents, exchanges = list[Document](), dict[str, str]()
        for n, runs in enumerate(self._runs):
            group, exchange = f"{self.name}/session{n}", ""
            for run in (self._opening.get(n, ()), *self.rng.sample(runs, len(runs))):
                for turn in (*(small(n) if run else ()), *run):
                    key = turn.key or f"session{n}/turn{len(documents)}"
                    id = f"{self.name}/{key}"
                    documents.append(Document(id, turn.text, turn.speaker, group, self.days[n]))
                    exchange = exchange if turn.answers else id
                    if not turn.speaker:
                        exchanges[id] = exchange
        documents += self.rng.sample(self._files, len(self._files))
        return Collection(self.name, tuple(documents), tuple(self._asked), self.half, exchanges)


def filled(rng: random.Random, template: str, nouns: Sequence[str]) -> str:
    """A template with two nouns and a number."""
    a, b = rng.sample(nouns, 2)
    text = template.format(a=a, b=b, n=rng.randrange(2, 900))
    return text[0].upper() + text[1:]


class Answers:
    """Writes what an agent answers about a topic: prose, lists, tables and code of any length, and one fact somewhere among it."""

    def __init__(self, rng: random.Random, manner: Manner, topic: Topic) -> None:
        self._rng, self._manner, self._topic = rng, manner, topic

    def write(
        self, length: int, fact: str = "", label: str = "", value: str = "", form: str = "prose"
    ) -> str:
        """About so many characters. `form`: whether the fact is a sentence, an item of a list, a row of a table or a line of code."""
        size = 0
        makers = {"prose": self._prose, "list": self._list, "table": self._table, "code": self._code}
        line = self._manner.assigns.format(l=label.replace(" ", "_"), v=value)
        told = {"table": f"| {label} | {value} |", "code": line}
        texts = list[str]()
        while size < length:
            texts.append(makers[self._rng.choice(("prose", "prose", "list", "table", "code"))](""))
            size += len(texts[-1])
        if fact:
            at = self._rng.randrange(len(texts)) if texts else 0
            texts[at : at + 1] = [makers[form](told.get(form, fact))]
        return "\n\n".join(
            (self._rng.choice(self._manner.openings), *texts, self._rng.choice(self._manner.closings))
        )

    def _sentence(self) -> str:
        return filled(self._rng, self._rng.choice(self._topic.sentences), self._topic.nouns)

    def _mixed(self, lines: list[str], told: str) -> list[str]:
        if told:
            lines.insert(self._rng.randrange(len(lines) + 1), told)
        return lines

    def _prose(self, told: str) -> str:
        return " ".join(self._mixed([self._sentence() for _ in range(self._rng.randrange(2, 6))], told))

    def _list(self, told: str) -> str:
        items = self._mixed([self._sentence() for _ in range(self._rng.randrange(3, 8))], told)
        return "\n".join(
            [
                f"## {self._rng.choice(self._manner.headings)}",
                *(f"{self._manner.bullet}{item}" for item in items),
            ]
        )

    def _table(self, told: str) -> str:
        nouns = self._rng.sample(self._topic.nouns, self._rng.randrange(3, 7))
        rows = [f"| {noun} | {self._rng.randrange(2, 900)} |" for noun in nouns]
        return "\n".join(["| | |", "| --- | --- |", *self._mixed(rows, told)])

    def _code(self, told: str) -> str:
        lines = [
            filled(self._rng, self._rng.choice(self._topic.code), self._names()).removeprefix(" ")
            for _ in range(self._rng.randrange(4, 14))
        ]
        return "\n".join([f"```{self._manner.fence}", *self._mixed(lines, told), "```"])

    def _names(self) -> list[str]:
        return [noun.replace(" ", "_") for noun in self._topic.nouns]


#: Characters of an agent's answer, from the shortest to the longest.
SHORTEST, LONGEST = 200, 8_000


def talk_with_agent(talk: Talk, topics: Sequence[Topic], manner: Manner, aspects: int) -> None:
    """A session for each thing of each topic: the user names it at the beginning, and later mostly not; the same is asked of all
    things of a topic, so that only the thing tells the answers apart."""
    rng = talk.rng
    pairs = [(topic, thing) for topic in topics for thing in topic.things]
    sessions = rng.sample(range(len(talk.days)), len(pairs))
    for (topic, (thing, other)), session in zip(pairs, sessions, strict=True):
        answers = Answers(rng, manner, topic)
        key = f"{topic.nouns[0]} {thing}".replace(" ", "-")
        opening = rng.choice(topic.own)
        value = rng.choice(opening.values)
        told = opening.told.format(t=thing, v=value)
        talk.open(session, Turn("", told, f"{key}-own"), Turn("", answers.write(_length(rng)), answers=True))
        talk.ask(opening.later.format(t=thing), "agent: told by the user", f"{key}-own", answer=value)
        for n, aspect in enumerate(rng.sample(topic.aspects, aspects)):
            value = rng.choice(aspect.values)
            form = rng.choice(("prose", "list", "table", "code"))
            length = 0 if n == 0 and rng.random() < 0.5 else _length(rng)
            kind = f"agent: {form}" if length else "agent: short answer"
            fact = aspect.fact.format(v=value)
            text = answers.write(length, fact, aspect.label, value, form) if length else fact
            talk.say(
                session,
                Turn("", aspect.ask.format(t=thing)),
                Turn("", text, f"{key}-{n}", answers=True),
            )
            talk.ask(aspect.later.format(t=thing), kind, f"{key}-{n}", answer=value)
            if n == 1:
                elsewhere = rng.choice([one for one in range(len(talk.days)) if one != session])
                known = manner.known_by.format(t=thing, o=other)
                talk.say(
                    elsewhere,
                    Turn("", known, f"{key}-known"),
                    Turn("", rng.choice(manner.noted), answers=True),
                )
                talk.ask(
                    aspect.later.format(t=other),
                    "agent: two hops",
                    f"{key}-known",
                    f"{key}-{n}",
                    answer=value,
                    phrasings=(f"What else do I call {other}?",),
                    then=aspect.later.format(t=thing),
                )
        for asked, answered in rng.sample(manner.small, 2):
            talk.say(
                session,
                Turn("", asked),
                Turn("", f"{answered}\n\n{answers.write(_length(rng))}", answers=True),
            )


def _length(rng: random.Random) -> int:
    """Characters of an answer: each doubling is as likely as the next."""
    return int(SHORTEST * (LONGEST / SHORTEST) ** rng.random())


#: What is asked then, what is answered with {v}, what is asked later, and the values.
Plain = tuple[str, str, str, tuple[str, ...]]


class Group(NamedTuple):
    """What people of a group say to each other."""

    people: tuple[str, ...]
    plain: tuple[Plain, ...]
    #: The same with answers of a few characters.
    short: tuple[Plain, ...]
    #: What they have opinions on, and these, each different.
    on: tuple[tuple[str, tuple[str, ...]], ...]
    #: An opinion with {on} and {v}, and how somebody's is asked for, with {who}.
    said: tuple[str, ...]
    asked: str
    crowd: tuple[str, ...]
    #: Sentences of long messages, and what is said in one of them: with {x} and {v}, the question, and pairs.
    long: tuple[str, ...]
    facts: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]
    #: What is asked of the same thing without an answer, with {x}, and what comes then.
    idle: tuple[str, str]

    def crowd_of(self, rng: random.Random, most: int) -> Callable[[int], list[Turn]]:
        """What people say when they say nothing, fewer than so many messages at a time."""

        def small(session: int) -> list[Turn]:
            said = [
                rng.choice(self.crowd).format(on=rng.choice(self.on)[0])
                for _ in range(rng.randrange(1, most))
            ]
            return [Turn(rng.choice(self.people), text) for text in said]

        return small


def talk_in_group(talk: Talk, group: Group, plain: int) -> None:
    """Plain questions and answers, opinions of named speakers, short and long messages."""
    rng, sessions = talk.rng, len(talk.days)
    for kind, rows in (
        ("question, then answer", rng.sample(group.plain, plain)),
        ("short message", group.short),
    ):
        for n, (asked, answered, later, values) in enumerate(rows):
            one, two = rng.sample(group.people, 2)
            value, key = rng.choice(values), f"{kind[:5]}{n}"
            talk.say(rng.randrange(sessions), Turn(one, asked), Turn(two, answered.format(v=value), key))
            talk.ask(later, kind, key, answer=value)
    for n, (on, views) in enumerate(group.on):
        turns = []
        for k, (speaker, view) in enumerate(
            zip(rng.sample(group.people, 4), rng.sample(views, 4), strict=True)
        ):
            turns.append(Turn(speaker, rng.choice(group.said).format(on=on, v=view), f"view{n}-{k}"))
            if k < 2:
                asked = group.asked.format(who=speaker, on=on)
                talk.ask(asked, "named speaker", f"view{n}-{k}", answer=view)
        talk.say(rng.randrange(sessions), *rng.sample(turns, 4))
    for n, (fact, later, pairs) in enumerate(group.facts):
        for k, (thing, value) in enumerate(pairs):
            lines = [rng.choice(group.long) for _ in range(rng.randrange(12, 70))]
            lines.insert(rng.randrange(len(lines)), fact.format(x=thing, v=value))
            talk.say(rng.randrange(sessions), Turn(rng.choice(group.people), "".join(lines), f"long{n}-{k}"))
            asked, answered = group.idle
            one, two = rng.sample(group.people, 2)
            talk.say(rng.randrange(sessions), Turn(one, asked.format(x=thing)), Turn(two, answered))
            talk.ask(later.format(x=thing), "long message", f"long{n}-{k}", answer=value)


#: What a memory says in a language with {a}, a person, and {v}; the same in English; the questions in both; values "theirs/ours".
Across = tuple[str, str, str, str, tuple[str, ...]]


def talk_across(
    talk: Talk,
    languages: Mapping[str, tuple[Across, ...]],
    people: Sequence[str],
    speakers: Sequence[str],
    odd: int,
) -> None:
    """Facts in one language that are asked for in another, every other one a memory file."""
    rng = talk.rng
    for language, rows in languages.items():
        for n, (theirs, english, question, asked, values) in enumerate(rows):
            drawn = rng.sample(people, 2 * len(values))
            for k, person in enumerate(drawn):
                there, ours = values[k % len(values)].split("/")
                abroad = k < len(values)
                key = f"{language}{n}-{k}"
                text = theirs.format(a=person, v=there) if abroad else english.format(a=person, v=ours)
                if (n + odd) % 2:
                    talk.file(key, "", "", text, rng.randrange(3, 300))
                else:
                    talk.say(rng.randrange(len(talk.days)), Turn(rng.choice(speakers), text, key))
                if abroad and k < 2:
                    talk.ask(asked.format(a=person), "asked in English, told in another", key, answer=there)
                elif k == len(values):
                    talk.ask(question.format(a=person), "asked in another, told in English", key, answer=ours)


class Sign(NamedTuple):
    """Names that differ by a sign, what is said of each in each project, what is asked, and a value for each."""

    names: tuple[str, ...]
    told: str
    later: str
    values: tuple[str, ...]


def talk_of_signs(
    talk: Talk, signs: Sequence[Sign], projects: Sequence[str], speakers: Sequence[str], *, as_files: bool
) -> None:
    """The same sentence of names that differ by a sign: each question is about one of them."""
    rng = talk.rng
    for n, sign in enumerate(signs):
        for k, (name, value) in enumerate(
            zip(sign.names, rng.sample(sign.values, len(sign.names)), strict=True)
        ):
            keys = [f"sign{n}-{k}-{project}" for project in projects]
            for key, project in zip(keys, projects, strict=True):
                text = sign.told.format(p=project, s=name, v=value)
                if as_files:
                    talk.file(key, "", "", text, rng.randrange(3, 300))
                else:
                    talk.say(rng.randrange(len(talk.days)), Turn(rng.choice(speakers), text, key))
            talk.ask(sign.later.format(s=name), "differs by a sign", *keys, answer=value)
