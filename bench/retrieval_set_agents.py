"""The half of the made set to tune on, in addition to `retrieval_set`: a user's talk with an agent, plain questions and answers, groups
with named speakers, messages in one language asked for in another, and names that differ by a sign."""

from __future__ import annotations

from datetime import date

from bench.retrieval_talk import (
    TUNE,
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
        "Good question.",
        "Sure, here is how I would go about it.",
        "Short version first, details below.",
        "Happy to help with that!",
        "It depends a little on your setup, but usually:",
        "Let's take it one step at a time.",
    ),
    headings=("What to do", "Steps", "Things to watch", "Overview", "Before you begin", "Checklist"),
    closings=(
        "Let me know if you want me to go deeper into any of these.",
        "Does that fit what you had in mind?",
        "Tell me what you see and we can take it from there.",
        "I can also write this up as a checklist.",
        "If something looks off, paste the output here.",
    ),
    bullet="- ",
    fence="bash",
    assigns="{l}={v}",
    small=(
        ("thanks, that helps", "You're welcome!"),
        ("can you say that again, shorter?", "Of course, here it is in brief."),
        ("hm, I don't get it", "No problem, let me put it another way."),
        ("go on", "Continuing where we stopped."),
        ("what else should I think of?", "A few more things are worth a look."),
        ("ok, done. next?", "Great, then the next part."),
        ("it didn't work", "Sorry about that, let's look at the usual reasons."),
    ),
    known_by="By the way, {t} is {o}.",
    noted=("Noted, I will keep that in mind.", "Thanks for telling me.", "Good to know!", "Got it."),
)

