"""One study that has every kind of block and every state of a page, in two languages."""

from typing import Any

from survey.contracts.panels import PanelIds
from survey.models import Bank, LanguageModel, ModelAnswer, Sitting, Study
from survey.services.sittings import debriefing
from survey.services.sittings.answering import advance
from survey.services.sittings.flow import Step, current_step
from survey.services.sittings.forms import options_of
from tests import cast
from tests.kept import kept

RIGHT = ("Right", "Richtig")
REPLY = 'I think so: <b>yes</b>, "quite" & surely.\n\n  1. one\n  2. two\n' + "x" * 90
# Typical questions: options by letters, a table, code, a formula, a word longer than a line, other scripts.
QUESTIONS = (
    *cast.ODD_TEXTS,
    "<b>Which of these is the heaviest?</b><br>(A) a litre of water<br>(B) a litre of oil<br>(C) both are the same",
    "<b>What does this print?</b><br>def f(x):<br>    return [y ** 2 for y in range(x) if y % 2 == 0]<br>print(f(9))",
    "<b>Find the degree of the field extension Q(sqrt(2), sqrt(3), sqrt(18)) over Q.</b><br>(A) 0<br>(B) 4<br>(C) 2",
    "<b>Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" + "n" * 60 + "?</b>",
    "<b>year | wins | losses<br>1991 | 12 | 4<br>1992 | 7 | 9</b><br>In which year were more games won than lost?",
)


def both(en: str, de: str) -> dict[str, str]:
    return {"en": en, "de": de}


