"""The half of the made set to report. WHO TUNES RECALL DOES NOT READ THIS FILE, nor single questions of it: only its figures.

Topics, templates, names and languages are other ones than in the half to tune on, so that a rule fitted to those sentences gains
nothing here. A kind that loses here is mended by looking at the kind of the same name in the half to tune on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from bench.retrieval_talk import (
    REPORT,
    Aspect,
    Collection,
    Group,
    Manner,
    Own,
    Sign,
    Talk,
    Topic,
    Turn,
    talk_across,
    talk_in_group,
    talk_of_signs,
    talk_with_agent,
)

_MANNER = Manner(
    openings=(
        "Understood. I looked at this from two sides.",
        "Right, that one comes up a lot.",
        "I'd keep it simple here.",
        "Here's what I found after weighing the options you described earlier.",
        "Yes. And there is a catch, which I come to at the end.",
    ),
    headings=("Recommendation", "Trade-offs", "In practice", "Plan", "Risks", "Notes"),
    closings=(
        "Shall I draft the next part?",
        "I left out the exotic cases on purpose.",
        "That's all there is to it.",
        "When you have tried it, I would like to know how it went.",
        "Say the word and I'll adapt it to your numbers.",
    ),
    bullet="* ",
    fence="python",
    assigns='{l} = "{v}"',
    small=(
        ("perfect", "Glad to hear that."),
        ("why though?", "Fair question, so here is the reasoning."),
        ("I only have ten minutes, what matters most?", "Then concentrate on this."),
        ("please continue", "Picking up the thread."),
        ("isn't that overkill?", "Perhaps; the smaller version goes like this."),
        ("remind me of the context", "Happily, this is where we are."),
    ),
    known_by="I never told you: {t} and {o} are one and the same.",
    noted=(
        "Thank you, that makes it clearer.",
        "Understood.",
        "I see, useful to know.",
        "Right, I'll treat them as one.",
    ),
)

_TOPICS = (
    Topic(
        things=(
            ("the orchard hive", "the colony that swarmed in May"),
            ("the roof hive", "our tenant above the kitchen"),
            ("the nucleus from Jana", "the little box with the yellow lid"),
            ("the log hive", "the tree trunk we brought from Poland"),
        ),
        aspects=(
            Aspect(
                "What should I feed {t} before winter?",
                "feed",
                "Give them {v} until the frames are capped.",
                "With which food did you want {t} to go into the cold season?",
                ("inverted syrup", "fondant from the baker", "their own honey", "dry sugar on newspaper"),
            ),
            Aspect(
                "And the mites?",
                "treatment",
                "Against varroa I would use {v}, once there is no brood.",
                "How do I fight varroa in {t}?",
                ("oxalic acid", "thymol pads", "formic acid strips", "a brood break and nothing else"),
            ),
            Aspect(
                "How wide is the entrance of {t} supposed to be?",
                "gap",
                "Reduce the opening to {v}, which wasps can be kept out of.",
                "To which width do I close the entrance at {t}?",
                ("two fingers", "12 millimetres", "the size of a cork", "half a palm"),
            ),
            Aspect(
                "when do I look inside next?",
                "inspection",
                "Leave the lid shut until {v}; each look costs them a day.",
                "When may {t} be opened again?",
                ("the willows bloom", "Easter Saturday", "the 23rd", "we have 15 degrees at noon"),
            ),
            Aspect(
                "is the queen any good?",
                "queen",
                "She seems {v}, judging by the pattern you describe.",
                "What was your verdict on the queen of {t}?",
                ("past her prime", "freshly mated", "a drone layer", "excellent"),
            ),
        ),
        own=(
            Own(
                "{t} worries me a bit. When I lifted it, it weighed {v}.",
                "What was the weight of {t}?",
                ("19 kilos", "less than my suitcase", "34 kilos", "next to nothing"),
            ),
            Own(
                "Something about {t}: a neighbour complained because of {v}.",
                "What did someone complain about regarding {t}?",
                ("his laundry", "a stung poodle", "her pool", "the noise at dawn"),
            ),
        ),
        nouns=(
            "brood",
            "frame",
            "smoker",
            "propolis",
            "comb",
            "drone",
            "super",
            "forager",
            "pollen",
            "wax",
            "veil",
            "honey",
        ),
        sentences=(
            "As long as {a} is coming in, do not worry about {b}.",
            "There are about {n} bees for each {a}, whatever books say of {b}.",
            "Anyone who opens the {a} in the rain deserves the {b}.",
            "Old {a} can be melted, old {b} cannot.",
            "A calm hand matters more than {a} or {b}.",
            "Count the {a} on one side only and double it; ignore {b}.",
            "Between {a} and {b} there should be room for {n} more.",
        ),
        code=(
            "{a}.count({n})",
            "if {a} < {n}: add({b})",
            "log('{a}', {n})",
            "{b}[{n}] = {a}",
            "# weigh {a} after {b}",
        ),
    ),
    Topic(
        things=(
            ("the invoice parser", "the crate that Yusuf calls Hamster"),
            ("the chat bridge", "whatever runs on the old laptop"),
            ("the thumbnailer", "our slowest pipeline stage"),
            ("the login proxy", "the thing the auditors asked about"),
        ),
        aspects=(
            Aspect(
                "{t} leaks memory, where do I look?",
                "culprit",
                "My bet is on {v}, which is never dropped.",
                "What did you suspect to eat the memory of {t}?",
                ("a global regex table", "unbounded channels", "the image decoder", "cyclic Arcs"),
            ),
            Aspect(
                "what timeout is sane there?",
                "deadline",
                "Give up after {v} and retry with jitter.",
                "After how long does {t} stop waiting?",
                ("750 ms", "a minute and a half", "four seconds", "20 ms"),
            ),
            Aspect(
                "Which library would you take for {t}?",
                "library",
                "I'd pull in {v}; it is boring in the best sense.",
                "On which dependency did we settle for {t}?",
                ("nom", "tokio-util", "quick-xml", "hyper", "image-rs"),
            ),
            Aspect(
                "how do I ship that without downtime?",
                "rollout",
                "Do it {v}, watching the error rate.",
                "In what manner is a new {t} brought to production?",
                ("one region per hour", "blue-green", "behind a header", "at 5 % of users first"),
            ),
            Aspect(
                "does {t} need a new name for that error?",
                "error",
                "Call it {v} and map it to a 4xx.",
                "How is the error of {t} called?",
                ("E_STALE_TOKEN", "BadEnvelope", "TooManyPages", "Unmoored"),
            ),
        ),
        own=(
            Own(
                "We rewrote {t} in the meantime, it took {v}.",
                "How much effort was the rewrite of {t}?",
                ("three sprints", "a single night", "all of last spring", "five people"),
            ),
            Own(
                "New task: {t}. The customer who pays for it is {v}.",
                "Which customer pays for {t}?",
                ("a port authority", "Nordbank", "two publishers", "the zoo"),
            ),
        ),
        nouns=(
            "future",
            "buffer",
            "socket",
            "lifetime",
            "allocator",
            "trait",
            "handler",
            "queue",
            "mutex",
            "payload",
            "header",
            "span",
        ),
        sentences=(
            "Never hold a {a} across an await; the {b} forgives nothing.",
            "The {a} is moved into the {b}, which is why the compiler objects.",
            "Measure the {a} under {n} requests before you touch the {b}.",
            "One {a} per connection is fine up to {n}.",
            "Think of the {a} as a lease on the {b}.",
            "A bounded {a} turns a crash of the {b} into back pressure.",
            "Log the {a}, hash the {b}.",
        ),
        code=(
            "let {a} = {b}.take({n})",
            "assert_eq!({a}.len(), {n})",
            "// {a} outlives {b}",
            "spawn({a}, {b})",
            "return Err({b})",
        ),
    ),
    Topic(
        things=(
            ("the flat in Gent", "the place with the spiral stairs"),
            ("my brother's lease", "the contract I scanned in the train"),
            ("the allotment", "number 44 at the end of the path"),
            ("the rehearsal room", "the bunker"),
        ),
        aspects=(
            Aspect(
                "How much notice do I have to give for {t}?",
                "notice",
                "You can leave with {v}, counted from the first of a month.",
                "What is the notice period for {t}?",
                ("three months", "six weeks", "a whole season", "fourteen days"),
            ),
            Aspect(
                "may they raise the rent?",
                "increase",
                "They are allowed {v} at most, and only in writing.",
                "By how much can the landlord put up the rent of {t}?",
                ("the index", "two percent", "40 euros", "a tenth every other year"),
            ),
            Aspect(
                "who pays for the boiler?",
                "repairs",
                "That falls on {v}, according to the clause you pasted.",
                "Whose job are repairs at {t}?",
                ("the owner", "whoever broke it", "the association", "you, up to 80 euros"),
            ),
            Aspect(
                "What about the deposit for {t}?",
                "deposit",
                "Expect it back {v}, with interest.",
                "When will the money that was deposited for {t} come back?",
                ("within sixty days", "after the meter reading", "at the handover", "next spring"),
            ),
            Aspect(
                "which sentence should I strike out?",
                "clause",
                "Get rid of {v}; no court would uphold it anyway.",
                "Which part of the agreement for {t} did you find void?",
                ("paragraph 9", "the piano ban", "the repainting duty", "rule six on pets"),
            ),
        ),
        own=(
            Own(
                "I have a legal question on {t}. We signed it {v}.",
                "When was {t} signed?",
                ("on a napkin in 2014", "last Friday", "before the flood", "in the notary's car"),
            ),
            Own(
                "So {t}: they want {v} a month for it now.",
                "What does {t} cost each month?",
                ("1,130 euros", "84 euros", "nine hundred", "a crate of beer"),
            ),
        ),
        nouns=(
            "tenant",
            "landlord",
            "clause",
            "inventory",
            "meter",
            "heating",
            "insurance",
            "key",
            "signature",
            "damage",
            "subletting",
            "reminder",
        ),
        sentences=(
            "Without a written {a} there is no {b}.",
            "Courts look at the {a} first and at the {b} hardly ever.",
            "Photograph the {a} on the day you move in, the {b} too.",
            "For {n} days nobody may touch the {a}.",
            "A {a} that mentions the {b} twice is badly drafted.",
            "You owe the {a} nothing for the {b}.",
            "Send the {a} by registered mail and keep the {b}.",
        ),
        code=("{a} += {n}", "contract['{a}'] = {n}", "del contract['{b}']", "print('{a}', {n})", "# see {b}"),
    ),
    Topic(
        things=(
            ("the half marathon", "what I promised Dad"),
            ("the knee rehab", "the exercises from the clinic"),
            ("the swim course", "my Tuesday torture"),
            ("the climbing wall", "the birthday voucher"),
        ),
        aspects=(
            Aspect(
                "How often per week for {t}?",
                "sessions",
                "Stick to {v}, more would only tire you.",
                "How many times a week do I train for {t}?",
                ("thrice", "every second day", "two mornings", "once, properly"),
            ),
            Aspect(
                "what heart rate?",
                "pulse",
                "Stay below {v} for nine tenths of it.",
                "Which pulse must I not exceed in {t}?",
                ("141", "128", "155", "your age plus a hundred"),
            ),
            Aspect(
                "What do I eat before {t}?",
                "meal",
                "Have {v} two hours earlier, nothing after.",
                "Which meal goes before {t}?",
                ("porridge", "white rice", "a banana with peanut butter", "toast and jam"),
            ),
            Aspect(
                "it hurts on the outside, is that bad?",
                "pain",
                "It is most likely {v}, which goes away by itself.",
                "What explanation did you have for the ache from {t}?",
                ("a tight band", "the new insoles", "cold muscles", "dehydration"),
            ),
            Aspect(
                "when am I allowed to go harder?",
                "progress",
                "Step it up {v}, not a day before.",
                "From when on may I increase the effort in {t}?",
                ("after week five", "once stairs are easy", "at the solstice", "when you sleep well"),
            ),
        ),
        own=(
            Own(
                "Let's plan {t}. My best so far is {v}.",
                "What is my personal record in {t}?",
                ("2:07", "eleven lengths", "grade 5c", "ninety degrees"),
            ),
            Own(
                "I want to take {t} seriously, since {v} bet against me.",
                "Who made a bet about me and {t}?",
                ("my hairdresser", "the night shift", "aunt Polly", "half the choir"),
            ),
        ),
        nouns=(
            "stride",
            "warm-up",
            "muscle",
            "shoe",
            "breath",
            "interval run",
            "recovery",
            "tendon",
            "water",
            "sleep",
            "rhythm",
            "stretch",
        ),
        sentences=(
            "Your {a} improves while you rest, your {b} while you don't.",
            "Spend {n} seconds on the {a} and then forget about the {b}.",
            "The {a} decides, the {b} follows.",
            "People with a good {a} rarely complain of the {b}.",
            "If the {a} feels wrong, stop; the {b} can wait {n} hours.",
            "No {a} was ever ruined by a slow {b}.",
        ),
        code=(
            "week[{n}].{a} = {b}",
            "rest({n})",
            "for {a} in range({n}): {b}()",
            "# {b} easy",
            "plan.add('{a}', {n})",
        ),
    ),
)

_PEOPLE = ("Torben", "Ngozi", "Saoirse", "Matteo", "Yael", "Prakash")
_PLAIN = (
    ("Has anyone got the projector?", "{v} took it along.", "Who has the projector at the moment?", ("The choir", "Miriam", "Number twelve")),
    ("What's for lunch at the canteen?", "{v} again.", "Which dish did the canteen serve?", ("Lentils", "Fish fingers", "Moussaka")),
    ("How many seats does the van have?", "{v}, with the bench folded out.", "For how many people is there room in the van?", ("Nine", "Six", "Thirteen")),
    ("Is the lift working?", "{v}.", "Did they repair the lift?", ("Down only", "Since noon", "Nope, call the porter")),
    ("Where did you park the trailer?", "{v}, next to the mill.", "What is the spot where the trailer stands?", ("Row F", "Lidl", "At Ruth's")),
    ("Which paint is on the hull?", "{v}, two coats.", "What was the hull painted with?", ("Epoxy", "Chalk white", "Copper red")),
    ("What's the code word for the raffle?", "{v}!", "Which word do I have to say at the raffle?", ("Marzipan", "Heliotrope", "Ostrich")),
    ("How did the exam go?", "{v}, I think.", "What was the result of the exam?", ("Passed", "A disaster", "Better than the mock")),
    ("Can the dog come along?", "{v}.", "Are dogs permitted on the outing?", ("On a leash", "Only small ones", "Sure")),
    ("When's the chimney sweep coming?", "{v}.", "For when did the chimney sweep announce himself?", ("The 8th, early", "This afternoon", "In October")),
    ("Who's got allergies on Saturday?", "{v} can't have nuts.", "Whom must we keep nuts away from?", ("Little Emil", "The drummer", "Both guests from Cork")),
    ("What size are the curtains?", "{v}, hemmed.", "What do the curtains measure?", ("240 by 130", "a yard and a half", "floor length")),
)  # fmt: skip
_SHORT = (
    ("Gate?", "{v}", "Which gate did we fly from?", ("B31", "C4", "just changed, A9")),
    ("And the score?", "{v}", "How did the match end?", ("3-3", "lost", "called off")),
    ("Milk or oat?", "{v}", "What does the guest take in her coffee?", ("black", "oat", "neither")),
    ("Battery left?", "{v}", "How full was the battery?", ("11%", "half", "dead")),
    ("Name of the cat?", "{v}", "How is the cat called?", ("Bolognese", "Sir", "Plum")),
    ("Which floor is the notary on?", "{v}", "Where in the building do I find the notary?", ("4th", "cellar", "mezzanine")),
    ("Did grandpa sleep?", "{v}", "How was the night for grandpa?", ("like a stone", "barely", "2 hrs")),
)  # fmt: skip
_ON = (
    ("the new logo", ("a potato with ears", "timeless", "stolen from a bank", "good on shirts")),
    ("the merger", ("a marriage of convenience", "long overdue", "the end of us", "none of my business")),
    ("the ferry", ("cheaper than flying", "a floating casino", "romantic in a storm", "too slow for kids")),
    (
        "the translation",
        ("stiff", "more beautiful than the original", "full of howlers", "done by a machine"),
    ),
    ("the heating plan", ("madness", "thirty years late", "worth every cent", "written by lobbyists")),
    ("the wine", ("corked", "like liquid velvet", "decent for the price", "made for salads")),
)
_SAID = ("To me {on} is {v}, full stop.", "{v}, that's my take on {on}.", "Call me mad but {on} seems {v}.", "You know I consider {on} {v}.")  # fmt: skip
_CROWD = (
    "Did someone feed the parking meter?", "Let's leave {on} for another day.", "I dreamt about {on}, weird.", "brb",
    "My phone dies in a second.", "Sun at last!", "Anybody want to share a taxi?", "sent you the file", "lol no", "???",
    "Is {on} on the agenda or not?",
)  # fmt: skip
_LONG = (
    "Dear all, it was quite an evening and I will try to be fair. ",
    "Attendance was thin, which may have been the football. ",
    "We opened with the accounts and nobody asked anything. ",
    "A motion about benches was postponed for lack of benches. ",
    "The microphone failed twice and the choir filled the gap. ",
    "Several of you have not returned the form with the blue stripe. ",
    "Under point four we heard a report on drains that I could not follow. ",
    "The youth section showed slides and got applause. ",
    "Next year's calendar is a draft and will stay one for some time. ",
)
_LONG_FACTS = (
    ("It was decided that {v} will look after the {x} from now on. ", "Who is in charge of the {x}?", (("archive", "Frau Lindt"), ("ice machine", "the lower school"), ("minibus", "Prakash's cousin"), ("website", "a firm in Brno"))),
    ("Oh, and for the {x} we must collect another {v} before autumn. ", "What sum is still missing for the {x}?", (("bell", "7,200"), ("greenhouse", "ninety pounds"), ("skate park", "half a million"), ("mural", "350"))),
)  # fmt: skip
_GROUP = Group(
    _PEOPLE, _PLAIN, _SHORT, _ON, _SAID, "How does {who} see {on}?", _CROWD, _LONG, _LONG_FACTS,
    ("Any word on the {x}?", "Not from me."),
)  # fmt: skip

_ABROAD = ("Ludmila", "Renzo", "Ayse", "Joaquim", "Minji", "Katarzyna", "Olivier", "Signe")
_ACROSS = {
    "italian": (
        ("{a} ha trovato {v} in soffitta.", "{a} found {v} in the attic.", "Cosa ha scoperto {a} in soffitta?", "What turned up in the attic of {a}?", ("un violino/a violin", "delle lettere/letters", "una bussola/a compass")),
        ("La sorella di {a} lavora come {v}.", "The sister of {a} works as {v}.", "Che mestiere fa la sorella di {a}?", "What is the job of {a}'s sister?", ("fornaia/a baker", "giudice/a judge", "idraulica/a plumber")),
    ),
    "portuguese": (
        ("{a} quebrou {v} na semana passada.", "{a} broke {v} last week.", "O que partiu {a} há dias?", "What did {a} break?", ("o braço/an arm", "a janela/the window", "os óculos/the glasses")),
        ("{a} quer mudar para {v} no próximo ano.", "{a} wants to move to {v} next year.", "Para onde vai {a} morar?", "Where is {a} going to live?", ("uma quinta/a farm", "a costa/the coast", "um barco/a boat")),
    ),
    "polish": (
        ("{a} zbiera {v} od dzieciństwa.", "{a} has collected {v} since childhood.", "Jaką kolekcję ma {a}?", "What does {a} collect?", ("guziki/buttons", "mapy/maps", "zegarki/watches")),
        ("Brat osoby {a} pracuje w {v}.", "The brother of {a} works in {v}.", "Gdzie pracuje brat osoby {a}?", "Where does the brother of {a} work?", ("kopalni/a mine", "szpitalu/a hospital", "straży pożarnej/the fire service")),
    ),
    "turkish": (
        ("{a} her sabah {v} içiyor.", "{a} drinks {v} every morning.", "{a} sabahları ne içer?", "What does {a} have to drink in the morning?", ("nar suyu/pomegranate juice", "ıhlamur/lime blossom tea", "süt/milk")),
        ("{a} düğünde {v} kaybetti.", "{a} lost {v} at the wedding.", "{a} düğünde neyini yitirdi?", "What is {a} missing since the wedding?", ("yüzüğünü/a ring", "ceketini/a jacket", "anahtarlarını/the keys")),
    ),
    "korean": (
        ("{a}은(는) 주말마다 {v}에서 봉사해요.", "{a} volunteers at {v} every weekend.", "{a}은(는) 어디에서 봉사하나요?", "Where does {a} volunteer?", ("도서관/the library", "동물 보호소/an animal shelter", "양로원/a home for the old")),
        ("{a}의 남편은 {v}을(를) 고쳐요.", "The husband of {a} repairs {v}.", "{a}의 남편은 무엇을 고치나요?", "What does the husband of {a} repair?", ("피아노/pianos", "자전거/bicycles", "우산/umbrellas")),
    ),
}  # fmt: skip
_SIGNS = (
    Sign(("C", "C++", "C#"), "Builds of the {s} parts in {p} take {v}.", "How long does it take to build what is written in {s}?", ("eleven minutes", "an hour", "forty seconds")),
    Sign(("C", "C++", "C#"), "{p}: licences for the {s} plugin run out in {v}.", "When does the licence for {s} end?", ("March", "2031", "two weeks")),
    Sign(("B", "B+", "B-"), "The clinic in {p} has {v} of blood type {s}.", "How much blood of type {s} is in stock?", ("nine bags", "hardly anything", "forty litres")),
    Sign(("Paint", "Paint.NET", "Paint+"), "Drawings for {p} were made in {s} and exported as {v}.", "Into which format does {s} export?", ("WebP", "TIFF", "SVG")),
    Sign(("X-1", "X1", "X/1"), "Cable {s} in {p} carries {v}.", "What goes through the cable {s}?", ("the alarm", "three phases", "audio only")),
)  # fmt: skip
_PLACES = ("Quarry", "Halcyon", "Dovetail", "Sextant")

_PAIRS = (("Delphine", "Oskar"), ("Hana", "Lorenzo"), ("Ebony", "Viktor"), ("Marit", "Chidi"))
_COURSES = ("welding", "origami", "falconry", "jujitsu", "beatboxing", "bookbinding", "tango", "carving")
_TOWNS = ("Aarhus", "Leuven", "Bologna", "Plovdiv", "Galway", "Tromsø", "Szeged", "Vigo")
_KIN = ("stepfather", "godmother", "nephew", "landlady", "piano teacher", "twin", "ex", "supervisor")
_GIFTS = ("compass", "teapot", "saddle", "banjo", "telescope", "hammock", "typewriter", "lantern")
_ILLS = ("shingles", "bronchitis", "a migraine", "food poisoning", "a slipped disc", "tinnitus")
_CARS = ("camper", "tractor", "scooter", "hatchback", "tandem", "rowing boat")
_NAMED = ("Gertrude", "Rocket", "Mr Darcy", "Pudding", "Vesuvius", "Old Faithful")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_IDLE = (
    "You won't believe the queue at the post office.",
    "My {kin} says hello, by the way.",
    "I keep thinking of {town}, no idea why.",
    "Never mind, tell me about your day.",
    "A friend does {course} now, of all things.",
    "It poured all day and the cellar is wet again.",
    "Somebody on the radio played a {gift}, quite moving.",
    "Do you still have that {car}?",
    "Mhm.",
    "Exactly what I was going to say!",
    "Remind me to water the ferns.",
)
_OTHER_WORDS = (
    (
        "They took out my appendix on Wednesday, I am still groggy.",
        "Which operation did {name} undergo?",
        "appendix",
    ),
    ("Guess who will walk down the aisle in June: me!", "Is {name} getting married?", "aisle"),
    ("Our firm folded, so I hand out CVs all day.", "Did {name} become unemployed?", "CVs"),
    ("I put my savings into shares and they halved.", "Did {name} lose money on investments?", "halved"),
    ("The stork comes twice this time, says the ultrasound.", "Is {name} expecting twins?", "stork"),
    ("No more cigarettes for me since the new year.", "Has {name} quit smoking?", "cigarettes"),
)


def _chats() -> list[Collection]:
    """Four pairs of friends: facts in one exchange, changes, dates, denials, typos, facts over two sessions, other words."""
    made = []
    for number, (me, you) in enumerate(_PAIRS):
        talk = Talk(f"friends{number}", REPORT, date(2024, 11, 2), 18, 20)
        rng = talk.rng
        sessions = rng.sample(range(18), 18)
        for n, (course, gift) in enumerate(zip(rng.sample(_COURSES, 4), rng.sample(_GIFTS, 4), strict=True)):
            who = rng.choice(_KIN)
            talk.say(
                sessions[n],
                Turn(me, f"So I signed up for {course}, first evening was yesterday."),
                Turn(you, "And? Were you any good?"),
                Turn(me, f"Terrible. But my {who} lent me a {gift} to cheer me up.", f"lent{n}"),
            )
            talk.ask(
                f"What did {me} borrow after the {course} evening?", "neighbours", f"lent{n}", answer=gift
            )
            talk.ask(f"Who lent the {_slip(gift, n)} to {me}?", "typo", f"lent{n}", answer=who)
        for n, (car, name) in enumerate(zip(rng.sample(_CARS, 3), rng.sample(_NAMED, 3), strict=True)):
            late = n == 2
            talk.say(
                sessions[4 + n],
                Turn(you, f"I hear you bought a {car}."),
                Turn(me, "True! It even has a name already."),
                *([Turn(you, "Out with it.")] if late else []),
                Turn(me, f"{name}. Don't laugh.", f"car{n}"),
            )
            kind = "three turns later" if late else "a turn later"
            talk.ask(f"How has {me} baptised the {car}?", kind, f"car{n}", answer=name)
        towns = rng.sample(_TOWNS, 5)
        for n, session in enumerate(sorted(rng.sample(range(18), 3))):
            talk.say(
                session,
                Turn(you, "Still at the same address?"),
                Turn(me, f"No, {towns[n]} it is now, third floor, view of a wall.", f"town{n}"),
            )
            day = talk.days[session]
            when = f"{_MONTHS[day.month - 1]} {day.year}"
            talk.ask(f"To which town had {me} moved in {when}?", "of a date", f"town{n}", answer=towns[n])
        for n, session in enumerate(rng.sample(range(18), 10)):
            ill, day = rng.choice(_ILLS), talk.days[session]
            talk.say(
                session,
                Turn(you, "How are you feeling?"),
                Turn(me, f"Not great, it's {ill}, says the doctor.", f"ill{n}"),
            )
            if n < 4:
                when = f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
                talk.ask(f"What was wrong with {me} on {when}?", "of a date", f"ill{n}", answer=ill)
        for n, kin in enumerate(rng.sample(_KIN, 4)):
            town, job = rng.choice(_TOWNS), rng.choice(("tailor", "diver", "judge", "vet", "cellist"))
            one, two = rng.sample(range(18), 2)
            talk.say(one, Turn(me, f"My {kin} has settled in {town}, can you imagine.", f"hop{n}a"))
            talk.say(two, Turn(me, f"I had a call from my {kin}: now training as a {job}.", f"hop{n}b"))
            talk.ask(
                f"What is {me}'s relative in {town} training as?",
                "two hops",
                f"hop{n}a",
                f"hop{n}b",
                answer=job,
                phrasings=(f"Which relative of {me} lives in {town}?",),
                then=f"What is {me}'s {kin} training as?",
            )
        (yes,) = rng.sample(_COURSES, 1)
        talk.say(
            sessions[9],
            Turn(you, f"I would give a fortune for a good evening of {yes}.", "yes"),
            Turn(me, f"You can keep your {yes}, I get hives from it.", "no"),
        )
        talk.ask(f"Does {me} enjoy {yes}?", "negation", "no", answer="hives")
        talk.ask(f"How much does {you} like {yes}?", "negation", "yes", answer="fortune")
        for n, (told, asked, answer) in enumerate(rng.sample(_OTHER_WORDS, 4)):
            talk.say(sessions[10 + n], Turn(me, told, f"other{n}"), Turn(you, "Wow. I need to sit down."))
            talk.ask(asked.format(name=me), "paraphrase", f"other{n}", answer=answer)
        for n, project in enumerate(("Basalt", "Cormorant", "Fjord", "Parsec")):
            lead, old = rng.sample(_PEOPLE, 2)
            ship = rng.sample(_MONTHS, 2)
            text = "{} answers for {}, and delivery is planned for {}."
            talk.file(f"plan{n}old", project, "who and when", text.format(old, project, ship[0]), 200 + n)
            talk.file(
                f"plan{n}", f"{project}, revised", "who and when since the workshop",
                text.format(lead, project, ship[1]), 9 + n,
            )  # fmt: skip
            talk.ask(
                f"Which month is {project} delivered in, as of now?", "update", f"plan{n}", answer=ship[1]
            )
        for n, unit in enumerate(
            rng.sample(("ingest", "ledger", "router", "sandbox", "vault", "crawler"), 6)
        ):
            code = f"X{rng.randrange(200, 999)}"
            key = ("flush_every", "hard_stop", "window_ms", "fan_out", "spill_at", "max_age")[n]
            talk.file(
                f"note{n}", f"{unit}.{key}", f"trap in {unit}",
                f"`{key}` of `{unit}` beyond {rng.randrange(3, 99)} ends in {code}: set it in `conf/{unit}.yaml`, then drain.",
                30 * n + 4,
            )  # fmt: skip
            talk.ask(
                f"Where do I set {key.replace('_', ' ')} for the {unit}?", "code", f"note{n}", answer=code
            )
            talk.ask(f"I get {code}, what's that?", "code", f"note{n}", answer=key)

        def small(session: int, talk: Talk = talk, pair: Sequence[str] = (me, you)) -> list[Turn]:
            draw = talk.rng.choice
            return [
                Turn(draw(pair), draw(_IDLE).format(kin=draw(_KIN), town=draw(_TOWNS), course=draw(_COURSES), gift=draw(_GIFTS), car=draw(_CARS)))
                for _ in range(talk.rng.randrange(2, 7))
            ]  # fmt: skip

        made.append(talk.collection(small))
    return made


def _slip(word: str, n: int) -> str:
    """A word with a letter doubled or left out."""
    at = 1 + n % (len(word) - 2)
    return word[:at] + (word[at] * 2 if n % 2 else "") + word[at + 1 :]


def report() -> list[Collection]:
    """Four pairs of friends, four users' talk with an agent, four groups, and two memories in several languages."""
    made = _chats()
    for number in range(4):
        talk = Talk(f"assistant{number}", REPORT, date(2024, 10, 1), 19, 21)
        talk_with_agent(talk, _TOPICS, _MANNER, 4)
        made.append(talk.collection())
    for number in range(4):
        talk = Talk(f"club{number}", REPORT, date(2025, 4, 4), 14, 15)
        talk_in_group(talk, _GROUP, 8)
        made.append(talk.collection(_GROUP.crowd_of(talk.rng, 6)))
    for number in range(2):
        talk = Talk(f"abroad{number}", REPORT, date(2024, 12, 1), 10, 26)
        talk_across(talk, _ACROSS, _ABROAD, _PEOPLE, number)
        talk_of_signs(talk, _SIGNS, _PLACES, _PEOPLE, as_files=bool(number))
        made.append(talk.collection(_GROUP.crowd_of(talk.rng, 4)))
    return made