_TOPICS = (
    Topic(
        things=(
            ("the staging database", "the machine that Ines looks after"),
            ("the photo archive", "the one that lives in the cellar"),
            ("the billing server", "what the accountant logs into"),
            ("the office NAS", "the box under Henrik's desk"),
        ),
        aspects=(
            Aspect(
                "How often should I back up {t}?",
                "interval",
                "Every {v} is plenty, since little changes in between.",
                "How frequently did you tell me to run the backup of {t}?",
                ("six hours", "forty minutes", "nine days", "second night", "Sunday"),
            ),
            Aspect(
                "And how many copies do I keep?",
                "keep last",
                "Hold on to the last {v} copies and let the rest expire.",
                "What number of backups of {t} should stay around?",
                ("seventeen", "thirty-one", "eight", "fifty-two"),
            ),
            Aspect(
                "Which tool would you use for {t}?",
                "tool",
                "I would go with {v}, as it copies only blocks that changed.",
                "Which program did you recommend for the copies of {t}?",
                ("restic", "borg", "kopia", "duplicity", "rclone"),
            ),
            Aspect(
                "where should the copies go?",
                "target",
                "Send them to {v}, away from the same building.",
                "At which place are the backups of {t} supposed to be stored?",
                ("a Hetzner storage box", "Wasabi in Frankfurt", "tapes at the bank", "a friend's attic"),
            ),
            Aspect(
                "how do I know it can be restored?",
                "test",
                "Do a trial restore on {v} and compare checksums.",
                "When did we agree to rehearse recovering {t}?",
                ("the first Monday of a quarter", "every full moon", "New Year's Day", "Friday mornings"),
            ),
        ),
        own=(
            Own(
                "I need to set up backups for {t}. It is about {v} by now.",
                "How large is {t}, as I told you?",
                ("3.4 terabytes", "780 gigabytes", "12 gigabytes", "41 terabytes"),
            ),
            Own(
                "So, backups of {t}: the last time we lost it, it took {v} to get it back.",
                "How long did it take us to recover {t} when it was gone?",
                ("a fortnight", "eleven hours", "half a year", "one terrible weekend"),
            ),
        ),
        nouns=(
            "backup",
            "snapshot",
            "repository",
            "checksum",
            "retention",
            "cron job",
            "volume",
            "encryption key",
            "bandwidth",
            "log file",
            "mount point",
            "restore",
        ),
        sentences=(
            "The {a} should not sit on the same disk as the {b}.",
            "Check the {a} before you trust the {b}.",
            "If the {a} grows past {n} gigabytes, split it by {b}.",
            "A {a} without a {b} is only half of the work.",
            "Most people forget the {a}, and notice it when the {b} fails.",
            "You can leave the {a} as it is; the {b} takes about {n} seconds.",
            "Rotate the {a} whenever somebody with access to the {b} leaves.",
            "Write down where the {a} is, next to the {b}.",
        ),
        code=(
            "{a} --check {b} --limit {n}",
            "export {a}={n}",
            "# {a} before {b}",
            "run {a} | tee {b}.log",
            "sleep {n}",
        ),
    ),
    Topic(
        things=(
            ("the rye starter", "what my aunt calls Gregor"),
            ("the ciabatta dough", "the bread for the street party"),
            ("the brioche", "what we bake on birthdays"),
            ("the spelt loaf", "the one that Tove can eat"),
        ),
        aspects=(
            Aspect(
                "What oven temperature for {t}?",
                "oven",
                "Heat the oven to {v} and go down a little after ten minutes.",
                "How hot should the oven be for {t}?",
                ("245 degrees", "190 degrees", "as high as it goes", "165 degrees"),
            ),
            Aspect(
                "and how much water?",
                "hydration",
                "Aim for {v} of the flour's weight in water.",
                "What hydration did you suggest for {t}?",
                ("82 percent", "two thirds", "91 percent", "just half"),
            ),
            Aspect(
                "How long does {t} rest?",
                "proof",
                "Let it rise for {v}, covered, until it wobbles.",
                "What proofing time did you give me for {t}?",
                ("fourteen hours", "three quarters of an hour", "two nights", "95 minutes"),
            ),
            Aspect(
                "which flour do I buy?",
                "flour",
                "Get {v}; anything stronger makes it chewy.",
                "What kind of flour does {t} need?",
                ("type 1150", "Manitoba", "stone-ground emmer", "plain French T55"),
            ),
            Aspect(
                "mine turned out flat, why?",
                "cause",
                "That sounds like {v}, nothing to do with your folding.",
                "What went wrong with {t}, in your opinion?",
                ("old yeast", "a draughty kitchen", "too much salt", "chlorine in the tap"),
            ),
        ),
        own=(
            Own(
                "Let's talk about {t}. I bake it in {v}.",
                "What do I bake {t} in?",
                ("a cast iron pot", "an old flower pot", "a loaf tin from my mother", "a pizza oven"),
            ),
            Own(
                "I started {t} with a recipe from {v}.",
                "Whose recipe did I follow at first for {t}?",
                ("a monk in Bavaria", "the Tartine book", "my dentist", "a radio programme"),
            ),
        ),
        nouns=(
            "dough",
            "crust",
            "gluten",
            "starter",
            "oven",
            "steam",
            "flour",
            "salt",
            "yeast",
            "proof",
            "banneton",
            "crumb",
        ),
        sentences=(
            "The {a} tells you more than the clock does about the {b}.",
            "Too little {a} and the {b} stays pale.",
            "Fold the {a} gently, {n} seconds or so, and leave the {b} alone.",
            "If the {a} sticks, wet your hands rather than adding {b}.",
            "A warm kitchen changes both the {a} and the {b}.",
            "Weigh the {a}; cups are no good for {b}.",
            "You may notice that the {a} smells of apples, which is fine for the {b}.",
        ),
        code=("{a}: {n} g", "# mix {a} with {b}", "{a} + {b} = {n}", "rest {a} {n} min", "# {b} at the end"),
    ),
    Topic(
        things=(
            ("the trip to Lisbon", "the one with grandfather"),
            ("the hike in Norway", "our honeymoon"),
            ("the week in Kyoto", "what Pavel won in the raffle"),
            ("the conference in Tallinn", "where I speak about bees"),
        ),
        aspects=(
            Aspect(
                "Where should I stay during {t}?",
                "stay",
                "I would book {v}, close to everything and quiet at night.",
                "Which accommodation did you propose for {t}?",
                ("the Pension Alma", "hostel Brisa", "a cabin by the fjord", "Hotel Okura", "the Old Mill"),
            ),
            Aspect(
                "how do I get there without flying?",
                "route",
                "The nicest way is {v}, with one change.",
                "What was your idea for reaching the place on {t} without a plane?",
                ("the night train via Irun", "a ferry from Kiel", "the bus through Riga", "a cargo ship"),
            ),
            Aspect(
                "What would {t} cost me?",
                "budget",
                "Count on {v} all in, a bit more in high season.",
                "How much money should I set aside for {t}?",
                ("1,450 euros", "2,900 francs", "88,000 yen", "600 pounds"),
            ),
            Aspect(
                "which month is best?",
                "month",
                "Go in {v}, when the crowds are gone.",
                "At what time of the year did you advise me to do {t}?",
                ("late September", "mid-May", "early February", "November"),
            ),
            Aspect(
                "what must I not forget to pack?",
                "pack",
                "Whatever you leave at home, take {v}.",
                "Which thing do I absolutely need in my suitcase for {t}?",
                ("ear plugs", "a head torch", "rubber boots", "a paper map", "mosquito nets"),
            ),
        ),
        own=(
            Own(
                "I'm planning {t}, and {v} is coming along.",
                "Who is joining me on {t}?",
                ("my niece Clara", "a colleague from Graz", "our old teacher", "the twins"),
            ),
            Own(
                "About {t}: on the way we want to see {v}.",
                "What did I want to visit along the way on {t}?",
                ("a lighthouse", "the tile museum", "a whisky distillery", "the moss garden"),
            ),
        ),
        nouns=(
            "ticket",
            "itinerary",
            "hotel",
            "station",
            "luggage",
            "museum",
            "reservation",
            "passport",
            "harbour",
            "viewpoint",
            "breakfast",
            "neighbourhood",
        ),
        sentences=(
            "Book the {a} early, the {b} can wait.",
            "The {a} near the {b} gets crowded after ten.",
            "From the {a} it is {n} metres to the {b}.",
            "A {a} with a {b} costs more and is rarely worth it.",
            "Ask at the {a} whether the {b} is open on Mondays.",
            "Keep a copy of your {a} away from the {b}.",
            "Around {n} people a day come for the {a}, few for the {b}.",
        ),
        code=("{a}: {n} EUR", "- [ ] {a}", "day {n}: {a}, then {b}", "# {b} optional", "{a} -> {b}"),
    ),
    Topic(
        things=(
            ("the sales report", "what the board reads"),
            ("the churn dashboard", "the thing Olena presents on Mondays"),
            ("the warehouse import", "the job that woke me at night"),
            ("the survey data", "the spreadsheet with the green tabs"),
        ),
        aspects=(
            Aspect(
                "{t} is slow, what would you change?",
                "fix",
                "The quickest win is {v}; the rest is noise.",
                "How did you suggest speeding up {t}?",
                (
                    "an index on customer_id",
                    "reading Parquet in place of CSV",
                    "dropping the outer join",
                    "categorical dtypes",
                ),
            ),
            Aspect(
                "how do I deal with the empty cells?",
                "missing values",
                "Replace gaps by {v} and add a column that says so.",
                "What do we put where a value is absent in {t}?",
                ("the median of its region", "minus one", "the previous day", "zero"),
            ),
            Aspect(
                "Which chart fits {t}?",
                "chart",
                "Use {v}; a pie would hide the tail.",
                "What sort of plot did you pick for {t}?",
                ("a ridgeline", "small multiples", "a waterfall diagram", "a heat map"),
            ),
            Aspect(
                "when should it run?",
                "schedule",
                "Let it start at {v}, after the exports have landed.",
                "What time of day did you choose for {t}?",
                ("04:35", "a quarter past eleven", "half past six", "19:50"),
            ),
            Aspect(
                "how do I test that?",
                "check",
                "Assert that {v}, and stop the run otherwise.",
                "Which sanity check did you want in {t}?",
                (
                    "no total is negative",
                    "both sums agree to the cent",
                    "row counts never shrink",
                    "each key occurs once",
                ),
            ),
        ),
        own=(
            Own(
                "Help me with {t}. It has {v} rows.",
                "How many rows are there in {t}?",
                ("4.2 million", "67 thousand", "nineteen hundred", "800 million"),
            ),
            Own(
                "I inherited {t} from {v}, and nobody knows how it works.",
                "Who had {t} before me?",
                ("an intern called Bo", "the Utrecht team", "a freelancer", "Marketing"),
            ),
        ),
        nouns=(
            "column",
            "dataframe",
            "join",
            "query",
            "export",
            "aggregate",
            "pivot",
            "outlier",
            "timestamp",
            "schema",
            "index",
            "filter",
        ),
        sentences=(
            "Look at the {a} first, the {b} follows from it.",
            "A {a} over {n} groups needs less memory than a {b}.",
            "Do the {a} before the {b}, or you count rows twice.",
            "The {a} is cheap; the {b} is what takes {n} milliseconds.",
            "Name the {a} after what it means, not after the {b}.",
            "When the {a} is wrong the {b} will look plausible all the same.",
            "Keep the raw {a}, and derive the {b} each time.",
        ),
        code=(
            "df = df.{a}({n})",
            "# {a}, then {b}",
            "{a} = load('{b}.csv')",
            "assert len({a}) > {n}",
            "print({a}.{b})",
        ),
    ),
)


