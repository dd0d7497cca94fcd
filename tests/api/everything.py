"""A study with every block, every type of field and every way to answer an item, in two languages."""

from typing import Any

from tests.survey.printed_screens.test_screens import both

MODES = ("direction", "blank", "keep_button", "prefilled")
RIGHT = {"Language models.", "Sprachmodelle.", "I read this.", "Das habe ich gelesen."}
FIELDS: list[dict[str, Any]] = [
    {
        "name": "adult",
        "label": both("Are you 18 or older?", "Sind Sie 18 oder älter?"),
        "kind": "choice",
        "options": [both("Yes", "Ja"), both("No", "Nein")],
        "values": ["yes", "no"],
        "screen_out": ["no"],
        "required": True,
    },
]
ABOUT: list[dict[str, Any]] = [
    {"name": "age", "label": both("Your age", "Ihr Alter"), "kind": "number", "minimum": 18, "maximum": 99},
    {
        "name": "sure",
        "label": both("How sure were you?", "Wie sicher waren Sie?"),
        "kind": "likert",
        "points": 5,
        "labels": [both("not at all", "gar nicht"), both("fully", "völlig")],
        "required": True,
    },
    {
        "name": "tools",
        "label": both("What did you use?", "Was haben Sie benutzt?"),
        "kind": "multiple",
        "options": [both("A pen", "Einen Stift"), both("Paper", "Papier"), both("Nothing", "Nichts")],
        "values": ["pen", "paper", "nothing"],
        "exclusive": ["nothing"],
        "prefer_not_to_say": True,
        "required": True,
    },
    {
        "name": "remark",
        "label": both("Anything else?", "Noch etwas?"),
        "kind": "text",
        "max_characters": 200,
        "required": True,
    },
]
STUDY: dict[str, Any] = {
    "title": both("What do you expect?", "Was erwarten Sie?"),
    "texts": {"languages": ["en", "de"], "welcome": both("Welcome.", "Willkommen."), "minutes": 5},
    "stages": [{"sittings": 8}],
    "sitting": {
        "items": 4,
        "attention_checks": [
            {
                "name": "read",
                "after_item": 2,
                "kind": "instruction",
                "text": both("Choose “I read this.” here.", "Wählen Sie hier „Das habe ich gelesen.“"),
                "options": [both("I read this.", "Das habe ich gelesen."), both("I did not.", "Habe ich nicht.")],
            }
        ],
    },
    "instrument": {
        "kind": "belief_update",
        "options": {
            "explanation": "all",
            "explanation_required": True,
            "own_answer": True,
            "confidence": True,
            "edition": 1,  # The one whose sentences the API's examples repeat.
        },
    },
    "conditions": [
        {
            "factor": "mode",
            "levels": list(MODES),
            "per": "item",
            "options": {mode: {"answer_mode": mode} for mode in MODES},
        }
    ],
    "blocks": [
        {"kind": "consent", "title": both("Consent", "Einwilligung"), "text": both("Do you agree?", "Einverstanden?")},
        {"kind": "form", "name": "screener", "title": both("Before", "Vorab"), "fields": FIELDS},
        {"kind": "instructions", "title": both("Your task", "Ihre Aufgabe"), "text": both("Read.", "Lesen Sie.")},
        {
            "kind": "practice",
            "title": both("An example", "Ein Beispiel"),
            "text": both("Try it.", "Probieren Sie es."),
            "example": {
                "target": both("Which is heavier, water or oil?", "Was ist schwerer, Wasser oder Öl?"),
                "evidence": both("How many minutes has a day?", "Wie viele Minuten hat ein Tag?"),
                "outcome": "correct",
            },
        },
        {
            "kind": "checks",
            "title": both("A question", "Eine Frage"),
            "checks": [
                {
                    "name": "what",
                    "question": both("Whose answers do you judge?", "Wessen Antworten beurteilen Sie?"),
                    "options": [both("Language models.", "Sprachmodelle."), both("People.", "Menschen.")],
                    "hint": both("Those of language models.", "Die von Sprachmodellen."),
                }
            ],
        },
        {"kind": "items"},
        {"kind": "form", "name": "about", "title": both("About you", "Über Sie"), "fields": ABOUT},
        {"kind": "form", "ready": "looked_up"},
        {
            "kind": "debriefing",
            "title": both("What it was about", "Worum es ging"),
            "text": both("It was about expectations.", "Es ging um Erwartungen."),
            "asks_to_use": True,
        },
        {"kind": "end", "title": both("The end", "Ende"), "text": both("Thank you.", "Vielen Dank.")},
    ],
}


class Reader:
    """Knows the right answers, but first fails the comprehension checks this many times."""

    def __init__(self, *, wrong: int = 0) -> None:
        self.wrong = wrong

    def __call__(self, question: str, options: list[str]) -> str:
        right = next(option for option in options if option in RIGHT)
        if self.wrong and "?" in question:
            self.wrong -= 1
            return next(option for option in options if option not in RIGHT)
        return right
