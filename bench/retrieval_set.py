"""A set of entries and questions with known answers, made from word lists and a seed. Here is the half to tune on: eight people,
each with conversations over a year and a folder of memory files, and what `retrieval_set_agents` adds. The half to report is made
by `retrieval_set_report`, which whoever tunes does not read.

Nothing here knows how entries are ranked. Words are drawn so that the same ones occur in many sessions, an answer often has
no word of its question, facts change, and questions are asked in other words, with typos, or in other languages.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta

from bench.retrieval_set_agents import others
from bench.retrieval_talk import TUNE, Collection, Question
from ipfsmem.recall.index import Document

SEED = 20_261_123
PEOPLE = 8
SESSIONS = 16


_NAMES = (
    "Mara", "Jonas", "Priya", "Tomas", "Aiko", "Leila", "Owen", "Bruna", "Stefan", "Nadia", "Hugo", "Wanda", "Felix", "Imani",
    "Rosa", "Kaito",
)  # fmt: skip
_CITIES = (
    "Porto",
    "Ghent",
    "Leeds",
    "Turin",
    "Malmö",
    "Gdańsk",
    "Bergen",
    "Nantes",
    "Graz",
    "Cork",
    "Tartu",
    "Basel",
)
_PLACES = (
    "library",
    "harbour",
    "market",
    "station",
    "museum",
    "bakery",
    "clinic",
    "stadium",
    "garage",
    "theatre",
)
_PEOPLE = (
    "sister",
    "brother",
    "aunt",
    "neighbour",
    "boss",
    "cousin",
    "grandmother",
    "flatmate",
    "coach",
    "dentist",
)
_ANIMALS = ("greyhound", "parrot", "tortoise", "kitten", "rabbit", "hamster", "ferret", "goldfish")
_ANIMAL_NAMES = (
    "Biscuit",
    "Captain",
    "Olive",
    "Turnip",
    "Pixel",
    "Mango",
    "Domino",
    "Waffles",
    "Socrates",
    "Pepper",
)
_HOBBIES = (
    "pottery",
    "climbing",
    "fencing",
    "birdwatching",
    "knitting",
    "rowing",
    "astronomy",
    "calligraphy",
    "archery",
)
_MADE = ("bowl", "scarf", "lamp", "shelf", "kite", "basket", "stool", "mask", "candle", "bracelet")
_COLOURS = ("blue", "green", "amber", "violet", "crimson", "ivory", "turquoise", "charcoal")
_FOODS = (
    "coriander",
    "liquorice",
    "olives",
    "blue cheese",
    "aubergine",
    "mushrooms",
    "anchovies",
    "beetroot",
    "celery",
)
_JOBS = ("nurse", "carpenter", "translator", "surveyor", "electrician", "archivist", "pharmacist", "florist")
_BOOKS = (
    "The Salt Road",
    "Nine Lanterns",
    "A Quiet Engine",
    "Winter Ledger",
    "The Glass Orchard",
    "Paper Tides",
)
_EVENTS = ("wedding", "concert", "conference", "marathon", "exhibition", "reunion", "auction", "parade")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip

#: What people say when they say nothing; several share words with the questions.
_CHATTER = (
    "That sounds lovely, I am so happy for you!",
    "Haha, you always say that.",
    "I know what you mean, the week has been long here too.",
    "By the way, did you see the weather forecast for the weekend?",
    "We should really meet for coffee soon.",
    "I was at the {place} yesterday and thought of you, it was very crowded and I left after ten minutes.",
    "My {person} keeps asking about you, she says you never call any more.",
    "Work is busy as usual, three meetings before lunch and nobody reads the notes.",
    "I have been trying to sleep more, with little success so far.",
    "Have you talked about it with your {person}?",
    "What else is new with you?",
    "I saw an article about {hobby}, it made me think of how much free time we used to have.",
    "The {animal} of my {person} ran away again last week, they found it near the {place}.",
    "Someone at the {place} told me a long story about {city}, and I missed my bus because of it.",
    "Good luck with that, let me know how it goes.",
    "My {person} does not like {food} at all, dinner was complicated.",
)

#: The synonyms of a question that shares no word with its answer.
_OTHER_WORDS = (
    ("My physician put me on pills for high blood pressure.", "Which medication does {name} take?"),
    ("Prawns make my face swell up, so no paella for me.", "What seafood is {name} allergic to?"),
    ("I handed in my notice, twelve years at that firm were enough.", "When did {name} quit the job?"),
    ("The mortgage got approved, we sign for the flat with the roof terrace.", "What home is {name} buying?"),
    ("We are expecting, the little one is due at the end of autumn.", "Is {name} going to have a baby?"),
    ("I twisted my ankle on the stairs and hobble around on crutches.", "What injury did {name} have?"),
    ("I stopped eating meat altogether, lentils every day now.", "Is {name} a vegetarian?"),
    ("They gave me a rise and a team of six to lead.", "Was {name} promoted?"),
)

#: A language: pairs of a fact and its question, in other forms of the words where the language has them, and two lists.
_LANGUAGES: dict[str, tuple[tuple[tuple[str, str], ...], tuple[str, ...], tuple[str, ...]]] = {
    "german": (
        (
            (
                "{a} bringt die Schlüssel immer zur Nachbarin in der Straße beim {b}.",
                "Wo gibt {a} den Schlüssel ab?",
            ),
            (
                "{a} hat im Frühling zwei Bücher über das {b} gekauft.",
                "Welches Buch kaufte {a} über das {b}?",
            ),
            ("Der Zahnarzttermin von {a} ist neben dem {b}.", "Wo ist der Zahnarzt von {a}?"),
        ),
        ("Jürgen", "Käthe", "Dörte", "Anneliese", "Björn", "Günther", "Mäxchen", "Ruth"),
        ("Rathaus", "Schloss", "Museum", "Stadion", "Krankenhaus", "Schwimmbad", "Kino", "Theater"),
    ),
    "french": (
        (
            (
                "{a} préfère travailler à la {b} le matin, jamais le soir.",
                "Où {a} prefere-t-elle travailler ?",
            ),
            ("Les élèves de {a} visitent la {b} chaque été.", "Que visite l'élève de {a} ?"),
            ("{a} a oublié son vélo près de la {b}.", "Où est le velo de {a} ?"),
        ),
        ("Chloé", "Benoît", "Hélène", "Gaëlle", "Théo", "Maëlys", "Jérôme", "Inès"),
        ("bibliothèque", "boulangerie", "gare", "mairie", "piscine", "forêt", "cathédrale", "pharmacie"),
    ),
    "spanish": (
        (
            ("A {a} no le gusta el {b} porque hay mucho ruido.", "¿Qué sitio no gusta a {a}?"),
            ("{a} guarda las llaves del coche en el {b}.", "¿Dónde está la llave del coche de {a}?"),
            ("El cumpleaños de {a} se celebró en el {b}.", "¿Dónde fue el cumpleanos de {a}?"),
        ),
        ("Begoña", "Íñigo", "Raúl", "Lucía", "Ángel", "Sofía", "Andrés", "Pilar"),
        ("jardín", "almacén", "ayuntamiento", "teatro", "gimnasio", "mercado", "sótano", "puerto"),
    ),
    "russian": (
        (
            ("{a} хранит документы за {b}.", "Где лежит документ, который хранит {a}?"),
            ("Новая квартира, где живёт {a}, рядом с {b}.", "В какой квартире живет {a}?"),
            ("{a} купила синюю машину и ставит её перед {b}.", "Какую машину купила {a}?"),
        ),
        ("Марина", "Ольга", "Зоя", "Ксения", "Людмила", "Надежда", "Вера", "Ирина"),
        ("вокзалом", "театром", "музеем", "рынком", "школой", "больницей", "парком", "мостом"),
    ),
    "japanese": (
        (
            ("{a}さんは毎週土曜日に{b}でピアノを練習しています。", "{a}さんはどこでピアノの練習をしますか。"),
            ("{a}さんの誕生日のケーキは{b}で買いました。", "{a}さんのケーキを買った場所は？"),
            ("{a}さんは{b}の近くに引っ越しました。", "{a}さんの引っ越し先はどこですか？"),
        ),
        ("田中", "佐藤", "鈴木", "高橋", "渡辺", "山本", "小林", "加藤"),
        ("図書館", "駅前", "公園", "市役所", "大学", "美術館", "商店街", "空港"),
    ),
    "chinese": (
        (
            ("{a}每个星期三在{b}学习书法。", "{a}在哪里学书法？"),
            ("{a}把自行车停在{b}后面。", "{a}的自行车在哪儿？"),
            ("{a}不喜欢{b}，因为那里太吵。", "{a}不喜欢什么地方？"),
        ),
        ("王芳", "李明", "张伟", "刘洋", "陈静", "赵磊", "孙丽", "周强"),
        ("图书馆", "火车站", "体育场", "博物馆", "邮局", "医院", "超市", "茶馆"),
    ),
    "arabic": (
        (
            ("وضعت {a} المفاتيح في {b} قبل السفر.", "أين مفاتيح {a}؟"),
            ("تدرس {a} الموسيقى في {b} كل خميس.", "أين تتعلم {a} موسيقى؟"),
            ("اشترت {a} سيارة جديدة من {b}.", "من أين السيارة الجديدة التي عند {a}؟"),
        ),
        ("فاطمة", "مريم", "ليلى", "زينب", "نور", "سلمى", "هدى", "أمينة"),
        ("المكتبة", "السوق", "المدرسة", "المستشفى", "المطار", "المتحف", "الجامعة", "المحطة"),
    ),
}

_MODULES = (
    "billing",
    "gateway",
    "scheduler",
    "exporter",
    "indexer",
    "mailer",
    "uploader",
    "planner",
    "renderer",
    "resolver",
)
_SETTINGS = (
    "retry_budget",
    "pool_size",
    "grace_period",
    "batch_limit",
    "idle_timeout",
    "cache_ttl",
    "max_depth",
    "page_cap",
)
_PROJECTS = ("Heron", "Juniper", "Quartz", "Saffron", "Tundra", "Vesper", "Willow", "Zephyr")
_TOOLS = (
    "tabs",
    "four spaces",
    "dark mode",
    "squash merges",
    "short variable names",
    "type hints",
    "British spelling",
)
_AREAS = (
    "Makefiles",
    "Python code",
    "the editor",
    "pull requests",
    "throw-away scripts",
    "libraries",
    "documents",
)


def _typo(word: str, rng: random.Random) -> str:
    """A word with two neighbouring letters exchanged, or one left out, never the first."""
    at = rng.randrange(1, len(word) - 2)
    return word[:at] + (word[at + 1] + word[at] + word[at + 2 :] if rng.random() < 0.5 else word[at + 1 :])


class _Person:
    """Draws one person's entries and questions."""

    def __init__(self, number: int) -> None:
        self.rng = random.Random(f"{SEED} {number}")
        self.name, self.friend = _NAMES[2 * number], _NAMES[2 * number + 1]
        self.id = f"person{number}"
        start = date(2025, 1, 4) + timedelta(days=number)
        self.days = [start + timedelta(days=21 * n + self.rng.randrange(9)) for n in range(SESSIONS)]
        self.today = self.days[-1] + timedelta(days=10)
        #: What is talked about in each session, in its order; a turn that answers has a name.
        self.talk: list[list[list[tuple[str, str, str]]]] = [[] for _ in range(SESSIONS)]
        self.files: list[Document] = []
        self.asked: list[tuple[str, list[str], str]] = []

    def draw(self) -> Collection:
        """All of it."""
        for part in (
            self._facts,
            self._changes,
            self._repeated,
            self._other_words,
            self._notes,
            self._foreign,
        ):
            part()
        documents = list(self._turns()) + self.rng.sample(self.files, len(self.files))
        questions = tuple(
            Question(text, dict.fromkeys(answers, 1), kind, self.today) for text, answers, kind in self.asked
        )
        return Collection(self.id, tuple(documents), questions, TUNE)

    def _say(self, session: int, *turns: tuple[str, str, str]) -> None:
        self.talk[session].append(list(turns))

    def _ask(self, text: str, kind: str, *answers: str) -> None:
        self.asked.append((text, [f"{self.id}/{answer}" for answer in answers], kind))

    def _chatter(self) -> str:
        return self.rng.choice(_CHATTER).format(
            place=self.rng.choice(_PLACES),
            person=self.rng.choice(_PEOPLE),
            hobby=self.rng.choice(_HOBBIES),
            animal=self.rng.choice(_ANIMALS),
            city=self.rng.choice(_CITIES),
            food=self.rng.choice(_FOODS),
        )

    def _turns(self) -> Iterator[Document]:
        for n, exchanges in enumerate(self.talk):
            group, at = f"{self.id}/session{n}", 0
            for exchange in self.rng.sample(exchanges, len(exchanges)):
                small = [
                    (self.rng.choice((self.name, self.friend)), self._chatter(), "")
                    for _ in range(self.rng.randrange(2, 6))
                ]
                for speaker, text, answer in [*small, *exchange]:
                    at += 1
                    id = f"{self.id}/{answer}" if answer else f"{group}/turn{at}"
                    yield Document(id, text, speaker, group, self.days[n])

    def _facts(self) -> None:
        """Told in one exchange: the answer with the question's words, one turn or two after them, or with a typo in them."""
        rng, me, you = self.rng, self.name, self.friend
        animal, called = rng.choice(_ANIMALS), rng.choice(_ANIMAL_NAMES)
        self._say(
            1,
            (me, f"Guess what, we adopted a {animal} on Saturday!", ""),
            (you, "How wonderful, and what did you call it?", ""),
            (me, f"{called}, after the one in my favourite comic when I was small.", "animal"),
        )
        self._ask(f"What is the name of {me}'s {animal}?", "a turn later", "animal")
        self._ask(f"What name did {me} give the {_typo(animal, rng)} that was adopted?", "typo", "animal")
        made = rng.sample(_MADE, 4)
        for n, hobby in enumerate(rng.sample(_HOBBIES, 4)):
            colour, who, session = rng.choice(_COLOURS), rng.choice(_PEOPLE), 2 + 3 * n
            self._say(
                session,
                (me, f"I finally went to the {hobby} club on Tuesday.", ""),
                (you, "Oh, how was it?", ""),
                (
                    me,
                    f"Loved it, and at the end I swapped my jacket for a {colour} {made[n]} for my {who}.",
                    f"made{n}",
                ),
            )
            self._ask(f"What did {me} bring home from the {hobby} club?", "neighbours", f"made{n}")
            self._ask(f"For whom was the {colour} {made[n]} of {me}?", "direct", f"made{n}")
        foods = rng.sample(_FOODS, 3)
        self._say(
            3,
            (you, f"I put {foods[0]} in everything, I cannot get enough of it.", "loves"),
            (me, f"Not me, I can't stand {foods[0]}, it tastes of soap.", "hates"),
        )
        self._say(7, (me, f"My {rng.choice(_PEOPLE)} cooked with {foods[0]} and {foods[1]} again.", ""))
        self._ask(f"Why does {me} not eat {foods[0]}?", "negation", "hates")
        self._ask(f"How does {you} like {foods[0]}?", "negation", "loves")
        for n, book in enumerate(rng.sample(_BOOKS, 3)):
            told = rng.choice(("the middle drags", "the ending made me cry", "the maps are the best part"))
            self._say(
                4 + 4 * n,
                (you, f"Did you get round to {book} in the end?", ""),
                (me, f"Yes, on the train, and {told}.", f"book{n}"),
            )
            self._ask(f"What did {me} think of {book}?", "a turn later", f"book{n}")
            words = book.split()
            words[-1] = _typo(words[-1], rng)
            self._ask(f"How did {me} like the book {' '.join(words)}?", "typo", f"book{n}")
        for n, event in enumerate(rng.sample(_EVENTS, 3)):
            count, session = rng.randrange(12, 400), 5 + 4 * n
            self._say(
                session,
                (you, f"How was the {event}?", ""),
                (me, f"There were {count} people, far more than we had chairs for.", f"event{n}"),
                (you, "Goodness, and who paid for it all?", ""),
                (me, f"My {rng.choice(_PEOPLE)} did, and would not hear a word about it.", f"paid{n}"),
            )
            self._ask(f"How many people came to the {event} of {me}?", "a number", f"event{n}")
            self._ask(f"Who covered the cost of the {event}?", "neighbours", f"paid{n}")

    def _changes(self) -> None:
        """Facts that are told again and again, each time another: the last one holds."""
        rng, me, you = self.rng, self.name, self.friend
        cities, jobs = rng.sample(_CITIES, 3), rng.sample(_JOBS, 3)
        for n, session in enumerate((0, 6, 13)):
            self._say(
                session,
                (you, "And where do you live these days?", ""),
                (
                    me,
                    f"I live in {cities[n]} now, in a small flat above the {rng.choice(_PLACES)}.",
                    f"city{n}",
                ),
            )
            self._say(session, (me, f"I started as a {jobs[n]} last month, quite a change.", f"job{n}"))
        month = [_MONTHS[self.days[session].month - 1] for session in (0, 6, 13)]
        self._ask(f"In which cities has {me} lived?", "several answers", "city0", "city1", "city2")
        self._ask(f"Where did {me} live in {month[1]} 2025?", "of a date", "city1")
        self._ask(f"What work did {me} start in {month[2]} {self.days[13].year}?", "of a date", "job2")
        self._ask(f"When did {me} move to {cities[2]}?", "paraphrase", "city2")
        self._ask(f"When did {me} begin to work as a {jobs[0]}?", "when", "job0")

    def _repeated(self) -> None:
        """The same word in many sessions: only the date, or another word beside it, tells them apart."""
        rng, me, you = self.rng, self.name, self.friend
        for n in range(SESSIONS):
            self._say(
                n,
                (you, "Did you go for your run this morning?", ""),
                (
                    me,
                    f"I ran {rng.randrange(3, 30)} kilometres along the {rng.choice(_PLACES)} road.",
                    f"run{n}",
                ),
            )
        for n in rng.sample(range(1, SESSIONS), 4):
            day = self.days[n]
            self._ask(f"How far did {me} run on {day.day} {_MONTHS[day.month - 1]}?", "of a date", f"run{n}")
        for n in rng.sample(range(1, SESSIONS), 2):
            month, year = self.days[n].month, self.days[n].year
            same = [f"run{k}" for k, day in enumerate(self.days) if (day.month, day.year) == (month, year)]
            self._ask(f"How many kilometres did {me} run in {_MONTHS[month - 1]} {year}?", "of a date", *same)
        for n, city in enumerate(rng.sample(_CITIES, 4)):
            who, place = rng.choice(_PEOPLE), rng.choice(_PLACES)
            self._say(
                3 * n + 2,
                (me, f"Last week I took the night train to {city}.", f"trip{n}"),
                (you, "With whom did you travel?", ""),
                (me, f"With my {who}, and we lost each other at the {place}.", f"with{n}"),
            )
            self._ask(f"Who travelled to {city} with {me}?", "neighbours", f"with{n}")
            self._ask(f"When was {me} on the train to {city}?", "when", f"trip{n}")

    def _other_words(self) -> None:
        """Asked in words that the answer has not, but what is said around it may have."""
        for n, (told, question) in enumerate(self.rng.sample(_OTHER_WORDS, 3)):
            self._say(
                5 + 3 * n, (self.name, told, f"other{n}"), (self.friend, "Oh! Tell me all about it.", "")
            )
            self._ask(question.format(name=self.name), "paraphrase", f"other{n}")

    def _file(self, id: str, name: str, description: str, text: str, day: date) -> None:
        self.files.append(Document(f"{self.id}/{id}", text, f"{name}\n{description}", "", day, True))

    def _notes(self) -> None:
        """Memory files: preferences, projects, code notes, each among others that are nearly the same."""
        rng, today = self.rng, self.today
        for n, (tool, area) in enumerate(zip(rng.sample(_TOOLS, 6), rng.sample(_AREAS, 6), strict=True)):
            avoided = rng.choice([other for other in _TOOLS if other != tool])
            self._file(
                f"preference{n}",
                f"Preference about {area}",
                "how the user wants things done",
                f"The user prefers {tool} for {area}, and does not want {avoided} there.",
                today - timedelta(days=rng.randrange(5, 200)),
            )
            if n < 3:
                self._ask(
                    f"Does the user prefer {tool} or {avoided} for {area}?", "preference", f"preference{n}"
                )
                self._ask(f"How should I set up {area}?", "preference", f"preference{n}")
        for n, project in enumerate(rng.sample(_PROJECTS, 5)):
            one, two = rng.sample(_PEOPLE, 2)
            days = rng.randrange(30, 300)
            month = rng.sample(_MONTHS, 2)
            self._file(
                f"project{n}old",
                f"Project {project}",
                "deadline and owner",
                f"{project} is led by the {one} of the client. It ships in {month[0]}. The budget was cut once.",
                today - timedelta(days=days + 40),
            )
            self._file(
                f"project{n}",
                f"Project {project}: new plan",
                "deadline and owner after the review",
                f"{project} is led by the {two} of the client since the review. It ships in {month[1]}. "
                "The budget was not changed.",
                today - timedelta(days=days % 20),
            )
            self._ask(f"When will the {project} project be shipped now?", "update", f"project{n}")
            self._ask(f"Who leads {_typo(project, rng)} since the review?", "typo", f"project{n}")
        for n, module in enumerate(rng.sample(_MODULES, 8)):
            setting, value = _SETTINGS[n], rng.randrange(2, 900)
            code = rng.randrange(1_000, 10_000)
            self._file(
                f"code{n}",
                f"{module}_{setting}",
                f"why `{module}` fails under load",
                f"In `src/{module}/config.py` the value `{setting}` is {value}. Above it the service answers E{code}, "
                f"because `{module.title()}Client.{setting}()` blocks. Restart the {rng.choice(_MODULES)} after a change.",
                today - timedelta(days=rng.randrange(5, 300)),
            )
            if n % 2:
                self._ask(f"What is the {setting.replace('_', ' ')} of the {module}?", "code", f"code{n}")
                self._ask(f"What does error E{code} mean?", "code", f"code{n}")
                self._ask(f"Why does {module.title()}Client block?", "code", f"code{n}")

    def _foreign(self) -> None:
        """Facts in other languages, one memory file each; each question has others with the same words about others."""
        for language, (pairs, names, things) in _LANGUAGES.items():
            drawn = self.rng.sample(names, len(pairs) + 1)
            for n, (told, question) in enumerate(pairs):
                for k, name in enumerate(self.rng.sample(drawn, 3)):
                    text = told.format(a=name, b=self.rng.choice(things))
                    thing = next(one for one in things if one in text)
                    id = f"{language}{n}{k}"
                    self._file(id, "", "", text, self.today - timedelta(days=self.rng.randrange(5, 300)))
                    if k == 0:
                        self._ask(question.format(a=name, b=thing), language, id)


def synthetic() -> list[Collection]:
    """The whole set, the same each time: the half to tune on, then the half to report."""
    from bench.retrieval_set_report import report

    return [*to_tune_on(), *report()]


def to_tune_on() -> list[Collection]:
    """Eight people's conversations and files, users' talk with an agent, groups, and memories in several languages."""
    return [*(_Person(number).draw() for number in range(PEOPLE)), *others()]