#: Plain questions and answers: what is asked then, what is answered with {v}, and what is asked later.
_PLAIN = (
    ("Do we still have paper for the printer?", "{v}, on the top shelf.", "How much printer paper is left?", ("Two boxes", "One ream", "Nearly none")),
    ("What's the door code at the studio?", "{v}, then the hash key.", "How do I get into the studio?", ("4071", "9926", "1358")),
    ("Who waters the plants in August?", "{v} does, on Wednesdays.", "Who takes care of the plants in summer?", ("Marguerite", "The caretaker", "Old Sven")),
    ("When does the recycling get picked up?", "{v}, before seven.", "On which day is the recycling collected?", ("Thursday", "Every other Friday", "Tuesday")),
    ("Is the blue bike fixed?", "{v}, the chain came on Monday.", "What is the state of the blue bike?", ("Not yet", "It rides again", "Half of it")),
    ("How tall is the new shelf?", "{v} without the feet.", "What height does the new shelf have?", ("212 cm", "1.87 m", "six foot three")),
    ("What did the vet say about Momo?", "{v}, and fewer treats.", "What is the matter with Momo according to the vet?", ("A bad tooth", "An allergy to dust", "Nothing serious")),
    ("Which bank do we use for the club?", "{v}, the branch in the old town.", "Where does the club have its account?", ("Volksbank", "Triodos", "Caixa")),
    ("Where's the spare key?", "{v}.", "Where do we keep the second key?", ("Under the frog", "At the bakery", "In the piano stool")),
    ("What's the wifi at the cabin called?", "{v}, all lower case.", "Which network do I pick at the cabin?", ("pinecone", "lakehouse-guest", "nettle5")),
    ("Are the concert tickets refundable?", "{v}.", "Can we get money back for the concert?", ("Only until June", "Half of it", "No, but you may swap them")),
    ("Which tiles did you order for the bathroom?", "{v}, hexagonal.", "What did you choose for the bathroom floor?", ("Sea green", "Terracotta", "Matte black")),
)  # fmt: skip