def options(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [both(*pair) for pair in pairs]


YES_NO = options(("Yes", "Ja"), ("No", "Nein"))
EVERY_FIELD = [
    {
        "name": "work",
        "label": both("What do you work as?", "Als was arbeiten Sie?"),
        "kind": "choice",
        "options": options(
            ("I work in an office", "Ich arbeite im Büro"),
            ("I work elsewhere", "Ich arbeite anderswo"),
            ("None of these", "Nichts davon"),
        ),
        "prefer_not_to_say": True,
        "required": True,
    },
    {
        "name": "devices",
        "label": both("Which devices do you have?", "Welche Geräte haben Sie?"),
        "kind": "multiple",
        "options": options(("A telephone", "Ein Telefon"), ("A computer", "Einen Computer"), ("None", "Keines")),
        "values": ["telephone", "computer", "none"],
        "exclusive": ["none"],
        "required": True,
    },
    {
        "name": "likely",
        "label": both("How likely would you recommend it?", "Wie wahrscheinlich würden Sie es weiterempfehlen?"),
        "kind": "likert",
        "points": 11,
        "labels": options(
            ("not at all likely", "gar nicht wahrscheinlich"), ("extremely likely", "äußerst wahrscheinlich")
        ),
        "prefer_not_to_say": True,
        "required": True,
    },
    {
        "name": "agree",
        "label": both("The pages were easy to understand.", "Die Seiten waren leicht zu verstehen."),
        "kind": "likert",
        "points": 3,
        "labels": options(("I disagree", "Nein"), ("In between", "Teils, teils"), ("I agree", "Ja")),
        "required": True,
    },
    {
        "name": "years",
        "label": both("For how many years have you used a computer?", "Seit wie vielen Jahren nutzen Sie Computer?"),
        "kind": "number",
        "minimum": 0,
        "maximum": 80,
        "required": True,
    },
    {
        "name": "why",
        "label": both("Why did you take part?", "Warum haben Sie teilgenommen?"),
        "kind": "text",
        "max_characters": 200,
        "required": True,
    },
    {"name": "else", "label": both("Anything else?", "Sonst noch etwas?"), "kind": "text"},
]
CHECKS = [
    {
        "name": "what_it_says",
        "question": both("You enter 80 for a question. What does that say?", "Sie geben 80 ein. Was heißt das?"),
        "options": options(
            ("Right: that a correct answer is likely", "Richtig: dass eine richtige Antwort wahrscheinlich ist"),
            ("That the question is hard", "Dass die Frage schwer ist"),
        ),
        "hint": both("It says how likely you think it is.", "Die Zahl sagt, für wie wahrscheinlich Sie es halten."),
    },
    {
        "name": "whose",
        "question": both("Is every item about the same model?", "Geht es immer um dasselbe Modell?"),
        "options": options(
            ("Right: it is the same", "Richtig: es ist dasselbe"), ("No, another one", "Nein, ein anderes")
        ),
    },
]
BLOCKS: list[dict[str, Any]] = [
    {
        "kind": "consent",
        "title": both("Before you begin", "Bevor Sie anfangen"),
        "text": both("We store your answers.\n\n- It is free.\n- You may stop.", "Wir speichern sie.\n\n- Frei."),
    },
    {
        "kind": "instructions",
        "title": both("What you will do", "Was Sie tun werden"),
        "text": both(
            "You read questions.\n\n- First one.\n- Then another.",
            "Sie lesen Fragen.\n\n- Erst eine.\n- Dann noch eine.",
        ),
    },
    {
        "kind": "practice",
        "text": both("Try the pages.", "Probieren Sie die Seiten aus."),
        "example": {
            "target": both("How many legs has a spider?", "Wie viele Beine hat eine Spinne?"),
            "evidence": both("How many minutes has a day?", "Wie viele Minuten hat ein Tag?"),
            "outcome": "incorrect",
        },
    },
    {
        "kind": "form",
        "name": "screener",
        "fields": [
            {
                "name": "adult",
                "label": both("Are you 18 or older?", "Sind Sie mindestens 18?"),
                "kind": "choice",
                "options": YES_NO,
                "values": ["yes", "no"],
                "screen_out": ["no"],
                "required": True,
            }
        ],
    },
    {"kind": "checks", "checks": CHECKS},
    {"kind": "items"},
    {"kind": "form", "name": "every_field", "title": both("About you", "Über Sie"), "fields": EVERY_FIELD},
    *({"kind": "form", "ready": name} for name in ("demographics", "ai_use", "looked_up", "comment")),
    {
        "kind": "debriefing",
        "text": both("It was about expectations.", "Es ging um Erwartungen."),
        "asks_to_use": True,
    },
    {"kind": "end", "text": both("Thank you very much.", "Vielen Dank.")},
]
ATTENTION = {
    "name": "read",
    "after_item": 1,
    "kind": "instruction",
    "text": both("Please choose “Right, I read this” here.", "Wählen Sie hier bitte „Richtig, ich lese das“."),
    "options": options(
        ("Right, I read this", "Richtig, ich lese das"), ("I did not", "Ich nicht"), ("Sometimes", "Manchmal")
    ),
}
EVERYTHING: dict[str, Any] = {
    "title": both("What do you expect of a model?", "Was erwarten Sie von einem Modell?"),
    "instrument": {
        "kind": "belief_update",
        "options": {
            "evidence": "real",
            "language_model": "parrot",
            "show_answer": True,
            "explanation": "all",
            "explanation_required": True,
            "own_answer": True,
            "confidence": True,
        },
    },
    "conditions": [
        {
            "factor": "mode",
            "levels": ["direction", "blank", "keep_button", "prefilled"],
            "per": "item",
            "options": {mode: {"answer_mode": mode} for mode in ("direction", "blank", "keep_button", "prefilled")},
        }
    ],
    # An item of each mode, and one of them without evidence.
    "roles": {"holdout": 0, "controls": 0.25, "control_kinds": ["no_evidence"]},
    "sitting": {"items": 4, "attention_checks": [ATTENTION]},
    "stages": [{"sittings": 6}],
    "panel": cast.PROLIFIC,
    "blocks": BLOCKS,
    "texts": {
        "languages": ["en", "de"],
        "bank_language": "en",
        "welcome": both("You are invited to a short study.", "Sie sind zu einer kurzen Studie eingeladen."),
        "minutes": 10,
        "contact": "a-person-with-a-long-name@university.example.org",
    },
}


def bank(*, texts: tuple[str, ...] = QUESTIONS, reply: str = REPLY) -> Bank:
    """Forty questions that repeat `texts`, all answered by a model."""
    made = cast.bank(texts=tuple(texts[place % len(texts)] for place in range(40)))
    model = LanguageModel.objects.create(name="parrot")
    ModelAnswer.objects.bulk_create(
        ModelAnswer(language_model=model, question=question, correct=question.position % 3 != 0, response=reply)
        for question in made.questions.order_by("position")
    )
    return made


@kept
def open_study(**overrides: Any) -> Study:
    """The study, open; its bank is made if there is none."""
    if not Bank.objects.exists():
        bank()
    return cast.open_study(**{**EVERYTHING, **overrides})


def take_part(study: Study, person: str, *, pages: int = 1000) -> None:
    """Answer this many pages of a sitting through the services."""
    sitting = cast.begin(study, PanelIds("prolific", person, "study", f"session{person}"))
    step = current_step(sitting)
    for _page in range(pages):
        if step.kind == "end":
            return
        step = advance(sitting=sitting, step=step.number, data=_answers(step))


def sitting_at(study: Study, kind: str, *, person: str = "a", screen: str = "") -> Sitting:
    """A sitting that has come, through the services, to a page of that kind (and screen)."""
    sitting = cast.begin(study, PanelIds("prolific", person, "study", f"session{person}"))
    step = current_step(sitting)
    while step.kind != kind or (screen and (step.screen is None or step.screen.name != screen)):
        assert step.kind != "end", f"never came to {kind} {screen}"
        step = advance(sitting=sitting, step=step.number, data=_answers(step))
    return sitting


def _answers(step: Step) -> dict[str, Any]:
    if step.kind == "debriefing":
        return {debriefing.FIELD: debriefing.USE}
    if step.kind == "attention":
        return {check.name: "1" for check in step.checks}
    if step.kind != "form":
        return cast.answers_for(step, confidence="60")
    numbers_and_words = {"number": "30", "text": "So.", "likert": "1"}
    return {field.name: numbers_and_words.get(field.kind) or options_of(field)[0][0] for field in step.block.fields}