_PEOPLE = ("Agnes", "Bilal", "Cosima", "Dmitri", "Esther")
_ON = (
    ("the venue", ("too far from the tram", "lovely but cold", "a fire trap", "the only one with a stage")),
    (
        "the budget",
        ("never going to be enough", "fine if we skip the posters", "a joke", "better than last time"),
    ),
    ("the date", ("in the middle of exams", "bad luck", "perfect for the harvest", "too close to Easter")),
    ("the poster", ("unreadable from afar", "the best in years", "very brown", "missing the sponsors")),
    ("the caterer", ("overpriced", "friendly and slow", "vegan only", "where I had my wedding")),
    ("the drum kit", ("held together by tape", "louder than the church", "promised to someone", "in pieces")),
)
_SAID = (
    "Honestly, {on} is {v}.",
    "If you ask me {on} is {v}.",
    "I find {on} {v}, sorry.",
    "Well, {on}: {v}.",
)
_CROWD = (
    "I have not looked at {on} yet.", "Can we talk about {on} next time?", "Who decides about {on}?", "Did anybody call about {on}?",
    "My bus is late again, start without me.", "Someone left an umbrella at the last meeting.", "+1", "haha", "ok!",
    "I can bring cake.", "Sorry, wrong chat.",
)  # fmt: skip
_LONG = (
    "I went through all of it last night and here are my notes. ",
    "The first part is mostly what we had last year and nobody objected then. ",
    "There was a long argument about chairs, which I will spare you. ",
    "Some of the numbers were typed twice, I corrected them in the file. ",
    "We should thank the neighbours, they were patient with the noise. ",
    "The second part was written in a hurry and it shows. ",
    "I am not sure that the insurance covers what happens outside. ",
    "As always the lights were discussed for too long. ",
    "Please read the annex, it is short. ",
    "The town wants three forms, all of them in person. ",
)
_LONG_FACTS = (
    ("By the way the {x} will be lent to us by {v} for free. ", "From whom do we get the {x}?", (("tent", "the fire brigade"), ("piano", "a retired judge"), ("projector", "the cinema on the corner"), ("cool boxes", "the fishing club"))),
    ("It also says that the {x} must be gone by {v}. ", "Until when may the {x} stay?", (("stage", "Monday noon"), ("banners", "the ninth"), ("fence", "sunrise"), ("toilets", "four in the afternoon"))),
)  # fmt: skip
_SHORT = (
    ("Which platform for the Ghent train?", "{v}", "From where does the train to Ghent leave?", ("7b", "eleven", "the far one")),
    ("When do we meet Anouk?", "{v}", "What time is the meeting with Anouk?", ("9:40", "after lunch", "at dusk")),
    ("How was the dentist?", "{v}", "What was the outcome of the dentist visit?", ("two fillings", "a crown", "all fine!")),
    ("Which colour for the fence?", "{v}", "What shade will the fence have?", ("rust", "sage", "white-ish")),
    ("Who won the quiz?", "{v}", "Which team was first in the quiz?", ("the nurses", "us!!", "table nine")),
    ("What's mum's new number?", "{v}", "How can I call mum now?", ("555 0147", "555 0199", "555 0112")),
    ("Size of the frame?", "{v}", "How big is the frame?", ("A3", "40x60", "tiny")),
)  # fmt: skip


#: A language: what a memory says in it with a person and a value, and the same in English, each with its question in both.
_ACROSS: dict[str, tuple[tuple[str, str, str, str, tuple[str, ...]], ...]] = {
    "german": (
        ("{a} ist gegen {v} allergisch.", "{a} is allergic to {v}.", "Worauf reagiert {a} allergisch?", "What is {a} allergic to?", ("Haselnüsse/hazelnuts", "Penizillin/penicillin", "Katzenhaare/cat hair")),
        ("Das Auto von {a} steht in der Werkstatt wegen {v}.", "{a}'s car is at the garage because of {v}.", "Warum ist das Auto von {a} in der Werkstatt?", "Why is the car of {a} being repaired?", ("der Bremsen/the brakes", "eines Marders/a marten", "des Auspuffs/the exhaust")),
        ("{a} lernt seit dem Frühling {v}.", "{a} has been learning {v} since spring.", "Was lernt {a} seit einiger Zeit?", "What did {a} begin to learn?", ("Geige/the violin", "Segeln/sailing", "Dänisch/Danish")),
    ),
    "french": (
        ("{a} a vendu {v} pour payer le loyer.", "{a} sold {v} to pay the rent.", "Qu'a vendu {a} pour son loyer ?", "What did {a} sell because of the rent?", ("sa guitare/a guitar", "la voiture/the car", "ses timbres/the stamps")),
        ("Le médecin a interdit {v} à {a}.", "The doctor forbade {a} {v}.", "Qu'est-ce que le médecin interdit à {a} ?", "What is {a} not allowed by the doctor?", ("le café/coffee", "la course/running", "le sel/salt")),
        ("{a} garde ses économies dans {v}.", "{a} keeps savings in {v}.", "Où sont les économies de {a} ?", "Where are the savings of {a}?", ("une théière/a teapot", "le grenier/the attic", "un coffre/a safe")),
    ),
    "spanish": (
        ("{a} perdió el pasaporte en {v}.", "{a} lost a passport at {v}.", "¿Dónde perdió {a} su pasaporte?", "Where did {a} lose the passport?", ("la playa/the beach", "un taxi/a taxi", "el aeropuerto/the airport")),
        ("A {a} le regalaron {v} por su cumpleaños.", "{a} was given {v} as a birthday present.", "¿Qué recibió {a} de regalo?", "What present did {a} get?", ("un reloj/a watch", "dos gallinas/two hens", "una cometa/a kite")),
        ("{a} teme a {v} desde niña.", "{a} has feared {v} since childhood.", "¿De qué tiene miedo {a}?", "What is {a} afraid of?", ("las arañas/spiders", "los truenos/thunder", "la oscuridad/the dark")),
    ),
    "russian": (
        ("{a} забыла зонт в {v}.", "{a} forgot an umbrella in {v}.", "Где {a} оставила зонт?", "Where did {a} leave the umbrella?", ("театре/the theatre", "автобусе/the bus", "аптеке/the pharmacy")),
        ("Любимое блюдо {a} - {v}.", "The favourite dish of {a} is {v}.", "Что {a} любит есть больше всего?", "What does {a} like to eat most?", ("борщ/borscht", "пельмени/dumplings", "рыба/fish")),
    ),
    "chinese": (
        ("{a}的儿子在学{v}。", "The son of {a} studies {v}.", "{a}的孩子学什么?", "What does the child of {a} study?", ("法律/law", "医学/medicine", "建筑/architecture")),
        ("{a}把钱包忘在{v}了。", "{a} left a wallet at {v}.", "{a}的钱包在哪里?", "Where is the wallet of {a}?", ("餐厅/the restaurant", "地铁/the metro", "健身房/the gym")),
    ),
}  # fmt: skip
_ABROAD = ("Anika", "Benedikt", "Clotilde", "Dolores", "Emilio", "Fenja", "Gustavo", "Hedda")

#: Names that differ by a sign, and what is said of each: with {p}, a project, {s}, the name, and values.
_SIGNS = (
    Sign(("C", "C++", "C#", "F#"), "In {p} the {s} files are indented by {v}.", "What indentation do {s} files have?", ("two blanks", "tabs", "three blanks", "eight blanks")),
    Sign(("C", "C++", "C#", "F#"), "Nadia reviews everything written in {s} for {p}, {v}.", "When are changes in {s} reviewed?", ("Mondays", "Tuesday nights", "Fridays", "at noon")),
    Sign(("Node", "Node.js", "Deno"), "{p} runs on {s} and needs {v} there.", "What is needed on {s}?", ("a flag for certificates", "four workers", "an older lock file")),
    Sign(("R", "R+", "R++"), "For {p} we use {s} with {v} only.", "With what may {s} be used?", ("local files", "the small cluster", "signed scripts")),
    Sign(("A", "A+", "A-"), "A supplier graded {s} in {p} is paid {v}.", "How is a supplier with the grade {s} paid?", ("within a week", "in advance", "after an audit")),
)  # fmt: skip
_PROJECTS = ("Osprey", "Lantern", "Bracken", "Mistral")


_GROUP = Group(
    _PEOPLE, _PLAIN, _SHORT, _ON, _SAID, "What does {who} think of {on}?", _CROWD, _LONG, _LONG_FACTS,
    ("What about the {x}?", "No idea."),
)  # fmt: skip

#: Facts of which one names whom the other is about: both are needed. With {a}, a member, {b}, somebody else, and values.
_HOPS = (
    ("{a}: I share the flat with {b} since the winter.", "{b} has taken up {v}, the neighbours know it.", "Which instrument is {a}'s flatmate learning?", "Who shares a flat with {a}?", "Which instrument is {b} learning?", ("the tuba", "bagpipes", "the cello", "drums")),
    ("{a}: {b} is going to marry me, imagine!", "{b} was born in {v}, by the way.", "Where does the person come from whom {a} marries?", "Who is {a} engaged to?", "Where does {b} come from?", ("Lagos", "a lighthouse", "Quito", "Minsk")),
    ("{a}: my boss is called {b} now, a new one.", "{b} collects {v}, I saw the office.", "What is it that the superior of {a} collects?", "Who is {a}'s superior?", "What is it that {b} collects?", ("beer mats", "meteorites", "old maps", "snow globes")),
)  # fmt: skip
_OUTSIDERS = (
    "Olga",
    "Percival",
    "Quirin",
    "Rafaela",
    "Sunniva",
    "Tadeusz",
    "Ulrike",
    "Valentin",
    "Wilma",
    "Xenia",
    "Yusuf",
    "Zita",
)
_BOATS = (
    ("canoe", ("Duchess", "Soap", "Number Two")), ("van", ("Tomato", "Aunt Beryl", "Speedy")), ("kiln", ("Dragon", "Mr Hot", "Etna")),
)  # fmt: skip


def _more_of_groups(talk: Talk) -> None:
    """Answers three turns after what they are about, and facts over two sessions."""
    rng, sessions = talk.rng, len(talk.days)
    for n, (thing, names) in enumerate(_BOATS):
        (one, two), name = rng.sample(_PEOPLE, 2), rng.choice(names)
        talk.say(
            rng.randrange(sessions),
            Turn(one, f"We have finally agreed on what to call the {thing}!"),
            Turn(two, "Oh? Tell me."),
            Turn(one, "Promise that you won't groan."),
            Turn(one, f"{name}. It was my idea.", f"called{n}"),
        )
        talk.ask(f"What is the name of the {thing}?", "three turns later", f"called{n}", answer=name)
    others = iter(rng.sample(_OUTSIDERS, len(_OUTSIDERS)))
    for n, (first, second, asked, hop, then, values) in enumerate(_HOPS):
        for k, (member, value) in enumerate(zip(rng.sample(_PEOPLE, 4), values, strict=True)):
            other = next(others)
            told = first.format(a=member, b=other).partition(": ")[2]
            talk.say(rng.randrange(sessions), Turn(member, told, f"hop{n}-{k}a"))
            speaker, fact = rng.choice(_PEOPLE), second.format(b=other, v=value)
            talk.say(rng.randrange(sessions), Turn(speaker, fact, f"hop{n}-{k}b"))
            if k < 2:
                talk.ask(
                    asked.format(a=member),
                    "two hops",
                    f"hop{n}-{k}a",
                    f"hop{n}-{k}b",
                    answer=value,
                    phrasings=(hop.format(a=member),),
                    then=then.format(b=other),
                )


def others() -> list[Collection]:
    """Four users' talk with an agent, four groups of people, and two memories in several languages."""
    made = []
    for number in range(4):
        talk = Talk(f"agent{number}", TUNE, date(2025, 2, 3), 20, 17)
        talk_with_agent(talk, _TOPICS, _MANNER, 4)
        made.append(talk.collection())
    for number in range(4):
        talk = Talk(f"group{number}", TUNE, date(2025, 3, 1), 16, 19)
        talk_in_group(talk, _GROUP, 8)
        _more_of_groups(talk)
        made.append(talk.collection(_GROUP.crowd_of(talk.rng, 5)))
    for number in range(2):
        talk = Talk(f"tongue{number}", TUNE, date(2025, 1, 10), 12, 23)
        talk_across(talk, _ACROSS, _ABROAD, _PEOPLE, number)
        talk_of_signs(talk, _SIGNS, _PROJECTS, _PEOPLE, as_files=bool(number))
        made.append(talk.collection(_GROUP.crowd_of(talk.rng, 3)))
    return made
